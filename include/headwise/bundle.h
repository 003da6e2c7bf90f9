/* Layer 7, bundle: network, vocabularies, tokenizers and configuration together, and the model directory that they are
 * kept in.
 *
 * A model is a directory: config.yaml (complete), source.vocab and target.vocab or shared.vocab, model.safetensors
 * (what translates), and what training needs besides. Its files and the names in them are a contract with other
 * programs (README, "The model directory"). Loading checks all of it against each other, so that a directory whose
 * parts do not belong together is refused with the parts named. */
#ifndef HEADWISE_BUNDLE_H
#define HEADWISE_BUNDLE_H

#include <headwise/config.h>
#include <headwise/model.h>
#include <headwise/text.h>

/* All that is needed to go from a line to its translation. May be read by any number of threads. */
typedef struct hw_bundle {
    const hw_config *config;
    const hw_vocabulary *source_vocabulary, *target_vocabulary; /* the same one where it is shared */
    hw_tokenizer *source_tokenizer, *target_tokenizer;
    hw_transformer *network;
    hw_arena *arena; /* hw_bundle_load: of all but network and tokenizers; else NULL */
} hw_bundle;

/* Reads a model directory. Errors: no such directory, a file missing or malformed, tensors missing, surplus or of
 * another shape than the configuration says, a vocabulary that does not fit the embedding, a model of a later format.
 * The caller frees it. */
hw_bundle *hw_bundle_load(const char *directory, hw_error *err);

/* DIRECTORY/config.yaml, not yet checked, so that options can be set over it. text.shared_vocabulary follows the files
 * that are there, which tell where another program left it out. */
hw_config *hw_bundle_config(const char *directory, hw_arena *arena, hw_error *err);

/* A network with values not yet set, for these vocabularies; with gradients where it is trained itself. config and
 * vocabularies outlive the bundle. Errors: those of hw_tokenizer_new and hw_transformer_new. The caller frees it. */
hw_bundle *hw_bundle_new(const hw_config *config, const hw_vocabulary *source, const hw_vocabulary *target,
                         bool gradients, hw_error *err);
void hw_bundle_free(hw_bundle *bundle); /* NULL is fine */

/* What a configuration says about the network, for vocabularies of these sizes. Names live as long as the
 * configuration. */
hw_transformer_options hw_bundle_options(const hw_config *config, int64_t source_vocabulary, int64_t target_vocabulary);

/* The tokenizer of a side as the configuration has it; the caller frees it. */
hw_tokenizer *hw_bundle_tokenizer(const hw_config *config, hw_error *err);

/* Counts the training set and makes its vocabularies, one for both sides (*source == *target) where
 * text.shared_vocabulary. They live in the arena. Errors: data that cannot be read, a side without any word. */
bool hw_bundle_vocabularies(const hw_config *config, hw_arena *arena, hw_vocabulary **source, hw_vocabulary **target,
                            hw_error *err);

/* What reads one side of a corpus, for hw_corpus_load. */
hw_side hw_bundle_source(const hw_bundle *bundle);
hw_side hw_bundle_target(const hw_bundle *bundle);

/* Writes config.yaml and the vocabularies into the directory, which is made where it is missing. */
bool hw_bundle_save_texts(const hw_bundle *bundle, const char *directory, hw_error *err);

/* Writes DIRECTORY/model.safetensors, whole or not at all: the network's values, or others laid out as
 * hw_parameters_values are (an average of checkpoints), where values is not NULL. */
bool hw_bundle_save_model(const hw_transformer *network, const hw_real *values, const char *directory, hw_error *err);
/* The same into a file of any name. */
bool hw_bundle_save_weights(const hw_transformer *network, const hw_real *values, const char *path, hw_error *err);

/* Reads values from a safetensors file into the network and packs them. Errors name the file and the tensor. */
bool hw_bundle_load_model(hw_transformer *network, const char *path, hw_error *err);

/* DIRECTORY/NAME into path. A directory so long that it does not fit is an error. */
bool hw_bundle_path(char path[HW_PATH], const char *directory, const char *name, hw_error *err);

#endif
