/* Inside layer 6: which pairs of a corpus are not wanted. */
#ifndef HW_TEXT_FILTER_H
#define HW_TEXT_FILTER_H

#include <headwise/text.h>

#include "text/store.h"

/* One side of a pair. */
typedef struct hw_filter_side {
    const char *line;
    size_t bytes;
    int64_t tokens;
} hw_filter_side;

typedef struct hw_filter {
    const hw_corpus_options *options;
    hw_store_place place;
    hw_store seen; /* [slots] hashes of the pairs kept so far; 0: free */
    int64_t count, slots, lines;
    hw_too_long too_long;
} hw_filter;

/* Why the pair is not wanted, or HW_DROPS, into *drop. False where there is no memory left to remember pairs. */
bool hw_filter_pair(hw_filter *f, const hw_filter_side *source, const hw_filter_side *target, hw_drop *drop,
                    hw_error *err);
void hw_filter_clear(hw_filter *f);

#endif
