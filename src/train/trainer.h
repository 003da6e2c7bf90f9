/* What the files of this folder know of a trainer. */
#ifndef HW_TRAIN_TRAINER_H
#define HW_TRAIN_TRAINER_H

#include <headwise/heads.h>
#include <headwise/train.h>

#include "average.h"
#include "gates.h"
#include "guided.h"

/* One shard's own: a network that shares the values, a tape, gradients. */
typedef struct shard {
    hw_transformer *replica;
    hw_tape *tape;
    hw_arena *arena;         /* for its micro-batches */
    hw_loss_count count;
    double term, guided;     /* sums of what pushes heads apart, and of what teaches one to align */
    hw_recorded *recorded;   /* [attentions]; NULL: nothing has to be recorded */
    hw_gate_pass gates;      /* where heads have gates */
    hw_profile_entry *profile;
} shard;

struct hw_trainer {
    hw_transformer *model;
    const hw_config *config;
    int shards;
    shard *shard;
    int64_t numbers;         /* of values, gradients, moments */
    hw_real *first, *second; /* moments of Adam: running means of the gradient and of its square */
    double *squares;         /* of each chunk's gradients */
    hw_average *average;     /* of the weights; NULL: none is made */
    hw_guided *guided;       /* the head that learns to align; NULL: none does */
    hw_gates *gates;         /* of heads, which training closes; NULL: there are none */
    double parts[HW_STEP_PARTS]; /* seconds since the profile began */
    int64_t steps, updates;  /* done; and those that were not skipped, which Adam's corrections count */

    /* the step that is running */
    const hw_batch *batch;
    hw_batch *cut;           /* [shards] */
    int64_t aligned;         /* its target tokens with links, where a head learns to align */
    hw_arena *arena;         /* for the cuts */
    double rate, factor;     /* learning rate; what gradients are multiplied by to clip them */
};

/* Of the configuration the checkpoint has what its steps depend on, but no paths, nor what may grow from one part of a run
 * to the next: these options it leaves out. */
bool hw_checkpoint_leaves_out(const char *key);
/* The configuration that a checkpoint was trained with; *config is NULL where it does not say. */
bool hw_checkpoint_config(const char *path, hw_arena *arena, hw_config **config, hw_error *err);

/* The gates of heads as a table; see gates.h. */
bool hw_trainer_write_gates(hw_trainer *t, const char *path, hw_error *err);

#endif
