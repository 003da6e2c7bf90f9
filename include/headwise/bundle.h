/* Layer 7, bundle: network, vocabularies, tokenizers and configuration together, and the model directory that they are
 * kept in.
 *
 * A model is a directory: config.yaml (complete), source.vocab and target.vocab or shared.vocab, beside each the
 * tokenizer's model where it has one (source.model ...), model.safetensors (what translates), and what training needs
 * besides. Its files and the names in them are a contract with other programs (README, "The model directory"). Loading
 * checks all of it against each other, so that a directory whose parts do not belong together is refused with the parts
 * named. */
#ifndef HEADWISE_BUNDLE_H
#define HEADWISE_BUNDLE_H

#include <headwise/config.h>
#include <headwise/model.h>
#include <headwise/text.h>

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* What turns the text of both sides into ids and back. Vocabularies live in an arena; tokenizers are owned. */
typedef struct hw_texts {
    const hw_vocabulary *source_vocabulary, *target_vocabulary; /* the same one where it is shared, */
    hw_tokenizer *source_tokenizer, *target_tokenizer;          /* and likewise the tokenizer */
} hw_texts;

/* Those that a model directory holds, as the configuration says (text.*). Errors: files missing or malformed, a
 * vocabulary that is not its model's. */
bool hw_texts_load(const hw_config *config, const char *directory, hw_arena *arena, hw_texts *texts, hw_error *err);
/* Those of a new training: vocabularies counted from the training set; SentencePiece models from text.model, from the
 * directory that will be trained into, or trained on the training set. Errors: data that cannot be read, a side without
 * any word. */
bool hw_texts_new(const hw_config *config, hw_arena *arena, hw_texts *texts, hw_error *err);
/* The path of the model that the tokenizer of a side (0: source, or both where they share it) of a new run comes from,
 * where it stands in the directory that will be trained into and no run wrote it. */
bool hw_texts_found(const hw_config *config, int side, char path[HW_PATH]);
/* Writes them into a directory that is there; those of another sharing or tokenizer go. */
bool hw_texts_save(const hw_texts *texts, const hw_config *config, const char *directory, hw_error *err);
void hw_texts_free(hw_texts *texts);

/* The path of a side's file in a directory into path; side 0 is the source, ending "vocab" or "model". */
bool hw_texts_path(const hw_config *config, const char *directory, int side, const char *ending, char path[HW_PATH],
                   hw_error *err);

/* ---- the whole --------------------------------------------------------------------------------------------------- */

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
/* The same for running forward only, in half the memory: see hw_parameters_settle. */
hw_bundle *hw_bundle_load_settled(const char *directory, hw_error *err);

/* Whether all values are finite. Loading does not ask, since such a network still gives a line for each line; figures
 * about it mean nothing. The error names the tensor. */
bool hw_bundle_is_finite(const hw_bundle *bundle, const char *directory, hw_error *err);

/* DIRECTORY/config.yaml, not yet checked, so that options can be set over it. text.shared_vocabulary follows the files
 * that are there, which tell where another program left it out. */
hw_config *hw_bundle_config(const char *directory, hw_arena *arena, hw_error *err);

/* A network with values not yet set, for these texts, whose tokenizers the bundle takes over whatever comes; with
 * gradients where it is trained itself. config and vocabularies outlive the bundle. Errors: a network that memory
 * cannot hold, those of hw_transformer_new. The caller frees it. */
hw_bundle *hw_bundle_new(const hw_config *config, const hw_texts *texts, bool gradients, hw_error *err);
hw_texts hw_bundle_texts(const hw_bundle *bundle); /* its own, for another bundle, with one owner more */
void hw_bundle_free(hw_bundle *bundle); /* NULL is fine */

/* The same model without some heads ("encoder.0.self.2" ...), whose parameters are left out; model.removed_heads names
 * them beside those that were removed before. directory: its training.model_dir; NULL: as it was. bundle and arena
 * outlive it; the caller frees it. Errors: no such head, the last head of an attention. */
hw_bundle *hw_bundle_without(const hw_bundle *bundle, const char *const *heads, int count, const char *directory,
                             hw_arena *arena, hw_error *err);

/* What a configuration says about the network, for vocabularies of these sizes. Names live as long as the
 * configuration. */
hw_transformer_options hw_bundle_options(const hw_config *config, int64_t source_vocabulary, int64_t target_vocabulary);

/* What a configuration says about the training set: filters, and the model directory for what memory cannot hold. */
hw_corpus_options hw_bundle_filters(const hw_config *config);
/* What reads one side of a corpus, for hw_corpus_load. */
hw_side hw_bundle_source(const hw_bundle *bundle);
hw_side hw_bundle_target(const hw_bundle *bundle);

/* Writes the texts and, last, config.yaml into the directory, which is made where it is missing. */
bool hw_bundle_save_texts(const hw_bundle *bundle, const char *directory, hw_error *err);

/* Writes DIRECTORY/model.safetensors, whole or not at all: the network's values, or others laid out as
 * hw_parameters_values are (an average of checkpoints), where values is not NULL. */
bool hw_bundle_save_model(const hw_transformer *network, const hw_real *values, const char *directory, hw_error *err);
/* The same into a file of any name. */
bool hw_bundle_save_weights(const hw_transformer *network, const hw_real *values, const char *path, hw_error *err);

/* Reads values from a safetensors file into the network and packs them. Errors name the file and the tensor. */
bool hw_bundle_load_model(hw_transformer *network, const char *path, hw_error *err);

/* Writes DIRECTORY/corpus.json, the counts of the training set and, where run is not NULL, which tokenizers' models that
 * run found in its directory (hw_texts_found); or the counts of another directory, where it has them; and
 * how many tokens its longest source has, from there, 0 where the directory does not tell. */
bool hw_bundle_save_corpus(const hw_corpus_counts *counts, const hw_config *run, const char *directory, hw_error *err);
bool hw_bundle_copy_corpus(const char *from, const char *directory, hw_error *err);
int64_t hw_bundle_longest_source(const char *directory);

/* DIRECTORY/NAME into path. A directory so long that it does not fit is an error. */
bool hw_bundle_path(char path[HW_PATH], const char *directory, const char *name, hw_error *err);

#endif
