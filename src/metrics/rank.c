/* Layer 9, metrics: Spearman's rank correlation: Pearson's of the ranks, equal values sharing the mean of theirs
 * (Spearman 1904, "The proof and measurement of association between two things"). */
#include <math.h>
#include <stdlib.h>

#include <headwise/metrics.h>

static int by_value(const void *a, const void *b)
{
    double x = **(const double *const *)a, y = **(const double *const *)b;
    return (x > y) - (x < y);
}

static void ranks_of(const double *x, int count, const double **order, double *ranks)
{
    for (int i = 0; i < count; i++) order[i] = x + i;
    qsort(order, (size_t)count, sizeof *order, by_value);
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && *order[end] == *order[i];) end++;
        for (int k = i; k < end; k++) ranks[order[k] - x] = 0.5 * (i + end - 1);
    }
}

double hw_rank_correlation(const double *x, const double *y, int count)
{
    const double **order = malloc(((size_t)count + 1) * sizeof *order);
    double *ranks[2], middle = 0.5 * (count - 1), products[3] = {0};
    for (int k = 0; k < 2; k++) ranks[k] = malloc(((size_t)count + 1) * sizeof **ranks);
    HW_CHECK(order && ranks[0] && ranks[1], "no memory for %d ranks", count);
    ranks_of(x, count, order, ranks[0]);
    ranks_of(y, count, order, ranks[1]);
    for (int i = 0; i < count; i++) {
        double a = ranks[0][i] - middle, b = ranks[1][i] - middle;
        products[0] += a * b;
        products[1] += a * a;
        products[2] += b * b;
    }
    free(order);
    free(ranks[0]);
    free(ranks[1]);
    return products[0] / sqrt(products[1] * products[2]);
}
