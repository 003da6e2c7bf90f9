/* Layer 9, metrics: the statistics of sentences, one row each, whose sum gives a corpus figure.
 *
 * Rows are kept, not only their sum, because resampling (resample.c) sums them again in other mixtures. They are
 * doubles, so that counts, losses and accuracies are one thing; sums of counts are exact up to 2^53. Score functions
 * stand with their metrics; the plain ratio, which many share, stands here. */
#include <stdlib.h>
#include <string.h>

#include <headwise/metrics.h>

void hw_tally_init(hw_tally *tally, int width, hw_score_function score, const void *options)
{
    HW_CHECK(width > 0 && width <= HW_TALLY_WIDTH, "a tally of width %d: it must be 1 to %d", width, HW_TALLY_WIDTH);
    *tally = (hw_tally){.width = width, .score = score, .options = options};
}

void hw_tally_clear(hw_tally *tally)
{
    free(tally->rows);
    tally->rows = NULL;
    tally->count = tally->capacity = 0;
}

void hw_tally_add(hw_tally *tally, const double *row)
{
    size_t bytes = (size_t)tally->width * sizeof *row;
    if (tally->count == tally->capacity) {
        tally->capacity = tally->capacity ? 2 * tally->capacity : 64;
        tally->rows = realloc(tally->rows, (size_t)tally->capacity * bytes);
        HW_CHECK(tally->rows, "no memory for the statistics of %lld sentences", (long long)tally->capacity);
    }
    memcpy(tally->rows + tally->count++ * tally->width, row, bytes);
}

void hw_tally_sum(const hw_tally *tally, double *sum)
{
    memset(sum, 0, (size_t)tally->width * sizeof *sum);
    for (int64_t i = 0; i < tally->count; i++)
        for (int k = 0; k < tally->width; k++) sum[k] += tally->rows[i * tally->width + k];
}

double hw_tally_score(const hw_tally *tally)
{
    double sum[HW_TALLY_WIDTH];
    hw_tally_sum(tally, sum);
    return tally->score(sum, tally->options);
}

double hw_ratio_score(const double *sum, const void *unused)
{
    (void)unused;
    return sum[1] != 0 ? sum[0] / sum[1] : 0;
}
