/* Layer 9, metrics: how good a translation or an alignment is, and how sure that is.
 *
 * A corpus figure here is a function of sums over sentences: each sentence gives a row of statistics (hw_tally), the
 * rows are added up, and a score function makes the figure of the sum. So the figure of any resample of the sentences
 * costs only additions, and one bootstrap and one paired test serve every metric. BLEU and chrF equal sacreBLEU's
 * figures to the last printed digit and carry the same signature. */
#ifndef HEADWISE_METRICS_H
#define HEADWISE_METRICS_H

#include <headwise/text.h>

/* ---- sentence statistics ----------------------------------------------------------------------------------------- */

#define HW_TALLY_WIDTH 32 /* the most statistics that a sentence may have */

typedef double (*hw_score_function)(const double *sum, const void *options);

typedef struct hw_tally {
    int width;               /* statistics a sentence */
    int64_t count, capacity; /* sentences, and room for */
    double *rows;            /* [count][width] */
    hw_score_function score; /* the figure of summed rows */
    const void *options;     /* handed to score */
} hw_tally;

void hw_tally_init(hw_tally *tally, int width, hw_score_function score, const void *options);
void hw_tally_clear(hw_tally *tally);
void hw_tally_add(hw_tally *tally, const double *row);
void hw_tally_sum(const hw_tally *tally, double *sum); /* sum [width] */
double hw_tally_score(const hw_tally *tally);          /* of the whole corpus */

/* sum[0] / sum[1], and 0 where sum[1] is 0: means, accuracies, losses a token. For tallies of width 2. */
double hw_ratio_score(const double *sum, const void *unused);

/* ---- BLEU and chrF ----------------------------------------------------------------------------------------------- */

/* A line of text: UTF-8, not ended by a 0 byte. A malformed byte counts as a character of its own. */
typedef struct hw_span {
    const char *text;
    size_t size;
} hw_span;
hw_span hw_span_of(const char *text); /* up to its 0 byte; NULL stays NULL */
/* The i-th line as a reader would write it (hw_tokenizer_detokenize): what hypotheses are held against. In the arena. */
hw_span hw_reference_of(const hw_lines *lines, int64_t i, const hw_tokenizer *tokenizer, hw_arena *arena);

#define HW_BLEU_ORDER 4

/* All zero: sacreBLEU's defaults. */
typedef struct hw_bleu_options {
    const char *tokenizer;  /* "13a" (where NULL), "intl", "char", "none" */
    const char *smooth;     /* "exp" (where NULL), "floor", "add-k", "none" */
    double smooth_value;    /* of floor and add-k; 0: their defaults, 0.1 and 1 */
    bool lowercase;
    bool effective_order;   /* leave out the orders for which the hypothesis is too short; for single sentences */
} hw_bleu_options;

/* All zero: sacreBLEU's defaults. word_order 1 is chrF+, 2 is chrF++. */
typedef struct hw_chrf_options {
    int char_order;         /* 1 to 8; 0: 6 */
    int word_order;         /* 0 to 2 */
    int beta;               /* how much more recall weighs than precision, 1 to 9; 0: 2 */
    bool lowercase;
    bool whitespace;        /* blanks are characters too */
    bool eps_smoothing;     /* a tiny epsilon in place of the effective order, as chrF++.py, NLTK and Moses have it */
} hw_chrf_options;

/* One metric over one system's output. Serves one thread; the caller frees it. */
typedef struct hw_metric hw_metric;
hw_metric *hw_bleu_new(const hw_bleu_options *options, hw_error *err); /* options may be NULL; errors: unknown names */
hw_metric *hw_chrf_new(const hw_chrf_options *options, hw_error *err); /* options may be NULL; errors: orders, beta */
void hw_metric_free(hw_metric *metric);                                /* NULL is fine */

/* One sentence more. A reference whose text is NULL is left out; at least one must be there. */
void hw_metric_add(hw_metric *metric, hw_span hypothesis, const hw_span *references, int count);
/* count sentences more, each with one reference. */
void hw_metric_add_lines(hw_metric *metric, const char *const *hypotheses, const hw_span *references, int64_t count);

double hw_metric_score(const hw_metric *metric);                     /* of the corpus, 0 to 100 */
double hw_metric_sentence(const hw_metric *metric, int64_t i);       /* of sentence i alone */
const hw_tally *hw_metric_tally(const hw_metric *metric);
const char *hw_metric_name(const hw_metric *metric);                 /* "BLEU", "chrF2", "chrF2++" */

/* How often was drawn, for the signature; 0: not at all. */
typedef struct hw_resampling {
    int bootstrap, randomization;
    uint64_t seed;
} hw_resampling;

/* "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:headwise-0.1.0" into out. resampling may be NULL. */
void hw_metric_signature(const hw_metric *metric, const hw_resampling *resampling, char *out, size_t size);

typedef struct hw_bleu_result {
    double score;
    double counts[HW_BLEU_ORDER];     /* n-grams that match; after add-k */
    double totals[HW_BLEU_ORDER];     /* n-grams of the hypotheses; after add-k */
    double precisions[HW_BLEU_ORDER]; /* smoothed, in percent */
    double bp;                        /* brevity penalty */
    int64_t sys_len, ref_len;         /* tokens */
} hw_bleu_result;
hw_bleu_result hw_bleu_details(const hw_metric *bleu);

