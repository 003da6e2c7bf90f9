/* Search and scoring, held against running the network the plain way: cached decoding equals running the whole prefix
 * again, a beam of 1 takes the likeliest token each time, a beam as wide as the space finds what enumeration finds; and
 * nothing depends on how sentences are batched or on threads. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/decode.h>

#include "decode/runner.h"
#include "decode/top.h"
#include "support_model.h"

static const hw_search_options greedy = {.beam = 1, .n_best = 1, .length_penalty = 0.6, .batch_sentences = 64};

static hw_search_options options(int64_t beam, int64_t n_best, int64_t max_length, double alpha, int64_t batch)
{
    return (hw_search_options){
        .beam = beam, .n_best = n_best, .max_length = max_length, .length_penalty = alpha, .batch_sentences = batch};
}

/* ---- the plain way ----------------------------------------------------------------------------------------------- */

/* Log-probabilities of what follows the prefix, by running all of it. out [V] */
static void plain_next(hw_tape *tape, const hw_transformer *m, hw_ids source, const int32_t *ids, int64_t length,
                       double *out)
{
    int64_t zero = 0, n = source.count + 1, rows = length + 1, v = m->options.target_vocabulary;
    int32_t *in = calloc((size_t)n, sizeof *in), *fed = calloc((size_t)rows, sizeof *fed);
    if (source.count) memcpy(in, source.ids, (size_t)source.count * sizeof *in);
    in[source.count] = HW_END;
    fed[0] = HW_BEGIN;
    if (length) memcpy(fed + 1, ids, (size_t)length * sizeof *fed);
    hw_tape_reset(tape, HW_INFERENCE);
    hw_pass pass = {.tape = tape};
    hw_token_rows s = {n, in, {1, &zero, &n}, 0, NULL}, t = {rows, fed, {1, &zero, &rows}, 0, NULL};
    hw_tensor *cross = hw_cross_keys_values(&pass, m, hw_encode(&pass, m, &s));
    hw_tensor *logits = hw_logits(&pass, m, hw_decode(&pass, m, &t, cross, s.segments, NULL));
    const hw_real *last = logits->data + length * v;
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < v; i++) most = fmax(most, (double)last[i]);
    for (int64_t i = 0; i < v; i++) sum += exp((double)last[i] - most);
    for (int64_t i = 0; i < v; i++) out[i] = (double)last[i] - most - log(sum);
    free(in);
    free(fed);
}

static double penalised(double log_prob, int64_t length, double alpha)
{
    return log_prob / pow((5.0 + (double)length + 1) / 6.0, alpha);
}

static double near(double a, double b) { return fabs(a - b) / fmax(1, fabs(b)); }

/* ---- greedy ------------------------------------------------------------------------------------------------------ */

/* Every token is the likeliest that the plain way sees, with the same log-probability; ends at </s> or at 100 tokens.
 */
