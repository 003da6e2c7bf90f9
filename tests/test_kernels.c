/* Kernels over flat arrays and the packed multiplication, each on every path that the processor runs: against double
 * (or, for multiplication, against the chain of fused multiply-adds that defines it), and bit for bit against each
 * other. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_kernels.h"

#ifdef HW_REAL_DOUBLE
#define FMA fma
#else
#define FMA fmaf
#endif

/* ---- exp --------------------------------------------------------------------------------------------------------- */

#ifdef HW_REAL_DOUBLE
typedef uint64_t bits;
enum { MANTISSA = 52, LOWEST = -1074 };
#define EXACT expl
typedef long double exact;
#else
typedef uint32_t bits;
enum { MANTISSA = 23, LOWEST = -149 };
#define EXACT exp
typedef double exact;
#endif

/* The distance of two neighbours at y. */
static exact ulp(exact y)
{
    int e;
    if (y == 0) return (exact)ldexpl(1, LOWEST);
    frexpl((long double)y, &e);
    return (exact)ldexpl(1, e - 1 - MANTISSA > LOWEST ? e - 1 - MANTISSA : LOWEST);
}

static void check_exp(const hw_kernels *k, const hw_real *x, int64_t n)
{
    hw_real *y = malloc((size_t)n * sizeof *y);
    k->exp(y, x, n);
    for (int64_t i = 0; i < n; i++) {
        const exact want = EXACT((exact)x[i]);
        const bool fits = isnan(x[i])                                 ? isnan(y[i])
                          : isinf((hw_real)want) || isinf(y[i]) ? y[i] == (hw_real)want
                                                                : fabsl((long double)((exact)y[i] - want)) <= ulp(want);
        EXPECT(fits, "%s: exp(%a) is %a, not %a", k->name, (double)x[i], (double)y[i], (double)want);
    }
    free(y);
}

/* Numbers of every size and sign, NaN and infinities among them, by their bits; then densely where results are
 * subnormal and where they overflow. */
START_TEST(exp_is_exact_to_one_unit)
{
    enum { MANY = 1 << 17 };
    hw_real *x = array_new(MANY), *kept = NULL;
    const bits stride = (bits)-1 / MANY;
    for (int64_t i = 0; i < MANY; i++) {
        bits b = (bits)i * stride + (bits)(i * 1237 % 4096);
        memcpy(x + i, &b, sizeof b);
    }
    x[0] = INFINITY, x[1] = -INFINITY, x[2] = NAN, x[3] = (hw_real)-0.0, x[4] = 0;
    EACH_PATH(k) {
        check_exp(k, x, MANY);
        hw_real *y = array_new(MANY);
        k->exp(y, x, MANY);
        ck_assert(y[0] == INFINITY && y[1] == 0 && isnan(y[2]) && y[3] == 1 && y[4] == 1);
        expect_same_on_paths("exp", &kept, y, MANY);
    }
    const double edge = -0.6931 * (LOWEST + MANTISSA); /* near the largest finite result */
    const double ranges[][2] = {
        {LOWEST * 0.6932 - 1, LOWEST * 0.6931 + 20}, {-1, 1}, {-20, 20}, {-1e-3, 1e-3}, {edge, edge + 3},
    };
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        kept = NULL;
        for (int64_t i = 0; i < MANY; i++)
            x[i] = (hw_real)(ranges[r][0] + (ranges[r][1] - ranges[r][0]) * (double)i / MANY);
        EACH_PATH(k) {
            check_exp(k, x, MANY);
            hw_real *y = array_new(MANY);
            k->exp(y, x, MANY);
            expect_same_on_paths("exp", &kept, y, MANY);
        }
    }
}
END_TEST

/* ---- flat arrays ------------------------------------------------------------------------------------------------- */

static const int64_t lengths[] = {0, 1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 64, 100, 127, 128, 129, 130, 1000, 9001};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