/* ---- how sure a figure is ---------------------------------------------------------------------------------------- */

/* The 95 % interval of a corpus figure by bootstrap resampling of its sentences (Efron; Koehn 2004 for BLEU). The
 * bounds are the order statistics trials / 40 from either end. The same seed draws the same sentences for every tally
 * of the same count, and the result does not depend on the number of threads. */
typedef struct hw_interval {
    double estimate;    /* the figure itself */
    double mean;        /* of the resamples */
    double low, high;
    double half_width;  /* (high - low) / 2 */
} hw_interval;
hw_interval hw_bootstrap_interval(const hw_tally *tally, int trials, uint64_t seed);

int hw_ascending(const void *a, const void *b); /* qsort's order of doubles, for medians and percentiles */

/* The same for the mean of count numbers. */
hw_interval hw_mean_interval(const double *values, int64_t count, int trials, uint64_t seed);

/* Are two systems' figures on the same sentences different? Two-sided p-values, (c + 1) / (trials + 1) with c the
 * trials at least as extreme as the difference seen, so that a system compared with itself gives 1. Bootstrap: Koehn
 * 2004, the resampled |difference| shifted by its mean, as Moses and sacreBLEU do it. Randomization: Riezler and
 * Maxwell 2005, the two outputs of each sentence swapped at random. */
double hw_paired_bootstrap(const hw_tally *baseline, const hw_tally *system, int trials, uint64_t seed);
double hw_paired_randomization(const hw_tally *baseline, const hw_tally *system, int trials, uint64_t seed);

/* By how much a system's figure exceeds the baseline's on the same sentences, with the 95 % interval of the difference
 * by bootstrap and a two-sided p from the same resamples: twice the share of them on the other side of 0. Neither tells
 * more than the sentences can: were the signs of the k sentences that differ drawn anew, all would agree in 2 of 2^k
 * cases, so p is at least 2^(1 - k), and where that is above 0.05 the interval is widened to 0. So p is at most 0.05
 * exactly where the interval leaves out 0. NaN for interval and p of fewer than two sentences, and for all of none. */
typedef struct hw_difference {
    double value, low, high, p;
    bool p_is_bound; /* p is below that: no resample was on the other side, and 2 / trials is the least they can tell */
} hw_difference;
hw_difference hw_paired_difference(const hw_tally *baseline, const hw_tally *system, int trials, uint64_t seed);

/* Figures of several runs (seeds), two at least: their mean, and by how much that of b exceeds that of a, with 95 %
 * interval and p by Student's t; paired: run i of both belongs together (a_count = b_count), else Welch's test. NaN for
 * interval and p where runs are too few, do not spread, or a figure is not finite; 0, 0 and 1 where all are 0. */
hw_difference hw_runs_mean(const double *x, int count);
hw_difference hw_runs_difference(const double *a, int a_count, const double *b, int b_count, bool paired);
/* How likely |t| or more is with so many degrees of freedom; and the |t| that is as likely as p. */
double hw_student_p(double t, double freedom);
double hw_student_bound(double freedom, double p);

/* Two-sided sign-flip test that paired differences have mean 0, where those of one cluster (sentence) keep or change
 * their sign together. cluster[i] is in 0..clusters-1; NULL: each difference is a cluster of its own, and clusters is
 * not read. Where 2^clusters is at most trials every pattern of signs is counted once and p is exact; otherwise (c +
 * 1) / (trials + 1). */
double hw_cluster_test(const double *differences, const int32_t *cluster, int64_t count, int64_t clusters, int trials,
                       uint64_t seed);

/* Holm 1979: adjusted p-values of count tests, so that comparing each with alpha keeps the family's error at alpha. p
 * and adjusted may be the same array. */
void hw_holm(const double *p, int count, double *adjusted);

/* Spearman's rank correlation, -1 to 1, equal values sharing the mean of their ranks; NaN where all of x or all of y
 * are equal. */
double hw_rank_correlation(const double *x, const double *y, int count);

/* ---- further figures --------------------------------------------------------------------------------------------- */

/* The share of lines that equal their reference byte for byte, 0 to 1; 0 for no lines. */
double hw_exact_match(const char *const *hypotheses, const hw_span *references, int64_t count);

/* exp of the mean negative log-likelihood (natural log) a token; 1 for no tokens. */
double hw_perplexity(double negative_log_likelihood, int64_t tokens);

/* Alignment error rate (Och and Ney 2003) of links A against sure S and possible P, S within P:
 *   AER = 1 - (|A & S| + |A & P|) / (|A| + |S|),  and 0 where neither A nor S has a link.
 * The row is |A & S|, |A & P|, |A|, |S| of one sentence, for a tally of HW_AER_WIDTH scored by hw_aer_score. The links
 * found are sorted here, and repeated ones count once; gold comes ordered and without repeats, as hw_alignments has
 * it. */
#define HW_AER_WIDTH 4
void hw_aer_row(hw_link *found, int64_t found_count, const hw_link *gold, int64_t gold_count, double row[HW_AER_WIDTH]);
double hw_aer_score(const double *sum, const void *unused);

#endif
