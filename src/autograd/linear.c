/* Ops that multiply matrices: matmul, and the linear layer with its bias, activation and dropout.
 *
 * What goes forward through a weight matrix runs on the packed multiplication, whose rows do not depend on each other's
 * company; gradients are sums over rows (hw_product). */
#include <string.h>

#include "op.h"

/* matmul: C = op(A) op(B), op(X) = X or X'
 *   plain:  dA += dC op(B)',  dB += op(A)' dC;  transposed inputs get the transposed result */
typedef struct matmul_options {
    bool transpose_a, transpose_b;
} matmul_options;

static void matmul_sizes(const hw_node *n, int64_t *m, int64_t *k, int64_t *k2, int64_t *cols)
{
    const matmul_options *o = n->options;
    const hw_tensor *a = n->in[0], *b = n->in[1];
    *m = o->transpose_a ? a->shape[1] : a->shape[0];
    *k = o->transpose_a ? a->shape[0] : a->shape[1];
    *k2 = o->transpose_b ? b->shape[1] : b->shape[0];
    *cols = o->transpose_b ? b->shape[0] : b->shape[1];
}

static const char *matmul_shape(hw_node *n)
{
    char a[96], b[96];
    if (n->in[0]->rank != 2 || n->in[1]->rank != 2)
        return hw_node_reason(n, "two matrices expected, not %s and %s", hw_tensor_shape_text(n->in[0], a),
                              hw_tensor_shape_text(n->in[1], b));
    int64_t m, k, k2, cols;
    matmul_sizes(n, &m, &k, &k2, &cols);
    if (k != k2)
        return hw_node_reason(n, "inner sizes %lld and %lld differ (%s, %s)", (long long)k, (long long)k2,
                              hw_tensor_shape_text(n->in[0], a), hw_tensor_shape_text(n->in[1], b));
    hw_node_output(n, 2, (int64_t[]){m, cols});
    return NULL;
}

static void matmul_forward(hw_node *n)
{
    const matmul_options *o = n->options;
    int64_t m, k, k2, cols;
    matmul_sizes(n, &m, &k, &k2, &cols);
    hw_gemm(o->transpose_a, o->transpose_b, m, cols, k, 1, n->in[0]->data, n->in[0]->shape[1], n->in[1]->data,
            n->in[1]->shape[1], 0, n->out[0]->data, cols);
}

static void matmul_backward(hw_node *n)
{
    const matmul_options *o = n->options;
    const hw_tensor *a = n->in[0], *b = n->in[1];
    const hw_real *dc = n->out[0]->grad;
    int64_t m, k, k2, cols;
    matmul_sizes(n, &m, &k, &k2, &cols);
    hw_real *da = hw_input_gradient(n, 0);
    if (da && !o->transpose_a)
        hw_gemm(false, !o->transpose_b, m, k, cols, 1, dc, cols, b->data, b->shape[1], 1, da, k);
    else if (da)
        hw_gemm(o->transpose_b, true, k, m, cols, 1, b->data, b->shape[1], dc, cols, 1, da, m);
    hw_real *db = hw_input_gradient(n, 1);
    if (db && !o->transpose_b)
        hw_gemm(!o->transpose_a, false, k, cols, m, 1, a->data, a->shape[1], dc, cols, 1, db, cols);
    else if (db)
        hw_gemm(true, o->transpose_a, cols, k, m, 1, dc, cols, a->data, a->shape[1], 1, db, k);
}

static double matmul_flops(const hw_node *n)
{
    int64_t m, k, k2, cols;
    matmul_sizes(n, &m, &k, &k2, &cols);
    return 2.0 * (double)m * (double)k * (double)cols;
}

const hw_op hw_op_matmul = {"matmul", matmul_shape, matmul_forward, matmul_backward, matmul_flops};

hw_tensor *hw_matmul(hw_tape *t, hw_tensor *a, hw_tensor *b, bool transpose_a, bool transpose_b)
{
    matmul_options o = {transpose_a, transpose_b};
    return hw_apply(t, &hw_op_matmul, 2, (hw_tensor *[]){a, b}, &o, sizeof o)->out[0];
}

/* linear: u = x W' + b, y = dropout(f(u))        x [N, I], W [O, I], b [O]
 *   du = dropout(dy) f'(u);  dx += du W,  dW += du' x,  db += sum_n du_n
 * f'(u) is read from u; for the identity and relu, from y, which then lies where u was. du lies where dy was. */
