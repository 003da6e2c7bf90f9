/* Layer 12, private to headwise translate: what is read, and what is said about it. */
#ifndef HW_CLI_TRANSLATE_H
#define HW_CLI_TRANSLATE_H

#include "cli/lines.h"

/* Lines and their prefixes, a window at a time. */
typedef struct hw_translate_input {
    hw_cli_lines text, begins; /* the files of lines and of prefixes, if any */
    bool prompt;
    hw_arena *arena;           /* of one window */
    int64_t window;            /* lines of it at most */
    hw_text *lines, *prefixes; /* [window]; prefixes NULL where there are none */
    int64_t count;             /* in this window */
    bool prefixes_ended;
} hw_translate_input;

/* path "-": standard input. Prefixes are gone through once, so that what cannot work is told before the first sentence:
 * a prefix of too many tokens, and, where path is a file, another number of lines than it has. */
bool hw_translate_open(hw_translate_input *in, hw_cli *cli, const char *path, const char *prefixes,
                       hw_translator *translator, hw_error *err);
/* Reads a window. 1: go on afterwards, 0: that was the end, -1: an error after the lines that were read. */
int hw_translate_read(hw_translate_input *in, hw_error *err);
/* After the last window: fails where there were more lines than prefixes, or fewer. done: lines in all. */
bool hw_translate_even(hw_translate_input *in, int64_t done, hw_error *err);
void hw_translate_close(hw_translate_input *in);

#endif
