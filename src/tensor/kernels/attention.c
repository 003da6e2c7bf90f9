/* Attention of one head and one sentence; see src/tensor/attention_kernel.h.
 *
 * Sentences are short (a dozen tokens) and heads narrow (16 to 64 numbers), so the products are too small for BLAS. All
 * of them are one small kernel, fma_block: rows of a result as sums of rows of a matrix, weighted by scalars. Each
 * number is one chain of fused multiply-adds in ascending order, whatever the blocking, so bits do not depend on the
 * processor path. */
#include "../attention_kernel.h"
#include "vector.h"

#define CONCATENATE_(a, b) a##b
#define CONCATENATE(a, b) CONCATENATE_(a, b)

enum { SINGLE_HEADS = 4 }; /* heads of one query worked on together */

/* R rows of out [., 16 or fewer columns] (+)= sum_t c[r, t] M[t]; R is a constant where this is inlined. */
HW_INLINE void fma_rows(int R, hw_real *out, int64_t ldo, int64_t cols, const hw_real *c, int64_t cr, int64_t ct,
                        const hw_real *M, int64_t ldm, int64_t T, bool add)
{
    hw_v16 acc[8];
    bool whole = cols >= HW_LANES;
    for (int r = 0; r < R; r++)
        acc[r] = !add ? hw_v16_zero() : whole ? hw_v16_load(out + r * ldo) : hw_v16_load_part(out + r * ldo, cols, 0);
    if (whole) {
        for (int64_t t = 0; t < T; t++) {
            hw_v16 row = hw_v16_load(M + t * ldm);
            for (int r = 0; r < R; r++) acc[r] = hw_v16_fma(hw_v16_set1(c[r * cr + t * ct]), row, acc[r]);
        }
        for (int r = 0; r < R; r++) hw_v16_store(out + r * ldo, acc[r]);
    } else {
        for (int64_t t = 0; t < T; t++) {
            hw_v16 row = hw_v16_load_part(M + t * ldm, cols, 0);
            for (int r = 0; r < R; r++) acc[r] = hw_v16_fma(hw_v16_set1(c[r * cr + t * ct]), row, acc[r]);
        }
        for (int r = 0; r < R; r++) hw_v16_store_part(out + r * ldo, acc[r], cols);
    }
}

/* out [rows, cols] (+)= C M with C[r, t] = c[r cr + t ct] and M [T, cols]: C may stand transposed. */
static void fma_block(hw_real *out, int64_t ldo, int64_t rows, int64_t cols, const hw_real *c, int64_t cr, int64_t ct,
                      const hw_real *M, int64_t ldm, int64_t T, bool add)
{
    for (int64_t j = 0; j < cols; j += HW_LANES) {
        int64_t r = 0, left = cols - j;
#define ROWS(R) fma_rows(R, out + r * ldo + j, ldo, left, c + r * cr, cr, ct, M + j, ldm, T, add)
        for (; r + 8 <= rows; r += 8) ROWS(8);
        if (rows - r >= 4) {
            ROWS(4);
            r += 4;
        }
        switch (rows - r) {
        case 3:
            ROWS(3);
            break;
        case 2:
            ROWS(2);
            break;
        case 1:
            ROWS(1);
            break;
        default:
            break;
        }
#undef ROWS
    }
}

/* t [width, stride] = x' with zeros behind the m columns */
static void transpose(hw_real *t, int64_t stride, const hw_real *x, int64_t ldx, int64_t m, int64_t width)
{
    for (int64_t j = 0; j < stride; j++)
        for (int64_t d = 0; d < width; d++) t[d * stride + j] = j < m ? x[j * ldx + d] : 0;
}

/* How many keys query i may see. */
HW_INLINE int64_t visible(const hw_attention_head *h, int64_t i)
{
    int64_t seen = h->causal ? i + 1 + h->m - h->n : h->m;
    return seen < 0 ? 0 : seen;
}

