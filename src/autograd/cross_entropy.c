/* cross_entropy: the output layer and label-smoothed cross-entropy (Szegedy et al. 2016, section 7) in one op.
 *   u = x W' + b,  p = softmax(u),  q = (1 - epsilon) onehot(target) + epsilon / V
 *   y = scale sum_n sum_j -q_nj log p_nj
 *   du = scale (p - q),  dx += du W,  dW += du' x,  db += sum_n du_n
 * It works in blocks of rows: while a block's logits are in cache its gradients are taken too, for an upstream gradient
 * of 1, so that logits are computed once and [N, V] never exists. dx waits in a buffer until backward; dW and db are
 * added at once. */
#include <math.h>

#include "op.h"

typedef struct cross_entropy_options {
    const int32_t *targets;
    hw_real smoothing, scale;
    hw_loss_count *count;
    hw_real *nll;
} cross_entropy_options;

/* A block's logits, 1.5 MiB, stay in the second-level cache while they are read again, and its rows are enough to pay
 * for the way through a large gradient: with 9,537 tokens and width 128 on one core, 12 rows at a time gave 52 GFLOP/s,
 * 48 rows 90, 192 rows 80. Rows are 12 a tile. */
enum { BLOCK_NUMBERS = 3 << 17, TILE_ROWS = 12, CHUNK = 480 };

static const char *cross_entropy_shape(hw_node *n)
{
    const cross_entropy_options *o = n->options;
    const hw_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    char a[96], c[96];
    if (w->rank != 2 || hw_tensor_cols(x) != w->shape[1] || hw_tensor_size(b) != w->shape[0])
        return hw_node_reason(n, "states %s do not fit the output layer %s", hw_tensor_shape_text(x, a),
                              hw_tensor_shape_text(w, c));
    for (int64_t i = 0; i < hw_tensor_rows(x); i++)
        if (o->targets[i] < 0 || o->targets[i] >= w->shape[0])
            return hw_node_reason(n, "target %d of a vocabulary of %lld", (int)o->targets[i], (long long)w->shape[0]);
    hw_node_output(n, 1, (int64_t[]){1});
    return NULL;
}

/* The loss of the block's rows, whose logits become their gradients where the node is recorded. */
static void block_loss(hw_node *n, hw_real *logits, int64_t ld, int64_t row, int64_t rows, hw_loss_count *sums)
{
    const cross_entropy_options *o = n->options;
    int64_t vocabulary = n->in[1]->shape[0];
    for (int64_t r = 0; r < rows; r++) {
        hw_real *u = logits + r * ld;
        double loss, nll;
        int32_t target = o->targets[row + r];
        hw_real wanted = u[target];
        hw_real top = n->kernels->cross_entropy(n->recorded ? u : NULL, &loss, &nll, u, vocabulary, target,
                                                o->smoothing, o->scale);
        sums->correct += wanted == top && isfinite(nll); /* a NaN is right nowhere */
        sums->loss += loss;
        sums->nll += nll;
        if (o->nll) o->nll[row + r] = (hw_real)nll;
    }
}

static void block_gradients(hw_node *n, const hw_real *du, int64_t ld, int64_t row, int64_t rows)
{
    const hw_tensor *x = n->in[0], *w = n->in[1];
    int64_t width = w->shape[1], vocabulary = w->shape[0];
    hw_real *dx = n->saved, *dw = hw_input_gradient(n, 1), *db = hw_input_gradient(n, 2);
    const hw_real *in = x->data + row * width;
    for (int64_t v = 0; v < vocabulary; v += CHUNK) { /* both products while this part of du is in cache */
        int64_t count = vocabulary - v < CHUNK ? vocabulary - v : CHUNK;
        if (dx)
            hw_product(false, rows, width, count, du + v, ld, w->data + v * width, width, v > 0, dx + row * width,
                       width);
        if (dw) hw_product(true, count, width, rows, du + v, ld, in, width, true, dw + v * width, width);
    }
    if (db) n->kernels->column_sum(db, du, ld, rows, vocabulary);
}

static void cross_entropy_forward(hw_node *n)
{
    const cross_entropy_options *o = n->options;
    const hw_tensor *x = n->in[0], *w = n->in[1];
    const hw_packed *packed = hw_weight_packed(n, w);
    int64_t total = hw_tensor_rows(x), width = w->shape[1], vocabulary = w->shape[0];
    int64_t ld = (vocabulary + 15) / 16 * 16 + 16; /* rows that do not fall on the same cache sets */
    int64_t most = BLOCK_NUMBERS / ld / TILE_ROWS * TILE_ROWS;
    most = most < TILE_ROWS ? TILE_ROWS : most;
    if (total > most)
        most = (total + (total + most - 1) / most - 1) / ((total + most - 1) / most); /* blocks of equal height */
    else
        most = total;
    hw_real *logits = hw_node_scratch(n, (size_t)(most * ld));
    if (n->recorded && x->needs_grad) n->saved = hw_node_scratch(n, (size_t)(total * width));
    hw_loss_count sums = {.tokens = total};
    for (int64_t row = 0; row < total; row += most) {
        int64_t rows = total - row < most ? total - row : most;
        n->kernels->multiply(logits, ld, x->data + row * width, width, rows, packed, n->in[2]->data);
        block_loss(n, logits, ld, row, rows, &sums);
        if (n->recorded) block_gradients(n, logits, ld, row, rows);
    }
    if (o->count) {
        o->count->loss += sums.loss;
        o->count->nll += sums.nll;
        o->count->tokens += sums.tokens;
        o->count->correct += sums.correct;
    }
    n->out[0]->data[0] = (hw_real)(sums.loss * (double)o->scale);
}

static void cross_entropy_backward(hw_node *n)
{
    HW_CHECK(n->out[0]->grad[0] == 1, "%s: the gradient of the loss must be 1 (it is %g): put factors into its scale",
             n->scope ? n->scope : "cross_entropy", (double)n->out[0]->grad[0]);
    hw_tensor *x = n->in[0];
    if (!x->needs_grad) return;
    if (x->grad)
        n->kernels->add(x->grad, n->saved, hw_tensor_size(x));
    else
        x->grad = n->saved; /* the first to arrive: hand the buffer over */
}

static double cross_entropy_flops(const hw_node *n)
{
    return 2.0 * (double)hw_tensor_rows(n->in[0]) * (double)hw_tensor_size(n->in[1]);
}

const hw_op hw_op_cross_entropy = {"cross_entropy", cross_entropy_shape, cross_entropy_forward, cross_entropy_backward,
                                   cross_entropy_flops};

hw_tensor *hw_cross_entropy(hw_tape *t, hw_tensor *x, hw_tensor *w, hw_tensor *b, const int32_t *targets,
                            hw_real smoothing, hw_real scale, hw_loss_count *count, hw_real *nll)
{
    cross_entropy_options o = {targets, smoothing, scale, count, nll};
    return hw_apply(t, &hw_op_cross_entropy, 3, (hw_tensor *[]){x, w, b}, &o, sizeof o)->out[0];
}
