/* The model directory: what is saved loads again and translates the same; a directory whose parts do not belong
 * together is refused, with the exact message. Each faulty directory is one row: what is done to a good one, and what
 * is said. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <headwise/decode.h>

#include "support_files.h"
#include "support_model.h"

static hw_arena *arena;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
}

static hw_bundle *make(const char *settings)
{
    return tiny_bundle(arena, tiny_config(arena, settings), "the cat \" # bo@@ \xc2\xa0", "le chat bo@@ ra ra@@");
}

/* ---- round trip -------------------------------------------------------------------------------------------------- */

static const char *const kinds[] = {
    "",
    "text.shared_vocabulary=true;model.tied_embeddings=all",
    "model.tied_embeddings=none;model.norm=pre;model.activation=swish",
    "model.removed_heads=encoder.1.self.0,decoder.0.cross.1",
};
enum { KINDS = sizeof kinds / sizeof *kinds };

START_TEST(a_saved_model_loads_the_same)
{
    hw_error err = {""};
    hw_bundle *made = make(kinds[_i]);
    const char *directory = scratch_path("a/model");
    save_bundle(made, directory);
    hw_bundle *read = hw_bundle_load(hw_arena_string(arena, "%s//", directory), &err);
    ck_assert_msg(read != NULL, "%s", err.message);
    ck_assert_int_eq(hw_config_differences(made->config, read->config, arena).count, 0);
    ck_assert_uint_eq(hw_vocabulary_fingerprint(made->source_vocabulary),
                      hw_vocabulary_fingerprint(read->source_vocabulary));
    ck_assert_uint_eq(hw_vocabulary_fingerprint(made->target_vocabulary),
                      hw_vocabulary_fingerprint(read->target_vocabulary));
    ck_assert((read->source_vocabulary == read->target_vocabulary) == (_i == 1));
    const hw_parameters *a = made->network->parameters, *b = read->network->parameters;
    ck_assert_int_eq(hw_parameters_numbers(a), hw_parameters_numbers(b));
    ck_assert(
        !memcmp(hw_parameters_values(a), hw_parameters_values(b), (size_t)hw_parameters_numbers(a) * sizeof(hw_real)));
    const hw_packed *x = made->network->output_weight->packed, *y = read->network->output_weight->packed;
    ck_assert(!memcmp(x->panels, y->panels, (size_t)hw_packed_size(x->outputs, x->inputs) * sizeof(hw_real)));
    ck_assert_str_eq(hw_bundle_source(read).suffix, "en");
    ck_assert_ptr_eq(hw_bundle_target(read).vocabulary, read->target_vocabulary);
    hw_bundle_free(made);
    hw_bundle_free(read);
}
END_TEST

/* The gain of attention is for the initial weights of queries, keys and values, and for no others. */
START_TEST(attention_begins_with_its_gain)
{
    hw_bundle *plain = make(""), *half = make("training.attention_gain=0.5");
    hw_parameters *a = plain->network->parameters, *b = half->network->parameters;
    hw_parameters_initialise(a, 1);
    hw_parameters_initialise(b, 1);
    int scaled = 0;
    for (int i = 0; i < hw_parameters_count(a); i++) {
        const hw_parameter *x = hw_parameters_at(a, i), *y = hw_parameters_at(b, i);
        bool projects = x->tensor.rank == 2 &&
                        (strstr(x->name, ".query.") || strstr(x->name, ".key.") || strstr(x->name, ".value."));
        scaled += projects;
        for (int64_t k = 0; k < hw_tensor_size(&x->tensor); k++)
            ck_assert_msg(y->tensor.data[k] == (projects ? x->tensor.data[k] / 2 : x->tensor.data[k]), "%s", x->name);
    }
    ck_assert_int_eq(scaled, 3 * plain->network->attentions);
    hw_bundle_free(plain);
    hw_bundle_free(half);
}
END_TEST

