/* The best continuations of a sentence's hypotheses, out of as many rows of logits.
 *
 * Hardly any token of a vocabulary comes into question: the maximum of each stretch of logits, which is taken in vectors,
 * tells whether one of them could beat the worst that is kept so far. Scores are compared in double, and a later one must be
 * strictly better, so that ties go to the better hypothesis and then to the lower id. */
#include "decode/top.h"

#include <math.h>
#include <string.h>

enum { STRETCH = 256, LANES = 16 };

double hw_log_normaliser(const hw_real *logits, int64_t n)
{
    double loss, nll; /* -log p of token 0 = normaliser - logits[0] */
    hw_kernels_get()->cross_entropy(NULL, &loss, &nll, logits, n, 0, 0, 1);
    return nll + (double)logits[0];
}

static hw_real stretch_maximum(const hw_real *x, int64_t n)
{
    hw_real most[LANES];
    for (int l = 0; l < LANES; l++) most[l] = -(hw_real)INFINITY;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];
    for (; i < n; i++) most[0] = x[i] > most[0] ? x[i] : most[0];
    for (int l = 1; l < LANES; l++) most[0] = most[l] > most[0] ? most[l] : most[0];
    return most[0];
}

static double worst(const hw_top *top)
{
    return top->count < top->room ? -INFINITY : top->items[top->count - 1].score;
}

static void insert(hw_top *top, hw_candidate c)
{
    int64_t at = top->count < top->room ? top->count++ : top->room - 1;
    for (; at > 0 && top->items[at - 1].score < c.score; at--) top->items[at] = top->items[at - 1];
    top->items[at] = c;
}

void hw_top_offer(hw_top *top, const hw_real *logits, int64_t n, double before, double normaliser, int64_t row)
{
    for (int64_t first = 0; first < n; first += STRETCH) {
        int64_t end = first + STRETCH < n ? first + STRETCH : n;
        double least = worst(top);
        if (!(before + ((double)stretch_maximum(logits + first, end - first) - normaliser) > least)) continue;
        for (int64_t i = first; i < end; i++) {
            double log_prob = (double)logits[i] - normaliser, score = before + log_prob;
            if (!(score > least)) continue;
            insert(top, (hw_candidate){score, (hw_real)log_prob, (int32_t)i, row});
            least = worst(top);
        }
    }
}
