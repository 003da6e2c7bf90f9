/* Layer 2, tensor: the tensor struct, matrix multiplication, and the row kernels.
 *
 * A tensor is a row-major block of hw_real. Matrices here are rows of features: [N, C] is N tokens with C numbers each.
 * This layer is the only caller of CBLAS. Every kernel gives the same bits for a row whatever other rows stand around
 * it and whichever processor path runs it (AVX-512, AVX2, plain C): sums go through 16 fixed lanes and products through
 * fused multiply-adds in a fixed order. Only hw_gemm, which gradients use, depends on the BLAS kernel. */
#ifndef HEADWISE_TENSOR_H
#define HEADWISE_TENSOR_H

#include <headwise/base.h>

#define HW_MAX_RANK 4

/* A weight matrix laid out for the packed multiplication: panels of 32 outputs, k outermost in a panel, the last panel
 * filled with zeros. */
typedef struct hw_packed {
    int64_t outputs, inputs;
    hw_real *panels; /* hw_packed_size(outputs, inputs) numbers, aligned to 64 bytes */
} hw_packed;

typedef struct hw_tensor {
    hw_real *data; /* NULL in a parameter of which only the packed layout was kept (hw_parameters_settle) */
    hw_real *grad; /* same shape, or NULL where none was asked for yet */
    int rank;
    int64_t shape[HW_MAX_RANK];
    bool needs_grad;         /* does a gradient flow here? */
    const hw_packed *packed; /* parameters: the layout that the forward multiplication reads, or NULL */
    const void *tape;        /* which tape computed it; NULL for parameters and constants */
    uint64_t generation;     /* in which of the tape's steps */
    int64_t first_row;       /* the index of row 0 within the whole step's batch: the key of dropout */
} hw_tensor;

int64_t hw_tensor_size(const hw_tensor *x); /* how many numbers */
int64_t hw_tensor_rows(const hw_tensor *x); /* the product of all dimensions but the last */
int64_t hw_tensor_cols(const hw_tensor *x); /* the last dimension */

/* A tensor in the arena with data not initialised and no gradient. */
hw_tensor *hw_tensor_new(hw_arena *arena, int rank, const int64_t *shape);
bool hw_tensor_same_shape(const hw_tensor *a, const hw_tensor *b);
/* "[12, 64]" into text, which is returned. */
const char *hw_tensor_shape_text(const hw_tensor *x, char text[96]);

/* ---- multiplication ---------------------------------------------------------------------------------------------- */

/* c [m, n] = alpha op(a) op(b) + beta c, row-major, on one thread. op(a) is [m, k], op(b) [k, n]; lda, ldb, ldc are the
 * distances of rows as stored. beta 0 means c is written without being read. */
void hw_gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, hw_real alpha, const hw_real *a,
             int64_t lda, const hw_real *b, int64_t ldb, hw_real beta, hw_real *c, int64_t ldc);

/* c [rows, cols] = (add: +=) op(a) b with b [terms, cols], as gradients need it, by whichever is faster for the sizes
 * (nothing else decides): the kernels' product where rows are short, BLAS where they are long. */
void hw_product(bool transpose_a, int64_t rows, int64_t cols, int64_t terms, const hw_real *a, int64_t lda,
                const hw_real *b, int64_t ldb, bool add, hw_real *c, int64_t ldc);

/* The name of the kernel that OpenBLAS runs ("SkylakeX"), for records: gradients' bits depend on it. */
const char *hw_blas_kernel(void);

int64_t hw_packed_size(int64_t outputs, int64_t inputs); /* in numbers */
/* Lays W [outputs, inputs] (rows ldw apart) out into p->panels. With transposed, W is stored as [inputs, outputs]. */
void hw_pack(hw_packed *p, const hw_real *w, int64_t ldw, bool transposed);
void hw_packed_row(const hw_packed *p, int64_t output, hw_real *row); /* W[output] back, [inputs] */

/* ---- the largest result ------------------------------------------------------------------------------------------ */

/* A weight W and its bias [outputs], prepared for finding the largest of x W' + bias without computing all: see
 * src/tensor/screen.c. Both stay where they are and must outlive it. NULL where this processor or build cannot, or where
 * a weight is not finite: then `multiply` tells. hw_screen_free gives it back. */
