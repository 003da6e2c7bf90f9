/* Layer 5, model: encoder, decoder, Transformer; and safetensors files.
 *
 * The network is built from its options alone and knows nothing of words. Weights, names and formulas are those that the model
 * directory promises (README, "The model directory"). A network is read by any number of threads at once; for training, each
 * shard has a replica, which shares the values and has gradients of its own. */
#ifndef HEADWISE_MODEL_H
#define HEADWISE_MODEL_H

#include <headwise/nn.h>

typedef enum hw_tying {
    HW_TIED_ALL,    /* source, target and output embeddings are one matrix */
    HW_TIED_OUTPUT, /* target and output embeddings are one */
    HW_TIED_NONE
} hw_tying;

typedef struct hw_transformer_options {
    int64_t encoder_layers, decoder_layers, width, heads, feed_forward;
    int64_t source_vocabulary, target_vocabulary; /* equal where all embeddings are tied */
    hw_activation activation;
    bool pre_norm;
    hw_tying tied;
    double dropout_embedding, dropout_residual, dropout_attention, dropout_feed_forward;
    const char *const *removed_heads; /* "encoder.0.self.2" ...: heads that the network does without */
    int removed_count;
} hw_transformer_options;

typedef struct hw_encoder_layer {
    hw_attention_layer self;
    hw_feed_forward_layer feed_forward;
} hw_encoder_layer;

typedef struct hw_decoder_layer {
    hw_attention_layer self, cross;
    int64_t key_column, value_column; /* where its cross-attention's keys and values stand in hw_cross_keys_values */
    hw_feed_forward_layer feed_forward;
} hw_decoder_layer;

typedef struct hw_transformer {
    hw_transformer_options options;
    hw_parameters *parameters;
    hw_tensor *source_embedding, *target_embedding, *output_weight; /* [V, D]; tied ones are the same tensor */
    hw_tensor *output_bias;                                         /* [V] */
    hw_encoder_layer *encoder;
    hw_decoder_layer *decoder;
    hw_norm_layer encoder_norm, decoder_norm;       /* pre-norm only */
    hw_tensor *cross_weight, *cross_bias;           /* keys and values of all cross-attentions, fused */
    hw_dropout_site source_dropout, target_dropout; /* of the embeddings */
    int attentions;                                 /* how many there are, encoder first: layers + 2 x layers */
    hw_arena *arena;                                /* everything above but the numbers */
} hw_transformer;

/* A network with values not yet set, and gradients where asked for. Errors: sizes that cannot be (0 layers in the decoder, heads that
 * do not divide the width, an odd width, a removed head that does not exist or all heads of an attention removed). */
hw_transformer *hw_transformer_new(const hw_transformer_options *options, bool gradients, hw_error *err);
/* A network with the values of another, which outlives it, and gradients of its own. */
hw_transformer *hw_transformer_replica(const hw_transformer *m);
void hw_transformer_free(hw_transformer *m);

/* The attentions in order: 0 .. attentions - 1, as hw_recorder and settings count them. */
const hw_attention_layer *hw_transformer_attention(const hw_transformer *m, int index);
/* How many numbers the network of these options would have, without building it. */
int64_t hw_transformer_size(const hw_transformer_options *options, hw_error *err); /* -1: an error */
/* Floating-point operations of the multiplications of one forward pass: a source and a target token each, attention itself left
 * out (it depends on lengths). */
void hw_transformer_flops(const hw_transformer *m, double *source_token, double *target_token);

/* Token rows that go into encoder or decoder. Arrays outlive the step. */
typedef struct hw_token_rows {
    int64_t rows;
    const int32_t *ids;        /* [rows] */
    hw_segments segments;
    int64_t first_row;         /* the index of row 0 within the whole step's batch, for dropout */
    const int32_t *positions;  /* [rows], or NULL: counted from 0 in each segment */
} hw_token_rows;

/* -> [Ns, D], the encoder's output */
hw_tensor *hw_encode(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *source);
/* -> [Ns, C], keys and values of every decoder layer's cross-attention from the encoder's output, in one multiplication */
hw_tensor *hw_cross_keys_values(const hw_pass *pass, const hw_transformer *m, hw_tensor *encoded);
/* -> [Nt, D], the decoder's output. keys [target sentences]: which rows of cross each target sentence sees. cache: [decoder layers],
 * or NULL to run whole sentences. */
hw_tensor *hw_decode(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *target, hw_tensor *cross,
                     hw_segments keys, const hw_layer_cache *cache);
/* -> [N, V] */
hw_tensor *hw_logits(const hw_pass *pass, const hw_transformer *m, hw_tensor *decoded);
/* The whole network up to the loss (see hw_cross_entropy for scale, count and nll). */
hw_tensor *hw_transformer_loss(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *source,
                               const hw_token_rows *target, const int32_t *target_out, hw_real smoothing, hw_real scale,
                               hw_loss_count *count, hw_real *nll);

#endif
