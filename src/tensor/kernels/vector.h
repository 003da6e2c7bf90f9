/* A vector of 16 numbers, on which every row kernel stands, and the random bits of dropout.
 *
 * hw_v16 is made of as many parts as the processor path needs: one AVX-512 register, two AVX ones, four of 128 bits;
 * twice as many in the double build. A kernel written with it is one source for all paths and gives the same bits on
 * all of them: each lane is computed by itself with IEEE operations, sums of lanes go through one fixed tree, and
 * the fused multiply-add is exact even where the hardware has none. A part is a vector type of GCC and Clang that
 * fits a register (GCC keeps wider ones in memory), so operators work on parts and functions on hw_v16. */
#ifndef HW_TENSOR_VECTOR_H
#define HW_TENSOR_VECTOR_H

#include <float.h>
#include <math.h>
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

#include <headwise/tensor.h>

#define HW_INLINE static inline __attribute__((always_inline, unused))

/* For functions of many fused multiply-adds: without hardware for those, a copy at every use would be too large. */
#if defined HW_PATH_AVX512 || defined HW_PATH_AVX2
#define HW_LARGE HW_INLINE
#else
#define HW_LARGE static __attribute__((noinline, unused))
#endif

#if defined HW_PATH_AVX512
#define HW_PART_BYTES 64
#elif defined HW_PATH_AVX2
#define HW_PART_BYTES 32
#else
#define HW_PART_BYTES 16
#define HW_PATH_PLAIN
#endif

#ifdef HW_REAL_DOUBLE
typedef int64_t hw_lane_int;
#else
typedef int32_t hw_lane_int;
#endif

enum {
    HW_LANES = 16,
    HW_PART_LANES = HW_PART_BYTES / sizeof(hw_real),
    HW_PARTS = HW_LANES / HW_PART_LANES,
};

typedef hw_real hw_part __attribute__((vector_size(HW_PART_BYTES)));
typedef hw_lane_int hw_parti __attribute__((vector_size(HW_PART_BYTES)));
typedef uint32_t hw_part_u32 __attribute__((vector_size(HW_PART_BYTES)));
typedef uint64_t hw_part_u64 __attribute__((vector_size(HW_PART_BYTES)));
typedef hw_real hw_part_memory __attribute__((vector_size(HW_PART_BYTES), aligned(sizeof(hw_real)), may_alias));

typedef struct hw_v16 {
    hw_part part[HW_PARTS];
} hw_v16;

/* 16 integers as wide as a number; as a mask, all bits of a lane are set or none. */
typedef struct hw_v16i {
    hw_parti part[HW_PARTS];
} hw_v16i;

#define HW_EACH_PART(i) for (int i = 0; i < HW_PARTS; i++)

/* ---- memory ------------------------------------------------------------------------------------------------------ */

HW_INLINE hw_v16 hw_v16_set1(hw_real a)
{
    hw_v16 y;
    HW_EACH_PART(i) y.part[i] = a - (hw_part){0};
    return y;
}

HW_INLINE hw_v16 hw_v16_zero(void)
{
    hw_v16 y;
    HW_EACH_PART(i) y.part[i] = (hw_part){0};
    return y;
}

HW_INLINE hw_v16 hw_v16_load(const hw_real *p)
{
    hw_v16 y;
    HW_EACH_PART(i) y.part[i] = *(const hw_part_memory *)(p + i * HW_PART_LANES);
    return y;
}

HW_INLINE void hw_v16_store(hw_real *p, hw_v16 a)
{
    HW_EACH_PART(i) *(hw_part_memory *)(p + i * HW_PART_LANES) = a.part[i];
}

