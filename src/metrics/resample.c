/* Layer 9, metrics: how sure a figure is, by drawing the sentences again.
 *
 * Trial t draws from the random stream t, so trials may run on any thread, and the same seed draws the same sentences
 * for every tally: what pairs two systems. Sources: Efron and Tibshirani 1993 (bootstrap); Koehn 2004, "Statistical
 * significance tests for machine translation evaluation"; Riezler and Maxwell 2005 (approximate randomization); Noreen
 * 1989 for the + 1; Fisher 1935 for what few signs can tell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/metrics.h>

typedef struct trials {
    const hw_tally *baseline, *system; /* system: only where two are compared */
    uint64_t seed;
    double *scores; /* [trials] */
} trials;

static double *run(int n, void (*trial)(int t, void *argument), trials job)
{
    HW_CHECK(n > 0, "%d trials", n);
    job.scores = malloc((size_t)n * sizeof *job.scores);
    HW_CHECK(job.scores, "no memory for %d trials", n);
    hw_parallel(n, trial, &job);
    return job.scores;
}

/* As many sentences as there are, drawn with replacement. */
static void bootstrap_trial(int t, void *argument)
{
    const trials *job = argument;
    const hw_tally *tally = job->baseline;
    hw_random random = hw_random_new(job->seed, (uint64_t)t);
    double sum[HW_TALLY_WIDTH] = {0};
    for (int64_t i = 0; i < tally->count; i++) {
        const double *row = tally->rows + (int64_t)hw_random_below(&random, (uint64_t)tally->count) * tally->width;
        for (int k = 0; k < tally->width; k++) sum[k] += row[k];
    }
    job->scores[t] = tally->score(sum, tally->options);
}

/* The same sentences of both. */
static void difference_trial(int t, void *argument)
{
    const trials *job = argument;
    const hw_tally *a = job->baseline, *b = job->system;
    hw_random random = hw_random_new(job->seed, (uint64_t)t);
    double first[HW_TALLY_WIDTH] = {0}, second[HW_TALLY_WIDTH] = {0};
    for (int64_t i = 0; i < a->count; i++) {
        int64_t at = (int64_t)hw_random_below(&random, (uint64_t)a->count) * a->width;
        for (int k = 0; k < a->width; k++) {
            first[k] += a->rows[at + k];
            second[k] += b->rows[at + k];
        }
    }
    job->scores[t] = b->score(second, b->options) - a->score(first, a->options);
}

/* The outputs of each sentence swapped or not, a random bit each: the difference of the two mixed systems. */
static void randomization_trial(int t, void *argument)
{
    const trials *job = argument;
    const hw_tally *a = job->baseline, *b = job->system;
    hw_random random = hw_random_new(job->seed, (uint64_t)t);
    uint32_t bits = 0;
    double first[HW_TALLY_WIDTH] = {0}, second[HW_TALLY_WIDTH] = {0};
    for (int64_t i = 0; i < a->count; i++, bits >>= 1) {
        if (i % 32 == 0) bits = hw_random_bits(&random);
        const double *x = a->rows + i * a->width, *y = b->rows + i * a->width;
        double *to_x = bits & 1 ? second : first, *to_y = bits & 1 ? first : second;
        for (int k = 0; k < a->width; k++) {
            to_x[k] += x[k];
            to_y[k] += y[k];
        }
    }
    job->scores[t] = fabs(a->score(first, a->options) - a->score(second, a->options));
}

int hw_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double mean(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i];
    return sum / n;
}

hw_interval hw_bootstrap_interval(const hw_tally *tally, int trials_count, uint64_t seed)
{
    double *scores = run(trials_count, bootstrap_trial, (trials){.baseline = tally, .seed = seed});
    qsort(scores, (size_t)trials_count, sizeof *scores, hw_ascending);
    hw_interval interval = {.estimate = hw_tally_score(tally), .mean = mean(scores, trials_count)};
    interval.low = scores[trials_count / 40];
    interval.high = scores[trials_count - trials_count / 40 - 1];
    interval.half_width = 0.5 * (interval.high - interval.low);
    free(scores);
    return interval;
}

