/* Layer 3, autograd: the tape, and the operations on tensors that know their way back.
 *
 * A forward call computes its result at once and leaves a node on the tape; hw_backward walks the nodes in reverse and
 * adds to the gradients of what went in. Everything a step computes lives in the tape's arena and is gone with
 * hw_tape_reset: nothing that an operation returns is freed by its caller. A tape serves one thread.
 *
 * Shapes are the programmer's business: an operation that does not fit prints its scope and the reason and aborts.
 * Letters: N tokens (rows), D or C features, H heads, K width of a head, V vocabulary. */
#ifndef HEADWISE_AUTOGRAD_H
#define HEADWISE_AUTOGRAD_H

#include <headwise/tensor.h>

/* ---- ragged rows ------------------------------------------------------------------------------------------------- */

/* Sentences as runs of rows of one matrix: sentence b is rows start[b] .. start[b] + length[b] - 1. There is no
 * padding. Runs may lie anywhere and may be shared (the beams of one sentence read the same encoder rows). */
typedef struct hw_segments {
    int64_t count;
    const int64_t *start, *length;
} hw_segments;

int64_t hw_segments_rows(const hw_segments *s); /* the sum of the lengths */

/* ---- the tape ---------------------------------------------------------------------------------------------------- */

typedef struct hw_tape hw_tape;

typedef enum hw_mode {
    HW_INFERENCE, /* nothing is recorded, no dropout */
    HW_GRADIENTS, /* recorded, no dropout: gradients for a study */
    HW_TRAINING   /* recorded, with dropout */
} hw_mode;

hw_tape *hw_tape_new(void);
void hw_tape_free(hw_tape *tape);
/* Begins a new step: all tensors of the last one are gone. */
void hw_tape_reset(hw_tape *tape, hw_mode mode);
hw_mode hw_tape_mode(const hw_tape *tape);
hw_arena *hw_tape_arena(hw_tape *tape); /* for arrays that live as long as the step */

/* The name of the part of the model that is being run, for messages and profiles; returns the one before, to put it
 * back. The text must outlive the step. */
const char *hw_tape_scope(hw_tape *tape, const char *scope);

/* The key of every dropout of the coming step. */
void hw_tape_dropout_key(hw_tape *tape, uint64_t seed, uint32_t step);
/* The dropout of a site for this step; off (p 0) unless the tape is in HW_TRAINING. */
hw_dropout hw_tape_dropout(const hw_tape *tape, double p, uint32_t site);

/* A tensor of the step, with data not initialised: for inputs. Its gradient is kept if needs_grad. */
hw_tensor *hw_tape_tensor(hw_tape *tape, int rank, const int64_t *shape, bool needs_grad);
/* Any number of rows and columns in one go: [rows, cols] with the numbers of data, or zeros where NULL. */
hw_tensor *hw_tape_matrix(hw_tape *tape, int64_t rows, int64_t cols, const hw_real *data, bool needs_grad);

/* Adds d loss / d x times seed to x->grad of every x on the way. loss has one number and comes from this tape and step.
 * May be called once a step. Gradients of intermediate results are scratch afterwards; those of inputs and parameters
 * stay. */
void hw_backward(hw_tape *tape, hw_tensor *loss, hw_real seed);

/* Where the time goes, an op at a time, forward and backward apart. Attach to a tape with hw_tape_profile; NULL
 * detaches. */
typedef struct hw_profile_entry {
    int64_t calls[2];
    double seconds[2], flops[2], bytes[2]; /* [0] forward, [1] backward */
} hw_profile_entry;
void hw_tape_profile(hw_tape *tape, hw_profile_entry *entries /* hw_op_count() of them */);
void hw_profile_add(hw_profile_entry *sum, const hw_profile_entry *entry);
int hw_op_count(void);
const char *hw_op_name(int op);

/* ---- elementwise and shape --------------------------------------------------------------------------------------- */

hw_tensor *hw_add(hw_tape *t, hw_tensor *a, hw_tensor *b);      /* a + b, same shape */
hw_tensor *hw_scale(hw_tape *t, hw_tensor *x, hw_real factor);  /* factor x */
hw_tensor *hw_multiply(hw_tape *t, hw_tensor *a, hw_tensor *b); /* a b, elementwise, same shape */
hw_tensor *hw_activate(hw_tape *t, hw_tensor *x, hw_activation f);
hw_tensor *hw_dropout_apply(hw_tape *t, hw_tensor *x, hw_dropout drop);

