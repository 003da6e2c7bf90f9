/* Measures of how different heads are, over numbers alone, so that they can be held against numpy and scipy.
 *
 * Jensen-Shannon distance: Lin 1991, equation 4.1 with equal weights, base 2, and its root (Endres and Schindelin
 * 2003). Linear CKA: Kornblith et al. 2019, "Similarity of Neural Network Representations Revisited", section 3.
 * Effective number: the exponential of the entropy of the eigenvalues of a similarity over its size (Friedman and Dieng
 * 2023, "The Vendi Score", definition 3.1). Classical scaling: Torgerson 1952; Borg and Groenen 2005, section 12.1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/diversity.h"

/* ---- Jensen-Shannon ---------------------------------------------------------------------------------------------- */

double hw_negative_entropy(const double *p, const double *q, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        double m = 0.5 * (p[k] + q[k]);
        if (m > 0) sum += m * log2(m);
    }
    return sum;
}

double hw_js_distance(const double *p, const double *q, int64_t n)
{
    double divergence =
        0.5 * (hw_negative_entropy(p, p, n) + hw_negative_entropy(q, q, n)) - hw_negative_entropy(p, q, n);
    return sqrt(fmax(divergence, 0));
}

/* ---- linear CKA -------------------------------------------------------------------------------------------------- */

struct hw_cka {
    int heads;
    int64_t width, count;
    double *sum;      /* [H K] */
    double *products; /* [H K][H K] of rows, from the diagonal's blocks on */
    const double *rows;
    int64_t adding;
};

hw_cka *hw_cka_new(int heads, int64_t width)
{
    hw_cka *c = calloc(1, sizeof *c);
    HW_CHECK(c, "no memory for CKA");
    size_t size = (size_t)heads * (size_t)width + 1;
    *c = (hw_cka){.heads = heads, .width = width, .sum = calloc(size, sizeof *c->sum)};
    c->products = calloc(size * size, sizeof *c->products);
    HW_CHECK(c->sum && c->products, "no memory for CKA of %d heads", heads);
    return c;
}

void hw_cka_free(hw_cka *c)
{
    if (!c) return;
    free(c->sum);
    free(c->products);
    free(c);
}

/* The rows of the products that belong to one head. */
static void add_head(int i, void *argument)
{
    const hw_cka *c = argument;
    int64_t size = c->heads * c->width, first = i * c->width;
    for (int64_t r = 0; r < c->adding; r++) {
        const double *x = c->rows + r * size;
        for (int64_t a = first; a < first + c->width; a++) {
            double *out = c->products + a * size, value = x[a];
            c->sum[a] += value;
            for (int64_t b = first; b < size; b++) out[b] += value * x[b];
        }
    }
}

void hw_cka_add(hw_cka *c, const double *rows, int64_t count)
{
    c->rows = rows;
    c->adding = count;
    hw_parallel(c->heads, add_head, c);
    c->count += count;
}

/* |X_i' X_j|^2 of centred columns. */
static double centred(const hw_cka *c, int i, int j)
{
    int64_t size = c->heads * c->width;
    double total = 0;
    for (int64_t a = i * c->width; a < (i + 1) * c->width; a++)
        for (int64_t b = j * c->width; b < (j + 1) * c->width; b++) {
            double x = c->products[a * size + b] - c->sum[a] * c->sum[b] / (double)c->count;
            total += x * x;
        }
    return total;
}

void hw_cka_matrix(const hw_cka *c, double *out)
{
    for (int i = 0; i < c->heads; i++)
        for (int j = i; j < c->heads; j++) {
            double both = sqrt(centred(c, i, i)) * sqrt(centred(c, j, j));
            out[i * c->heads + j] = out[j * c->heads + i] = both > 0 ? centred(c, i, j) / both : NAN;
        }
}

/* ---- eigenvalues ------------------------------------------------------------------------------------------------- */

