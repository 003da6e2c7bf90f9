/* Inside layer 6: what every reader of text here shares: the check for UTF-8, words between blanks, and text in
 * messages. */
#ifndef HW_TEXT_LINES_H
#define HW_TEXT_LINES_H

#include <headwise/base.h>

/* Only blank and tab separate words; every other space of Unicode is text. */
static inline bool hw_is_blank(char c) { return c == ' ' || c == '\t'; }

/* The next word between blanks from *at on, which moves behind it; false at the end. */
bool hw_next_word(const char **at, const char *end, const char **word, size_t *bytes);
int64_t hw_count_words(const char *text, size_t bytes);

/* True for valid UTF-8; else "path:line: byte 7 is 0xE9, which is not valid UTF-8; ...". first: the number of text[0] in
 * its line, from 1. */
bool hw_check_utf8(const char *path, int64_t line, int64_t first, const char *text, size_t bytes, hw_error *err);

/* Fails where it is standard input or no file but a pipe or a device: what is read more than once must begin anew. */
bool hw_check_rereadable(const char *path, hw_error *err);

/* Text as a message shows it: in quotes, without control characters, cut where it is long. Returns out. */
enum { HW_QUOTE = 80 };
const char *hw_quote(char out[HW_QUOTE], const char *text, size_t bytes);

#endif