hw_tensor *hw_reshape(hw_tape *t, hw_tensor *x, int rank, const int64_t *shape); /* same numbers, another shape */
hw_tensor *hw_slice(hw_tape *t, hw_tensor *x, int64_t column, int64_t cols);     /* [N, C] -> [N, cols] */
hw_tensor *hw_concatenate(hw_tape *t, int count, hw_tensor *const *x); /* [N, C_i] ... -> [N, sum C_i]; <= 8 */
hw_tensor *hw_gather(hw_tape *t, hw_tensor *x, const int64_t *rows,
                     int64_t count); /* [M, C] -> [count, C]; rows outlives the step */

/* ---- reductions -------------------------------------------------------------------------------------------------- */

hw_tensor *hw_sum(hw_tape *t, hw_tensor *x);                       /* all numbers -> [1] */
hw_tensor *hw_row_dot(hw_tape *t, hw_tensor *a, hw_tensor *b);     /* [N, C], [N, C] -> [N, 1]: a_n . b_n */
hw_tensor *hw_row_norm(hw_tape *t, hw_tensor *x, hw_real epsilon); /* [N, C] -> [N, 1]: sqrt(|x_n|^2 + epsilon) */

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

hw_tensor *hw_matmul(hw_tape *t, hw_tensor *a, hw_tensor *b, bool transpose_a, bool transpose_b); /* op(a) op(b) */

/* dropout(f(x W' + b)): x [N, I], w [O, I], b [O] or NULL -> [N, O]. Reads w->packed where there is one. */
hw_tensor *hw_linear(hw_tape *t, hw_tensor *x, hw_tensor *w, hw_tensor *b, hw_activation f, hw_dropout drop);

/* Token i becomes dropout(w[ids[i]] scale + PE[positions[i]]): w [V, D] -> [count, D]. PE is the sinusoid of Vaswani et
 * al. 2017, section 3.5, all sines first, then all cosines. positions NULL: none are added. ids and positions outlive
 * the step. first_row: the index of the first token within the whole step's batch. */
hw_tensor *hw_embedding(hw_tape *t, hw_tensor *w, const int32_t *ids, const int32_t *positions, int64_t count,
                        hw_real scale, int64_t first_row, hw_dropout drop);
/* PE[position] of width D into out. */
void hw_positional_encoding(hw_real *out, int64_t position, int64_t width);

/* ---- normalisation ----------------------------------------------------------------------------------------------- */

#define HW_LAYER_NORM_EPSILON 1e-5

hw_tensor *hw_softmax(hw_tape *t, hw_tensor *x);     /* row by row */
hw_tensor *hw_log_softmax(hw_tape *t, hw_tensor *x); /* row by row */
hw_tensor *hw_layer_norm(hw_tape *t, hw_tensor *x, hw_tensor *gamma, hw_tensor *beta);
/* x + dropout(branch): the residual connection of pre-norm. */
hw_tensor *hw_residual(hw_tape *t, hw_tensor *x, hw_tensor *branch, hw_dropout drop);
/* layer_norm(x + dropout(branch)): Add&Norm of post-norm. */
hw_tensor *hw_residual_layer_norm(hw_tape *t, hw_tensor *x, hw_tensor *branch, hw_tensor *gamma, hw_tensor *beta,
                                  hw_dropout drop);

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* Scaled dot-product attention of every head, for self-, masked and cross-attention, in training and in decoding
 * (Vaswani et al. 2017, sections 3.2.1 and 3.2.2). Heads lie side by side: head h of the queries is columns
 * query_column + h K .. + K - 1 of `query`, likewise keys and values (which may all be one tensor). Queries of sentence
 * b see the keys of sentence b; with causal, query i of n sees keys 0 .. i + m - n of m (0 .. i where both have one
 * length), so that a prefix in a cache works as it should. */
typedef struct hw_attention_options {
    int64_t heads, head_width;
    hw_segments queries, keys;
    int64_t query_column, key_column, value_column;
    /* Where set, key i of sentence b is row key_rows[keys.start[b] + i] in place of row keys.start[b] + i: for decoding,
     * where hypotheses share what they have in common. Then each sentence has one query, without dropout or gradient. */
    const int32_t *key_rows;
    bool causal;
    hw_dropout drop; /* of the weights */
    const hw_real
        *sharpness; /* [H] factors on the scores, or NULL for 1; 0 makes a head uniform over what it may see */
} hw_attention_options;

