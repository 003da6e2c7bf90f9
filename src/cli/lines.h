/* Layer 12, private to commands that take any text: lines as they are read there, and how many at a time. */
#ifndef HW_CLI_LINES_H
#define HW_CLI_LINES_H

#include "cli/cli.h"

#include <headwise/decode.h>

/* Text that is worked on together at most, so that a file of any size takes the memory of a window. */
enum { HW_CLI_WINDOW_BYTES = 1 << 22 };

/* Why a line has no answer where hw_tokenizer_encode or _decode fails. */
#define HW_CLI_BROKEN "SentencePiece failed; there may be too little memory for it"

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
