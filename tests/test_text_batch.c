/* Ragged batches: every pair once an epoch, limits kept, the same sequence from any saved place, shards and
 * micro-batches that cover a batch row by row, and no memory asked for once training runs. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support_text.h"
#include "text/shuffle.h"
#include "text/strings.h"

enum { PAIRS = 500, LONGEST = 30 };

static hw_arena *arena;
static hw_corpus *corpus;

/* Pairs of 1 to 30 tokens, ids that name pair and place, and lines that are not the pairs' numbers. */
static void begin(void)
{
    arena = hw_arena_new(0);
    corpus = hw_corpus_new();
    hw_random random = hw_random_new(7, 0);
    for (int32_t i = 0; i < PAIRS; i++) {
        int32_t source[LONGEST], target[LONGEST];
        int64_t n = 1 + (int64_t)hw_random_below(&random, LONGEST), m = 1 + (int64_t)hw_random_below(&random, LONGEST);
        for (int32_t k = 0; k < n; k++) source[k] = 1000 * (i + 1) + k;
        for (int32_t k = 0; k < m; k++) target[k] = -1000 * (i + 1) - k;
        hw_corpus_add(corpus, (hw_ids){source, n}, (hw_ids){target, m}, 10 * i + 5);
    }
}

static void end(void)
{
    hw_corpus_free(corpus);
    hw_arena_free(arena);
}

static int64_t pair_of(const hw_batch *batch, int64_t b) { return (batch->lines[b] - 5) / 10; }

/* The rows of every sentence are those of its pair, segment after segment. */
static void check_batch(const hw_batch *batch)
{
    ck_assert_int_eq(batch->source.count, batch->sentences);
    ck_assert_int_eq(batch->target.count, batch->sentences);
    int64_t source = 0, target = 0;
    for (int64_t b = 0; b < batch->sentences; b++) {
        hw_ids s = hw_corpus_source(corpus, pair_of(batch, b)), t = hw_corpus_target(corpus, pair_of(batch, b));
        ck_assert_int_eq(batch->source.start[b], source);
        ck_assert_int_eq(batch->source.length[b], s.count + 1);
        ck_assert_int_eq(batch->target.start[b], target);
        ck_assert_int_eq(batch->target.length[b], t.count + 1);
        ck_assert_mem_eq(batch->source_ids + source, s.ids, (size_t)s.count * 4);
        ck_assert_int_eq(batch->source_ids[source + s.count], HW_END);
        ck_assert_int_eq(batch->target_in[target], HW_BEGIN);
        ck_assert_mem_eq(batch->target_in + target + 1, t.ids, (size_t)t.count * 4);
        ck_assert_mem_eq(batch->target_out + target, t.ids, (size_t)t.count * 4);
        ck_assert_int_eq(batch->target_out[target + t.count], HW_END);
        source += s.count + 1;
        target += t.count + 1;
    }
    ck_assert_int_eq(batch->source_rows, source);
    ck_assert_int_eq(batch->target_rows, target);
}

/* ---- shuffle ----------------------------------------------------------------------------------------------------- */

START_TEST(a_shuffle_has_each_number_once)
{
    static bool seen[5000];
    for (int64_t count = 1; count < 5000; count += count < 300 ? 1 : 437) {
        hw_shuffle shuffle = hw_shuffle_new(3, (uint64_t)count, count);
        memset(seen, 0, sizeof seen);
        for (int64_t i = 0; i < count; i++) {
            int64_t x = hw_shuffle_at(&shuffle, i);
            ck_assert(x >= 0 && x < count && !seen[x]);
            seen[x] = true;
        }
    }
}
END_TEST