START_TEST(greedy_equals_running_the_whole_prefix)
{
    enum { V = 23, COUNT = 4, MOST = 100 };
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(_i / 2, V, 11);
    if (_i % 2) favour(m, HW_END, -30); /* nothing ends by itself */
    hw_ids *sources = random_sentences(arena, COUNT, 0, 12, V, 2);
    hw_search_options o = greedy;
    o.max_length = MOST;
    hw_runner *r = hw_runner_new(m);
    const hw_hypotheses *found = hw_search(r, &o, COUNT, sources);
    hw_tape *tape = hw_tape_new();
    for (int s = 0; s < COUNT; s++) {
        ck_assert_int_eq(found[s].count, 1);
        const hw_hypothesis *h = &found[s].items[0];
        ck_assert(h->cut == (h->length == MOST));
        ck_assert_int_le(h->length, MOST);
        if (_i % 2) ck_assert_int_eq(h->length, MOST);
        double sum = 0;
        for (int64_t t = 0; t <= h->length; t++) {
            double next[V], best = -INFINITY;
            plain_next(tape, m, sources[s], h->ids, t, next);
            int32_t id = t < h->length ? h->ids[t] : HW_END;
            for (int i = 0; i < V && t < MOST; i++)
                if (i != HW_BEGIN) best = fmax(best, next[i]);
            ck_assert(id != HW_BEGIN);
            ck_assert_double_lt(near((double)h->log_probs[t], next[id]), 1e-5);
            if (t < MOST) ck_assert_double_lt(near(next[id], best), 1e-5);
            sum += (double)h->log_probs[t];
        }
        ck_assert_double_lt(near(h->log_prob, sum), 1e-5);
        ck_assert_double_lt(near(h->score, penalised(h->log_prob, h->length, 0.6)), 1e-12);
    }
    hw_tape_free(tape);
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* ---- beams ------------------------------------------------------------------------------------------------------- */

enum { FEW = 6, SHORT = 3, ALL = 85 }; /* 4 words: 1 + 4 + 16 + 64 translations of at most 3 */

typedef struct every {
    hw_tape *tape;
    const hw_transformer *m;
    hw_ids source;
    double alpha;
    int count;
    struct {
        int64_t length;
        int32_t ids[SHORT];
        double score;
    } all[ALL];
} every;

static void enumerate(every *e, const int32_t *ids, int64_t length, double log_prob)
{
    double next[FEW];
    plain_next(e->tape, e->m, e->source, ids, length, next);
    e->all[e->count].length = length;
    memcpy(e->all[e->count].ids, ids, sizeof e->all[0].ids);
    e->all[e->count++].score = penalised(log_prob + next[HW_END], length, e->alpha);
    if (length == SHORT) return;
    for (int32_t id = 0; id < FEW; id++) {
        if (id == HW_BEGIN || id == HW_END) continue;
        int32_t longer[SHORT] = {0};
        memcpy(longer, ids, (size_t)length * sizeof *longer);
        longer[length] = id;
        enumerate(e, longer, length + 1, log_prob + next[id]);
    }
}

static int by_score(const void *a, const void *b)
{
    const double *x = (const double *)((const char *)a + offsetof(every, all[0].score) - offsetof(every, all));
    const double *y = (const double *)((const char *)b + offsetof(every, all[0].score) - offsetof(every, all));
    return (*x < *y) - (*x > *y);
}

START_TEST(a_wide_beam_finds_what_enumeration_finds)
{
    static const double alphas[] = {0, 0.6, 2};
    static const int64_t wanted[] = {1, 10, 200};
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(_i, FEW, 31);
    hw_ids *source = random_sentences(arena, 1, 3, 3, FEW, 4);
    hw_runner *r = hw_runner_new(m);
    for (int k = 0; k < 9; k++) {
        every e = {.tape = hw_tape_new(), .m = m, .source = source[0], .alpha = alphas[k / 3]};
        enumerate(&e, (int32_t[SHORT]){0}, 0, 0);
        ck_assert_int_eq(e.count, ALL);
        qsort(e.all, ALL, sizeof e.all[0], by_score);
        hw_search_options o = options(200, wanted[k % 3], SHORT, e.alpha, 1);
        const hw_hypotheses *found = hw_search(r, &o, 1, source);
        ck_assert_int_eq(found->count, wanted[k % 3] < ALL ? wanted[k % 3] : ALL);
        for (int64_t i = 0; i < found->count; i++) {
            const hw_hypothesis *h = &found->items[i];
            ck_assert_double_lt(near(h->score, e.all[i].score), 1e-5);
            if (i && near(e.all[i - 1].score, e.all[i].score) < 1e-4) continue; /* a tie */
            if (i + 1 < ALL && near(e.all[i + 1].score, e.all[i].score) < 1e-4) continue;
            ck_assert_int_eq(h->length, e.all[i].length);
            ck_assert(!memcmp(h->ids, e.all[i].ids, (size_t)h->length * sizeof *h->ids));
        }
        hw_tape_free(e.tape);
    }
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* A narrower beam is pruned, but its hypotheses' log-probabilities are those of teacher forcing, in falling order of
 * scores, all different. */
START_TEST(beams_score_as_teacher_forcing_does)
{
    enum { V = 40, COUNT = 6, BEAM = 5 };
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(_i, V, 12);
    hw_ids *sources = random_sentences(arena, COUNT, 1, 15, V, 9);
    hw_search_options o = options(BEAM, BEAM, 30, 1, 64);
    hw_runner *r = hw_runner_new(m);
    const hw_hypotheses *found = hw_search(r, &o, COUNT, sources);
    for (int s = 0; s < COUNT; s++) {
        ck_assert_int_eq(found[s].count, BEAM);
        for (int k = 0; k < BEAM; k++) {
            const hw_hypothesis *h = &found[s].items[k], *before = k ? h - 1 : NULL;
            hw_real nll[64];
            hw_ids target = {h->ids, h->length};
            hw_loss_count sum = hw_score_pairs(r, 1, &sources[s], &target, 0, nll);
            ck_assert_int_eq(sum.tokens, h->length + 1);
            for (int64_t t = 0; t <= h->length; t++)
                ck_assert_double_lt(near(-(double)nll[t], (double)h->log_probs[t]), 1e-5);
            ck_assert_double_lt(near(-sum.nll, h->log_prob), 1e-5);
            if (!before) continue;
            ck_assert_double_ge(before->score, h->score);
            ck_assert(before->length != h->length || memcmp(before->ids, h->ids, (size_t)h->length * sizeof *h->ids));
        }
    }
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* ---- the same whatever stands around ----------------------------------------------------------------------------- */

static void ck_same(const hw_hypotheses *a, const hw_hypotheses *b)
{
    ck_assert_int_eq(a->count, b->count);
    for (int64_t k = 0; k < a->count; k++) {
        const hw_hypothesis *x = &a->items[k], *y = &b->items[k];
        ck_assert_int_eq(x->length, y->length);
        ck_assert(!memcmp(x->ids, y->ids, (size_t)x->length * sizeof *x->ids));
        ck_assert(!memcmp(x->log_probs, y->log_probs, (size_t)(x->length + 1) * sizeof *x->log_probs));
        ck_assert(!memcmp(&x->score, &y->score, sizeof x->score) &&
                  !memcmp(&x->log_prob, &y->log_prob, sizeof x->score));
    }
}

START_TEST(bits_do_not_depend_on_batch_order_or_threads)
{
    enum { V = 61, COUNT = 130 };
    static const struct {
        int64_t batch;
        int threads;
        bool reversed;
    } ways[] = {{1000, 1, false}, {64, 2, false}, {7, 3, true}, {1000, 1, true}};
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(_i / 2, V, 8);
    hw_ids *sources = random_sentences(arena, COUNT, 0, 24, V, 5);
    hw_ids *reversed = hw_arena_alloc(arena, COUNT * sizeof *reversed);
    for (int i = 0; i < COUNT; i++) reversed[i] = sources[COUNT - 1 - i];
    hw_search_options alone = options(_i % 2 ? 3 : 1, _i % 2 ? 2 : 1, 12, 0.6, 1);
    hw_runner *one = hw_runner_new(m), *r = hw_runner_new(m);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        hw_threads_set(ways[w].threads);
        hw_search_options o = alone;
        o.batch_sentences = ways[w].batch;
        const hw_hypotheses *all = hw_search(r, &o, COUNT, ways[w].reversed ? reversed : sources);
        for (int i = 0; i < COUNT; i += 3)
            ck_same(hw_search(one, &alone, 1, &sources[i]), &all[ways[w].reversed ? COUNT - 1 - i : i]);
    }
    hw_runner_free(one);
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* Also where the vocabulary is large enough for a screen, and after the weights have changed. */
START_TEST(ids_only_finds_the_same_tokens)
{
    enum { COUNT = 60 };
    const int64_t V = _i < 2 ? 61 : 1500;
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(_i % 2, V, 8);
    hw_ids *sources = random_sentences(arena, COUNT, 0, 24, V, 5);
    hw_search_options with = options(1, 1, 12, 0.6, 16), without = with;
    without.ids_only = true;
    hw_runner *a = hw_runner_new(m), *b = hw_runner_new(m);
    for (int round = 0; round < 3; round++) {
        with.min_length = without.min_length = round == 2 ? 6 : 0;
        const hw_hypotheses *x = hw_search(a, &with, COUNT, sources), *y = hw_search(b, &without, COUNT, sources);
        for (int i = 0; i < COUNT; i++) {
            const hw_hypothesis *p = &x[i].items[0], *q = &y[i].items[0];
            ck_assert_int_eq(p->length, q->length);
            ck_assert(!memcmp(p->ids, q->ids, (size_t)p->length * sizeof *p->ids));
            ck_assert_int_eq(p->cut, q->cut);
            ck_assert(p->log_probs && !q->log_probs);
        }
        favour(m, 40 + round, 2);
        m->output_weight->data[7] += 1;
        hw_parameters_pack(m->parameters);
    }
    hw_runner_free(a);
    hw_runner_free(b);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

START_TEST(scores_do_not_depend_on_batch_or_threads)
{
    enum { V = 30, COUNT = 150 };
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(_i, V, 8);
    hw_ids *sources = random_sentences(arena, COUNT, 0, 20, V, 5),
           *targets = random_sentences(arena, COUNT, 0, 20, V, 6);
    hw_runner *r = hw_runner_new(m);
    hw_real *nll = hw_arena_alloc(arena, COUNT * 21 * sizeof *nll),
            *again = hw_arena_alloc(arena, COUNT * 21 * sizeof *nll);
    hw_threads_set(1);
    hw_loss_count one = hw_score_pairs(r, COUNT, sources, targets, 0.1, nll);
    hw_threads_set(3);
    hw_loss_count three = hw_score_pairs(r, COUNT, sources, targets, 0.1, again);
    ck_assert(!memcmp(&one, &three, sizeof one));
    ck_assert(!memcmp(nll, again, (size_t)one.tokens * sizeof *nll));
    ck_assert(one.loss != one.nll);
    double sum = 0;
    hw_loss_count single = {0};
    for (int64_t i = 0, at = 0; i < COUNT; at += targets[i++].count + 1) {
        hw_loss_count c = hw_score_pairs(r, 1, &sources[i], &targets[i], 0.1, again);
        ck_assert(!memcmp(nll + at, again, (size_t)c.tokens * sizeof *nll));
        single.tokens += c.tokens;
        single.correct += c.correct;
        sum += c.nll;
    }
    int64_t correct = 0;
    hw_tape *tape = hw_tape_new();
    for (int i = 0; i < COUNT; i += 10)
        for (int64_t t = 0; t <= targets[i].count; t++) {
            double next[V], best = -INFINITY;
            plain_next(tape, m, sources[i], targets[i].ids, t, next);
            for (int k = 0; k < V; k++) best = fmax(best, next[k]);
            correct += next[t < targets[i].count ? targets[i].ids[t] : HW_END] == best;
        }
    for (int i = 0; i < COUNT; i += 10) correct -= hw_score_pairs(r, 1, &sources[i], &targets[i], 0, NULL).correct;
    ck_assert_int_eq(correct, 0);
    hw_tape_free(tape);
    ck_assert_int_eq(single.tokens, one.tokens);
    ck_assert_int_eq(single.correct, one.correct);
    ck_assert_int_gt(one.correct, 0);
    ck_assert_double_lt(near(sum, one.nll), 1e-12);
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* ---- looking inside ---------------------------------------------------------------------------------------------- */

START_TEST(examining_gives_attention_and_log_probabilities)
{
    enum { V = 30, COUNT = 40 };
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(_i, V, 21);
    hw_ids *sources = random_sentences(arena, COUNT, 0, 20, V, 5),
           *targets = random_sentences(arena, COUNT, 0, 20, V, 6);
    hw_runner *r = hw_runner_new(m);
    const hw_examined *all = hw_examine(r, COUNT, sources, targets, arena);
    for (int i = 0; i < COUNT; i++) {
        hw_real nll[32];
        hw_score_pairs(r, 1, &sources[i], &targets[i], 0, nll);
        ck_assert_int_eq(all[i].rows, targets[i].count + 1);
        ck_assert_int_eq(all[i].attentions, m->attentions);
        for (int64_t t = 0; t < all[i].rows; t++) ck_assert(all[i].log_probs[t] == -nll[t]);
        for (int a = 0; a < m->attentions; a++) {
            const hw_attention_map *map = &all[i].attention[a];
            const hw_attention_layer *layer = hw_transformer_attention(m, a);
            bool encoder = !strncmp(map->name, "encoder", 7), masked = !encoder && strstr(map->name, "self");
            ck_assert_str_eq(map->name, layer->name);
            ck_assert_int_eq(map->heads, layer->heads);
            ck_assert_int_eq(map->queries, encoder ? sources[i].count + 1 : all[i].rows);
            ck_assert_int_eq(map->keys, masked ? all[i].rows : sources[i].count + 1);
            for (int64_t row = 0; row < map->heads * map->queries; row++) {
                const hw_real *w = map->weights + row * map->keys;
                double sum = 0;
                for (int64_t k = 0; k < map->keys; k++) {
                    sum += (double)w[k];
                    if (masked && k > row % map->queries) ck_assert(w[k] == 0);
                }
                ck_assert_double_lt(fabs(sum - 1), 1e-5);
            }
        }
    }
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* Long pairs have so much attention that few of them are kept at once. */
START_TEST(attention_that_is_kept_has_a_bound)
{
    enum { V = 20, COUNT = 70, LONG = 2000 };
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(0, V, 21);
    hw_runner *r = hw_runner_new(m);
    hw_ids *pairs = random_sentences(arena, COUNT, 9, 9, V, 5);
    const int64_t each = (2 + 2 * 2) * 2 * 10 * 10; /* attentions, heads */
    ck_assert_int_eq(hw_examine_count(r, COUNT, pairs, pairs, HW_EXAMINED_NUMBERS), 64);
    ck_assert_int_eq(hw_examine_count(r, 50, pairs, pairs, HW_EXAMINED_NUMBERS), 50);
    for (int n = 1; n < 20; n++) {
        ck_assert_int_eq(hw_examine_count(r, COUNT, pairs, pairs, n * each), n);
        ck_assert_int_eq(hw_examine_count(r, COUNT, pairs, pairs, n * each - 1), n > 1 ? n - 1 : 1);
    }
    ck_assert_int_eq(hw_examine_count(r, 0, pairs, pairs, HW_EXAMINED_NUMBERS), 0);
    for (int i = 0; i < COUNT; i++) pairs[i] = (hw_ids){NULL, LONG};
    ck_assert_int_eq(hw_examine_count(r, COUNT, pairs, pairs, HW_EXAMINED_NUMBERS), 1);
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* Heads turned off change what is scored and found; without settings everything is as before. */
START_TEST(settings_of_heads_reach_search_and_scores)
{
    enum { V = 30, COUNT = 8 };
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(0, V, 3);
    hw_ids *sources = random_sentences(arena, COUNT, 3, 9, V, 5);
    static const hw_real off[2] = {0, 0};
    hw_head_setting *settings = hw_arena_calloc(arena, (size_t)m->attentions, sizeof *settings);
    for (int a = 0; a < m->attentions; a++) settings[a].gate = off;
    hw_runner *r = hw_runner_new(m);
    double found[3], scored[3];
    for (int k = 0; k < 3; k++) {
        hw_runner_settings(r, k == 1 ? settings : NULL);
        found[k] = 0;
        const hw_hypotheses *h = hw_search(r, &greedy, COUNT, sources);
        for (int i = 0; i < COUNT; i++) found[k] += h[i].items[0].log_prob;
        scored[k] = hw_score_pairs(r, COUNT, sources, sources, 0, NULL).nll;
    }
    ck_assert(found[0] == found[2] && scored[0] == scored[2]);
    ck_assert(found[0] != found[1] && scored[0] != scored[1]);
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* ---- edges ------------------------------------------------------------------------------------------------------- */

START_TEST(a_network_that_is_not_finite_finds_nothing)
{
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(0, 20, 3);
    favour(m, 7, (double)NAN);
    hw_ids *sources = random_sentences(arena, 3, 1, 5, 20, 1);
    hw_runner *r = hw_runner_new(m);
    for (int64_t beam = 1; beam < 5; beam += 3) {
        hw_search_options o = options(beam, beam, 0, 0, 2);
        const hw_hypotheses *found = hw_search(r, &o, 3, sources);
        for (int i = 0; i < 3; i++) ck_assert_int_eq(found[i].count, 0);
    }
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

/* By itself a translation has at most twice the source's tokens and 20 more. */
START_TEST(the_maximum_length_is_kept)
{
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = small_network(0, 20, 3);
    favour(m, HW_END, -60);
    hw_ids *sources = random_sentences(arena, 1, 7, 7, 20, 1);
    hw_runner *r = hw_runner_new(m);
    const hw_hypothesis *h = hw_search(r, &greedy, 1, sources)->items;
    ck_assert_int_eq(h->length, 34);
    ck_assert(h->cut && h->log_probs[34] < -40);
    favour(m, HW_END, 120);
    h = hw_search(r, &greedy, 1, sources)->items;
    ck_assert_int_eq(h->length, 0);
    ck_assert(!h->cut && h->log_prob == (double)h->log_probs[0]);
    ck_assert_ptr_nonnull(hw_search(r, &greedy, 0, NULL));
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

START_TEST(a_second_call_allocates_nothing)
{
    hw_arena *arena = hw_arena_new(0);
    hw_threads_set(1);
    hw_transformer *m = small_network(2, 50, 3);
    hw_ids *sources = random_sentences(arena, 40, 1, 20, 50, 1);
    hw_runner *r = hw_runner_new(m);
    hw_search_options o = options(4, 2, 40, 0.6, 16);
    int64_t mallocs = 0;
    for (int i = 0; i < 4; i++) {
        hw_search(r, &o, 40, sources);
        hw_worker *w = hw_runner_worker(r);
        int64_t now =
            hw_arena_mallocs(hw_tape_arena(w->tape)) + hw_arena_mallocs(w->batch) + hw_arena_mallocs(w->results);
        if (i == 3) ck_assert_int_eq(now, mallocs);
        mallocs = now;
    }
    hw_runner_free(r);
    hw_transformer_free(m);
    hw_arena_free(arena);
}
END_TEST

START_TEST(ties_go_to_the_first)
{
    static const hw_real even[600] = {0}, one[5] = {1, 3, 3, 2, -(hw_real)INFINITY};
    hw_candidate items[8];
    hw_top top = {0, 4, items};
    hw_real maxima[3];
    hw_kernels_get()->maxima(maxima, even, 600);
    double norm = hw_row_normaliser(even, 600, maxima);
    ck_assert_double_lt(fabs(norm - log(600)), 1e-6);
    hw_top_offer(&top, even, 600, maxima, -1, norm, 0);
    hw_top_offer(&top, even, 600, maxima, -1, norm, 1);
    ck_assert_int_eq(top.count, 4);
    for (int i = 0; i < 4; i++) ck_assert(items[i].id == i && items[i].row == 0);
    top = (hw_top){0, 8, items};
    hw_kernels_get()->maxima(maxima, one, 5);
    hw_top_offer(&top, one, 5, maxima, 0, hw_row_normaliser(one, 5, maxima), 3);
    ck_assert_int_eq(top.count, 4);
    static const int order[] = {1, 2, 3, 0};
    for (int i = 0; i < 4; i++) ck_assert_int_eq(items[i].id, order[i]);
    ck_assert_double_lt(fabs(exp(items[0].score) * 2 + exp(items[2].score) + exp(items[3].score) - 1), 1e-6);
}
END_TEST

static const struct {
    hw_search_options options;
    const char *message;
} wrong[] = {
    {{.beam = 0, .n_best = 1, .batch_sentences = 1}, "decoding.beam: 0 is out of range; it goes from 1 to 1024"},
    {{.beam = 4, .n_best = 0, .batch_sentences = 1}, "decoding.n_best: 0 is out of range; it goes from 1 to 1024"},
    {{.beam = 4, .n_best = 5, .batch_sentences = 1}, "decoding.n_best: 5 is more than decoding.beam 4"},
    {{.beam = 4, .n_best = 4, .patience = 0.5, .batch_sentences = 1},
     "decoding.n_best: 4 is more than the beam lets finish with decoding.patience 0.5"},
    {{.beam = 4, .n_best = 4, .patience = -1, .batch_sentences = 1},
     "decoding.patience: -1 is out of range; it goes from 0.001 to 1000"},
    {{.beam = 4, .n_best = 4, .max_length = -1, .batch_sentences = 1},
     "decoding.max_length: -1 is out of range; it goes from 0 to 1000000"},
    {{.beam = 4, .n_best = 4, .max_length = 8, .min_length = 9, .batch_sentences = 1},
     "decoding.min_length: 9 is more than decoding.max_length 8"},
    {{.beam = 4, .n_best = 4, .length_penalty = -0.5, .batch_sentences = 1},
     "decoding.length_penalty: -0.5 is out of range; it goes from 0 to 10"},
    {{.beam = 4, .n_best = 4, .length_penalty = (double)NAN, .batch_sentences = 1},
     "decoding.length_penalty: nan is out of range; it goes from 0 to 10"},
    {{.beam = 4, .n_best = 4, .batch_sentences = 0},
     "decoding.batch_sentences: 0 is out of range; it goes from 1 to 1000000"},
    {{.beam = 4, .n_best = 4, .sampling = true, .batch_sentences = 1},
     "decoding.beam: 4 hypotheses do not go with decoding.sampling true; a sample is one hypothesis, set the beam to 1"},
    {{.beam = 1, .n_best = 1, .sampling = true, .patience = 2, .batch_sentences = 1},
     "decoding.patience: 2 does not go with decoding.sampling true; samples are not searched for"},
    {{.beam = 1, .n_best = 1, .sampling = true, .top_p = 1.5, .batch_sentences = 1},
     "decoding.top_p: 1.5 is out of range; it goes from 1e-06 to 1"},
    {{.beam = 1, .n_best = 1, .sampling = true, .temperature = -1, .batch_sentences = 1},
     "decoding.temperature: -1 is out of range; it goes from 0.001 to 1000"},
};
enum { WRONG = sizeof wrong / sizeof *wrong };

START_TEST(options_that_cannot_work_are_refused)
{
    hw_error err = {""};
    ck_assert(!hw_search_options_check(&wrong[_i].options, &err));
    ck_assert_str_eq(err.message, wrong[_i].message);
    ck_assert(hw_search_options_check(&greedy, &err));
}
END_TEST

/* ---- lines ------------------------------------------------------------------------------------------------------- */

START_TEST(lines_come_back_in_order)
{
    static const char *const lines[] = {"a b c", "", "bo@@ ra c", " \t ", "unseen", "c c c c c c", "a b c"};
    enum { COUNT = sizeof lines / sizeof *lines };
    hw_arena *arena = hw_arena_new(0);
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, ""), "a b c d bo@@ ra", "x y z u@@ v");
    hw_search_options o = hw_search_options_of(b->config);
    ck_assert_int_eq(o.batch_sentences, 64);
    o.batch_sentences = 2;
    hw_translator *t = hw_translator_new(b, &o);
    const hw_translation *out = hw_translate_lines(t, COUNT, lines, NULL);
    char *first = strdup(out[0].texts[0]);
    for (int i = 0; i < COUNT; i++) ck_assert_int_eq(out[i].count, 1);
    ck_assert_str_eq(out[1].texts[0], "");
    ck_assert_ptr_null(out[1].hypotheses);
    ck_assert_str_eq(out[3].texts[0], "");
    ck_assert_str_eq(out[6].texts[0], first);
    ck_assert_int_eq(out[2].source.count, 3);
    ck_assert_int_eq(out[4].source.ids[0], HW_UNKNOWN);
    ck_assert_int_eq((int)out[4].source_tokens[0].bytes, 6);
    char *joined = hw_tokenizer_decode_ids(b->target_tokenizer, b->target_vocabulary, arena, out[5].hypotheses[0].ids,
                                           out[5].hypotheses[0].length, NULL);
    ck_assert_str_eq(out[5].texts[0], joined);
    out = hw_translate_lines(t, 1, lines, (size_t[]){5});
    ck_assert_str_eq(out[0].texts[0], first);
    free(first);
    hw_translator_free(t);
    hw_bundle_free(b);
    hw_arena_free(arena);
}
END_TEST

Suite *test_decode(void);
Suite *test_decode(void)
{
    Suite *s = suite_create("decode");
    TCase *c = tcase_create("decode");
    tcase_add_loop_test(c, greedy_equals_running_the_whole_prefix, 0, 2 * SMALL_NETWORKS);
    tcase_add_loop_test(c, a_wide_beam_finds_what_enumeration_finds, 0, SMALL_NETWORKS);
    tcase_add_loop_test(c, beams_score_as_teacher_forcing_does, 0, SMALL_NETWORKS);
    tcase_add_loop_test(c, bits_do_not_depend_on_batch_order_or_threads, 0, 2 * SMALL_NETWORKS);
    tcase_add_loop_test(c, scores_do_not_depend_on_batch_or_threads, 0, SMALL_NETWORKS);
    tcase_add_loop_test(c, examining_gives_attention_and_log_probabilities, 0, SMALL_NETWORKS);
    tcase_add_test(c, attention_that_is_kept_has_a_bound);
    tcase_add_test(c, settings_of_heads_reach_search_and_scores);
    tcase_add_test(c, a_network_that_is_not_finite_finds_nothing);
    tcase_add_test(c, the_maximum_length_is_kept);
    tcase_add_loop_test(c, ids_only_finds_the_same_tokens, 0, 4);
    tcase_add_test(c, a_second_call_allocates_nothing);
    tcase_add_test(c, ties_go_to_the_first);
    tcase_add_loop_test(c, options_that_cannot_work_are_refused, 0, WRONG);
    tcase_add_test(c, lines_come_back_in_order);
    suite_add_tcase(s, c);
    return s;
}
