/* Validation: the held-out set scored by teacher forcing and translated by greedy search. */
#ifndef HW_TRAIN_VALIDATE_H
#define HW_TRAIN_VALIDATE_H

#include <headwise/bundle.h>

typedef struct hw_validator hw_validator;

typedef struct hw_validation {
    double loss, perplexity; /* a target token, </s> included: label-smoothed; unsmoothed */
    double token_accuracy, exact_match; /* 0 to 1 */
    double bleu, chrf;       /* 0 to 100 */
    char bleu_signature[256], chrf_signature[256];
    const char
        *samples; /* three sentences with reference and translation, for the eye; valid until the next validation */
} hw_validation;

/* The configuration's validation set for this bundle, whose network may go on training. Both outlive the validator. */
hw_validator *hw_validator_new(const hw_bundle *bundle, hw_error *err);
void hw_validator_free(hw_validator *v);
/* Pairs of the set that are too long to be fed (hw_longest_source), and count by their translations alone. */
const hw_too_long *hw_validator_too_long(const hw_validator *v);
/* Of all that the figures depend on: ids, texts and, where heads are tracked, gold. */
uint64_t hw_validator_fingerprint(const hw_validator *v);
bool hw_validate(hw_validator *v, hw_validation *out, hw_error *err);

/* training.metric's value, and whether a is better than b. A value that is not finite is never better than one that is.
 */
double hw_validation_metric(const hw_validation *v, int metric);
bool hw_metric_better(int metric, double a, double b);
/* Is this validation better than one with this value of the metric and this loss? Of equal values the lower loss is. */
bool hw_validation_better(const hw_validation *v, int metric, double best, double best_loss);

#endif
