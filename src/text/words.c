/* Which tokens of a line belong to which of its words.
 *
 * Gold speaks of words, which are what blanks separate; networks read tokens. A model of SentencePiece, for which a
 * word may be other pieces in a line than alone, tells where its pieces stand; for all else each word is cut by itself
 * and its tokens are looked for in the line's. */
#include <headwise/text.h>

#include <string.h>

#include "text/lines.h"
#include "text/sentencepiece.h"
#include "text/tokenizer.h"

static bool same_tokens(const hw_token *a, const hw_token *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (a[i].id != b[i].id || a[i].bytes != b[i].bytes || memcmp(a[i].text, b[i].text, a[i].bytes)) return false;
    return true;
}

/* Where the tokens of the word stand in the line's from `at` on; at the end where they do not. */
static int64_t find_run(const hw_tokens *all, int64_t at, const hw_tokens *word)
{
    if (!word->count) return at;
    while (at + word->count <= all->count && !same_tokens(all->items + at, word->items, word->count)) at++;
    return at + word->count <= all->count ? at : all->count - word->count;
}

/* A line's words while its pieces are gone through. */
typedef struct pieces {
    const char *line;
    size_t *ends; /* [words] of each word */
    int32_t *counts;
    int64_t words, at, most; /* at: the word that the last piece belonged to; most: pieces that count */
} pieces;

/* A piece belongs to the word of its last letter; what has none, such as a blank, to the word behind it. */
static void take_piece(size_t begin, size_t end, void *context)
{
    pieces *p = context;
    size_t letter = end;
    while (letter > begin && hw_is_blank(p->line[letter - 1])) letter--;
    letter = letter > begin ? letter - 1 : end;
    while (p->at + 1 < p->words && letter >= p->ends[p->at]) p->at++;
    if (p->most-- > 0) p->counts[p->at]++;
}

static int32_t *count_pieces(const hw_sentencepiece *model, const char *line, size_t bytes, int64_t tokens,
                             hw_arena *arena, int64_t *words)
{
    pieces p = {.line = line, .most = tokens};
    p.ends = hw_arena_alloc(arena, (bytes / 2 + 1) * sizeof *p.ends);
    p.counts = hw_arena_calloc(arena, bytes / 2 + 1, sizeof *p.counts);
    const char *from = line, *word;
    size_t size;
    while (hw_next_word(&from, line + bytes, &word, &size)) p.ends[p.words++] = (size_t)(word - line) + size;
    if (p.words) hw_spm_locate(model->spm, line, bytes, take_piece, &p);
    *words = p.words;
    return p.counts;
}

int32_t *hw_word_tokens(const hw_side *side, const char *line, size_t bytes, const hw_tokens *tokens, hw_arena *arena,
                        int64_t *words)
{
    const hw_sentencepiece *model = side->tokenizer->model;
    if (model) return count_pieces(model, line, bytes, tokens->count, arena, words);
    int32_t *counts = hw_arena_alloc(arena, (bytes / 2 + 1) * sizeof *counts);
    hw_tokens one = hw_tokens_new(arena);
    const char *from = line, *word;
    size_t size;
    int64_t at = 0;
    for (*words = 0; hw_next_word(&from, line + bytes, &word, &size); ++*words) {
        hw_tokenizer_encode(side->tokenizer, side->vocabulary, word, size, &one);
        int64_t end = find_run(tokens, at, &one) + one.count;
        if (end < at) end = at;
        counts[*words] = (int32_t)(end - at);
        at = end;
    }
    if (*words) counts[*words - 1] += (int32_t)(tokens->count - at);
    return counts;
}