typedef struct hw_screen hw_screen;
hw_screen *hw_screen_new(const hw_packed *w, const hw_real *bias);
void hw_screen_free(hw_screen *screen); /* NULL is fine */
/* ids[r] = the first output with the largest value of row r of x [rows, inputs], the `without_count` outputs of
 * `without` left aside, and values[r] = that value: the same bits that `multiply` gives. False where x is too large or
 * not finite: then nothing is found. Working memory comes from the arena. */
bool hw_screen_largest(const hw_screen *screen, int32_t *ids, hw_real *values, const hw_real *x, int64_t rows,
                       const int32_t *without, int without_count, hw_arena *arena);

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

/* A dropout site. Whether element (row, column) survives is a function of these numbers and of its index alone, so no
 * mask is ever stored. An element survives with probability 1 - threshold / 65536 and is then scaled to keep the mean.
 */
typedef struct hw_dropout {
    uint32_t threshold; /* 0: off */
    hw_real scale;      /* 1 / (1 - threshold / 65536) */
    uint64_t seed;
    uint32_t step, site;
} hw_dropout;
hw_dropout hw_dropout_new(double p, uint64_t seed, uint32_t step, uint32_t site); /* 0 <= p < 1 */

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

enum { HW_STRETCH = 256 }; /* numbers whose maximum hw_kernels' maxima gives */

typedef enum hw_activation { HW_IDENTITY, HW_RELU, HW_GELU, HW_SWISH } hw_activation;

/* One implementation of everything that is done row by row. Sizes are in numbers, ld is the distance of rows. y may be
 * x where both have the same shape, unless it says otherwise. `first` is the index of the first element or row within
 * the whole batch, for dropout. A `d` in front is a gradient; += means accumulation. */
