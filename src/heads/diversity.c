/* How different the heads of a network are, over a data set.
 *
 * Every pair of heads of one kind (encoder, decoder, cross) is compared: where they look, by the Jensen-Shannon
 * distance of their rows (Clark et al. 2019, section 6), and what they give, by linear CKA; heads of one layer also by
 * what Li et al. 2018 call agreement of position, output and subspace. A slice of the set at a time is run; its
 * sentences leave sums, which are added in their order, so that nothing depends on threads. */
#include "heads/diversity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 128 }; /* pairs of sentences run at a time */

typedef struct pair_sums {
    double js, position, orthogonal, output, output_squared, subspace, subspace_squared;
} pair_sums;
enum { SUMS = sizeof(pair_sums) / sizeof(double) };

typedef struct survey {
    const hw_transformer *network;
    const hw_head *head;
    int heads, of_kind[HW_ATTENTION_KINDS];
    int pair_of[HW_ATTENTION_KINDS]; /* the first pair of each kind */
    int count;                       /* of pairs of heads */
    const int *first;                /* [attentions] the place of its first head among those of its kind */
    hw_study_set slice;
    pair_sums **sums;                    /* [SLICE] -> [count] */
    int64_t *row[2];                     /* [SLICE] the first row of each sentence's outputs, source and target */
    double *outputs[HW_ATTENTION_KINDS]; /* [rows][heads of the kind][K] */
} survey;

const char *hw_kind_name(hw_attention_kind kind)
{
    static const char *const names[HW_ATTENTION_KINDS] = {
        [HW_ENCODER_SELF] = "encoder", [HW_DECODER_SELF] = "decoder", [HW_CROSS] = "cross"};
    return names[kind];
}

hw_attention_kind hw_head_kind_of(const char *name)
{
    return !strncmp(name, "encoder", 7) ? HW_ENCODER_SELF : strstr(name, ".cross.") ? HW_CROSS : HW_DECODER_SELF;
}

/* Heads i <= j of a kind -> their place among all pairs: row by row of the upper triangle. */
static int pair_index(const survey *s, hw_attention_kind kind, int i, int j)
{
    return s->pair_of[kind] + i * s->of_kind[kind] - i * (i - 1) / 2 + j - i;
}

/* ---- one sentence ------------------------------------------------------------------------------------------------ */

/* The weights of all heads of a kind for one query, each row made to sum to 1. */
typedef struct query_rows {
    double *weights, *entropy; /* [heads][keys]; sum p log2 p */
} query_rows;

static void add_weights(const survey *s, hw_attention_kind kind, const query_rows *q, int64_t keys, pair_sums *sums)
{
    int heads = s->of_kind[kind], place = s->pair_of[kind];
    for (int i = 0; i < heads; i++)
        for (int j = i; j < heads; j++, place++) {
            const double *a = q->weights + i * keys, *b = q->weights + j * keys;
            double dot = 0, divergence = 0.5 * (q->entropy[i] + q->entropy[j]) - hw_negative_entropy(a, b, keys);
            for (int64_t k = 0; k < keys; k++) dot += a[k] * b[k];
            if (i != j) sums[place].js += sqrt(fmax(divergence, 0));
            sums[place].position += dot;
            sums[place].orthogonal += (dot - (i == j)) * (dot - (i == j));
        }
}

/* Where all heads of a kind look. */
static void add_places(const survey *s, hw_attention_kind kind, const hw_visit *v, int64_t b, const hw_real **blocks,
                       pair_sums *sums)
{
    int heads = s->of_kind[kind], last = 0;
    hw_arena *arena = hw_tape_arena(v->tape);
    for (int a = 0; a < s->network->attentions; a++)
        if (hw_attention_kind_of(s->network, a) == kind) last = a;
    int64_t queries = v->attentions[last].queries.length[b], keys = v->attentions[last].keys.length[b];
    query_rows q = {hw_arena_alloc(arena, (size_t)(heads * keys) * sizeof(double)),
                    hw_arena_alloc(arena, (size_t)heads * sizeof(double))};
    for (int64_t t = 0; t < queries; t++) {
        for (int a = 0; a < s->network->attentions; a++) {
            int64_t of = hw_transformer_attention(s->network, a)->heads;
            for (int64_t h = 0; h < of && hw_attention_kind_of(s->network, a) == kind; h++) {
                const hw_real *from = blocks[a] + (h * queries + t) * keys;
                double *to = q.weights + (s->first[a] + h) * keys, sum = 0;
                for (int64_t k = 0; k < keys; k++) sum += (double)from[k];
                for (int64_t k = 0; k < keys; k++) to[k] = (double)from[k] / sum;
                q.entropy[s->first[a] + h] = hw_negative_entropy(to, to, keys);
            }
        }
        add_weights(s, kind, &q, keys, sums);
    }
}