/* Lanes 0..n-1 from memory, the others fill; 0 <= n <= 16. Nothing beyond p[n-1] is touched. */
HW_INLINE hw_v16 hw_v16_load_part(const hw_real *p, int64_t n, hw_real fill)
{
    hw_v16 y;
#if defined HW_PATH_AVX512 && !defined HW_REAL_DOUBLE
    y.part[0] = (hw_part)_mm512_mask_loadu_ps(_mm512_set1_ps(fill), (__mmask16)((1u << n) - 1), p);
#elif defined HW_PATH_AVX2 && !defined HW_REAL_DOUBLE
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    HW_EACH_PART(i) {
        __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - i * 8), lane);
        y.part[i] = (hw_part)_mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(p + i * 8, mask), (__m256)mask);
    }
#else
    hw_real lanes[HW_LANES];
    for (int l = 0; l < HW_LANES; l++) lanes[l] = l < n ? p[l] : fill;
    y = hw_v16_load(lanes);
#endif
    return y;
}

/* Writes lanes 0..n-1; 0 <= n <= 16. */
HW_INLINE void hw_v16_store_part(hw_real *p, hw_v16 a, int64_t n)
{
#if defined HW_PATH_AVX512 && !defined HW_REAL_DOUBLE
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)a.part[0]);
#elif defined HW_PATH_AVX2 && !defined HW_REAL_DOUBLE
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    HW_EACH_PART(i) {
        __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - i * 8), lane);
        _mm256_maskstore_ps(p + i * 8, mask, (__m256)a.part[i]);
    }
#else
    hw_real lanes[HW_LANES];
    hw_v16_store(lanes, a);
    for (int l = 0; l < n; l++) p[l] = lanes[l];
#endif
}

/* ---- lane by lane ------------------------------------------------------------------------------------------------ */

#define HW_LANEWISE(name, expression)                                                                                  \
    HW_INLINE hw_v16 name(hw_v16 a, hw_v16 b)                                                                          \
    {                                                                                                                  \
        hw_v16 y;                                                                                                      \
        HW_EACH_PART(i) y.part[i] = expression;                                                                        \
        return y;                                                                                                      \
    }
#define HW_COMPARISON(name, expression)                                                                                \
    HW_INLINE hw_v16i name(hw_v16 a, hw_v16 b)                                                                         \
    {                                                                                                                  \
        hw_v16i y;                                                                                                     \
        HW_EACH_PART(i) y.part[i] = (hw_parti)(expression);                                                            \
        return y;                                                                                                      \
    }
HW_LANEWISE(hw_v16_add, a.part[i] + b.part[i])
HW_LANEWISE(hw_v16_sub, a.part[i] - b.part[i])
HW_LANEWISE(hw_v16_mul, a.part[i] * b.part[i])
HW_LANEWISE(hw_v16_div, a.part[i] / b.part[i])
HW_COMPARISON(hw_v16_less, a.part[i] < b.part[i])
HW_COMPARISON(hw_v16_equal, a.part[i] == b.part[i])
#undef HW_COMPARISON

/* yes where the mask is set, no elsewhere */
HW_INLINE hw_v16 hw_v16_select(hw_v16i mask, hw_v16 yes, hw_v16 no)
{
    hw_v16 y;
    HW_EACH_PART(i) {
#if defined HW_PATH_AVX2 && !defined HW_REAL_DOUBLE
        y.part[i] = (hw_part)_mm256_blendv_ps((__m256)no.part[i], (__m256)yes.part[i], (__m256)mask.part[i]);
#else
        y.part[i] = (hw_part)((mask.part[i] & (hw_parti)yes.part[i]) | (~mask.part[i] & (hw_parti)no.part[i]));
#endif
    }
    return y;
}

