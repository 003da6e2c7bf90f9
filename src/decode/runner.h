/* What the files of this folder share: a runner's workers, one a thread. */
#ifndef HW_DECODE_RUNNER_H
#define HW_DECODE_RUNNER_H

#include <headwise/decode.h>

/* What one thread needs to run the network. */
typedef struct hw_worker {
    hw_tape *tape;
    hw_arena *batch;   /* as long as one batch */
    hw_arena *results; /* until the next call of hw_search */
    hw_profile_entry *profile; /* NULL: nothing is measured */
    double parts[HW_SEARCH_PARTS];
} hw_worker;

const hw_transformer *hw_runner_network(const hw_runner *r);
const hw_head_setting *hw_runner_head_settings(const hw_runner *r);
/* Finds the likeliest token; made from the weights as they are by hw_runner_make_screen, outside hw_parallel. NULL: there
 * is none. */
void hw_runner_make_screen(hw_runner *r);
const hw_screen *hw_runner_screen(const hw_runner *r);
double hw_worker_clock(const hw_worker *w); /* seconds; 0 where nothing is measured */
hw_worker *hw_runner_worker(hw_runner *r); /* the calling thread's */
hw_arena *hw_runner_begin_results(hw_runner *r); /* forgets the last results; the caller's own arena for new ones */

#endif