/* Weights that are packed are given back, also those that are embeddings at the same time, and nothing else changes. */
START_TEST(a_settled_model_computes_the_same)
{
    hw_error err;
    const char *directory = scratch_path("settled");
    hw_config *config = tiny_config(arena, kinds[_i]);
    config->model.width = 64;
    hw_bundle *made = tiny_bundle(arena, config, "the cat \" # bo@@ \xc2\xa0", "le chat bo@@ ra ra@@");
    save_bundle(made, directory);
    hw_bundle_free(made);
    hw_bundle *whole = hw_bundle_load(directory, &err), *settled = hw_bundle_load_settled(directory, &err);
    ck_assert(whole && settled);
    enum { PAIRS = 20 };
    hw_ids *sources = random_sentences(arena, PAIRS, 0, 9, 8, 1), *targets = random_sentences(arena, PAIRS, 0, 9, 8, 2);
    hw_runner *a = hw_runner_new(whole->network), *b = hw_runner_new(settled->network);
    hw_loss_count x = hw_score_pairs(a, PAIRS, sources, targets, 0, NULL),
                  y = hw_score_pairs(b, PAIRS, sources, targets, 0, NULL);
    ck_assert(x.nll == y.nll && x.correct == y.correct);
    ck_assert_ptr_null(
        hw_parameters_find(settled->network->parameters, "encoder.0.self_attention.key.weight")->tensor.data);
    ck_assert_ptr_null(settled->network->output_weight->data);
    hw_runner_free(a);
    hw_runner_free(b);
    hw_bundle_free(whole);
    hw_bundle_free(settled);
}
END_TEST

/* Values other than the network's own (an average) go by the same layout. */
START_TEST(other_values_can_be_saved)
{
    hw_error err = {""};
    hw_bundle *b = make("");
    const char *directory = scratch_path("m");
    save_bundle(b, directory);
    int64_t numbers = hw_parameters_numbers(b->network->parameters);
    hw_real *values = hw_arena_alloc(arena, (size_t)numbers * sizeof *values);
    for (int64_t i = 0; i < numbers; i++) values[i] = 2 * hw_parameters_values(b->network->parameters)[i];
    ck_assert(hw_bundle_save_model(b->network, values, directory, &err));
    ck_assert(hw_bundle_load_model(b->network, scratch_path("m/model.safetensors"), &err));
    ck_assert(!memcmp(values, hw_parameters_values(b->network->parameters), (size_t)numbers * sizeof *values));
    hw_bundle_free(b);
}
END_TEST

/* A directory by another program may leave text.shared_vocabulary out: the files tell. */
START_TEST(the_files_tell_whether_the_vocabulary_is_shared)
{
    hw_error err = {""};
    hw_bundle *b = make(kinds[1]);
    save_bundle(b, scratch_path("m"));
    scratch_text("m/config.yaml",
                 "model: {encoder_layers: 2, decoder_layers: 2, width: 16, heads: 2, feed_forward: 32, "
                 "activation: relu, norm: post, tied_embeddings: all}\n");
    hw_bundle *read = hw_bundle_load(scratch_path("m"), &err);
    ck_assert_msg(read != NULL, "%s", err.message);
    ck_assert_ptr_eq(read->source_vocabulary, read->target_vocabulary);
    hw_bundle_free(b);
    hw_bundle_free(read);
}
END_TEST

/* ---- vocabularies from a corpus ---------------------------------------------------------------------------------- */

START_TEST(vocabularies_are_counted_from_the_training_set)
{
    hw_error err = {""};
    hw_texts t;
    scratch_text("train.en", "b a b\nc\n");
    scratch_text("train.fr", "x x\na\n");
    hw_config *c = tiny_config(arena, hw_arena_string(arena, "data.dir=%s", scratch_path("")));
    ck_assert_msg(hw_texts_new(c, arena, &t, &err), "%s", err.message);
    ck_assert_int_eq(hw_vocabulary_size(t.source_vocabulary), 6);
    ck_assert_int_eq(hw_vocabulary_find(t.source_vocabulary, "b", 1), 3);
    ck_assert_int_eq(hw_vocabulary_size(t.target_vocabulary), 5);
    hw_texts_free(&t);
    ck_assert(hw_config_set(c, "text.shared_vocabulary=true", &err) && hw_config_set(c, "text.min_count=2", &err));
    ck_assert(hw_texts_new(c, arena, &t, &err));
    ck_assert_ptr_eq(t.source_vocabulary, t.target_vocabulary);
    ck_assert_int_eq(hw_vocabulary_size(t.source_vocabulary), 6); /* a, b, x */
    hw_texts_free(&t);
    scratch_text("train.fr", " \n\n");
    ck_assert(!hw_texts_new(c, arena, &t, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s: there is no word in it to make a vocabulary of",
                                                  scratch_path("/train.fr")));
}
END_TEST

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void remove_file(const char *name) { ck_assert_int_eq(unlink(scratch_path(name)), 0); }
static void remove_config(void) { remove_file("m/config.yaml"); }
static void remove_model(void) { remove_file("m/model.safetensors"); }
static void remove_vocabulary(void) { remove_file("m/target.vocab"); }
static void longer_vocabulary(void) { scratch_text("m/source.vocab", "<unk>\n<s>\n</s>\na\nb\nc\nd\ne\nf\ng\n"); }
static void no_vocabulary(void) { scratch_text("m/source.vocab", "a\nb\n"); }