/* a > b ? a : b and a < b ? a : b: a NaN in b stays, one in a goes, as the processor's instructions have it. */
#if defined HW_PATH_AVX512 && !defined HW_REAL_DOUBLE
HW_LANEWISE(hw_v16_maximum, (hw_part)_mm512_max_ps((__m512)a.part[i], (__m512)b.part[i]))
HW_LANEWISE(hw_v16_minimum, (hw_part)_mm512_min_ps((__m512)a.part[i], (__m512)b.part[i]))
#elif defined HW_PATH_AVX2 && !defined HW_REAL_DOUBLE
HW_LANEWISE(hw_v16_maximum, (hw_part)_mm256_max_ps((__m256)a.part[i], (__m256)b.part[i]))
HW_LANEWISE(hw_v16_minimum, (hw_part)_mm256_min_ps((__m256)a.part[i], (__m256)b.part[i]))
#else
HW_INLINE hw_v16 hw_v16_maximum(hw_v16 a, hw_v16 b) { return hw_v16_select(hw_v16_less(b, a), a, b); }
HW_INLINE hw_v16 hw_v16_minimum(hw_v16 a, hw_v16 b) { return hw_v16_select(hw_v16_less(a, b), a, b); }
#endif
#undef HW_LANEWISE

HW_INLINE hw_v16 hw_v16_sqrt(hw_v16 a)
{
#if defined HW_REAL_DOUBLE || !defined __SSE2__
    hw_real lane[HW_LANES];
    hw_v16_store(lane, a);
    for (int l = 0; l < HW_LANES; l++) lane[l] = (hw_real)sqrt((double)lane[l]); /* of a float: rounds as sqrtf does */
    return hw_v16_load(lane);
#else
    HW_EACH_PART(i) {
#if defined HW_PATH_AVX512
        a.part[i] = (hw_part)_mm512_sqrt_ps((__m512)a.part[i]);
#elif defined HW_PATH_AVX2
        a.part[i] = (hw_part)_mm256_sqrt_ps((__m256)a.part[i]);
#else
        a.part[i] = (hw_part)_mm_sqrt_ps((__m128)a.part[i]);
#endif
    }
    return a;
#endif
}

#if defined HW_PATH_PLAIN && defined HW_REAL_DOUBLE
#define HW_FMA_SCALAR fma
#elif defined HW_PATH_PLAIN && (defined __FP_FAST_FMAF || defined __ARM_FEATURE_FMA)
#define HW_FMA_SCALAR __builtin_fmaf
#elif defined HW_PATH_PLAIN
/* The fused multiply-add of floats without hardware for it (Boldo and Melquiond 2008, "Emulation of FMA and correctly
 * rounded sums"): the product is exact in double; the sum is made exact as s + e (Knuth's TwoSum) and rounded to odd,
 * after which rounding once more to float is harmless. */
typedef float hw_f32x2 __attribute__((vector_size(8)));
typedef double hw_f64x2 __attribute__((vector_size(16)));
typedef int64_t hw_i64x2 __attribute__((vector_size(16)));

HW_INLINE hw_f32x2 hw_fma_pair(hw_f32x2 a, hw_f32x2 b, hw_f32x2 c)
{
    const hw_i64x2 sign = {INT64_MIN, INT64_MIN}, one = {1, 1};
    hw_f64x2 p = __builtin_convertvector(a, hw_f64x2) * __builtin_convertvector(b, hw_f64x2);
    hw_f64x2 q = __builtin_convertvector(c, hw_f64x2);
    hw_f64x2 s = p + q, t = s - p, e = (p - (s - t)) + (q - t);
    hw_f64x2 outward = (hw_f64x2)((hw_i64x2)e ^ ((hw_i64x2)s & sign)); /* > 0 where the exact sum lies farther from 0 */
    hw_i64x2 below = (hw_i64x2)(outward < 0.0), above = (hw_i64x2)(outward > 0.0);
    s = (hw_f64x2)(((hw_i64x2)s + below) | ((below | above) & one)); /* infinite s: e is NaN, s stays */
    return __builtin_convertvector(s, hw_f32x2);
}

HW_LARGE hw_part hw_fma_emulated(hw_part a, hw_part b, hw_part c)
{
    hw_f32x2 low = hw_fma_pair((hw_f32x2){a[0], a[1]}, (hw_f32x2){b[0], b[1]}, (hw_f32x2){c[0], c[1]});
    hw_f32x2 high = hw_fma_pair((hw_f32x2){a[2], a[3]}, (hw_f32x2){b[2], b[3]}, (hw_f32x2){c[2], c[3]});
    return (hw_part){low[0], low[1], high[0], high[1]};
}
#endif

