/* The best continuations of a sentence's hypotheses, out of as many rows of logits.
 *
 * Hardly any token of a vocabulary comes into question: the maximum of each stretch of logits, which is taken in
 * vectors, tells whether one of them could beat the worst that is kept so far. Scores are compared in double, and a
 * later one must be strictly better, so that ties go to the better hypothesis and then to the lower id. */
#include "decode/top.h"

#include <math.h>
#include <string.h>

double hw_row_normaliser(const hw_real *logits, int64_t n, const hw_real *maxima)
{
    hw_real top = maxima[0];
    for (int64_t i = 1; i < hw_stretches(n); i++) top = maxima[i] > top ? maxima[i] : top;
    return hw_kernels_get()->log_sum_exp(logits, n, top);
}

static double worst(const hw_top *top) { return top->count < top->room ? -INFINITY : top->items[top->count - 1].score; }

static void insert(hw_top *top, hw_candidate c)
{
    int64_t at = top->count < top->room ? top->count++ : top->room - 1;
    for (; at > 0 && top->items[at - 1].score < c.score; at--) top->items[at] = top->items[at - 1];
    top->items[at] = c;
}

void hw_top_offer(hw_top *top, const hw_real *logits, int64_t n, const hw_real *maxima, double before,
                  double normaliser, int64_t row)
{
    for (int64_t first = 0; first < n; first += HW_STRETCH, maxima++) {
        int64_t end = first + HW_STRETCH < n ? first + HW_STRETCH : n;
        double least = worst(top);
        if (!(before + ((double)*maxima - normaliser) > least)) continue;
        for (int64_t i = first; i < end; i++) {
            double log_prob = (double)logits[i] - normaliser, score = before + log_prob;
            if (!(score > least)) continue;
            insert(top, (hw_candidate){score, (hw_real)log_prob, (int32_t)i, row});
            least = worst(top);
        }
    }
}
