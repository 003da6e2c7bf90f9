/* Ops that normalise rows: softmax and log-softmax, layer norm (Ba et al. 2016), and the residual connection with and
 * without layer norm behind it (Add&Norm). */
#include "op.h"

static const char *like_input(hw_node *n)
{
    hw_node_output_like(n, n->in[0]);
    return NULL;
}

/* softmax, row by row: y_j = exp(x_j - max x) / sum_k exp(x_k - max x)
 *   dx_j += y_j (dy_j - sum_k dy_k y_k) */
static void softmax_forward(hw_node *n)
{
    n->kernels->softmax(n->out[0]->data, n->in[0]->data, hw_tensor_rows(n->in[0]), hw_tensor_cols(n->in[0]));
}

static void softmax_backward(hw_node *n)
{
    hw_real *dx = hw_input_gradient(n, 0);
    if (dx)
        n->kernels->softmax_backward(dx, n->out[0]->grad, n->out[0]->data, hw_tensor_rows(n->in[0]),
                                     hw_tensor_cols(n->in[0]));
}

const hw_op hw_op_softmax = {"softmax", like_input, softmax_forward, softmax_backward, NULL};

hw_tensor *hw_softmax(hw_tape *t, hw_tensor *x) { return hw_apply(t, &hw_op_softmax, 1, &x, NULL, 0)->out[0]; }

/* log_softmax, row by row: y_j = x_j - log sum_k exp x_k
 *   dx_j += dy_j - exp(y_j) sum_k dy_k */
static void log_softmax_forward(hw_node *n)
{
    n->kernels->log_softmax(n->out[0]->data, n->in[0]->data, hw_tensor_rows(n->in[0]), hw_tensor_cols(n->in[0]));
}

static void log_softmax_backward(hw_node *n)
{
    hw_real *dx = hw_input_gradient(n, 0);
    if (dx)
        n->kernels->log_softmax_backward(dx, n->out[0]->grad, n->out[0]->data, hw_tensor_rows(n->in[0]),
                                         hw_tensor_cols(n->in[0]));
}

const hw_op hw_op_log_softmax = {"log_softmax", like_input, log_softmax_forward, log_softmax_backward, NULL};

hw_tensor *hw_log_softmax(hw_tape *t, hw_tensor *x) { return hw_apply(t, &hw_op_log_softmax, 1, &x, NULL, 0)->out[0]; }

/* layer_norm, row by row: y = (x - mean x) r gamma + beta, r = 1 / sqrt(var x + epsilon)
 *   with z = (x - mean x) r and g = dy gamma:
 *   dx += r (g - mean g - z mean(g z)),  dgamma += sum_n dy z,  dbeta += sum_n dy */
typedef struct norm_saved {
    hw_real *sum, *mean, *rstd;
} norm_saved;

static const char *check_norm(hw_node *n, const hw_tensor *x, const hw_tensor *gamma, const hw_tensor *beta)
{
    char a[96], b[96];
    const hw_tensor *both[2] = {gamma, beta};
    for (int i = 0; i < 2; i++)
        if (hw_tensor_size(both[i]) != hw_tensor_cols(x))
            return hw_node_reason(n, "%s %s does not fit rows of %s", i ? "beta" : "gamma",
                                  hw_tensor_shape_text(both[i], a), hw_tensor_shape_text(x, b));
    return NULL;
}

static norm_saved *save_norm(hw_node *n, int64_t rows, hw_real *sum)
{
    norm_saved *s = hw_arena_alloc(hw_tape_arena(n->tape), sizeof *s);
    *s = (norm_saved){sum, hw_node_scratch(n, (size_t)rows), hw_node_scratch(n, (size_t)rows)};
    n->saved = s;
    return s;
}

static const char *layer_norm_shape(hw_node *n)
{
    hw_node_output_like(n, n->in[0]);
    return check_norm(n, n->in[0], n->in[1], n->in[2]);
}

static void layer_norm_forward(hw_node *n)
{
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]);
    norm_saved *s = save_norm(n, rows, n->in[0]->data);
    n->kernels->layer_norm(n->out[0]->data, s->mean, s->rstd, n->in[0]->data, n->in[1]->data, n->in[2]->data, rows,
                           cols, (hw_real)HW_LAYER_NORM_EPSILON);
}

