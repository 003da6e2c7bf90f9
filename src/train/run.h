/* Inside layer 11: a run in progress, as those files know it that begin it (start.c), look after its directory
 * (directory.c) and keep it going (run.c). */
#ifndef HW_TRAIN_RUN_H
#define HW_TRAIN_RUN_H

#include <headwise/heads.h>
#include <headwise/train.h>

#include "log.h"
#include "validate.h"

typedef struct hw_run {
    const hw_config *config;
    const hw_train_options *options;
    hw_arena *arena, *batch_arena;
    hw_bundle *bundle;       /* the network in training */
    hw_bundle shown;         /* the same with the network that is validated and saved, maybe an average */
    hw_corpus *corpus;
    hw_sampler *sampler[2];  /* of source and target; NULL: each sentence is always cut the same way */
    hw_trainer *trainer;
    hw_validator *validator; /* NULL: nothing is validated */
    hw_tracer *tracer;       /* NULL: heads are not tracked */
    hw_batcher batcher;
    hw_run_state state;
    hw_log train_log, valid_log, times_log, trace_log;
    hw_events events;        /* for TensorBoard, where asked for */
    int lock;                /* descriptor of the directory; -1: not held */
    int64_t saved;           /* the last checkpoint's step */
    double began;            /* when this call did */
    int64_t tokens;          /* target tokens since then */
    hw_step_result last;
} hw_run;

/* A note for the user, split into lines. */
void hw_run_say(const hw_run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* NAME in the model directory, into path, which is returned. */
const char *hw_run_path(const hw_run *r, const char *name, char path[HW_PATH]);
bool hw_run_has(const hw_run *r, const char *name); /* whether there is such a file */
/* Is nothing left to do in this state? */
bool hw_run_over(const hw_config *config, const hw_run_state *state);

/* ---- directory.c ---- */

/* Holds the directory, made where it is missing, for this process until it ends or r->lock is closed, and clears away
 * what a killed run left half-written. */
bool hw_run_take(hw_run *r, hw_error *err);
/* Fails where that directory is not the one that stands at training.model_dir any more; before anything is written
 * there. */
bool hw_run_holds(const hw_run *r, hw_error *err);
/* The list with an option more, "training.seed (there 1, now 2)"; it begins as "" and lives in the arena. */
const char *hw_run_add_difference(const char *list, const hw_config *there, const hw_config *now, const char *key,
                                  hw_arena *arena);
/* Fails where the directory holds a run of another configuration. */
bool hw_run_same(hw_run *r, hw_error *err);
/* Fails where a new run, which nobody told to overwrite, would replace what no run left. */
bool hw_run_may_begin(const hw_run *r, hw_error *err);
/* Removes what a run writes while it trains; all else is replaced. */
void hw_run_clear(const hw_run *r);
/* Writes the weights as one of the training.keep_checkpoints kept ones. */
bool hw_run_keep(const hw_run *r, hw_error *err);
/* Takes back kept weights of steps beyond the state's, and what is more than training.keep_checkpoints. */
void hw_run_prune(const hw_run *r);

/* ---- track.c: heads_trace.tsv ---- */

/* Both do nothing where heads are not tracked. */
bool hw_run_track_begin(hw_run *r, hw_error *err);
bool hw_run_track(hw_run *r, hw_error *err);

/* ---- memory.c ---- */

/* Bytes of a network of so many numbers in training: values, moments, gradients, averages. */
double hw_train_values_bytes(const hw_config *config, double numbers);
/* About how many target tokens, </s> included, a batch has. */
double hw_train_batch_tokens(const hw_config *config, const hw_corpus_counts *counts);
/* Fails where memory cannot hold a training of this network; corpus NULL: a step's activations not counted. */
bool hw_train_fits(const hw_config *config, const hw_texts *texts, const hw_corpus *corpus, hw_error *err);

/* ---- start.c ---- */

/* Fails where a training or validation set is missing, before any of it is read. */
bool hw_start_data(const hw_config *config, hw_error *err);

/* The texts of a new run: those of training.init_from, or new ones from the training set; see hw_texts_new. */
bool hw_start_texts(const hw_config *config, hw_arena *arena, hw_texts *texts, hw_error *err);
/* The values of a new run: those of training.init_from, or drawn ones. */
bool hw_start_values(const hw_config *config, hw_transformer *network, hw_error *err);
/* Everything up to the first step but logs and first checkpoint: data, network, the state to go on from. */
bool hw_run_begin(hw_run *r, bool resume, hw_error *err);

#endif
