/* The largest of y = x W' + b without reading all of W.
 *
 * A greedy translator asks a vocabulary of thousands for one token, and the output layer's weights, which no cache of a
 * core holds, are most of what it reads. Here W and x are also kept in one byte a number, a quarter of the memory, with
 * the norms of what rounding took away, so that Cauchy-Schwarz bounds every result:
 *   x w = x^ w^ + dx w + x^ dw,   |dx w + x^ dw| <= |dx| |w| + |x^| |dw|,   x^ = x - dx and w^ = w - dw being the
 * bytes. Only rows whose upper bound reaches the largest lower bound are then computed, in float and in the order of
 * the multiply kernel. The answer is therefore that of the whole multiplication, to the bit and to the tie.
 *
 * Products of bytes need AVX512-VNNI; where the processor has none, and in the double build, there is no screen. */
#include <headwise/tensor.h>

#if defined __x86_64__ && !defined HW_REAL_DOUBLE

#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
#define UNROLLED(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)

enum {
    LANES = 16,
    PANEL = 64, /* outputs of a panel: 4 vectors; within it number (k / 4) 256 + 4 o + k % 4 is W[o, k] */
    VECTORS = PANEL / LANES,
    MOST_ROWS = 6, /* of x at once */
    SHIFT = 128,   /* what makes a byte of x positive, as the instruction wants one side */
    LARGEST = 127,
    AHEAD = 2048, /* bytes ahead that codes are fetched */
};

/* Of each output: the norms, a little too large, so that rounding them is no matter. Outputs up to a whole panel are
 * filled with a bias of -inf. */
struct hw_screen {
    int64_t outputs, inputs, panels, groups; /* groups: of 4 inputs */
    const hw_packed *w;
    const hw_real *own_bias;
    int8_t *codes;
    int32_t *shifted; /* SHIFT times the sum of the codes */
    hw_real *scale, *norm, *lost, *bias;
    double largest_norm, largest_bias;
};

static const double more = 1 + 1e-5, tiny = 1e-30, huge_sum = 1e30;

/* ---- rounding to bytes ------------------------------------------------------------------------------------------- */

typedef struct rounded {
    hw_real scale;
    double norm, kept, lost; /* |x|, |x^|, |x - x^| */
} rounded;

/* codes[i] = x[i] / scale, rounded, at most LARGEST; false where x is not finite. */
VNNI static bool round_row(rounded *out, int8_t *codes, const hw_real *x, int64_t n)
{
    hw_real most = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
        sum += x[i] * 0; /* NaN where one is not finite */
    }
    if (!(sum == 0)) return false;
    out->scale = most > (hw_real)tiny ? most / LARGEST : 0;
    const hw_real by = out->scale > 0 ? 1 / out->scale : 0;
    double norm = 0, kept = 0, lost = 0;
    for (int64_t i = 0; i < n; i++) {
        const hw_real code = fminf(fmaxf(rintf(x[i] * by), -LARGEST), LARGEST);
        codes[i] = (int8_t)code;
        const double whole = (double)x[i], part = (double)out->scale * (double)code;
        norm += whole * whole;
        kept += part * part;
        lost += (whole - part) * (whole - part);
    }
    out->norm = sqrt(norm) * more;
    out->kept = sqrt(kept) * more;
    out->lost = sqrt(lost) * more;
    return true;
}

/* row, codes: room for a row of W and its codes */
static bool round_weight(hw_screen *s, int64_t output, hw_real *row, int8_t *codes)
{
    rounded r;
    hw_packed_row(s->w, output, row);
    if (!round_row(&r, codes, row, s->inputs)) return false;
    if (!isfinite(s->own_bias[output])) return false;
    int32_t sum = 0;
    int8_t *panel = s->codes + output / PANEL * PANEL * s->groups * 4 + output % PANEL * 4;
    for (int64_t k = 0; k < s->inputs; k++) {
        panel[k / 4 * PANEL * 4 + k % 4] = codes[k];
        sum += codes[k];
    }
    s->shifted[output] = SHIFT * sum;
    s->scale[output] = r.scale;
    s->norm[output] = (hw_real)r.norm;
    s->lost[output] = (hw_real)r.lost;
    s->bias[output] = s->own_bias[output];
    if (r.norm > s->largest_norm) s->largest_norm = r.norm;
    if (fabs((double)s->own_bias[output]) > s->largest_bias) s->largest_bias = fabs((double)s->own_bias[output]);
    return true;
}

static bool round_weights(hw_screen *s)
{
    hw_real *row = malloc((size_t)s->inputs * (sizeof *row + 1));
    bool ok = row;
    for (int64_t o = 0; ok && o < s->outputs; o++) ok = round_weight(s, o, row, (int8_t *)(row + s->inputs));
    free(row);
    return ok && s->largest_norm < huge_sum && s->largest_bias < huge_sum;
}

