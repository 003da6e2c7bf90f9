/* For the tests of layers 7 and 8 and of the commands that use a model: small networks with random weights, sentences
 * of random ids, and model directories made of both. */
#ifndef HW_TESTS_SUPPORT_MODEL_H
#define HW_TESTS_SUPPORT_MODEL_H

#include <headwise/bundle.h>

/* The networks that tests run: post- and pre-norm, tied or not, with a head removed. */
enum { SMALL_NETWORKS = 3 };
/* The i-th, with values drawn from the seed and made lively; the caller frees it. */
hw_transformer *small_network(int i, int64_t vocabulary, uint64_t seed);
/* Adds to the logit of a token whatever was decoded. */
void favour(hw_transformer *m, int32_t id, double by);

/* count sentences of low..high random words, in the arena. */
hw_ids *random_sentences(hw_arena *arena, int64_t count, int64_t low, int64_t high, int64_t vocabulary, uint64_t seed);

/* A configuration from "key=value" words separated by semicolons over those of a tiny model: 2 + 2 layers, 16 wide, 2
 * heads, word tokenizer with the joiner "@@ ". Lives in the arena. */
hw_config *tiny_config(hw_arena *arena, const char *settings);
/* A bundle with random weights for these words; config and vocabularies live in the arena, the caller frees it. */
hw_bundle *tiny_bundle(hw_arena *arena, const hw_config *config, const char *source_words, const char *target_words);
/* Saved as a model directory. */
void save_bundle(const hw_bundle *bundle, const char *directory);

#endif
