/* Tokenizer `word`: what blanks and tabs separate, with a joiner for words in pieces ("bo@@ ra@@ ti").
 *
 * The joiner is the convention of subword-nmt (Sennrich, Haddow and Birch 2016, "Neural machine translation of rare
 * words with subword units"): a token that ends in "@@" goes on in the next one. Text may come cut by such a tool; a
 * word that was typed whole and that the vocabulary lacks is cut here into pieces that it has. */
#include "text/tokenizer.h"

#include <string.h>

#include "text/lines.h"

/* A longer word is no name or compound but noise, and stays unknown; it bounds the work that one word can cause. */
enum { LONGEST_CUT = 256 };

/* One word being cut. All pieces but the last end in the mark. */
typedef struct cut {
    const hw_tokenizer *t;
    const hw_vocabulary *v;
    const char *word;
    size_t bytes, longest; /* longest: of a piece without its mark */
    int32_t pieces[LONGEST_CUT];
    bool dead[LONGEST_CUT];                    /* from here on no cut leads to the end */
    char key[LONGEST_CUT + HW_LONGEST_JOINER]; /* a piece with its mark, to look it up */
} cut;

static int32_t find_piece(cut *c, size_t at, size_t bytes)
{
    memcpy(c->key, c->word + at, bytes);
    memcpy(c->key + bytes, c->t->mark, c->t->mark_bytes);
    return hw_vocabulary_find(c->v, c->key, bytes + c->t->mark_bytes);
}

/* Cuts word[at ..] into pieces[depth ..], the longest piece first; the number of all pieces, or 0 where it cannot be
 * done. */
static int cut_rest(cut *c, size_t at, int depth)
{
    if (c->dead[at]) return 0;
    c->pieces[depth] = hw_vocabulary_find(c->v, c->word + at, c->bytes - at);
    if (c->pieces[depth] != HW_UNKNOWN) return depth + 1;
    size_t size = c->bytes - at - 1;
    for (size = size < c->longest ? size : c->longest; size > 0; size--) {
        c->pieces[depth] = find_piece(c, at, size);
        int count = c->pieces[depth] == HW_UNKNOWN ? 0 : cut_rest(c, at + size, depth + 1);
        if (count) return count;
    }
    c->dead[at] = true;
    return 0;
}

static bool add_pieces(const hw_tokenizer *t, const hw_vocabulary *v, const char *word, size_t bytes, hw_tokens *tokens)
{
    size_t longest = hw_vocabulary_longest(v);
    if (bytes > LONGEST_CUT || longest <= t->mark_bytes) return false;
    cut c = {.t = t, .v = v, .word = word, .bytes = bytes, .longest = longest - t->mark_bytes};
    int count = cut_rest(&c, 0, 0);
    for (int i = 0; i < count; i++) {
        size_t size;
        const char *piece = hw_vocabulary_token(v, c.pieces[i], &size);
        hw_tokens_add(tokens, piece, size, c.pieces[i]);
    }
    return count > 0;
}

static bool encode(const hw_tokenizer *t, const hw_vocabulary *v, const char *line, size_t bytes, hw_tokens *tokens)
{
    const char *at = line, *word;
    size_t size;
    while (hw_next_word(&at, line + bytes, &word, &size)) {
        int32_t id = v ? hw_vocabulary_find(v, word, size) : HW_UNKNOWN;
        if (id == HW_UNKNOWN && v && t->mark_bytes && add_pieces(t, v, word, size, tokens)) continue;
        hw_tokens_add(tokens, word, size, id);
    }
    return true;
}

static char *decode(const hw_tokenizer *t, hw_arena *arena, const hw_token *tokens, int64_t count, size_t *bytes)
{
    char *out = hw_tokens_room(arena, tokens, count), *to = out;
    bool joined = true; /* to what stands before */
    for (int64_t i = 0; i < count; i++) {
        if (!joined) *to++ = ' ';
        joined = hw_tokenizer_goes_on(t, &tokens[i]);
        size_t size = tokens[i].bytes - (joined ? t->mark_bytes : 0);
        memcpy(to, tokens[i].text, size);
        to += size;
    }
    *to = 0;
    *bytes = (size_t)(to - out);
    return out;
}

const hw_tokenizer_kind hw_tokenizer_word = {.name = "word", .joins = true, .encode = encode, .decode = decode};
