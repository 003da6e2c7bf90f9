#include "support_model.h"

#include "support_text.h"

#include <check.h>
#include <string.h>

static const char *const removed[] = {"decoder.0.self.1", "decoder.1.cross.0", "encoder.0.self.0"};

static const hw_transformer_options kinds[SMALL_NETWORKS] = {
    {.encoder_layers = 2,
     .decoder_layers = 2,
     .width = 16,
     .heads = 2,
     .feed_forward = 40,
     .activation = HW_RELU,
     .tied = HW_TIED_ALL},
    {.encoder_layers = 1,
     .decoder_layers = 2,
     .width = 24,
     .heads = 3,
     .feed_forward = 32,
     .activation = HW_GELU,
     .pre_norm = true,
     .tied = HW_TIED_NONE,
     .removed_heads = removed,
     .removed_count = 3},
    {.encoder_layers = 1,
     .decoder_layers = 1,
     .width = 64,
     .heads = 4,
     .feed_forward = 256,
     .activation = HW_SWISH,
     .tied = HW_TIED_OUTPUT},
};

/* Initial biases are zero and logits even; a network that is used has neither. */
static void enliven(hw_transformer *m, uint64_t seed)
{
    hw_random random = hw_random_new(seed, 7);
    for (int i = 0; i < hw_parameters_count(m->parameters); i++) {
        hw_tensor *x = &hw_parameters_at(m->parameters, i)->tensor;
        for (int64_t j = 0; j < hw_tensor_size(x); j++)
            x->data[j] = (hw_real)((double)x->data[j] * 1.5 + 0.1 * hw_random_normal(&random));
    }
    hw_parameters_pack(m->parameters);
}

hw_transformer *small_network(int i, int64_t vocabulary, uint64_t seed)
{
    hw_error err = {""};
    hw_transformer_options o = kinds[i];
    o.source_vocabulary = o.target_vocabulary = vocabulary;
    hw_transformer *m = hw_transformer_new(&o, false, &err);
    ck_assert_msg(m != NULL, "%s", err.message);
    hw_parameters_initialise(m->parameters, seed);
    enliven(m, seed);
    return m;
}

void favour(hw_transformer *m, int32_t id, double by) { m->output_bias->data[id] += (hw_real)by; }

hw_ids *random_sentences(hw_arena *arena, int64_t count, int64_t low, int64_t high, int64_t vocabulary, uint64_t seed)
{
    hw_random random = hw_random_new(seed, 3);
    hw_ids *out = hw_arena_alloc(arena, (size_t)count * sizeof *out);
    for (int64_t i = 0; i < count; i++) {
        int64_t length = low + (int64_t)hw_random_below(&random, (uint64_t)(high - low + 1));
        int32_t *ids = hw_arena_alloc(arena, (size_t)length * sizeof *ids);
        for (int64_t t = 0; t < length; t++)
            ids[t] = HW_SPECIALS + (int32_t)hw_random_below(&random, (uint64_t)(vocabulary - HW_SPECIALS));
        out[i] = (hw_ids){ids, length};
    }
    return out;
}

hw_config *tiny_config(hw_arena *arena, const char *settings)
{
    static const char *const tiny[] = {
        "model.encoder_layers=2", "model.decoder_layers=2", "model.width=16",          "model.heads=2",
        "model.feed_forward=32",  "text.joiner=@@ ",        "training.max_steps=5000",
    };
    hw_error err = {""};
    hw_config *c = hw_config_new(arena);
    for (size_t i = 0; i < sizeof tiny / sizeof *tiny; i++)
        ck_assert_msg(hw_config_set(c, tiny[i], &err), "%s", err.message);
    char *copy = hw_arena_string(arena, "%s", settings), *place;
    for (char *s = strtok_r(copy, ";", &place); s; s = strtok_r(NULL, ";", &place))
        ck_assert_msg(hw_config_set(c, s, &err), "%s", err.message);
    ck_assert_msg(hw_config_check(c, NULL, &err), "%s", err.message);
    return c;
}

hw_bundle *tiny_bundle(hw_arena *arena, const hw_config *config, const char *source_words, const char *target_words)
{
    hw_error err = {""};
    hw_texts texts;
    texts.source_vocabulary = texts.target_vocabulary = vocabulary_of(arena, source_words);
    texts.source_tokenizer = tokenizer_of(config->text.tokenizer, config->text.joiner);
    texts.target_tokenizer = hw_tokenizer_share(texts.source_tokenizer);
    if (!config->text.shared_vocabulary) texts.target_vocabulary = vocabulary_of(arena, target_words);
    hw_bundle *b = hw_bundle_new(config, &texts, false, &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_parameters_initialise(b->network->parameters, 5);
    enliven(b->network, 5);
    return b;
}

void save_bundle(const hw_bundle *bundle, const char *directory)
{
    hw_error err = {""};
    ck_assert_msg(hw_bundle_save_texts(bundle, directory, &err), "%s", err.message);
    ck_assert_msg(hw_bundle_save_model(bundle->network, NULL, directory, &err), "%s", err.message);
}
