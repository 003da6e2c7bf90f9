/* Intervals, paired tests and the figures that need no text. What is exact is held against SciPy's and NumPy's figures
 * (tests/fixtures/metrics/statistics.json), what is drawn against scoring the drawn lines anew, against theory, and
 * loosely against sacreBLEU's own draws (resampling.json). */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/metrics.h>

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    ck_assert_msg(json, "%s:%d: %s", path, error.line, error.text);
    return json;
}

static double number(const json_t *from, const char *key)
{
    const json_t *value = json_object_get(from, key);
    ck_assert_msg(json_is_number(value), "no number %s", key);
    return json_number_value(value);
}

static double at(const json_t *array, size_t i) { return json_number_value(json_array_get(array, i)); }

/* ---- two systems ------------------------------------------------------------------------------------------------- */

enum { LINES = 80 };

static json_t *drawn;
static const char *references[LINES], *baseline[LINES], *other[LINES];
static hw_span wanted[LINES]; /* the references */
static hw_metric *metrics[2][2]; /* [BLEU, chrF][baseline, other] */

static void strings(const char *key, const char **out)
{
    const json_t *lines = json_object_get(drawn, key);
    ck_assert_uint_eq(json_array_size(lines), LINES);
    for (size_t i = 0; i < LINES; i++) out[i] = json_string_value(json_array_get(lines, i));
}

static hw_metric *new_metric(int i) { return i ? hw_chrf_new(NULL, NULL) : hw_bleu_new(NULL, NULL); }

static void begin(void)
{
    drawn = load("tests/fixtures/metrics/resampling.json");
    strings("references", references);
    for (int i = 0; i < LINES; i++) wanted[i] = hw_span_of(references[i]);
    strings("baseline", baseline);
    strings("other", other);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            hw_metric_add_lines(metrics[i][k] = new_metric(i), k ? other : baseline, wanted, LINES);
}