START_TEST(shuffles_are_even)
{
    /* Where each of 7 numbers lands, and which pairs are neighbours, over many epochs: chi-square of 36 and 41 degrees
     * of freedom, bounds beyond the 99.99 % quantiles (a fixed seed, so that this cannot fail by chance). */
    enum { N = 7, EPOCHS = 21000 };
    static int at[N][N], next[N][N];
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        hw_shuffle shuffle = hw_shuffle_new(1, epoch, N);
        for (int i = 0; i < N; i++) {
            int64_t x = hw_shuffle_at(&shuffle, i);
            at[i][x]++;
            if (i + 1 < N) next[x][hw_shuffle_at(&shuffle, i + 1)]++;
        }
    }
    double chi_at = 0, chi_next = 0;
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            double expected_at = (double)EPOCHS / N, expected_next = (double)EPOCHS / N;
            chi_at += (at[i][k] - expected_at) * (at[i][k] - expected_at) / expected_at;
            if (i != k) chi_next += (next[i][k] - expected_next) * (next[i][k] - expected_next) / expected_next;
        }
    }
    ck_assert_msg(chi_at < 77, "places: %g", chi_at);
    ck_assert_msg(chi_next < 84, "neighbours: %g", chi_next);
}
END_TEST

START_TEST(shuffles_depend_on_seed_and_epoch)
{
    hw_shuffle a = hw_shuffle_new(1, 0, 1000), b = hw_shuffle_new(2, 0, 1000), c = hw_shuffle_new(1, 1, 1000);
    int same_seed = 0, same_epoch = 0, fixed = 0;
    for (int64_t i = 0; i < 1000; i++) {
        same_epoch += hw_shuffle_at(&a, i) == hw_shuffle_at(&b, i);
        same_seed += hw_shuffle_at(&a, i) == hw_shuffle_at(&c, i);
        fixed += hw_shuffle_at(&a, i) == i;
    }
    ck_assert_int_lt(same_epoch, 10);
    ck_assert_int_lt(same_seed, 10);
    ck_assert_int_lt(fixed, 10);
    hw_shuffle large = hw_shuffle_new(1, 0, INT64_C(1) << 40);
    int64_t x = hw_shuffle_at(&large, 12345);
    ck_assert(x >= 0 && x < INT64_C(1) << 40);
}
END_TEST

/* ---- batches ----------------------------------------------------------------------------------------------------- */

static const hw_batcher_options limits[] = {
    {.seed = 1, .target_tokens = 200},     {.seed = 1, .target_tokens = 200, .source_tokens = 150},
    {.seed = 2, .source_tokens = 100},     {.seed = 3, .sentences = 7},
    {.seed = 4, .sentences = 1},           {.seed = 5, .target_tokens = 20, .sentences = 3}, /* many pairs are larger */
    {.seed = 6, .target_tokens = 1000000}, {.seed = 7, .target_tokens = 200, .in_order = true},
};

static bool within(const hw_batcher_options *o, int64_t sentences, int64_t source, int64_t target)
{
    return (!o->sentences || sentences <= o->sentences) && (!o->source_tokens || source <= o->source_tokens) &&
           (!o->target_tokens || target <= o->target_tokens);
}

START_TEST(each_pair_once_an_epoch_within_the_limits)
{
    const hw_batcher_options *o = &limits[_i];
    hw_batcher batcher = hw_batcher_new(corpus, o);
    int64_t oversized = 0;
    for (int64_t epoch = 0; epoch < (o->in_order ? 1 : 3); epoch++) {
        bool seen[PAIRS] = {false};
        int64_t count = 0;
        const hw_batch *before = NULL;
        while (count < PAIRS) {
            ck_assert_int_eq(batcher.place.epoch, epoch);
            ck_assert_int_eq(batcher.place.next, count);
            const hw_batch *batch = hw_batcher_next(&batcher, arena);
            check_batch(batch);
            for (int64_t b = 0; b < batch->sentences; b++) {
                ck_assert(!seen[pair_of(batch, b)]);
                seen[pair_of(batch, b)] = true;
                if (o->in_order) ck_assert_int_eq(pair_of(batch, b), count + b);
            }
            count += batch->sentences;
            bool fits = within(o, batch->sentences, batch->source_rows, batch->target_rows);
            ck_assert(fits || batch->sentences == 1);
            oversized += !fits;
            if (before) /* and was as full as could be */
                ck_assert(!within(o, before->sentences + 1, before->source_rows + batch->source.length[0],
                                  before->target_rows + batch->target.length[0]));
            before = batch;
        }
        ck_assert_int_eq(count, PAIRS);
        ck_assert_int_eq(oversized, batcher.oversized * (epoch + 1));
    }
    if (o->in_order) ck_assert_ptr_null(hw_batcher_next(&batcher, arena));
    if (_i == 5) ck_assert_int_gt(oversized, 0);
    if (_i == 0) ck_assert_int_eq(oversized, 0);
}
END_TEST

