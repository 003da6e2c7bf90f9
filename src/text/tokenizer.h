/* Inside layer 6: what a kind of tokenizer is. One file a kind; the table of kinds is in tokenizer.c. */
#ifndef HW_TEXT_TOKENIZER_H
#define HW_TEXT_TOKENIZER_H

#include <headwise/text.h>

enum { HW_MARK = 15 };

typedef struct hw_tokenizer_kind {
    const char *name;
    bool joins; /* takes a joiner */
    /* Adds the tokens of the line; v may be NULL, see hw_tokenizer_encode. */
    void (*encode)(const hw_tokenizer *t, const hw_vocabulary *v, const char *line, size_t bytes, hw_tokens *tokens);
    /* Writes the text of the tokens to out, which has room for all their bytes and one more a token; returns its
     * length. */
    size_t (*decode)(const hw_tokenizer *t, const hw_token *tokens, int64_t count, char *out);
} hw_tokenizer_kind;

extern const hw_tokenizer_kind hw_tokenizer_word, hw_tokenizer_char;

struct hw_tokenizer {
    const hw_tokenizer_kind *kind;
    size_t mark_bytes;      /* 0: no joiner */
    char mark[HW_MARK + 1]; /* the joiner without the blank after it: "@@" */
};

#endif
