/* Attention of one head and one sentence: what the op (src/autograd/attention.c) asks of a processor path.
 *
 *   A = softmax(scale Q K' + mask),  O = dropout(A) V            Q [n, K], K and V [m, K], A [n, m], O [n, K]
 *
 * Queries are worked on in blocks of rows, so scratch grows with m only; A is written out where the caller gives room
 * for it and computed again on the way back where not (Dao et al. 2022, section 3.1). With causal, query i sees keys 0
 * .. i + m - n. */
#ifndef HW_TENSOR_ATTENTION_KERNEL_H
#define HW_TENSOR_ATTENTION_KERNEL_H

#include <headwise/tensor.h>

typedef struct hw_attention_head {
    int64_t n, m, width; /* queries, keys, K */
    const hw_real *q, *k, *v;
    int64_t ldq, ldk, ldv; /* distances of rows */
    const int32_t *rows;   /* of k and v, [m], for `single` alone; NULL: 0, 1, 2 ... */
    hw_real scale;
    bool causal;
    const hw_dropout *drop;
    int64_t first_row, head,
        heads;        /* which dropout mask: the first query's row within the batch, this head, of how many */
    hw_real *scratch; /* hw_attention_scratch() numbers, aligned to 64 bytes */
} hw_attention_head;

typedef struct hw_attention_gradients {
    const hw_real *dout;     /* [n, K] */
    const hw_real *dweights; /* [n, m], rows m apart, or NULL */
    hw_real *dq, *dk, *dv;   /* += , or = where set; NULL where not asked for */
    int64_t ldout, lddq, lddk, lddv;
    bool set_q, set_k, set_v;
} hw_attention_gradients;

/* Rows of kept weights are this far apart: m rounded up to whole vectors, zeros behind. */
static inline int64_t hw_attention_stride(int64_t m) { return (m + 15) / 16 * 16; }

enum { HW_ATTENTION_BLOCK = 16 }; /* query rows worked on at a time */
static inline int64_t hw_attention_scratch(int64_t m, int64_t width)
{
    return hw_attention_stride(m) * (2 * width + 3 * HW_ATTENTION_BLOCK);
}

typedef struct hw_attention_kernels {
    /* out [n, K], rows ldout apart; weights [n, stride(m)], before dropout, or NULL. */
    void (*forward)(const hw_attention_head *head, hw_real *out, int64_t ldout, hw_real *weights);
    /* All heads of one query, which no dropout reaches: head is the first, the others stand behind it, q, k, v and out
     * width apart. Their scales are its own times sharpness [heads], or NULL for 1; weights [heads, stride(m)] or NULL.
     * The bits are those of forward, a head at a time. */
    void (*single)(const hw_attention_head *head, int64_t heads, const hw_real *sharpness, hw_real *out,
                   hw_real *weights);
    /* weights as forward left them, or NULL to compute them again. */
    void (*backward)(const hw_attention_head *head, const hw_real *weights, const hw_attention_gradients *gradients);
} hw_attention_kernels;

extern const hw_attention_kernels hw_attention_kernels_generic, hw_attention_kernels_avx2, hw_attention_kernels_avx512;

#endif
