/* The order in which a corpus is trained on, and where one batch ends and the next begins.
 *
 * Batches are ragged, so nothing is gained by sorting sentences by length: an epoch is a plain shuffle, cut wherever a
 * limit is reached. The place in it is two numbers, which a checkpoint keeps. */
#include <headwise/text.h>

#include "text/links.h"
#include "text/shuffle.h"

static bool beyond(int64_t value, int64_t limit) { return limit && value > limit; }

/* How full a batch is. */
typedef struct load {
    int64_t sentences, source, target;
} load;

static void put(load *l, int64_t source, int64_t target)
{
    l->sentences++;
    l->source += source + 1;
    l->target += target + 1;
}

static bool too_full(const load *l, const hw_batcher_options *options)
{
    return beyond(l->sentences, options->sentences) || beyond(l->source, options->source_tokens) ||
           beyond(l->target, options->target_tokens);
}

/* How many pairs are looked at between two releases of their memory: in order, and at random, where each takes far more
 * pages than its own. */
enum { RELEASE_IN_ORDER = 1 << 16, RELEASE_AT_RANDOM = 16 };

static int64_t count_oversized(const hw_corpus *corpus, const hw_batcher_options *options)
{
    const hw_corpus_counts *n = hw_corpus_count(corpus);
    load longest = {0};
    put(&longest, n->source_longest, n->target_longest);
    if (!too_full(&longest, options)) return 0;
    int64_t count = 0;
    for (int64_t i = 0; i < n->pairs; i++) {
        load alone = {0};
        put(&alone, hw_corpus_source(corpus, i).count, hw_corpus_target(corpus, i).count);
        count += too_full(&alone, options);
        if (i % RELEASE_IN_ORDER == 0) hw_corpus_release(corpus);
    }
    return count;
}

hw_batcher hw_batcher_new(const hw_corpus *corpus, const hw_batcher_options *options)
{
    HW_CHECK(options->sentences > 0 || options->source_tokens > 0 || options->target_tokens > 0,
             "batches without a limit");
    HW_CHECK(hw_corpus_count(corpus)->pairs > 0, "batches of an empty corpus");
    return (hw_batcher){.corpus = corpus, .options = *options, .oversized = count_oversized(corpus, options)};
}

/* Keeps these draws apart from all others of the same seed. */
static const uint64_t sampling_key = UINT64_C(0x73616D706C696E67);

/* A copy of the ids, since the corpus is released before the batch is made; or another cut of the sentence. */
static hw_ids side_of_epoch(const hw_sampler *sampler, hw_ids ids, hw_random *random, hw_arena *arena)
{
    if (sampler) return hw_sampler_draw(sampler, ids, random, arena);
    return (hw_ids){hw_arena_copy(arena, ids.ids, (size_t)ids.count * sizeof *ids.ids), ids.count};
}

/* Both sides of a pair as this epoch has them: a function of seed, epoch and pair. */
static void pair_of_epoch(const hw_batcher *batcher, int64_t pair, hw_arena *arena, hw_ids *source, hw_ids *target)
{
    const hw_batcher_options *o = &batcher->options;
    uint64_t stream =
        (uint64_t)batcher->place.epoch * (uint64_t)hw_corpus_count(batcher->corpus)->pairs + (uint64_t)pair;
    hw_random random = hw_random_new(o->seed ^ sampling_key, stream);
    *source = side_of_epoch(o->source_sampler, hw_corpus_source(batcher->corpus, pair), &random, arena);
    *target = side_of_epoch(o->target_sampler, hw_corpus_target(batcher->corpus, pair), &random, arena);
}

/* The links of a pair's tokens, as both sides are cut in this epoch. */
static hw_pair_links links_of_epoch(const hw_batcher *batcher, int64_t pair, hw_ids source, hw_ids target,
                                    hw_arena *arena)
{
    const hw_batcher_options *o = &batcher->options;
    hw_word_links w = hw_corpus_word_links(batcher->corpus, pair);
    if (w.count && o->source_sampler)
        w.tokens[0] = hw_sampler_word_tokens(o->source_sampler, hw_corpus_source(batcher->corpus, pair), w.tokens[0],
                                             w.words[0], source, arena);
    if (w.count && o->target_sampler)
        w.tokens[1] = hw_sampler_word_tokens(o->target_sampler, hw_corpus_target(batcher->corpus, pair), w.tokens[1],
                                             w.words[1], target, arena);
    return hw_links_of_tokens(&w, arena);
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
    hw_pair_links *links = hw_corpus_has_links(batcher->corpus) ? hw_arena_alloc(arena, room * sizeof *links) : NULL;
    for (load l = {0}; place->next < pairs; place->next++, count++) {
        int64_t pair = options->in_order ? place->next : hw_shuffle_at(&shuffle, place->next);
        hw_ids source, target;
        pair_of_epoch(batcher, pair, arena, &source, &target);
        put(&l, source.count, target.count);
        if (count && too_full(&l, options)) break;
        sources[count] = source;
        targets[count] = target;
        if (links) links[count] = links_of_epoch(batcher, pair, source, target, arena);
        lines[count] = hw_corpus_line(batcher->corpus, pair);
        if (count % RELEASE_AT_RANDOM == 0) hw_corpus_release(batcher->corpus);
    }
    if (place->next == pairs && !options->in_order) *place = (hw_batch_place){.epoch = place->epoch + 1};
    hw_batch *batch = hw_batch_new(arena, count, sources, targets, lines);
    batch->links = links;
    hw_corpus_release(batcher->corpus);
    return batch;
}