START_TEST(sums_and_products)
{
    const int64_t n = lengths[_i];
    const hw_real *a = array_random(n, -2, 2), *b = array_random(n, -2, 2), *y = array_random(n, -2, 2);
    double *want[4], sum = 0, dot = 0;
    for (int w = 0; w < 4; w++) want[w] = malloc((size_t)(n + 1) * sizeof **want);
    for (int64_t i = 0; i < n; i++) {
        want[0][i] = (double)y[i] + (double)a[i];
        want[1][i] = (double)y[i] + 0.7 * (double)a[i];
        want[2][i] = 0.7 * (double)a[i];
        want[3][i] = (double)y[i] + (double)a[i] * (double)b[i];
        sum += (double)a[i];
        dot += (double)a[i] * (double)b[i];
    }
    hw_real *kept[6] = {NULL};
    EACH_PATH(k) {
        hw_real *got[4];
        for (int w = 0; w < 4; w++) got[w] = array_copy(y, n);
        k->add(got[0], a, n);
        k->axpy(got[1], (hw_real)0.7, a, n);
        k->scale(got[2], (hw_real)0.7, a, n);
        k->multiply_add(got[3], a, b, n);
        for (int w = 0; w < 4; w++) {
            expect_near("elementwise", got[w], want[w], n, NEAR);
            expect_same_on_paths("elementwise", &kept[w], got[w], n);
        }
        const hw_real s = k->sum(a, n), d = k->dot(a, b, n);
        expect_near("sum", &s, &sum, 1, 10 * NEAR);
        expect_near("dot", &d, &dot, 1, 10 * NEAR);
        expect_same_on_paths("sum", &kept[4], &s, 1);
        expect_same_on_paths("dot", &kept[5], &d, 1);
        hw_real *in_place = array_copy(a, n);
        k->scale(in_place, (hw_real)0.7, in_place, n);
        expect_same_bits("in place", in_place, got[2], n);
    }
    for (int w = 0; w < 4; w++) free(want[w]);
}
END_TEST

/* A sum of a million numbers is as exact as one of a thousand. */
START_TEST(long_sums_stay_exact)
{
    enum { MANY = 1 << 20 };
    const hw_real *x = array_random(MANY, 0.5, 1.5);
    double sum = 0, dot = 0;
    for (int64_t i = 0; i < MANY; i++) {
        sum += (double)x[i];
        dot += (double)x[i] * (double)x[i];
    }
    EACH_PATH(k) {
        const hw_real s = k->sum(x, MANY), d = k->dot(x, x, MANY);
        expect_near("sum", &s, &sum, 1, NEAR);
        expect_near("dot", &d, &dot, 1, NEAR);
    }
}
END_TEST

START_TEST(column_sums)
{
    static const int64_t shapes[][2] = {
        {0, 5}, {1, 1}, {3, 16}, {5, 63}, {7, 64}, {9, 65}, {11, 130}, {40, 256}, {13, 81},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const int64_t rows = shapes[s][0], cols = shapes[s][1], ld = cols + 3;
        const hw_real *x = array_random(rows * ld, -1, 1), *y = array_random(cols, -1, 1);
        double want[256];
        hw_real *kept = NULL;
        for (int64_t c = 0; c < cols; c++) {
            want[c] = (double)y[c];
            for (int64_t r = 0; r < rows; r++) want[c] += (double)x[r * ld + c];
        }
        EACH_PATH(k) {
            hw_real *got = array_copy(y, cols);
            k->column_sum(got, x, ld, rows, cols);
            expect_near("column sum", got, want, cols, 4 * NEAR);
            expect_same_on_paths("column sum", &kept, got, cols);
        }
    }
}
END_TEST

