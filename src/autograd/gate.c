/* gate: y[n, h] = xi[n, h] x[n, h] + (1 - xi[n, h]) m[h], each x[n, h] and m[h] a vector of K numbers
 *   dx[n, h] += xi[n, h] dy[n, h],  dxi[n, h] += dy[n, h] . (x[n, h] - m[h])
 * (Michel et al. 2019, section 2.3). */
#include "op.h"

typedef struct gate_options {
    const hw_real *otherwise;
} gate_options;

static const char *gate_shape(hw_node *n)
{
    const hw_tensor *x = n->in[0], *xi = n->in[1];
    char a[96], b[96];
    if (hw_tensor_rows(x) != hw_tensor_rows(xi) || hw_tensor_cols(x) % hw_tensor_cols(xi))
        return hw_node_reason(n, "gates %s do not fit heads %s: a row each, whose heads divide the columns",
                              hw_tensor_shape_text(xi, a), hw_tensor_shape_text(x, b));
    hw_node_output_like(n, x);
    return NULL;
}

static void gate_forward(hw_node *n)
{
    const hw_real *m = ((const gate_options *)n->options)->otherwise;
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]), heads = hw_tensor_cols(n->in[1]);
    int64_t width = cols / heads;
    for (int64_t i = 0; i < rows * heads; i++) {
        hw_real xi = n->in[1]->data[i];
        hw_real *y = n->out[0]->data + i * width;
        n->kernels->scale(y, xi, n->in[0]->data + i * width, width);
        if (m && xi != 1) n->kernels->axpy(y, 1 - xi, m + i % heads * width, width);
    }
}

static void gate_backward(hw_node *n)
{
    const hw_real *m = ((const gate_options *)n->options)->otherwise, *dy = n->out[0]->grad;
    int64_t rows = hw_tensor_rows(n->in[0]), cols = hw_tensor_cols(n->in[0]), heads = hw_tensor_cols(n->in[1]);
    int64_t width = cols / heads;
    hw_real *dx = hw_input_gradient(n, 0), *dxi = hw_input_gradient(n, 1);
    for (int64_t i = 0; i < rows * heads; i++) {
        const hw_real *d = dy + i * width;
        if (dx) n->kernels->axpy(dx + i * width, n->in[1]->data[i], d, width);
        if (dxi) dxi[i] += n->kernels->dot(d, n->in[0]->data + i * width, width);
        if (dxi && m) dxi[i] -= n->kernels->dot(d, m + i % heads * width, width);
    }
}

const hw_op hw_op_gate = {"gate", gate_shape, gate_forward, gate_backward, NULL};

hw_tensor *hw_gate(hw_tape *t, hw_tensor *x, hw_tensor *xi, const hw_real *otherwise)
{
    gate_options o = {otherwise};
    return hw_apply(t, &hw_op_gate, 2, (hw_tensor *[]){x, xi}, &o, sizeof o)->out[0];
}
