/* Networks side by side, on the same sentences: how far each head of one looks from where each head of another looks,
 * and how each network's heads spread and overlap, a row a sentence.
 *
 * Heads have no names of their own: two runs of one configuration may put the same behaviour at different places. So
 * heads are matched by what they do, the mean Jensen-Shannon distance between their rows of attention (all rows, <s>
 * and
 * </s> included), in the cheapest one-to-one way. Two unrelated sets of heads have a cheapest matching too, hence the
 * mean distance over all pairs beside it. Sentences are kept apart, so nothing depends on threads. */
#include "heads/diversity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 128 }; /* pairs of sentences run at a time */

/* What one network did with a slice. */
typedef struct recording {
    const hw_transformer *network;
    const hw_head *heads;
    int count;
    hw_runner *runner;
    double ***weights; /* [pairs of the slice][heads] -> rows, each made to sum to 1 */
} recording;

typedef struct comparison {
    recording *of; /* [models] */
    int models;
    hw_study_set slice;
    double **sums; /* [pairs of the slice] -> profiles of all models, then distances of all pairs of heads */
    hw_head_profile *profiles; /* [models] */
} comparison;

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct keeping {
    recording *r;
    const hw_study_set *slice;
} keeping;

static void keep(int i, const hw_visit *v, void *argument)
{
    (void)i;
    const keeping *k = argument;
    for (int a = 0; a < k->r->network->attentions; a++) {
        const hw_recorded *rec = &v->attentions[a];
        const hw_real *from = rec->weights->data;
        int64_t heads = hw_transformer_attention(k->r->network, a)->heads;
        int first = 0;
        while (k->r->heads[first].attention != a) first++;
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            int64_t rows = rec->queries.length[b], cols = rec->keys.length[b];
            for (int64_t h = 0; h < heads; h++)
                for (int64_t t = 0; t < rows; t++, from += cols) {
                    double *to = k->r->weights[v->batch->lines[b]][first + h] + t * cols, sum = 0;
                    for (int64_t c = 0; c < cols; c++) sum += (double)from[c];
                    for (int64_t c = 0; c < cols; c++) to[c] = (double)from[c] / sum;
                }
        }
    }
}

static void size_of(const hw_study_pair *p, hw_attention_kind kind, int64_t *rows, int64_t *cols)
{
    *rows = p->words[kind == HW_ENCODER_SELF ? HW_SOURCE : HW_TARGET].ids.count + 1;
    *cols = p->words[kind == HW_DECODER_SELF ? HW_TARGET : HW_SOURCE].ids.count + 1;
}

static void record(recording *r, const hw_study_set *slice, hw_arena *arena)
{
    r->weights = hw_arena_alloc(arena, (size_t)slice->count * sizeof *r->weights);
    for (int64_t i = 0; i < slice->count; i++) {
        r->weights[i] = hw_arena_alloc(arena, (size_t)r->count * sizeof **r->weights);
        for (int h = 0; h < r->count; h++) {
            int64_t rows, cols;
            size_of(&slice->pairs[i], r->heads[h].kind, &rows, &cols);
            r->weights[i][h] = hw_arena_alloc(arena, (size_t)(rows * cols) * sizeof(double));
        }
    }
    hw_study_visit(slice, r->runner, &(hw_visit_options){.weights = true}, keep, &(keeping){r, slice});
}

/* ---- one sentence ------------------------------------------------------------------------------------------------ */

/* sum p log2 p of every row of a head. */
static void negative_entropies(const double *weights, int64_t rows, int64_t cols, double *out)
{
    for (int64_t t = 0; t < rows; t++) out[t] = hw_negative_entropy(weights + t * cols, weights + t * cols, cols);
}

static double summed_js(const double *a, const double *b, const double *of_a, const double *of_b, int64_t rows,
                        int64_t cols)
{
    double sum = 0;
    for (int64_t t = 0; t < rows; t++) {
        double divergence = 0.5 * (of_a[t] + of_b[t]) - hw_negative_entropy(a + t * cols, b + t * cols, cols);
        sum += sqrt(fmax(divergence, 0));
    }
    return sum;
}

