/* Layer 11, train: schedules, the optimizer, shards, checkpoints, and the loop.
 *
 * A step cuts its batch into a fixed number of shards; each runs forward and backward on one core, in micro-batches,
 * into gradients of its own; these are summed pairwise in a fixed order. The cuts come from batch and configuration
 * alone, so the bits of a trained network do not depend on how many threads there are. */
#ifndef HEADWISE_TRAIN_H
#define HEADWISE_TRAIN_H

#include <headwise/bundle.h>
#include <headwise/config.h>
#include <headwise/model.h>
#include <headwise/text.h>

/* The learning rate of a step, from 1 (training.schedule): all rise linearly over warmup_steps, and then
 *   constant      stay
 *   inverse_sqrt  fall with 1 / sqrt(step)
 *   noam          rate x width^-1/2 min(step^-1/2, step warmup^-3/2)       (Vaswani et al. 2017, equation 3)
 *   linear        fall linearly to 0 behind max_steps
 *   cosine        fall to 0 behind max_steps on half a cosine              (Loshchilov and Hutter 2017) */
double hw_learning_rate(const hw_config *config, int64_t step);

/* How strong a term or rate of the schedules constant, rise, fall, v (HW_STRENGTH_...) is at a step, 0 to 1: the same;
 * rising in a line to 1 at max_steps; falling from 1 to 0 there; falling to 0 at warmup_steps and rising to 1 at
 * max_steps (Zhou et al. 2020, section 3.2). */
double hw_strength(const hw_config *config, int schedule, int64_t step);

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* A network in training: replicas for the shards, moments of Adam, averages of the weights (training.ema,
 * training.average). */
typedef struct hw_trainer hw_trainer;

/* The network (without gradients) and the configuration outlive the trainer, which the caller frees. */
hw_trainer *hw_trainer_new(hw_transformer *model, const hw_config *config);
void hw_trainer_free(hw_trainer *t);

typedef struct hw_step_result {
    hw_loss_count count;  /* sums over the batch's target tokens */
    double gradient_norm; /* before clipping */
    double rate;
    double term;          /* what training.head_diversity adds to the loss, before its weight; 0 without it */
    double guided;        /* what training.guided_alignment adds, before its weight; 0 without it */
    double open_heads;    /* how many training.head_l0 expects to be open; 0 without it */
    bool skipped;         /* loss or gradient was not finite: nothing was changed but the number of the step */
} hw_step_result;

/* One step on a batch: gradients, clipping, Adam. Steps are counted from 1. */
hw_step_result hw_trainer_step(hw_trainer *t, const hw_batch *batch);
int64_t hw_trainer_steps(const hw_trainer *t); /* how many were done */
/* The network to be validated and saved: the one in training or, where the configuration asks for an average, one whose
 * values are the average up to now. Always the same one; the trainer's. */
const hw_transformer *hw_trainer_network(hw_trainer *t);
/* The gradients of the last step's loss (mean over target tokens, before clipping), laid out as hw_parameters_values.
 */
const hw_real *hw_trainer_gradients(const hw_trainer *t);
/* The parts of a step, one after another. */
typedef enum hw_step_part {
    HW_STEP_CUT,
    HW_STEP_SHARDS,
    HW_STEP_SUM,
    HW_STEP_UPDATE,
    HW_STEP_PACK,
    HW_STEP_PARTS
} hw_step_part;

/* Measures where the time goes from now on, or no longer; the sums over the shards, hw_op_count() entries; and the
 * seconds of each part, which do not overlap. */
void hw_trainer_profile(hw_trainer *t, bool on);
void hw_trainer_profile_sum(const hw_trainer *t, hw_profile_entry *entries);
void hw_trainer_profile_parts(const hw_trainer *t, double seconds[HW_STEP_PARTS]);
int64_t hw_trainer_mallocs(const hw_trainer *t); /* how often its arenas asked for memory */

/* ---- checkpoints ------------------------------------------------------------------------------------------------- */

/* How far a run has come, beside the numbers: all that resuming needs. */
typedef struct hw_run_state {
    int64_t step;
    hw_batch_place place;
    double best;           /* training.metric's best value so far, */
    double best_loss;      /* and the loss of the same validation, which breaks ties */
    int64_t best_step;     /* 0: nothing was validated yet */
    int64_t unimproved;    /* validations since then */
    hw_loss_count window;  /* sums since the last line of train.tsv */
    int64_t skipped;       /* steps skipped since the start, */
    int64_t skipped_row;   /* and in a row up to now */
    int64_t train_data, valid_data; /* fingerprints of the sets; 0: nothing is validated */
} hw_run_state;

/* Writes / reads values, moments and state. Loading fails where the file is not a checkpoint of this network. blas,
 * where not NULL, gets the name of the BLAS kernel that the run used so far. */
bool hw_checkpoint_save(const hw_trainer *t, const hw_run_state *state, const char *path, hw_error *err);
bool hw_checkpoint_load(hw_trainer *t, hw_run_state *state, const char *path, char blas[64], hw_error *err);
/* The state alone. */
bool hw_checkpoint_peek(hw_run_state *state, const char *path, hw_error *err);

/* ---- a whole run ------------------------------------------------------------------------------------------------- */

typedef struct hw_train_options {
    bool overwrite;                       /* begin anew whatever the directory holds */
    hw_progress_function progress;        /* or NULL */
    void *progress_context;
    void (*say)(const char *line, void *context); /* notes for the user, a line each; or NULL */
    void *say_context;
    const volatile int *stop;             /* set to non-zero by anyone: finish the step, save, return; or NULL */
    volatile int *running;                /* set to 1 before the first step, until when nothing is to be saved; or NULL */
} hw_train_options;

typedef struct hw_train_result {
    int64_t step, best_step;
    double best;
    int64_t skipped;       /* steps, because loss or gradient was not finite */
    bool stopped;          /* by options->stop */
    bool out_of_patience;  /* the run ended before training.max_steps, by training.patience */
    bool finished_before;  /* there was nothing left to do */
    double seconds;
    int64_t target_tokens; /* trained on in this call */
} hw_train_result;

/* Trains what the configuration says into training.model_dir, going on from a checkpoint there; the result has the
 * bytes of a run without interruption. What is in the directory is touched only when data and network stand ready.
 * Errors: data, a directory that another process is training in or that holds another configuration (the differing keys
 * are named), data that changed since the run began, files that cannot be written, ten steps in a row with a loss that
 * is not finite; the last checkpoint stays. */
bool hw_train(const hw_config *config, const hw_train_options *options, hw_train_result *result, hw_error *err);

/* What --dry-run tells: counts, parameters, memory, and an estimate of the time from a few steps that are thrown away.
 * The text lives in the arena. */
const char *hw_train_dry_run(const hw_config *config, hw_arena *arena, hw_error *err);

#endif
