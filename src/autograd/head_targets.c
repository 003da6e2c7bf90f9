/* How far one head's attention is from where it should look: the term of guided alignment.
 *
 * Sources: Chen et al. 2016, "Guided alignment training for topic-aware neural machine translation", section 3.2 (the
 * cross-entropy between given alignments, each row made to sum to 1, and attention); Garg et al. 2019, "Jointly
 * learning to align and translate with Transformer models", section 3.2 (one head of one layer). It works on the
 * weights that hw_attention gives, which have a gradient, so the softmax is not part of it. */
#include <math.h>

#include "op.h"

#define SMALLEST 1e-30 /* what is smaller counts as this much, so that the term and its gradient stay finite */

/* head_targets: of query row t with wanted keys K_t = keys[first[t]] .. keys[first[t + 1] - 1]
 *   y_t = -1/|K_t| sum over k in K_t of log max(A_htk, 1e-30), 0 where there are none
 *   dA_htk += -dy_t / (|K_t| max(A_htk, 1e-30)) */
typedef struct targets_options {
    hw_attention_blocks blocks;
    int64_t head;
    const int64_t *first;
    const int32_t *keys;
} targets_options;

static const char *head_targets_shape(hw_node *n)
{
    const targets_options *o = n->options;
    int64_t size = 0;
    for (int64_t b = 0; b < o->blocks.queries.count; b++)
        size += o->blocks.heads * o->blocks.queries.length[b] * o->blocks.keys.length[b];
    if (size != hw_tensor_size(n->in[0]))
        return hw_node_reason(n, "%lld weights, but %lld heads over these sentences have %lld",
                              (long long)hw_tensor_size(n->in[0]), (long long)o->blocks.heads, (long long)size);
    if (o->head < 0 || o->head >= o->blocks.heads)
        return hw_node_reason(n, "head %lld of %lld", (long long)o->head, (long long)o->blocks.heads);
    int64_t row = 0;
    for (int64_t b = 0; b < o->blocks.queries.count; b++)
        for (int64_t t = 0; t < o->blocks.queries.length[b]; t++, row++)
            for (int64_t i = o->first[row]; i < o->first[row + 1]; i++)
                if (o->keys[i] < 0 || o->keys[i] >= o->blocks.keys.length[b])
                    return hw_node_reason(n, "key %d of row %lld, whose sentence has %lld", o->keys[i], (long long)row,
                                          (long long)o->blocks.keys.length[b]);
    hw_node_output(n, 2, (int64_t[]){row, 1});
    return NULL;
}

/* Of the precision that is computed in, as the numbers are. */
static hw_real weight_of(hw_real a) { return a > (hw_real)SMALLEST ? a : (hw_real)SMALLEST; }

/* Forward where dx is NULL, else backward. */
static void each_row(hw_node *n, hw_real *dx)
{
    const targets_options *o = n->options;
    int64_t block = 0, row = 0;
    for (int64_t b = 0; b < o->blocks.queries.count; b++) {
        int64_t queries = o->blocks.queries.length[b], keys = o->blocks.keys.length[b];
        for (int64_t t = 0; t < queries; t++, row++) {
            int64_t at = block + (o->head * queries + t) * keys, count = o->first[row + 1] - o->first[row];
            double sum = 0;
            for (int64_t i = o->first[row]; i < o->first[row + 1]; i++) {
                hw_real a = weight_of(n->in[0]->data[at + o->keys[i]]);
                if (dx)
                    dx[at + o->keys[i]] -= n->out[0]->grad[row] / ((hw_real)count * a);
                else
                    sum -= log((double)a);
            }
            if (!dx) n->out[0]->data[row] = count ? (hw_real)(sum / (double)count) : 0;
        }
        block += o->blocks.heads * queries * keys;
    }
}

static void head_targets_forward(hw_node *n) { each_row(n, NULL); }
static void head_targets_backward(hw_node *n)
{
    hw_real *dx = hw_input_gradient(n, 0);
    if (dx) each_row(n, dx);
}

const hw_op hw_op_head_targets = {"head_targets", head_targets_shape, head_targets_forward, head_targets_backward,
                                  NULL};

hw_tensor *hw_head_targets(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks, int64_t head,
                           const int64_t *first, const int32_t *keys)
{
    targets_options o = {*blocks, head, first, keys};
    return hw_apply(t, &hw_op_head_targets, 1, &weights, &o, sizeof o)->out[0];
}
