/* Layer 4, nn: parameters, and the layers of a Transformer.
 *
 * A layer is a few parameters and a function that writes its operations on a tape. Parameters are declared first and
 * laid out together afterwards, so that weights which are multiplied with the same input (Query, Key and Value; keys
 * and values of all cross-attentions) lie side by side and are one multiplication. Here also stands what every study of
 * heads uses: gates, which turn heads down, and the recorder, which keeps what they did. */
#ifndef HEADWISE_NN_H
#define HEADWISE_NN_H

#include <headwise/autograd.h>

/* ---- parameters -------------------------------------------------------------------------------------------------- */

typedef enum hw_initial {
    HW_INITIAL_ZERO,
    HW_INITIAL_ONE,
    HW_INITIAL_XAVIER,   /* uniform in +-sqrt(6 / (inputs + outputs)): Glorot and Bengio 2010, equation 16 */
    HW_INITIAL_EMBEDDING /* normal with deviation D^-1/2, so that the scaled embedding has deviation 1 */
} hw_initial;

typedef struct hw_parameter {
    const char *name; /* as in model.safetensors */
    hw_tensor tensor;
    hw_initial initial;
    double gain; /* what the initial values are multiplied by */
} hw_parameter;

/* All parameters of a network, in one block of numbers each for values and gradients. */
typedef struct hw_parameters hw_parameters;

hw_parameters *hw_parameters_new(void);
void hw_parameters_free(hw_parameters *p);

/* Declares one, before the layout. The result stays where it is until the parameters are freed. */
hw_tensor *hw_parameters_add(hw_parameters *p, hw_initial initial, int rank, const int64_t *shape, const char *name,
                             ...) __attribute__((format(printf, 5, 6)));
/* Draws its initial values times so much. */
void hw_parameters_gain(hw_parameters *p, const hw_tensor *x, double gain);
/* A tensor over the rows of `count` parameters declared one right after another, beginning with first. */
hw_tensor *hw_parameters_fuse(hw_parameters *p, const hw_tensor *first, int count);
/* Marks a weight (or fused weight) that forward multiplications read: hw_parameters_pack keeps its packed layout. */
void hw_parameters_packed(hw_parameters *p, hw_tensor *weight);

/* Gives all of them memory: values of their own, or those (and the packed layouts) of an equal set that outlives this
 * one; gradients, zeroed, where asked for. */
void hw_parameters_layout(hw_parameters *p, const hw_parameters *shared, bool gradients);
/* Draws the initial values; each parameter's depend on seed and name alone. What multiplies needs _pack or _settle
 * afterwards; _initialise draws and packs. */
void hw_parameters_draw(hw_parameters *p, uint64_t seed);
void hw_parameters_initialise(hw_parameters *p, uint64_t seed);
/* Brings the packed layouts up to date with the values, on all threads. To be called after every change of the values.
 */
void hw_parameters_pack(hw_parameters *p);
/* The same, and gives back the memory of every packed weight as it goes; its data is NULL afterwards (an embedding reads
 * the packed layout). From then on these parameters run forward and do nothing else. */
void hw_parameters_settle(hw_parameters *p);
int64_t hw_parameters_version(const hw_parameters *p); /* how often they were packed: what is derived from them has one */

int hw_parameters_count(const hw_parameters *p);
hw_parameter *hw_parameters_at(const hw_parameters *p, int i);
hw_parameter *hw_parameters_find(const hw_parameters *p, const char *name); /* NULL where there is none */
int64_t hw_parameters_total(const hw_parameters *p);                        /* numbers that are trained */
int64_t hw_parameters_numbers(const hw_parameters *p); /* length of the blocks, gaps (always zero) included */
hw_real *hw_parameters_values(const hw_parameters *p);
hw_real *hw_parameters_gradients(const hw_parameters *p); /* NULL where not asked for */

/* ---- watching and steering heads --------------------------------------------------------------------------------- */

/* What one attention did in one pass. Tensors live until the tape is reset. */
typedef struct hw_recorded {
    const char *name; /* "encoder.0.self"; head h of it is called "encoder.0.self.h" */
    hw_segments queries, keys;
    bool causal;
    hw_tensor *weights;      /* as hw_attention gives them; NULL where not asked for */
    hw_tensor *heads;        /* [Nq, H K]: every head's output before gate and output projection */
    hw_tensor *gates;        /* [Nq, H]; its gradient is dL/dxi a query row; NULL where not asked for */
    hw_tensor *values;       /* a row a key: head h's value is columns value_column + h K .. + K - 1 */
    int64_t value_column;
} hw_recorded;

