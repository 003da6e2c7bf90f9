/* Layer 12, private to headwise translate: what is read, and what is said about it. */
#ifndef HW_CLI_TRANSLATE_H
#define HW_CLI_TRANSLATE_H

#include "cli/cli.h"

#include <headwise/decode.h>

/* Lines and their prefixes, a window at a time. */
typedef struct hw_translate_input {
    const char *path; /* as messages call it */
    hw_reader *reader;
    const char *prefix_path; /* NULL: there are no prefixes */
    hw_reader *prefix_reader;
    bool prompt;
    hw_arena *arena;              /* of one window */
    int64_t window, window_bytes; /* lines and bytes of it at most */
    hw_text *lines, *prefixes;    /* [window]; prefixes NULL where there are none */
    int64_t count;                /* in this window */
    bool warned;                  /* of bytes that are no text */
    bool prefixes_ended;
} hw_translate_input;

/* path "-": standard input. Prefixes are gone through once, so that what cannot work is told before the first sentence:
 * a prefix of more tokens than max_length, and, where path is a file, another number of lines than it has. */
bool hw_translate_open(hw_translate_input *in, hw_cli *cli, const char *path, const char *prefixes,
                       hw_translator *translator, int64_t max_length, hw_error *err);
/* Reads a window. 1: go on afterwards, 0: that was the end, -1: an error after the lines that were read. */
int hw_translate_read(hw_translate_input *in, hw_error *err);
/* After the last window: fails where there were more lines than prefixes, or fewer. done: lines in all. */
bool hw_translate_even(hw_translate_input *in, int64_t done, hw_error *err);
void hw_translate_close(hw_translate_input *in);

#endif
