/* Inside layer 10: what the files diversity*.c share beside headwise/heads.h. */
#ifndef HW_HEADS_DIVERSITY_H
#define HW_HEADS_DIVERSITY_H

#include <headwise/heads.h>

/* sum m log2 m with m = (p + q) / 2; with q = p that is minus the entropy of p in bits. */
double hw_negative_entropy(const double *p, const double *q, int64_t n);

/* The name of a kind of attention in options and results: "encoder", "decoder", "cross". */
const char *hw_kind_name(hw_attention_kind kind);
/* From a head's name: "encoder.0.self.2", "decoder.1.cross.0". */
hw_attention_kind hw_head_kind_of(const char *name);

#endif
