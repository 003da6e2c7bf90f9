/* Runners: a network and what each thread needs to run it; and pairs of sentences run with the target fed (teacher
 * forcing).
 *
 * A thread makes its tape and arenas when it first takes part, and they stay, so that in a steady state nothing is
 * allocated. Batches of pairs are cut by lengths alone, small enough for activations to stay in cache, and every sum is
 * taken in the order of the pairs, so that no figure depends on threads. */
#include "decode/runner.h"

#include <stdlib.h>
#include <string.h>

struct hw_runner {
    const hw_transformer *network;
    const hw_head_setting *settings;
    bool profiling;
    hw_screen *screen;      /* of the output layer */
    int64_t screen_version; /* of the parameters it was made from; 0: never */
    hw_worker workers[HW_MOST_THREADS];
};

hw_runner *hw_runner_new(const hw_transformer *network)
{
    hw_runner *r = calloc(1, sizeof *r);
    HW_CHECK(r, "no memory for a runner");
    r->network = network;
    return r;
}

void hw_runner_free(hw_runner *r)
{
    if (!r) return;
    hw_screen_free(r->screen);
    for (int i = 0; i < HW_MOST_THREADS; i++) {
        hw_tape_free(r->workers[i].tape);
        hw_arena_free(r->workers[i].batch);
        hw_arena_free(r->workers[i].results);
        free(r->workers[i].profile);
    }
    free(r);
}

void hw_runner_settings(hw_runner *r, const hw_head_setting *settings) { r->settings = settings; }
const hw_transformer *hw_runner_network(const hw_runner *r) { return r->network; }
const hw_head_setting *hw_runner_head_settings(const hw_runner *r) { return r->settings; }

hw_worker *hw_runner_worker(hw_runner *r)
{
    hw_worker *w = &r->workers[hw_thread_index()];
    if (!w->tape) *w = (hw_worker){.tape = hw_tape_new(), .batch = hw_arena_new(0), .results = hw_arena_new(0)};
    if (r->profiling && !w->profile) {
        w->profile = calloc((size_t)hw_op_count(), sizeof *w->profile);
        HW_CHECK(w->profile, "no memory for a profile");
    }
    hw_tape_profile(w->tape, w->profile);
    hw_arena_reset(w->batch);
    return w;
}

hw_arena *hw_runner_begin_results(hw_runner *r)
{
    for (int i = 0; i < HW_MOST_THREADS; i++)
        if (r->workers[i].results) hw_arena_reset(r->workers[i].results);
    return hw_runner_worker(r)->results;
}

enum { FEWEST_OUTPUTS = 1024 }; /* below, multiplying by all is as fast */

void hw_runner_make_screen(hw_runner *r)
{
    const hw_transformer *m = r->network;
    int64_t version = hw_parameters_version(m->parameters);
    if (version == r->screen_version || m->output_weight->shape[0] < FEWEST_OUTPUTS) return;
    hw_screen_free(r->screen);
    r->screen = hw_screen_new(m->output_weight->packed, m->output_bias->data);
    r->screen_version = version;
}

const hw_screen *hw_runner_screen(const hw_runner *r) { return r->screen; }

/* ---- for bench --------------------------------------------------------------------------------------------------- */

void hw_runner_profile(hw_runner *r, bool on)
{
    r->profiling = on;
    for (int i = 0; i < HW_MOST_THREADS; i++) {
        free(r->workers[i].profile);
        r->workers[i].profile = NULL;
        memset(r->workers[i].parts, 0, sizeof r->workers[i].parts);
    }
}

double hw_worker_clock(const hw_worker *w) { return w->profile ? hw_seconds() : 0; }

void hw_runner_profile_sum(const hw_runner *r, hw_profile_entry *entries)
{
    memset(entries, 0, (size_t)hw_op_count() * sizeof *entries);
    for (int i = 0; i < HW_MOST_THREADS; i++)
        for (int op = 0; r->workers[i].profile && op < hw_op_count(); op++)
            hw_profile_add(&entries[op], &r->workers[i].profile[op]);
}

void hw_runner_profile_parts(const hw_runner *r, double seconds[HW_SEARCH_PARTS])
{
    memset(seconds, 0, HW_SEARCH_PARTS * sizeof *seconds);
    for (int i = 0; i < HW_MOST_THREADS; i++)
        for (int part = 0; part < HW_SEARCH_PARTS; part++) seconds[part] += r->workers[i].parts[part];
}

int64_t hw_runner_mallocs(const hw_runner *r)
{
    int64_t mallocs = 0;
    for (int i = 0; i < HW_MOST_THREADS; i++) {
        const hw_worker *w = &r->workers[i];
        if (w->tape)
            mallocs +=
                hw_arena_mallocs(hw_tape_arena(w->tape)) + hw_arena_mallocs(w->batch) + hw_arena_mallocs(w->results);
    }
    return mallocs;
}