/* Three steps against the formulas of PyTorch's documentation, in double, with either kind of decay. */
START_TEST(adam_follows_its_formula)
{
    const int64_t n = lengths[_i];
    for (int decoupled = 0; decoupled < 2; decoupled++) {
        const double rate = 0.01, b1 = 0.9, b2 = 0.98, eps = 1e-8, decay = 0.1, by = 0.5;
        const hw_real *w0 = array_random(n, -1, 1);
        double *want = malloc((size_t)(3 * n + 1) * sizeof *want), *m = want + n, *v = m + n;
        hw_real *grad[3], *kept[3] = {NULL};
        for (int64_t i = 0; i < n; i++) want[i] = (double)w0[i], m[i] = v[i] = 0;
        for (int t = 1; t <= 3; t++) {
            grad[t - 1] = array_random(n, -1, 1);
            for (int64_t i = 0; i < n; i++) {
                double g = by * (double)grad[t - 1][i];
                if (decoupled) want[i] -= rate * decay * want[i];
                else g += decay * want[i];
                m[i] = b1 * m[i] + (1 - b1) * g;
                v[i] = b2 * v[i] + (1 - b2) * g * g;
                want[i] -= rate / (1 - pow(b1, t)) * m[i] / (sqrt(v[i]) / sqrt(1 - pow(b2, t)) + eps);
            }
        }
        EACH_PATH(k) {
            hw_real *w = array_copy(w0, n), *mk = array_new(n), *vk = array_new(n);
            for (int64_t i = 0; i < n; i++) mk[i] = vk[i] = 0;
            for (int t = 1; t <= 3; t++)
                k->adam(w, mk, vk, grad[t - 1], n, (hw_real)by, (hw_real)rate, (hw_real)b1, (hw_real)b2, (hw_real)eps,
                        (hw_real)(1 - pow(b1, t)), (hw_real)(1 - pow(b2, t)), (hw_real)decay, decoupled);
            expect_near("weights", w, want, n, NEAR);
            expect_near("first moment", mk, m, n, NEAR);
            expect_near("second moment", vk, v, n, NEAR);
            expect_same_on_paths("weights", &kept[0], w, n);
            expect_same_on_paths("first moment", &kept[1], mk, n);
            expect_same_on_paths("second moment", &kept[2], vk, n);
        }
        free(want);
    }
}
END_TEST

/* ---- multiplication ---------------------------------------------------------------------------------------------- */

static const int64_t widths[][2] = { /* outputs, inputs */
    {1, 1},   {7, 7},    {16, 16},   {31, 31},   {32, 32}, {33, 33},  {48, 48},  {64, 64},   {128, 128}, {256, 256},
    {512, 512}, {200, 3}, {64, 256}, {256, 64}, {97, 50}, {5, 128}, {130, 1},
};
enum { WIDTHS = sizeof widths / sizeof *widths, MOST_ROWS = 130 };

/* The definition: bias, then one fused multiply-add after another. */
static void chain(hw_real *y, const hw_real *x, const hw_real *w, const hw_real *bias, int64_t rows, int64_t outputs,
                  int64_t inputs)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t o = 0; o < outputs; o++) {
            hw_real sum = bias ? bias[o] : 0;
            for (int64_t k = 0; k < inputs; k++) sum = FMA(x[r * inputs + k], w[o * inputs + k], sum);
            y[r * outputs + o] = sum;
        }
    }
}

/* Every number of rows from 1 to 130 gives each row the bits of its chain, and so those that it has alone. Plain C
 * does rows one by one, so there a few are enough. */
START_TEST(rows_do_not_change_each_other)
{
    const int64_t outputs = widths[_i][0], inputs = widths[_i][1];
    const hw_real *x = array_random(MOST_ROWS * inputs, -1, 1), *w = array_random(outputs * inputs, -1, 1);
    const hw_real *bias = _i % 3 == 2 ? NULL : array_random(outputs, -1, 1);
    hw_real *want = array_new(MOST_ROWS * outputs), *y = array_new(MOST_ROWS * outputs);
    hw_packed p = {outputs, inputs, array_new(hw_packed_size(outputs, inputs))};
    hw_pack(&p, w, inputs, false);
    chain(want, x, w, bias, MOST_ROWS, outputs, inputs);
    EACH_PATH(k) {
        const bool plain = !strcmp(k->name, "generic"), large = outputs * inputs > 128 * 128;
        for (int64_t rows = 1; rows <= MOST_ROWS; rows += plain ? 43 : large && rows > 30 ? 9 : 1) {
            for (int64_t i = 0; i < rows * outputs; i++) y[i] = NAN;
            k->multiply(y, outputs, x, inputs, rows, &p, bias);
            expect_same_bits(k->name, y, want, rows * outputs);
        }
    }
}
END_TEST