/* The model again, with something else in its list of tensors. */
static void rewrite(void (*change)(hw_stored *tensors, int *count, hw_metadata *metadata))
{
    hw_error err = {""};
    hw_safetensors *file = hw_safetensors_open(scratch_path("m/model.safetensors"), &err);
    ck_assert_msg(file != NULL, "%s", err.message);
    int count = hw_safetensors_count(file);
    hw_stored *tensors = hw_arena_calloc(arena, (size_t)count + 1, sizeof *tensors);
    for (int i = 0; i < count; i++) tensors[i] = *hw_safetensors_at(file, i);
    hw_metadata metadata = {"headwise_format", "1"};
    change(tensors, &count, &metadata);
    ck_assert(hw_safetensors_save(scratch_path("m/model.safetensors"), tensors, count, &metadata, 1, &err));
    hw_safetensors_close(file);
}

static void drop(hw_stored *tensors, int *count, hw_metadata *metadata)
{
    (void)metadata;
    for (int i = 0; i < *count; i++)
        if (!strcmp(tensors[i].name, "decoder.1.feed_forward.expand.bias")) tensors[i] = tensors[--*count];
}

static void extra(hw_stored *tensors, int *count, hw_metadata *metadata)
{
    (void)metadata;
    static const float number[1] = {1};
    tensors[(*count)++] = (hw_stored){
        .name = "encoder.2.feed_forward.expand.bias", .dtype = HW_F32, .rank = 1, .shape = {1}, .data = number};
}

static void turned(hw_stored *tensors, int *count, hw_metadata *metadata)
{
    (void)metadata;
    for (int i = 0; i < *count; i++)
        if (!strcmp(tensors[i].name, "encoder.0.feed_forward.expand.weight")) {
            tensors[i].shape[0] = 16;
            tensors[i].shape[1] = 32;
        }
}

static void integers(hw_stored *tensors, int *count, hw_metadata *metadata)
{
    (void)metadata;
    for (int i = 0; i < *count; i++)
        if (!strcmp(tensors[i].name, "output.bias")) tensors[i].dtype = sizeof(hw_real) == 4 ? HW_I32 : HW_I64;
}

static void later(hw_stored *tensors, int *count, hw_metadata *metadata)
{
    (void)tensors, (void)count;
    metadata->value = "2";
}

static void strange(hw_stored *tensors, int *count, hw_metadata *metadata)
{
    (void)tensors, (void)count;
    metadata->value = "new";
}

static void drop_tensor(void) { rewrite(drop); }
static void add_tensor(void) { rewrite(extra); }
static void turn_tensor(void) { rewrite(turned); }
static void change_dtype(void) { rewrite(integers); }
static void later_format(void) { rewrite(later); }
static void strange_format(void) { rewrite(strange); }
static void not_safetensors(void) { scratch_text("m/model.safetensors", "PK"); }

static void change_config(void)
{
    hw_error err = {""};
    hw_config *c = hw_config_load(arena, scratch_path("m/config.yaml"), &err);
    ck_assert(c && hw_config_set(c, "model.feed_forward=48", &err) &&
              hw_config_save(c, scratch_path("m/config.yaml"), &err));
}

