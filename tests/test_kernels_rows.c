/* Softmax, cross-entropy and layer norm on every path: against double on many shapes, against each other bit for
 * bit, and each row against itself alone. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_kernels.h"

static const int64_t shapes[][2] = { /* rows, cols */
    {0, 5},  {4, 1},  {3, 2},  {3, 7},   {5, 15},  {5, 16},  {5, 17},  {3, 31},  {3, 32},  {3, 33}, {7, 63},
    {7, 64}, {2, 65}, {9, 77}, {2, 100}, {3, 127}, {3, 128}, {3, 129}, {3, 130}, {2, 513}, {2, 1100},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* y, or with `logs` log y, of one row. */
static void softmax_row(double *y, const hw_real *x, int64_t cols, bool logs)
{
    double top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < cols; c++) top = fmax(top, (double)x[c]);
    for (int64_t c = 0; c < cols; c++) sum += exp((double)x[c] - top);
    for (int64_t c = 0; c < cols; c++)
        y[c] = logs ? (double)x[c] - top - log(sum) : exp((double)x[c] - top) / sum;
}

START_TEST(softmax_and_its_log)
{
    const int64_t rows = shapes[_i][0], cols = shapes[_i][1], n = rows * cols;
    hw_real *x = array_random(n, -8, 8);
    const hw_real *dy = array_random(n, -1, 1), *dx0 = array_random(n, -1, 1);
    for (int64_t i = 3; i < n; i += 11)
        if (cols > 4) x[i] = -INFINITY;
    double *want[4];
    for (int w = 0; w < 4; w++) want[w] = malloc((size_t)(n + 1) * sizeof **want);
    for (int64_t r = 0; r < rows; r++) {
        double *y = want[0] + r * cols, *ly = want[2] + r * cols, inner = 0, sum = 0;
        softmax_row(y, x + r * cols, cols, false);
        softmax_row(ly, x + r * cols, cols, true);
        for (int64_t c = 0; c < cols; c++) {
            inner += (double)dy[r * cols + c] * y[c];
            sum += (double)dy[r * cols + c];
        }
        for (int64_t c = 0; c < cols; c++) {
            const int64_t i = r * cols + c;
            want[1][i] = (double)dx0[i] + y[c] * ((double)dy[i] - inner);
            want[3][i] = (double)dx0[i] + (double)dy[i] - y[c] * sum;
        }
    }
    hw_real *kept[4] = {NULL};
    EACH_PATH(k) {
        hw_real *got[4] = {array_new(n), array_copy(dx0, n), array_new(n), array_copy(dx0, n)};
        k->softmax(got[0], x, rows, cols);
        k->softmax_backward(got[1], dy, got[0], rows, cols);
        k->log_softmax(got[2], x, rows, cols);
        k->log_softmax_backward(got[3], dy, got[2], rows, cols);
        for (int w = 0; w < 4; w++) {
            expect_near("softmax", got[w], want[w], n, 4 * NEAR);
            expect_same_on_paths("softmax", &kept[w], got[w], n);
        }
        hw_real *in_place = array_copy(x, n);
        k->softmax(in_place, in_place, rows, cols);
        expect_same_bits("in place", in_place, got[0], n);
    }
    for (int w = 0; w < 4; w++) free(want[w]);
}
END_TEST

START_TEST(rows_of_minus_infinity)
{
    for (int64_t cols = 1; cols < 40; cols++) {
        hw_real *x = array_random(3 * cols, -1, 1);
        for (int64_t c = 0; c < cols; c++) x[cols + c] = -INFINITY;
        EACH_PATH(k) {
            hw_real *y = array_new(3 * cols);
            k->softmax(y, x, 3, cols);
            for (int64_t i = 0; i < 3 * cols; i++)
                EXPECT(isfinite(y[i]) && (y[i] == 0) == (i / cols == 1), "%s", k->name);
            k->log_softmax(y, x, 3, cols);
            for (int64_t i = 0; i < 3 * cols; i++)
                EXPECT(i / cols == 1 ? y[i] == -INFINITY : isfinite(y[i]), "%s", k->name);
        }
    }
}
END_TEST

/* Numbers as a causal mask of -1e9 makes them, and huge ones. */
START_TEST(large_scores)
{
    hw_real x[20], y[20];
    for (int i = 0; i < 20; i++) x[i] = i < 3 ? (hw_real)i : (hw_real)-1e9;
    EACH_PATH(k) {
        k->softmax(y, x, 1, 20);
        hw_real three[3];
        k->softmax(three, x, 1, 3);
        expect_same_bits("masked", y, three, 3);
        for (int i = 3; i < 20; i++) ck_assert(y[i] == 0);
        hw_real big[2] = {(hw_real)3e38, (hw_real)-3e38};
        k->softmax(y, big, 1, 2);
        ck_assert(y[0] == 1 && y[1] == 0);
    }
}
END_TEST