/* -> [Nq, H K], the heads' outputs side by side, before gates and output projection. Where weights is not NULL,
 * *weights becomes the softmax's output before dropout, with a gradient of its own: one block [H][n_b][m_b] a sentence
 * after another, as one flat tensor [sum_b H n_b m_b]; keys a query may not see have weight 0. */
hw_tensor *hw_attention(hw_tape *t, hw_tensor *query, hw_tensor *key, hw_tensor *value,
                        const hw_attention_options *options, hw_tensor **weights);

/* Head gates (Michel et al. 2019; Voita et al. 2019): out[n, h] = xi[n, h] x[n, h] + (1 - xi[n, h]) otherwise[h], a
 * vector of K numbers each. x [N, H K], xi [N, H]; otherwise: [H K] constant numbers, or NULL for zero. The gradient of
 * xi comes a query row. */
hw_tensor *hw_gate(hw_tape *t, hw_tensor *x, hw_tensor *xi, const hw_real *otherwise);

/* ---- terms over the heads of one attention ----------------------------------------------------------------------- */

/* What regularizers are made of: a number a row, to be made small. Two heads or more. `diagonal`: pairs of a head with
 * itself count too. */

/* Vectors of the heads, x [N, C], head h in columns column + h K .. + K - 1 -> [N, 1]: the mean over pairs of heads of
 * the cosine between them, or of its square. */
hw_tensor *hw_head_cosine(hw_tape *t, hw_tensor *x, int64_t column, int64_t heads, int64_t width, bool diagonal,
                          bool squared);

/* How the weights that hw_attention gives are laid out. */
typedef struct hw_attention_blocks {
    int64_t heads;
    hw_segments queries, keys;
    bool causal;
} hw_attention_blocks;

/* -> [queries, 1] each, sentence after sentence. Overlap: the mean over pairs of heads of the product of their rows, 1
 * where all look at one key, 1/S where all spread over S, 0 where they share no key. Orthogonal: |A A' - I|^2 for the H
 * rows A of a query. Entropy: the mean over heads, relative to the log of the keys a query may see, 0 to 1. */
hw_tensor *hw_head_overlap(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks, bool diagonal);
hw_tensor *hw_head_orthogonal(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks);
hw_tensor *hw_head_entropy(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks);

/* -> [queries, 1]: the cross-entropy (nats) between where one head should look and where it does. Row t, counted over
 * all sentences, should look at keys[first[t]] .. keys[first[t + 1] - 1] of its sentence, each the same; at none: 0.
 * first [queries + 1] and keys outlive the step. */
hw_tensor *hw_head_targets(hw_tape *t, hw_tensor *weights, const hw_attention_blocks *blocks, int64_t head,
                           const int64_t *first, const int32_t *keys);

/* Gates that training can close (Louizos et al. 2018): elementwise from their log alpha a, any shape. noise: uniform
 * numbers in (0, 1), one a gate, that outlive the step; NULL: the gates of evaluation, without noise and temperature. */
hw_tensor *hw_hard_concrete(hw_tape *t, hw_tensor *a, const hw_real *noise);
hw_tensor *hw_hard_concrete_open(hw_tape *t, hw_tensor *a); /* how likely each gate is not 0 */

/* ---- loss -------------------------------------------------------------------------------------------------------- */

/* What is counted on the way to the loss; sums over the tokens, each added to what was there. */
typedef struct hw_loss_count {
    double loss; /* label-smoothed cross-entropy, natural log, not scaled */
    double nll;  /* -log p(target) */
    int64_t tokens;
    int64_t correct; /* where the target has the largest logit */
} hw_loss_count;

/* Output layer and label-smoothed cross-entropy in one: logits = x W' + b in blocks of rows, so that [N, V] never
 * exists whole. x [N, D], w [V, D], b [V]; targets [N] outlive the step. -> [1]: scale times the sum over tokens. nll,
 * where not NULL, gets -log p(target) a token. A recording tape computes the gradients on the way, for an upstream
 * gradient of 1, so hw_backward's seed must be 1 and the loss must be what it starts from or a sum with other terms. */
hw_tensor *hw_cross_entropy(hw_tape *t, hw_tensor *x, hw_tensor *w, hw_tensor *b, const int32_t *targets,
                            hw_real smoothing, hw_real scale, hw_loss_count *count, hw_real *nll);

#endif
