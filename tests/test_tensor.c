/* The tensor struct, BLAS, packing, dispatch, dropout sites. */
#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <headwise/tensor.h>

#include "support_kernels.h"

START_TEST(shapes)
{
    hw_arena *arena = hw_arena_new(0);
    hw_tensor *scalar = hw_tensor_new(arena, 0, NULL);
    hw_tensor *a = hw_tensor_new(arena, 3, (int64_t[]){2, 3, 5});
    hw_tensor *b = hw_tensor_new(arena, 2, (int64_t[]){6, 5});
    hw_tensor *none = hw_tensor_new(arena, 2, (int64_t[]){0, 5});
    char text[96];
    ck_assert_int_eq(hw_tensor_size(scalar), 1);
    ck_assert_int_eq(hw_tensor_rows(scalar), 1);
    ck_assert_int_eq(hw_tensor_cols(scalar), 1);
    ck_assert_int_eq(hw_tensor_size(a), 30);
    ck_assert_int_eq(hw_tensor_rows(a), 6);
    ck_assert_int_eq(hw_tensor_cols(a), 5);
    ck_assert_int_eq(hw_tensor_size(none), 0);
    ck_assert(!hw_tensor_same_shape(a, b));
    ck_assert(!hw_tensor_same_shape(b, none));
    ck_assert(hw_tensor_same_shape(b, hw_tensor_new(arena, 2, (int64_t[]){6, 5})));
    ck_assert_str_eq(hw_tensor_shape_text(scalar, text), "[]");
    ck_assert_str_eq(hw_tensor_shape_text(a, text), "[2, 3, 5]");
    ck_assert_ptr_null(a->grad);
    ck_assert_ptr_null(a->packed);
    ck_assert(!a->needs_grad);
    ck_assert_int_eq((intptr_t)a->data % 64, 0);
    hw_arena_free(arena);
}
END_TEST

/* Every combination of transposes, with rows farther apart than they are long, accumulating or not. */
START_TEST(gemm)
{
    enum { M = 5, N = 7, K = 9, LD = 11 };
    for (int c = 0; c < 8; c++) {
        const bool ta = c & 1, tb = c & 2, add = c & 4;
        hw_real *a = array_random(LD * LD, -1, 1), *b = array_random(LD * LD, -1, 1), *y = array_random(M * LD, -1, 1);
        double want[M * LD];
        for (int i = 0; i < M * LD; i++) want[i] = (double)y[i];
        for (int i = 0; i < M; i++) {
            for (int j = 0; j < N; j++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += (double)(ta ? a[k * LD + i] : a[i * LD + k]) * (double)(tb ? b[j * LD + k] : b[k * LD + j]);
                want[i * LD + j] = 0.5 * sum + (add ? 2 * want[i * LD + j] : 0);
            }
        }
        if (!add)
            for (int i = 0; i < M; i++)
                for (int j = 0; j < N; j++) y[i * LD + j] = NAN; /* not read */
        hw_gemm(ta, tb, M, N, K, 0.5, a, LD, b, LD, add ? 2 : 0, y, LD);
        expect_near("gemm", y, want, M * LD, NEAR);
    }
    hw_real y = 3;
    hw_gemm(false, false, 0, 1, 1, 1, NULL, 1, NULL, 1, 0, &y, 1);
    ck_assert(y == 3);
}
END_TEST

START_TEST(blas_kernel_has_a_name)
{
    ck_assert_ptr_nonnull(hw_blas_kernel());
    ck_assert_uint_gt(strlen(hw_blas_kernel()), 0);
}
END_TEST