hw_screen *hw_screen_new(const hw_packed *w, const hw_real *bias)
{
    const int64_t outputs = w->outputs, inputs = w->inputs;
    if (hw_kernels_get()->vector_bits < 512 || !__builtin_cpu_supports("avx512vnni")) return NULL;
    if (inputs > 1 << 16) return NULL; /* sums of products of bytes fit 32 bits */
    hw_screen *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (hw_screen){.outputs = outputs,
                     .inputs = inputs,
                     .panels = (outputs + PANEL - 1) / PANEL,
                     .groups = (inputs + 3) / 4,
                     .w = w,
                     .own_bias = bias};
    const size_t padded = (size_t)(s->panels * PANEL), bytes = padded * (size_t)s->groups * 4;
    s->codes = hw_memory_new(bytes + padded * (sizeof *s->shifted + 4 * sizeof(hw_real)));
    if (s->codes) {
        memset(s->codes, 0, bytes + padded * (sizeof *s->shifted + 4 * sizeof(hw_real)));
        s->shifted = (int32_t *)(void *)(s->codes + bytes);
        s->scale = (hw_real *)(s->shifted + padded);
        s->norm = s->scale + padded;
        s->lost = s->norm + padded;
        s->bias = s->lost + padded;
        for (size_t o = (size_t)outputs; o < padded; o++) s->bias[o] = -INFINITY;
        if (round_weights(s)) return s;
    }
    hw_screen_free(s);
    return NULL;
}