/* ---- cross-entropy ----------------------------------------------------------------------------------------------- */

static double loss_of(const hw_real *x, int64_t cols, int64_t target, double smoothing, double *gradient)
{
    double *logs = malloc((size_t)cols * sizeof *logs), loss = 0;
    softmax_row(logs, x, cols, true);
    for (int64_t c = 0; c < cols; c++) {
        const double q = (c == target ? 1 - smoothing : 0) + smoothing / (double)cols;
        if (q > 0) loss -= q * logs[c];
        if (gradient) gradient[c] = exp(logs[c]) - q;
    }
    free(logs);
    return loss;
}

START_TEST(cross_entropy)
{
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 33, 480, 1001};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int smooth = 0; smooth < 2; smooth++) {
            const int64_t cols = sizes[s], target = cols * 2 / 3;
            const double smoothing = smooth ? 0.1 : 0, scale = 0.25;
            const hw_real *x = array_random(cols, -5, 5);
            double *gradient = malloc((size_t)cols * sizeof *gradient);
            const double want = loss_of(x, cols, target, smoothing, gradient), bare = loss_of(x, cols, target, 0, NULL);
            for (int64_t c = 0; c < cols; c++) gradient[c] *= scale;
            hw_real *kept = NULL;
            double kept_loss = NAN, kept_nll = NAN;
            EACH_PATH(k) {
                hw_real *dx = array_copy(x, cols);
                double loss, nll, loss_only, nll_only;
                k->cross_entropy(NULL, &loss_only, &nll_only, x, cols, target, (hw_real)smoothing, (hw_real)scale);
                k->cross_entropy(dx, &loss, &nll, dx, cols, target, (hw_real)smoothing, (hw_real)scale);
                ck_assert_double_eq_tol(loss, want, 4 * NEAR * fmax(1, want));
                ck_assert_double_eq_tol(nll, bare, 4 * NEAR * fmax(1, bare));
                ck_assert(loss == loss_only && nll == nll_only);
                expect_near("gradient", dx, gradient, cols, NEAR);
                expect_same_on_paths("gradient", &kept, dx, cols);
                if (!isnan(kept_loss)) ck_assert(loss == kept_loss && nll == kept_nll);
                kept_loss = loss, kept_nll = nll;
            }
            free(gradient);
        }
    }
}
END_TEST

START_TEST(maxima_and_log_sum_exp)
{
    enum { COLS = 700 };
    hw_real x[COLS], most[3];
    hw_random random = hw_random_new(4, 4);
    for (int cols = 1; cols <= COLS; cols += 37) {
        double largest[3] = {-INFINITY, -INFINITY, -INFINITY}, sum = 0, top = -INFINITY;
        for (int j = 0; j < cols; j++) {
            x[j] = (hw_real)(3 * hw_random_normal(&random));
            largest[j / HW_STRETCH] = fmax(largest[j / HW_STRETCH], (double)x[j]);
            top = fmax(top, (double)x[j]);
            sum += exp((double)x[j]);
        }
        for (int i = 0; hw_kernels_at(i); i++) {
            hw_kernels_at(i)->maxima(most, x, cols);
            for (int s = 0; s <= (cols - 1) / HW_STRETCH; s++) ck_assert_double_eq((double)most[s], largest[s]);
            double got = hw_kernels_at(i)->log_sum_exp(x, cols, (hw_real)top);
            ck_assert_double_eq_tol(got, log(sum), sizeof(hw_real) == 8 ? 1e-13 : 1e-6);
        }
    }
}
END_TEST

START_TEST(next_above)
{
    enum { COLS = 75 };
    for (int64_t cols = 0; cols <= COLS; cols++)
        for (int64_t at = 0; at <= cols; at += 1 + cols / 7) {
            hw_real *x = array_random(cols, -3, -1);
            for (int64_t j = at; j < cols; j += 5) x[j] = 2;
            if (at > 1) x[at - 1] = (hw_real)NAN;
            EACH_PATH(k) {
                ck_assert_int_eq(k->next_above(x, cols, 1), at);
                ck_assert_int_eq(k->next_above(x, cols, 2), cols);
                ck_assert_int_eq(k->next_above(x, cols, (hw_real)NAN), cols);
            }
        }
}
END_TEST

