/* Beam search over cached states; a beam of 1 is greedy decoding; and sampling.
 *
 * At each step a sentence's hypotheses and all their continuations are ranked by log-probability. Of the best 2 K the
 * ones that end are finished if they stand among the first K, and the first K of the others go on. A sentence is done
 * when K hypotheses have finished, or so many times K as `patience` says (Kasai et al. 2022, "A call for clarity in
 * beam search"), or when no living one can still come before the n-th best finished: a log-probability only falls, the
 * length penalty is largest at the maximum length, and the coverage penalty is never above 0 (Wu et al. 2016, "Google's
 * neural machine translation system", equation 14). At the maximum length every hypothesis is ended by </s>, at its
 * price. Samples are hypotheses that never branch. Sentences that are done leave the batch. */
#include <headwise/decode.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decode/constraints.h"
#include "decode/ensemble.h"
#include "decode/sample.h"
#include "decode/top.h"

enum {
    /* Of a batch at most, but for a single sentence that has more: they bound its memory. */
    BATCH_ROWS = 4096, /* of sources */
    BATCH_HYPOTHESES = 4096,
    /* Numbers of a layer's keys and values that hypotheses as long as their sources have: as many as stay in cache. But
     * the weights are read anew for each batch, so it has some hypotheses in any case. */
    CACHED_NUMBERS = 300000,
    FEWEST_HYPOTHESES = 64,
    LOGITS_AT_ONCE = 1 << 17 /* numbers: what stays in cache */
};

/* ---- options ----------------------------------------------------------------------------------------------------- */

hw_search_options hw_search_options_of(const hw_config *c) { return c->decoding; }
bool hw_search_options_check(const hw_search_options *o, hw_error *err) { return hw_decoding_check(o, err); }

/* Whoever fills the options in by hand may leave out what is 1 by itself. */
static hw_search_options settled(const hw_search_options *given)
{
    hw_search_options o = *given;
    if (o.patience == 0) o.patience = 1;
    if (o.temperature == 0) o.temperature = 1;
    if (o.top_p == 0) o.top_p = 1;
    return o;
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
    int64_t sample; /* which one, where it is one */
} living;

typedef struct ended {
    const token *last;    /* the one before </s> */
    hw_real end_log_prob; /* of </s> */
    double log_prob, score;
} ended;

typedef struct sentence {
    int64_t place; /* in the caller's array */
    int64_t line;  /* what samples are drawn by */
    hw_ids prefix;
    int64_t most; /* tokens */
    bool done;
    hw_top top;       /* continuations of this step: at most 2 beam, or one a sample */
    int64_t finished; /* hypotheses, of which */
    ended *ended;     /* the [min(finished, n_best)] best are kept, best first */
} sentence;

/* A batch being decoded. */
typedef struct search {
    const hw_search_options *options;
    hw_ensemble ensemble;
    const hw_state *state; /* its rows */
    int64_t count, length; /* sentences; tokens that every living hypothesis has */
    sentence *sentences;
    living *living, *next; /* [hypotheses] beside the rows of the state: those of this step and of the next */
    hw_state_row *next_rows;
    int64_t next_count;
    double *coverage, *next_coverage; /* [hypotheses, stride] what each source token was attended by living and next */
    int64_t stride;                   /* 0: nothing is covered */
    const hw_screen *screen;          /* finds the likeliest token; NULL: all logits are computed */
    int32_t *history;                 /* the tokens of a row, for the constraints */
    int64_t room;
} search;

/* Hypotheses of a sentence at most. */
static int64_t breadth(const hw_search_options *o) { return o->sampling ? o->n_best : o->beam; }

static double normalised(const search *s, double log_prob, int64_t length)
{
    return log_prob / pow((5.0 + (double)(length + 1)) / 6.0, s->options->length_penalty);
}

/* What sources a row has left out costs, 0 or less. A token that got nothing at all costs much, but not everything. */
static double covered(const search *s, int64_t row)
{
    double sum = 0;
    if (!s->stride) return 0;
    int64_t tokens = s->state->sources.length[s->state->rows[row].sentence];
    for (int64_t i = 0; i < tokens; i++) {
        double attention = s->coverage[row * s->stride + i];
        if (attention < 1) sum += log(attention > FLT_MIN ? attention : FLT_MIN);
    }
    return s->options->coverage_penalty * sum;
}

