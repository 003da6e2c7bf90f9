/* Layer norm (Ba et al. 2016), alone and behind a residual connection with dropout, forward and back. A row is read
 * three times: its mean, its variance about that mean, the result; from the second time on it stands in the
 * first-level cache. */
#include "kernel.h"

enum { BLOCK = 8 }; /* rows whose steps are taken together */

static inline hw_real inverse_root(hw_real x)
{
#ifdef HW_REAL_DOUBLE
    return 1 / sqrt(x);
#else
    return 1 / sqrtf(x);
#endif
}

/* Layer norm of `count` rows whose sums, lane by lane, are known. Each step is done for all rows before the next:
 * alone, a row would wait for its own sums most of the time. */
HW_INLINE void block_norm(hw_real *y, hw_real *mean_out, hw_real *rstd_out, const hw_real *x, const hw_v16 total[BLOCK],
                          const hw_real *gamma, const hw_real *beta, int64_t count, int64_t cols, hw_real epsilon)
{
    hw_real mean[BLOCK], rstd[BLOCK];
    for (int64_t r = 0; r < count; r++) mean[r] = hw_v16_sum(total[r]) / (hw_real)cols;
    for (int64_t r = 0; r < count; r++) {
        const hw_real *row = x + r * cols;
        const hw_v16 centre = hw_v16_set1(mean[r]);
        hw_v16 squares = hw_v16_zero();
        HW_EACH_VECTOR(i, m, cols, {
            hw_v16 d = hw_v16_sub(hw_get(row + i, m, mean[r]), centre);
            squares = hw_v16_fma(d, d, squares);
        });
        rstd[r] = inverse_root(hw_v16_sum(squares) / (hw_real)cols + epsilon);
    }
    for (int64_t r = 0; r < count; r++) {
        const hw_real *row = x + r * cols;
        const hw_v16 centre = hw_v16_set1(mean[r]), by = hw_v16_set1(rstd[r]);
        HW_EACH_VECTOR(i, m, cols, {
            hw_v16 normal = hw_v16_mul(hw_v16_sub(hw_get(row + i, m, 0), centre), by);
            hw_put(y + r * cols + i, hw_v16_fma(normal, hw_get(gamma + i, m, 0), hw_get(beta + i, m, 0)), m);
        });
        if (mean_out) mean_out[r] = mean[r];
        if (rstd_out) rstd_out[r] = rstd[r];
    }
}

void HW_KERNEL(layer_norm)(hw_real *y, hw_real *mean, hw_real *rstd, const hw_real *x, const hw_real *gamma,
                           const hw_real *beta, int64_t rows, int64_t cols, hw_real epsilon)
{
    for (int64_t start = 0; start < rows; start += BLOCK) {
        const int64_t count = rows - start < BLOCK ? rows - start : BLOCK, at = start * cols;
        hw_v16 total[BLOCK];
        for (int64_t r = 0; r < count; r++) {
            total[r] = hw_v16_zero();
            HW_EACH_VECTOR(i, m, cols, { total[r] = hw_v16_add(total[r], hw_get(x + at + r * cols + i, m, 0)); });
        }
        block_norm(y + at, mean ? mean + start : NULL, rstd ? rstd + start : NULL, x + at, total, gamma, beta, count,
                   cols, epsilon);
    }
}

/* sum = x + mask branch for n numbers; total += sum, lane by lane */
HW_INLINE hw_v16 residual(hw_real *sum, const hw_real *x, const hw_real *branch, const hw_real *mask, int64_t n,
                          hw_v16 total)
{
    HW_EACH_VECTOR(i, m, n, {
        hw_v16 b = hw_get(branch + i, m, 0);
        hw_v16 s = hw_get(x + i, m, 0);
        s = mask ? hw_v16_fma(b, hw_get(mask + i, m, 0), s) : hw_v16_add(b, s);
        hw_put(sum + i, s, m);
        total = hw_v16_add(total, s);
    });
    return total;
}

void HW_KERNEL(residual_layer_norm)(hw_real *y, hw_real *sum, hw_real *mean, hw_real *rstd, const hw_real *x,
                                    const hw_real *branch, const hw_real *gamma, const hw_real *beta, int64_t rows,
                                    int64_t cols, hw_real epsilon, const hw_dropout *drop, int64_t first)
{
    hw_mask mask;
    hw_mask_begin(&mask, drop, first);
    for (int64_t start = 0; start < rows; start += BLOCK) {
        const int64_t count = rows - start < BLOCK ? rows - start : BLOCK, from = start * cols;
        hw_v16 total[BLOCK];
        for (int64_t r = 0; r < count; r++) {
            total[r] = hw_v16_zero();
            for (int64_t c = 0; c < cols; c += HW_MASK_SPAN) {
                const int64_t at = from + r * cols + c, n = cols - c < HW_MASK_SPAN ? cols - c : HW_MASK_SPAN;
                total[r] = residual(sum + at, x + at, branch + at, hw_mask_at(&mask, first + at, n), n, total[r]);
            }
        }
        if (gamma)
            block_norm(y + from, mean ? mean + start : NULL, rstd ? rstd + start : NULL, sum + from, total, gamma, beta,
                       count, cols, epsilon);
    }
}

