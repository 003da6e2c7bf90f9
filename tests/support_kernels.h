/* For the tests of layer 2: random arrays that notice what is written around them, and comparisons of arrays. */
#ifndef HW_TESTS_SUPPORT_KERNELS_H
#define HW_TESTS_SUPPORT_KERNELS_H

#include <check.h>

#include <headwise/tensor.h>

/* Arrays of exactly n numbers between NaNs, so that whatever is read beside them shows in results; array_end fails
 * where one of those was overwritten, and frees them all. */
hw_real *array_new(int64_t n);
hw_real *array_random(int64_t n, double low, double high);
hw_real *array_copy(const hw_real *x, int64_t n);
void array_begin(void);
void array_end(void);

/* One unit in the last place of hw_real, times a small number for its sums. */
#ifdef HW_REAL_DOUBLE
#define NEAR 1e-13
#else
#define NEAR 2e-6
#endif

/* |got - want| <= tolerance max(1, |want|) for all; infinities must be equal. */
void expect_near(const char *what, const hw_real *got, const double *want, int64_t n, double tolerance);
void expect_same_bits(const char *what, const hw_real *got, const hw_real *want, int64_t n);
/* The first array seen is kept (*kept is NULL then); every later one must have its bits. */
void expect_same_on_paths(const char *what, hw_real **kept, const hw_real *got, int64_t n);

/* ck_assert_msg writes to a file even where it holds, too slow for every number of an array. */
#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) ck_abort_msg(__VA_ARGS__);                                                                   \
    } while (0)

/* Runs the block for every implementation that this processor has. */
#define EACH_PATH(k)                                                                                                   \
    for (int path_ = 0; hw_kernels_at(path_); path_++)                                                                 \
        for (const hw_kernels *k = hw_kernels_at(path_); k; k = NULL)

#endif
