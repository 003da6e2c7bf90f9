/* Terms over the heads of one attention, a number a query (or key) row, that regularizers add to the loss: how alike
 * the heads' vectors are, how much they look at the same places, how far their rows are from orthonormal, how spread a
 * row is. Sources: Li et al. 2018, "Multi-Head Attention with Disagreement Regularization", section 3 (subspace,
 * position, output); Lin et al. 2017, "A Structured Self-Attentive Sentence Embedding", section 2.2 (orthogonal). All
 * are made small, so what the papers call disagreement stands here as agreement. */
#include <math.h>
#include <string.h>

#include "op.h"

#define SMALLEST 1e-30 /* a weight below it has no logarithm worth having */

/* What a mean over pairs of heads is divided by. */
static double pairs(int64_t heads, bool diagonal) { return (double)(heads * (diagonal ? heads : heads - 1)); }

/* ---- vectors of the heads ---------------------------------------------------------------------------------------- */

/* head_cosine: y_n = mean over heads i, j of G_ij or G_ij^2, G_ij = u_i . u_j, u_i = x_ni / sqrt(|x_ni|^2 + 1e-12)
 *   du_i = dy_n sum_j c_ij u_j, c_ij = 2 or 4 G_ij over the number of pairs;  dx_ni += (du_i - (du_i . u_i) u_i) /
 * |x_ni| Pairs with i = j are part of the mean only with `diagonal`. */
typedef struct cosine_options {
    int64_t column, heads, width;
    bool diagonal, squared;
} cosine_options;

/* One row at work: units [H K], norms [H], G [H H], a gradient [K]. */
typedef struct cosine_room {
    hw_real *unit, *norm, *gram, *gradient;
} cosine_room;

static const char *head_cosine_shape(hw_node *n)
{
    const cosine_options *o = n->options;
    char text[96];
    if (o->heads < 2 || o->column < 0 || o->column + o->heads * o->width > hw_tensor_cols(n->in[0]))
        return hw_node_reason(n, "%lld heads of width %lld from column %lld: expected two or more that fit %s",
                              (long long)o->heads, (long long)o->width, (long long)o->column,
                              hw_tensor_shape_text(n->in[0], text));
    hw_node_output(n, 2, (int64_t[]){hw_tensor_rows(n->in[0]), 1});
    return NULL;
}

static void look_at_row(const hw_node *n, int64_t row, const cosine_room *r)
{
    const cosine_options *o = n->options;
    const hw_real *x = n->in[0]->data + row * hw_tensor_cols(n->in[0]) + o->column;
    for (int64_t i = 0; i < o->heads; i++) {
        const hw_real *head = x + i * o->width;
        r->norm[i] = (hw_real)sqrt((double)n->kernels->dot(head, head, o->width) + 1e-12);
        n->kernels->scale(r->unit + i * o->width, 1 / r->norm[i], head, o->width);
        for (int64_t j = 0; j <= i; j++)
            r->gram[i * o->heads + j] = r->gram[j * o->heads + i] =
                n->kernels->dot(r->unit + i * o->width, r->unit + j * o->width, o->width);
    }
}

static void head_cosine_forward(hw_node *n)
{
    const cosine_options *o = n->options;
    cosine_room *r = n->saved = hw_arena_alloc(hw_tape_arena(n->tape), sizeof *r);
    *r = (cosine_room){hw_node_scratch(n, (size_t)(o->heads * o->width)), hw_node_scratch(n, (size_t)o->heads),
                       hw_node_scratch(n, (size_t)(o->heads * o->heads)), hw_node_scratch(n, (size_t)o->width)};
    for (int64_t row = 0, rows = hw_tensor_rows(n->in[0]); row < rows; row++) {
        double sum = 0;
        look_at_row(n, row, r);
        for (int64_t i = 0; i < o->heads; i++)
            for (int64_t j = 0; j < o->heads; j++) {
                double g = (double)r->gram[i * o->heads + j];
                if (i != j || o->diagonal) sum += o->squared ? g * g : g;
            }
        n->out[0]->data[row] = (hw_real)(sum / pairs(o->heads, o->diagonal));
    }
}

