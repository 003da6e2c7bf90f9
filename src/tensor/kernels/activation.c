/* Activations with dropout behind them, forward and back: relu, gelu by erf (Hendrycks and Gimpel 2016), swish x
 * sigmoid(x) (Ramachandran et al. 2017). Dropout's multipliers are drawn on the way (Srivastava et al. 2014;
 * inverted, so that the mean stays) and drawn again for the gradient. */
#include "kernel.h"

/* The normal distribution's function at x, and its density. Single precision: the upper tail is the density times
 * Mills' ratio, which is t P(t) with t = 1 / (1 + 0.35 |x|) and P a minimax polynomial (relative error 4e-8). */
HW_LARGE hw_v16 normal_cdf(hw_v16 x, hw_v16 *density)
{
#ifdef HW_REAL_DOUBLE
    hw_real lane[HW_LANES], cdf[HW_LANES], pdf[HW_LANES];
    hw_v16_store(lane, x);
    for (int l = 0; l < HW_LANES; l++) {
        cdf[l] = 0.5 * erfc(lane[l] * -0.70710678118654752440);
        pdf[l] = exp(-0.5 * lane[l] * lane[l]) * 0.39894228040143267794;
    }
    *density = hw_v16_load(pdf);
    return hw_v16_load(cdf);
#else
    static const float mills[] = {-7.308794558e-02f, 3.610318005e-01f, -6.412929296e-01f,
                                  3.993548751e-01f,  -5.818448216e-02f, 2.645807862e-01f,
                                  3.003474474e-01f,  3.505858481e-01f,  3.499787152e-01f};
    const hw_v16 zero = hw_v16_zero(), one = hw_v16_set1(1.0f), minus_half = hw_v16_set1(-0.5f);
    const hw_v16 size = hw_v16_maximum(x, hw_v16_sub(zero, x));
    const hw_v16 square = hw_v16_mul(x, x), lost = hw_v16_fma(x, x, hw_v16_sub(zero, square));
    hw_v16 e = hw_v16_exp(hw_v16_mul(minus_half, square));
    e = hw_v16_fma(hw_v16_mul(minus_half, lost), e, e); /* what rounding the square lost counts where it is large */
    const hw_v16 t = hw_v16_div(one, hw_v16_fma(hw_v16_set1(0.35f), size, one));
    hw_v16 p = hw_v16_set1(mills[0]);
    for (size_t i = 1; i < sizeof mills / sizeof *mills; i++) p = hw_v16_fma(p, t, hw_v16_set1(mills[i]));
    *density = hw_v16_mul(e, hw_v16_set1(0.398942280f));
    const hw_v16 tail = hw_v16_mul(hw_v16_mul(p, t), *density);
    return hw_v16_select(hw_v16_less(x, zero), tail, hw_v16_sub(one, tail));
#endif
}

HW_INLINE hw_v16 sigmoid(hw_v16 x)
{
    const hw_v16 one = hw_v16_set1(1);
    return hw_v16_div(one, hw_v16_add(one, hw_v16_exp(hw_v16_sub(hw_v16_zero(), x))));
}

HW_INLINE hw_v16 value(hw_v16 x, hw_activation f)
{
    hw_v16 density;
    switch (f) {
    case HW_RELU: return hw_v16_maximum(x, hw_v16_zero());
    case HW_GELU: return hw_v16_mul(x, normal_cdf(x, &density));
    case HW_SWISH: return hw_v16_mul(x, sigmoid(x));
    default: return x;
    }
}

/* d f'(x) */
HW_INLINE hw_v16 slope(hw_v16 d, hw_v16 x, hw_activation f)
{
    const hw_v16 zero = hw_v16_zero(), one = hw_v16_set1(1);
    hw_v16 density, s;
    switch (f) {
    case HW_RELU: return hw_v16_select(hw_v16_less(zero, x), d, zero);
    case HW_GELU:
        s = normal_cdf(x, &density);
        return hw_v16_mul(d, hw_v16_fma(x, density, s));
    case HW_SWISH:
        s = sigmoid(x);
        return hw_v16_mul(d, hw_v16_mul(s, hw_v16_fma(x, hw_v16_sub(one, s), one)));
    default: return d;
    }
}

HW_INLINE void forward(hw_real *y, const hw_real *x, const hw_real *mask, int64_t n, hw_activation f)
{
    HW_EACH_VECTOR(i, m, n, {
        hw_v16 v = value(hw_get(x + i, m, 0), f);
        hw_put(y + i, mask ? hw_v16_mul(v, hw_get(mask + i, m, 0)) : v, m);
    });
}

HW_INLINE void backward(hw_real *dx, const hw_real *dy, const hw_real *x, const hw_real *mask, int64_t n,
                        hw_activation f, bool overwrite)
{
    HW_EACH_VECTOR(i, m, n, {
        hw_v16 d = hw_get(dy + i, m, 0);
        if (mask) d = hw_v16_mul(d, hw_get(mask + i, m, 0));
        d = slope(d, hw_get(x + i, m, 0), f);
        hw_put(dx + i, overwrite ? d : hw_v16_add(hw_get(dx + i, m, 0), d), m);
    });
}

void HW_KERNEL(activation)(hw_real *y, const hw_real *x, int64_t n, hw_activation f, const hw_dropout *drop,
                           int64_t first)
{
    hw_mask mask;
    hw_mask_begin(&mask, drop, first);
    for (int64_t i = 0; i < n; i += HW_MASK_SPAN) {
        const int64_t count = n - i < HW_MASK_SPAN ? n - i : HW_MASK_SPAN;
        const hw_real *scale = hw_mask_at(&mask, first + i, count);
        switch (f) { /* each with its own loop */
        case HW_RELU: forward(y + i, x + i, scale, count, HW_RELU); break;
        case HW_GELU: forward(y + i, x + i, scale, count, HW_GELU); break;
        case HW_SWISH: forward(y + i, x + i, scale, count, HW_SWISH); break;
        default: forward(y + i, x + i, scale, count, HW_IDENTITY); break;
        }
    }
}

void HW_KERNEL(activation_backward)(hw_real *dx, const hw_real *dy, const hw_real *x, int64_t n, hw_activation f,
                                    const hw_dropout *drop, int64_t first, bool overwrite)
{
    hw_mask mask;
    hw_mask_begin(&mask, drop, first);
    for (int64_t i = 0; i < n; i += HW_MASK_SPAN) {
        const int64_t count = n - i < HW_MASK_SPAN ? n - i : HW_MASK_SPAN;
        const hw_real *scale = hw_mask_at(&mask, first + i, count);
        switch (f) {
        case HW_RELU: backward(dx + i, dy + i, x + i, scale, count, HW_RELU, overwrite); break;
        case HW_GELU: backward(dx + i, dy + i, x + i, scale, count, HW_GELU, overwrite); break;
        case HW_SWISH: backward(dx + i, dy + i, x + i, scale, count, HW_SWISH, overwrite); break;
        default: backward(dx + i, dy + i, x + i, scale, count, HW_IDENTITY, overwrite); break;
        }
    }
}