typedef struct linear_options {
    hw_activation f;
    hw_dropout drop;
} linear_options;

enum { ROWS_A_BLOCK = 96 }; /* rows whose outputs are still in cache when the activation reads them */

static const char *linear_shape(hw_node *n)
{
    const hw_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    char xs[96], ws[96];
    if (w->rank != 2 || hw_tensor_cols(x) != w->shape[1])
        return hw_node_reason(n, "input %s does not fit weight %s, whose rows have an output each",
                              hw_tensor_shape_text(x, xs), hw_tensor_shape_text(w, ws));
    if (b && hw_tensor_size(b) != w->shape[0])
        return hw_node_reason(n, "bias %s does not fit weight %s", hw_tensor_shape_text(b, xs),
                              hw_tensor_shape_text(w, ws));
    hw_node_output(n, 2, (int64_t[]){hw_tensor_rows(x), w->shape[0]});
    return NULL;
}

const hw_packed *hw_weight_packed(hw_node *n, const hw_tensor *w)
{
    if (w->packed) return w->packed;
    hw_packed *p = hw_arena_alloc(hw_tape_arena(n->tape), sizeof *p);
    *p = (hw_packed){w->shape[0], w->shape[1], hw_node_scratch(n, (size_t)hw_packed_size(w->shape[0], w->shape[1]))};
    hw_pack(p, w->data, w->shape[1], false);
    return p;
}

static void linear_forward(hw_node *n)
{
    const linear_options *o = n->options;
    const hw_tensor *x = n->in[0], *b = n->in[2];
    const hw_packed *w = hw_weight_packed(n, n->in[1]);
    int64_t rows = hw_tensor_rows(x), in = w->inputs, out = w->outputs;
    bool keep = n->recorded && (o->f == HW_GELU || o->f == HW_SWISH);
    hw_real *y = n->out[0]->data, *u = keep ? hw_node_scratch(n, (size_t)(rows * out)) : y;
    n->saved = u;
    if (o->f == HW_IDENTITY && !o->drop.threshold) {
        n->kernels->multiply(y, out, x->data, in, rows, w, b ? b->data : NULL);
        return;
    }
    for (int64_t r = 0; r < rows; r += ROWS_A_BLOCK) {
        int64_t m = rows - r < ROWS_A_BLOCK ? rows - r : ROWS_A_BLOCK;
        n->kernels->multiply(u + r * out, out, x->data + r * in, in, m, w, b ? b->data : NULL);
        n->kernels->activation(y + r * out, u + r * out, m * out, o->f, &o->drop, (x->first_row + r) * out);
    }
}

static void linear_backward(hw_node *n)
{
    const linear_options *o = n->options;
    const hw_tensor *x = n->in[0], *w = n->in[1];
    int64_t rows = hw_tensor_rows(x), in = w->shape[1], out = w->shape[0];
    hw_real *du = n->out[0]->grad;
    if (o->f != HW_IDENTITY || o->drop.threshold)
        n->kernels->activation_backward(du, du, n->saved, rows * out, o->f, &o->drop, x->first_row * out, true);
    bool overwrite = false;
    hw_real *dx = hw_input_gradient_raw(n, 0, &overwrite);
    if (dx) hw_product(false, rows, in, out, du, out, w->data, in, !overwrite, dx, in);
    hw_real *dw = hw_input_gradient_raw(n, 1, &overwrite);
    if (dw) hw_product(true, out, in, rows, du, out, x->data, in, !overwrite, dw, in);
    hw_real *db = hw_input_gradient(n, 2);
    if (db) n->kernels->column_sum(db, du, out, rows, out);
}

static double linear_flops(const hw_node *n)
{
    return 2.0 * (double)hw_tensor_rows(n->in[0]) * (double)hw_tensor_size(n->in[1]);
}

const hw_op hw_op_linear = {"linear", linear_shape, linear_forward, linear_backward, linear_flops};

hw_tensor *hw_linear(hw_tape *t, hw_tensor *x, hw_tensor *w, hw_tensor *b, hw_activation f, hw_dropout drop)
{
    linear_options o = {f, drop};
    return hw_apply(t, &hw_op_linear, 3, (hw_tensor *[]){x, w, b}, &o, sizeof o)->out[0];
}
