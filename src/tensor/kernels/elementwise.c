/* Kernels over flat arrays: sums, products, exp, and the step of Adam (Kingma and Ba 2015; decoupled decay:
 * Loshchilov and Hutter 2019). Sums go through 16 lanes in runs of 4,096 numbers, and from run to run in double, so
 * that the norm of a whole model's gradient is as exact as that of a row. */
#include "kernel.h"

enum { RUN = 4096 };

void HW_KERNEL(add)(hw_real *y, const hw_real *x, int64_t n)
{
    HW_EACH_VECTOR(i, m, n, { hw_put(y + i, hw_v16_add(hw_get(y + i, m, 0), hw_get(x + i, m, 0)), m); });
}

void HW_KERNEL(axpy)(hw_real *y, hw_real a, const hw_real *x, int64_t n)
{
    const hw_v16 factor = hw_v16_set1(a);
    HW_EACH_VECTOR(i, m, n, { hw_put(y + i, hw_v16_fma(factor, hw_get(x + i, m, 0), hw_get(y + i, m, 0)), m); });
}

void HW_KERNEL(scale)(hw_real *y, hw_real a, const hw_real *x, int64_t n)
{
    const hw_v16 factor = hw_v16_set1(a);
    HW_EACH_VECTOR(i, m, n, { hw_put(y + i, hw_v16_mul(factor, hw_get(x + i, m, 0)), m); });
}

void HW_KERNEL(multiply_add)(hw_real *y, const hw_real *a, const hw_real *b, int64_t n)
{
    HW_EACH_VECTOR(i, m, n, {
        hw_put(y + i, hw_v16_fma(hw_get(a + i, m, 0), hw_get(b + i, m, 0), hw_get(y + i, m, 0)), m);
    });
}

hw_real HW_KERNEL(sum)(const hw_real *x, int64_t n)
{
    double total = 0;
    for (int64_t start = 0; start < n; start += RUN) {
        const int64_t count = n - start < RUN ? n - start : RUN;
        hw_v16 sum = hw_v16_zero();
        HW_EACH_VECTOR(i, m, count, { sum = hw_v16_add(sum, hw_get(x + start + i, m, 0)); });
        total += (double)hw_v16_sum(sum);
    }
    return (hw_real)total;
}

hw_real HW_KERNEL(dot)(const hw_real *a, const hw_real *b, int64_t n)
{
    double total = 0;
    for (int64_t start = 0; start < n; start += RUN) {
        const int64_t count = n - start < RUN ? n - start : RUN;
        hw_v16 sum = hw_v16_zero();
        HW_EACH_VECTOR(i, m, count,
                       { sum = hw_v16_fma(hw_get(a + start + i, m, 0), hw_get(b + start + i, m, 0), sum); });
        total += (double)hw_v16_sum(sum);
    }
    return (hw_real)total;
}

/* Rows outermost within a stripe of columns whose sums stay in registers. */
void HW_KERNEL(column_sum)(hw_real *y, const hw_real *x, int64_t ldx, int64_t rows, int64_t cols)
{
    int64_t c = 0;
    for (; c + 4 * HW_LANES <= cols; c += 4 * HW_LANES) {
        hw_v16 sum[4];
        for (int v = 0; v < 4; v++) sum[v] = hw_v16_load(y + c + v * HW_LANES);
        for (int64_t r = 0; r < rows; r++)
            for (int v = 0; v < 4; v++) sum[v] = hw_v16_add(sum[v], hw_v16_load(x + r * ldx + c + v * HW_LANES));
        for (int v = 0; v < 4; v++) hw_v16_store(y + c + v * HW_LANES, sum[v]);
    }
    const int64_t rest = cols - c;
    HW_EACH_VECTOR(i, m, rest, {
        hw_v16 sum = hw_get(y + c + i, m, 0);
        for (int64_t r = 0; r < rows; r++) sum = hw_v16_add(sum, hw_get(x + r * ldx + c + i, m, 0));
        hw_put(y + c + i, sum, m);
    });
}

void HW_KERNEL(exp)(hw_real *y, const hw_real *x, int64_t n)
{
    HW_EACH_VECTOR(i, m, n, { hw_put(y + i, hw_v16_exp(hw_get(x + i, m, 0)), m); });
}

/* g = grad_scale grad (+ weight_decay w);  m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2 w = w (1 -
 * rate weight_decay) - rate / correction1 * m / (sqrt(v / correction2) + epsilon) */
void HW_KERNEL(adam)(hw_real *w, hw_real *m, hw_real *v, const hw_real *grad, int64_t n, hw_real grad_scale,
                     hw_real rate, hw_real beta1, hw_real beta2, hw_real epsilon, hw_real correction1,
                     hw_real correction2, hw_real weight_decay, bool weight_decay_decoupled)
{
    const hw_v16 by = hw_v16_set1(grad_scale), added_decay = hw_v16_set1(weight_decay_decoupled ? 0 : weight_decay);
    const hw_v16 keep = hw_v16_set1((hw_real)(1 - (double)rate * (double)(weight_decay_decoupled ? weight_decay : 0)));
    const hw_v16 b1 = hw_v16_set1(beta1), b2 = hw_v16_set1(beta2), eps = hw_v16_set1(epsilon);
    const hw_v16 a1 = hw_v16_set1((hw_real)(1 - (double)beta1)), a2 = hw_v16_set1((hw_real)(1 - (double)beta2));
    const hw_v16 step = hw_v16_set1((hw_real)(-(double)rate / (double)correction1));
    const hw_v16 root = hw_v16_set1((hw_real)(1 / sqrt((double)correction2)));
    HW_EACH_VECTOR(i, c, n, {
        hw_v16 weight = hw_get(w + i, c, 0);
        hw_v16 g = hw_v16_fma(added_decay, weight, hw_v16_mul(by, hw_get(grad + i, c, 0)));
        hw_v16 first = hw_v16_fma(a1, g, hw_v16_mul(b1, hw_get(m + i, c, 0)));
        hw_v16 second = hw_v16_fma(a2, hw_v16_mul(g, g), hw_v16_mul(b2, hw_get(v + i, c, 0)));
        hw_v16 below = hw_v16_fma(hw_v16_sqrt(second), root, eps);
        hw_put(w + i, hw_v16_fma(step, hw_v16_div(first, below), hw_v16_mul(keep, weight)), c);
        hw_put(m + i, first, c);
        hw_put(v + i, second, c);
    });
}
