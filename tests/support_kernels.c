#include "support_kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 16, MOST = 4096 };

static struct {
    hw_real *memory;
    int64_t n;
} arrays[MOST];
static int count;
static hw_random source;

void array_begin(void)
{
    source = hw_random_new(7, 7);
    count = 0;
}

hw_real *array_new(int64_t n)
{
    ck_assert_int_lt(count, MOST);
    hw_real *memory = malloc((size_t)(n + 2 * GUARD) * sizeof *memory);
    ck_assert_ptr_nonnull(memory);
    for (int64_t i = 0; i < n + 2 * GUARD; i++) memory[i] = NAN;
    arrays[count].memory = memory;
    arrays[count++].n = n;
    return memory + GUARD;
}

hw_real *array_random(int64_t n, double low, double high)
{
    hw_real *x = array_new(n);
    for (int64_t i = 0; i < n; i++) x[i] = (hw_real)(low + (high - low) * hw_random_uniform(&source));
    return x;
}

hw_real *array_copy(const hw_real *x, int64_t n)
{
    hw_real *y = array_new(n);
    if (n) memcpy(y, x, (size_t)n * sizeof *y);
    return y;
}

void array_end(void)
{
    for (int a = 0; a < count; a++) {
        for (int i = 0; i < GUARD; i++) {
            EXPECT(isnan(arrays[a].memory[i]), "written %d before an array", GUARD - i);
            EXPECT(isnan(arrays[a].memory[GUARD + arrays[a].n + i]), "written %d behind an array", i);
        }
        free(arrays[a].memory);
    }
    count = 0;
}

void expect_near(const char *what, const hw_real *got, const double *want, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++) {
        if (isinf(want[i]) && got[i] == (hw_real)want[i]) continue;
        double bound = tolerance * fmax(1, fabs(want[i]));
        EXPECT(fabs((double)got[i] - want[i]) <= bound, "%s: number %lld of %lld is %.9g, not %.9g", what,
                      (long long)i, (long long)n, (double)got[i], want[i]);
    }
}

void expect_same_bits(const char *what, const hw_real *got, const hw_real *want, int64_t n)
{
    if (n == 0 || !memcmp(got, want, (size_t)n * sizeof *got)) return;
    for (int64_t i = 0; i < n; i++)
        EXPECT((isnan(got[i]) && isnan(want[i])) || !memcmp(got + i, want + i, sizeof *got),
                      "%s: number %lld of %lld is %a, not %a", what, (long long)i, (long long)n, (double)got[i],
                      (double)want[i]);
}

void expect_same_on_paths(const char *what, hw_real **kept, const hw_real *got, int64_t n)
{
    if (*kept) expect_same_bits(what, got, *kept, n);
    else *kept = array_copy(got, n);
}