static void finish(search *s, sentence *x, const hw_candidate *c)
{
    double score = normalised(s, c->score, s->length) + covered(s, c->row);
    int64_t most = s->options->n_best, at = x->finished < most ? x->finished : most;
    x->finished++;
    for (; at > 0 && x->ended[at - 1].score < score; at--)
        if (at < most) x->ended[at] = x->ended[at - 1];
    if (at < most) x->ended[at] = (ended){s->living[c->row].last, c->log_prob, c->score, score};
}

static void go_on(search *s, const sentence *x, const hw_candidate *c)
{
    const living *parent = &s->living[c->row];
    token *t = hw_arena_alloc(s->state->worker->batch, sizeof *t);
    *t = (token){parent->last, c->id, c->log_prob};
    if (s->stride)
        memcpy(s->next_coverage + s->next_count * s->stride, s->coverage + c->row * s->stride,
               (size_t)s->stride * sizeof *s->coverage);
    s->next[s->next_count] = (living){t, c->score, parent->sample};
    s->next_rows[s->next_count++] = (hw_state_row){x - s->sentences, c->row, c->id};
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static sentence *sentence_of(search *s, int64_t row) { return &s->sentences[s->state->rows[row].sentence]; }

/* The tokens of a row, written where they stay until the next row's. */
static const int32_t *history(search *s, int64_t row)
{
    if (s->length > s->room) {
        s->room = 2 * s->length;
        s->history = hw_arena_alloc(s->state->worker->batch, (size_t)s->room * sizeof *s->history);
    }
    int64_t at = s->length;
    for (const token *t = s->living[row].last; t; t = t->before) s->history[--at] = t->id;
    return s->history;
}

static void constrain(search *s, int64_t row, hw_real *logits, int64_t n)
{
    const sentence *x = sentence_of(s, row);
    hw_constraints c = {.length = s->length, .least = s->options->min_length, .most = x->most, .forced = -1};
    if (s->length < x->prefix.count) c.forced = x->prefix.ids[s->length];
    c.no_repeat = s->options->no_repeat_ngram;
    if (c.no_repeat) c.ids = history(s, row);
    hw_constrain(&c, logits, n);
}

/* Each draw has a number of its own: by seed, line, sample and length. */
static double uniform(const search *s, int64_t row)
{
    hw_random random =
        hw_random_new((uint64_t)s->options->seed, (uint64_t)s->sentences[s->state->rows[row].sentence].line);
    random.position = ((uint64_t)s->living[row].sample << 32 | (uint64_t)s->length) * 2;
    return hw_random_uniform(&random);
}

static void draw(search *s, int64_t row, const hw_real *logits, int64_t n, const hw_real *maxima, double normaliser)
{
    sentence *x = sentence_of(s, row);
    hw_arena *arena = hw_tape_arena(s->state->worker->tape);
    int32_t id = isfinite(normaliser) ? hw_draw(s->options, logits, n, maxima, uniform(s, row), arena) : -1;
    if (id < 0) return;
    double log_prob = (double)logits[id] - normaliser;
    x->top.items[x->top.count++] = (hw_candidate){s->living[row].log_prob + log_prob, (hw_real)log_prob, id, row};
}

/* With one hypothesis that ends once the largest logit is the best token, and nobody asks for its probability. */
static bool plain(const hw_search_options *o)
{
    return o->ids_only && o->beam == 1 && o->n_best == 1 && !o->sampling && hw_decoding_enough(o) <= 1;
}

/* Is only the likeliest token wanted of every row, and is nothing but the begin and the end ever out of question? */
static bool wants_likeliest(search *s)
{
    if (!s->screen || s->options->no_repeat_ngram) return false;
    for (int64_t r = 0; r < s->state->count; r++) {
        const sentence *x = sentence_of(s, r);
        if (s->length < x->prefix.count || s->length >= x->most) return false;
    }
    return true;
}

/* Offers every row its likeliest token alone. False where a state is not finite: then nothing was offered. */
static bool offer_likeliest(search *s)
{
    static const int32_t never[] = {HW_BEGIN, HW_END};
    const hw_state *state = s->state;
    hw_arena *arena = hw_tape_arena(state->worker->tape);
    int32_t *ids = hw_arena_alloc(arena, (size_t)state->count * sizeof *ids);
    hw_real *logits = hw_arena_alloc(arena, (size_t)state->count * sizeof *logits);
    double start = hw_worker_clock(state->worker);
    bool found = hw_screen_largest(s->screen, ids, logits, s->ensemble.decoded[0]->data, state->count, never,
                                   s->length < s->options->min_length ? 2 : 1, arena);
    state->worker->parts[HW_SEARCH_SCREEN] += hw_worker_clock(state->worker) - start;
    if (!found) return false;
    for (int64_t r = 0; r < state->count; r++) {
        hw_top *top = &sentence_of(s, r)->top;
        top->items[top->count++] = (hw_candidate){s->living[r].log_prob + (double)logits[r], logits[r], ids[r], r};
    }
    return true;
}

/* Logits in blocks of rows that stay in cache; each row's are offered to its sentence at once. */
static void rank_continuations(search *s)
{
    if (wants_likeliest(s) && offer_likeliest(s)) return;
    const hw_state *state = s->state;
    int64_t n = state->network->options.target_vocabulary;
    hw_arena_mark marks[HW_MOST_NETWORKS];
    hw_real *maxima = hw_arena_alloc(hw_tape_arena(state->worker->tape), (size_t)hw_stretches(n) * sizeof *maxima);
    int64_t block = LOGITS_AT_ONCE / n / s->ensemble.count / 12 * 12;
    if (block < 12) block = 12;
    for (int64_t first = 0; first < state->count; first += block) {
        int64_t rows = state->count - first < block ? state->count - first : block;
        hw_ensemble_begin_logits(&s->ensemble, first, rows, marks);
        double start = hw_worker_clock(state->worker);
        for (int64_t r = first; r < first + rows; r++) {
            double normaliser;
            hw_real *logits = hw_ensemble_row(&s->ensemble, r - first, maxima, plain(s->options), &normaliser);
            constrain(s, r, logits, n);
            if (s->options->sampling)
                draw(s, r, logits, n, maxima, normaliser);
            else
                hw_top_offer(&sentence_of(s, r)->top, logits, n, maxima, s->living[r].log_prob, normaliser, r);
        }
        state->worker->parts[HW_SEARCH_RANK] += hw_worker_clock(state->worker) - start;
        hw_ensemble_end_logits(&s->ensemble, marks);
    }
}

/* first: its best living hypothesis, of so many. */
static bool is_done(const search *s, const sentence *x, int64_t first, int64_t rows)
{
    const hw_search_options *o = s->options;
    if (!rows) return true;
    if (o->sampling) return false;
    if (x->finished >= hw_decoding_enough(o)) return true;
    if (x->finished < o->n_best) return false;
    return x->ended[o->n_best - 1].score >= normalised(s, s->next[first].log_prob, x->most);
}

static void advance(search *s, sentence *x)
{
    int64_t first = s->next_count, most = breadth(s->options);
    for (int64_t rank = 0; rank < x->top.count && s->next_count - first < most; rank++) {
        const hw_candidate *c = &x->top.items[rank];
        if (c->id != HW_END)
            go_on(s, x, c);
        else if (rank < most)
            finish(s, x, c);
    }
    x->top.count = 0;
    x->done = is_done(s, x, first, s->next_count - first);
    if (x->done) s->next_count = first;
}

/* Every hypothesis is as long as it may be, and nobody asks how likely its end is: the network need not run. Offers the
 * end; false where it is not so. */
static bool only_ends(search *s)
{
    if (!plain(s->options)) return false;
    for (int64_t r = 0; r < s->state->count; r++) {
        const sentence *x = sentence_of(s, r);
        if (s->length < x->most || s->length < x->prefix.count) return false;
    }
    for (int64_t r = 0; r < s->state->count; r++) {
        hw_top *top = &sentence_of(s, r)->top;
        top->items[top->count++] = (hw_candidate){s->living[r].log_prob, 0, HW_END, r};
    }
    return true;
}

static void step(search *s)
{
    if (!only_ends(s)) {
        hw_ensemble_step(&s->ensemble);
        if (s->stride) hw_ensemble_attention(&s->ensemble, s->coverage, s->stride);
        rank_continuations(s);
    }
    s->next_count = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (!s->sentences[i].done) advance(s, &s->sentences[i]);
    s->length++;
    hw_ensemble_continue(&s->ensemble, s->next_rows, s->next_count);
    living *before = s->living;
    s->living = s->next;
    s->next = before;
    double *was = s->coverage;
    s->coverage = s->next_coverage;
    s->next_coverage = was;
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

/* Sources in the order in which they are decoded, the longest first, so that those of a batch end at about the same
 * time and the last batches, for which threads wait, are short ones. */
typedef struct plan {
    const hw_search_task *task;
    const hw_search_options *options;
    int64_t *places; /* [count] of the sources in the caller's array */
    int64_t *first;  /* [batches + 1] */
    hw_ids *sorted;  /* [count] */
    int batches;
    hw_hypotheses *out;
} plan;

static void begin_sentence(search *s, const plan *p, sentence *x, int64_t place)
{
    const hw_search_options *o = s->options;
    hw_arena *arena = s->state->worker->batch;
    int64_t room = o->sampling ? o->n_best : 2 * o->beam;
    *x = (sentence){.place = place, .line = p->task->lines ? p->task->lines[place] : place};
    if (p->task->prefixes) x->prefix = p->task->prefixes[place];
    x->most = o->max_length ? o->max_length : 2 * p->task->sources[place].count + 20;
    HW_CHECK(!o->max_length || x->prefix.count <= x->most, "a prefix of %lld tokens, of %lld at most",
             (long long)x->prefix.count, (long long)x->most);
    if (!o->max_length && x->most < o->min_length) x->most = o->min_length;
    if (x->most < x->prefix.count) x->most = x->prefix.count;
    x->top = (hw_top){0, room, hw_arena_alloc(arena, (size_t)room * sizeof *x->top.items)};
    x->ended = hw_arena_alloc(arena, (size_t)o->n_best * sizeof *x->ended);
}

static bool can_screen(const hw_search_task *task, const hw_search_options *o)
{
    return task->networks == 1 && plain(o);
}

/* A sentence begins with one row, or one a sample. */
static void begin(search *s, const plan *p, int64_t first, int64_t count)
{
    const hw_search_options *o = s->options;
    int64_t most = count * breadth(o), each = o->sampling ? o->n_best : 1;
    bool cover = o->coverage_penalty > 0 && !plain(o);
    hw_ensemble_begin(&s->ensemble, p->task->networks, p->task->runners, count, p->sorted + first, most, cover);
    s->state = hw_ensemble_state(&s->ensemble);
    if (can_screen(p->task, o)) s->screen = hw_runner_screen(p->task->runners[0]);
    hw_arena *arena = s->state->worker->batch;
    s->count = count;
    s->sentences = hw_arena_calloc(arena, (size_t)count, sizeof *s->sentences);
    s->living = hw_arena_calloc(arena, (size_t)most, sizeof *s->living);
    s->next = hw_arena_calloc(arena, (size_t)most, sizeof *s->next);
    s->next_rows = hw_arena_calloc(arena, (size_t)most, sizeof *s->next_rows);
    if (cover) {
        s->stride = p->sorted[first].count + 1; /* the longest goes first */
        s->coverage = hw_arena_calloc(arena, (size_t)(most * s->stride), sizeof *s->coverage);
        s->next_coverage = hw_arena_calloc(arena, (size_t)(most * s->stride), sizeof *s->coverage);
    }
    for (int64_t i = 0; i < count; i++) begin_sentence(s, p, &s->sentences[i], p->places[first + i]);
    for (int64_t i = 0; i < count * each; i++) {
        s->living[i].sample = i % each;
        s->next_rows[i] = (hw_state_row){.sentence = i / each, .from = i, .id = HW_BEGIN};
    }
    hw_ensemble_continue(&s->ensemble, s->next_rows, count * each);
}

static void tell_hypothesis(const search *s, const ended *e, int64_t most, hw_hypothesis *out, hw_arena *arena)
{
    int64_t length = 0;
    for (const token *t = e->last; t; t = t->before) length++;
    int32_t *ids = hw_arena_alloc(arena, (size_t)length * sizeof *ids);
    *out = (hw_hypothesis){.length = length, .ids = ids, .cut = length == most};
    int64_t at = length;
    for (const token *t = e->last; t; t = t->before) ids[--at] = t->id;
    if (plain(s->options)) return;
    hw_real *log_probs = hw_arena_alloc(arena, (size_t)(length + 1) * sizeof *log_probs);
    out->log_probs = log_probs;
    out->log_prob = e->log_prob;
    out->score = e->score;
    log_probs[at = length] = e->end_log_prob;
    for (const token *t = e->last; t; t = t->before) log_probs[--at] = t->log_prob;
}

static void tell(const search *s, hw_hypotheses *out)
{
    hw_arena *arena = s->state->worker->results;
    for (int64_t i = 0; i < s->count; i++) {
        const sentence *x = &s->sentences[i];
        int64_t count = x->finished < s->options->n_best ? x->finished : s->options->n_best;
        hw_hypothesis *items = hw_arena_alloc(arena, (size_t)count * sizeof *items);
        for (int64_t k = 0; k < count; k++) tell_hypothesis(s, &x->ended[k], x->most, &items[k], arena);
        out[x->place] = (hw_hypotheses){count, items};
    }
}

static void search_batch(int i, void *argument)
{
    const plan *p = argument;
    search s = {.options = p->options};
    begin(&s, p, p->first[i], p->first[i + 1] - p->first[i]);
    while (s.state->count) step(&s);
    tell(&s, p->out);
}

/* ---- all batches ------------------------------------------------------------------------------------------------- */

static int by_length(const void *a, const void *b, void *sources)
{
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    int64_t more = ((const hw_ids *)sources)[k].count - ((const hw_ids *)sources)[i].count;
    return more ? (more > 0) - (more < 0) : (i > k) - (i < k);
}

/* Sentences of a batch: as many for each thread, and no more than caches hold. */
static int64_t batch_sentences(const plan *p, int64_t count)
{
    int64_t hypotheses = breadth(p->options), threads = hw_threads(), rows = 0;
    int64_t width = hw_runner_network(p->task->runners[0])->options.width;
    int64_t most = BATCH_HYPOTHESES / hypotheses, fewest = (FEWEST_HYPOTHESES + hypotheses - 1) / hypotheses;
    for (int64_t i = 0; i < count; i++) rows += p->task->sources[i].count + 1;
    int64_t batches = rows * hypotheses * 2 * width / CACHED_NUMBERS;
    if (batches > count / fewest) batches = count / fewest;
    batches = batches > threads ? batches / threads * threads : threads;
    int64_t each = (count + batches - 1) / batches;
    if (most > p->options->batch_sentences) most = p->options->batch_sentences;
    if (each > most) each = most;
    return each > 0 ? each : 1;
}

static void cut(plan *p, int64_t count, hw_arena *arena)
{
    int64_t each = batch_sentences(p, count), rows = 0;
    p->places = hw_arena_alloc(arena, (size_t)count * sizeof *p->places);
    p->first = hw_arena_alloc(arena, ((size_t)count + 1) * sizeof *p->first);
    p->sorted = hw_arena_alloc(arena, (size_t)count * sizeof *p->sorted);
    for (int64_t i = 0; i < count; i++) p->places[i] = i;
    qsort_r(p->places, (size_t)count, sizeof *p->places, by_length, (void *)p->task->sources);
    for (int64_t i = 0; i < count; i++) {
        p->sorted[i] = p->task->sources[p->places[i]];
        rows += p->sorted[i].count + 1;
        if (i && rows <= BATCH_ROWS && i - p->first[p->batches - 1] < each) continue;
        p->first[p->batches++] = i;
        rows = p->sorted[i].count + 1;
    }
    p->first[p->batches] = count;
}

const hw_hypotheses *hw_search_task_run(const hw_search_task *task, const hw_search_options *options)
{
    hw_error err;
    HW_CHECK(hw_search_options_check(options, &err), "%s", err.message);
    HW_CHECK(task->networks > 0 && task->networks <= HW_MOST_NETWORKS, "an ensemble of %d networks", task->networks);
    hw_search_options o = settled(options);
    hw_arena *arena = hw_runner_begin_results(task->runners[0]);
    plan p = {.task = task, .options = &o};
    p.out = hw_arena_calloc(arena, (size_t)task->count, sizeof *p.out);
    cut(&p, task->count, arena);
    if (can_screen(task, &o)) hw_runner_make_screen(task->runners[0]);
    hw_parallel(p.batches, search_batch, &p);
    return p.out;
}

const hw_hypotheses *hw_search(hw_runner *r, const hw_search_options *options, int64_t count, const hw_ids *sources)
{
    return hw_search_task_run(&(hw_search_task){.networks = 1, .runners = &r, .count = count, .sources = sources},
                              options);
}