/* a b + c with one rounding, on every path. HW_FMA_ROUNDS_TWICE is for programs under valgrind, which computes the
 * fused instruction lane by lane in software, ten times as slowly as the two others. */
HW_INLINE hw_part hw_part_fma(hw_part a, hw_part b, hw_part c)
{
#if defined HW_FMA_ROUNDS_TWICE
    return a * b + c;
#elif defined HW_FMA_SCALAR
    hw_real p[HW_PART_LANES], q[HW_PART_LANES], r[HW_PART_LANES];
    memcpy(p, &a, sizeof p);
    memcpy(q, &b, sizeof q);
    memcpy(r, &c, sizeof r);
    for (int l = 0; l < HW_PART_LANES; l++) r[l] = HW_FMA_SCALAR(p[l], q[l], r[l]);
    return *(const hw_part_memory *)r;
#elif defined HW_PATH_AVX512 && defined HW_REAL_DOUBLE
    return (hw_part)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined HW_PATH_AVX512
    return (hw_part)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined HW_PATH_AVX2 && defined HW_REAL_DOUBLE
    return (hw_part)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined HW_PATH_AVX2
    return (hw_part)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return hw_fma_emulated(a, b, c);
#endif
}

HW_INLINE hw_v16 hw_v16_fma(hw_v16 a, hw_v16 b, hw_v16 c)
{
    hw_v16 y;
    HW_EACH_PART(i) y.part[i] = hw_part_fma(a.part[i], b.part[i], c.part[i]);
    return y;
}

/* ---- across lanes ------------------------------------------------------------------------------------------------ */

typedef hw_real hw_piece __attribute__((vector_size(16)));
enum { HW_PIECE_LANES = 16 / sizeof(hw_real), HW_PIECES = HW_LANES / HW_PIECE_LANES };

HW_INLINE hw_piece hw_piece_maximum(hw_piece a, hw_piece b)
{
#if defined __SSE2__ && defined HW_REAL_DOUBLE
    return (hw_piece)_mm_max_pd((__m128d)a, (__m128d)b);
#elif defined __SSE2__
    return (hw_piece)_mm_max_ps((__m128)a, (__m128)b);
#else
    typedef hw_lane_int mask_type __attribute__((vector_size(16)));
    mask_type more = (mask_type)(a > b);
    return (hw_piece)((more & (mask_type)a) | (~more & (mask_type)b));
#endif
}

/* The vector in pieces of 128 bits, in the order of its lanes. */
HW_INLINE void hw_v16_split(hw_v16 a, hw_piece piece[HW_PIECES])
{
#if defined HW_PATH_AVX512 && defined HW_REAL_DOUBLE
    HW_EACH_PART(i) {
        piece[4 * i] = (hw_piece)_mm512_castpd512_pd128((__m512d)a.part[i]);
        piece[4 * i + 1] = (hw_piece)_mm512_extractf64x2_pd((__m512d)a.part[i], 1);
        piece[4 * i + 2] = (hw_piece)_mm512_extractf64x2_pd((__m512d)a.part[i], 2);
        piece[4 * i + 3] = (hw_piece)_mm512_extractf64x2_pd((__m512d)a.part[i], 3);
    }
#elif defined HW_PATH_AVX512
    piece[0] = (hw_piece)_mm512_castps512_ps128((__m512)a.part[0]);
    piece[1] = (hw_piece)_mm512_extractf32x4_ps((__m512)a.part[0], 1);
    piece[2] = (hw_piece)_mm512_extractf32x4_ps((__m512)a.part[0], 2);
    piece[3] = (hw_piece)_mm512_extractf32x4_ps((__m512)a.part[0], 3);
#elif defined HW_PATH_AVX2 && defined HW_REAL_DOUBLE
    HW_EACH_PART(i) {
        piece[2 * i] = (hw_piece)_mm256_castpd256_pd128((__m256d)a.part[i]);
        piece[2 * i + 1] = (hw_piece)_mm256_extractf128_pd((__m256d)a.part[i], 1);
    }
#elif defined HW_PATH_AVX2
    HW_EACH_PART(i) {
        piece[2 * i] = (hw_piece)_mm256_castps256_ps128((__m256)a.part[i]);
        piece[2 * i + 1] = (hw_piece)_mm256_extractf128_ps((__m256)a.part[i], 1);
    }
#else
    HW_EACH_PART(i) piece[i] = a.part[i];
#endif
}