/* What a row's gradient needs of the whole row: the means of g = dy gamma and of g n, with n = (x - mean) rstd. */
typedef struct row_terms {
    hw_v16 centre, by, mean_g, mean_gn;
} row_terms;

/* One pass over the row: its terms, and dgamma += dy n, dbeta += dy. */
HW_INLINE row_terms row_reduce(hw_real *dgamma, hw_real *dbeta, const hw_real *dy, const hw_real *x, hw_real mean,
                               hw_real rstd, const hw_real *gamma, int64_t cols)
{
    row_terms t = {.centre = hw_v16_set1(mean), .by = hw_v16_set1(rstd)};
    hw_v16 sum_g = hw_v16_zero(), sum_gn = hw_v16_zero();
    HW_EACH_VECTOR(i, m, cols, {
        hw_v16 d = hw_get(dy + i, m, 0);
        hw_v16 normal = hw_v16_mul(hw_v16_sub(hw_get(x + i, m, mean), t.centre), t.by);
        hw_v16 g = hw_v16_mul(d, hw_get(gamma + i, m, 0));
        sum_g = hw_v16_add(sum_g, g);
        sum_gn = hw_v16_fma(g, normal, sum_gn);
        if (dgamma) {
            hw_put(dgamma + i, hw_v16_fma(d, normal, hw_get(dgamma + i, m, 0)), m);
            hw_put(dbeta + i, hw_v16_add(d, hw_get(dbeta + i, m, 0)), m);
        }
    });
    t.mean_g = hw_v16_set1(hw_v16_sum(sum_g) / (hw_real)cols);
    t.mean_gn = hw_v16_set1(hw_v16_sum(sum_gn) / (hw_real)cols);
    return t;
}

/* rstd (g - mean(g) - n mean(g n)) for m numbers */
HW_INLINE hw_v16 row_gradient(const row_terms *t, const hw_real *dy, const hw_real *x, const hw_real *gamma, int64_t m)
{
    hw_v16 normal = hw_v16_mul(hw_v16_sub(hw_get(x, m, 0), t->centre), t->by);
    hw_v16 g = hw_v16_sub(hw_v16_mul(hw_get(dy, m, 0), hw_get(gamma, m, 0)), t->mean_g);
    return hw_v16_mul(hw_v16_sub(g, hw_v16_mul(normal, t->mean_gn)), t->by);
}

HW_INLINE void accumulate(hw_real *to, hw_v16 d, bool overwrite, int64_t m)
{
    hw_put(to, overwrite ? d : hw_v16_add(hw_get(to, m, 0), d), m);
}

void HW_KERNEL(layer_norm_backward)(hw_real *dx, bool dx_overwrite, hw_real *dbranch, bool dbranch_overwrite,
                                    hw_real *dgamma, hw_real *dbeta, const hw_real *dy, const hw_real *x,
                                    const hw_real *mean, const hw_real *rstd, const hw_real *gamma, int64_t rows,
                                    int64_t cols, const hw_dropout *drop, int64_t first)
{
    hw_mask mask;
    hw_mask_begin(&mask, drop, first);
    for (int64_t r = 0; r < rows; r++) {
        const row_terms t =
            row_reduce(dgamma, dbeta, dy + r * cols, x + r * cols, mean[r], rstd[r], gamma, cols);
        for (int64_t c = 0; c < cols && (dx || dbranch); c += HW_MASK_SPAN) {
            const int64_t at = r * cols + c, n = cols - c < HW_MASK_SPAN ? cols - c : HW_MASK_SPAN;
            const hw_real *scale = dbranch ? hw_mask_at(&mask, first + at, n) : NULL;
            HW_EACH_VECTOR(i, m, n, {
                hw_v16 d = row_gradient(&t, dy + at + i, x + at + i, gamma + c + i, m);
                if (dx) accumulate(dx + at + i, d, dx_overwrite, m);
                if (scale) d = hw_v16_mul(d, hw_get(scale + i, m, 0));
                if (dbranch) accumulate(dbranch + at + i, d, dbranch_overwrite, m);
            });
        }
    }
}