#ifdef HW_REAL_DOUBLE
/* The kernel's gradient against differences of its own loss. */
START_TEST(cross_entropy_by_differences)
{
    enum { COLS = 37 };
    const double h = 1e-5;
    hw_real *x = array_random(COLS, -3, 3), dx[COLS];
    EACH_PATH(k) {
        double loss, nll, above, below;
        k->cross_entropy(dx, &loss, &nll, x, COLS, 20, 0.1, 2);
        for (int c = 0; c < COLS; c++) {
            const hw_real at = x[c];
            x[c] = at + h;
            k->cross_entropy(NULL, &above, &nll, x, COLS, 20, 0.1, 2);
            x[c] = at - h;
            k->cross_entropy(NULL, &below, &nll, x, COLS, 20, 0.1, 2);
            x[c] = at;
            ck_assert_double_eq_tol(dx[c], 2 * (above - below) / (2 * h), 1e-8);
        }
    }
}
END_TEST
#endif

/* ---- layer norm -------------------------------------------------------------------------------------------------- */

#define EPSILON 1e-5

/* n = (x - mean) rstd of one row; returns rstd */
static double normal_row(double *normal, const double *x, int64_t cols, double *mean)
{
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < cols; c++) sum += x[c];
    *mean = sum / (double)cols;
    for (int64_t c = 0; c < cols; c++) squares += (x[c] - *mean) * (x[c] - *mean);
    const double rstd = 1 / sqrt(squares / (double)cols + EPSILON);
    for (int64_t c = 0; c < cols; c++) normal[c] = (x[c] - *mean) * rstd;
    return rstd;
}

static double *doubles(int64_t n)
{
    return calloc((size_t)n + 1, sizeof(double));
}

/* Forward with and without a residual and dropout before it. The mask is what the kernel does to ones. */
START_TEST(layer_norm_forward)
{
    const int64_t rows = shapes[_i][0], cols = shapes[_i][1], n = rows * cols, first = 3 * cols;
    const hw_real *x = array_random(n, -2, 3), *branch = array_random(n, -1, 1);
    const hw_real *gamma = array_random(cols, 0.5, 2), *beta = array_random(cols, -1, 1);
    const hw_dropout half = hw_dropout_new(0.5, 1, 2, 3), off = hw_dropout_new(0, 0, 0, 0);
    const hw_dropout *const drops[] = {NULL, &off, &half};
    for (int d = -1; d < 3; d++) { /* -1: no residual */
        hw_real *mask = array_new(n), *kept[4] = {NULL};
        for (int64_t i = 0; i < n; i++) mask[i] = 1;
        hw_kernels_at(0)->activation(mask, mask, n, HW_IDENTITY, d < 0 ? NULL : drops[d], first);
        double *sum = doubles(n), *y = doubles(n), *mean = doubles(rows), *rstd = doubles(rows);
        for (int64_t i = 0; i < n; i++) sum[i] = (double)x[i] + (d < 0 ? 0 : (double)mask[i] * (double)branch[i]);
        for (int64_t r = 0; r < rows; r++) rstd[r] = normal_row(y + r * cols, sum + r * cols, cols, mean + r);
        for (int64_t i = 0; i < n; i++) y[i] = y[i] * (double)gamma[i % cols] + (double)beta[i % cols];
        EACH_PATH(k) {
            hw_real *got[4] = {array_new(n), array_copy(x, n), array_new(rows), array_new(rows)};
            if (d < 0) k->layer_norm(got[0], got[2], got[3], x, gamma, beta, rows, cols, (hw_real)EPSILON);
            else
                k->residual_layer_norm(got[0], got[1], got[2], got[3], x, branch, gamma, beta, rows, cols,
                                       (hw_real)EPSILON, drops[d], first);
            /* One column: x - mean is what rounding left of 0, and rstd is large. */
            expect_near("y", got[0], y, n, cols == 1 ? 1e-3 : 8 * NEAR);
            expect_near("sum", got[1], sum, n, NEAR);
            expect_near("mean", got[2], mean, rows, NEAR);
            expect_near("rstd", got[3], rstd, rows, cols == 1 ? 1e-3 : 8 * NEAR);
            for (int w = 0; w < 4; w++) expect_same_on_paths("layer norm", &kept[w], got[w], w < 2 ? n : rows);
            if (d < 0) continue;
            hw_real *alone = array_new(n);
            k->residual_layer_norm(NULL, alone, NULL, NULL, x, branch, NULL, NULL, rows, cols, 0, drops[d], first);
            expect_same_bits("sum alone", alone, got[1], n);
            for (int64_t r = 0; r < rows; r++) { /* a row by itself */
                k->residual_layer_norm(alone, alone + cols, NULL, NULL, x + r * cols, branch + r * cols, gamma, beta,
                                       rows > 1, cols, (hw_real)EPSILON, drops[d], first + r * cols);
                if (rows > 1) expect_same_bits("row alone", alone, got[0] + r * cols, cols);
            }
        }
        free(sum), free(y), free(mean), free(rstd);
    }
}
END_TEST

