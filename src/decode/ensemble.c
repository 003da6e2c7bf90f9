/* Several networks that decode one batch together.
 *
 * The log-probability of a token is the mean of what the networks give it (a log-linear ensemble: probabilities'
 * geometric mean, not normalised again), so that `score` with each network, averaged, gives the ensemble's figure. One
 * network is an ensemble of one, to the bit; so are several that are the same. */
#include "decode/ensemble.h"
#include "decode/top.h"

#include <math.h>

void hw_ensemble_begin(hw_ensemble *e, int count, hw_runner *const *runners, int64_t sentences, const hw_ids *sources,
                       int64_t most, bool attention)
{
    hw_worker *worker = hw_runner_worker(runners[0]);
    hw_arena *arena = worker->batch;
    *e = (hw_ensemble){.count = count};
    e->states = hw_arena_alloc(arena, (size_t)count * sizeof *e->states);
    e->decoded = hw_arena_alloc(arena, (size_t)count * sizeof *e->decoded);
    e->logits = hw_arena_alloc(arena, (size_t)count * sizeof *e->logits);
    if (attention) e->recorders = hw_arena_alloc(arena, (size_t)count * sizeof *e->recorders);
    for (int k = 0; k < count; k++) {
        if (k) worker = hw_runner_worker(runners[k]);
        hw_state_begin(&e->states[k], runners[k], worker, sentences, sources, most);
        if (!attention) continue;
        hw_recorded *entries = hw_arena_calloc(arena, (size_t)e->states[k].network->attentions, sizeof *entries);
        e->recorders[k] = (hw_recorder){.weights = true, .entries = entries};
        e->states[k].recorder = &e->recorders[k];
    }
}

void hw_ensemble_step(hw_ensemble *e)
{
    for (int k = 0; k < e->count; k++) e->decoded[k] = hw_state_step(&e->states[k]);
}

void hw_ensemble_continue(hw_ensemble *e, const hw_state_row *rows, int64_t count)
{
    for (int k = 0; k < e->count; k++) hw_state_continue(&e->states[k], rows, count);
}

/* ---- logits ------------------------------------------------------------------------------------------------------ */

void hw_ensemble_begin_logits(hw_ensemble *e, int64_t first, int64_t rows, hw_arena_mark marks[])
{
    for (int k = 0; k < e->count; k++) {
        hw_tape *tape = e->states[k].worker->tape;
        marks[k] = hw_arena_begin(hw_tape_arena(tape));
        hw_tensor part = *e->decoded[k];
        part.data += first * hw_tensor_cols(&part);
        part.shape[0] = rows;
        e->logits[k] = hw_logits(&(hw_pass){.tape = tape}, e->states[k].network, &part)->data;
    }
}

void hw_ensemble_end_logits(hw_ensemble *e, const hw_arena_mark marks[])
{
    for (int k = 0; k < e->count; k++) hw_arena_end(hw_tape_arena(e->states[k].worker->tape), marks[k]);
}

/* 0, or NaN where not all logits are finite, so that then, too, nothing is found. */
static double plain_normaliser(const hw_real *logits, int64_t n)
{
    return isfinite(hw_kernels_get()->sum(logits, n)) ? 0 : (double)NAN;
}

/* The mean is the first's and the mean of how far the others are from it, which is exact where they are the same. */
hw_real *hw_ensemble_row(hw_ensemble *e, int64_t r, hw_real *maxima, bool plain, double *normaliser)
{
    int64_t n = e->states[0].network->options.target_vocabulary;
    hw_real *row = e->logits[0] + r * n;
    double first = 0, apart = 0;
    for (int k = 0; k < e->count; k++) {
        const hw_real *logits = e->logits[k] + r * n;
        hw_kernels_get()->maxima(maxima, logits, n);
        double own = plain ? plain_normaliser(logits, n) : hw_row_normaliser(logits, n, maxima);
        if (k)
            apart += own - first;
        else
            first = own;
    }
    *normaliser = first + apart / e->count;
    if (e->count == 1) return row;
    for (int64_t i = 0; i < n; i++) {
        apart = 0;
        for (int k = 1; k < e->count; k++) apart += (double)e->logits[k][r * n + i] - (double)row[i];
        row[i] = (hw_real)((double)row[i] + apart / e->count);
    }
    hw_kernels_get()->maxima(maxima, row, n);
    return row;
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

void hw_ensemble_attention(const hw_ensemble *e, double *sums, int64_t stride)
{
    for (int k = 0; k < e->count; k++) {
        const hw_recorded *last = &e->recorders[k].entries[e->states[k].network->attentions - 1];
        const hw_attention_layer *layer =
            hw_transformer_attention(e->states[k].network, e->states[k].network->attentions - 1);
        const hw_real *weights = last->weights->data;
        double share = 1.0 / (double)(layer->heads * e->count);
        for (int64_t row = 0; row < last->keys.count; row++)
            for (int64_t h = 0; h < layer->heads; h++)
                for (int64_t i = 0; i < last->keys.length[row]; i++)
                    sums[row * stride + i] += share * (double)*weights++;
    }
}
