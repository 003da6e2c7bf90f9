/* The cached state of a batch being decoded: keys and values of its sources, and of what each hypothesis has been fed
 * so far. */
#ifndef HW_DECODE_STATE_H
#define HW_DECODE_STATE_H

#include "decode/runner.h"

/* A hypothesis as the state knows it. */
typedef struct hw_state_row {
    int64_t sentence;
    int64_t slot; /* where its keys and values lie */
    int32_t id;   /* the token it is fed next */
} hw_state_row;

/* All rows have been fed the same number of tokens. A slot is a run of `room` rows in the cache of every layer. */
typedef struct hw_state {
    const hw_transformer *network;
    const hw_head_setting *settings;
    hw_recorder *recorder; /* of every step; NULL: nothing is recorded */
    hw_worker *worker;     /* its batch arena holds the state */
    hw_segments sources;   /* rows of cross */
    hw_tensor cross;       /* [source rows, C] */
    hw_layer_cache *cache; /* [decoder layers] */
    int64_t slots, room, fed;
    hw_state_row *rows; /* [slots]; the caller fills the first */
    int64_t count;
} hw_state;

/* Encodes the sources; there are no rows yet. At most `slots` at a time will be there. */
void hw_state_begin(hw_state *s, const hw_runner *r, hw_worker *worker, int64_t count, const hw_ids *sources,
                    int64_t slots);

/* Feeds every row its token -> [rows, D], the decoder's output; it lives on the worker's tape until the next step. */
hw_tensor *hw_state_step(hw_state *s);

/* Takes new rows, count of them at most `slots`, each with the slot of the row that it goes on from. Rows that share
 * one get copies in slots that are free; slots are changed accordingly. */
void hw_state_continue(hw_state *s, const hw_state_row *rows, int64_t count);

#endif