/* Lanes behind the first seen - j of them become -inf, whose exp is 0. */
HW_INLINE hw_v16 hide(hw_v16 s, int64_t seen, int64_t j)
{
    static const hw_real lane[HW_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    if (seen - j >= HW_LANES) return s;
    return hw_v16_select(hw_v16_less(hw_v16_load(lane), hw_v16_set1((hw_real)(seen - j))), s,
                         hw_v16_set1(-(hw_real)INFINITY));
}

HW_INLINE hw_v16 inverse_of(hw_v16 total)
{
    hw_real sum = hw_v16_sum(total);
    return hw_v16_set1(sum > 0 ? 1 / sum : 0); /* no keys give zeros */
}

/* R rows of `vectors` vectors each, R and vectors constants, so that the rows wait for each other's latencies and stay
 * in registers: x [r, 0 .. stride) = softmax(scale[r] x) over the first seen[r] numbers, zeros behind. */
HW_INLINE void softmax_rows(int R, int vectors, hw_real *x, int64_t stride, const int64_t *seen, const hw_real *scale)
{
    hw_v16 e[4][2], top[4], inverse[4];
    for (int r = 0; r < R; r++) {
        hw_v16 factor = hw_v16_set1(scale[r]);
        for (int v = 0; v < vectors; v++)
            e[r][v] = hide(hw_v16_mul(hw_v16_load(x + r * stride + v * HW_LANES), factor), seen[r], v * HW_LANES);
        hw_v16 most = vectors > 1 ? hw_v16_maximum(e[r][0], e[r][1]) : e[r][0];
        hw_real reached = hw_v16_reduce_max(most);
        top[r] = hw_v16_set1(seen[r] > 0 ? reached : 0);
    }
    for (int r = 0; r < R; r++)
        for (int v = 0; v < vectors; v++) e[r][v] = hw_v16_exp(hw_v16_sub(e[r][v], top[r]));
    for (int r = 0; r < R; r++) inverse[r] = inverse_of(vectors > 1 ? hw_v16_add(e[r][0], e[r][1]) : e[r][0]);
    for (int r = 0; r < R; r++)
        for (int v = 0; v < vectors; v++) hw_v16_store(x + r * stride + v * HW_LANES, hw_v16_mul(e[r][v], inverse[r]));
}

/* One row of any length. */
static void softmax_row(hw_real *x, int64_t seen, int64_t stride, hw_real scale)
{
    const hw_v16 factor = hw_v16_set1(scale);
    hw_v16 most = hw_v16_set1(-(hw_real)INFINITY), total = hw_v16_zero();
    int64_t j;
    for (j = 0; j < seen; j += HW_LANES)
        most = hw_v16_maximum(most, hide(hw_v16_mul(hw_v16_load(x + j), factor), seen, j));
    hw_v16 top = hw_v16_set1(hw_v16_reduce_max(most));
    for (j = 0; j < seen; j += HW_LANES) {
        hw_v16 e = hw_v16_exp(hw_v16_sub(hide(hw_v16_mul(hw_v16_load(x + j), factor), seen, j), top));
        hw_v16_store(x + j, e);
        total = hw_v16_add(total, e);
    }
    hw_v16 inverse = inverse_of(total);
    for (j = 0; j < seen; j += HW_LANES) hw_v16_store(x + j, hw_v16_mul(hw_v16_load(x + j), inverse));
    for (; j < stride; j += HW_LANES) hw_v16_store(x + j, hw_v16_zero());
}

/* x [rows, stride] = softmax(scale[r] x) over the first seen[r] numbers of each. */
static void softmax_all(hw_real *x, int64_t rows, int64_t stride, const int64_t *seen, const hw_real *scale)
{
    int64_t r = 0;
    if (stride == HW_LANES)
        for (; r + 4 <= rows; r += 4) softmax_rows(4, 1, x + r * stride, stride, seen + r, scale + r);
    if (stride == 2 * HW_LANES)
        for (; r + 4 <= rows; r += 4) softmax_rows(4, 2, x + r * stride, stride, seen + r, scale + r);
    for (; r < rows; r++) softmax_row(x + r * stride, seen[r], stride, scale[r]);
}

static void softmax_block(const hw_attention_head *h, int64_t i, int64_t rows, hw_real *a)
{
    int64_t seen[HW_ATTENTION_BLOCK];
    hw_real scale[HW_ATTENTION_BLOCK];
    for (int64_t k = 0; k < rows; k++) {
        seen[k] = visible(h, i + k);
        scale[k] = h->scale;
    }
    softmax_all(a, rows, hw_attention_stride(h->m), seen, scale);
}

/* The weights of queries i .. i + rows - 1 into a [rows, stride]; kt is K transposed. */
static void block_weights(const hw_attention_head *h, const hw_real *kt, int64_t i, int64_t rows, hw_real *a)
{
    int64_t stride = hw_attention_stride(h->m), most = visible(h, i + rows - 1);
    fma_block(a, stride, rows, hw_attention_stride(most), h->q + i * h->ldq, h->ldq, 1, kt, stride, h->width, false);
    softmax_block(h, i, rows, a);
}

HW_INLINE int64_t row_of(const hw_attention_head *h, int64_t key) { return h->rows ? h->rows[key] : key; }

/* Scores of one query, four keys at a time and without transposing them, each a sum over 16 lanes. Behind the m-th up to
 * the next fourth stands anything. */
static void single_scores(const hw_real *q, const hw_real *k, const hw_attention_head *h, hw_real *scores)
{
    int64_t m = h->m, width = h->width;
    for (int64_t j = 0; j < m; j += 4) {
        const hw_real *key[4];
        hw_v16 acc[4];
        for (int i = 0; i < 4; i++) {
            key[i] = k + row_of(h, j + i < m ? j + i : m - 1) * h->ldk;
            acc[i] = hw_v16_zero();
        }
        int64_t d = 0;
        for (; d + HW_LANES <= width; d += HW_LANES)
            for (int i = 0; i < 4; i++)
                acc[i] = hw_v16_fma(hw_v16_load(q + d), hw_v16_load(key[i] + d), acc[i]);
        for (int i = 0; i < 4 && d < width; i++)
            acc[i] = hw_v16_fma(hw_v16_load_part(q + d, width - d, 0), hw_v16_load_part(key[i] + d, width - d, 0),
                                acc[i]);
        hw_v16_sum_four(acc, scores + j);
    }
}

static void single_weights(const hw_attention_head *h, hw_real *a)
{
    single_scores(h->q, h->k, h, a);
    softmax_row(a, h->m, hw_attention_stride(h->m), h->scale);
}

/* b = dropout(a) for queries i .. i + rows - 1: eight rows of the batch and 16 keys of a head share a group of random
 * bits. */
static void block_dropout(const hw_attention_head *h, int64_t i, int64_t rows, const hw_real *a, hw_real *b)
{
    int64_t stride = hw_attention_stride(h->m), most = hw_attention_stride(visible(h, i + rows - 1));
    int64_t first = h->first_row + i, end = first + rows;
    for (int64_t octet = first / 8; octet * 8 < end; octet++) {
        int64_t from = octet * 8 < first ? first : octet * 8, to = octet * 8 + 8 > end ? end : octet * 8 + 8;
        for (int64_t j = 0; j < most; j += HW_LANES) {
            hw_v16 mask[8];
            hw_dropout_mask(h->drop, ((uint64_t)(octet * h->heads + h->head) << 24) + (uint64_t)(j / HW_LANES), mask);
            for (int64_t row = from; row < to; row++) {
                int64_t at = (row - first) * stride + j;
                hw_v16_store(b + at, hw_v16_mul(hw_v16_load(a + at), mask[row % 8]));
            }
        }
    }
}

static void forward(const hw_attention_head *h, hw_real *out, int64_t ldout, hw_real *weights)
{
    int64_t stride = hw_attention_stride(h->m), width = h->width;
    hw_real *kt = h->scratch, *block = kt + 2 * width * stride, *dropped = block + HW_ATTENTION_BLOCK * stride;
    bool drop = h->drop && h->drop->threshold;
    if (h->n > 1) transpose(kt, stride, h->k, h->ldk, h->m, width);
    for (int64_t i = 0; i < h->n; i += HW_ATTENTION_BLOCK) {
        int64_t rows = h->n - i < HW_ATTENTION_BLOCK ? h->n - i : HW_ATTENTION_BLOCK;
        hw_real *a = weights ? weights + i * stride : block;
        if (h->n > 1)
            block_weights(h, kt, i, rows, a);
        else
            single_weights(h, a);
        if (drop) block_dropout(h, i, rows, a, dropped);
        fma_block(out + i * ldout, ldout, rows, width, drop ? dropped : a, stride, 1, h->v, h->ldv,
                  visible(h, i + rows - 1), false);
    }
}

/* out [heads, width] = A V, A [heads, stride]; heads, a constant, wait for each other's latencies. */
HW_INLINE void single_values(int heads, const hw_attention_head *h, const hw_real *a, const hw_real *v, hw_real *out)
{
    int64_t stride = hw_attention_stride(h->m), width = h->width;
    for (int64_t d = 0; d < width; d += HW_LANES) {
        int64_t left = width - d;
        hw_v16 acc[SINGLE_HEADS];
        for (int i = 0; i < heads; i++) acc[i] = hw_v16_zero();
        for (int64_t j = 0; j < h->m; j++) {
            const hw_real *at = v + row_of(h, j) * h->ldv + d;
            for (int i = 0; i < heads; i++, at += width) {
                hw_v16 value = left >= HW_LANES ? hw_v16_load(at) : hw_v16_load_part(at, left, 0);
                acc[i] = hw_v16_fma(hw_v16_set1(a[i * stride + j]), value, acc[i]);
            }
        }
        for (int i = 0; i < heads; i++)
            if (left >= HW_LANES)
                hw_v16_store(out + i * width + d, acc[i]);
            else
                hw_v16_store_part(out + i * width + d, acc[i], left);
    }
}

static void single(const hw_attention_head *h, int64_t heads, const hw_real *sharpness, hw_real *out, hw_real *weights)
{
    int64_t stride = hw_attention_stride(h->m), width = h->width, left;
    for (int64_t first = 0; first < heads; first += SINGLE_HEADS) {
        int64_t seen[SINGLE_HEADS], at = first * width;
        hw_real scale[SINGLE_HEADS], *a = weights ? weights + first * stride : h->scratch;
        left = heads - first < SINGLE_HEADS ? heads - first : SINGLE_HEADS;
        for (int64_t i = 0; i < left; i++) {
            seen[i] = h->m;
            scale[i] = h->scale * (sharpness ? sharpness[first + i] : 1);
            single_scores(h->q + at + i * width, h->k + at + i * width, h, a + i * stride);
        }
        softmax_all(a, left, stride, seen, scale);
        if (left == SINGLE_HEADS)
            single_values(SINGLE_HEADS, h, a, h->v + at, out + at);
        else
            for (int64_t i = 0; i < left; i++)
                single_values(1, h, a + i * stride, h->v + at + i * width, out + at + i * width);
    }
}

/* da [rows, stride] = dO V' becomes the gradient of the scores in place:
 *   dA = dropout(dO V') + dweights,  dS = scale A (dA - sum_j dA_j A_j) */
static void block_scores_backward(const hw_attention_head *h, const hw_attention_gradients *g, int64_t i, int64_t rows,
                                  const hw_real *a, hw_real *da)
{
    int64_t stride = hw_attention_stride(h->m);
    if (h->drop && h->drop->threshold) block_dropout(h, i, rows, da, da);
    const hw_v16 scale = hw_v16_set1(h->scale);
    for (int64_t r = 0; r < rows; r++) {
        int64_t seen = visible(h, i + r), end = hw_attention_stride(visible(h, i + rows - 1));
        hw_v16 total = hw_v16_zero();
        for (int64_t j = 0; j < seen; j += HW_LANES) {
            int64_t at = r * stride + j, lanes = seen - j < HW_LANES ? seen - j : HW_LANES;
            hw_v16 d = hw_v16_load(da + at);
            if (g->dweights) d = hw_v16_add(d, hw_v16_load_part(g->dweights + (i + r) * h->m + j, lanes, 0));
            hw_v16_store(da + at, d);
            total = hw_v16_fma(d, hw_v16_load(a + at), total);
        }
        hw_v16 mean = hw_v16_set1(hw_v16_sum(total));
        for (int64_t j = 0; j < end; j += HW_LANES) { /* where a is 0 the result is 0 */
            int64_t at = r * stride + j;
            hw_v16 p = hw_v16_mul(hw_v16_load(a + at), scale);
            hw_v16_store(da + at, hw_v16_mul(p, hw_v16_sub(hw_v16_load(da + at), mean)));
        }
    }
}

static void clear(hw_real *x, int64_t ldx, int64_t rows, int64_t width)
{
    for (int64_t r = 0; r < rows; r++) memset(x + r * ldx, 0, (size_t)width * sizeof *x);
}

static void backward(const hw_attention_head *h, const hw_real *weights, const hw_attention_gradients *g)
{
    int64_t stride = hw_attention_stride(h->m), width = h->width;
    hw_real *kt = h->scratch, *vt = kt + width * stride, *block = vt + width * stride;
    hw_real *dropped = block + HW_ATTENTION_BLOCK * stride, *da = dropped + HW_ATTENTION_BLOCK * stride;
    bool drop = h->drop && h->drop->threshold,
         one = h->n > 0 && h->n <= HW_ATTENTION_BLOCK; /* one block reaches every key */
    if (g->dk && g->set_k && !one) clear(g->dk, g->lddk, h->m, width);
    if (g->dv && g->set_v && !one) clear(g->dv, g->lddv, h->m, width);
    if (!weights && h->n > 1) transpose(kt, stride, h->k, h->ldk, h->m, width);
    transpose(vt, stride, h->v, h->ldv, h->m, width);
    for (int64_t i = 0; i < h->n; i += HW_ATTENTION_BLOCK) {
        int64_t rows = h->n - i < HW_ATTENTION_BLOCK ? h->n - i : HW_ATTENTION_BLOCK;
        int64_t most = visible(h, i + rows - 1);
        const hw_real *a = weights ? weights + i * stride : block, *dout = g->dout + i * g->ldout;
        if (!weights && h->n > 1)
            block_weights(h, kt, i, rows, block);
        else if (!weights)
            single_weights(h, block);
        if (drop) block_dropout(h, i, rows, a, dropped);
        if (g->dv)
            fma_block(g->dv, g->lddv, most, width, drop ? dropped : a, 1, stride, dout, g->ldout, rows,
                      !(g->set_v && one));
        if (!g->dq && !g->dk) continue;
        fma_block(da, stride, rows, hw_attention_stride(most), dout, g->ldout, 1, vt, stride, width, false);
        block_scores_backward(h, g, i, rows, a, da);
        if (g->dq) fma_block(g->dq + i * g->lddq, g->lddq, rows, width, da, stride, 1, h->k, h->ldk, most, !g->set_q);
        if (g->dk)
            fma_block(g->dk, g->lddk, most, width, da, 1, stride, h->q + i * h->ldq, h->ldq, rows, !(g->set_k && one));
    }
}

const hw_attention_kernels CONCATENATE(hw_attention_kernels_, HW_PATH) = {forward, single, backward};
