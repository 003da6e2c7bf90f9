/* The order in which a corpus is trained on, and where one batch ends and the next begins.
 *
 * Batches are ragged, so nothing is gained by sorting sentences by length: an epoch is a plain shuffle, cut wherever a
 * limit is reached. The place in it is two numbers, which a checkpoint keeps. */
#include <headwise/text.h>

#include "text/shuffle.h"

static bool beyond(int64_t value, int64_t limit) { return limit && value > limit; }

/* How full a batch is. */
typedef struct load {
    int64_t sentences, source, target;
} load;

static void put(load *l, const hw_corpus *corpus, int64_t pair)
{
    l->sentences++;
    l->source += hw_corpus_source(corpus, pair).count + 1;
    l->target += hw_corpus_target(corpus, pair).count + 1;
}

static bool too_full(const load *l, const hw_batcher_options *options)
{
    return beyond(l->sentences, options->sentences) || beyond(l->source, options->source_tokens) ||
           beyond(l->target, options->target_tokens);
}

hw_batcher hw_batcher_new(const hw_corpus *corpus, const hw_batcher_options *options)
{
    HW_CHECK(options->sentences > 0 || options->source_tokens > 0 || options->target_tokens > 0,
             "batches without a limit");
    int64_t pairs = hw_corpus_count(corpus)->pairs, oversized = 0;
    HW_CHECK(pairs > 0, "batches of an empty corpus");
    for (int64_t i = 0; i < pairs; i++) {
        load alone = {0};
        put(&alone, corpus, i);
        oversized += too_full(&alone, options);
    }
    return (hw_batcher){.corpus = corpus, .options = *options, .oversized = oversized};
}

/* The pair at a place of the epoch's order. */
static int64_t pair_at(const hw_batcher *batcher, const hw_shuffle *shuffle, int64_t place)
{
    return batcher->options.in_order ? place : hw_shuffle_at(shuffle, place);
}

/* How many pairs from the batcher's place on make up the next batch. */
static int64_t next_count(const hw_batcher *batcher, const hw_shuffle *shuffle, int64_t pairs)
{
    load l = {0};
    int64_t count = 0;
    while (batcher->place.next + count < pairs) {
        put(&l, batcher->corpus, pair_at(batcher, shuffle, batcher->place.next + count));
        if (count && too_full(&l, &batcher->options)) break;
        count++;
    }
    return count;
}

hw_batch *hw_batcher_next(hw_batcher *batcher, hw_arena *arena)
{
    int64_t pairs = hw_corpus_count(batcher->corpus)->pairs;
    hw_batch_place *place = &batcher->place;
    HW_CHECK(place->next >= 0 && place->next <= pairs, "a place outside the corpus");
    if (place->next == pairs && batcher->options.in_order) return NULL;
    hw_shuffle shuffle = hw_shuffle_new(batcher->options.seed, (uint64_t)place->epoch, pairs);
    int64_t count = next_count(batcher, &shuffle, pairs);
    hw_ids *sources = hw_arena_alloc(arena, (size_t)count * sizeof *sources);
    hw_ids *targets = hw_arena_alloc(arena, (size_t)count * sizeof *targets);
    int64_t *lines = hw_arena_alloc(arena, (size_t)count * sizeof *lines);
    for (int64_t i = 0; i < count; i++) {
        int64_t pair = pair_at(batcher, &shuffle, place->next + i);
        sources[i] = hw_corpus_source(batcher->corpus, pair);
        targets[i] = hw_corpus_target(batcher->corpus, pair);
        lines[i] = hw_corpus_line(batcher->corpus, pair);
    }
    place->next += count;
    if (place->next == pairs && !batcher->options.in_order) *place = (hw_batch_place){.epoch = place->epoch + 1};
    return hw_batch_new(arena, count, sources, targets, lines);
}