START_TEST(packing)
{
    static const int64_t sizes[][2] = {{1, 1}, {32, 16}, {33, 5}, {31, 17}, {70, 40}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const int64_t outputs = sizes[s][0], inputs = sizes[s][1], size = hw_packed_size(outputs, inputs);
        ck_assert_int_eq(size, (outputs + 31) / 32 * 32 * inputs);
        hw_real *w = array_random(outputs * (inputs + 3), -1, 1), *t = array_new(inputs * (outputs + 2));
        for (int64_t o = 0; o < outputs; o++)
            for (int64_t k = 0; k < inputs; k++) t[k * (outputs + 2) + o] = w[o * (inputs + 3) + k];
        hw_packed p = {outputs, inputs, array_new(size)}, q = {outputs, inputs, array_new(size)};
        hw_pack(&p, w, inputs + 3, false);
        hw_pack(&q, t, outputs + 2, true);
        for (int64_t i = 0; i < size; i++) {
            const int64_t o = i / (32 * inputs) * 32 + i % 32, k = i / 32 % inputs;
            EXPECT(p.panels[i] == (o < outputs ? w[o * (inputs + 3) + k] : 0), "number %lld", (long long)i);
        }
        expect_same_bits("transposed", q.panels, p.panels, size);
        hw_real *row = array_new(inputs);
        for (int64_t o = 0; o < outputs; o++) {
            hw_packed_row(&p, o, row);
            expect_same_bits("a row back", row, w + o * (inputs + 3), inputs);
        }
    }
}
END_TEST

START_TEST(dropout_sites)
{
    hw_dropout off = hw_dropout_new(0, 1, 2, 3), tenth = hw_dropout_new(0.1, 1, 2, 3);
    hw_dropout most = hw_dropout_new(0.9999999, 1, 2, 3);
    ck_assert_uint_eq(off.threshold, 0);
    ck_assert(off.scale == 1);
    ck_assert_uint_eq(tenth.threshold, 6554);
    ck_assert_double_eq_tol((double)tenth.scale, 65536.0 / (65536 - 6554), 1e-6);
    ck_assert_uint_eq(most.threshold, 65535);
    ck_assert_uint_eq(tenth.seed, 1);
    ck_assert_uint_eq(tenth.step, 2);
    ck_assert_uint_eq(tenth.site, 3);
}
END_TEST

START_TEST(dispatch)
{
    const hw_kernels *plainest = hw_kernels_at(0), *best = NULL;
    ck_assert_str_eq(plainest->name, "generic");
    for (int i = 0; hw_kernels_at(i); i++) {
        best = hw_kernels_at(i);
        ck_assert_int_gt(best->vector_bits, i ? hw_kernels_at(i - 1)->vector_bits : 0);
        ck_assert_ptr_nonnull(best->attention);
    }
    unsetenv("HEADWISE_CPU");
    ck_assert_ptr_eq(hw_kernels_get(), best);
    hw_kernels_set(plainest);
    ck_assert_ptr_eq(hw_kernels_get(), plainest);
    hw_kernels_set(NULL);
    setenv("HEADWISE_CPU", "generic", 1);
    ck_assert_ptr_eq(hw_kernels_get(), plainest);
    hw_kernels_set(NULL);
    setenv("HEADWISE_CPU", "", 1);
    ck_assert_ptr_eq(hw_kernels_get(), best);
}
END_TEST

START_TEST(unknown_path)
{
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDERR_FILENO);
    close(null);
    setenv("HEADWISE_CPU", "sse9", 1);
    hw_kernels_get();
}
END_TEST

Suite *test_tensor(void);
Suite *test_tensor(void)
{
    Suite *suite = suite_create("tensor");
    TCase *tests = tcase_create("tensor");
    tcase_add_checked_fixture(tests, array_begin, array_end);
    tcase_add_test(tests, shapes);
    tcase_add_test(tests, gemm);
    tcase_add_test(tests, blas_kernel_has_a_name);
    tcase_add_test(tests, packing);
    tcase_add_test(tests, dropout_sites);
    tcase_add_test(tests, dispatch);
    tcase_add_test_raise_signal(tests, unknown_path, SIGABRT);
    suite_add_tcase(suite, tests);
    return suite;
}