/* Always the same tree: lane l + lane l + 8 for 8 lanes, then 4, 2, 1. */
HW_INLINE hw_real hw_v16_sum(hw_v16 a)
{
    hw_piece piece[HW_PIECES];
    hw_v16_split(a, piece);
    for (int half = HW_PIECES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) piece[i] += piece[i + half];
#ifdef HW_REAL_DOUBLE
    return piece[0][0] + piece[0][1];
#else
    return (piece[0][0] + piece[0][2]) + (piece[0][1] + piece[0][3]);
#endif
}

/* Is a lane of the mask set? */
HW_INLINE bool hw_v16_any(hw_v16i mask)
{
    hw_parti all = mask.part[0];
    for (int i = 1; i < HW_PARTS; i++) all |= mask.part[i];
#if defined HW_PATH_AVX512
    return _mm512_movepi32_mask((__m512i)all) != 0;
#elif defined HW_PATH_AVX2
    return _mm256_movemask_epi8((__m256i)all) != 0;
#else
    hw_lane_int any = 0;
    for (int l = 0; l < HW_PART_LANES; l++) any |= all[l];
    return any != 0;
#endif
}

/* The sums of four vectors, each through the same tree. */
HW_INLINE void hw_v16_sum_four(const hw_v16 a[4], hw_real sums[4])
{
#ifdef HW_REAL_DOUBLE
    for (int k = 0; k < 4; k++) sums[k] = hw_v16_sum(a[k]);
#else
    hw_piece p[4];
    for (int k = 0; k < 4; k++) {
        hw_piece piece[HW_PIECES];
        hw_v16_split(a[k], piece);
        p[k] = (piece[0] + piece[2]) + (piece[1] + piece[3]);
    }
    hw_piece two[2]; /* lane 0 + lane 2 of a pair, then lane 1 + lane 3 */
    for (int k = 0; k < 2; k++)
        two[k] = __builtin_shufflevector(p[2 * k], p[2 * k + 1], 0, 4, 1, 5) +
                 __builtin_shufflevector(p[2 * k], p[2 * k + 1], 2, 6, 3, 7);
    hw_piece all = __builtin_shufflevector(two[0], two[1], 0, 1, 4, 5) +
                   __builtin_shufflevector(two[0], two[1], 2, 3, 6, 7);
    memcpy(sums, &all, sizeof all);
#endif
}

/* The largest lane. Where a lane is NaN, any may come out. */
HW_INLINE hw_real hw_v16_reduce_max(hw_v16 a)
{
    hw_piece piece[HW_PIECES];
    hw_v16_split(a, piece);
    for (int half = HW_PIECES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) piece[i] = hw_piece_maximum(piece[i], piece[i + half]);
#ifdef HW_REAL_DOUBLE
    return piece[0][0] > piece[0][1] ? piece[0][0] : piece[0][1];
#else
    hw_piece two = hw_piece_maximum(piece[0], (hw_piece){piece[0][2], piece[0][3], piece[0][2], piece[0][3]});
    return two[0] > two[1] ? two[0] : two[1];
#endif
}

/* ---- exp --------------------------------------------------------------------------------------------------------- */

/* e^x, off by less than one unit in the last place: x = k ln 2 + r with |r| <= ln 2 / 2, a minimax polynomial for
 * e^r, and 2^k put on in a way that rounds once, so that results fade through subnormal numbers to 0. NaN stays NaN. */
