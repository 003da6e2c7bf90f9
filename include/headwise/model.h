/* Layer 5, model: encoder, decoder, Transformer; and safetensors files.
 *
 * The network is built from its options alone and knows nothing of words. Weights, names and formulas are those that
 * the model directory promises (README, "The model directory"). A network is read by any number of threads at once; for
 * training, each shard has a replica, which shares the values and has gradients of its own. */
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
    double attention_gain; /* of the initial queries', keys' and values' weights; 0: 1 */
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

/* A network with values not yet set, and gradients where asked for. Errors: sizes that cannot be (0 layers in the
 * decoder, heads that do not divide the width, an odd width, a removed head that does not exist or all heads of an
 * attention removed). */
hw_transformer *hw_transformer_new(const hw_transformer_options *options, bool gradients, hw_error *err);
/* A network with the values of another, which outlives it, and gradients of its own. */
hw_transformer *hw_transformer_replica(const hw_transformer *m);
void hw_transformer_free(hw_transformer *m);

/* The attentions in order: 0 .. attentions - 1, as hw_recorder and settings count them. */
const hw_attention_layer *hw_transformer_attention(const hw_transformer *m, int index);
/* How many numbers the network of these options would have, without building it. */
int64_t hw_transformer_size(const hw_transformer_options *options, hw_error *err); /* -1: an error */
/* Floating-point operations of the multiplications of one forward pass: a source and a target token each, attention
 * itself left out (it depends on lengths). */
void hw_transformer_flops(const hw_transformer *m, double *source_token, double *target_token);

/* Token rows that go into encoder or decoder. Arrays outlive the step. */
typedef struct hw_token_rows {
    int64_t rows;
    const int32_t *ids; /* [rows] */
    hw_segments segments;
    int64_t first_row;        /* the index of row 0 within the whole step's batch, for dropout */
    const int32_t *positions; /* [rows], or NULL: counted from 0 in each segment */
} hw_token_rows;

/* -> [Ns, D], the encoder's output */
hw_tensor *hw_encode(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *source);
/* -> [Ns, C], keys and values of every decoder layer's cross-attention from the encoder's output, in one multiplication
 */
hw_tensor *hw_cross_keys_values(const hw_pass *pass, const hw_transformer *m, hw_tensor *encoded);
/* -> [Nt, D], the decoder's output. keys [target sentences]: which rows of cross each target sentence sees. cache:
 * [decoder layers], or NULL to run whole sentences. */
hw_tensor *hw_decode(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *target, hw_tensor *cross,
                     hw_segments keys, const hw_layer_cache *cache);
/* -> [N, V] */
hw_tensor *hw_logits(const hw_pass *pass, const hw_transformer *m, hw_tensor *decoded);
/* The whole network up to the loss (see hw_cross_entropy for scale, count and nll). */
hw_tensor *hw_transformer_loss(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *source,
                               const hw_token_rows *target, const int32_t *target_out, hw_real smoothing, hw_real scale,
                               hw_loss_count *count, hw_real *nll);

/* ---- safetensors files ------------------------------------------------------------------------------------------- */

/* Named tensors, written whole or not at all, and read through a map once everything was checked. The format: eight
 * bytes, the header's length n, little endian; n bytes of JSON, an object that gives each name a dtype, a shape and
 * data_offsets [begin, end) within the rest, and may hold texts under __metadata__; then the numbers, little endian,
 * row-major, without a hole. */

typedef enum hw_dtype {
    HW_F64,
    HW_F32,
    HW_F16,
    HW_BF16,
    HW_I64,
    HW_I32,
    HW_I16,
    HW_I8,
    HW_U64,
    HW_U32,
    HW_U16,
    HW_U8,
    HW_BOOL
} hw_dtype;

#ifdef HW_REAL_DOUBLE
#define HW_DTYPE_REAL HW_F64 /* the dtype of hw_real */
#else
#define HW_DTYPE_REAL HW_F32
#endif

#define HW_STORED_RANK 8

/* A tensor in a file, or on its way into one. */
typedef struct hw_stored {
    const char *name;
    hw_dtype dtype;
    int rank; /* 0: one number */
    int64_t shape[HW_STORED_RANK];
    const void *data; /* little endian; in a map it may stand unaligned if another program wrote the file */
} hw_stored;

typedef struct hw_metadata {
    const char *key, *value; /* UTF-8 */
} hw_metadata;

const char *hw_dtype_name(hw_dtype dtype); /* "F32" */
int hw_dtype_size(hw_dtype dtype);         /* bytes a number */

/* Writes the file by hw_atomic, straight from where the tensors lie. The wider types come first, names ascend among
 * equals, so that every tensor is aligned and the bytes depend on names, numbers and the order of the metadata alone.
 * Names must differ (HW_CHECK). false: the file could not be written, or a text is not UTF-8. */
bool hw_safetensors_save(const char *path, const hw_stored *tensors, int count, const hw_metadata *metadata, int pairs,
                         hw_error *err);

/* An open file. Whatever its bytes are, opening either fails with a message that names file and tensor, or every tensor
 * lies within the map, none on top of another. Names and data stay valid until it is closed. */
typedef struct hw_safetensors hw_safetensors;

hw_safetensors *hw_safetensors_open(const char *path, hw_error *err); /* the caller closes it */
void hw_safetensors_close(hw_safetensors *file);                      /* NULL is fine */

int hw_safetensors_count(const hw_safetensors *file);
const hw_stored *hw_safetensors_at(const hw_safetensors *file, int i);              /* 0..count-1, names ascending */
const hw_stored *hw_safetensors_find(const hw_safetensors *file, const char *name); /* or NULL */
const char *hw_safetensors_metadata(const hw_safetensors *file, const char *key);   /* or NULL */

/* Copies a tensor into out as numbers of this dtype. F64, F32, F16 and BF16 are converted to a wanted F64 or F32
 * (rounded to nearest); any other dtype must be what the file holds. A missing name, another shape or dtype is an
 * error. */
bool hw_safetensors_read(const hw_safetensors *file, const char *name, hw_dtype dtype, int rank, const int64_t *shape,
                         void *out, hw_error *err);

#endif