/* ---- batches of pairs -------------------------------------------------------------------------------------------- */

enum { BATCH_ROWS = 512 }; /* of a side; a longer sentence goes alone */

typedef struct cut {
    int64_t count;
    const hw_ids *sources, *targets;
    int batches;
    int64_t *first; /* [batches + 1] */
} cut;

/* The pairs in batches of neighbours. */
static cut cut_pairs(hw_arena *arena, int64_t count, const hw_ids *sources, const hw_ids *targets)
{
    cut c = {.count = count, .sources = sources, .targets = targets};
    c.first = hw_arena_alloc(arena, ((size_t)count + 1) * sizeof *c.first);
    int64_t source = 0, target = 0;
    for (int64_t i = 0; i < count; i++) {
        source += sources[i].count + 1;
        target += targets[i].count + 1;
        if (i && source <= BATCH_ROWS && target <= BATCH_ROWS) continue;
        c.first[c.batches++] = i;
        source = sources[i].count + 1;
        target = targets[i].count + 1;
    }
    c.first[c.batches] = count;
    return c;
}

typedef struct tour {
    hw_runner *runner;
    const cut *cut;
    const hw_visit_options *options;
    void (*visit)(int i, const hw_visit *visit, void *argument);
    void *argument;
} tour;

static hw_batch *batch_of(hw_arena *arena, const cut *c, int i)
{
    int64_t first = c->first[i], count = c->first[i + 1] - first;
    int64_t *places = hw_arena_alloc(arena, (size_t)count * sizeof *places);
    for (int64_t k = 0; k < count; k++) places[k] = first + k;
    return hw_batch_new(arena, count, c->sources + first, c->targets + first, places);
}

static void visit_batch(int i, void *argument)
{
    const tour *t = argument;
    const hw_transformer *m = t->runner->network;
    hw_worker *w = hw_runner_worker(t->runner);
    const hw_batch *b = batch_of(w->batch, t->cut, i);
    bool record = t->options->heads || t->options->weights || t->options->gates;
    hw_recorder recorder = {.weights = t->options->weights, .gates = t->options->gates};
    if (record) recorder.entries = hw_arena_calloc(w->batch, (size_t)m->attentions, sizeof *recorder.entries);
    hw_real *nll = hw_arena_alloc(w->batch, (size_t)b->target_rows * sizeof *nll);
    hw_visit v = {.tape = w->tape, .batch = b, .attentions = recorder.entries, .nll = nll};

    hw_tape_reset(w->tape, t->options->mode);
    hw_pass pass = {.tape = w->tape, .recorder = record ? &recorder : NULL, .settings = t->runner->settings};
    hw_token_rows source = {.rows = b->source_rows, .ids = b->source_ids, .segments = b->source};
    hw_token_rows target = {.rows = b->target_rows, .ids = b->target_in, .segments = b->target};
    v.loss = hw_transformer_loss(&pass, m, &source, &target, b->target_out, (hw_real)t->options->smoothing, 1, &v.count,
                                 nll);
    t->visit(i, &v, t->argument);
}