/* [heads][rows] of one network in one sentence. */
static double **entropies_of(const recording *r, const hw_study_pair *p, int64_t i, hw_arena *arena)
{
    double **all = hw_arena_alloc(arena, (size_t)r->count * sizeof *all);
    for (int h = 0; h < r->count; h++) {
        int64_t rows, cols;
        size_of(p, r->heads[h].kind, &rows, &cols);
        all[h] = hw_arena_alloc(arena, (size_t)rows * sizeof **all);
        negative_entropies(r->weights[i][h], rows, cols, all[h]);
    }
    return all;
}

/* Relative entropy over rows that may see two keys at least; overlap and distance of two heads of an attention. */
static void profile(const recording *r, const hw_study_pair *p, int64_t i, double **entropy, double out[6])
{
    memset(out, 0, 6 * sizeof *out);
    for (int h = 0; h < r->count; h++) {
        int64_t rows, cols;
        hw_attention_kind kind = r->heads[h].kind;
        size_of(p, kind, &rows, &cols);
        for (int64_t t = 0; t < rows; t++) {
            int64_t seen = kind == HW_DECODER_SELF ? t + 1 : cols;
            if (seen < 2) continue;
            out[0] += -entropy[h][t] / log2((double)seen);
            out[1]++;
        }
        for (int k = h + 1; k < r->count && r->heads[k].attention == r->heads[h].attention; k++) {
            const double *a = r->weights[i][h], *b = r->weights[i][k];
            out[2] += summed_js(a, b, entropy[h], entropy[k], rows, cols);
            for (int64_t c = 0; c < rows * cols; c++) out[4] += a[c] * b[c];
            out[3] += (double)rows;
            out[5] += (double)rows;
        }
    }
}