static void head_cosine_backward(hw_node *n)
{
    const cosine_options *o = n->options;
    const cosine_room *r = n->saved;
    hw_real *dx = hw_input_gradient(n, 0);
    hw_real each = (hw_real)((o->squared ? 4 : 2) / pairs(o->heads, o->diagonal));
    for (int64_t row = 0, rows = hw_tensor_rows(n->in[0]); dx && row < rows; row++) {
        hw_real dy = n->out[0]->grad[row] * each;
        hw_real *drow = dx + row * hw_tensor_cols(n->in[0]) + o->column;
        look_at_row(n, row, r);
        for (int64_t i = 0; i < o->heads; i++) {
            const hw_real *unit = r->unit + i * o->width;
            memset(r->gradient, 0, (size_t)o->width * sizeof *r->gradient);
            for (int64_t j = 0; j < o->heads; j++)
                if (i != j || o->diagonal)
                    n->kernels->axpy(r->gradient, o->squared ? dy * r->gram[i * o->heads + j] : dy,
                                     r->unit + j * o->width, o->width);
            n->kernels->axpy(r->gradient, -n->kernels->dot(r->gradient, unit, o->width), unit, o->width);
            n->kernels->axpy(drow + i * o->width, 1 / r->norm[i], r->gradient, o->width);
        }
    }
}

const hw_op hw_op_head_cosine = {"head_cosine", head_cosine_shape, head_cosine_forward, head_cosine_backward, NULL};

hw_tensor *hw_head_cosine(hw_tape *t, hw_tensor *x, int64_t column, int64_t heads, int64_t width, bool diagonal,
                          bool squared)
{
    cosine_options o = {column, heads, width, diagonal, squared};
    return hw_apply(t, &hw_op_head_cosine, 1, &x, &o, sizeof o)->out[0];
}

/* ---- rows of attention weights ----------------------------------------------------------------------------------- */

typedef struct rows_options {
    hw_attention_blocks blocks;
    bool diagonal;
} rows_options;

/* Query t of sentence b: A_h is at first + h step, `keys` numbers. */
typedef struct row_at {
    int64_t first, step, keys, visible;
} row_at;

static const char *rows_shape(hw_node *n)
{
    const hw_attention_blocks *b = &((const rows_options *)n->options)->blocks;
    int64_t size = 0;
    for (int64_t i = 0; i < b->queries.count; i++) size += b->heads * b->queries.length[i] * b->keys.length[i];
    if (size != hw_tensor_size(n->in[0]))
        return hw_node_reason(n, "%lld weights, but %lld heads over these sentences have %lld",
                              (long long)hw_tensor_size(n->in[0]), (long long)b->heads, (long long)size);
    hw_node_output(n, 2, (int64_t[]){hw_segments_rows(&b->queries), 1});
    return NULL;
}

/* Calls work for every query row of every sentence; backward rather than forward where dx is given. */
static void each_row(hw_node *n, hw_real *dx, void (*work)(hw_node *n, const row_at *at, hw_real *y, hw_real *dx))
{
    const hw_attention_blocks *b = &((const rows_options *)n->options)->blocks;
    int64_t block = 0, row = 0;
    for (int64_t i = 0; i < b->queries.count; i++) {
        int64_t queries = b->queries.length[i], keys = b->keys.length[i];
        for (int64_t t = 0; t < queries; t++, row++) {
            row_at at = {block + t * keys, queries * keys, keys, b->causal ? t + keys - queries + 1 : keys};
            work(n, &at, (dx ? n->out[0]->grad : n->out[0]->data) + row, dx);
        }
        block += b->heads * queries * keys;
    }
}

/* Room for the sum of the heads' rows, or for their products [H H]. */
static void make_room(hw_node *n, bool products)
{
    const hw_attention_blocks *b = &((const rows_options *)n->options)->blocks;
    int64_t size = products ? b->heads * b->heads : 1;
    for (int64_t i = 0; !products && i < b->keys.count; i++)
        if (b->keys.length[i] > size) size = b->keys.length[i];
    n->saved = hw_node_scratch(n, (size_t)size);
}

static hw_tensor *over_rows(hw_tape *t, const hw_op *op, hw_tensor *weights, const hw_attention_blocks *blocks,
                            bool diagonal)
{
    rows_options o = {*blocks, diagonal};
    return hw_apply(t, op, 1, &weights, &o, sizeof o)->out[0];
}

/* head_overlap: y_t = mean over heads i, j of A_ti . A_tj = (|s|^2 - sum_i |A_ti|^2) / pairs, s = sum_i A_ti
 *   dA_ti += 2 dy_t (s - A_ti) / pairs;  with the diagonal without the terms in |A_ti|^2 and A_ti. */
