/* Softmax, log-softmax and cross-entropy, a row at a time: the row's largest number is taken off first, so that nothing
 * overflows, and a row of -inf (all keys masked) gives zeros or -inf, never NaN. */
#include "kernel.h"

static hw_real row_max(const hw_real *x, int64_t cols)
{
    hw_v16 top = hw_v16_set1(-INFINITY);
    HW_EACH_VECTOR(i, m, cols, { top = hw_v16_maximum(top, hw_get(x + i, m, -INFINITY)); });
    return hw_v16_reduce_max(top);
}

/* sum of e^(x - top); with y, also writes the terms there */
HW_INLINE hw_real row_exp_sum(hw_real *y, const hw_real *x, int64_t cols, hw_real top)
{
    const hw_v16 shift = hw_v16_set1(top);
    hw_v16 sum = hw_v16_zero();
    HW_EACH_VECTOR(i, m, cols, {
        hw_v16 e = hw_v16_exp(hw_v16_sub(hw_get(x + i, m, -INFINITY), shift));
        if (y) hw_put(y + i, e, m);
        sum = hw_v16_add(sum, e);
    });
    return hw_v16_sum(sum);
}

static void row_fill(hw_real *y, hw_real value, int64_t cols)
{
    for (int64_t i = 0; i < cols; i++) y[i] = value;
}

void HW_KERNEL(softmax)(hw_real *y, const hw_real *x, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++, x += cols, y += cols) {
        const hw_real top = row_max(x, cols);
        if (top == -INFINITY) {
            row_fill(y, 0, cols);
            continue;
        }
        const hw_v16 by = hw_v16_set1(1 / row_exp_sum(y, x, cols, top));
        HW_EACH_VECTOR(i, m, cols, { hw_put(y + i, hw_v16_mul(by, hw_get(y + i, m, 0)), m); });
    }
}

/* dx += y (dy - sum(dy y)) */
void HW_KERNEL(softmax_backward)(hw_real *dx, const hw_real *dy, const hw_real *y, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++, dx += cols, dy += cols, y += cols) {
        hw_v16 sum = hw_v16_zero();
        HW_EACH_VECTOR(i, m, cols, { sum = hw_v16_fma(hw_get(dy + i, m, 0), hw_get(y + i, m, 0), sum); });
        const hw_v16 inner = hw_v16_set1(hw_v16_sum(sum));
        HW_EACH_VECTOR(i, m, cols, {
            hw_v16 centred = hw_v16_sub(hw_get(dy + i, m, 0), inner);
            hw_put(dx + i, hw_v16_fma(hw_get(y + i, m, 0), centred, hw_get(dx + i, m, 0)), m);
        });
    }
}

void HW_KERNEL(log_softmax)(hw_real *y, const hw_real *x, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++, x += cols, y += cols) {
        const hw_real top = row_max(x, cols);
        if (top == -INFINITY) {
            row_fill(y, -INFINITY, cols);
            continue;
        }
        const hw_v16 shift = hw_v16_set1(top);
        const hw_v16 log_sum = hw_v16_set1((hw_real)log((double)row_exp_sum(NULL, x, cols, top)));
        HW_EACH_VECTOR(i, m, cols,
                       { hw_put(y + i, hw_v16_sub(hw_v16_sub(hw_get(x + i, m, 0), shift), log_sum), m); });
    }
}

/* dx += dy - e^y sum(dy) */
void HW_KERNEL(log_softmax_backward)(hw_real *dx, const hw_real *dy, const hw_real *y, int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r++, dx += cols, dy += cols, y += cols) {
        hw_v16 sum = hw_v16_zero();
        HW_EACH_VECTOR(i, m, cols, { sum = hw_v16_add(sum, hw_get(dy + i, m, 0)); });
        const hw_v16 minus = hw_v16_set1(-hw_v16_sum(sum));
        HW_EACH_VECTOR(i, m, cols, {
            hw_v16 d = hw_v16_fma(hw_v16_exp(hw_get(y + i, m, 0)), minus, hw_get(dy + i, m, 0));
            hw_put(dx + i, hw_v16_add(hw_get(dx + i, m, 0), d), m);
        });
    }
}

void HW_KERNEL(maxima)(hw_real *most, const hw_real *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += HW_STRETCH) *most++ = row_max(x + i, n - i < HW_STRETCH ? n - i : HW_STRETCH);
}

int64_t HW_KERNEL(next_above)(const hw_real *x, int64_t n, hw_real least)
{
    int64_t i = 0;
    while (i + HW_LANES <= n && !hw_v16_any(hw_v16_less(hw_v16_set1(least), hw_v16_load(x + i)))) i += HW_LANES;
    while (i < n && !(x[i] > least)) i++;
    return i;
}

double HW_KERNEL(log_sum_exp)(const hw_real *x, int64_t n, hw_real top)
{
    return (double)top + log((double)row_exp_sum(NULL, x, n, top));
}

/* With z = x - max x and q_j = [j = target] (1 - smoothing) + smoothing / cols:
 *   loss = log sum e^z - (1 - smoothing) z_target - smoothing / cols * sum z
 *   nll  = log sum e^z - z_target
 *   dx   = scale (p - q)                                                                                              */
hw_real HW_KERNEL(cross_entropy)(hw_real *dx, double *loss, double *nll, const hw_real *x, int64_t cols,
                                 int64_t target, hw_real smoothing, hw_real scale)
{
    const hw_real top = row_max(x, cols);
    const hw_v16 shift = hw_v16_set1(top);
    const double z_target = (double)x[target] - (double)top, each = (double)smoothing / (double)cols;
    double mean_z = 0;
    if (smoothing != 0) {
        hw_v16 sum = hw_v16_zero();
        HW_EACH_VECTOR(i, m, cols, { sum = hw_v16_add(sum, hw_v16_sub(hw_get(x + i, m, top), shift)); });
        mean_z = (double)hw_v16_sum(sum) / (double)cols;
    }
    const double sum = (double)(dx ? row_exp_sum(dx, x, cols, top) : row_exp_sum(NULL, x, cols, top));
    const double log_sum = log(sum);
    *nll = log_sum - z_target;
    *loss = smoothing != 0 ? log_sum - (1 - (double)smoothing) * z_target - (double)smoothing * mean_z : *nll;
    if (!dx) return top;
    const hw_v16 by = hw_v16_set1((hw_real)((double)scale / sum)), less = hw_v16_set1((hw_real)(-(double)scale * each));
    HW_EACH_VECTOR(i, m, cols, { hw_put(dx + i, hw_v16_fma(by, hw_get(dx + i, m, 0), less), m); });
    dx[target] -= scale * (1 - smoothing);
    return top;
}