typedef struct hw_recorder {
    bool weights, gates;  /* what to record beside the outputs */
    const bool *only;     /* [attentions] whose weights; NULL: those of all */
    hw_recorded *entries; /* [attentions of the model], from the caller; filled by the pass */
} hw_recorder;

/* How the heads of one attention are changed; all NULL: not at all. H heads of width K as they are in the network. */
typedef struct hw_head_setting {
    const hw_real *gate;      /* [H] xi */
    const hw_real *otherwise; /* [H K] what takes a head's place where xi < 1; NULL: zero */
    const hw_real *sharpness; /* [H] factors on the scores; 0: uniform attention */
    hw_tensor *trained_gate;  /* [1, H] in place of gate, with a gradient */
} hw_head_setting;

/* One run of (a part of) a network. */
typedef struct hw_pass {
    hw_tape *tape;
    hw_recorder *recorder;           /* or NULL */
    const hw_head_setting *settings; /* [attentions of the model], or NULL */
    double drop_head;                /* how likely a sentence goes without a head, in training (Zhou et al. 2020) */
} hw_pass;

/* ---- layers ------------------------------------------------------------------------------------------------------ */

/* Rates and sites of dropout: a site is a number of its own for every place where dropout happens. */
typedef struct hw_dropout_site {
    double rate;
    uint32_t site;
} hw_dropout_site;

typedef struct hw_norm_layer {
    const char *scope;       /* "encoder.0.self_attention_norm" */
    hw_tensor *gamma, *beta; /* [D] each: "weight" and "bias" */
} hw_norm_layer;

/* Add&Norm around a sublayer: post-norm is layer_norm(x + dropout(f(x))), pre-norm x + dropout(f(layer_norm(x))). */
typedef struct hw_add_norm {
    hw_norm_layer norm;
    bool pre;
    hw_dropout_site residual;
} hw_add_norm;
hw_tensor *hw_add_norm_before(const hw_pass *pass, const hw_add_norm *a, hw_tensor *x); /* what f reads */
hw_tensor *hw_add_norm_after(const hw_pass *pass, const hw_add_norm *a, hw_tensor *x, hw_tensor *branch); /* after f */

/* Multi-head attention (Vaswani et al. 2017, section 3.2.2): each head has Query, Key and Value projections of its own,
 * which are K rows each of one matrix a kind. */
typedef struct hw_attention_layer {
    const char *scope; /* "encoder.0.self_attention" */
    const char *name;  /* "encoder.0.self" */
    int index;         /* its place among the attentions of the model */
    int64_t heads, head_width;
    const int *head_names;                  /* [heads] the numbers the heads were born with; pruned ones are missing */
    hw_tensor *query_weight, *query_bias;   /* cross: [H K, D]; self: fused Query, Key, Value, [3 H K, D] */
    hw_tensor *output_weight, *output_bias; /* [D, H K] */
    hw_add_norm add_norm;
    hw_dropout_site weights;
} hw_attention_layer;

/* Keys and values of earlier positions, for decoding: those of hypothesis b are rows
 * past[at.start[b] .. at.start[b] + at.length[b] - 1] of keys_values, the oldest first and the new one last, which goes
 * to row next + b. Hypotheses share the rows of what they have in common. */
typedef struct hw_layer_cache {
    hw_tensor *keys_values; /* [rows, 2 H K] */
    int64_t next;
    hw_segments at;
    const int32_t *past;
} hw_layer_cache;

/* Self-attention with its Add&Norm: x [N, D] -> [N, D]. With a cache, x has one row a hypothesis, whose keys
 * and values are written there, and queries see them and the earlier ones. */
hw_tensor *hw_self_attention(const hw_pass *pass, const hw_attention_layer *a, hw_tensor *x, hw_segments rows,
                             bool causal, const hw_layer_cache *cache);
/* Cross-attention with its Add&Norm: x [Nt, D]; keys_values holds keys from column key_column on, values from
 * value_column. */
hw_tensor *hw_cross_attention(const hw_pass *pass, const hw_attention_layer *a, hw_tensor *x, hw_segments rows,
                              hw_tensor *keys_values, int64_t key_column, int64_t value_column, hw_segments keys);

/* Position-wise feed-forward (section 3.3) with its Add&Norm: contract(dropout(f(expand(x)))). */
typedef struct hw_feed_forward_layer {
    const char *scope;
    hw_tensor *expand_weight, *expand_bias;     /* [F, D], [F] */
    hw_tensor *contract_weight, *contract_bias; /* [D, F], [D] */
    hw_activation activation;
    hw_add_norm add_norm;
    hw_dropout_site inner;
} hw_feed_forward_layer;
hw_tensor *hw_feed_forward(const hw_pass *pass, const hw_feed_forward_layer *f, hw_tensor *x);

#endif
