/* Beam search over a cached state; a beam of 1 is greedy decoding.
 *
 * At each step a sentence's hypotheses and all their continuations are ranked by log-probability. Of the best 2 K the
 * ones that end are finished if they stand among the first K, and the first K of the others go on. A sentence is done
 * when K hypotheses have finished, or when no living one can still come before the n-th best finished: a
 * log-probability only falls, and the length penalty (Wu et al. 2016, "Google's neural machine translation system",
 * equation 14) is largest at the maximum length. There every hypothesis is ended by </s>, at its price. Sentences that
 * are done leave the batch. */
#include <headwise/decode.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decode/state.h"
#include "decode/top.h"

enum {
    BATCH_ROWS = 4096, /* source rows of a batch at most, but for a single longer sentence: they bound its memory */
    LOGITS_AT_ONCE = 1 << 17 /* numbers: what stays in cache */
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

hw_search_options hw_search_options_of(const hw_config *c)
{
    return (hw_search_options){.beam = c->decoding.beam,
                               .n_best = c->decoding.n_best,
                               .max_length = c->decoding.max_length,
                               .length_penalty = c->decoding.length_penalty,
                               .batch_sentences = c->decoding.batch_sentences};
}

bool hw_search_options_check(const hw_search_options *o, hw_error *err)
{
    if (o->beam < 1) return hw_fail(err, "beam: %lld; at least one hypothesis is kept", (long long)o->beam);
    if (o->n_best < 1) return hw_fail(err, "n-best: %lld; at least one translation is given", (long long)o->n_best);
    if (o->n_best > o->beam)
        return hw_fail(err, "n-best: %lld translations cannot come out of a beam of %lld; set beam to %lld or more",
                       (long long)o->n_best, (long long)o->beam, (long long)o->n_best);
    if (o->max_length < 0) return hw_fail(err, "max-length: %lld is negative", (long long)o->max_length);
    if (o->min_length < 0) return hw_fail(err, "min-length: %lld is negative", (long long)o->min_length);
    if (!(o->length_penalty >= 0)) return hw_fail(err, "length-penalty: %g; 0 or more was expected", o->length_penalty);
    if (o->batch_sentences < 1)
        return hw_fail(err, "batch: %lld; at least one sentence", (long long)o->batch_sentences);
    return true;
}

/* ---- hypotheses -------------------------------------------------------------------------------------------------- */

/* The last token of a hypothesis, and what stands before it. */
typedef struct token {
    const struct token *before;
    int32_t id;
    hw_real log_prob;
} token;

typedef struct living {
    const token *last; /* NULL: nothing yet */
    double log_prob;
} living;

typedef struct ended {
    const token *last;    /* the one before </s> */
    hw_real end_log_prob; /* of </s> */
    double log_prob, score;
} ended;

typedef struct sentence {
    int64_t place; /* in the caller's array */
    int64_t most;  /* tokens */
    bool done;
    hw_top top; /* continuations of this step, at most 2 beam */
    int64_t ended_count;
    ended *ended; /* [2 beam], best first */
} sentence;

/* A batch being decoded. */
typedef struct search {
    const hw_search_options *options;
    hw_state state;
    int64_t count, length; /* sentences; tokens that every living hypothesis has */
    sentence *sentences;
    living *living, *next; /* [slots] beside the rows of the state: those of this step and of the next */
    hw_state_row *next_rows;
    int64_t next_count;
} search;

static double normalised(const search *s, double log_prob, int64_t length)
{
    return log_prob / pow((5.0 + (double)(length + 1)) / 6.0, s->options->length_penalty);
}

static void finish(search *s, sentence *x, const hw_candidate *c)
{
    ended e = {s->living[c->row].last, c->log_prob, c->score, normalised(s, c->score, s->length)};
    int64_t at = x->ended_count++;
    for (; at > 0 && x->ended[at - 1].score < e.score; at--) x->ended[at] = x->ended[at - 1];
    x->ended[at] = e;
}

static void go_on(search *s, const sentence *x, const hw_candidate *c)
{
    const living *parent = &s->living[c->row];
    token *t = hw_arena_alloc(s->state.worker->batch, sizeof *t);
    *t = (token){parent->last, c->id, c->log_prob};
    s->next[s->next_count] = (living){t, c->score};
    s->next_rows[s->next_count++] = (hw_state_row){x - s->sentences, s->state.rows[c->row].slot, c->id};
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* What may come next in a row: everything but <s>, </s> from the minimum length on; at the maximum length only </s>.
 * The others' logits become -inf after the normaliser was taken, so that probabilities stay those of the network. */
static void constrain(const search *s, const sentence *x, hw_real *logits, int64_t n)
{
    hw_real end = logits[HW_END];
    logits[HW_BEGIN] = -(hw_real)INFINITY;
    if (s->length < s->options->min_length) logits[HW_END] = -(hw_real)INFINITY;
    if (s->length < x->most) return;
    for (int64_t i = 0; i < n; i++) logits[i] = -(hw_real)INFINITY;
    logits[HW_END] = end;
}

static sentence *sentence_of(search *s, int64_t row) { return &s->sentences[s->state.rows[row].sentence]; }

/* With a beam of 1 the largest logit is the best token, and nobody asks for its probability. */
static bool plain(const search *s) { return s->options->ids_only && s->options->beam == 1; }

/* 0, or NaN where not all logits are finite, so that then, too, nothing is found. */
static double plain_normaliser(const hw_real *logits, int64_t n)
{
    return isfinite(hw_kernels_get()->sum(logits, n)) ? 0 : (double)NAN;
}

/* Logits in blocks of rows that stay in cache; each row's are offered to its sentence at once. */
static void rank_continuations(search *s, hw_tensor *decoded)
{
    const hw_transformer *m = s->state.network;
    hw_tape *tape = s->state.worker->tape;
    int64_t n = m->options.target_vocabulary, width = hw_tensor_cols(decoded);
    int64_t block = LOGITS_AT_ONCE / n / 12 * 12;
    if (block < 12) block = 12;
    hw_real *maxima = hw_arena_alloc(hw_tape_arena(tape), (size_t)hw_stretches(n) * sizeof *maxima);
    hw_pass pass = {.tape = tape};
    for (int64_t first = 0; first < s->state.count; first += block) {
        hw_arena_mark mark = hw_arena_begin(hw_tape_arena(tape));
        hw_tensor part = *decoded;
        part.data += first * width;
        part.shape[0] = s->state.count - first < block ? s->state.count - first : block;
        hw_real *logits = hw_logits(&pass, m, &part)->data;
        for (int64_t r = 0; r < part.shape[0]; r++, logits += n) {
            sentence *x = sentence_of(s, first + r);
            hw_kernels_get()->maxima(maxima, logits, n);
            double normaliser = plain(s) ? plain_normaliser(logits, n) : hw_row_normaliser(logits, n, maxima);
            constrain(s, x, logits, n);
            hw_top_offer(&x->top, logits, n, maxima, s->living[first + r].log_prob, normaliser, first + r);
        }
        hw_arena_end(hw_tape_arena(tape), mark);
    }
}

/* first: its best living hypothesis, of so many. */
static bool is_done(const search *s, const sentence *x, int64_t first, int64_t rows)
{
    if (!rows || x->ended_count >= s->options->beam) return true;
    if (x->ended_count < s->options->n_best) return false;
    return x->ended[s->options->n_best - 1].score >= normalised(s, s->next[first].log_prob, x->most);
}

static void advance(search *s, sentence *x)
{
    int64_t first = s->next_count, beam = s->options->beam;
    for (int64_t rank = 0; rank < x->top.count && s->next_count - first < beam; rank++) {
        const hw_candidate *c = &x->top.items[rank];
        if (c->id != HW_END)
            go_on(s, x, c);
        else if (rank < beam)
            finish(s, x, c);
    }
    x->top.count = 0;
    x->done = is_done(s, x, first, s->next_count - first);
    if (x->done) s->next_count = first;
}

static void step(search *s)
{
    rank_continuations(s, hw_state_step(&s->state));
    s->next_count = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (!s->sentences[i].done) advance(s, &s->sentences[i]);
    s->length++;
    hw_state_continue(&s->state, s->next_rows, s->next_count);
    living *before = s->living;
    s->living = s->next;
    s->next = before;
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

static void begin(search *s, hw_runner *r, int64_t count, const hw_ids *sources, const int64_t *places)
{
    hw_worker *worker = hw_runner_worker(r);
    hw_arena *arena = worker->batch;
    int64_t beam = s->options->beam, slots = count * beam;
    hw_state_begin(&s->state, r, worker, count, sources, slots);
    s->count = count;
    s->sentences = hw_arena_calloc(arena, (size_t)count, sizeof *s->sentences);
    s->living = hw_arena_calloc(arena, (size_t)slots, sizeof *s->living);
    s->next = hw_arena_calloc(arena, (size_t)slots, sizeof *s->next);
    s->next_rows = hw_arena_calloc(arena, (size_t)slots, sizeof *s->next_rows);
    for (int64_t i = 0; i < count; i++) {
        sentence *x = &s->sentences[i];
        x->place = places[i];
        x->most = s->options->max_length ? s->options->max_length : 2 * sources[i].count + 20;
        x->top = (hw_top){0, 2 * beam, hw_arena_alloc(arena, (size_t)(2 * beam) * sizeof *x->top.items)};
        x->ended = hw_arena_alloc(arena, (size_t)(2 * beam) * sizeof *x->ended);
        s->next_rows[i] = (hw_state_row){.sentence = i, .slot = i, .id = HW_BEGIN};
    }
    hw_state_continue(&s->state, s->next_rows, count);
}

static void tell_hypothesis(const search *s, const ended *e, int64_t most, hw_hypothesis *out, hw_arena *arena)
{
    int64_t length = 0;
    for (const token *t = e->last; t; t = t->before) length++;
    int32_t *ids = hw_arena_alloc(arena, (size_t)length * sizeof *ids);
    *out = (hw_hypothesis){.length = length, .ids = ids, .cut = length == most};
    int64_t at = length;
    for (const token *t = e->last; t; t = t->before) ids[--at] = t->id;
    if (plain(s)) return;
    hw_real *log_probs = hw_arena_alloc(arena, (size_t)(length + 1) * sizeof *log_probs);
    out->log_probs = log_probs;
    out->log_prob = e->log_prob;
    out->score = e->score;
    log_probs[at = length] = e->end_log_prob;
    for (const token *t = e->last; t; t = t->before) log_probs[--at] = t->log_prob;
}

static void tell(const search *s, hw_hypotheses *out)
{
    hw_arena *arena = s->state.worker->results;
    for (int64_t i = 0; i < s->count; i++) {
        const sentence *x = &s->sentences[i];
        int64_t count = x->ended_count < s->options->n_best ? x->ended_count : s->options->n_best;
        hw_hypothesis *items = hw_arena_alloc(arena, (size_t)count * sizeof *items);
        for (int64_t k = 0; k < count; k++) tell_hypothesis(s, &x->ended[k], x->most, &items[k], arena);
        out[x->place] = (hw_hypotheses){count, items};
    }
}

/* ---- all batches ------------------------------------------------------------------------------------------------- */

/* Sources in the order in which they are decoded, the longest first, so that those of a batch end at about the same
 * time and the last batches, for which threads wait, are short ones. */
typedef struct plan {
    hw_runner *runner;
    const hw_search_options *options;
    const hw_ids *sources;
    int64_t *places; /* [count] of the sources in the caller's array */
    int64_t *first;  /* [batches + 1] */
    hw_ids *sorted;  /* [count] */
    int batches;
    hw_hypotheses *out;
} plan;

static int by_length(const void *a, const void *b, void *sources)
{
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    int64_t more = ((const hw_ids *)sources)[k].count - ((const hw_ids *)sources)[i].count;
    return more ? (more > 0) - (more < 0) : (i > k) - (i < k);
}

static void cut(plan *p, int64_t count, hw_arena *arena)
{
    int64_t each = (count + hw_threads() - 1) / hw_threads(), rows = 0;
    if (each > p->options->batch_sentences) each = p->options->batch_sentences;
    p->places = hw_arena_alloc(arena, (size_t)count * sizeof *p->places);
    p->first = hw_arena_alloc(arena, ((size_t)count + 1) * sizeof *p->first);
    p->sorted = hw_arena_alloc(arena, (size_t)count * sizeof *p->sorted);
    for (int64_t i = 0; i < count; i++) p->places[i] = i;
    qsort_r(p->places, (size_t)count, sizeof *p->places, by_length, (void *)p->sources);
    for (int64_t i = 0; i < count; i++) {
        p->sorted[i] = p->sources[p->places[i]];
        rows += p->sorted[i].count + 1;
        if (i && rows <= BATCH_ROWS && i - p->first[p->batches - 1] < each) continue;
        p->first[p->batches++] = i;
        rows = p->sorted[i].count + 1;
    }
    p->first[p->batches] = count;
}

static void search_batch(int i, void *argument)
{
    const plan *p = argument;
    int64_t first = p->first[i];
    search s = {.options = p->options};
    begin(&s, p->runner, p->first[i + 1] - first, p->sorted + first, p->places + first);
    while (s.state.count) step(&s);
    tell(&s, p->out);
}

const hw_hypotheses *hw_search(hw_runner *r, const hw_search_options *options, int64_t count, const hw_ids *sources)
{
    hw_error err;
    HW_CHECK(hw_search_options_check(options, &err), "%s", err.message);
    hw_arena *arena = hw_runner_begin_results(r);
    plan p = {.runner = r, .options = options, .sources = sources};
    p.out = hw_arena_calloc(arena, (size_t)count, sizeof *p.out);
    cut(&p, count, arena);
    hw_parallel(p.batches, search_batch, &p);
    return p.out;
}
