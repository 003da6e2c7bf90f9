/* The file model.safetensors, for the files of this folder. */
#ifndef HW_BUNDLE_MODEL_FILE_H
#define HW_BUNDLE_MODEL_FILE_H

#include <headwise/bundle.h>

/* A vocabulary and the matrix whose rows are its tokens. */
typedef struct hw_vocabulary_fit {
    const char *vocabulary; /* "source.vocab" */
    const char *tensor;     /* "source_embedding.weight" */
    int64_t tokens;
} hw_vocabulary_fit;

/* hw_bundle_load_model, but first those matrices are held against their vocabularies, for a message that names both.
 * settle: with hw_parameters_settle in place of _pack. */
bool hw_model_file_load(hw_transformer *network, const char *path, const hw_vocabulary_fit *fits, int count,
                        bool settle, hw_error *err);

#endif
