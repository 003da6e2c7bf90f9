/* Layer 12, private to commands that take any text: lines as they are read there, and how many at a time. */
#ifndef HW_CLI_LINES_H
#define HW_CLI_LINES_H

#include "cli/cli.h"

#include <headwise/decode.h>

/* Text that is worked on together at most, so that a file of any size takes the memory of a window. */
enum { HW_CLI_WINDOW_BYTES = 1 << 22 };

/* Lines without an answer: how many, and why. */
typedef struct hw_cli_loss {
    int64_t count;
    const char *why;
} hw_cli_loss;
#define HW_CLI_NOT_FINITE "the network's numbers are not finite"
#define HW_CLI_BROKEN "SentencePiece failed; there may be too little memory for it" /* hw_tokenizer_encode, _decode */

/* How one and several of them are called, and what becomes of one and of several. */
typedef struct hw_cli_loss_words {
    const char *lines[2], *fate[2];
} hw_cli_loss_words;

/* Tells each of the losses that there are, "of 9 lines 2 could not be translated and are empty: WHY" -> were there any?
 * lines: in all. The last loss has no why. */
bool hw_cli_say_losses(int64_t lines, const hw_cli_loss_words *words, const hw_cli_loss *losses);

/* A file whose bytes that are not UTF-8 are read as U+FFFD, with one warning. */
typedef struct hw_cli_lines {
    const char *path; /* as messages call it */
    hw_reader *reader;
    bool warned;
} hw_cli_lines;
bool hw_cli_lines_open(hw_cli_lines *l, const char *path, hw_error *err); /* "-": standard input */
/* The next line, in the arena: as hw_reader_line. */
int hw_cli_lines_next(hw_cli_lines *l, hw_arena *arena, hw_text *line, hw_error *err);
void hw_cli_lines_close(hw_cli_lines *l); /* one that was not opened is fine */

#endif
