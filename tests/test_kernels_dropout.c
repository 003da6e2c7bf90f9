/* Dropout's masks, and the activations that stand before them, on every path: masks against Philox element by
 * element, values and gradients against double. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_kernels.h"

static const hw_activation activations[] = {HW_IDENTITY, HW_RELU, HW_GELU, HW_SWISH};

/* The multiplier of one element, by the definition in headwise/tensor.h and vector.h. */
static hw_real multiplier(const hw_dropout *d, uint64_t element)
{
    const uint64_t counter = element / 128 * 16 + element % 16;
    const uint32_t vector = (uint32_t)(element % 128 / 16);
    uint32_t words[4];
    hw_philox(d->seed, (uint32_t[]){(uint32_t)counter, (uint32_t)(counter >> 32), d->step, d->site}, words);
    return (words[vector / 2] >> (vector % 2 * 16) & 0xffff) >= d->threshold ? d->scale : 0;
}

/* The whole mask of n elements from `first` on, as the kernels apply it. */
static hw_real *mask_of(const hw_kernels *k, const hw_dropout *d, int64_t first, int64_t n)
{
    hw_real *ones = array_new(n), *mask = array_new(n);
    for (int64_t i = 0; i < n; i++) ones[i] = 1;
    k->activation(mask, ones, n, HW_IDENTITY, d, first);
    return mask;
}

START_TEST(masks_are_philox)
{
    const hw_dropout sites[] = {hw_dropout_new(0.1, 1, 0, 0), hw_dropout_new(0.5, 0xfedcba9876543210u, 0xffffffffu, 77),
                                hw_dropout_new(0.99999, 2, 3, 0xfffffffeu), hw_dropout_new(0.3, 0, 1u << 31, 1)};
    const int64_t starts[] = {0, 1, 127, 128, 300, ((int64_t)1 << 35) - 200, (int64_t)1 << 40};
    for (size_t s = 0; s < sizeof sites / sizeof *sites; s++) {
        for (size_t f = 0; f < sizeof starts / sizeof *starts; f++) {
            enum { N = 700 };
            EACH_PATH(k) {
                const hw_real *mask = mask_of(k, &sites[s], starts[f], N);
                for (int i = 0; i < N; i++)
                    EXPECT(mask[i] == multiplier(&sites[s], (uint64_t)starts[f] + (uint64_t)i),
                           "%s: element %d from %lld", k->name, i, (long long)starts[f]);
            }
        }
    }
}
END_TEST

/* However a range is cut, each element keeps its fate. */
START_TEST(masks_do_not_depend_on_the_cut)
{
    enum { N = 3000 };
    const hw_dropout d = hw_dropout_new(0.4, 5, 6, 7);
    EACH_PATH(k) {
        const hw_real *whole = mask_of(k, &d, 50, N);
        for (int64_t piece = 1; piece < 1200; piece = piece * 2 + 3)
            for (int64_t i = 0; i < N; i += piece) {
                const int64_t n = N - i < piece ? N - i : piece;
                hw_real ones[1200], mask[1200];
                for (int64_t j = 0; j < n; j++) ones[j] = 1;
                k->activation(mask, ones, n, HW_IDENTITY, &d, 50 + i);
                expect_same_bits("piece", mask, whole + i, n);
            }
    }
}
END_TEST

/* The share that survives, over all and in each of the 128 places of a group; neighbours do not know each other; and
 * another seed, step or site is another mask. All bounds are five standard deviations. */
START_TEST(masks_are_random)
{
    enum { GROUPS = 4000, N = GROUPS * 128 };
    const double p[] = {0.1, 0.3, 0.5};
    const hw_kernels *k = hw_kernels_get();
    for (int i = 0; i < 3; i++) {
        const hw_dropout d = hw_dropout_new(p[i], 11, 12, 13);
        const double keep = 1 - d.threshold / 65536.0, spread = sqrt(keep * (1 - keep));
        const hw_real *mask = mask_of(k, &d, 0, N);
        int64_t kept = 0, both = 0, at[128] = {0};
        for (int64_t e = 0; e < N; e++) {
            kept += mask[e] != 0;
            at[e % 128] += mask[e] != 0;
            both += e && mask[e] != 0 && mask[e - 1] != 0;
        }
        ck_assert_double_le(fabs((double)kept - keep * N), 5 * spread * sqrt(N));
        ck_assert_double_le(fabs((double)both - keep * keep * N), 5 * sqrt(keep * keep * N * 2));
        for (int e = 0; e < 128; e++)
            ck_assert_double_le(fabs((double)at[e] - keep * GROUPS), 5 * spread * sqrt(GROUPS));
        const hw_dropout others[] = {hw_dropout_new(p[i], 12, 12, 13), hw_dropout_new(p[i], 11, 13, 13),
                                     hw_dropout_new(p[i], 11, 12, 14)};
        for (int o = 0; o < 3; o++) {
            const hw_real *other = mask_of(k, &others[o], 0, N);
            int64_t same = 0;
            for (int64_t e = 0; e < N; e++) same += mask[e] == other[e];
            const double expected = keep * keep + (1 - keep) * (1 - keep);
            ck_assert_double_le(fabs((double)same - expected * N), 5 * sqrt(expected * (1 - expected) * N));
        }
    }
}
END_TEST

