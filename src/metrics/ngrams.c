/* Layer 9, metrics: matching n-grams, by sorting.
 *
 * All places of the hypothesis and the references are sorted by the symbols that follow them, once for all orders:
 * after that, equal n-grams of any order stand side by side, and counting them is one walk an order. There is nothing
 * to hash, so nothing collides, and words become numbers the same way: sorted and numbered. */
#include <stdlib.h>
#include <string.h>

#include "metric.h"

typedef struct word {
    hw_symbols text;
    uint32_t *rank;
} word;

static int compare_words(const void *a, const void *b)
{
    const hw_symbols *x = &((const word *)a)->text, *y = &((const word *)b)->text;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return memcmp(x->at, y->at, (size_t)x->size * sizeof *x->at);
}

hw_symbols *hw_words_rank(hw_arena *arena, const hw_words *lists, int count)
{
    int64_t total = 0, n = 0;
    for (int i = 0; i < count; i++) total += lists[i].size;
    hw_symbols *ranked = hw_arena_alloc(arena, (size_t)count * sizeof *ranked);
    word *words = hw_arena_alloc(arena, (size_t)(total + 1) * sizeof *words);
    for (int i = 0; i < count; i++) {
        uint32_t *ranks = hw_arena_alloc(arena, (size_t)(lists[i].size + 1) * sizeof *ranks);
        for (int64_t j = 0; j < lists[i].size; j++) words[n++] = (word){lists[i].at[j], ranks + j};
        ranked[i] = (hw_symbols){ranks, lists[i].size};
    }
    qsort(words, (size_t)total, sizeof *words, compare_words);
    uint32_t rank = 1;
    for (int64_t i = 0; i < total; i++) {
        if (i > 0 && compare_words(words + i - 1, words + i)) rank++;
        *words[i].rank = rank;
    }
    return ranked;
}

/* A place where n-grams begin: in sequence `owner` (0 the hypothesis), `left` symbols before its end, where a 0
 * stands. */
typedef struct place {
    const uint32_t *at;
    int64_t left;
    int owner;
    int common; /* leading symbols equal to those of the place before it in the order, up to HW_NGRAM_LIMIT */
} place;

static int common_prefix(const uint32_t *a, const uint32_t *b)
{
    int n = 0;
    while (n < HW_NGRAM_LIMIT && a[n] && a[n] == b[n]) n++;
    return n;
}

static int compare_places(const void *a, const void *b)
{
    const uint32_t *x = ((const place *)a)->at, *y = ((const place *)b)->at;
    int n = common_prefix(x, y);
    if (n == HW_NGRAM_LIMIT) return 0;
    return (x[n] > y[n]) - (x[n] < y[n]);
}

static int64_t add_places(hw_arena *arena, hw_symbols sequence, int owner, place *places, int64_t n)
{
    uint32_t *ended = hw_arena_alloc(arena, (size_t)(sequence.size + 1) * sizeof *ended);
    memcpy(ended, sequence.at, (size_t)sequence.size * sizeof *ended);
    ended[sequence.size] = 0;
    for (int64_t i = 0; i < sequence.size; i++) places[n++] = (place){ended + i, sequence.size - i, owner, 0};
    return n;
}

/* What one n-gram adds: counts[0] in the hypothesis, the others in the references; clears the counts. */
static double clipped(int64_t *counts, int count)
{
    int64_t most = 0;
    for (int i = 1; i <= count; i++)
        if (counts[i] > most) most = counts[i];
    int64_t match = counts[0] < most ? counts[0] : most;
    memset(counts, 0, (size_t)(count + 1) * sizeof *counts);
    return (double)match;
}

void hw_ngram_matches(hw_arena *arena, hw_symbols hypothesis, const hw_symbols *references, int count, int order,
                      double *matches)
{
    int64_t total = hypothesis.size;
    for (int i = 0; i < count; i++) total += references[i].size;
    place *places = hw_arena_alloc(arena, (size_t)(total + 1) * sizeof *places);
    int64_t n = add_places(arena, hypothesis, 0, places, 0);
    for (int i = 0; i < count; i++) n = add_places(arena, references[i], i + 1, places, n);
    qsort(places, (size_t)total, sizeof *places, compare_places);
    for (int64_t i = 1; i < total; i++) places[i].common = common_prefix(places[i - 1].at, places[i].at);

    int64_t *counts = hw_arena_calloc(arena, (size_t)count + 1, sizeof *counts);
    for (int k = 1; k <= order; k++) {
        matches[k - 1] = 0;
        for (int64_t i = 0; i < total; i++) {
            if (places[i].common < k) matches[k - 1] += clipped(counts, count);
            if (places[i].left >= k) counts[places[i].owner]++;
        }
        matches[k - 1] += clipped(counts, count);
    }
}
