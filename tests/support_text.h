/* For the tests of layer 6: a directory of small files, plain or gzip, and vocabularies from lists of words. */
#ifndef HW_TESTS_SUPPORT_TEXT_H
#define HW_TESTS_SUPPORT_TEXT_H

#include <headwise/text.h>

/* A fresh directory under /tmp for this test; all of it goes with directory_end. */
const char *directory_begin(void);
void directory_end(void);
const char *directory_file(const char *name);               /* its path; valid until the end */
const char *file_write(const char *name, const char *text); /* returns the path */
const char *file_write_bytes(const char *name, const void *bytes, size_t size);
const char *file_write_gzip(const char *name, const char *text);

/* A vocabulary of words separated by blanks, in that order after the special tokens. */
hw_vocabulary *vocabulary_of(hw_arena *arena, const char *words);
hw_tokenizer *tokenizer_of(const char *name, const char *joiner);

/* Tokens as "a|b|c", in a static buffer. */
const char *tokens_text(const hw_tokens *tokens);

#endif