void hw_screen_free(hw_screen *s)
{
    if (s) free(s->codes);
    free(s);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

/* One row of x: its bytes, and what its bounds are made of: |error| <= norm_share |w| + lost_share |dw| + rest. */
typedef struct query {
    const uint8_t *bytes; /* [groups][4] */
    hw_real scale, norm_share, lost_share, rest;
    hw_real *upper; /* [panels x PANEL] */
    __m512 least;   /* the largest lower bounds so far */
} query;

static inline __attribute__((always_inline)) VNNI void bound_panel(const hw_screen *s, const hw_real *bias,
                                                                   int64_t panel, query *q, int rows)
{
    __m512i sum[MOST_ROWS][VECTORS];
    const int8_t *codes = s->codes + panel * PANEL * s->groups * 4;
    UNROLLED(int r = 0; r < rows; r++)
    UNROLLED(int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_setzero_si512();
    for (int64_t g = 0; g < s->groups; g++, codes += (ptrdiff_t)PANEL * 4) {
        __m512i w[VECTORS];
        UNROLLED(int v = 0; v < VECTORS; v++) __builtin_prefetch(codes + AHEAD + v * 64);
        UNROLLED(int v = 0; v < VECTORS; v++) w[v] = _mm512_load_si512(codes + v * 64);
        UNROLLED(int r = 0; r < rows; r++)
        {
            int32_t four;
            memcpy(&four, q[r].bytes + g * 4, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            UNROLLED(int v = 0; v < VECTORS; v++) /* through the intrinsic GCC copies every sum */
            __asm__("vpdpbusd %2, %1, %0" : "+v"(sum[r][v]) : "v"(x), "v"(w[v]));
        }
    }
    UNROLLED(int v = 0; v < VECTORS; v++)
    {
        const int64_t at = panel * PANEL + v * LANES;
        const __m512 scale = _mm512_loadu_ps(s->scale + at), norm = _mm512_loadu_ps(s->norm + at);
        const __m512 lost = _mm512_loadu_ps(s->lost + at), b = _mm512_loadu_ps(bias + at);
        const __m512i shifted = _mm512_loadu_si512(s->shifted + at);
        UNROLLED(int r = 0; r < rows; r++)
        {
            const __m512 product = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum[r][v], shifted));
            const __m512 y = _mm512_fmadd_ps(_mm512_mul_ps(product, scale), _mm512_set1_ps(q[r].scale), b);
            __m512 error = _mm512_fmadd_ps(_mm512_set1_ps(q[r].norm_share), norm, _mm512_set1_ps(q[r].rest));
            error = _mm512_fmadd_ps(_mm512_set1_ps(q[r].lost_share), lost, error);
            _mm512_storeu_ps(q[r].upper + at, _mm512_add_ps(y, error));
            q[r].least = _mm512_max_ps(q[r].least, _mm512_sub_ps(y, error));
        }
    }
}

#define BOUND(rows)                                                                                                    \
    VNNI static void bound_##rows(const hw_screen *s, const hw_real *bias, query *q)                                   \
    {                                                                                                                  \
        for (int64_t panel = 0; panel < s->panels; panel++) bound_panel(s, bias, panel, q, rows);                      \
    }
BOUND(1)
BOUND(2) BOUND(3) BOUND(4) BOUND(5) BOUND(6)

    static void (*const bounds[MOST_ROWS + 1])(const hw_screen *, const hw_real *,
                                               query *) = {NULL, bound_1, bound_2, bound_3, bound_4, bound_5, bound_6};

/* ---- the largest ------------------------------------------------------------------------------------------------- */

/* As the multiply kernel does it: the bias, then one chain of fused multiply-adds. */
VNNI static hw_real exactly(const hw_screen *s, const hw_real *x, int64_t output, hw_real *w)
{
    hw_packed_row(s->w, output, w);
    hw_real y = s->own_bias[output];
    for (int64_t k = 0; k < s->inputs; k++) y = __builtin_fmaf(x[k], w[k], y);
    return y;
}

/* w: room for a row of W */
VNNI static int32_t largest(const hw_screen *s, const query *q, const hw_real *x, hw_real *w, hw_real *value)
{
    const __m512 least = _mm512_set1_ps(_mm512_reduce_max_ps(q->least));
    int32_t best = -1;
    *value = -INFINITY;
    for (int64_t first = 0; first < s->outputs; first += LANES) {
        __mmask16 reach = _mm512_cmp_ps_mask(_mm512_loadu_ps(q->upper + first), least, _CMP_GE_OQ);
        for (; reach; reach = (__mmask16)(reach & (reach - 1))) {
            const int64_t output = first + __builtin_ctz(reach);
            const hw_real y = exactly(s, x, output, w);
            if (best >= 0 && !(y > *value)) continue;
            best = (int32_t)output;
            *value = y;
        }
    }
    return best;
}

VNNI static bool begin_query(const hw_screen *s, query *q, const hw_real *x, hw_arena *arena)
{
    rounded r;
    int8_t *codes = hw_arena_calloc(arena, (size_t)s->groups, 4);
    if (!round_row(&r, codes, x, s->inputs) || r.norm * s->largest_norm > huge_sum) return false;
    uint8_t *bytes = hw_arena_alloc(arena, (size_t)s->groups * 4);
    for (int64_t k = 0; k < s->groups * 4; k++) bytes[k] = (uint8_t)(codes[k] + SHIFT);
    /* What the chain in float and this reckoning round away: a unit in the last place a term, counted twice. */
    const double rounding = ldexp((double)s->inputs + 8, -22);
    *q = (query){.bytes = bytes,
                 .scale = r.scale,
                 .norm_share = (hw_real)(more * (r.lost + r.norm * rounding)),
                 .lost_share = (hw_real)(more * r.kept),
                 .rest = (hw_real)(s->largest_bias * rounding),
                 .upper = hw_arena_alloc(arena, (size_t)(s->panels * PANEL) * sizeof *q->upper),
                 .least = _mm512_set1_ps(-INFINITY)};
    return true;
}

bool hw_screen_largest(const hw_screen *s, int32_t *ids, hw_real *values, const hw_real *x, int64_t rows,
                       const int32_t *without, int without_count, hw_arena *arena)
{
    hw_real *bias = hw_arena_copy(arena, s->bias, (size_t)(s->panels * PANEL) * sizeof *bias);
    hw_real *w = hw_arena_alloc(arena, (size_t)s->inputs * sizeof *w);
    for (int i = 0; i < without_count; i++) bias[without[i]] = -INFINITY;
    for (int64_t row = 0; row < rows;) {
        const int count = rows - row < MOST_ROWS ? (int)(rows - row) : MOST_ROWS;
        query q[MOST_ROWS];
        const hw_arena_mark mark = hw_arena_begin(arena);
        bool ok = true;
        for (int r = 0; ok && r < count; r++) ok = begin_query(s, &q[r], x + (row + r) * s->inputs, arena);
        if (ok) bounds[count](s, bias, q);
        for (int r = 0; ok && r < count; r++, row++) ids[row] = largest(s, &q[r], x + row * s->inputs, w, &values[row]);
        hw_arena_end(arena, mark);
        if (!ok) return false;
    }
    return true;
}

#else

hw_screen *hw_screen_new(const hw_packed *w, const hw_real *bias)
{
    (void)w, (void)bias;
    return NULL;
}

void hw_screen_free(hw_screen *s) { (void)s; }

bool hw_screen_largest(const hw_screen *s, int32_t *ids, hw_real *values, const hw_real *x, int64_t rows,
                       const int32_t *without, int without_count, hw_arena *arena)
{
    (void)s, (void)ids, (void)values, (void)x, (void)rows, (void)without, (void)without_count, (void)arena;
    return false;
}

#endif