/* The way back of both: in[i], in[i + 1] are gamma and beta; in[1] is the branch where there is one. */
static void norm_backward(hw_node *n, int gamma, const hw_dropout *drop)
{
    const norm_saved *s = n->saved;
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]);
    bool dx_overwrite = false, branch_overwrite = false;
    hw_real *dx = hw_input_gradient_raw(n, 0, &dx_overwrite);
    hw_real *dbranch = gamma == 2 ? hw_input_gradient_raw(n, 1, &branch_overwrite) : NULL;
    hw_real *dgamma = hw_input_gradient(n, gamma), *dbeta = hw_input_gradient(n, gamma + 1);
    n->kernels->layer_norm_backward(dx, dx_overwrite, dbranch, branch_overwrite, dgamma, dbeta, n->out[0]->grad, s->sum,
                                    s->mean, s->rstd, n->in[gamma]->data, rows, cols, drop, n->in[0]->first_row * cols);
}

static void layer_norm_backward(hw_node *n) { norm_backward(n, 1, NULL); }

const hw_op hw_op_layer_norm = {"layer_norm", layer_norm_shape, layer_norm_forward, layer_norm_backward, NULL};

hw_tensor *hw_layer_norm(hw_tape *t, hw_tensor *x, hw_tensor *gamma, hw_tensor *beta)
{
    return hw_apply(t, &hw_op_layer_norm, 3, (hw_tensor *[]){x, gamma, beta}, NULL, 0)->out[0];
}

/* residual: y = x + dropout(b);  dx += dy, db += dropout(dy) */
static const char *residual_shape(hw_node *n)
{
    char a[96], b[96];
    if (!hw_tensor_same_shape(n->in[0], n->in[1]))
        return hw_node_reason(n, "x %s and its branch %s differ", hw_tensor_shape_text(n->in[0], a),
                              hw_tensor_shape_text(n->in[1], b));
    hw_node_output_like(n, n->in[0]);
    return NULL;
}

/* y's first_row is that of x; hw_apply adds in[0]'s. */
static void residual_forward(hw_node *n)
{
    const hw_tensor *x = n->in[0];
    int64_t rows = hw_tensor_rows(x), cols = hw_tensor_cols(x);
    n->kernels->residual_layer_norm(NULL, n->out[0]->data, NULL, NULL, x->data, n->in[1]->data, NULL, NULL, rows, cols,
                                    0, n->options, x->first_row * cols);
}

static void residual_backward(hw_node *n)
{
    const hw_tensor *x = n->in[0];
    int64_t size = hw_tensor_size(x);
    hw_real *dx = hw_input_gradient(n, 0);
    if (dx) n->kernels->add(dx, n->out[0]->grad, size);
    bool overwrite = false;
    hw_real *db = hw_input_gradient_raw(n, 1, &overwrite);
    if (db)
        n->kernels->activation_backward(db, n->out[0]->grad, n->in[1]->data, size, HW_IDENTITY, n->options,
                                        x->first_row * hw_tensor_cols(x), overwrite);
}

const hw_op hw_op_residual = {"residual", residual_shape, residual_forward, residual_backward, NULL};

hw_tensor *hw_residual(hw_tape *t, hw_tensor *x, hw_tensor *branch, hw_dropout drop)
{
    return hw_apply(t, &hw_op_residual, 2, (hw_tensor *[]){x, branch}, &drop, sizeof drop)->out[0];
}

/* residual_layer_norm: y = layer_norm(x + dropout(b));  with ds as layer_norm's dx: dx += ds, db += dropout(ds) */
static const char *residual_layer_norm_shape(hw_node *n)
{
    const char *reason = residual_shape(n);
    return reason ? reason : check_norm(n, n->in[0], n->in[2], n->in[3]);
}

static void residual_layer_norm_forward(hw_node *n)
{
    const hw_tensor *x = n->in[0];
    int64_t rows = hw_tensor_rows(x), cols = hw_tensor_cols(x);
    norm_saved *s = save_norm(n, rows, hw_node_scratch(n, (size_t)(rows * cols)));
    n->kernels->residual_layer_norm(n->out[0]->data, s->sum, s->mean, s->rstd, x->data, n->in[1]->data, n->in[2]->data,
                                    n->in[3]->data, rows, cols, (hw_real)HW_LAYER_NORM_EPSILON, n->options,
                                    x->first_row * cols);
}

static void residual_layer_norm_backward(hw_node *n) { norm_backward(n, 2, n->options); }

const hw_op hw_op_residual_layer_norm = {"residual_layer_norm", residual_layer_norm_shape, residual_layer_norm_forward,
                                         residual_layer_norm_backward, NULL};

hw_tensor *hw_residual_layer_norm(hw_tape *t, hw_tensor *x, hw_tensor *branch, hw_tensor *gamma, hw_tensor *beta,
                                  hw_dropout drop)
{
    return hw_apply(t, &hw_op_residual_layer_norm, 4, (hw_tensor *[]){x, branch, gamma, beta}, &drop, sizeof drop)
        ->out[0];
}
