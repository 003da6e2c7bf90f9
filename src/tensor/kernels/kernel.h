/* What the kernels of one processor path share: names that carry the path, and their prototypes, whose contracts
 * stand in headwise/tensor.h. Every file here is compiled once a path (see FLAGS_* in the Makefile); table.c
 * collects them. */
#ifndef HW_TENSOR_KERNEL_H
#define HW_TENSOR_KERNEL_H

#include "vector.h"

#define HW_JOIN2(name, path) name##_##path
#define HW_JOIN(name, path) HW_JOIN2(name, path)
#define HW_KERNEL(name) HW_JOIN(hw_##name, HW_PATH)

void HW_KERNEL(multiply)(hw_real *y, int64_t ldy, const hw_real *x, int64_t ldx, int64_t rows, const hw_packed *w,
                         const hw_real *bias);

void HW_KERNEL(product)(hw_real *c, int64_t ldc, int64_t rows, int64_t cols, const hw_real *a, int64_t row_step,
                        int64_t term_step, const hw_real *b, int64_t ldb, int64_t terms, bool add);

void HW_KERNEL(add)(hw_real *y, const hw_real *x, int64_t n);
void HW_KERNEL(axpy)(hw_real *y, hw_real a, const hw_real *x, int64_t n);
void HW_KERNEL(scale)(hw_real *y, hw_real a, const hw_real *x, int64_t n);
void HW_KERNEL(multiply_add)(hw_real *y, const hw_real *a, const hw_real *b, int64_t n);
hw_real HW_KERNEL(sum)(const hw_real *x, int64_t n);
hw_real HW_KERNEL(dot)(const hw_real *a, const hw_real *b, int64_t n);
void HW_KERNEL(column_sum)(hw_real *y, const hw_real *x, int64_t ldx, int64_t rows, int64_t cols);
void HW_KERNEL(exp)(hw_real *y, const hw_real *x, int64_t n);
void HW_KERNEL(adam)(hw_real *w, hw_real *m, hw_real *v, const hw_real *grad, int64_t n, hw_real grad_scale,
                     hw_real rate, hw_real beta1, hw_real beta2, hw_real epsilon, hw_real correction1,
                     hw_real correction2, hw_real weight_decay, bool weight_decay_decoupled);

void HW_KERNEL(softmax)(hw_real *y, const hw_real *x, int64_t rows, int64_t cols);
void HW_KERNEL(softmax_backward)(hw_real *dx, const hw_real *dy, const hw_real *y, int64_t rows, int64_t cols);
void HW_KERNEL(log_softmax)(hw_real *y, const hw_real *x, int64_t rows, int64_t cols);
void HW_KERNEL(log_softmax_backward)(hw_real *dx, const hw_real *dy, const hw_real *y, int64_t rows, int64_t cols);
void HW_KERNEL(maxima)(hw_real *most, const hw_real *x, int64_t n);
int64_t HW_KERNEL(next_above)(const hw_real *x, int64_t n, hw_real least);
double HW_KERNEL(log_sum_exp)(const hw_real *x, int64_t n, hw_real top);
hw_real HW_KERNEL(cross_entropy)(hw_real *dx, double *loss, double *nll, const hw_real *x, int64_t cols,
                                 int64_t target, hw_real smoothing, hw_real scale);

void HW_KERNEL(activation)(hw_real *y, const hw_real *x, int64_t n, hw_activation f, const hw_dropout *drop,
                           int64_t first);
void HW_KERNEL(activation_backward)(hw_real *dx, const hw_real *dy, const hw_real *x, int64_t n, hw_activation f,
                                    const hw_dropout *drop, int64_t first, bool overwrite);

void HW_KERNEL(layer_norm)(hw_real *y, hw_real *mean, hw_real *rstd, const hw_real *x, const hw_real *gamma,
                           const hw_real *beta, int64_t rows, int64_t cols, hw_real epsilon);