/* Rows farther apart than they are long, on both sides; what lies between stays. */
START_TEST(distances_of_rows)
{
    enum { ROWS = 29, OUT = 45, IN = 21, LDX = 24, LDY = 50 };
    const hw_real *x = array_random(ROWS * LDX, -1, 1), *w = array_random(OUT * IN, -1, 1);
    const hw_real *bias = array_random(OUT, -1, 1);
    hw_real *dense = array_new(ROWS * IN), *want = array_new(ROWS * OUT);
    hw_packed p = {OUT, IN, array_new(hw_packed_size(OUT, IN))};
    hw_pack(&p, w, IN, false);
    for (int r = 0; r < ROWS; r++) memcpy(dense + r * IN, x + r * LDX, IN * sizeof *x);
    chain(want, dense, w, bias, ROWS, OUT, IN);
    EACH_PATH(k) {
        hw_real *y = array_random(ROWS * LDY, 5, 6), *before = array_copy(y, ROWS * LDY);
        k->multiply(y, LDY, x, LDX, ROWS, &p, bias);
        for (int r = 0; r < ROWS; r++) {
            expect_same_bits("row", y + r * LDY, want + r * OUT, OUT);
            expect_same_bits("between rows", y + r * LDY + OUT, before + r * LDY + OUT, LDY - OUT);
        }
    }
}
END_TEST

/* Where a sum cancels, underflows or overflows, the plain path's own fused multiply-add must still round as the
 * processor's. */
START_TEST(fused_multiply_adds_of_every_size)
{
    enum { MANY = 4096 };
    hw_real *a = array_new(MANY), *b = array_new(MANY), *c = array_new(MANY), *want = array_new(MANY);
    hw_random random = hw_random_new(3, 3);
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < MANY; i++) {
            hw_real *const to[3] = {a + i, b + i, c + i};
            for (int t = 0; t < 3; t++) {
                bits any = (bits)hw_random_bits(&random);
                if (sizeof any == 8) any = (bits)((uint64_t)any << 32 | hw_random_bits(&random));
                memcpy(to[t], &any, sizeof any);
            }
            if (turn % 5 == 1) c[i] = -(a[i] * b[i]); /* leaves only what was rounded away */
            if (turn % 5 == 2) c[i] = (hw_real)ldexpl((long double)(a[i] * b[i]), (int)(random.position % 61) - 30);
            if (turn % 5 == 3) b[i] = (hw_real)ldexpl(0.75L, LOWEST + 10) / a[i]; /* subnormal products */
            if (turn % 5 == 4) { /* a b is a hair from half of c's last place: rounding twice would show */
                a[i] = (hw_real)((1 << 23) + i);
                b[i] = (hw_real)round(ldexp(1 + (i % 3 - 1) * 0x1p-28, 46) / (double)a[i]);
                c[i] = (hw_real)ldexp(1 + i / 3 % 2 * 0x1p-23, 70);
                if (turn % 2) a[i] = -a[i];
            }
            want[i] = FMA(a[i], b[i], c[i]);
        }
        EACH_PATH(k) {
            hw_real *y = array_copy(c, MANY);
            k->multiply_add(y, a, b, MANY);
            expect_same_bits(k->name, y, want, MANY);
        }
    }
}
END_TEST

Suite *test_kernels(void);
Suite *test_kernels(void)
{
    Suite *suite = suite_create("kernels");
    TCase *tests = tcase_create("kernels");
    tcase_add_checked_fixture(tests, array_begin, array_end);
    tcase_add_test(tests, exp_is_exact_to_one_unit);
    tcase_add_loop_test(tests, sums_and_products, 0, LENGTHS);
    tcase_add_test(tests, long_sums_stay_exact);
    tcase_add_test(tests, column_sums);
    tcase_add_loop_test(tests, adam_follows_its_formula, 0, LENGTHS);
    tcase_add_loop_test(tests, rows_do_not_change_each_other, 0, WIDTHS);
    tcase_add_test(tests, distances_of_rows);
    tcase_add_test(tests, fused_multiply_adds_of_every_size);
    suite_add_tcase(suite, tests);
    return suite;
}
