/* What may not come next in a hypothesis. */
#ifndef HW_DECODE_CONSTRAINTS_H
#define HW_DECODE_CONSTRAINTS_H

#include <headwise/text.h>
#include <headwise/tensor.h>

typedef struct hw_constraints {
    int64_t length;      /* tokens of the hypothesis so far */
    int64_t least, most; /* tokens of a translation */
    int32_t forced;      /* the token that the prefix has here; -1: none */
    int64_t no_repeat;   /* no run of so many tokens twice; 0: any may be */
    const int32_t *ids;  /* [length] the tokens so far, read only with no_repeat */
} hw_constraints;

/* Gives what may not come next the logit -inf: everything but the forced token; from the maximum length on everything
 * but </s>; else <s>, </s> up to the minimum length, and what would repeat a run. Where nothing would be left, </s>
 * may come at any length. Maxima of stretches stay upper bounds. */
void hw_constrain(const hw_constraints *c, hw_real *logits, int64_t n);

#endif
