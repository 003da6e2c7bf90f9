/* For the tests of ablation, importance and pruning: a network wired by hand, in which it is known what every head does
 * and which ones are needed.
 *
 * It translates "b c a ." as "b b c a": the first word, then every word one step late, and ends after the full stop.
 * encoder.0.self.0 brings each word to its right neighbour, decoder.0.cross.0 reads straight across; without either
 * nothing is known about the next word. encoder.0.self.2 is uniform and adds a little noise, encoder.0.self.3 takes a
 * little of what head 0 brings away. All other heads do nothing. */
#ifndef HW_TESTS_SUPPORT_WIRED_H
#define HW_TESTS_SUPPORT_WIRED_H

#include <headwise/bundle.h>

enum { WIRED_HEADS = 4 };

/* The network with its words and, as DIRECTORY/test and valid, sentences that it translates; saved as
 * DIRECTORY/model, whose path is in config->training.model_dir. Lives as long as the arena; the caller frees it. */
hw_bundle *wired_bundle(hw_arena *arena, const char *directory, int sentences);

#endif
