/* The cached state of a batch being decoded: keys and values of its sources, and of what each hypothesis has been fed
 * so far. */
#ifndef HW_DECODE_STATE_H
#define HW_DECODE_STATE_H

#include "decode/runner.h"

/* A hypothesis as the state knows it. */
typedef struct hw_state_row {
    int64_t sentence;
    int64_t from; /* the row of the step before that it goes on from; any before the first step */
    int32_t id;   /* the token it is fed next */
} hw_state_row;

/* All rows have been fed the same number of tokens. */
typedef struct hw_state {
    const hw_transformer *network;
    const hw_head_setting *settings;
    hw_recorder *recorder; /* of every step; NULL: nothing is recorded */
    hw_worker *worker;     /* its batch arena holds the state */
    hw_segments sources;   /* rows of cross */
    hw_tensor cross;       /* [source rows, C] */
    hw_layer_cache *cache; /* [decoder layers] */
    int64_t room, used;    /* rows of the cache of every layer */
    int64_t most, fed;     /* rows at a time; tokens of each */
    int64_t stride;        /* tokens there is room for */
    int32_t *past, *next;  /* [most, stride] where each row's keys and values lie in the cache; and those to come */
    hw_state_row *rows;    /* [count] */
    int64_t count;
} hw_state;

/* Encodes the sources; there are no rows yet. At most `most` at a time will be there. */
void hw_state_begin(hw_state *s, const hw_runner *r, hw_worker *worker, int64_t count, const hw_ids *sources,
                    int64_t most);

/* Feeds every row its token -> [rows, D], the decoder's output; it lives on the worker's tape until the next step. */
hw_tensor *hw_state_step(hw_state *s);

/* Takes new rows, at most as many as was said. Several may go on from one. */
void hw_state_continue(hw_state *s, const hw_state_row *rows, int64_t count);

#endif
