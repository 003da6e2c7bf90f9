/* Inside layer 11: gates of heads that training closes (training.head_l0).
 *
 * The loss gets weight times the expected number of open heads (Louizos et al. 2018; Voita et al. 2019, section 6.1).
 * Every step draws one noise a head, the same for all shards; what is validated and saved is a network whose output
 * projections are multiplied by the gates of evaluation, so that a closed head's columns are zero and anything that
 * reads models reads it. */
#ifndef HW_TRAIN_GATES_H
#define HW_TRAIN_GATES_H

#include <headwise/config.h>
#include <headwise/model.h>

typedef struct hw_gates {
    const hw_transformer *model; /* the network in training */
    hw_transformer *network;     /* the same with the gates in its values */
    const hw_config *config;
    int heads;          /* of all attentions */
    int *first;         /* [attentions] the place of its first head */
    hw_real *values[3]; /* [heads] log alpha, and Adam's two moments */
    hw_real *noise;     /* [heads] of the step that is running */
    hw_tape *tape;      /* for the term of the loss and the gates of evaluation */
} hw_gates;

/* The gates of one shard's micro-batch. */
typedef struct hw_gate_pass {
    hw_head_setting *settings; /* [attentions] for the pass */
    hw_tensor **log_alpha;     /* [attentions] */
    hw_real *gradients;        /* [heads] summed over the micro-batches of a step */
} hw_gate_pass;

/* NULL where the configuration asks for none. */
hw_gates *hw_gates_new(const hw_transformer *model, const hw_config *config);
void hw_gates_free(hw_gates *g); /* NULL is fine */
void hw_gates_pass_init(const hw_gates *g, hw_gate_pass *p);
void hw_gates_pass_clear(hw_gate_pass *p);

/* Draws the noise of a step. */
void hw_gates_begin(hw_gates *g, int64_t step);
/* Puts the gates on a tape: settings of the pass. And takes their gradients, after backward. */
void hw_gates_apply(const hw_gates *g, hw_gate_pass *p, hw_tape *tape);
void hw_gates_take(const hw_gates *g, hw_gate_pass *p);
/* One step of Adam with the gradients of all passes, in their order, and that of the term. share: the learning rate
 * over the largest; updates: how many there were, this one too. */
void hw_gates_update(hw_gates *g, const hw_gate_pass *const *passes, int count, double share, int64_t updates);
/* The expected number of open heads (the term before its weight), and how many are open in evaluation. */
double hw_gates_expected(hw_gates *g);
/* Brings the network's values up to date. */
void hw_gates_settle(hw_gates *g);
/* gates.tsv: every head with its gate in evaluation, how likely it is open in training, and log alpha. */
bool hw_gates_write(hw_gates *g, const char *path, hw_error *err);

#endif
