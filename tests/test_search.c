/* Options of the search, held against ways that know nothing of caches, batches and bounds: enumeration of every
 * translation there is, a beam search that runs whole prefixes again and stops by counting alone, and samples drawn by
 * hand. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/decode.h>

#include "decode/constraints.h"
#include "decode/sample.h"
#include "support_model.h"

static hw_arena *arena;
static void begin(void) { arena = hw_arena_new(0); }
static void end(void) { hw_arena_free(arena); }

static double near(double a, double b) { return fabs(a - b) / fmax(1, fabs(b)); }

/* ---- the plain way ----------------------------------------------------------------------------------------------- */

enum { MOST_WORDS = 64, MOST_SOURCE = 32, MOST_LENGTH = 24 };

typedef struct plain {
    int networks;
    hw_transformer *m[2];
    hw_tape *tape;
    hw_ids source;
} plain;

/* Log-probabilities of what follows ids, and the attention of this step to every source token, </s> included: means
 * over the networks, by running all of it. */
static void plain_next(const plain *p, const int32_t *ids, int64_t length, double *log_probs, double *attention)
{
    int64_t zero = 0, n = p->source.count + 1, rows = length + 1, v = p->m[0]->options.target_vocabulary;
    int32_t in[MOST_SOURCE], fed[MOST_LENGTH] = {HW_BEGIN};
    if (n > 1) memcpy(in, p->source.ids, (size_t)(n - 1) * sizeof *in);
    in[n - 1] = HW_END;
    if (length) memcpy(fed + 1, ids, (size_t)length * sizeof *fed);
    memset(log_probs, 0, (size_t)v * sizeof *log_probs);
    memset(attention, 0, (size_t)n * sizeof *attention);
    for (int k = 0; k < p->networks; k++) {
        const hw_transformer *m = p->m[k];
        hw_recorded entries[16];
        hw_recorder recorder = {.weights = true, .entries = entries};
        hw_tape_reset(p->tape, HW_INFERENCE);
        hw_pass pass = {.tape = p->tape, .recorder = &recorder};
        hw_token_rows s = {n, in, {1, &zero, &n}, 0, NULL}, t = {rows, fed, {1, &zero, &rows}, 0, NULL};
        hw_tensor *cross = hw_cross_keys_values(&pass, m, hw_encode(&pass, m, &s));
        hw_tensor *logits = hw_logits(&pass, m, hw_decode(&pass, m, &t, cross, s.segments, NULL));
        const hw_real *last = logits->data + length * v, *weights = entries[m->attentions - 1].weights->data;
        int64_t heads = m->decoder[m->options.decoder_layers - 1].cross.heads;
        double most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < v; i++) most = fmax(most, (double)last[i]);
        for (int64_t i = 0; i < v; i++) sum += exp((double)last[i] - most);
        for (int64_t i = 0; i < v; i++) log_probs[i] += ((double)last[i] - most - log(sum)) / p->networks;
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < n; i++)
                attention[i] += (double)weights[(h * rows + length) * n + i] / (double)heads / p->networks;
    }
}

static plain plain_begin(int which, int networks, int64_t vocabulary, hw_ids source)
{
    plain p = {.networks = networks, .tape = hw_tape_new(), .source = source};
    for (int k = 0; k < networks; k++)
        p.m[k] = small_network((which + k) % SMALL_NETWORKS, vocabulary, 31 + (uint64_t)k);
    return p;
}

static void plain_end(plain *p)
{
    hw_tape_free(p->tape);
    for (int k = 0; k < p->networks; k++) hw_transformer_free(p->m[k]);
}

/* A hypothesis with all that its score needs. */
typedef struct one {
    int64_t length;
    int32_t ids[MOST_LENGTH];
    double log_prob, score, coverage[MOST_SOURCE];
} one;

static double score_of(const one *h, const hw_search_options *o, int64_t source)
{
    double sum = 0;
    for (int64_t i = 0; i <= source; i++) sum += log(fmin(1, h->coverage[i]));
    return h->log_prob / pow((5.0 + (double)h->length + 1) / 6.0, o->length_penalty) + o->coverage_penalty * sum;
}

