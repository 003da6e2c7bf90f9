/* A token drawn by its probability. */
#ifndef HW_DECODE_SAMPLE_H
#define HW_DECODE_SAMPLE_H

#include "decode/top.h"

#include <headwise/config.h>

/* The token that the number 0 <= u < 1 stands for, by logits over the temperature, out of the top_k likeliest and of
 * those the fewest that have the probability top_p together; at least one always stays. -1: no logit is more than -inf.
 * No logit of a stretch is larger than its maximum. Scratch memory comes from the arena. */
int32_t hw_draw(const hw_decoding *o, const hw_real *logits, int64_t n, const hw_real *maxima, double u,
                hw_arena *arena);

#endif
