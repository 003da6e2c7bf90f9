/* Layer 9, metrics: chrF (Popovic 2015) and chrF++ (Popovic 2017) with the edge cases of sacreBLEU.
 *
 *   chrF = 100 (1 + b^2) P R / (b^2 P + R)
 *   P = mean over orders of matches / n-grams of the hypothesis,   R = the same by those of the reference
 *
 * over character n-grams without blanks and, from chrF+ on, word n-grams, where a word gives up one punctuation mark
 * at its end or else at its beginning. An order counts in the means where both sides have n-grams of it; with
 * eps_smoothing every order counts and the F scores are averaged instead. Of several references each sentence takes
 * the one with the best score. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "metric.h"

#define EPSILON 1e-16

/* A row: for each order, characters' first, the n-grams of the hypothesis, those of the reference, the matches. */
enum { HYPOTHESIS, REFERENCE, MATCHES, FIELDS };

static double chrf_score(const double *sum, const void *all)
{
    const hw_chrf_options *options = all;
    int orders = options->char_order + options->word_order, effective = 0;
    double factor = (double)options->beta * options->beta, precisions = 0, recalls = 0, scores = 0;
    for (int i = 0; i < orders; i++, sum += FIELDS) {
        double precision = sum[HYPOTHESIS] > 0 ? sum[MATCHES] / sum[HYPOTHESIS] : EPSILON;
        double recall = sum[REFERENCE] > 0 ? sum[MATCHES] / sum[REFERENCE] : EPSILON;
        double both = factor * precision + recall;
        scores += both > 0 ? (1 + factor) * precision * recall / both : EPSILON;
        if (sum[HYPOTHESIS] > 0 && sum[REFERENCE] > 0) {
            precisions += precision;
            recalls += recall;
            effective++;
        }
    }
    if (options->eps_smoothing) return 100 * scores / orders;
    if (precisions + recalls == 0) return 0;
    precisions /= effective;
    recalls /= effective;
    return 100 * ((1 + factor) * precisions * recalls / (factor * precisions + recalls));
}

/* The characters that n-grams are made of, each raised by 1 because an n-gram's symbol is not 0. */
static hw_symbols characters(hw_metric *chrf, hw_symbols line)
{
    uint32_t *at = hw_arena_alloc(chrf->scratch, (size_t)(line.size + 1) * sizeof *at);
    int64_t size = 0;
    for (int64_t i = 0; i < line.size; i++)
        if (chrf->options.chrf.whitespace || !hw_symbol_is_space(line.at[i])) at[size++] = line.at[i] + 1;
    return (hw_symbols){at, size};
}

static bool is_punctuation(uint32_t c)
{
    return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7f);
}

static hw_words words(hw_metric *chrf, hw_symbols line)
{
    hw_words whole = hw_symbols_split(chrf->scratch, line);
    hw_words cut = {hw_arena_alloc(chrf->scratch, (size_t)(2 * whole.size + 1) * sizeof *cut.at), 0};
    for (int64_t i = 0; i < whole.size; i++) {
        hw_symbols word = whole.at[i];
        int64_t at = word.size;
        if (word.size > 1 && is_punctuation(word.at[word.size - 1])) at = word.size - 1;
        else if (word.size > 1 && is_punctuation(word.at[0])) at = 1;
        cut.at[cut.size++] = (hw_symbols){word.at, at};
        if (at < word.size) cut.at[cut.size++] = (hw_symbols){word.at + at, word.size - at};
    }
    return cut;
}

/* The fields of orders 1..order; returns the place after them. */
static double *match(hw_metric *chrf, hw_symbols hypothesis, hw_symbols reference, int order, double *row)
{
    double matches[HW_NGRAM_LIMIT];
    hw_ngram_matches(chrf->scratch, hypothesis, &reference, 1, order, matches);
    for (int n = 1; n <= order; n++, row += FIELDS) {
        row[REFERENCE] = hw_ngram_total(reference.size, n);
        row[HYPOTHESIS] = row[REFERENCE] > 0 ? hw_ngram_total(hypothesis.size, n) : 0;
        row[MATCHES] = matches[n - 1];
    }
    return row;
}

static void chrf_row(hw_metric *chrf, hw_symbols hypothesis, const hw_symbols *references, int count, double *row)
{
    const hw_chrf_options *options = &chrf->options.chrf;
    double best = -1, candidate[HW_TALLY_WIDTH];
    if (options->lowercase) hypothesis = hw_symbols_lower(chrf->scratch, hypothesis);
    for (int i = 0; i < count; i++) {
        hw_symbols reference = references[i];
        if (options->lowercase) reference = hw_symbols_lower(chrf->scratch, reference);
        hw_symbols letters = characters(chrf, hypothesis);
        double *end = match(chrf, letters, characters(chrf, reference), options->char_order, candidate);
        if (options->word_order > 0) {
            hw_words sides[2] = {words(chrf, hypothesis), words(chrf, reference)};
            hw_symbols *ranked = hw_words_rank(chrf->scratch, sides, 2);
            match(chrf, ranked[0], ranked[1], options->word_order, end);
        }
        double score = chrf_score(candidate, options);
        if (score <= best) continue;
        best = score;
        memcpy(row, candidate, (size_t)chrf->tally.width * sizeof *row);
    }
}

static void chrf_describe(const hw_metric *chrf, char *out, size_t size)
{
    const hw_chrf_options *options = &chrf->options.chrf;
    snprintf(out, size, "case:%s|eff:%s|nc:%d|nw:%d|space:%s", options->lowercase ? "lc" : "mixed",
             options->eps_smoothing ? "no" : "yes", options->char_order, options->word_order,
             options->whitespace ? "yes" : "no");
}

static const hw_metric_kind chrf_kind = {chrf_row, chrf_describe, chrf_score};

hw_metric *hw_chrf_new(const hw_chrf_options *options, hw_error *err)
{
    hw_chrf_options complete = options ? *options : (hw_chrf_options){0};
    if (complete.char_order == 0) complete.char_order = 6;
    if (complete.beta == 0) complete.beta = 2;
    const struct {
        const char *what;
        int value, low, high;
    } bounds[] = {{"character order", complete.char_order, 1, HW_NGRAM_LIMIT},
                  {"word order", complete.word_order, 0, 2},
                  {"beta", complete.beta, 1, 9}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].value < bounds[i].low || bounds[i].value > bounds[i].high) {
            hw_fail(err, "a %s of %d for chrF: it must be %d to %d", bounds[i].what, bounds[i].value, bounds[i].low,
                    bounds[i].high);
            return NULL;
        }

    hw_metric *chrf = hw_metric_new(&chrf_kind, FIELDS * (complete.char_order + complete.word_order));
    snprintf(chrf->name, sizeof chrf->name, "chrF%d%.*s", complete.beta, complete.word_order, "++");
    chrf->options.chrf = complete;
    return chrf;
}