/* Turns a by the angle that makes a[p][q] zero (Golub and Van Loan 2013, algorithm 8.5.1), and the vectors with it. */
static void rotate(int n, double *a, double *vectors, int p, int q)
{
    double apq = a[p * n + q];
    if (apq == 0) return;
    double tau = (a[q * n + q] - a[p * n + p]) / (2 * apq);
    double t = (tau < 0 ? -1 : 1) / (fabs(tau) + sqrt(1 + tau * tau)), c = 1 / sqrt(1 + t * t), s = t * c;
    for (int k = 0; k < n; k++) {
        double x = a[k * n + p], y = a[k * n + q];
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for (int k = 0; k < n; k++) {
        double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
        x = vectors[p * n + k], y = vectors[q * n + k];
        vectors[p * n + k] = c * x - s * y;
        vectors[q * n + k] = s * x + c * y;
    }
}

void hw_symmetric_eigen(int n, double *a, double *vectors)
{
    enum { SWEEPS = 60 };
    memset(vectors, 0, (size_t)n * (size_t)n * sizeof *vectors);
    for (int i = 0; i < n; i++) vectors[i * n + i] = 1;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double off = 0, all = 0;
        for (int i = 0; i < n * n; i++) {
            all += a[i] * a[i];
            if (i / n != i % n) off += a[i] * a[i];
        }
        if (!(off > 1e-30 * all)) return;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) rotate(n, a, vectors, p, q);
    }
}

double hw_effective_number(const double *similarity, int n)
{
    for (int i = 0; i < n * n; i++)
        if (!isfinite(similarity[i])) return NAN; /* what a head that never changes is like cannot be told */
    double *a = malloc(2 * (size_t)n * (size_t)n * sizeof *a), entropy = 0, trace = 0;
    HW_CHECK(a || !n, "no memory for eigenvalues");
    memcpy(a, similarity, (size_t)n * (size_t)n * sizeof *a);
    hw_symmetric_eigen(n, a, a + n * n);
    for (int i = 0; i < n; i++) trace += fmax(a[i * n + i], 0);
    for (int i = 0; i < n; i++) {
        double share = a[i * n + i] / trace;
        if (share > 0) entropy -= share * log(share);
    }
    free(a);
    return n ? exp(entropy) : NAN;
}

double hw_classical_scaling(const double *distances, int n, double (*out)[2])
{
    double *b = malloc((2 * (size_t)n * (size_t)n + (size_t)n) * sizeof *b), all = 0, positive = 0;
    HW_CHECK(b || !n, "no memory for a map");
    double *vectors = b + n * n, *row = vectors + n * n;
    for (int i = 0; i < n; i++) {
        row[i] = 0;
        for (int j = 0; j < n; j++) row[i] += distances[i * n + j] * distances[i * n + j] / n;
        all += row[i] / n;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            b[i * n + j] = -0.5 * (distances[i * n + j] * distances[i * n + j] - row[i] - row[j] + all);
    hw_symmetric_eigen(n, b, vectors);
    int best[2] = {-1, -1};
    for (int i = 0; i < n; i++) {
        positive += fmax(b[i * n + i], 0);
        if (best[0] < 0 || b[i * n + i] > b[best[0] * n + best[0]])
            best[1] = best[0], best[0] = i;
        else if (best[1] < 0 || b[i * n + i] > b[best[1] * n + best[1]])
            best[1] = i;
    }
    double shown = 0;
    for (int d = 0; d < 2; d++) {
        double value = best[d] < 0 ? 0 : fmax(b[best[d] * n + best[d]], 0), most = 0;
        const double *v = vectors + (best[d] < 0 ? 0 : best[d] * n);
        for (int i = 0; i < n; i++)
            if (fabs(v[i]) > fabs(most) * (1 + 1e-9)) most = v[i]; /* a vector's sign is open: this one is positive */
        for (int i = 0; i < n; i++) out[i][d] = sqrt(value) * (most < 0 ? -v[i] : v[i]);
        shown += value;
    }
    free(b);
    return positive > 0 ? shown / positive : NAN;
}