/* A number that tells batches apart. */
static uint64_t fingerprint(const hw_batch *batch)
{
    uint64_t hash = hw_hash(HW_HASH_START, batch->lines, (size_t)batch->sentences * sizeof *batch->lines);
    hash = hw_hash(hash, batch->source_ids, (size_t)batch->source_rows * 4);
    return hw_hash(hash, batch->target_out, (size_t)batch->target_rows * 4);
}

START_TEST(any_place_can_be_gone_back_to)
{
    enum { BATCHES = 150 }; /* of about 39 an epoch */
    hw_batch_place places[BATCHES];
    uint64_t prints[BATCHES];
    const hw_batcher_options options = {.seed = 11, .target_tokens = 200};
    hw_batcher batcher = hw_batcher_new(corpus, &options);
    for (int i = 0; i < BATCHES; i++) {
        places[i] = batcher.place;
        prints[i] = fingerprint(hw_batcher_next(&batcher, arena));
        for (int k = 0; k < i; k++) ck_assert(prints[k] != prints[i]);
    }
    ck_assert_int_ge(batcher.place.epoch, 3);
    for (int from = 0; from < BATCHES; from += 13) {
        hw_batcher again = hw_batcher_new(corpus, &options);
        again.place = places[from];
        for (int i = from; i < BATCHES; i++) ck_assert(fingerprint(hw_batcher_next(&again, arena)) == prints[i]);
    }
    const hw_batcher_options other = {.seed = 12, .target_tokens = 200};
    hw_batcher different = hw_batcher_new(corpus, &other);
    ck_assert(fingerprint(hw_batcher_next(&different, arena)) != prints[0]);
}
END_TEST

START_TEST(the_order_stays_what_it_is)
{
    /* Trained bits depend on it, so a change of the shuffle has to be noticed. */
    hw_batcher batcher = hw_batcher_new(corpus, &(hw_batcher_options){.seed = 1, .sentences = 8});
    const hw_batch *batch = hw_batcher_next(&batcher, arena);
    static const int64_t expected[] = {400, 175, 135, 150, 308, 472, 344, 21};
    for (int b = 0; b < 8; b++) ck_assert_int_eq(pair_of(batch, b), expected[b]);
}
END_TEST

START_TEST(sources_alone)
{
    hw_ids sources[3];
    int64_t lines[3] = {5, 15, 25};
    for (int i = 0; i < 3; i++) sources[i] = hw_corpus_source(corpus, i);
    const hw_batch *batch = hw_batch_new(arena, 3, sources, NULL, lines);
    ck_assert_int_eq(batch->target_rows, 0);
    ck_assert_ptr_null(batch->target_in);
    ck_assert_int_eq(batch->source_rows, sources[0].count + sources[1].count + sources[2].count + 3);
    int64_t count;
    const hw_batch *micro = hw_batch_micro(arena, batch, 1, &count);
    ck_assert_int_eq(count, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(micro[i].source_rows, sources[i].count + 1);
        ck_assert_mem_eq(micro[i].source_ids, sources[i].ids, (size_t)sources[i].count * 4);
    }
    const hw_batch *shards = hw_batch_shards(arena, batch, 2);
    ck_assert_int_eq(shards[0].sentences + shards[1].sentences, 3);
    ck_assert_int_eq(shards[0].source_rows + shards[1].source_rows, batch->source_rows);
    hw_ids empty = {NULL, 0};
    batch = hw_batch_new(arena, 1, &empty, &empty, lines);
    ck_assert_int_eq(batch->source_rows, 1);
    ck_assert_int_eq(batch->source_ids[0], HW_END);
    ck_assert_int_eq(batch->target_in[0], HW_BEGIN);
}
END_TEST

/* ---- shards and micro-batches ------------------------------------------------------------------------------------ */

static int64_t rows(const hw_batch *batch) { return batch->source_rows + batch->target_rows; }

