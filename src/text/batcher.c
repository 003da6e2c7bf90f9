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

/* As many pairs as can be in a batch; each has at least two rows a side. */
static int64_t most_pairs(const hw_batcher_options *options, int64_t left)
{
    const int64_t bounds[] = {options->sentences, options->source_tokens / 2, options->target_tokens / 2};
    int64_t most = left;
    for (int i = 0; i < 3; i++)
        if (bounds[i] && bounds[i] < most) most = bounds[i];
    return most;
}

hw_batch *hw_batcher_next(hw_batcher *batcher, hw_arena *arena)
{
    const hw_batcher_options *options = &batcher->options;
    int64_t pairs = hw_corpus_count(batcher->corpus)->pairs;
    hw_batch_place *place = &batcher->place;
    HW_CHECK(place->next >= 0 && place->next <= pairs, "a place outside the corpus");
    if (place->next == pairs && options->in_order) return NULL;
    hw_shuffle shuffle = hw_shuffle_new(options->seed, (uint64_t)place->epoch, pairs);
    size_t room = (size_t)most_pairs(options, pairs - place->next);
    hw_ids *sources = hw_arena_alloc(arena, room * sizeof *sources);
    hw_ids *targets = hw_arena_alloc(arena, room * sizeof *targets);
    int64_t *lines = hw_arena_alloc(arena, room * sizeof *lines), count = 0;
    for (load l = {0}; place->next < pairs; place->next++, count++) {
        int64_t pair = options->in_order ? place->next : hw_shuffle_at(&shuffle, place->next);
        put(&l, batcher->corpus, pair);
        if (count && too_full(&l, options)) break;
        sources[count] = hw_corpus_source(batcher->corpus, pair);
        targets[count] = hw_corpus_target(batcher->corpus, pair);
        lines[count] = hw_corpus_line(batcher->corpus, pair);
    }
    if (place->next == pairs && !options->in_order) *place = (hw_batch_place){.epoch = place->epoch + 1};
    return hw_batch_new(arena, count, sources, targets, lines);
}
