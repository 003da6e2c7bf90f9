/* Ops that make many numbers few: the sum of all, and row by row the dot product and the norm that regularizers are
 * made of. */
#include <math.h>

#include "op.h"

/* sum: y = sum_i x_i;  dx_i += dy */
static const char *sum_shape(hw_node *n)
{
    hw_node_output(n, 1, (int64_t[]){1});
    return NULL;
}

static void sum_forward(hw_node *n) { n->out[0]->data[0] = n->kernels->sum(n->in[0]->data, hw_tensor_size(n->in[0])); }

static void sum_backward(hw_node *n)
{
    hw_real *dx = hw_input_gradient(n, 0), dy = n->out[0]->grad[0];
    for (int64_t i = 0, size = hw_tensor_size(n->in[0]); dx && i < size; i++) dx[i] += dy;
}

const hw_op hw_op_sum = {"sum", sum_shape, sum_forward, sum_backward, NULL};

hw_tensor *hw_sum(hw_tape *t, hw_tensor *x) { return hw_apply(t, &hw_op_sum, 1, &x, NULL, 0)->out[0]; }

/* row_dot: y_n = sum_j a_nj b_nj;  da_n += dy_n b_n, db_n += dy_n a_n */
static const char *row_dot_shape(hw_node *n)
{
    char a[96], b[96];
    if (!hw_tensor_same_shape(n->in[0], n->in[1]))
        return hw_node_reason(n, "shapes %s and %s differ", hw_tensor_shape_text(n->in[0], a),
                              hw_tensor_shape_text(n->in[1], b));
    hw_node_output(n, 2, (int64_t[]){hw_tensor_rows(n->in[0]), 1});
    return NULL;
}

static void row_dot_forward(hw_node *n)
{
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]);
    for (int64_t r = 0; r < rows; r++)
        n->out[0]->data[r] = n->kernels->dot(n->in[0]->data + r * cols, n->in[1]->data + r * cols, cols);
}

static void row_dot_backward(hw_node *n)
{
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]);
    for (int i = 0; i < 2; i++) {
        hw_real *dx = hw_input_gradient(n, i);
        for (int64_t r = 0; dx && r < rows; r++)
            n->kernels->axpy(dx + r * cols, n->out[0]->grad[r], n->in[1 - i]->data + r * cols, cols);
    }
}

const hw_op hw_op_row_dot = {"row_dot", row_dot_shape, row_dot_forward, row_dot_backward, NULL};

hw_tensor *hw_row_dot(hw_tape *t, hw_tensor *a, hw_tensor *b)
{
    return hw_apply(t, &hw_op_row_dot, 2, (hw_tensor *[]){a, b}, NULL, 0)->out[0];
}

/* row_norm: y_n = sqrt(sum_j x_nj^2 + epsilon);  dx_n += dy_n x_n / y_n */
static const char *row_norm_shape(hw_node *n)
{
    hw_node_output(n, 2, (int64_t[]){hw_tensor_rows(n->in[0]), 1});
    return NULL;
}

static void row_norm_forward(hw_node *n)
{
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]);
    hw_real epsilon = *(const hw_real *)n->options;
    for (int64_t r = 0; r < rows; r++) {
        const hw_real *x = n->in[0]->data + r * cols;
        n->out[0]->data[r] = (hw_real)sqrt((double)(n->kernels->dot(x, x, cols) + epsilon));
    }
}

static void row_norm_backward(hw_node *n)
{
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]);
    hw_real *dx = hw_input_gradient(n, 0);
    for (int64_t r = 0; dx && r < rows; r++)
        n->kernels->axpy(dx + r * cols, n->out[0]->grad[r] / n->out[0]->data[r], n->in[0]->data + r * cols, cols);
}

const hw_op hw_op_row_norm = {"row_norm", row_norm_shape, row_norm_forward, row_norm_backward, NULL};

hw_tensor *hw_row_norm(hw_tape *t, hw_tensor *x, hw_real epsilon)
{
    return hw_apply(t, &hw_op_row_norm, 1, &x, &epsilon, sizeof epsilon)->out[0];
}
