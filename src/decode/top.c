/* The best continuations of a sentence's hypotheses, out of as many rows of logits.
 *
 * Hardly any token of a vocabulary comes into question: the maximum of each stretch of logits, which is taken in
 * vectors, tells whether one of them could beat the worst that is kept so far. Scores are compared in double, and a
 * later one must be strictly better, so that ties go to the better hypothesis and then to the lower id. */
#include "decode/top.h"

#include <float.h>
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

/* A logit that is not above this cannot reach a score above `least`, whatever is lost in rounding. */
static hw_real threshold(double least, double before, double normaliser)
{
    const double unit = sizeof(hw_real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
    if (least == -INFINITY) return -(hw_real)INFINITY;
    return (hw_real)(least - before + normaliser - 4 * unit * (fabs(least) + fabs(before) + fabs(normaliser)));
}

void hw_top_offer(hw_top *top, const hw_real *logits, int64_t n, const hw_real *maxima, double before,
                  double normaliser, int64_t row)
{
    const hw_kernels *kernels = hw_kernels_get();
    double least = worst(top);
    hw_real above = threshold(least, before, normaliser);
    for (int64_t first = 0; first < n; first += HW_STRETCH, maxima++) {
        int64_t end = first + HW_STRETCH < n ? first + HW_STRETCH : n, i = first;
        if (!(*maxima > above)) continue;
        for (; (i += kernels->next_above(logits + i, end - i, above)) < end; i++) {
            double log_prob = (double)logits[i] - normaliser, score = before + log_prob;
            if (!(score > least)) continue;
            insert(top, (hw_candidate){score, (hw_real)log_prob, (int32_t)i, row});
            least = worst(top);
            above = threshold(least, before, normaliser);
        }
    }
}
