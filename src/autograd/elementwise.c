/* Ops that treat every number alike: add, scale, multiply, activation, dropout. */
#include "op.h"

static const char *same_shapes(hw_node *n)
{
    char a[96], b[96];
    if (!hw_tensor_same_shape(n->in[0], n->in[1]))
        return hw_node_reason(n, "shapes %s and %s differ", hw_tensor_shape_text(n->in[0], a),
                              hw_tensor_shape_text(n->in[1], b));
    hw_node_output_like(n, n->in[0]);
    return NULL;
}

static const char *like_input(hw_node *n)
{
    hw_node_output_like(n, n->in[0]);
    return NULL;
}

/* add: y = a + b;  da += dy, db += dy */
static void add_forward(hw_node *n)
{
    int64_t size = hw_tensor_size(n->out[0]);
    n->kernels->scale(n->out[0]->data, 1, n->in[0]->data, size);
    n->kernels->add(n->out[0]->data, n->in[1]->data, size);
}

static void add_backward(hw_node *n)
{
    for (int i = 0; i < 2; i++) {
        hw_real *dx = hw_input_gradient(n, i);
        if (dx) n->kernels->add(dx, n->out[0]->grad, hw_tensor_size(n->out[0]));
    }
}

const hw_op hw_op_add = {"add", same_shapes, add_forward, add_backward, NULL};

hw_tensor *hw_add(hw_tape *t, hw_tensor *a, hw_tensor *b)
{
    return hw_apply(t, &hw_op_add, 2, (hw_tensor *[]){a, b}, NULL, 0)->out[0];
}

/* scale: y = c x;  dx += c dy */
static void scale_forward(hw_node *n)
{
    n->kernels->scale(n->out[0]->data, *(const hw_real *)n->options, n->in[0]->data, hw_tensor_size(n->out[0]));
}

static void scale_backward(hw_node *n)
{
    hw_real *dx = hw_input_gradient(n, 0);
    if (dx) n->kernels->axpy(dx, *(const hw_real *)n->options, n->out[0]->grad, hw_tensor_size(n->out[0]));
}

const hw_op hw_op_scale = {"scale", like_input, scale_forward, scale_backward, NULL};

hw_tensor *hw_scale(hw_tape *t, hw_tensor *x, hw_real factor)
{
    return hw_apply(t, &hw_op_scale, 1, &x, &factor, sizeof factor)->out[0];
}

/* multiply: y = a b;  da += b dy, db += a dy */
static void multiply_forward(hw_node *n)
{
    const hw_real *a = n->in[0]->data, *b = n->in[1]->data;
    hw_real *y = n->out[0]->data;
    for (int64_t i = 0, size = hw_tensor_size(n->out[0]); i < size; i++) y[i] = a[i] * b[i];
}

static void multiply_backward(hw_node *n)
{
    for (int i = 0; i < 2; i++) {
        hw_real *dx = hw_input_gradient(n, i);
        if (dx) n->kernels->multiply_add(dx, n->in[1 - i]->data, n->out[0]->grad, hw_tensor_size(n->out[0]));
    }
}

const hw_op hw_op_multiply = {"multiply", same_shapes, multiply_forward, multiply_backward, NULL};

hw_tensor *hw_multiply(hw_tape *t, hw_tensor *a, hw_tensor *b)
{
    return hw_apply(t, &hw_op_multiply, 2, (hw_tensor *[]){a, b}, NULL, 0)->out[0];
}

/* activate: y = f(x);  dx += f'(x) dy */
static void activate_forward(hw_node *n)
{
    n->kernels->activation(n->out[0]->data, n->in[0]->data, hw_tensor_size(n->out[0]),
                           *(const hw_activation *)n->options, NULL, 0);
}

static void activate_backward(hw_node *n)
{
    bool overwrite = false;
    hw_real *dx = hw_input_gradient_raw(n, 0, &overwrite);
    if (dx)
        n->kernels->activation_backward(dx, n->out[0]->grad, n->in[0]->data, hw_tensor_size(n->out[0]),
                                        *(const hw_activation *)n->options, NULL, 0, overwrite);
}

const hw_op hw_op_activate = {"activate", like_input, activate_forward, activate_backward, NULL};

hw_tensor *hw_activate(hw_tape *t, hw_tensor *x, hw_activation f)
{
    return hw_apply(t, &hw_op_activate, 1, &x, &f, sizeof f)->out[0];
}

/* dropout (Srivastava et al. 2014, inverted): y = m x / (1 - p);  dx += m dy / (1 - p), the mask m drawn again from its
 * key */
static void dropout_forward(hw_node *n)
{
    const hw_tensor *x = n->in[0];
    n->kernels->activation(n->out[0]->data, x->data, hw_tensor_size(x), HW_IDENTITY, n->options,
                           x->first_row * hw_tensor_cols(x));
}

static void dropout_backward(hw_node *n)
{
    const hw_tensor *x = n->in[0];
    bool overwrite = false;
    hw_real *dx = hw_input_gradient_raw(n, 0, &overwrite);
    if (dx)
        n->kernels->activation_backward(dx, n->out[0]->grad, x->data, hw_tensor_size(x), HW_IDENTITY, n->options,
                                        x->first_row * hw_tensor_cols(x), overwrite);
}

const hw_op hw_op_dropout = {"dropout", like_input, dropout_forward, dropout_backward, NULL};

hw_tensor *hw_dropout_apply(hw_tape *t, hw_tensor *x, hw_dropout drop)
{
    if (!drop.threshold) return x;
    return hw_apply(t, &hw_op_dropout, 1, &x, &drop, sizeof drop)->out[0];
}
