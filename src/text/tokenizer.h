/* Inside layer 6: what a kind of tokenizer is. One file a kind; the table of kinds is in tokenizer.c. */
#ifndef HW_TEXT_TOKENIZER_H
#define HW_TEXT_TOKENIZER_H

#include <headwise/config.h>
#include <headwise/text.h>

typedef struct hw_tokenizer_kind {
    const char *name;
    bool joins;  /* takes a joiner, and files hold text that was cut already */
    bool models; /* needs a model of its own, see sentencepiece.h */
    /* Adds the tokens of the line; v may be NULL, see hw_tokenizer_encode. */
    bool (*encode)(const hw_tokenizer *t, const hw_vocabulary *v, const char *line, size_t bytes, hw_tokens *tokens);
    /* The text of the tokens in the arena, ended by a 0 byte beyond *bytes; or NULL. */
    char *(*decode)(const hw_tokenizer *t, hw_arena *arena, const hw_token *tokens, int64_t count, size_t *bytes);
} hw_tokenizer_kind;

extern const hw_tokenizer_kind hw_tokenizer_word, hw_tokenizer_char, hw_tokenizer_sentencepiece;

struct hw_tokenizer {
    const hw_tokenizer_kind *kind;
    int owners;
    size_t mark_bytes;                /* 0: no joiner */
    char mark[HW_LONGEST_JOINER + 1]; /* the joiner without the blank after it: "@@" */
    struct hw_sentencepiece *model;   /* or NULL */
};

static inline bool hw_tokens_full(const hw_tokens *t) { return t->most && t->count == t->most; }

/* Room for the text of all tokens, one byte more for each, and the 0 byte. */
char *hw_tokens_room(hw_arena *arena, const hw_token *tokens, int64_t count);

#endif
