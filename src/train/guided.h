/* Inside layer 11: one cross-attention head that is taught to align words (training.guided_alignment).
 *
 * The loss gets weight times the mean, over the target tokens of the step's batch that have links, of the cross-entropy
 * between these links, each row made to sum to 1, and the head's attention weights (Chen et al. 2016; Garg et al.
 * 2019). Tokens without links, </s> among them, have no part in it. The row of a token is the one that predicts it, or,
 * with step: fed, the next one, which it is fed to. */
#ifndef HW_TRAIN_GUIDED_H
#define HW_TRAIN_GUIDED_H

#include <headwise/config.h>
#include <headwise/model.h>
#include <headwise/text.h>

typedef struct hw_guided {
    const hw_attention_layer *layer;
    int head;   /* among the heads that the layer has */
    int row;    /* token t's row of attention is t + row */
    bool *only; /* [attentions] the one that must be recorded */
} hw_guided;

/* NULL where the configuration asks for none. */
hw_guided *hw_guided_new(const hw_transformer *model, const hw_config *config);
void hw_guided_free(hw_guided *g); /* NULL is fine */

/* How many target tokens of a batch have links. */
int64_t hw_guided_tokens(const hw_batch *batch);
/* The term, [1], of a micro-batch of a batch with so many such tokens; NULL where it has none of them. */
hw_tensor *hw_guided_term(const hw_guided *g, hw_tape *tape, const hw_recorded *recorded, const hw_batch *micro,
                          int64_t tokens);

/* What is known of the alignment, for the log, in the arena; NULL where none of it can be used. */
const char *hw_guided_describe(const hw_config *config, const hw_corpus *corpus, hw_arena *arena, hw_error *err);

#endif
