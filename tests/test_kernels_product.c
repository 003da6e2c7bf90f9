/* The product of gradients: against a plain sum in double, on every processor path, for sizes around every border of
 * its tiles; and the same bits on all paths and however the sum is cut. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/tensor.h>

Suite *test_kernels_product(void);

enum { MOST = 330 };
static hw_real a[MOST * MOST], b[MOST * MOST], c[MOST * MOST], first[MOST * MOST];

static void fill(hw_real *x, uint64_t seed)
{
    hw_random random = hw_random_new(seed, 1);
    for (int i = 0; i < MOST * MOST; i++) x[i] = (hw_real)hw_random_normal(&random);
}

static void check(const hw_kernels *k, bool transposed, int64_t rows, int64_t cols, int64_t terms, bool add)
{
    int64_t lda = (transposed ? rows : terms) + 3, ldb = cols + 5, ldc = cols + 1;
    fill(c, 3);
    static hw_real before[MOST * MOST];
    memcpy(before, c, sizeof c);
    k->product(c, ldc, rows, cols, a, transposed ? 1 : lda, transposed ? lda : 1, b, ldb, terms, add);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < ldc; j++) {
            double want = add || j == cols ? (double)before[r * ldc + j] : 0, size = fabs(want);
            for (int64_t t = 0; j < cols && t < terms; t++) {
                double term = (double)a[transposed ? t * lda + r : r * lda + t] * (double)b[t * ldb + j];
                want += term;
                size += fabs(term);
            }
            double bound = (sizeof(hw_real) == 8 ? 1e-14 : 1e-6) * (size + 1);
            ck_assert_msg(fabs((double)c[r * ldc + j] - want) <= bound, "%s %dx%dx%d: [%d, %d] is %g, %g expected",
                          k->name, (int)rows, (int)cols, (int)terms, (int)r, (int)j, (double)c[r * ldc + j], want);
        }
}

static const int64_t sizes[][3] = {{1, 1, 1},     {1, 32, 7},    {2, 31, 5},    {12, 32, 160},
                                   {13, 33, 161}, {25, 64, 320}, {6, 16, 64},   {64, 64, 300},
                                   {7, 100, 12},  {40, 20, 0},   {11, 63, 159}, {64, 256, 64}};

START_TEST(product_is_the_sum)
{
    fill(a, 1);
    fill(b, 2);
    for (int i = 0; hw_kernels_at(i); i++)
        for (int flags = 0; flags < 4; flags++)
            check(hw_kernels_at(i), flags & 1, sizes[_i][0], sizes[_i][1], sizes[_i][2], flags & 2);
}
END_TEST

START_TEST(all_paths_and_cuts_give_the_same_bits)
{
    int64_t rows = 29, cols = 70, terms = 300;
    fill(a, 1);
    fill(b, 2);
    for (int i = 0; hw_kernels_at(i); i++) {
        const hw_kernels *k = hw_kernels_at(i);
        memset(c, 0, sizeof c);
        k->product(c, cols, rows, cols, a, 1, rows, b, cols, terms, false);
        if (i == 0) memcpy(first, c, sizeof c);
        ck_assert_msg(!memcmp(first, c, sizeof c), "%s differs from %s", k->name, hw_kernels_at(0)->name);
        memset(c, 0, sizeof c);
        for (int64_t t = 0; t < terms; t += 50)
            k->product(c, cols, rows, cols, a + t * rows, 1, rows, b + t * cols, cols, 50, t > 0);
        ck_assert_msg(!memcmp(first, c, sizeof c), "%s: the sum in parts differs", k->name);
    }
}
END_TEST

Suite *test_kernels_product(void)
{
    Suite *s = suite_create("product");
    TCase *tc = tcase_create("product");
    tcase_add_loop_test(tc, product_is_the_sum, 0, sizeof sizes / sizeof *sizes);
    tcase_add_test(tc, all_paths_and_cuts_give_the_same_bits);
    suite_add_tcase(s, tc);
    return s;
}