/* Would this token be the last of a run that stands there already? */
static bool repeats(const one *h, int32_t id, int64_t n)
{
    for (int64_t at = 0; n && at + n <= h->length; at++) {
        bool same = h->ids[at + n - 1] == id;
        for (int64_t i = 0; i + 1 < n; i++) same &= h->ids[at + i] == h->ids[h->length - n + 1 + i];
        if (same) return true;
    }
    return false;
}

static bool allowed(const one *h, int32_t id, const hw_search_options *o, hw_ids prefix)
{
    if (h->length < prefix.count) return id == prefix.ids[h->length];
    if (h->length == o->max_length) return id == HW_END;
    if (id == HW_BEGIN) return false;
    if (id == HW_END) return h->length >= o->min_length;
    return !repeats(h, id, o->no_repeat_ngram);
}

static one longer(const one *h, int32_t id, double log_prob)
{
    one x = *h;
    x.log_prob += log_prob;
    if (id != HW_END) x.ids[x.length++] = id;
    return x;
}

static int by_score(const void *a, const void *b)
{
    const one *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* What the search found is `all`, best first, but for the order of those that come out the same within rounding. */
static void ck_found(const hw_hypotheses *found, const one *all, int64_t count, int64_t wanted)
{
    ck_assert_int_eq(found->count, wanted < count ? wanted : count);
    for (int64_t i = 0; i < found->count; i++) {
        const hw_hypothesis *h = &found->items[i];
        ck_assert_msg(near(h->score, all[i].score) < 2e-5, "%d: %g, not %g", (int)i, h->score, all[i].score);
        if (i && near(all[i - 1].score, all[i].score) < 1e-4) continue;
        if (i + 1 < count && near(all[i + 1].score, all[i].score) < 1e-4) continue;
        ck_assert_int_eq(h->length, all[i].length);
        ck_assert(!h->length || !memcmp(h->ids, all[i].ids, (size_t)h->length * sizeof *h->ids));
        ck_assert_double_lt(near(h->log_prob, all[i].log_prob), 2e-5);
    }
}

static const hw_hypotheses *search(plain *p, const hw_search_options *o, hw_ids prefix, hw_runner *runners[2])
{
    for (int k = 0; k < p->networks; k++) runners[k] = hw_runner_new(p->m[k]);
    hw_search_task task = {
        .networks = p->networks, .runners = runners, .count = 1, .sources = &p->source, .prefixes = &prefix};
    return hw_search_task_run(&task, o);
}

static void stop(const plain *p, hw_runner *runners[2])
{
    for (int k = 0; k < p->networks; k++) hw_runner_free(runners[k]);
}

/* ---- every translation there is ---------------------------------------------------------------------------------- */

enum { FEW = 6, ALL = 500 }; /* 4 words */

typedef struct every {
    const plain *plain;
    const hw_search_options *options;
    hw_ids prefix;
    int64_t count;
    one all[ALL];
} every;

static void enumerate(every *e, one h)
{
    double next[FEW], attention[MOST_SOURCE];
    plain_next(e->plain, h.ids, h.length, next, attention);
    for (int64_t i = 0; i <= e->plain->source.count; i++) h.coverage[i] += attention[i];
    for (int32_t id = 0; id < FEW; id++) {
        if (!allowed(&h, id, e->options, e->prefix)) continue;
        one x = longer(&h, id, next[id]);
        if (id != HW_END) {
            enumerate(e, x);
            continue;
        }
        x.score = score_of(&x, e->options, e->plain->source.count);
        e->all[e->count++] = x;
    }
}

static const int32_t some_ids[] = {4, 0, 4};
static const struct {
    hw_search_options o;
    int64_t prefix, count; /* of translations that there are; 0: not told */
    int networks;
} spaces[] = {
    {{.max_length = 3, .length_penalty = 0.6}, 0, 85, 1},
    {{.max_length = 3, .length_penalty = 1, .coverage_penalty = 0.2}, 0, 85, 1},
    {{.max_length = 3, .coverage_penalty = 3}, 0, 85, 2},
    {{.max_length = 3, .min_length = 2, .length_penalty = 2}, 0, 80, 1},
    {{.max_length = 3, .min_length = 3, .coverage_penalty = 1}, 0, 64, 2},
    {{.max_length = 4, .no_repeat_ngram = 1, .length_penalty = 0.6}, 0, 65, 1},
    {{.max_length = 4, .no_repeat_ngram = 2, .coverage_penalty = 0.5}, 0, 0, 1},
    {{.max_length = 4, .no_repeat_ngram = 3}, 0, 0, 2},
    {{.max_length = 4, .length_penalty = 0.6}, 2, 21, 1},
    {{.max_length = 3, .length_penalty = 0.6, .coverage_penalty = 1}, 3, 1, 2},
    {{.max_length = 5, .no_repeat_ngram = 2, .min_length = 4, .coverage_penalty = 0.1}, 3, 0, 1},
    {{.max_length = 1, .min_length = 1}, 0, 4, 2},
};
enum { SPACES = sizeof spaces / sizeof *spaces };

START_TEST(a_wide_search_finds_what_enumeration_finds)
{
    int space = _i % SPACES;
    static const int64_t wanted[] = {7, 400};
    hw_ids source = *random_sentences(arena, 1, 3, 6, FEW, 4);
    plain p = plain_begin(_i / SPACES, spaces[space].networks, FEW, source);
    hw_search_options o = spaces[space].o;
    o.batch_sentences = 8;
    o.beam = 400;
    every *e = hw_arena_calloc(arena, 1, sizeof *e);
    *e = (every){.plain = &p, .options = &o, .prefix = {some_ids, spaces[space].prefix}};
    enumerate(e, (one){0});
    if (spaces[space].count) ck_assert_int_eq(e->count, spaces[space].count);
    qsort(e->all, (size_t)e->count, sizeof *e->all, by_score);
    for (int k = 0; k < 2; k++) {
        hw_runner *runners[2];
        o.n_best = wanted[k];
        ck_found(search(&p, &o, e->prefix, runners), e->all, e->count, wanted[k]);
        stop(&p, runners);
    }
    plain_end(&p);
}
END_TEST

/* ---- a beam that stops by counting ------------------------------------------------------------------------------- */

/* All continuations of all hypotheses, the best first. */
static int64_t continuations(const plain *p, one *beam, int64_t rows, const hw_search_options *o, one *out,
                             int32_t *last)
{
    int64_t count = 0, v = p->m[0]->options.target_vocabulary;
    for (int64_t r = 0; r < rows; r++) {
        double next[MOST_WORDS], attention[MOST_SOURCE];
        plain_next(p, beam[r].ids, beam[r].length, next, attention);
        for (int64_t i = 0; i <= p->source.count; i++) beam[r].coverage[i] += attention[i];
        for (int32_t id = 0; id < v; id++) {
            if (!allowed(&beam[r], id, o, (hw_ids){0})) continue;
            one x = longer(&beam[r], id, next[id]);
            int64_t at = count++;
            for (; at > 0 && out[at - 1].log_prob < x.log_prob; at--) {
                out[at] = out[at - 1];
                last[at] = last[at - 1];
            }
            out[at] = x;
            last[at] = id;
        }
    }
    return count;
}

/* As CTranslate2 has it: of the best 2 K continuations those among the first K that end are finished, the first K of
 * the others go on; until K times the patience have finished, or the maximum length. */
static int64_t plain_beam(const plain *p, const hw_search_options *o, one *finished)
{
    enum { ROOM = 8 * MOST_WORDS };
    one *beam = hw_arena_calloc(arena, 8, sizeof *beam), *all = hw_arena_calloc(arena, ROOM, sizeof *all);
    int32_t last[ROOM];
    int64_t rows = 1, count = 0;
    while (rows && count < llround((double)o->beam * o->patience)) {
        int64_t ranked = continuations(p, beam, rows, o, all, last);
        rows = 0;
        for (int64_t i = 0; i < ranked && i < 2 * o->beam && rows < o->beam; i++) {
            if (last[i] != HW_END) {
                beam[rows++] = all[i];
            } else if (i < o->beam) {
                all[i].score = score_of(&all[i], o, p->source.count);
                finished[count++] = all[i];
            }
        }
    }
    qsort(finished, (size_t)count, sizeof *finished, by_score);
    return count;
}

static const hw_search_options narrow[] = {
    {.beam = 1, .n_best = 1, .patience = 1, .length_penalty = 0.6},
    {.beam = 3, .n_best = 1, .patience = 1, .length_penalty = 0.6},
    {.beam = 3, .n_best = 3, .patience = 1, .length_penalty = 1},
    {.beam = 4, .n_best = 2, .patience = 0.5, .length_penalty = 1},
    {.beam = 4, .n_best = 4, .patience = 2, .length_penalty = 1.5},
    {.beam = 4, .n_best = 1, .patience = 4, .length_penalty = 3},
    {.beam = 3, .n_best = 3, .patience = 1.5, .coverage_penalty = 0.5},
    {.beam = 2, .n_best = 1, .patience = 0.25, .length_penalty = 0.6},
    {.beam = 3, .n_best = 2, .patience = 1, .length_penalty = 0.6, .no_repeat_ngram = 2, .min_length = 4},
    {.beam = 1, .n_best = 1, .patience = 3, .length_penalty = 3},
    {.beam = 1, .n_best = 1, .patience = 4, .length_penalty = 2, .coverage_penalty = 0.5},
};
enum { NARROW = sizeof narrow / sizeof *narrow };

/* Who asks for ids alone gets the same. */
static void ck_ids_alone(plain *p, hw_search_options o, const one *all, int64_t count)
{
    hw_runner *runners[2];
    o.ids_only = true;
    const hw_hypotheses *found = search(p, &o, (hw_ids){0}, runners);
    ck_assert_int_eq(found->count, o.n_best < count ? o.n_best : count);
    for (int64_t i = 0; i < found->count; i++) {
        if (i && near(all[i - 1].score, all[i].score) < 1e-4) continue;
        if (i + 1 < count && near(all[i + 1].score, all[i].score) < 1e-4) continue;
        ck_assert_int_eq(found->items[i].length, all[i].length);
        ck_assert(!memcmp(found->items[i].ids, all[i].ids, (size_t)all[i].length * sizeof *all[i].ids));
    }
    stop(p, runners);
}

START_TEST(a_narrow_beam_is_as_patient_as_told)
{
    enum { V = 17, SOURCES = 4 };
    hw_search_options o = narrow[_i % NARROW];
    o.max_length = 9;
    o.batch_sentences = 4;
    hw_ids *sources = random_sentences(arena, SOURCES, 1, 8, V, 6);
    plain p = plain_begin(_i / NARROW, 1 + _i % 2, V, sources[0]);
    for (int k = 0; k < p.networks; k++) favour(p.m[k], HW_END, 1.5);
    for (int i = 0; i < SOURCES; i++) {
        hw_runner *runners[2];
        one *finished = hw_arena_calloc(arena, 64, sizeof *finished);
        p.source = sources[i];
        int64_t count = plain_beam(&p, &o, finished);
        ck_found(search(&p, &o, (hw_ids){0}, runners), finished, count, o.n_best);
        stop(&p, runners);
        ck_ids_alone(&p, o, finished, count);
    }
    plain_end(&p);
}
END_TEST

/* ---- what may not come ------------------------------------------------------------------------------------------- */

static const struct {
    hw_constraints c;
    const char *open; /* the ids that may come, of 6 */
} rules[] = {
    {{.length = 0, .most = 9, .forced = -1}, "0.2345"},
    {{.length = 2, .least = 3, .most = 9, .forced = -1}, "0..345"},
    {{.length = 3, .least = 3, .most = 9, .forced = -1}, "0.2345"},
    {{.length = 9, .least = 10, .most = 9, .forced = -1}, "..2..."},
    {{.length = 1, .most = 9, .forced = 4}, "....4."},
    {{.length = 9, .most = 9, .forced = -1, .no_repeat = 1, .ids = (const int32_t[9]){3}}, "..2..."},
    {{.length = 2, .most = 9, .forced = -1, .no_repeat = 1, .ids = (const int32_t[]){3, 5}}, "0.2.4."},
    {{.length = 3, .most = 9, .forced = -1, .no_repeat = 2, .ids = (const int32_t[]){3, 5, 3}}, "0.234."},
    {{.length = 4, .most = 9, .forced = -1, .no_repeat = 2, .ids = (const int32_t[]){3, 3, 3, 3}}, "0.2.45"},
    {{.length = 1, .most = 9, .forced = -1, .no_repeat = 3, .ids = (const int32_t[]){3}}, "0.2345"},
    {{.length = 5, .most = 9, .forced = -1, .no_repeat = 3, .ids = (const int32_t[]){3, 4, 5, 3, 4}}, "0.234."},
    {{.length = 2, .most = 9, .forced = 3, .no_repeat = 1, .ids = (const int32_t[]){3, 5}}, "...3.."},
    /* Nothing is left but the end, which comes too early, and is right all the same. */
    {{.length = 4, .least = 6, .most = 9, .forced = -1, .no_repeat = 1, .ids = (const int32_t[]){3, 5, 4, 0}},
     "..2..."},
};
enum { RULES = sizeof rules / sizeof *rules };

START_TEST(constraints_leave_what_they_should)
{
    hw_real logits[6];
    char open[7] = "";
    for (int i = 0; i < 6; i++) logits[i] = (hw_real)(i + 1);
    hw_constrain(&rules[_i].c, logits, 6);
    for (int i = 0; i < 6; i++) {
        open[i] = logits[i] == -(hw_real)INFINITY ? '.' : (char)('0' + i);
        ck_assert(open[i] == '.' || logits[i] == (hw_real)(i + 1));
    }
    ck_assert_str_eq(open, rules[_i].open);
}
END_TEST

/* A vocabulary that is used up ends the translation, also before the minimum. */
START_TEST(nothing_left_to_say_ends_a_translation)
{
    hw_ids source = *random_sentences(arena, 1, 4, 4, FEW, 2);
    plain p = plain_begin(0, 1, FEW, source);
    for (int64_t beam = 1; beam <= 3; beam += 2) {
        hw_search_options o = {.beam = beam, .n_best = 1, .batch_sentences = 1, .min_length = 10, .no_repeat_ngram = 1};
        hw_runner *runners[2];
        const hw_hypotheses *found = search(&p, &o, (hw_ids){0}, runners);
        ck_assert_int_eq(found->count, 1);
        ck_assert_int_eq(found->items[0].length, 4);
        stop(&p, runners);
    }
    plain_end(&p);
}
END_TEST

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

enum { TOKENS = 600, DRAWS = 4000 };

static const struct {
    double temperature;
    int64_t top_k;
    double top_p;
} drawings[] = {{1, 0, 1},       {0.5, 0, 1},  {3, 0, 1},     {1, 1, 1},      {1, 5, 1},
                {2, 400, 1},     {1, 0, 0.9},  {1, 0, 1e-6},  {5, 0, 0.99},   {1, 10, 0.5},
                {0.7, 300, 0.8}, {1, 5000, 1}, {0.001, 0, 1}, {0.001, 3, 0.5}};
enum { DRAWINGS = sizeof drawings / sizeof *drawings };

static int larger_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Evenly spread numbers give each token its share, to one draw; tokens that are left out get none. */
START_TEST(draws_are_as_frequent_as_they_should_be)
{
    hw_search_options o = {
        .temperature = drawings[_i].temperature, .top_k = drawings[_i].top_k, .top_p = drawings[_i].top_p};
    hw_random random = hw_random_new(9, 0);
    hw_real logits[TOKENS], maxima[4];
    double weights[TOKENS], sorted[TOKENS], sum = 0, kept = 0, passed = 0, least = 0;
    for (int i = 0; i < TOKENS; i++) logits[i] = (hw_real)(2.5 * hw_random_normal(&random));
    logits[HW_BEGIN] = -(hw_real)INFINITY;
    double best = -INFINITY;
    for (int i = 0; i < TOKENS; i++) best = fmax(best, (double)logits[i]);
    for (int i = 0; i < TOKENS; i++) weights[i] = exp(((double)logits[i] - best) / o.temperature);
    memcpy(sorted, weights, sizeof weights);
    qsort(sorted, TOKENS, sizeof *sorted, larger_first);
    int64_t most = o.top_k && o.top_k < TOKENS ? o.top_k : TOKENS;
    for (int64_t i = 0; i < most; i++) sum += sorted[i];
    for (int64_t i = 0; i < most && (i == 0 || passed < o.top_p * sum * (1 - 1e-12)); i++) passed += least = sorted[i];
    kept = passed;

    hw_kernels_get()->maxima(maxima, logits, TOKENS);
    int counts[TOKENS] = {0};
    hw_arena *scratch = hw_arena_new(0);
    for (int i = 0; i < DRAWS; i++) {
        int32_t id = hw_draw(&o, logits, TOKENS, maxima, (i + 0.5) / DRAWS, scratch);
        ck_assert(id >= 0 && id < TOKENS && id != HW_BEGIN);
        counts[id]++;
        hw_arena_reset(scratch);
    }
    for (int i = 0; i < TOKENS; i++) {
        double expected = weights[i] >= least ? weights[i] / kept * DRAWS : 0;
        ck_assert_msg(fabs(counts[i] - expected) <= (expected > 0), "%d: %d, not %g", i, counts[i], expected);
    }
    for (int i = 0; i < TOKENS; i++) logits[i] = -(hw_real)INFINITY;
    ck_assert_int_eq(hw_draw(&o, logits, TOKENS, maxima, 0.5, scratch), -1);
    hw_arena_free(scratch);
}
END_TEST

/* A sample is what its numbers say, one of them a token: by seed, line, sample and position. */
START_TEST(samples_are_drawn_by_line_and_sample)
{
    enum { V = 40, SAMPLES = 3 };
    hw_ids source = *random_sentences(arena, 1, 5, 5, V, 3);
    plain p = plain_begin(_i % SMALL_NETWORKS, 1 + _i / SMALL_NETWORKS, V, source);
    hw_search_options o = {.beam = 1,
                           .n_best = SAMPLES,
                           .sampling = true,
                           .temperature = 1.5,
                           .seed = 77,
                           .max_length = 12,
                           .min_length = 3,
                           .batch_sentences = 1,
                           .length_penalty = 0.6};
    int64_t line = 5000000000;
    hw_runner *runners[2];
    for (int k = 0; k < p.networks; k++) runners[k] = hw_runner_new(p.m[k]);
    hw_search_task task = {p.networks, runners, 1, &p.source, NULL, &line};
    const hw_hypotheses *found = hw_search_task_run(&task, &o);
    ck_assert_int_eq(found->count, SAMPLES);
    for (uint64_t sample = 0; sample < SAMPLES; sample++) {
        one h = {0};
        for (bool ended = false; !ended;) {
            double next[V], attention[MOST_SOURCE], sum = 0, passed = 0;
            hw_random random = hw_random_new(77, (uint64_t)line);
            random.position = (sample << 32 | (uint64_t)h.length) * 2;
            double u = hw_random_uniform(&random);
            plain_next(&p, h.ids, h.length, next, attention);
            for (int32_t id = 0; id < V; id++) sum += allowed(&h, id, &o, (hw_ids){0}) ? exp(next[id] / 1.5) : 0;
            for (int32_t id = 0; id < V; id++) {
                if (!allowed(&h, id, &o, (hw_ids){0}) || (passed += exp(next[id] / 1.5)) <= u * sum) continue;
                h = longer(&h, id, next[id]);
                ended = id == HW_END;
                break;
            }
        }
        int64_t k = 0; /* they are ordered by score */
        while (k < SAMPLES && (found->items[k].length != h.length ||
                               memcmp(found->items[k].ids, h.ids, (size_t)h.length * sizeof *h.ids)))
            k++;
        ck_assert_msg(k < SAMPLES, "sample %d was not found", (int)sample);
        ck_assert_double_lt(near(found->items[k].log_prob, h.log_prob), 2e-5);
        if (sample) ck_assert_double_ge(found->items[sample - 1].score, found->items[sample].score);
    }
    stop(&p, runners);
    plain_end(&p);
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
        ck_assert(!memcmp(&x->score, &y->score, sizeof x->score));
    }
}