HW_LARGE hw_v16 hw_v16_exp(hw_v16 x)
{
#ifdef HW_REAL_DOUBLE
    hw_real lane[HW_LANES];
    hw_v16_store(lane, x);
    for (int l = 0; l < HW_LANES; l++) lane[l] = exp(lane[l]);
    return hw_v16_load(lane);
#else
    const hw_v16 one = hw_v16_set1(1.0f), shift = hw_v16_set1(12582912.0f); /* 1.5 * 2^23: rounds to an integer */
    x = hw_v16_minimum(hw_v16_set1(89.0f), hw_v16_maximum(hw_v16_set1(-104.0f), x)); /* there already inf and 0 */
    hw_v16 t = hw_v16_fma(x, hw_v16_set1(1.442695041f), shift), k = hw_v16_sub(t, shift);
    hw_v16 r = hw_v16_fma(k, hw_v16_set1(-0.693147182f), x);
    r = hw_v16_fma(k, hw_v16_set1(1.904654299e-9f), r);
    hw_v16 q = hw_v16_fma(hw_v16_set1(1.381540438e-3f), r, hw_v16_set1(8.369348012e-3f));
    q = hw_v16_fma(q, r, hw_v16_set1(4.166840762e-2f));
    q = hw_v16_fma(q, r, hw_v16_set1(1.666651517e-1f));
    q = hw_v16_fma(q, r, hw_v16_set1(4.999999404e-1f));
    q = hw_v16_fma(q, r, one);
    q = hw_v16_fma(q, r, one);
    HW_EACH_PART(i) {
#ifdef HW_PATH_AVX512
        q.part[i] = (hw_part)_mm512_scalef_ps((__m512)q.part[i], (__m512)k.part[i]);
#else
        hw_parti n = (hw_parti)t.part[i] - (hw_parti)shift.part[i], half = n >> 1;
        q.part[i] *= (hw_part)((half + 127) << 23);
        q.part[i] *= (hw_part)((n - half + 127) << 23);
#endif
    }
    return q;
#endif
}

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