START_TEST(shards_cover_the_batch)
{
    static const int numbers[] = {1, 2, 3, 4, 7, 16, 100};
    int shards = numbers[_i];
    double slowest = 0, ideal = 0;
    hw_batcher batcher = hw_batcher_new(corpus, &(hw_batcher_options){.seed = 1, .target_tokens = 600});
    for (int step = 0; step < 30; step++) {
        const hw_batch *batch = hw_batcher_next(&batcher, arena), *cut = hw_batch_shards(arena, batch, shards);
        bool wanted[PAIRS] = {false};
        for (int64_t b = 0; b < batch->sentences; b++) wanted[pair_of(batch, b)] = true;
        int64_t source = 0, target = 0, sentences = 0, most = 0, least = INT64_MAX;
        for (int s = 0; s < shards; s++) {
            check_batch(&cut[s]);
            ck_assert_int_eq(cut[s].first_source_row, source);
            ck_assert_int_eq(cut[s].first_target_row, target);
            for (int64_t b = 0; b < cut[s].sentences; b++) {
                ck_assert(wanted[pair_of(&cut[s], b)]);
                wanted[pair_of(&cut[s], b)] = false;
            }
            source += cut[s].source_rows;
            target += cut[s].target_rows;
            sentences += cut[s].sentences;
            if (rows(&cut[s]) > most) most = rows(&cut[s]);
            if (rows(&cut[s]) < least) least = rows(&cut[s]);
        }
        ck_assert_int_eq(source, batch->source_rows);
        ck_assert_int_eq(target, batch->target_rows);
        ck_assert_int_eq(sentences, batch->sentences);
        if (batch->sentences < shards) ck_assert_int_eq(least, 0);
        slowest += (double)most;
        ideal += (double)rows(batch) / shards;
    }
    if (shards <= 4)
        ck_assert_msg(slowest < 1.02 * ideal, "%g rows in the largest shards, %g would be ideal", slowest, ideal);
}
END_TEST

START_TEST(cuts_are_functions_of_the_batch)
{
    hw_batcher batcher = hw_batcher_new(corpus, &(hw_batcher_options){.seed = 1, .target_tokens = 600});
    const hw_batch *batch = hw_batcher_next(&batcher, arena);
    const hw_batch *a = hw_batch_shards(arena, batch, 4);
    hw_arena *other = hw_arena_new(1 << 20);
    const hw_batch *b = hw_batch_shards(other, batch, 4);
    for (int s = 0; s < 4; s++) ck_assert(fingerprint(&a[s]) == fingerprint(&b[s]));
    hw_arena_free(other);
}
END_TEST

START_TEST(micro_batches_cover_the_shard)
{
    hw_batcher batcher = hw_batcher_new(corpus, &(hw_batcher_options){.seed = 1, .target_tokens = 900});
    for (int step = 0; step < 5; step++) {
        const hw_batch *shards = hw_batch_shards(arena, hw_batcher_next(&batcher, arena), 2);
        for (int64_t limit = 0; limit < 1000; limit += 83) {
            const hw_batch *shard = &shards[1];
            int64_t count, source = 0, target = 0, sentences = 0;
            const hw_batch *micro = hw_batch_micro(arena, shard, limit, &count);
            int64_t larger = shard->source_rows > shard->target_rows ? shard->source_rows : shard->target_rows;
            ck_assert_int_le(count, limit ? (larger + limit - 1) / limit : 1);
            for (int64_t i = 0; i < count; i++) {
                check_batch(&micro[i]);
                ck_assert_int_gt(micro[i].sentences, 0);
                ck_assert_int_eq(micro[i].first_source_row, shard->first_source_row + source);
                ck_assert_int_eq(micro[i].first_target_row, shard->first_target_row + target);
                for (int64_t b = 0; b < micro[i].sentences; b++)
                    ck_assert_int_eq(micro[i].lines[b], shard->lines[sentences + b]);
                source += micro[i].source_rows;
                target += micro[i].target_rows;
                sentences += micro[i].sentences;
                ck_assert_int_le(rows(&micro[i]), rows(shard) / count + 2 * (LONGEST + 1) + 1);
            }
            ck_assert_int_eq(source, shard->source_rows);
            ck_assert_int_eq(target, shard->target_rows);
            ck_assert_int_eq(sentences, shard->sentences);
        }
    }
}
END_TEST

