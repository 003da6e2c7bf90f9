/* The best continuations of a sentence's hypotheses. */
#ifndef HW_DECODE_TOP_H
#define HW_DECODE_TOP_H

#include <headwise/tensor.h>

/* A hypothesis and the token that would come next. */
typedef struct hw_candidate {
    double score;     /* log-probability of the hypothesis with this token */
    hw_real log_prob; /* of the token */
    int32_t id;
    int64_t row; /* of the hypothesis */
} hw_candidate;

/* The best of what was offered, in order; what came first goes first among equals. */
typedef struct hw_top {
    int64_t count, room;
    hw_candidate *items; /* [room] */
} hw_top;

static inline int64_t hw_stretches(int64_t n) { return (n + HW_STRETCH - 1) / HW_STRETCH; }

/* The log of the sum of exp(logits), from the maxima of their stretches [hw_stretches(n)] as the kernel gives them. Not
 * finite where the logits are not. */
double hw_row_normaliser(const hw_real *logits, int64_t n, const hw_real *maxima);

/* Offers every token i of 0..n-1 with the score before + logits[i] - normaliser. Tokens of logit -inf or NaN are none.
 * No logit of a stretch is larger than its maximum. */
void hw_top_offer(hw_top *top, const hw_real *logits, int64_t n, const hw_real *maxima, double before,
                  double normaliser, int64_t row);

#endif