static const hw_search_options settings[] = {
    {.beam = 3, .n_best = 3, .coverage_penalty = 0.4, .length_penalty = 0.6, .patience = 2},
    {.beam = 1, .n_best = 1, .coverage_penalty = 0.4, .no_repeat_ngram = 2},
    {.beam = 1, .n_best = 2, .sampling = true, .temperature = 1.3, .top_p = 0.9, .seed = 4},
    {.beam = 1, .n_best = 1, .sampling = true, .top_k = 7, .seed = 4, .coverage_penalty = 1},
    {.beam = 4, .n_best = 2, .min_length = 5, .length_penalty = 1},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

START_TEST(bits_do_not_depend_on_batches_or_threads)
{
    enum { V = 61, COUNT = 60 };
    bool together = _i / SETTINGS; /* an ensemble, with prefixes */
    hw_search_options alone = settings[_i % SETTINGS];
    alone.max_length = 12;
    alone.batch_sentences = 1;
    hw_ids *sources = random_sentences(arena, COUNT, 0, 20, V, 5),
           *prefixes = random_sentences(arena, COUNT, 0, 4, V, 6);
    plain p = plain_begin(0, 1 + together, V, sources[0]);
    hw_runner *single[2], *all[2];
    int64_t lines[COUNT];
    for (int k = 0; k < p.networks; k++) {
        single[k] = hw_runner_new(p.m[k]);
        all[k] = hw_runner_new(p.m[k]);
    }
    for (int i = 0; i < COUNT; i++) lines[i] = 1000 - 7 * i;
    hw_search_task whole = {p.networks, all, COUNT, sources, together ? prefixes : NULL, lines};
    for (int w = 0; w < 3; w++) {
        hw_search_options o = alone;
        o.batch_sentences = (int64_t[]){1000, 7, 16}[w];
        hw_threads_set((int[]){1, 3, 2}[w]);
        const hw_hypotheses *found = hw_search_task_run(&whole, &o);
        for (int i = 0; i < COUNT; i += 5) {
            hw_search_task task = {p.networks, single, 1, &sources[i], together ? &prefixes[i] : NULL, &lines[i]};
            ck_same(hw_search_task_run(&task, &alone), &found[i]);
            ck_assert(!together || !memcmp(found[i].items[0].ids, prefixes[i].ids,
                                           (size_t)prefixes[i].count * sizeof *prefixes[i].ids));
        }
    }
    hw_threads_set(1);
    stop(&p, single);
    stop(&p, all);
    plain_end(&p);
}
END_TEST

/* A network together with itself is the network alone, to the bit. */
START_TEST(an_ensemble_of_the_same_is_that_network)
{
    enum { V = 33, COUNT = 20 };
    hw_transformer *m = small_network(_i, V, 8);
    hw_ids *sources = random_sentences(arena, COUNT, 1, 12, V, 5);
    hw_runner *alone = hw_runner_new(m), *three[3];
    for (int k = 0; k < 3; k++) three[k] = hw_runner_new(m);
    for (int i = 0; i < SETTINGS; i++) {
        hw_search_options o = settings[i];
        o.max_length = 10;
        o.batch_sentences = 16;
        o.coverage_penalty = 0; /* a mean of three attentions has another last bit */
        hw_search_task task = {3, three, COUNT, sources, NULL, NULL};
        const hw_hypotheses *a = hw_search(alone, &o, COUNT, sources), *b = hw_search_task_run(&task, &o);
        for (int s = 0; s < COUNT; s++) ck_same(&a[s], &b[s]);
    }
    for (int k = 0; k < 3; k++) hw_runner_free(three[k]);
    hw_runner_free(alone);
    hw_transformer_free(m);
}
END_TEST

/* Samples differ by line, by seed and by number; with one token to draw they are the greedy translation. */
START_TEST(samples_differ_where_they_should)
{
    enum { V = 50, COUNT = 12 };
    hw_transformer *m = small_network(1, V, 8);
    hw_ids source = *random_sentences(arena, 1, 6, 6, V, 5), same[COUNT];
    for (int i = 0; i < COUNT; i++) same[i] = source;
    hw_runner *r = hw_runner_new(m), *other = hw_runner_new(m);
    hw_search_options o = {.beam = 1, .n_best = 4, .sampling = true, .batch_sentences = 5, .seed = 1, .max_length = 9};
    const hw_hypotheses *found = hw_search(r, &o, COUNT, same);
    int differ = 0, within = 0, seeds = 0;
    o.seed = 2;
    const hw_hypotheses *again = hw_search(other, &o, COUNT, same);
    for (int i = 1; i < COUNT; i++) {
        differ += found[i].items[0].log_prob != found[0].items[0].log_prob;
        within += found[i].items[0].log_prob != found[i].items[3].log_prob;
        seeds += found[i].items[0].log_prob != again[i].items[0].log_prob;
    }
    ck_assert_int_gt(differ, COUNT / 2);
    ck_assert_int_gt(within, COUNT / 2);
    ck_assert_int_gt(seeds, COUNT / 2);
    o.top_k = 1;
    found = hw_search(r, &o, 2, same);
    hw_search_options greedy = {.beam = 1, .n_best = 1, .batch_sentences = 1, .max_length = 9};
    const hw_hypothesis *h = hw_search(other, &greedy, 1, same)->items;
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(found[1].items[k].length, h->length);
        ck_assert(!memcmp(found[1].items[k].ids, h->ids, (size_t)h->length * sizeof *h->ids));
    }
    favour(m, 7, (double)NAN);
    ck_assert_int_eq(hw_search(r, &o, 1, same)->count, 0);
    hw_runner_free(r);
    hw_runner_free(other);
    hw_transformer_free(m);
}
END_TEST