static hw_batch *batch_of_lengths(const int64_t *lengths, int64_t count)
{
    static int32_t ids[10000];
    hw_ids *sentences = hw_arena_alloc(arena, (size_t)count * sizeof *sentences);
    int64_t *lines = hw_arena_calloc(arena, (size_t)count, sizeof *lines);
    for (int64_t i = 0; i < count; i++) sentences[i] = (hw_ids){ids, lengths[i] - 1};
    return hw_batch_new(arena, count, sentences, sentences, lines);
}

START_TEST(micro_batches_are_balanced)
{
    int64_t lengths[26], count;
    for (int i = 0; i < 26; i++) lengths[i] = 20;
    const hw_batch *micro = hw_batch_micro(arena, batch_of_lengths(lengths, 26), 512, &count);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(micro[0].target_rows, 260);
    ck_assert_int_eq(micro[1].target_rows, 260);
    hw_batch_micro(arena, batch_of_lengths(lengths, 25), 512, &count); /* 500 */
    ck_assert_int_eq(count, 1);
    const int64_t whole[] = {0, 500, INT64_MAX - 499, INT64_MAX - 498, INT64_MAX};
    for (int i = 0; i < 5; i++) {
        micro = hw_batch_micro(arena, batch_of_lengths(lengths, 25), whole[i], &count);
        ck_assert_int_eq(count, 1);
        ck_assert_int_eq(micro[0].target_rows, 500);
    }
    lengths[4] = 4000; /* alone, with short ones around it */
    micro = hw_batch_micro(arena, batch_of_lengths(lengths, 26), 512, &count);
    ck_assert_int_eq(count, 3);
    ck_assert_int_eq(micro[0].sentences, 4);
    ck_assert_int_eq(micro[1].sentences, 1);
    ck_assert_int_eq(micro[2].sentences, 21);
    const hw_batch *shards = hw_batch_shards(arena, batch_of_lengths(lengths, 2), 4);
    ck_assert_int_eq(shards[0].sentences + shards[1].sentences, 2);
    ck_assert_int_eq(shards[3].sentences, 0);
    hw_batch_micro(arena, &shards[3], 512, &count);
    ck_assert_int_eq(count, 0);
}
END_TEST

START_TEST(a_steady_step_asks_for_no_memory)
{
    hw_batcher batcher = hw_batcher_new(corpus, &(hw_batcher_options){.seed = 1, .target_tokens = 300});
    int64_t mallocs = 0;
    for (int step = 0; step < 300; step++) {
        hw_arena_reset(arena);
        const hw_batch *shards = hw_batch_shards(arena, hw_batcher_next(&batcher, arena), 4);
        for (int s = 0; s < 4; s++) {
            int64_t count;
            hw_batch_micro(arena, &shards[s], 64, &count);
        }
        if (step == 60) mallocs = hw_arena_mallocs(arena);
        if (step > 60) ck_assert_int_eq(hw_arena_mallocs(arena), mallocs);
    }
}
END_TEST

#define COUNT(table) (int)(sizeof table / sizeof *table)

Suite *test_text_batch(void);
Suite *test_text_batch(void)
{
    Suite *suite = suite_create("text_batch");
    TCase *c = tcase_create("text_batch");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, a_shuffle_has_each_number_once);
    tcase_add_test(c, shuffles_are_even);
    tcase_add_test(c, shuffles_depend_on_seed_and_epoch);
    tcase_add_loop_test(c, each_pair_once_an_epoch_within_the_limits, 0, COUNT(limits));
    tcase_add_test(c, any_place_can_be_gone_back_to);
    tcase_add_test(c, the_order_stays_what_it_is);
    tcase_add_test(c, sources_alone);
    tcase_add_loop_test(c, shards_cover_the_batch, 0, 7);
    tcase_add_test(c, cuts_are_functions_of_the_batch);
    tcase_add_test(c, micro_batches_cover_the_shard);
    tcase_add_test(c, micro_batches_are_balanced);
    tcase_add_test(c, a_steady_step_asks_for_no_memory);
    suite_add_tcase(suite, c);
    return suite;
}
