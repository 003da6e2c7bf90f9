/* The cached states of one batch in several networks, which take every step together. */
#ifndef HW_DECODE_ENSEMBLE_H
#define HW_DECODE_ENSEMBLE_H

#include "decode/state.h"

typedef struct hw_ensemble {
    int count;              /* networks */
    hw_state *states;       /* [count] with the same rows */
    hw_recorder *recorders; /* [count]; NULL: attention is not wanted */
    hw_tensor **decoded;    /* [count] of the last step */
    hw_real **logits;       /* [count] of a block of rows */
} hw_ensemble;

/* Memory comes from the first network's batch arena. The calling thread's workers of all runners are taken; sources and
 * most as hw_state_begin has it. */
void hw_ensemble_begin(hw_ensemble *e, int count, hw_runner *const *runners, int64_t sentences, const hw_ids *sources,
                       int64_t most, bool attention);
void hw_ensemble_step(hw_ensemble *e);
void hw_ensemble_continue(hw_ensemble *e, const hw_state_row *rows, int64_t count);

/* The first network's: its rows and sources are those of all. */
static inline const hw_state *hw_ensemble_state(const hw_ensemble *e) { return &e->states[0]; }

/* Logits of rows first .. first + rows - 1 in every network; they live between the two calls. */
void hw_ensemble_begin_logits(hw_ensemble *e, int64_t first, int64_t rows, hw_arena_mark marks[]);
void hw_ensemble_end_logits(hw_ensemble *e, const hw_arena_mark marks[]);
/* The means over the networks of logits [V] and normaliser of the block's row r: their difference is the mean of
 * log-probabilities. maxima [hw_stretches(V)] become those of the logits. Not finite where a logit is not; 0 with
 * `plain`, where only the order of tokens counts. */
hw_real *hw_ensemble_row(hw_ensemble *e, int64_t r, hw_real *maxima, bool plain, double *normaliser);

/* Adds to sums[row x stride + i] what row attended to the i-th token of its source in the last step: the mean over the
 * heads of the last layer's cross-attention and over the networks. */
void hw_ensemble_attention(const hw_ensemble *e, double *sums, int64_t stride);

#endif