int hw_visit_pairs(hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets,
                   const hw_visit_options *options, void (*visit)(int i, const hw_visit *visit, void *argument),
                   void *argument)
{
    hw_arena *arena = hw_arena_new(0);
    cut c = cut_pairs(arena, count, sources, targets);
    hw_parallel(c.batches, visit_batch, &(tour){r, &c, options, visit, argument});
    hw_arena_free(arena);
    return c.batches;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

typedef struct scores {
    hw_loss_count *counts;  /* of each batch */
    const int64_t *offsets; /* of each pair's first row in nll */
    hw_real *nll;
} scores;

static void keep_scores(int i, const hw_visit *v, void *argument)
{
    const scores *s = argument;
    s->counts[i] = v->count;
    memcpy(s->nll + s->offsets[v->batch->lines[0]], v->nll, (size_t)v->batch->target_rows * sizeof *v->nll);
}

hw_loss_count hw_score_pairs(hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets,
                             double smoothing, hw_real *nll)
{
    hw_arena *arena = hw_arena_new(0);
    cut c = cut_pairs(arena, count, sources, targets);
    int64_t *offsets = hw_arena_alloc(arena, ((size_t)count + 1) * sizeof *offsets);
    offsets[0] = 0;
    for (int64_t i = 0; i < count; i++) offsets[i + 1] = offsets[i] + targets[i].count + 1;
    scores s = {hw_arena_calloc(arena, (size_t)c.batches, sizeof *s.counts), offsets, nll};
    if (!nll) s.nll = hw_arena_alloc(arena, (size_t)offsets[count] * sizeof *s.nll);

    hw_parallel(c.batches, visit_batch, &(tour){r, &c, &(hw_visit_options){.smoothing = smoothing}, keep_scores, &s});
    hw_loss_count sum = {.tokens = offsets[count]};
    for (int i = 0; i < c.batches; i++) {
        sum.loss += s.counts[i].loss;
        sum.correct += s.counts[i].correct;
    }
    for (int64_t t = 0; t < sum.tokens; t++) sum.nll += (double)s.nll[t];
    hw_arena_free(arena);
    return sum;
}

hw_loss_count hw_score_corpus(hw_runner *r, const hw_corpus *corpus, int64_t most, double smoothing)
{
    int64_t count = hw_corpus_count(corpus)->pairs;
    if (most && most < count) count = most;
    hw_arena *arena = hw_arena_new(0);
    hw_ids *sources = hw_arena_alloc(arena, (size_t)count * sizeof *sources);
    hw_ids *targets = hw_arena_alloc(arena, (size_t)count * sizeof *targets);
    for (int64_t i = 0; i < count; i++) {
        sources[i] = hw_corpus_source(corpus, i);
        targets[i] = hw_corpus_target(corpus, i);
    }
    hw_loss_count sum = hw_score_pairs(r, count, sources, targets, smoothing, NULL);
    hw_arena_free(arena);
    return sum;
}

/* ---- looking inside ---------------------------------------------------------------------------------------------- */

enum { MOST_EXAMINED = 64 }; /* pairs at once; more gain no time */

typedef struct examination {
    const hw_transformer *network;
    hw_examined *results;
} examination;

static void keep_examined(int i, const hw_visit *v, void *argument)
{
    (void)i;
    const examination *e = argument;
    for (int a = 0; a < e->network->attentions; a++) {
        const hw_real *weights = v->attentions[a].weights->data;
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            const hw_attention_map *map = &e->results[v->batch->lines[b]].attention[a];
            size_t size = (size_t)(map->heads * map->queries * map->keys);
            memcpy(map->weights, weights, size * sizeof *weights);
            weights += size;
        }
    }
    for (int64_t b = 0; b < v->batch->sentences; b++) {
        const hw_examined *x = &e->results[v->batch->lines[b]];
        for (int64_t t = 0; t < x->rows; t++) x->log_probs[t] = -v->nll[v->batch->target.start[b] + t];
    }
}

/* Of the a-th attention and a pair of so many source and target rows, without weights. */
static hw_attention_map map_of(const hw_transformer *m, int a, int64_t n, int64_t rows)
{
    const hw_attention_layer *layer = hw_transformer_attention(m, a);
    bool encoder = a < m->options.encoder_layers;
    bool cross = !encoder && layer == &m->decoder[(a - m->options.encoder_layers) / 2].cross;
    return (hw_attention_map){.name = layer->name,
                              .heads = layer->heads,
                              .queries = encoder ? n : rows,
                              .keys = encoder || cross ? n : rows,
                              .head_names = layer->head_names};
}

static int64_t numbers_of(const hw_attention_map *map) { return map->heads * map->queries * map->keys; }

int64_t hw_examine_count(const hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets, int64_t most)
{
    int64_t numbers = 0, pairs = 0;
    for (; pairs < count && pairs < MOST_EXAMINED; pairs++) {
        for (int a = 0; a < r->network->attentions; a++) {
            hw_attention_map map = map_of(r->network, a, sources[pairs].count + 1, targets[pairs].count + 1);
            numbers += numbers_of(&map);
        }
        if (pairs && numbers > most) break;
    }
    return pairs;
}

static void prepare(const hw_transformer *m, hw_examined *x, hw_ids source, hw_ids target, hw_arena *arena)
{
    hw_attention_map *maps = hw_arena_calloc(arena, (size_t)m->attentions, sizeof *maps);
    int64_t n = source.count + 1, rows = target.count + 1;
    *x = (hw_examined){rows, hw_arena_alloc(arena, (size_t)rows * sizeof(hw_real)), m->attentions, maps};
    for (int a = 0; a < m->attentions; a++) {
        maps[a] = map_of(m, a, n, rows);
        maps[a].weights = hw_arena_alloc(arena, (size_t)numbers_of(&maps[a]) * sizeof(hw_real));
    }
}

hw_examined *hw_examine(hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets, hw_arena *arena)
{
    hw_examined *results = hw_arena_calloc(arena, (size_t)count, sizeof *results);
    for (int64_t i = 0; i < count; i++) prepare(r->network, &results[i], sources[i], targets[i], arena);
    hw_visit_pairs(r, count, sources, targets, &(hw_visit_options){.weights = true}, keep_examined,
                   &(examination){r->network, results});
    return results;
}
