/* For the tests of layer 6: gzip files, and vocabularies from lists of words. */
#ifndef HW_TESTS_SUPPORT_TEXT_H
#define HW_TESTS_SUPPORT_TEXT_H

#include <headwise/text.h>

/* A gzip file in the scratch directory (support_files.h); returns the path. */
const char *scratch_gzip(const char *name, const char *text);

/* A vocabulary of words separated by blanks, in that order after the special tokens. */
hw_vocabulary *vocabulary_of(hw_arena *arena, const char *words);
hw_tokenizer *tokenizer_of(const char *name, const char *joiner);

/* Tokens as "a|b|c", in a static buffer. */
const char *tokens_text(const hw_tokens *tokens);

#endif
