/* Layer 9, metrics: BLEU (Papineni et al. 2002) with the tokenizers, smoothing and edge cases of sacreBLEU (Post
 * 2018).
 *
 *   BLEU = BP exp(1/N sum_n log p_n),   p_n = 100 matches_n / n-grams_n,   BP = exp(1 - r/c) where c < r, else 1
 *
 * c is the hypotheses' length in tokens, r that of the reference nearest to each in length (the shorter of two). A p_n
 * of 0 is smoothed (methods of Chen and Cherry 2014): exp takes 1/2, 1/4, ... of a match for each further such order,
 * floor takes smooth_value of a match, add-k adds smooth_value to both counts from bigrams up. Nothing matching at all
 * gives 0. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "metric.h"

/* A row: c, r, then matches and n-grams by order. */
enum { SYS_LEN, REF_LEN, MATCHES, TOTALS = MATCHES + HW_BLEU_ORDER, WIDTH = TOTALS + HW_BLEU_ORDER };

static const struct {
    const char *name;
    double value; /* its default; 0: the method has none */
} smoothings[] = {{"exp", 0}, {"floor", 0.1}, {"add-k", 1}, {"none", 0}};

static double nearest_length(double length, const hw_symbols *references, int count)
{
    double best = (double)references[0].size;
    for (int i = 1; i < count; i++) {
        double size = (double)references[i].size, closer = fabs(best - length) - fabs(size - length);
        if (closer > 0 || (closer == 0 && size < best)) best = size;
    }
    return best;
}

static hw_words tokens(hw_metric *bleu, hw_symbols line)
{
    if (bleu->options.bleu.lowercase) line = hw_symbols_lower(bleu->scratch, line);
    line = bleu->cut->apply(bleu->scratch, hw_symbols_strip(line));
    return hw_symbols_split(bleu->scratch, line);
}

static void bleu_row(hw_metric *bleu, hw_symbols hypothesis, const hw_symbols *references, int count, double *row)
{
    hw_words *words = hw_arena_alloc(bleu->scratch, (size_t)(count + 1) * sizeof *words);
    words[0] = tokens(bleu, hypothesis);
    for (int i = 0; i < count; i++) words[i + 1] = tokens(bleu, references[i]);
    hw_symbols *ranked = hw_words_rank(bleu->scratch, words, count + 1);
    row[SYS_LEN] = (double)ranked[0].size;
    row[REF_LEN] = nearest_length(row[SYS_LEN], ranked + 1, count);
    hw_ngram_matches(bleu->scratch, ranked[0], ranked + 1, count, HW_BLEU_ORDER, row + MATCHES);
    for (int n = 1; n <= HW_BLEU_ORDER; n++) row[TOTALS + n - 1] = hw_ngram_total(ranked[0].size, n);
}

/* Fills in the precisions, smoothed; returns how many orders the mean is over. */
static int smooth(hw_bleu_result *result, const hw_bleu_options *options)
{
    bool exponential = !strcmp(options->smooth, "exp"), floor = !strcmp(options->smooth, "floor");
    double k = !strcmp(options->smooth, "add-k") ? options->smooth_value : 0, halves = 1;
    int orders = HW_BLEU_ORDER;
    for (int n = 0; n < HW_BLEU_ORDER; n++) {
        double *match = &result->counts[n], *total = &result->totals[n], *precision = &result->precisions[n];
        if (n > 0) *match += k, *total += k;
        if (*total == 0) break;
        if (options->effective_order) orders = n + 1;
        if (*match > 0) *precision = 100 * *match / *total;
        else if (exponential) *precision = 100 / ((halves *= 2) * *total);
        else if (floor) *precision = 100 * options->smooth_value / *total;
    }
    return orders;
}

static hw_bleu_result bleu_result(const double *sum, const hw_bleu_options *options)
{
    hw_bleu_result result = {.bp = 1, .sys_len = (int64_t)sum[SYS_LEN], .ref_len = (int64_t)sum[REF_LEN]};
    memcpy(result.counts, sum + MATCHES, sizeof result.counts);
    memcpy(result.totals, sum + TOTALS, sizeof result.totals);
    if (sum[SYS_LEN] < sum[REF_LEN]) result.bp = sum[SYS_LEN] > 0 ? exp(1 - sum[REF_LEN] / sum[SYS_LEN]) : 0;
    if (sum[MATCHES] == 0) return result; /* no word matches, so nothing longer does */

    double logs = 0;
    int orders = smooth(&result, options);
    for (int n = 0; n < orders; n++) logs += result.precisions[n] > 0 ? log(result.precisions[n]) : -9999999999.0;
    result.score = result.bp * exp(logs / orders);
    return result;
}

static double bleu_score(const double *sum, const void *options)
{
    return bleu_result(sum, options).score;
}

static void bleu_describe(const hw_metric *bleu, char *out, size_t size)
{
    const hw_bleu_options *options = &bleu->options.bleu;
    int n = snprintf(out, size, "case:%s|eff:%s|tok:%s|smooth:%s", options->lowercase ? "lc" : "mixed",
                     options->effective_order ? "yes" : "no", options->tokenizer, options->smooth);
    if (options->smooth_value > 0) snprintf(out + n, size - (size_t)n, "[%.2f]", options->smooth_value);
}

static const hw_metric_kind bleu_kind = {bleu_row, bleu_describe, bleu_score};

/* The method's own spelling and its value go into the options. */
static bool resolve_smoothing(hw_bleu_options *options, hw_error *err)
{
    const char *name = options->smooth ? options->smooth : "exp";
    if (!(options->smooth_value >= 0) || isinf(options->smooth_value))
        return hw_fail(err, "a smoothing value of %g for BLEU: it must be above 0", options->smooth_value);
    for (size_t i = 0; i < sizeof smoothings / sizeof *smoothings; i++) {
        if (strcmp(smoothings[i].name, name)) continue;
        options->smooth = smoothings[i].name;
        if (options->smooth_value == 0 || smoothings[i].value == 0) options->smooth_value = smoothings[i].value;
        return true;
    }
    return hw_fail(err, "there is no smoothing \"%s\" for BLEU: choose exp, floor, add-k or none", name);
}

hw_metric *hw_bleu_new(const hw_bleu_options *options, hw_error *err)
{
    hw_bleu_options complete = options ? *options : (hw_bleu_options){0};
    if (!resolve_smoothing(&complete, err)) return NULL;
    const hw_cut *cut = hw_cut_find(complete.tokenizer ? complete.tokenizer : "13a", err);
    if (!cut) return NULL;
    complete.tokenizer = cut->name;

    hw_metric *bleu = hw_metric_new(&bleu_kind, WIDTH);
    snprintf(bleu->name, sizeof bleu->name, "BLEU");
    bleu->cut = cut;
    bleu->options.bleu = complete;
    return bleu;
}

hw_bleu_result hw_bleu_details(const hw_metric *bleu)
{
    HW_CHECK(bleu->kind == &bleu_kind, "the details of BLEU asked of %s", bleu->name);
    double sum[HW_TALLY_WIDTH];
    hw_tally_sum(&bleu->tally, sum);
    return bleu_result(sum, &bleu->options.bleu);
}
