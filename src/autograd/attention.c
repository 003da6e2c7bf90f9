/* attention: scaled dot-product attention of all heads over ragged sentences (Vaswani et al. 2017, section 3.2).
 *   for each sentence and head:  A = softmax(Q K' / sqrt(K) + mask),  O = dropout(A) V
 *   dV += dropout(A)' dO,  dA = dropout(dO V') + dA_given,  dS = A (dA - rowsum(dA A)) / sqrt(K),
 *   dQ += dS K,  dK += dS' Q
 * The causal mask of the textbook, -1e9 above the diagonal before the softmax, is not added: masked keys are left out,
 * which gives the same numbers. Weights of short sentences are kept for the way back, those of long ones computed
 * again, so that memory grows with the length and not with its square. */
#include <math.h>
#include <string.h>

#include "../tensor/attention_kernel.h"
#include "op.h"

enum { KEEP_AT_MOST = 128 * 128 }; /* weights a head and sentence that are kept rather than computed again */

typedef struct attention_node_options {
    hw_attention_options o;
    bool want_weights;
} attention_node_options;

static const char *check_key_rows(hw_node *n, const hw_attention_options *o)
{
    int64_t rows = hw_tensor_rows(n->in[1]), values = hw_tensor_rows(n->in[2]);
    if (values < rows) rows = values;
    for (int64_t b = 0; b < o->queries.count; b++) {
        if (o->queries.length[b] != 1) return hw_node_reason(n, "rows of keys are given, and not one query a sentence");
        for (int64_t i = 0; i < o->keys.length[b]; i++) {
            int32_t row = o->key_rows[o->keys.start[b] + i];
            if (row < 0 || row >= rows)
                return hw_node_reason(n, "a key of sentence %lld is row %d of %lld", (long long)b, row,
                                      (long long)rows);
        }
    }
    if (o->drop.threshold || n->recorded) return hw_node_reason(n, "rows of keys are given in training");
    return NULL;
}

static const char *check_segments(hw_node *n, const hw_segments *s, const hw_tensor *x, const char *what)
{
    int64_t rows = hw_tensor_rows(x);
    for (int64_t b = 0; b < s->count; b++)
        if (s->start[b] < 0 || s->length[b] < 0 || s->start[b] + s->length[b] > rows)
            return hw_node_reason(n, "%s of sentence %lld are rows %lld to %lld of %lld", what, (long long)b,
                                  (long long)s->start[b], (long long)(s->start[b] + s->length[b]), (long long)rows);
    return NULL;
}

static int64_t weights_size(const hw_attention_options *o)
{
    int64_t size = 0;
    for (int64_t b = 0; b < o->queries.count; b++) size += o->heads * o->queries.length[b] * o->keys.length[b];
    return size;
}

static const char *attention_shape(hw_node *n)
{
    const attention_node_options *a = n->options;
    const hw_attention_options *o = &a->o;
    const int64_t columns[3] = {o->query_column, o->key_column, o->value_column};
    static const char *const names[3] = {"queries", "keys", "values"};
    char text[96];
    for (int i = 0; i < 3; i++)
        if (columns[i] < 0 || columns[i] + o->heads * o->head_width > hw_tensor_cols(n->in[i]))
            return hw_node_reason(n, "%s: %lld heads of width %lld from column %lld do not fit %s", names[i],
                                  (long long)o->heads, (long long)o->head_width, (long long)columns[i],
                                  hw_tensor_shape_text(n->in[i], text));
    if (o->queries.count != o->keys.count)
        return hw_node_reason(n, "queries of %lld sentences, keys of %lld", (long long)o->queries.count,
                              (long long)o->keys.count);
    const char *reason = check_segments(n, &o->queries, n->in[0], "queries");
    if (!reason && o->key_rows) reason = check_key_rows(n, o);
    if (!reason && !o->key_rows) reason = check_segments(n, &o->keys, n->in[1], "keys");
    if (!reason && !o->key_rows) reason = check_segments(n, &o->keys, n->in[2], "values");
    if (reason) return reason;
    hw_node_output(n, 2, (int64_t[]){hw_tensor_rows(n->in[0]), o->heads * o->head_width});
    if (a->want_weights) hw_node_output(n, 1, (int64_t[]){weights_size(o)});
    return NULL;
}

/* What forward keeps: where each sentence's weights lie, [H][n][stride], NULL where they are computed again. */
typedef struct attention_saved {
    hw_real *scratch;
    hw_real **weights;
} attention_saved;