void HW_KERNEL(residual_layer_norm)(hw_real *y, hw_real *sum, hw_real *mean, hw_real *rstd, const hw_real *x,
                                    const hw_real *branch, const hw_real *gamma, const hw_real *beta, int64_t rows,
                                    int64_t cols, hw_real epsilon, const hw_dropout *drop, int64_t first);
void HW_KERNEL(layer_norm_backward)(hw_real *dx, bool dx_overwrite, hw_real *dbranch, bool dbranch_overwrite,
                                    hw_real *dgamma, hw_real *dbeta, const hw_real *dy, const hw_real *x,
                                    const hw_real *mean, const hw_real *rstd, const hw_real *gamma, int64_t rows,
                                    int64_t cols, const hw_dropout *drop, int64_t first);

/* A loop over registers: its variable must be a constant in each turn, or the registers become memory. */
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)") for
#else
#define UNROLLED _Pragma("GCC unroll 16") for
#endif

/* Runs the block once for every vector of 0..n-1, with i the index of its first number and m how many it has: the
 * constant 16, and in a second copy for the end of the row what is left. hw_get and hw_put move m numbers. */
#define HW_EACH_VECTOR(i, m, n, ...)                                                                                   \
    do {                                                                                                               \
        int64_t i = 0;                                                                                                 \
        for (; i + HW_LANES <= (n); i += HW_LANES) {                                                                   \
            enum { m = HW_LANES };                                                                                     \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
        if (i < (n)) {                                                                                                 \
            const int64_t m = (n) - i;                                                                                 \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    } while (0)

HW_INLINE hw_v16 hw_get(const hw_real *p, int64_t m, hw_real fill)
{
    return m == HW_LANES ? hw_v16_load(p) : hw_v16_load_part(p, m, fill);
}

HW_INLINE void hw_put(hw_real *p, hw_v16 a, int64_t m)
{
    if (m == HW_LANES) hw_v16_store(p, a);
    else hw_v16_store_part(p, a, m);
}

/* Dropout's multipliers along a flat array, drawn one group of 128 at a time and each group once. */
enum { HW_MASK_SPAN = 512 };
typedef struct hw_mask {
    const hw_dropout *drop;
    uint64_t start, end; /* which elements the buffer holds; the end is the end of a group */
    hw_real scale[HW_MASK_SPAN + 2 * HW_DROPOUT_GROUP];
} hw_mask;

HW_INLINE void hw_mask_begin(hw_mask *mask, const hw_dropout *drop, int64_t first)
{
    mask->drop = drop && drop->threshold ? drop : NULL;
    mask->start = mask->end = (uint64_t)first / HW_DROPOUT_GROUP * HW_DROPOUT_GROUP;
}

/* The multipliers of the elements first .. first + n - 1, valid until the next call; n <= HW_MASK_SPAN, and first
 * never goes back. NULL where nothing is dropped. */
static inline const hw_real *hw_mask_at(hw_mask *mask, int64_t first, int64_t n)
{
    const uint64_t from = (uint64_t)first;
    if (!mask->drop) return NULL;
    if (from + (uint64_t)n > mask->end) {
        uint64_t keep = mask->end > from ? mask->end - from : 0;
        if (from > mask->end) mask->end = from / HW_DROPOUT_GROUP * HW_DROPOUT_GROUP;
        memmove(mask->scale, mask->scale + (mask->end - keep - mask->start), keep * sizeof *mask->scale);
        mask->start = mask->end - keep;
        for (; mask->end < from + (uint64_t)n; mask->end += HW_DROPOUT_GROUP) {
            hw_v16 group[8];
            hw_dropout_mask(mask->drop, mask->end / HW_DROPOUT_GROUP, group);
            for (int v = 0; v < 8; v++) hw_v16_store(mask->scale + (mask->end - mask->start) + v * HW_LANES, group[v]);
        }
    }
    return mask->scale + (from - mask->start);
}

#endif