/* ---- activations ------------------------------------------------------------------------------------------------- */

static double value(double x, hw_activation f)
{
    switch (f) {
    case HW_RELU: return x > 0 ? x : 0;
    case HW_GELU: return 0.5 * x * erfc(-x / sqrt(2.0));
    case HW_SWISH: return x / (1 + exp(-x));
    default: return x;
    }
}

static double slope(double x, hw_activation f)
{
    const double s = 1 / (1 + exp(-x));
    switch (f) {
    case HW_RELU: return x > 0;
    case HW_GELU: return 0.5 * erfc(-x / sqrt(2.0)) + x * exp(-0.5 * x * x) / sqrt(8 * atan(1.0));
    case HW_SWISH: return s + x * s * (1 - s);
    default: return 1;
    }
}

START_TEST(activations_forward_and_back)
{
    static const int64_t lengths[] = {0, 1, 15, 16, 17, 33, 127, 128, 130, 513, 2000};
    const hw_activation f = activations[_i];
    const hw_dropout half = hw_dropout_new(0.5, 1, 2, 3), off = hw_dropout_new(0, 1, 2, 3);
    const hw_dropout *const drops[] = {NULL, &off, &half};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (int d = 0; d < 3; d++) {
            const int64_t n = lengths[l], first = d == 2 ? 77 : 0;
            const hw_real *x = array_random(n, -6, 6), *dy = array_random(n, -1, 1), *dx0 = array_random(n, -1, 1);
            double *want = malloc((size_t)(3 * n + 1) * sizeof *want), *back = want + n, *added = back + n;
            hw_real *kept[3] = {NULL};
            for (int64_t i = 0; i < n; i++) {
                const double by = d == 2 ? (double)multiplier(&half, (uint64_t)(first + i)) : 1;
                want[i] = by * value((double)x[i], f);
                back[i] = by * (double)dy[i] * slope((double)x[i], f);
                added[i] = (double)dx0[i] + back[i];
            }
            EACH_PATH(k) {
                hw_real *y = array_new(n), *dx = array_new(n), *sum = array_copy(dx0, n), *in_place = array_copy(x, n);
                k->activation(y, x, n, f, drops[d], first);
                k->activation_backward(dx, dy, x, n, f, drops[d], first, true);
                k->activation_backward(sum, dy, x, n, f, drops[d], first, false);
                expect_near("activation", y, want, n, NEAR);
                expect_near("its gradient", dx, back, n, NEAR);
                expect_near("added gradient", sum, added, n, NEAR);
                expect_same_on_paths("activation", &kept[0], y, n);
                expect_same_on_paths("its gradient", &kept[1], dx, n);
                expect_same_on_paths("added gradient", &kept[2], sum, n);
                k->activation(in_place, in_place, n, f, drops[d], first);
                expect_same_bits("in place", in_place, y, n);
            }
            free(want);
        }
    }
}
END_TEST

/* Far out, where 1 + erf would have nothing left: relative to the value itself. */
START_TEST(gelu_keeps_its_tail)
{
    enum { N = 2000 };
    hw_real *x = array_new(N), *y = array_new(N);
    for (int i = 0; i < N; i++) x[i] = (hw_real)(-12.5 + 25.0 * i / N);
    EACH_PATH(k) {
        k->activation(y, x, N, HW_GELU, NULL, 0);
        for (int i = 0; i < N; i++) {
            const double want = value((double)x[i], HW_GELU);
            EXPECT(fabs((double)y[i] - want) <= NEAR * fabs(want) + 1e-38, "%s: gelu(%g) is %g, not %g", k->name,
                   (double)x[i], (double)y[i], want);
        }
    }
}
END_TEST

Suite *test_kernels_dropout(void);
Suite *test_kernels_dropout(void)
{
    Suite *suite = suite_create("kernels: dropout and activations");
    TCase *tests = tcase_create("dropout");
    tcase_add_checked_fixture(tests, array_begin, array_end);
    tcase_add_test(tests, masks_are_philox);
    tcase_add_test(tests, masks_do_not_depend_on_the_cut);
    tcase_add_test(tests, masks_are_random);
    tcase_add_loop_test(tests, activations_forward_and_back, 0, sizeof activations / sizeof *activations);
    tcase_add_test(tests, gelu_keeps_its_tail);
    suite_add_tcase(suite, tests);
    return suite;
}
