/* Alignments of a training set: kept by words, since tokens may be cut anew in each epoch, and given to tokens when a
 * pair goes into a batch. They lie in arrays like the ids of a corpus, which go to a file where they become large. */
#include "text/links.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A pair's numbers: none where it has no links; else how many words each side has, how many tokens each of them, and
 * two numbers a link. */
static const int64_t *start_of(const hw_link_store *s, int64_t pair) { return (const int64_t *)s->start.data + pair; }

static int by_target(const void *left, const void *right)
{
    const hw_link *a = left, *b = right;
    if (a->target != b->target) return a->target < b->target ? -1 : 1;
    return (a->source > b->source) - (a->source < b->source);
}

bool hw_links_fit(const hw_word_links *w, const hw_link *links, int64_t count, const char *path, int64_t line,
                  hw_error *err)
{
    int64_t size = 0;
    for (int64_t i = 0; i < count && size <= HW_MOST_LINKS; i++)
        size += (int64_t)w->tokens[0][links[i].source] * w->tokens[1][links[i].target];
    if (size <= HW_MOST_LINKS) return true;
    return hw_fail(err,
                   "%s:%" PRId64 ": these links of words would be more than %d links of tokens, so long are the words; "
                   "leave the pair out, or set data.max_length",
                   path, line, HW_MOST_LINKS);
}

bool hw_link_store_add(hw_link_store *s, const hw_word_links *w, hw_link *links, int64_t count,
                       const hw_store_place *place, hw_error *err)
{
    int64_t from = s->pairs ? *start_of(s, s->pairs) : 0, size = count ? 2 + w->words[0] + w->words[1] + 2 * count : 0;
    if (!hw_store_grow(&s->start, (size_t)(s->pairs + 2) * sizeof(int64_t), place, err) ||
        !hw_store_grow(&s->numbers, (size_t)(from + size) * sizeof(int32_t), place, err))
        return false;
    int64_t *start = (int64_t *)s->start.data + s->pairs++;
    start[0] = from;
    start[1] = from + size;
    if (!count) return true;
    int32_t *to = (int32_t *)s->numbers.data + from;
    for (int side = 0; side < 2; side++) *to++ = (int32_t)w->words[side];
    for (int side = 0; side < 2; side++)
        to = (int32_t *)memcpy(to, w->tokens[side], (size_t)w->words[side] * sizeof *to) + w->words[side];
    qsort(links, (size_t)count, sizeof *links, by_target);
    for (int64_t i = 0; i < count; i++) {
        *to++ = links[i].source;
        *to++ = links[i].target;
    }
    return true;
}

const int32_t *hw_link_store_numbers(const hw_link_store *s, int64_t pair, int64_t *count)
{
    const int64_t *start = start_of(s, pair);
    *count = start[1] - start[0];
    return *count ? (const int32_t *)s->numbers.data + start[0] : NULL;
}

hw_word_links hw_link_store_at(const hw_link_store *s, int64_t pair)
{
    int64_t size;
    const int32_t *at = hw_link_store_numbers(s, pair, &size);
    if (!size) return (hw_word_links){0};
    hw_word_links w = {.words = {at[0], at[1]}, .tokens = {at + 2, at + 2 + at[0]}, .links = at + 2 + at[0] + at[1]};
    w.count = (size - 2 - at[0] - at[1]) / 2;
    return w;
}

void hw_link_store_release(const hw_link_store *s)
{
    hw_store_release(&s->start);
    hw_store_release(&s->numbers);
}

void hw_link_store_free(hw_link_store *s)
{
    hw_store_free(&s->start);
    hw_store_free(&s->numbers);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* The first token of each word, and behind the last. */
static int32_t *firsts(const hw_word_links *w, int side, hw_arena *arena)
{
    int32_t *first = hw_arena_alloc(arena, ((size_t)w->words[side] + 1) * sizeof *first);
    first[0] = 0;
    for (int64_t i = 0; i < w->words[side]; i++) first[i + 1] = first[i] + w->tokens[side][i];
    return first;
}

hw_pair_links hw_links_of_tokens(const hw_word_links *w, hw_arena *arena)
{
    if (!w->count) return (hw_pair_links){0};
    const int32_t *source = firsts(w, 0, arena), *target = firsts(w, 1, arena), *l = w->links;
    int64_t size = 0;
    for (int64_t i = 0; i < w->count; i++) size += (int64_t)w->tokens[0][l[2 * i]] * w->tokens[1][l[2 * i + 1]];
    hw_link *out = hw_arena_alloc(arena, (size_t)size * sizeof *out), *to = out;
    for (int64_t i = 0, next; i < w->count; i = next) {
        int32_t word = l[2 * i + 1];
        for (next = i + 1; next < w->count && l[2 * next + 1] == word; next++) continue;
        for (int32_t t = target[word]; t < target[word + 1]; t++)
            for (int64_t k = i; k < next; k++)
                for (int32_t s = source[l[2 * k]]; s < source[l[2 * k] + 1]; s++)
                    *to++ = (hw_link){.source = s, .target = t, .sure = true};
    }
    return (hw_pair_links){size, out};
}