/* The pairs of the first network's heads with those of the others, and each network by itself. */
static void one_pair(int i, void *argument)
{
    comparison *c = argument;
    hw_arena *arena = hw_arena_new(0);
    const hw_study_pair *p = &c->slice.pairs[i];
    double ***entropy = hw_arena_alloc(arena, (size_t)c->models * sizeof *entropy), *js = c->sums[i];
    for (int m = 0; m < c->models; m++) {
        entropy[m] = entropies_of(&c->of[m], p, i, arena);
        profile(&c->of[m], p, i, entropy[m], js);
        js += 6;
    }
    for (int m = 1; m < c->models; m++)
        for (int a = 0; a < c->of[0].count; a++)
            for (int b = 0; b < c->of[m].count; b++, js++) {
                int64_t rows, cols;
                if (c->of[0].heads[a].kind != c->of[m].heads[b].kind) continue;
                size_of(p, c->of[0].heads[a].kind, &rows, &cols);
                *js =
                    summed_js(c->of[0].weights[i][a], c->of[m].weights[i][b], entropy[0][a], entropy[m][b], rows, cols);
            }
    hw_arena_free(arena);
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void run_slice(comparison *c, double **total, double rows[2])
{
    hw_arena *arena = hw_arena_new(0);
    size_t numbers = 6 * (size_t)c->models;
    for (int m = 0; m < c->models; m++) {
        record(&c->of[m], &c->slice, arena);
        if (m) numbers += (size_t)c->of[0].count * (size_t)c->of[m].count;
    }
    c->sums = hw_arena_alloc(arena, (size_t)c->slice.count * sizeof *c->sums);
    for (int64_t i = 0; i < c->slice.count; i++) c->sums[i] = hw_arena_calloc(arena, numbers, sizeof **c->sums);
    hw_parallel((int)c->slice.count, one_pair, c);
    for (int64_t i = 0; i < c->slice.count; i++) {
        const double *js = c->sums[i];
        for (int m = 0; m < c->models; m++, js += 6) {
            hw_tally_add(&c->profiles[m].entropy, js);
            hw_tally_add(&c->profiles[m].js, js + 2);
            hw_tally_add(&c->profiles[m].position, js + 4);
        }
        for (int m = 1; m < c->models; m++)
            for (int k = 0; k < c->of[0].count * c->of[m].count; k++) total[m][k] += *js++;
        for (int s = 0; s < 2; s++) rows[s] += (double)(c->slice.pairs[i].words[s].ids.count + 1);
    }
    hw_arena_free(arena);
}

static void begin(comparison *c, const hw_bundle *const *bundles, hw_arena *arena)
{
    c->of = hw_arena_calloc(arena, (size_t)c->models, sizeof *c->of);
    for (int m = 0; m < c->models; m++) {
        c->of[m].network = bundles[m]->network;
        c->of[m].heads = hw_heads_of(bundles[m]->network, arena, &c->of[m].count);
        c->of[m].runner = hw_runner_new(bundles[m]->network);
        hw_tally_init(&c->profiles[m].entropy, 2, hw_ratio_score, NULL);
        hw_tally_init(&c->profiles[m].js, 2, hw_ratio_score, NULL);
        hw_tally_init(&c->profiles[m].position, 2, hw_ratio_score, NULL);
    }
}

double **hw_head_distances(const hw_bundle *const *bundles, int models, const hw_study_set *set,
                           hw_head_profile *profiles, hw_progress_function progress, void *context, hw_arena *arena)
{
    comparison c = {.models = models, .profiles = profiles};
    begin(&c, bundles, arena);
    double **total = hw_arena_calloc(arena, (size_t)models, sizeof *total), rows[2] = {0, 0}, begun = hw_seconds();
    for (int m = 1; m < models; m++)
        total[m] = hw_arena_calloc(arena, (size_t)c.of[0].count * (size_t)c.of[m].count, sizeof **total);
    for (int64_t at = 0; at < set->count; at += SLICE) {
        c.slice = *set;
        c.slice.pairs += at;
        c.slice.count = set->count - at < SLICE ? set->count - at : SLICE;
        run_slice(&c, total, rows);
        hw_progress p = {.what = "compare",
                         .done = at + c.slice.count,
                         .total = set->count,
                         .seconds = hw_seconds() - begun,
                         .last = at + SLICE >= set->count};
        if (progress) progress(&p, context);
    }
    for (int m = 1; m < models; m++)
        for (int a = 0; a < c.of[0].count; a++)
            for (int b = 0; b < c.of[m].count; b++) {
                hw_attention_kind kind = c.of[0].heads[a].kind;
                double *d = &total[m][a * c.of[m].count + b];
                *d = kind == c.of[m].heads[b].kind ? *d / rows[kind == HW_ENCODER_SELF ? HW_SOURCE : HW_TARGET] : NAN;
            }
    for (int m = 0; m < models; m++) hw_runner_free(c.of[m].runner);
    return total;
}

void hw_head_profile_clear(hw_head_profile *p)
{
    hw_tally_clear(&p->entropy);
    hw_tally_clear(&p->js);
    hw_tally_clear(&p->position);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

void hw_head_match(const hw_head *a, int a_count, const hw_head *b, int b_count, const double *distances,
                   bool same_layer, hw_head_pair *out)
{
    hw_arena *arena = hw_arena_new(0);
    double *cost = hw_arena_alloc(arena, (size_t)a_count * (size_t)b_count * sizeof *cost);
    int *column = hw_arena_alloc(arena, (size_t)a_count * sizeof *column);
    for (int i = 0; i < a_count; i++) {
        double sum = 0;
        int allowed = 0;
        out[i] = (hw_head_pair){.match = -1, .nearest = -1, .js = NAN, .chance = NAN};
        for (int j = 0; j < b_count; j++) {
            double d = distances[i * b_count + j];
            bool may = a[i].kind == b[j].kind && (!same_layer || hw_head_layer(&a[i]) == hw_head_layer(&b[j]));
            cost[i * b_count + j] = may ? d : INFINITY;
            if (!may) continue;
            sum += d;
            allowed++;
            if (out[i].nearest < 0 || d < distances[i * b_count + out[i].nearest]) out[i].nearest = j;
        }
        if (allowed) out[i].chance = sum / allowed;
    }
    hw_assign(a_count, b_count, cost, column);
    for (int i = 0; i < a_count; i++) {
        out[i].match = column[i];
        if (column[i] >= 0) out[i].js = distances[i * b_count + column[i]];
    }
    hw_arena_free(arena);
}

int hw_head_layer(const hw_head *head) { return atoi(strchr(head->name, '.') + 1); }