static void end(void)
{
    for (int i = 0; i < 4; i++) hw_metric_free(metrics[i / 2][i % 2]);
    json_decref(drawn);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Summing rows again is the same as scoring the drawn lines as a corpus of their own. */
START_TEST(a_resample_is_a_corpus)
{
    enum { TRIALS = 80 };
    double scores[TRIALS], sum = 0;
    for (uint64_t t = 0; t < TRIALS; t++) {
        hw_random random = hw_random_new(5, t);
        hw_metric *metric = new_metric(_i);
        for (int i = 0; i < LINES; i++) {
            size_t k = hw_random_below(&random, LINES);
            hw_metric_add_lines(metric, &other[k], &wanted[k], 1);
        }
        sum += scores[t] = hw_metric_score(metric);
        hw_metric_free(metric);
    }
    qsort(scores, TRIALS, sizeof *scores, ascending);
    hw_interval interval = hw_bootstrap_interval(hw_metric_tally(metrics[_i][1]), TRIALS, 5);
    ck_assert_double_eq(interval.estimate, hw_metric_score(metrics[_i][1]));
    ck_assert_double_eq_tol(interval.mean, sum / TRIALS, 1e-9);
    ck_assert_double_eq_tol(interval.low, scores[2], 1e-9); /* 80 / 40 from either end */
    ck_assert_double_eq_tol(interval.high, scores[77], 1e-9);
    ck_assert_double_eq_tol(interval.half_width, (scores[77] - scores[2]) / 2, 1e-9);
}
END_TEST

START_TEST(intervals_and_tests_agree_with_sacrebleu)
{
    const json_t *theirs = json_object_get(drawn, hw_metric_name(metrics[_i][0]));
    const hw_tally *a = hw_metric_tally(metrics[_i][0]), *b = hw_metric_tally(metrics[_i][1]);
    ck_assert_double_eq_tol(hw_tally_score(a), number(theirs, "baseline"), 1e-8);
    ck_assert_double_eq_tol(hw_tally_score(b), number(theirs, "other"), 1e-8);
    hw_interval interval = hw_bootstrap_interval(b, 10000, 12345);
    ck_assert_double_eq_tol(interval.mean, number(theirs, "mean"), 0.04 * number(theirs, "half_width"));
    ck_assert_double_eq_tol(interval.half_width, number(theirs, "half_width"), 0.04 * number(theirs, "half_width"));
    ck_assert_double_eq_tol(hw_paired_bootstrap(a, b, 10000, 12345), number(theirs, "p_bs"), 0.025);
    ck_assert_double_eq_tol(hw_paired_randomization(a, b, 10000, 12345), number(theirs, "p_ar"), 0.025);
}
END_TEST

START_TEST(a_system_against_itself)
{
    const hw_tally *tally = hw_metric_tally(metrics[_i][0]);
    ck_assert_double_eq(hw_paired_bootstrap(tally, tally, 200, 1), 1);
    ck_assert_double_eq(hw_paired_randomization(tally, tally, 200, 1), 1);
}
END_TEST

START_TEST(a_far_better_system)
{
    hw_metric *perfect = new_metric(_i);
    hw_metric_add_lines(perfect, references, wanted, LINES);
    const hw_tally *tally = hw_metric_tally(metrics[_i][0]);
    ck_assert_double_eq(hw_paired_bootstrap(tally, hw_metric_tally(perfect), 999, 1), 0.001);
    ck_assert_double_eq(hw_paired_randomization(tally, hw_metric_tally(perfect), 999, 1), 0.001);
    hw_metric_free(perfect);
}
END_TEST

START_TEST(threads_and_seeds)
{
    const hw_tally *a = hw_metric_tally(metrics[_i][0]), *b = hw_metric_tally(metrics[_i][1]);
    hw_threads_set(1);
    hw_interval one = hw_bootstrap_interval(a, 300, 9), seed = hw_bootstrap_interval(a, 300, 10);
    double p = hw_paired_randomization(a, b, 300, 9);
    hw_threads_set(3);
    hw_interval three = hw_bootstrap_interval(a, 300, 9);
    ck_assert_mem_eq(&one, &three, sizeof one);
    ck_assert_double_eq(hw_paired_randomization(a, b, 300, 9), p);
    ck_assert_double_ne(one.mean, seed.mean);
}
END_TEST

/* ---- differences ------------------------------------------------------------------------------------------------- */

/* Of `count` sentences the first `better` gain a little, each its own amount, those behind them `spread` of noise. */
static hw_difference gain(int count, int better, double spread, uint64_t seed)
{
    hw_tally a, b;
    hw_tally_init(&a, 2, hw_ratio_score, NULL);
    hw_tally_init(&b, 2, hw_ratio_score, NULL);
    hw_random random = hw_random_new(seed, 0);
    for (int i = 0; i < count; i++) {
        double x = hw_random_uniform(&random),
               gained = i < better ? 0.1 + 0.001 * i : spread * hw_random_normal(&random);
        hw_tally_add(&a, (const double[]){x, 1});
        hw_tally_add(&b, (const double[]){x + gained, 1});
    }
    hw_difference d = hw_paired_difference(&a, &b, 1000, seed);
    hw_tally_clear(&a);
    hw_tally_clear(&b);
    return d;
}

/* The signs of k sentences agree by chance in 2 of 2^k cases, and what does not differ says nothing. */
START_TEST(p_is_what_sentences_and_resamples_can_tell)
{
    static const struct {
        int count, better;
        double p;
        bool bound;
    } cases[] = {{2, 2, 0.5, false},       {4, 4, 0.125, false},   {5, 5, 0.0625, false}, {6, 6, 0.03125, false},
                 {8, 8, 1 / 128.0, false}, {300, 4, 0.125, false}, {40, 40, 0.002, true}, {40, 0, 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hw_difference d = gain(cases[i].count, cases[i].better, 0, 1);
        ck_assert_msg(fabs(d.p - cases[i].p) < 1e-12, "%d of %d: p %g", cases[i].better, cases[i].count, d.p);
        ck_assert_int_eq(d.p_is_bound, cases[i].bound);
        ck_assert_int_eq(d.low > 0, d.p <= 0.05);
        ck_assert(d.low <= d.value && d.value <= d.high);
    }
}
END_TEST

START_TEST(p_goes_with_the_interval)
{
    int sure = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        hw_difference d = gain(3 + (int)seed, (int)seed / 4, 0.1, seed);
        ck_assert_int_eq(d.low > 0 || d.high < 0, d.p <= 0.05);
        sure += d.p <= 0.05;
    }
    ck_assert(sure > 5 && sure < 55);
}
END_TEST

/* ---- means and clusters ------------------------------------------------------------------------------------------ */

/* The bootstrap of a mean has the deviation s / sqrt(n): 1.96 of it on either side. */
START_TEST(the_interval_of_a_mean)
{
    enum { N = 400 };
    double x[N], sum = 0, squares = 0;
    hw_random random = hw_random_new(3, 0);
    for (int i = 0; i < N; i++) sum += x[i] = 5 + 2 * hw_random_normal(&random);
    for (int i = 0; i < N; i++) squares += (x[i] - sum / N) * (x[i] - sum / N);
    double deviation = sqrt(squares / N / N);
    hw_interval interval = hw_mean_interval(x, N, 20000, 1);
    ck_assert_double_eq_tol(interval.estimate, sum / N, 1e-12);
    ck_assert_double_eq_tol(interval.mean, sum / N, 0.05 * deviation);
    ck_assert_double_eq_tol(interval.half_width, 1.96 * deviation, 0.07 * deviation);
    ck_assert_double_eq_tol((interval.low + interval.high) / 2, sum / N, 0.1 * deviation);
    double one[] = {3.5};
    interval = hw_mean_interval(one, 1, 10, 1);
    ck_assert_double_eq(interval.low, 3.5);
    ck_assert_double_eq(interval.half_width, 0);
    ck_assert_double_eq(hw_mean_interval(NULL, 0, 10, 1).estimate, 0);
}
END_TEST

START_TEST(sign_flips_equal_scipy)
{
    json_t *statistics = load("tests/fixtures/metrics/statistics.json");
    const json_t *cases = json_object_get(statistics, "sign_flip");
    ck_assert_uint_gt(json_array_size(cases), 0);
    for (size_t k = 0; k < json_array_size(cases); k++) {
        const json_t *entry = json_array_get(cases, k);
        const json_t *differences = json_object_get(entry, "differences");
        const json_t *clusters = json_object_get(entry, "cluster");
        size_t n = json_array_size(differences);
        double d[64];
        int32_t cluster[64], count = 0;
        ck_assert_uint_le(n, 64);
        for (size_t i = 0; i < n; i++) {
            d[i] = at(differences, i);
            cluster[i] = (int32_t)at(clusters, i);
            if (cluster[i] >= count) count = cluster[i] + 1;
        }
        double p = number(entry, "p");
        ck_assert_double_eq_tol(hw_cluster_test(d, cluster, (int64_t)n, count, 1 << count, 1), p, 1e-9);
        /* one pattern too many to count them all: drawn, so only near */
        ck_assert_double_eq_tol(hw_cluster_test(d, cluster, (int64_t)n, 40, 20000, 1), p, 0.02);
        if (count == (int32_t)n)
            ck_assert_double_eq_tol(hw_cluster_test(d, NULL, (int64_t)n, 0, 1 << count, 1), p, 1e-9);
    }
    json_decref(statistics);
}
END_TEST

START_TEST(holm_equals_numpy)
{
    json_t *statistics = load("tests/fixtures/metrics/statistics.json");
    const json_t *families = json_object_get(statistics, "holm");
    ck_assert_uint_gt(json_array_size(families), 0);
    for (size_t k = 0; k < json_array_size(families); k++) {
        const json_t *entry = json_array_get(families, k), *p = json_object_get(entry, "p");
        double adjusted[32];
        size_t n = json_array_size(p);
        ck_assert_uint_le(n, 32);
        for (size_t i = 0; i < n; i++) adjusted[i] = at(p, i);
        hw_holm(adjusted, (int)n, adjusted); /* in place */
        for (size_t i = 0; i < n; i++)
            ck_assert_double_eq_tol(adjusted[i], at(json_object_get(entry, "adjusted"), i), 1e-12);
    }
    hw_holm(NULL, 0, NULL);
    json_decref(statistics);
}
END_TEST

/* ---- further figures --------------------------------------------------------------------------------------------- */

static int64_t links_of(const json_t *list, hw_link *links)
{
    int64_t n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *link = json_array_get(list, i);
        links[n++] = (hw_link){(int32_t)at(link, 0), (int32_t)at(link, 1), json_is_true(json_array_get(link, 2))};
    }
    return n;
}

