/* Inside layer 6: the model that a tokenizer of the kind `sentencepiece` has. */
#ifndef HW_TEXT_SENTENCEPIECE_H
#define HW_TEXT_SENTENCEPIECE_H

#include <headwise/text.h>

#include "text/sentencepiece_shim.h"

typedef struct hw_sentencepiece {
    hw_spm *spm;
    char *bytes; /* the .model file */
    size_t size;
} hw_sentencepiece;

hw_sentencepiece *hw_sentencepiece_load(const char *path, hw_error *err);
void hw_sentencepiece_free(hw_sentencepiece *model); /* NULL is fine */

#endif
