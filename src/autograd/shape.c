/* Ops that move numbers without changing them: reshape, slice and concatenate columns, gather rows. */
#include <string.h>

#include "op.h"

/* reshape: the same numbers under another shape; dx += dy */
typedef struct reshape_options {
    int rank;
    int64_t shape[HW_MAX_RANK];
} reshape_options;

static const char *reshape_shape(hw_node *n)
{
    const reshape_options *o = n->options;
    char from[96], to[96];
    hw_tensor *y = hw_node_output(n, o->rank, o->shape);
    if (hw_tensor_size(y) != hw_tensor_size(n->in[0]))
        return hw_node_reason(n, "shape %s has not as many numbers as %s", hw_tensor_shape_text(n->in[0], from),
                              hw_tensor_shape_text(y, to));
    y->data = n->in[0]->data;
    return NULL;
}

static void reshape_forward(hw_node *n) { (void)n; }

static void reshape_backward(hw_node *n)
{
    hw_real *dx = hw_input_gradient(n, 0);
    if (dx) n->kernels->add(dx, n->out[0]->grad, hw_tensor_size(n->out[0]));
}

const hw_op hw_op_reshape = {"reshape", reshape_shape, reshape_forward, reshape_backward, NULL};

hw_tensor *hw_reshape(hw_tape *t, hw_tensor *x, int rank, const int64_t *shape)
{
    HW_CHECK(rank >= 1 && rank <= HW_MAX_RANK, "reshape to %d dimensions; 1 to %d are possible", rank, HW_MAX_RANK);
    reshape_options o = {.rank = rank};
    memcpy(o.shape, shape, (size_t)rank * sizeof *shape);
    return hw_apply(t, &hw_op_reshape, 1, &x, &o, sizeof o)->out[0];
}

/* slice: y[n, j] = x[n, column + j];  dx[n, column + j] += dy[n, j] */
typedef struct slice_options {
    int64_t column, cols;
} slice_options;

static const char *slice_shape(hw_node *n)
{
    const slice_options *o = n->options;
    const hw_tensor *x = n->in[0];
    if (o->column < 0 || o->cols < 0 || o->column + o->cols > hw_tensor_cols(x))
        return hw_node_reason(n, "columns %lld to %lld of %lld", (long long)o->column,
                              (long long)(o->column + o->cols), (long long)hw_tensor_cols(x));
    hw_node_output(n, 2, (int64_t[]){hw_tensor_rows(x), o->cols});
    return NULL;
}

static void slice_forward(hw_node *n)
{
    const slice_options *o = n->options;
    int64_t rows = hw_tensor_rows(n->in[0]), ld = hw_tensor_cols(n->in[0]);
    for (int64_t r = 0; r < rows; r++)
        memcpy(n->out[0]->data + r * o->cols, n->in[0]->data + r * ld + o->column, (size_t)o->cols * sizeof(hw_real));
}

static void slice_backward(hw_node *n)
{
    const slice_options *o = n->options;
    int64_t rows = hw_tensor_rows(n->in[0]), ld = hw_tensor_cols(n->in[0]);
    hw_real *dx = hw_input_gradient(n, 0);
    if (!dx) return;
    for (int64_t r = 0; r < rows; r++)
        n->kernels->add(dx + r * ld + o->column, n->out[0]->grad + r * o->cols, o->cols);
}

const hw_op hw_op_slice = {"slice", slice_shape, slice_forward, slice_backward, NULL};

hw_tensor *hw_slice(hw_tape *t, hw_tensor *x, int64_t column, int64_t cols)
{
    slice_options o = {column, cols};
    return hw_apply(t, &hw_op_slice, 1, &x, &o, sizeof o)->out[0];
}