START_TEST(alignment_error_rate)
{
    json_t *statistics = load("tests/fixtures/metrics/statistics.json");
    const json_t *cases = json_object_get(statistics, "alignments");
    ck_assert_uint_gt(json_array_size(cases), 0);
    hw_tally tally;
    hw_tally_init(&tally, HW_AER_WIDTH, hw_aer_score, NULL);
    double expected[HW_AER_WIDTH] = {0}, row[HW_AER_WIDTH];
    for (size_t k = 0; k < json_array_size(cases); k++) {
        const json_t *entry = json_array_get(cases, k);
        hw_link found[64], gold[64];
        int64_t n = links_of(json_object_get(entry, "found"), found);
        int64_t m = links_of(json_object_get(entry, "gold"), gold);
        if (n > 0) found[n] = found[0], n++; /* a repeated link counts once */
        hw_aer_row(found, n, gold, m, row);
        for (size_t i = 0; i < HW_AER_WIDTH; i++) {
            ck_assert_double_eq(row[i], at(json_object_get(entry, "row"), i));
            expected[i] += row[i];
        }
        ck_assert_double_eq_tol(hw_aer_score(row, NULL), number(entry, "aer"), 1e-12);
        hw_tally_add(&tally, row);
    }
    double rate = 1 - (expected[0] + expected[1]) / (expected[2] + expected[3]);
    ck_assert_double_eq_tol(hw_tally_score(&tally), rate, 1e-12);
    hw_tally_clear(&tally);
    hw_aer_row(NULL, 0, NULL, 0, row);
    ck_assert_double_eq(hw_aer_score(row, NULL), 0);
    json_decref(statistics);
}
END_TEST