hw_interval hw_mean_interval(const double *values, int64_t count, int trials_count, uint64_t seed)
{
    hw_tally tally;
    hw_tally_init(&tally, 2, hw_ratio_score, NULL);
    for (int64_t i = 0; i < count; i++) hw_tally_add(&tally, (const double[]){values[i], 1});
    hw_interval interval = hw_bootstrap_interval(&tally, trials_count, seed);
    hw_tally_clear(&tally);
    return interval;
}

/* The share of trials whose |difference|, less shift, is at least the one seen. Rounding must not make a tie a miss. */
static double p_value(const double *differences, int n, double shift, double seen)
{
    int64_t extreme = 0;
    for (int i = 0; i < n; i++) extreme += differences[i] - shift >= seen - 1e-9;
    return (double)(extreme + 1) / (n + 1);
}

static double signed_difference(const hw_tally *baseline, const hw_tally *system)
{
    HW_CHECK(baseline->count == system->count && baseline->width == system->width && baseline->score == system->score,
             "a paired test needs one metric on the same sentences: %lld and %lld", (long long)baseline->count,
             (long long)system->count);
    return hw_tally_score(system) - hw_tally_score(baseline);
}

double hw_paired_bootstrap(const hw_tally *baseline, const hw_tally *system, int trials_count, uint64_t seed)
{
    double seen = fabs(signed_difference(baseline, system));
    double *a = run(trials_count, bootstrap_trial, (trials){.baseline = baseline, .seed = seed});
    double *b = run(trials_count, bootstrap_trial, (trials){.baseline = system, .seed = seed});
    for (int i = 0; i < trials_count; i++) a[i] = fabs(a[i] - b[i]);
    double p = p_value(a, trials_count, mean(a, trials_count), seen);
    free(a);
    free(b);
    return p;
}

/* Sentences whose rows are the same say nothing about a difference. */
static int64_t differing(const hw_tally *a, const hw_tally *b)
{
    int64_t count = 0;
    size_t size = (size_t)a->width * sizeof *a->rows;
    for (int64_t i = 0; i < a->count; i++) count += memcmp(a->rows + i * a->width, b->rows + i * b->width, size) != 0;
    return count;
}

/* p from sorted resamples, and what the sentences allow; see hw_paired_difference. */
static void judge(hw_difference *d, const double *x, int n, int64_t sentences)
{
    int below = 0, above = 0;
    for (int i = 0; i < n; i++) {
        below += x[i] <= 0;
        above += x[i] >= 0;
    }
    int tail = below < above ? below : above;
    double resamples = fmin(1, 2.0 * (tail ? tail : 1) / n),
           flips = fmin(1, ldexp(1, 1 - (int)fmin((double)sentences, 1000)));
    d->p = fmax(resamples, flips);
    d->p_is_bound = !tail && resamples >= flips;
    if (flips <= 0.05) return;
    d->low = fmin(d->low, 0);
    d->high = fmax(d->high, 0);
}

hw_difference hw_paired_difference(const hw_tally *baseline, const hw_tally *system, int trials_count, uint64_t seed)
{
    hw_difference d = {.value = NAN, .low = NAN, .high = NAN, .p = NAN};
    if (!baseline->count) return d;
    d.value = signed_difference(baseline, system);
    if (baseline->count < 2) return d;
    double *x = run(trials_count, difference_trial, (trials){.baseline = baseline, .system = system, .seed = seed});
    for (int i = 0; i < trials_count; i++)
        if (fabs(x[i]) < 1e-12) x[i] = 0; /* but for rounding */
    qsort(x, (size_t)trials_count, sizeof *x, hw_ascending);
    d.low = x[trials_count / 40];
    d.high = x[trials_count - trials_count / 40 - 1];
    judge(&d, x, trials_count, differing(baseline, system));
    free(x);
    return d;
}

double hw_paired_randomization(const hw_tally *baseline, const hw_tally *system, int trials_count, uint64_t seed)
{
    double seen = fabs(signed_difference(baseline, system));
    double *differences =
        run(trials_count, randomization_trial, (trials){.baseline = baseline, .system = system, .seed = seed});
    double p = p_value(differences, trials_count, 0, seen);
    free(differences);
    return p;
}