/* Without max_length a prefix may be longer than twice the source and 20. */
START_TEST(a_long_prefix_makes_room_for_itself)
{
    hw_transformer *m = small_network(0, 20, 3);
    hw_ids source = *random_sentences(arena, 1, 1, 1, 20, 1), prefix = *random_sentences(arena, 1, 60, 60, 20, 2);
    hw_runner *r = hw_runner_new(m);
    hw_search_task task = {1, &r, 1, &source, &prefix, NULL};
    for (int64_t beam = 1; beam < 4; beam += 2) {
        hw_search_options o = {.beam = beam, .n_best = beam, .batch_sentences = 1, .ids_only = beam == 1};
        const hw_hypotheses *found = hw_search_task_run(&task, &o);
        ck_assert_int_eq(found->count, 1);
        ck_assert_int_eq(found->items[0].length, 60);
        ck_assert(found->items[0].cut);
        ck_assert(!memcmp(found->items[0].ids, prefix.ids, 60 * sizeof *prefix.ids));
    }
    hw_runner_free(r);
    hw_transformer_free(m);
}
END_TEST

Suite *test_search(void);
Suite *test_search(void)
{
    Suite *s = suite_create("search");
    TCase *c = tcase_create("search");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_loop_test(c, a_wide_search_finds_what_enumeration_finds, 0, SMALL_NETWORKS * SPACES);
    tcase_add_loop_test(c, a_narrow_beam_is_as_patient_as_told, 0, SMALL_NETWORKS * NARROW);
    tcase_add_loop_test(c, constraints_leave_what_they_should, 0, RULES);
    tcase_add_test(c, nothing_left_to_say_ends_a_translation);
    tcase_add_loop_test(c, draws_are_as_frequent_as_they_should_be, 0, DRAWINGS);
    tcase_add_loop_test(c, samples_are_drawn_by_line_and_sample, 0, 2 * SMALL_NETWORKS);
    tcase_add_loop_test(c, bits_do_not_depend_on_batches_or_threads, 0, 2 * SETTINGS);
    tcase_add_loop_test(c, an_ensemble_of_the_same_is_that_network, 0, SMALL_NETWORKS);
    tcase_add_test(c, samples_differ_where_they_should);
    tcase_add_test(c, a_long_prefix_makes_room_for_itself);
    suite_add_tcase(s, c);
    return s;
}
