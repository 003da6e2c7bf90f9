/* Layer 9, metrics: figures and tests that need no text: exact match, perplexity, alignment error rate (Och and Ney
 * 2003, "A systematic comparison of various statistical alignment models"), the sign-flip test on clustered
 * differences (Fisher's randomization test for pairs) and Holm's correction (Holm 1979, "A simple sequentially
 * rejective multiple test procedure"). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/metrics.h>

double hw_exact_match(const char *const *hypotheses, const hw_span *references, int64_t count)
{
    int64_t same = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t size = strlen(hypotheses[i]);
        same += size == references[i].size && !memcmp(hypotheses[i], references[i].text, size);
    }
    return count ? (double)same / (double)count : 0;
}

double hw_perplexity(double negative_log_likelihood, int64_t tokens)
{
    return tokens ? exp(negative_log_likelihood / (double)tokens) : 1;
}

/* ---- alignment error rate ---------------------------------------------------------------------------------------- */

static int compare_links(const void *a, const void *b)
{
    const hw_link *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return (x->target > y->target) - (x->target < y->target);
}

void hw_aer_row(hw_link *found, int64_t found_count, const hw_link *gold, int64_t gold_count, double row[HW_AER_WIDTH])
{
    memset(row, 0, HW_AER_WIDTH * sizeof *row);
    if (found_count) qsort(found, (size_t)found_count, sizeof *found, compare_links);
    for (int64_t i = 0; i < gold_count; i++) {
        HW_CHECK(i == 0 || compare_links(gold + i - 1, gold + i) < 0, "gold link %lld is out of order", (long long)i);
        row[3] += gold[i].sure;
    }
    for (int64_t i = 0, j = 0; i < found_count; i++) {
        if (i > 0 && !compare_links(found + i - 1, found + i)) continue;
        row[2]++;
        while (j < gold_count && compare_links(gold + j, found + i) < 0) j++;
        if (j == gold_count || compare_links(gold + j, found + i)) continue;
        row[0] += gold[j].sure;
        row[1]++;
    }
}

double hw_aer_score(const double *sum, const void *unused)
{
    (void)unused;
    double all = sum[2] + sum[3];
    return all > 0 ? 1 - (sum[0] + sum[1]) / all : 0;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

typedef struct flips {
    const double *sums; /* [clusters] */
    int64_t clusters;
    bool exact;         /* trial t is the pattern of signs t, not a random one */
    double seen;
    uint64_t seed;
    bool *extreme; /* [trials] */
} flips;

static void flip_trial(int t, void *argument)
{
    const flips *job = argument;
    hw_random random = hw_random_new(job->seed, (uint64_t)t);
    uint32_t bits = (uint32_t)t;
    double sum = 0;
    for (int64_t i = 0; i < job->clusters; i++, bits >>= 1) {
        if (!job->exact && i % 32 == 0) bits = hw_random_bits(&random);
        sum += bits & 1 ? -job->sums[i] : job->sums[i];
    }
    job->extreme[t] = fabs(sum) >= job->seen;
}

double hw_cluster_test(const double *differences, const int32_t *cluster, int64_t count, int64_t clusters, int trials,
                       uint64_t seed)
{
    if (!cluster) clusters = count;
    HW_CHECK(trials > 0 && clusters >= 0, "%d trials over %lld clusters", trials, (long long)clusters);
    bool exact = clusters < 31 && ((int64_t)1 << clusters) <= trials;
    int n = exact ? 1 << clusters : trials;
    double *sums = calloc((size_t)clusters + 1, sizeof *sums), total = 0, size = 0;
    bool *extreme = malloc((size_t)n * sizeof *extreme);
    HW_CHECK(sums && extreme, "no memory for %lld clusters and %d trials", (long long)clusters, n);
    for (int64_t i = 0; i < count; i++) sums[cluster ? cluster[i] : i] += differences[i];
    for (int64_t i = 0; i < clusters; i++) {
        total += sums[i];
        size += fabs(sums[i]);
    }
    /* The slack keeps sums that differ by rounding alone ties. */
    flips job = {sums, clusters, exact, fabs(total) - 1e-12 * size, seed, extreme};
    hw_parallel(n, flip_trial, &job);
    int64_t c = 0;
    for (int i = 0; i < n; i++) c += extreme[i];
    free(sums);
    free(extreme);
    return exact ? (double)c / n : (double)(c + 1) / (n + 1);
}

static int by_value(const void *a, const void *b)
{
    double x = **(const double *const *)a, y = **(const double *const *)b;
    return (x > y) - (x < y);
}

void hw_holm(const double *p, int count, double *adjusted)
{
    if (count == 0) return;
    const double **order = malloc((size_t)count * sizeof *order);
    double *copy = malloc((size_t)count * sizeof *copy), largest = 0;
    HW_CHECK(order && copy, "no memory for %d p-values", count);
    memcpy(copy, p, (size_t)count * sizeof *copy);
    for (int i = 0; i < count; i++) order[i] = copy + i;
    qsort(order, (size_t)count, sizeof *order, by_value);
    for (int i = 0; i < count; i++) {
        double scaled = fmin(1, *order[i] * (count - i));
        largest = fmax(largest, scaled);
        adjusted[order[i] - copy] = largest;
    }
    free(order);
    free(copy);
}