static void overlap_row(hw_node *n, const row_at *at, hw_real *y, hw_real *dx)
{
    const rows_options *o = n->options;
    const hw_real *a = n->in[0]->data + at->first;
    hw_real *s = n->saved, own = 0;
    memset(s, 0, (size_t)at->keys * sizeof *s);
    for (int64_t h = 0; h < o->blocks.heads; h++, a += at->step) {
        n->kernels->add(s, a, at->keys);
        if (!dx && !o->diagonal) own += n->kernels->dot(a, a, at->keys);
    }
    double count = pairs(o->blocks.heads, o->diagonal);
    if (!dx) {
        *y = (hw_real)((double)(n->kernels->dot(s, s, at->keys) - own) / count);
        return;
    }
    hw_real dy = (hw_real)(2 / count) * *y;
    a = n->in[0]->data + at->first;
    for (int64_t h = 0; h < o->blocks.heads; h++) {
        n->kernels->axpy(dx + at->first + h * at->step, dy, s, at->keys);
        if (!o->diagonal) n->kernels->axpy(dx + at->first + h * at->step, -dy, a + h * at->step, at->keys);
    }
}
static void head_overlap_forward(hw_node *n) { make_room(n, false), each_row(n, NULL, overlap_row); }
static void head_overlap_backward(hw_node *n) { each_row(n, hw_input_gradient(n, 0), overlap_row); }

const hw_op hw_op_head_overlap = {"head_overlap", rows_shape, head_overlap_forward, head_overlap_backward, NULL};

hw_tensor *hw_head_overlap(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks, bool diagonal)
{
    return over_rows(t, &hw_op_head_overlap, weights, blocks, diagonal);
}

/* head_orthogonal: y_t = |A_t A_t' - I|^2, A_t [H, m] (Frobenius);  dA_t += 4 dy_t (A_t A_t' - I) A_t */
static void orthogonal_row(hw_node *n, const row_at *at, hw_real *y, hw_real *dx)
{
    int64_t heads = ((const rows_options *)n->options)->blocks.heads;
    const hw_real *a = n->in[0]->data + at->first;
    hw_real *g = n->saved;
    double sum = 0;
    for (int64_t i = 0; i < heads; i++)
        for (int64_t j = 0; j <= i; j++) {
            hw_real d = n->kernels->dot(a + i * at->step, a + j * at->step, at->keys) - (hw_real)(i == j);
            g[i * heads + j] = g[j * heads + i] = d;
            sum += (i == j ? 1 : 2) * (double)d * (double)d;
        }
    if (!dx) *y = (hw_real)sum;
    for (int64_t i = 0; dx && i < heads; i++)
        for (int64_t j = 0; j < heads; j++)
            n->kernels->axpy(dx + at->first + i * at->step, 4 * *y * g[i * heads + j], a + j * at->step, at->keys);
}
static void head_orthogonal_forward(hw_node *n) { make_room(n, true), each_row(n, NULL, orthogonal_row); }
static void head_orthogonal_backward(hw_node *n) { each_row(n, hw_input_gradient(n, 0), orthogonal_row); }

const hw_op hw_op_head_orthogonal = {"head_orthogonal", rows_shape, head_orthogonal_forward, head_orthogonal_backward,
                                     NULL};

hw_tensor *hw_head_orthogonal(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks)
{
    return over_rows(t, &hw_op_head_orthogonal, weights, blocks, true);
}

/* Of the precision that is computed in: the logarithm is what the term costs. */
static hw_real log_of(hw_real x)
{
    return sizeof x == sizeof(float) ? (hw_real)logf((float)x) : (hw_real)log((double)x);
}

/* head_entropy: y_t = mean over heads of -sum_k A_thk log A_thk / log(visible keys), 0 where one key is visible
 *   dA_thk += -dy_t (log A_thk + 1) / (H log(visible keys)) */
static void entropy_row(hw_node *n, const row_at *at, hw_real *y, hw_real *dx)
{
    int64_t heads = ((const rows_options *)n->options)->blocks.heads;
    double scale = at->visible > 1 ? 1 / ((double)heads * log((double)at->visible)) : 0, sum = 0;
    for (int64_t h = 0; h < heads; h++) {
        const hw_real *a = n->in[0]->data + at->first + h * at->step;
        hw_real *d = dx ? dx + at->first + h * at->step : NULL;
        for (int64_t k = 0; k < at->visible; k++) {
            if (a[k] <= (hw_real)SMALLEST) continue;
            hw_real l = log_of(a[k]);
            if (d)
                d[k] -= (hw_real)scale * *y * (l + 1);
            else
                sum -= (double)(a[k] * l);
        }
    }
    if (!dx) *y = (hw_real)(sum * scale);
}
static void head_entropy_forward(hw_node *n) { each_row(n, NULL, entropy_row); }
static void head_entropy_backward(hw_node *n) { each_row(n, hw_input_gradient(n, 0), entropy_row); }

const hw_op hw_op_head_entropy = {"head_entropy", rows_shape, head_entropy_forward, head_entropy_backward, NULL};

hw_tensor *hw_head_entropy(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks)
{
    return over_rows(t, &hw_op_head_entropy, weights, blocks, true);
}