START_TEST(layer_norm_back)
{
    const int64_t rows = shapes[_i][0], cols = shapes[_i][1], n = rows * cols, first = 3 * cols;
    const hw_real *x = array_random(n, -2, 3), *dy = array_random(n, -1, 1), *gamma = array_random(cols, 0.5, 2);
    const hw_real *start = array_random(2 * n + 2 * cols, -1, 1);
    const hw_dropout half = hw_dropout_new(0.5, 1, 2, 3), *const drops[] = {NULL, &half};
    double *wide = doubles(n), *normal = doubles(cols), *d = doubles(n);
    double *want[4] = {doubles(n), doubles(n), doubles(cols), doubles(cols)};
    hw_real *mean = array_new(rows), *rstd = array_new(rows), *mask = array_new(n);
    for (int64_t i = 0; i < n; i++) wide[i] = (double)x[i];
    for (int64_t r = 0; r < rows; r++) {
        double m, mean_g = 0, mean_gn = 0;
        const double rs = normal_row(normal, wide + r * cols, cols, &m);
        mean[r] = (hw_real)m, rstd[r] = (hw_real)rs;
        for (int64_t c = 0; c < cols; c++) {
            const double t = (double)dy[r * cols + c], g = t * (double)gamma[c];
            mean_g += g / (double)cols;
            mean_gn += g * normal[c] / (double)cols;
            want[2][c] += t * normal[c];
            want[3][c] += t;
        }
        for (int64_t c = 0; c < cols; c++)
            d[r * cols + c] = rs * ((double)dy[r * cols + c] * (double)gamma[c] - mean_g - normal[c] * mean_gn);
    }
    for (int64_t c = 0; c < cols; c++) {
        want[2][c] += (double)start[2 * n + c];
        want[3][c] += (double)start[2 * n + cols + c];
    }
    for (int how = 0; how < 4; how++) {
        const bool overwrite = how & 1;
        const hw_dropout *drop = drops[how >> 1];
        for (int64_t i = 0; i < n; i++) mask[i] = 1;
        hw_kernels_at(0)->activation(mask, mask, n, HW_IDENTITY, drop, first);
        for (int64_t i = 0; i < n; i++) {
            want[0][i] = d[i] + (overwrite ? 0 : (double)start[i]);
            want[1][i] = d[i] * (double)mask[i] + (overwrite ? 0 : (double)start[n + i]);
        }
        hw_real *kept[4] = {NULL};
        EACH_PATH(k) {
            hw_real *got[4] = {array_copy(start, n), array_copy(start + n, n), array_copy(start + 2 * n, cols),
                               array_copy(start + 2 * n + cols, cols)};
            k->layer_norm_backward(got[0], overwrite, got[1], overwrite, got[2], got[3], dy, x, mean, rstd, gamma, rows,
                                   cols, drop, first);
            for (int w = 0; w < 4; w++) {
                expect_near("gradient", got[w], want[w], w < 2 ? n : cols, (cols < 4 ? 1000 : 16) * NEAR);
                expect_same_on_paths("gradient", &kept[w], got[w], w < 2 ? n : cols);
            }
            /* Each output alone is the same. */
            hw_real *alone = array_copy(start, n), *branch = array_copy(start + n, n);
            k->layer_norm_backward(alone, overwrite, NULL, false, NULL, NULL, dy, x, mean, rstd, gamma, rows, cols,
                                   drop, first);
            k->layer_norm_backward(NULL, false, branch, overwrite, NULL, NULL, dy, x, mean, rstd, gamma, rows, cols,
                                   drop, first);
            expect_same_bits("dx alone", alone, got[0], n);
            expect_same_bits("dbranch alone", branch, got[1], n);
        }
    }
    free(wide), free(normal), free(d);
    for (int w = 0; w < 4; w++) free(want[w]);
}
END_TEST

Suite *test_kernels_rows(void);
Suite *test_kernels_rows(void)
{
    Suite *suite = suite_create("kernels: rows");
    TCase *tests = tcase_create("rows");
    tcase_add_checked_fixture(tests, array_begin, array_end);
    tcase_add_loop_test(tests, softmax_and_its_log, 0, SHAPES);
    tcase_add_test(tests, rows_of_minus_infinity);
    tcase_add_test(tests, large_scores);
    tcase_add_test(tests, cross_entropy);
    tcase_add_test(tests, maxima_and_log_sum_exp);
    tcase_add_test(tests, next_above);
#ifdef HW_REAL_DOUBLE
    tcase_add_test(tests, cross_entropy_by_differences);
#endif
    tcase_add_loop_test(tests, layer_norm_forward, 0, SHAPES);
    tcase_add_loop_test(tests, layer_norm_back, 0, SHAPES);
    suite_add_tcase(suite, tests);
    return suite;
}