/* %s: the directory. */
static const struct {
    void (*fault)(void);
    const char *message;
} faults[] = {
    {remove_config, "%s/m: it is no model directory, there is no config.yaml in it"},
    {remove_model, "%s/m: there is no model.safetensors in it; the model is not trained yet"},
    {remove_vocabulary, "%s/m/target.vocab: cannot be read: No such file or directory"},
    {longer_vocabulary,
     "%s/m/source.vocab has 10 tokens, but source_embedding.weight has 9 rows in %s/m/model.safetensors; the "
     "two do not belong together"},
    {no_vocabulary, NULL},
    {drop_tensor,
     "%s/m/model.safetensors: tensor decoder.1.feed_forward.expand.bias is missing; the configuration beside it "
     "describes a network that has it"},
    {add_tensor,
     "%s/m/model.safetensors: tensor encoder.2.feed_forward.expand.bias is one too many; the configuration beside "
     "it describes a network without it"},
    {turn_tensor,
     "%s/m/model.safetensors: tensor encoder.0.feed_forward.expand.weight: shape [32, 16] expected, but the file "
     "has [16, 32]"},
    {change_config,
     "%s/m/model.safetensors: tensor encoder.0.feed_forward.expand.weight: shape [48, 16] expected, but the file "
     "has [32, 16]"},
    {change_dtype, NULL},
    {later_format, "%s/m/model.safetensors: written by a later version of Headwise (format 2); headwise " HW_VERSION
                   " reads formats up to 1, update it"},
    {strange_format,
     "%s/m/model.safetensors: headwise_format is \"new\" in its metadata, a number from 1 was expected"},
    {not_safetensors, NULL},
};
enum { FAULTS = sizeof faults / sizeof *faults };

START_TEST(a_faulty_directory_is_refused)
{
    hw_error err = {""};
    hw_bundle *b = make("");
    save_bundle(b, scratch_path("m"));
    hw_bundle_free(b);
    faults[_i].fault();
    ck_assert_ptr_null(hw_bundle_load(scratch_path("m"), &err));
    const char *root = hw_arena_string(arena, "%.*s", (int)strlen(scratch_path("m")) - 2, scratch_path("m"));
    if (faults[_i].message) { /* the directory stands there once or twice */
        char expected[1024];
        const char *from = faults[_i].message;
        size_t size = 0;
        for (; *from; from++) {
            if (from[0] == '%')
                size += (size_t)snprintf(expected + size, sizeof expected - size, "%s", root), from++;
            else
                expected[size++] = *from;
        }
        expected[size] = 0;
        ck_assert_str_eq(err.message, expected);
    } else {
        ck_assert_ptr_nonnull(strstr(err.message, root));
    }
}
END_TEST

START_TEST(what_memory_cannot_hold_is_refused_before)
{
    hw_error err = {""};
    const char *settings = "model.width=65536;model.encoder_layers=256;model.feed_forward=1048576";
    hw_bundle *small = make("");
    hw_texts texts = hw_bundle_texts(small);
    ck_assert_ptr_null(hw_bundle_new(tiny_config(arena, settings), &texts, true, &err));
    ck_assert_msg(!strncmp(err.message, "the network has 3.99e+13 parameters and", 39) &&
                      strstr(err.message, "GiB of memory; make"),
                  "%s", err.message);
    hw_bundle_free(small);
}
END_TEST

START_TEST(what_is_no_directory_is_refused)
{
    hw_error err = {""};
    const char *nothing = scratch_path("nothing"), *file = scratch_text("file", "x");
    ck_assert_ptr_null(hw_bundle_load(nothing, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena, "%s: there is no such model directory", nothing));
    ck_assert_ptr_null(hw_bundle_load(file, &err));
    ck_assert_str_eq(err.message, hw_arena_string(arena,
                                                  "%s: it is a file; a model is a directory with config.yaml, "
                                                  "vocabularies and model.safetensors",
                                                  file));
    char *deep = hw_arena_alloc(arena, 6000), path[HW_PATH];
    memset(deep, 'a', 5999);
    deep[5999] = 0;
    ck_assert_ptr_null(hw_bundle_load(deep, &err));
    ck_assert(!hw_bundle_path(path, deep, "x", &err));
    ck_assert(hw_bundle_path(path, "a//", "x", &err) && !strcmp(path, "a/x"));
}
END_TEST

Suite *test_bundle(void);
Suite *test_bundle(void)
{
    Suite *s = suite_create("bundle");
    TCase *c = tcase_create("bundle");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_loop_test(c, a_saved_model_loads_the_same, 0, KINDS);
    tcase_add_test(c, attention_begins_with_its_gain);
    tcase_add_loop_test(c, a_settled_model_computes_the_same, 0, KINDS);
    tcase_add_test(c, other_values_can_be_saved);
    tcase_add_test(c, the_files_tell_whether_the_vocabulary_is_shared);
    tcase_add_test(c, vocabularies_are_counted_from_the_training_set);
    tcase_add_loop_test(c, a_faulty_directory_is_refused, 0, FAULTS);
    tcase_add_test(c, what_memory_cannot_hold_is_refused_before);
    tcase_add_test(c, what_is_no_directory_is_refused);
    suite_add_tcase(s, c);
    return s;
}