static double cosine(const hw_real *a, const hw_real *b, int64_t n)
{
    double dot = 0, left = 0, right = 0;
    for (int64_t k = 0; k < n; k++) {
        dot += (double)a[k] * (double)b[k];
        left += (double)a[k] * (double)a[k];
        right += (double)b[k] * (double)b[k];
    }
    return dot / sqrt((left + 1e-12) * (right + 1e-12)); /* as in training: a vector of zeros is like no other */
}

/* Cosines between heads of one attention: of their outputs or of their values. */
static void add_vectors(const survey *s, int attention, const hw_segments *rows, int64_t b, const hw_tensor *x,
                        int64_t column, bool values, pair_sums *sums)
{
    const hw_attention_layer *layer = hw_transformer_attention(s->network, attention);
    hw_attention_kind kind = hw_attention_kind_of(s->network, attention);
    int64_t ld = hw_tensor_cols(x), width = layer->head_width;
    for (int64_t r = 0; r < rows->length[b]; r++) {
        const hw_real *row = x->data + (rows->start[b] + r) * ld + column;
        for (int i = 0; i < layer->heads; i++)
            for (int j = i + 1; j < layer->heads; j++) {
                double c = cosine(row + i * width, row + j * width, width);
                pair_sums *p = &sums[pair_index(s, kind, s->first[attention] + i, s->first[attention] + j)];
                *(values ? &p->subspace : &p->output) += c;
                *(values ? &p->subspace_squared : &p->output_squared) += c * c;
            }
    }
}

static void keep_outputs(const survey *s, int attention, const hw_recorded *r, int64_t b, int64_t first)
{
    const hw_attention_layer *layer = hw_transformer_attention(s->network, attention);
    hw_attention_kind kind = hw_attention_kind_of(s->network, attention);
    int64_t size = layer->heads * layer->head_width, ld = s->of_kind[kind] * layer->head_width;
    for (int64_t t = 0; t < r->queries.length[b]; t++) {
        const hw_real *from = r->heads->data + (r->queries.start[b] + t) * size;
        double *to = s->outputs[kind] + (first + t) * ld + s->first[attention] * layer->head_width;
        for (int64_t k = 0; k < size; k++) to[k] = (double)from[k];
    }
}

static void visit(int i, const hw_visit *v, void *argument)
{
    (void)i;
    const survey *s = argument;
    hw_arena *arena = hw_tape_arena(v->tape);
    const hw_real **blocks = hw_arena_alloc(arena, (size_t)s->network->attentions * sizeof *blocks);
    for (int a = 0; a < s->network->attentions; a++) blocks[a] = v->attentions[a].weights->data;
    for (int64_t b = 0; b < v->batch->sentences; b++) {
        hw_arena_mark mark = hw_arena_begin(arena);
        int64_t sentence = v->batch->lines[b];
        pair_sums *sums = s->sums[sentence];
        for (int kind = 0; kind < HW_ATTENTION_KINDS; kind++)
            add_places(s, (hw_attention_kind)kind, v, b, blocks, sums);
        for (int a = 0; a < s->network->attentions; a++) {
            const hw_recorded *r = &v->attentions[a];
            bool source = hw_attention_kind_of(s->network, a) == HW_ENCODER_SELF;
            add_vectors(s, a, &r->queries, b, r->heads, 0, false, sums);
            add_vectors(s, a, &r->keys, b, r->values, r->value_column, true, sums);
            keep_outputs(s, a, r, b, s->row[source ? HW_SOURCE : HW_TARGET][sentence]);
            blocks[a] += hw_transformer_attention(s->network, a)->heads * r->queries.length[b] * r->keys.length[b];
        }
        hw_arena_end(arena, mark);
    }
}