/* concatenate: the columns of several tensors side by side; each dx_i += its columns of dy */
static const char *concatenate_shape(hw_node *n)
{
    int64_t cols = 0, rows = hw_tensor_rows(n->in[0]);
    for (int i = 0; i < n->inputs; i++) {
        if (hw_tensor_rows(n->in[i]) != rows)
            return hw_node_reason(n, "input %d has %lld rows, input 0 has %lld", i,
                                  (long long)hw_tensor_rows(n->in[i]), (long long)rows);
        cols += hw_tensor_cols(n->in[i]);
    }
    hw_node_output(n, 2, (int64_t[]){rows, cols});
    return NULL;
}

static void concatenate_forward(hw_node *n)
{
    int64_t rows = hw_tensor_rows(n->out[0]), ld = hw_tensor_cols(n->out[0]), column = 0;
    for (int i = 0; i < n->inputs; i++) {
        int64_t cols = hw_tensor_cols(n->in[i]);
        for (int64_t r = 0; r < rows; r++)
            memcpy(n->out[0]->data + r * ld + column, n->in[i]->data + r * cols, (size_t)cols * sizeof(hw_real));
        column += cols;
    }
}

static void concatenate_backward(hw_node *n)
{
    int64_t rows = hw_tensor_rows(n->out[0]), ld = hw_tensor_cols(n->out[0]), column = 0;
    for (int i = 0; i < n->inputs; i++) {
        int64_t cols = hw_tensor_cols(n->in[i]);
        hw_real *dx = hw_input_gradient(n, i);
        for (int64_t r = 0; dx && r < rows; r++)
            n->kernels->add(dx + r * cols, n->out[0]->grad + r * ld + column, cols);
        column += cols;
    }
}

const hw_op hw_op_concatenate = {"concatenate", concatenate_shape, concatenate_forward, concatenate_backward, NULL};

hw_tensor *hw_concatenate(hw_tape *t, int count, hw_tensor *const *x)
{
    HW_CHECK(count >= 1 && count <= HW_MAX_INPUTS, "concatenate takes 1 to %d tensors, not %d", HW_MAX_INPUTS, count);
    return hw_apply(t, &hw_op_concatenate, count, x, NULL, 0)->out[0];
}

/* gather: y[i] = x[rows[i]];  dx[rows[i]] += dy[i], so a row taken twice gets both */
typedef struct gather_options {
    const int64_t *rows;
    int64_t count;
} gather_options;

static const char *gather_shape(hw_node *n)
{
    const gather_options *o = n->options;
    int64_t rows = hw_tensor_rows(n->in[0]);
    for (int64_t i = 0; i < o->count; i++)
        if (o->rows[i] < 0 || o->rows[i] >= rows)
            return hw_node_reason(n, "row %lld of %lld", (long long)o->rows[i], (long long)rows);
    hw_node_output(n, 2, (int64_t[]){o->count, hw_tensor_cols(n->in[0])});
    return NULL;
}

static void gather_forward(hw_node *n)
{
    const gather_options *o = n->options;
    int64_t cols = hw_tensor_cols(n->in[0]);
    for (int64_t i = 0; i < o->count; i++)
        memcpy(n->out[0]->data + i * cols, n->in[0]->data + o->rows[i] * cols, (size_t)cols * sizeof(hw_real));
}

static void gather_backward(hw_node *n)
{
    const gather_options *o = n->options;
    int64_t cols = hw_tensor_cols(n->in[0]);
    hw_real *dx = hw_input_gradient(n, 0);
    for (int64_t i = 0; dx && i < o->count; i++)
        n->kernels->add(dx + o->rows[i] * cols, n->out[0]->grad + i * cols, cols);
}

const hw_op hw_op_gather = {"gather", gather_shape, gather_forward, gather_backward, NULL};

hw_tensor *hw_gather(hw_tape *t, hw_tensor *x, const int64_t *rows, int64_t count)
{
    gather_options o = {rows, count};
    return hw_apply(t, &hw_op_gather, 1, &x, &o, sizeof o)->out[0];
}
