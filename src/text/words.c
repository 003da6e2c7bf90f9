/* Which tokens of a line belong to which of its words.
 *
 * Gold speaks of words, which are what blanks separate; networks read tokens. Each word is cut by itself and its tokens
 * are looked for in the line's, so that every kind of tokenizer will do. */
#include <headwise/text.h>

#include <string.h>

#include "text/lines.h"

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

int32_t *hw_word_tokens(const hw_side *side, const char *line, size_t bytes, const hw_tokens *tokens, hw_arena *arena,
                        int64_t *words)
{
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