/* Sharpness is not yet in its scale. */
static hw_attention_head plain_head_of(const hw_node *n, int64_t b, int64_t h)
{
    const hw_attention_options *o = &((const attention_node_options *)n->options)->o;
    const hw_tensor *q = n->in[0], *k = n->in[1], *v = n->in[2];
    const attention_saved *s = n->saved;
    int64_t ldq = hw_tensor_cols(q), ldk = hw_tensor_cols(k), ldv = hw_tensor_cols(v);
    int64_t first_key = o->key_rows ? 0 : o->keys.start[b];
    return (hw_attention_head){
        .n = o->queries.length[b],
        .m = o->keys.length[b],
        .width = o->head_width,
        .q = q->data + o->queries.start[b] * ldq + o->query_column + h * o->head_width,
        .k = k->data + first_key * ldk + o->key_column + h * o->head_width,
        .v = v->data + first_key * ldv + o->value_column + h * o->head_width,
        .rows = o->key_rows ? o->key_rows + o->keys.start[b] : NULL,
        .ldq = ldq,
        .ldk = ldk,
        .ldv = ldv,
        .scale = (hw_real)(1 / sqrt((double)o->head_width)),
        .causal = o->causal,
        .drop = &o->drop,
        .first_row = q->first_row + o->queries.start[b],
        .head = h,
        .heads = o->heads,
        .scratch = s->scratch,
    };
}

static hw_attention_head head_of(const hw_node *n, int64_t b, int64_t h)
{
    const hw_attention_options *o = &((const attention_node_options *)n->options)->o;
    hw_attention_head head = plain_head_of(n, b, h);
    if (o->sharpness) head.scale *= o->sharpness[h];
    return head;
}

/* Keys and values of a cache lie apart from those of the sentence before, and one query has too little to do with them
 * for the processor to see what comes next. */
static void fetch_ahead(const hw_node *n, int64_t b)
{
    const hw_attention_options *o = &((const attention_node_options *)n->options)->o;
    if (b >= o->keys.count || o->keys.start[b] == o->keys.start[b - 1]) return;
    for (int i = 1; i < 3; i++) {
        int64_t cols = hw_tensor_cols(n->in[i]), numbers = o->heads * o->head_width;
        const hw_real *x = n->in[i]->data + (i == 1 ? o->key_column : o->value_column);
        for (int64_t j = o->keys.start[b]; j < o->keys.start[b] + o->keys.length[b]; j++) {
            const hw_real *row = x + (o->key_rows ? o->key_rows[j] : j) * cols;
            for (int64_t d = 0; d < numbers; d += 64 / (int64_t)sizeof *x) __builtin_prefetch(row + d, 0, 2);
        }
    }
}

/* All heads of sentence b; weights [heads, rows, stride] or NULL. */
static void sentence_forward(hw_node *n, int64_t b, hw_real *weights)
{
    const hw_attention_options *o = &((const attention_node_options *)n->options)->o;
    const hw_attention_kernels *kernels = n->kernels->attention;
    int64_t rows = o->queries.length[b], size = rows * hw_attention_stride(o->keys.length[b]);
    int64_t ldo = hw_tensor_cols(n->out[0]);
    hw_real *out = n->out[0]->data + o->queries.start[b] * ldo;
    if (rows == 1 && !o->drop.threshold) {
        hw_attention_head first = plain_head_of(n, b, 0);
        fetch_ahead(n, b + 1);
        kernels->single(&first, o->heads, o->sharpness, out, weights);
        return;
    }
    for (int64_t h = 0; h < o->heads; h++) {
        hw_attention_head head = head_of(n, b, h);
        kernels->forward(&head, out + h * o->head_width, ldo, weights ? weights + h * size : NULL);
    }
}

static void attention_forward(hw_node *n)
{
    const attention_node_options *a = n->options;
    const hw_attention_options *o = &a->o;
    hw_arena *arena = hw_tape_arena(n->tape);
    int64_t longest = 0;
    for (int64_t b = 0; b < o->keys.count; b++)
        if (o->keys.length[b] > longest) longest = o->keys.length[b];
    attention_saved *s = hw_arena_alloc(arena, sizeof *s);
    s->scratch = hw_node_scratch(n, (size_t)hw_attention_scratch(longest, o->head_width));
    s->weights = hw_arena_calloc(arena, (size_t)o->queries.count, sizeof *s->weights);
    n->saved = s;
    if (hw_segments_rows(&o->queries) < hw_tensor_rows(n->out[0])) /* rows of no sentence */
        memset(n->out[0]->data, 0, (size_t)hw_tensor_size(n->out[0]) * sizeof(hw_real));

    hw_real *given = a->want_weights ? n->out[1]->data : NULL;
    for (int64_t b = 0; b < o->queries.count; b++) {
        int64_t rows = o->queries.length[b], m = o->keys.length[b];
        int64_t stride = hw_attention_stride(m), all = o->heads * rows;
        bool keep = given || (n->recorded && rows * m <= KEEP_AT_MOST);
        if (keep) s->weights[b] = hw_node_scratch(n, (size_t)(all * stride));
        sentence_forward(n, b, s->weights[b]);
        for (int64_t r = 0; given && r < all; r++, given += m)
            memcpy(given, s->weights[b] + r * stride, (size_t)m * sizeof *given);
    }
}