/* ---- a slice ----------------------------------------------------------------------------------------------------- */

static void add_sums(pair_sums *total, const pair_sums *more)
{
    double *to = (double *)total;
    const double *from = (const double *)more;
    for (int i = 0; i < SUMS; i++) to[i] += from[i];
}

/* Runs the slice and adds what it leaves; rows gets how many there were, source and target. */
static void run_slice(survey *s, hw_runner *runner, pair_sums *total, hw_cka **cka, double rows[2])
{
    hw_arena *arena = hw_arena_new(0);
    int64_t at[2] = {0, 0}, width = hw_transformer_attention(s->network, 0)->head_width;
    s->sums = hw_arena_alloc(arena, (size_t)s->slice.count * sizeof *s->sums);
    for (int side = 0; side < 2; side++) {
        s->row[side] = hw_arena_alloc(arena, (size_t)s->slice.count * sizeof *s->row[side]);
        for (int64_t i = 0; i < s->slice.count; i++) {
            s->row[side][i] = at[side];
            at[side] += s->slice.pairs[i].words[side].ids.count + 1;
        }
        rows[side] += (double)at[side];
    }
    for (int64_t i = 0; i < s->slice.count; i++)
        s->sums[i] = hw_arena_calloc(arena, (size_t)s->count, sizeof *s->sums[i]);
    for (int k = 0; k < HW_ATTENTION_KINDS; k++)
        s->outputs[k] = hw_arena_alloc(
            arena, (size_t)(at[k == HW_ENCODER_SELF ? HW_SOURCE : HW_TARGET] * s->of_kind[k] * width) * sizeof(double));
    hw_study_visit(&s->slice, runner, &(hw_visit_options){.weights = true}, visit, s);
    for (int64_t i = 0; i < s->slice.count; i++)
        for (int p = 0; p < s->count; p++) add_sums(&total[p], &s->sums[i][p]);
    for (int k = 0; k < HW_ATTENTION_KINDS; k++)
        hw_cka_add(cka[k], s->outputs[k], at[k == HW_ENCODER_SELF ? HW_SOURCE : HW_TARGET]);
    hw_arena_free(arena);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static survey survey_of(const hw_transformer *m, hw_arena *arena)
{
    survey s = {.network = m};
    s.head = hw_heads_of(m, arena, &s.heads);
    int *first = hw_arena_calloc(arena, (size_t)m->attentions, sizeof *first);
    for (int h = 0; h < s.heads; h++) {
        if (!s.head[h].head) first[s.head[h].attention] = s.head[h].of_kind;
        s.of_kind[s.head[h].kind]++;
    }
    s.first = first;
    for (int k = 0; k < HW_ATTENTION_KINDS; k++) {
        s.pair_of[k] = s.count;
        s.count += s.of_kind[k] * (s.of_kind[k] + 1) / 2;
    }
    return s;
}

/* The means of one pair of heads. */
static hw_diversity_pair pair_of(const survey *s, int a, int b, const pair_sums *sums, const double rows[2], double cka)
{
    hw_attention_kind kind = s->head[a].kind;
    double queries = rows[kind == HW_ENCODER_SELF ? HW_SOURCE : HW_TARGET];
    double keys = rows[kind == HW_DECODER_SELF ? HW_TARGET : HW_SOURCE];
    bool vectors = a != b && s->head[a].attention == s->head[b].attention;
    return (hw_diversity_pair){
        .a = a,
        .b = b,
        .js = sums->js / queries,
        .position = sums->position / queries,
        .orthogonal = sums->orthogonal / queries,
        .output = vectors ? sums->output / queries : NAN,
        .output_squared = vectors ? sums->output_squared / queries : NAN,
        .subspace = vectors ? sums->subspace / keys : NAN,
        .subspace_squared = vectors ? sums->subspace_squared / keys : NAN,
        .cka = cka,
    };
}

/* All heads of a kind: their pairs, map, and effective numbers. first: its first head among all heads of the model. */
static void finish_kind(hw_diversity *d, const survey *s, hw_attention_kind kind, const pair_sums *total,
                        const double rows[2], const hw_cka *cka)
{
    int n = s->of_kind[kind];
    size_t square = (size_t)n * (size_t)n;
    hw_arena *arena = hw_arena_new(0);
    double *similar = hw_arena_alloc(arena, square * sizeof *similar),
           *part = hw_arena_alloc(arena, square * sizeof *part);
    double *distance = hw_arena_calloc(arena, square, sizeof *distance);
    double(*place)[2] = hw_arena_calloc(arena, (size_t)n, sizeof *place);
    int *index = hw_arena_calloc(arena, (size_t)n, sizeof *index);
    hw_cka_matrix(cka, similar);
    for (int h = 0; h < s->heads; h++)
        if (s->head[h].kind == kind) index[s->head[h].of_kind] = h;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j++) {
            hw_diversity_pair *p = &d->items[pair_index(s, kind, i, j)];
            *p = pair_of(s, index[i], index[j], &total[pair_index(s, kind, i, j)], rows, similar[i * n + j]);
            distance[i * n + j] = distance[j * n + i] = p->js;
        }
    d->shown[kind] = hw_classical_scaling(distance, n, place);
    d->effective[kind] = hw_effective_number(similar, n);
    for (int i = 0; i < n; i++) memcpy(d->place[index[i]], place[i], sizeof *place);
    for (int i = 0, of; i < n; i += of) {
        of = (int)hw_transformer_attention(s->network, s->head[index[i]].attention)->heads;
        for (int k = 0; k < of * of; k++) part[k] = similar[(i + k / of) * n + i + k % of];
        d->layer_effective[s->head[index[i]].attention] = hw_effective_number(part, of);
    }
    hw_arena_free(arena);
}

