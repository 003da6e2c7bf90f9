/* Gates that training can close: the hard concrete distribution of Louizos et al. 2018, "Learning Sparse Neural
 * Networks through L0 Regularization", section 2.2 and equations 10 to 13, over the heads of an attention as in Voita
 * et al. 2019, section 6.1. A gate is a sigmoid with noise, stretched from (0, 1) to (-0.1, 1.1) and cut at 0 and 1, so
 * that it is exactly 0 or 1 with a probability of its own and still has a gradient in between. */
#include <math.h>

#include "op.h"

static const double GAMMA = -0.1, ZETA = 1.1, BETA = 2.0 / 3.0; /* what both papers take */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* hard_concrete: z = min(1, max(0, s (zeta - gamma) + gamma)), s = sigmoid((log u - log(1 - u) + a) / beta); without
 * noise s = sigmoid(a) (equation 13: no temperature then) da += dz (zeta - gamma) s (1 - s) / beta where 0 < z < 1 */
typedef struct noise_options {
    const hw_real *noise;
} noise_options;

static double sigmoid_of(const hw_node *n, int64_t i, double *temperature)
{
    const hw_real *noise = ((const noise_options *)n->options)->noise;
    double a = (double)n->in[0]->data[i], u = noise ? (double)noise[i] : 0;
    *temperature = noise ? BETA : 1;
    return sigmoid(noise ? (log(u) - log1p(-u) + a) / BETA : a);
}

static const char *same_shape(hw_node *n)
{
    hw_node_output_like(n, n->in[0]);
    return NULL;
}

static void hard_concrete_forward(hw_node *n)
{
    double temperature;
    for (int64_t i = 0, size = hw_tensor_size(n->in[0]); i < size; i++) {
        double z = sigmoid_of(n, i, &temperature) * (ZETA - GAMMA) + GAMMA;
        n->out[0]->data[i] = (hw_real)(z < 0 ? 0 : z > 1 ? 1 : z);
    }
}

static void hard_concrete_backward(hw_node *n)
{
    hw_real *da = hw_input_gradient(n, 0);
    double temperature;
    for (int64_t i = 0, size = hw_tensor_size(n->in[0]); da && i < size; i++) {
        double s = sigmoid_of(n, i, &temperature), z = s * (ZETA - GAMMA) + GAMMA;
        if (z > 0 && z < 1) da[i] += n->out[0]->grad[i] * (hw_real)((ZETA - GAMMA) * s * (1 - s) / temperature);
    }
}

const hw_op hw_op_hard_concrete = {"hard_concrete", same_shape, hard_concrete_forward, hard_concrete_backward, NULL};

hw_tensor *hw_hard_concrete(hw_tape *t, hw_tensor *a, const hw_real *noise)
{
    noise_options o = {noise};
    return hw_apply(t, &hw_op_hard_concrete, 1, &a, &o, sizeof o)->out[0];
}

/* hard_concrete_open: p = sigmoid(a - beta log(-gamma / zeta)), how likely z > 0 (equation 12);  da += dp p (1 - p) */
static void hard_concrete_open_forward(hw_node *n)
{
    for (int64_t i = 0, size = hw_tensor_size(n->in[0]); i < size; i++)
        n->out[0]->data[i] = (hw_real)sigmoid((double)n->in[0]->data[i] - BETA * log(-GAMMA / ZETA));
}

static void hard_concrete_open_backward(hw_node *n)
{
    hw_real *da = hw_input_gradient(n, 0);
    const hw_real *p = n->out[0]->data;
    for (int64_t i = 0, size = hw_tensor_size(n->in[0]); da && i < size; i++)
        da[i] += n->out[0]->grad[i] * p[i] * (1 - p[i]);
}

const hw_op hw_op_hard_concrete_open = {"hard_concrete_open", same_shape, hard_concrete_open_forward,
                                        hard_concrete_open_backward, NULL};

hw_tensor *hw_hard_concrete_open(hw_tape *t, hw_tensor *a)
{
    return hw_apply(t, &hw_op_hard_concrete_open, 1, &a, NULL, 0)->out[0];
}