/* Do the segments reach every row, one after another? */
static bool every_row(const hw_segments *s, int64_t rows)
{
    int64_t next = 0;
    for (int64_t b = 0; b < s->count; b++) {
        if (s->start[b] != next) return false;
        next += s->length[b];
    }
    return next == rows;
}

/* The gradients of queries, keys and values; *set tells that nothing was there and that heads and segments reach every
 * number, so that it can be written instead of cleared and added to. */
static void input_gradients(hw_node *n, hw_real *d[3], bool set[3])
{
    const hw_attention_options *o = &((const attention_node_options *)n->options)->o;
    const int64_t width = o->heads * o->head_width, column[3] = {o->query_column, o->key_column, o->value_column};
    for (int i = 0; i < 3; i++) {
        const hw_tensor *x = n->in[i];
        int64_t uses = 0;
        for (int k = 0; k < 3; k++)
            if (n->in[k] == x)
                uses += k == i || column[k] >= column[i] + width || column[i] >= column[k] + width ? 1 : 4;
        bool all = uses * width == hw_tensor_cols(x) && every_row(i ? &o->keys : &o->queries, hw_tensor_rows(x));
        set[i] = all && x->needs_grad && !x->grad;
    }
    for (int i = 0; i < 3; i++) { /* by now the flags of one tensor used several times are made */
        bool overwrite;
        d[i] = set[i] ? hw_input_gradient_raw(n, i, &overwrite) : hw_input_gradient(n, i);
    }
}

static void attention_backward(hw_node *n)
{
    const attention_node_options *a = n->options;
    const hw_attention_options *o = &a->o;
    const attention_saved *s = n->saved;
    const hw_real *dweights = a->want_weights ? n->out[1]->grad : NULL, *dout = n->out[0]->grad;
    hw_real *d[3];
    bool set[3];
    int64_t ldo = hw_tensor_cols(n->out[0]), ldq = hw_tensor_cols(n->in[0]), ldk = hw_tensor_cols(n->in[1]);
    int64_t ldv = hw_tensor_cols(n->in[2]);
    input_gradients(n, d, set);
    if (!dout) { /* only the weights were used */
        hw_real *zeros = hw_node_scratch(n, (size_t)hw_tensor_size(n->out[0]));
        memset(zeros, 0, (size_t)hw_tensor_size(n->out[0]) * sizeof *zeros);
        dout = zeros;
    }
    for (int64_t b = 0; b < o->queries.count; b++) {
        int64_t q0 = o->queries.start[b], k0 = o->keys.start[b], nm = o->queries.length[b] * o->keys.length[b];
        for (int64_t h = 0; h < o->heads; h++) {
            hw_attention_head head = head_of(n, b, h);
            int64_t at = h * o->head_width;
            hw_attention_gradients g = {
                .dout = dout + q0 * ldo + at,
                .dweights = dweights,
                .dq = d[0] ? d[0] + q0 * ldq + o->query_column + at : NULL,
                .dk = d[1] ? d[1] + k0 * ldk + o->key_column + at : NULL,
                .dv = d[2] ? d[2] + k0 * ldv + o->value_column + at : NULL,
                .ldout = ldo,
                .lddq = ldq,
                .lddk = ldk,
                .lddv = ldv,
                .set_q = set[0],
                .set_k = set[1],
                .set_v = set[2],
            };
            if (dweights) dweights += nm;
            const hw_real *weights = s->weights[b];
            if (weights) weights += h * head.n * hw_attention_stride(head.m);
            n->kernels->attention->backward(&head, weights, &g);
        }
    }
}

static double attention_flops(const hw_node *n)
{
    const hw_attention_options *o = &((const attention_node_options *)n->options)->o;
    return 4.0 * (double)weights_size(o) * (double)o->head_width;
}

const hw_op hw_op_attention = {"attention", attention_shape, attention_forward, attention_backward, attention_flops};

hw_tensor *hw_attention(hw_tape *t, hw_tensor *query, hw_tensor *key, hw_tensor *value,
                        const hw_attention_options *options, hw_tensor **weights)
{
    attention_node_options a = {*options, weights != NULL};
    hw_node *n = hw_apply(t, &hw_op_attention, 3, (hw_tensor *[]){query, key, value}, &a, sizeof a);
    if (weights) *weights = n->out[1];
    return n->out[0];
}