START_TEST(plain_figures)
{
    const char *hypotheses[] = {"a b", "a  b", "", "x", "a"};
    const hw_span lines[] = {{"a b", 3}, {"a b", 3}, {"", 0}, {"X", 1}, {"a\0b", 3}};
    ck_assert_double_eq(hw_exact_match(hypotheses, lines, 5), 0.4);
    ck_assert_double_eq(hw_exact_match(NULL, NULL, 0), 0);
    ck_assert_double_eq_tol(hw_perplexity(10 * log(7), 10), 7, 1e-12);
    ck_assert_double_eq(hw_perplexity(0, 0), 1);
    ck_assert_double_eq(hw_ratio_score((const double[]){3, 4}, NULL), 0.75);
    ck_assert_double_eq(hw_ratio_score((const double[]){3, 0}, NULL), 0);
}
END_TEST

Suite *test_metrics_statistics(void);
Suite *test_metrics_statistics(void)
{
    Suite *suite = suite_create("metrics_statistics");
    TCase *systems = tcase_create("systems"), *plain = tcase_create("plain");
    tcase_add_checked_fixture(systems, begin, end);
    tcase_add_loop_test(systems, a_resample_is_a_corpus, 0, 2);
    tcase_add_loop_test(systems, intervals_and_tests_agree_with_sacrebleu, 0, 2);
    tcase_add_loop_test(systems, a_system_against_itself, 0, 2);
    tcase_add_loop_test(systems, a_far_better_system, 0, 2);
    tcase_add_loop_test(systems, threads_and_seeds, 0, 2);
    suite_add_tcase(suite, systems);
    tcase_add_test(plain, p_is_what_sentences_and_resamples_can_tell);
    tcase_add_test(plain, p_goes_with_the_interval);
    tcase_add_test(plain, the_interval_of_a_mean);
    tcase_add_test(plain, sign_flips_equal_scipy);
    tcase_add_test(plain, holm_equals_numpy);
    tcase_add_test(plain, alignment_error_rate);
    tcase_add_test(plain, plain_figures);
    suite_add_tcase(suite, plain);
    return suite;
}
