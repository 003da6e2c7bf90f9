/* Unknown words in translations. */
#ifndef HW_DECODE_UNKNOWN_H
#define HW_DECODE_UNKNOWN_H

#include "decode/runner.h"

/* For every token of a hypothesis the token of the source, from 0, that was attended most when it was predicted, </s>
 * not counted: by the mean of the heads of the last layer's cross-attention and of the networks. -> [count][length], in
 * the arena. No source is empty. */
const int64_t *const *hw_most_attended(int networks, hw_runner *const *runners, int64_t count, const hw_ids *sources,
                                       const hw_ids *hypotheses, hw_arena *arena);

#endif