hw_diversity *hw_diversity_study(const hw_bundle *bundle, const hw_study_set *set, hw_progress_function progress,
                                 void *context, hw_arena *arena)
{
    const hw_transformer *m = bundle->network;
    survey s = survey_of(m, arena);
    hw_diversity *d = hw_arena_calloc(arena, 1, sizeof *d);
    *d = (hw_diversity){.pairs = set->count, .heads = s.heads, .count = s.count, .head = s.head};
    d->items = hw_arena_calloc(arena, (size_t)s.count, sizeof *d->items);
    d->place = hw_arena_calloc(arena, (size_t)s.heads, sizeof *d->place);
    d->layer_effective = hw_arena_calloc(arena, (size_t)m->attentions, sizeof *d->layer_effective);
    pair_sums *total = hw_arena_calloc(arena, (size_t)s.count, sizeof *total);
    hw_cka *cka[HW_ATTENTION_KINDS];
    for (int k = 0; k < HW_ATTENTION_KINDS; k++)
        cka[k] = hw_cka_new(s.of_kind[k], hw_transformer_attention(m, 0)->head_width);
    hw_runner *runner = hw_runner_new(m);
    double rows[2] = {0, 0}, begun = hw_seconds();
    for (int64_t at = 0; at < set->count; at += SLICE) {
        s.slice = *set;
        s.slice.pairs += at;
        s.slice.count = set->count - at < SLICE ? set->count - at : SLICE;
        run_slice(&s, runner, total, cka, rows);
        hw_progress p = {.what = "diversity",
                         .done = at + s.slice.count,
                         .total = set->count,
                         .seconds = hw_seconds() - begun,
                         .last = at + SLICE >= set->count};
        if (progress) progress(&p, context);
    }
    for (int k = 0; k < HW_ATTENTION_KINDS; k++) {
        finish_kind(d, &s, (hw_attention_kind)k, total, rows, cka[k]);
        hw_cka_free(cka[k]);
    }
    hw_runner_free(runner);
    return d;
}