/* The low halves of a times the low halves of b, in lanes of 64 bits. */
HW_INLINE hw_part_u64 hw_multiply_u32(hw_part_u64 a, hw_part_u64 b)
{
#if defined HW_PATH_AVX512
    return (hw_part_u64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined HW_PATH_AVX2
    return (hw_part_u64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined __SSE2__
    return (hw_part_u64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

HW_INLINE hw_part_u64 hw_xor3(hw_part_u64 a, hw_part_u64 b, hw_part_u64 c)
{
#if defined HW_PATH_AVX512
    return (hw_part_u64)_mm512_ternarylogic_epi64((__m512i)a, (__m512i)b, (__m512i)c, 0x96);
#else
    return a ^ b ^ c;
#endif
}

enum { HW_DROPOUT_GROUP = 128, HW_WORD_PARTS = HW_LANES * 4 / HW_PART_BYTES };

/* Philox4x32-10 (see hw_philox) for 16 counters {low, high half of group * 16 + lane, step, site}, into
 * out[word][lane]. Even and odd lanes are computed apart, 64 bits each; what stands in the upper halves does not
 * matter. */
HW_LARGE void hw_dropout_words(const hw_dropout *d, uint64_t group, hw_part_u32 out[4][HW_WORD_PARTS])
{
    const uint64_t start = group * HW_LANES; /* its low 4 bits are 0, so that adding the lane carries nothing */
    const hw_part_u64 zero = {0}, m0 = zero + 0xD2511F53u, m1 = zero + 0xCD9E8D57u;
    hw_part_u64 c[4][HW_WORD_PARTS][2];
    for (int i = 0; i < HW_WORD_PARTS; i++) {
        for (int odd = 0; odd < 2; odd++) {
            hw_part_u64 lane = zero;
            for (int l = 0; l < HW_PART_BYTES / 8; l++) lane[l] = (uint64_t)(i * (HW_PART_BYTES / 4) + 2 * l + odd);
            c[0][i][odd] = lane + (start & 0xffffffffu);
            c[1][i][odd] = zero + (start >> 32);
            c[2][i][odd] = zero + d->step;
            c[3][i][odd] = zero + d->site;
        }
    }
    hw_part_u64 key0 = zero + (d->seed & 0xffffffffu), key1 = zero + (d->seed >> 32);
    for (int round = 0; round < 10; round++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
        for (int i = 0; i < HW_WORD_PARTS; i++) {
            for (int odd = 0; odd < 2; odd++) {
                hw_part_u64 p0 = hw_multiply_u32(c[0][i][odd], m0), p1 = hw_multiply_u32(c[2][i][odd], m1);
                c[0][i][odd] = hw_xor3(p1 >> 32, c[1][i][odd], key0);
                c[2][i][odd] = hw_xor3(p0 >> 32, c[3][i][odd], key1);
                c[1][i][odd] = p1;
                c[3][i][odd] = p0;
            }
        }
    }
    for (int w = 0; w < 4; w++)
        for (int i = 0; i < HW_WORD_PARTS; i++)
            out[w][i] = (hw_part_u32)((c[w][i][0] & 0xffffffffu) | (c[w][i][1] << 32));
}

/* The multipliers (scale or 0) of the elements group * 128 .. group * 128 + 127, 16 a vector. Element e of a site's
 * flat array is in group e / 128, vector e % 128 / 16, lane e % 16; vectors 2 w and 2 w + 1 are the low and high
 * halves of word w. */
HW_INLINE void hw_dropout_mask(const hw_dropout *d, uint64_t group, hw_v16 out[8])
{
    hw_part_u32 words[4][HW_WORD_PARTS];
    hw_dropout_words(d, group, words);
    for (int w = 0; w < 4; w++) {
#ifdef HW_REAL_DOUBLE
        uint32_t lane[HW_LANES];
        hw_real low[HW_LANES], high[HW_LANES];
        memcpy(lane, words[w], sizeof lane);
        for (int l = 0; l < HW_LANES; l++) {
            low[l] = (lane[l] & 0xffffu) >= d->threshold ? d->scale : 0;
            high[l] = lane[l] >> 16 >= d->threshold ? d->scale : 0;
        }
        out[2 * w] = hw_v16_load(low);
        out[2 * w + 1] = hw_v16_load(high);
#else
        const hw_parti limit = (hw_parti){0} + ((int32_t)d->threshold - 1);
        const hw_parti scale = (hw_parti)(d->scale - (hw_part){0});
        HW_EACH_PART(i) {
            out[2 * w].part[i] = (hw_part)(((hw_parti)(words[w][i] & 0xffffu) > limit) & scale);
            out[2 * w + 1].part[i] = (hw_part)(((hw_parti)(words[w][i] >> 16) > limit) & scale);
        }
#endif
    }
}

/* The multipliers of the elements first .. first + n - 1 into out. */
HW_INLINE void hw_dropout_fill(const hw_dropout *d, uint64_t first, int64_t n, hw_real *out)
{
    hw_v16 mask[8];
    while (n > 0) {
        int64_t skip = (int64_t)(first % HW_DROPOUT_GROUP), take = HW_DROPOUT_GROUP - skip;
        hw_dropout_mask(d, first / HW_DROPOUT_GROUP, mask);
        if (take <= n && skip == 0) {
            for (int v = 0; v < 8; v++) hw_v16_store(out + v * HW_LANES, mask[v]);
        } else {
            hw_real group[HW_DROPOUT_GROUP];
            for (int v = 0; v < 8; v++) hw_v16_store(group + v * HW_LANES, mask[v]);
            if (take > n) take = n;
            memcpy(out, group + skip, (size_t)take * sizeof *out);
        }
        first += (uint64_t)take;
        out += take;
        n -= take;
    }
}

#endif