typedef struct hw_kernels {
    const char *name; /* "avx512", "avx2", "generic" */
    int vector_bits;

    /* y [rows, outputs] (rows ldy apart) = x [rows, inputs] W' + bias; each result is bias (or 0), then one chain of
     * fused multiply-adds with k ascending. */
    void (*multiply)(hw_real *y, int64_t ldy, const hw_real *x, int64_t ldx, int64_t rows, const hw_packed *w,
                     const hw_real *bias);

    /* c [rows, cols] = (add: +=) A b with b [terms, cols]; A[r, t] = a[r row_step + t term_step], one of the steps 1.
     * Each result is 0 (or c), then one chain of fused multiply-adds with t ascending. For gradients; see hw_product.
     */
    void (*product)(hw_real *c, int64_t ldc, int64_t rows, int64_t cols, const hw_real *a, int64_t row_step,
                    int64_t term_step, const hw_real *b, int64_t ldb, int64_t terms, bool add);

    void (*add)(hw_real *y, const hw_real *x, int64_t n);                            /* y += x */
    void (*axpy)(hw_real *y, hw_real a, const hw_real *x, int64_t n);                /* y += a x */
    void (*scale)(hw_real *y, hw_real a, const hw_real *x, int64_t n);               /* y = a x */
    void (*multiply_add)(hw_real *y, const hw_real *a, const hw_real *b, int64_t n); /* y += a b, elementwise */
    hw_real (*sum)(const hw_real *x, int64_t n);
    hw_real (*dot)(const hw_real *a, const hw_real *b, int64_t n);
    void (*column_sum)(hw_real *y, const hw_real *x, int64_t ldx, int64_t rows,
                       int64_t cols); /* y [cols] += sum of rows */

    void (*exp)(hw_real *y, const hw_real *x, int64_t n);
    /* Rows of -inf give rows of zeros (softmax) and -inf (log-softmax), never NaN. */
    void (*softmax)(hw_real *y, const hw_real *x, int64_t rows, int64_t cols);
    void (*softmax_backward)(hw_real *dx, const hw_real *dy, const hw_real *y, int64_t rows, int64_t cols); /* dx += */
    /* most[i] = the largest of x[256 i .. 256 i + 255]; [ceil(n / 256)]. A stretch with a NaN may give anything. */
    void (*maxima)(hw_real *most, const hw_real *x, int64_t n);
    int64_t (*next_above)(const hw_real *x, int64_t n, hw_real least); /* the first i with x[i] > least, or n */
    double (*log_sum_exp)(const hw_real *x, int64_t n, hw_real top); /* log sum_j exp x_j, top being the largest */
    void (*log_softmax)(hw_real *y, const hw_real *x, int64_t rows, int64_t cols);
    void (*log_softmax_backward)(hw_real *dx, const hw_real *dy, const hw_real *y, int64_t rows,
                                 int64_t cols); /* dx += */

    /* y = dropout(f(x)), elementwise over n numbers. */
    void (*activation)(hw_real *y, const hw_real *x, int64_t n, hw_activation f, const hw_dropout *drop, int64_t first);
    /* dx += (or =, where overwrite) dropout(dy) f'(x). x is what went in before f. */
    void (*activation_backward)(hw_real *dx, const hw_real *dy, const hw_real *x, int64_t n, hw_activation f,
                                const hw_dropout *drop, int64_t first, bool overwrite);

    /* y = (x - mean) rstd gamma + beta; mean and rstd [rows] are kept for the way back (NULL: not). */
    void (*layer_norm)(hw_real *y, hw_real *mean, hw_real *rstd, const hw_real *x, const hw_real *gamma,
                       const hw_real *beta, int64_t rows, int64_t cols, hw_real epsilon);
    /* sum = x + dropout(branch); y = layer_norm(sum). gamma NULL: the sum only, y, mean, rstd not touched. */
    void (*residual_layer_norm)(hw_real *y, hw_real *sum, hw_real *mean, hw_real *rstd, const hw_real *x,
                                const hw_real *branch, const hw_real *gamma, const hw_real *beta, int64_t rows,
                                int64_t cols, hw_real epsilon, const hw_dropout *drop, int64_t first);
    /* Back through both: dx, dbranch, dgamma, dbeta += ; dx, dbranch, dgamma may be NULL. x is what was normalised (the
     * sum). dx_overwrite, dbranch_overwrite: = in place of +=. */
    void (*layer_norm_backward)(hw_real *dx, bool dx_overwrite, hw_real *dbranch, bool dbranch_overwrite,
                                hw_real *dgamma, hw_real *dbeta, const hw_real *dy, const hw_real *x,
                                const hw_real *mean, const hw_real *rstd, const hw_real *gamma, int64_t rows,
                                int64_t cols, const hw_dropout *drop, int64_t first);

    /* One row of label-smoothed cross-entropy over logits x [cols] (Szegedy et al. 2016, section 7; epsilon spread over
     * all cols): *loss = -sum_j q_j log p_j, *nll = -log p_target, and, where dx is not NULL, dx = scale (p - q). dx
     * may be x. Returns the largest logit. */
    hw_real (*cross_entropy)(hw_real *dx, double *loss, double *nll, const hw_real *x, int64_t cols, int64_t target,
                             hw_real smoothing, hw_real scale);

    /* One step of Adam as PyTorch has it, over n numbers: grad is scaled by grad_scale first; decay is decoupled
     * (AdamW) where weight_decay_decoupled, else added to the gradient. correction1 = 1 - beta1^t, correction2 = 1 -
     * beta2^t. */
    void (*adam)(hw_real *w, hw_real *m, hw_real *v, const hw_real *grad, int64_t n, hw_real grad_scale, hw_real rate,
                 hw_real beta1, hw_real beta2, hw_real epsilon, hw_real correction1, hw_real correction2,
                 hw_real weight_decay, bool weight_decay_decoupled);

    /* Attention of one head and one sentence; see src/tensor/attention_kernel.h for the layout. */
    const struct hw_attention_kernels *attention;
} hw_kernels;

/* The best implementation that this processor runs; HEADWISE_CPU=avx512, avx2 or generic chooses another, which must be
 * one that it runs: hw_kernels_check fails where it is not, and says which there are. */
const hw_kernels *hw_kernels_get(void);
bool hw_kernels_check(hw_error *err);
/* The i-th implementation that this processor can run, from the plainest; NULL past the last. For tests. */
const hw_kernels *hw_kernels_at(int i);
/* Makes hw_kernels_get return this one. For tests and bench. */
void hw_kernels_set(const hw_kernels *kernels);

#endif
