/* The network against PyTorch: what scripts/make_parity_fixtures.py computed in double precision for three small
 * models, a batch of sentences of very different lengths. Forward pass, attention of one sentence, every gradient,
 * three steps of the optimizer. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include <headwise/train.h>

Suite *test_parity(void);

static const char *const case_names[] = {"post_relu_all", "pre_gelu_output", "post_swish_none"};

/* float within 1e-5 max(1, |ref|), double within 1e-10 */
static const double tolerance = sizeof(hw_real) == 8 ? 1e-10 : 1e-5;

typedef struct fixture {
    json_t *json;
    hw_safetensors *expected;
    hw_arena *arena;
    hw_transformer *model;
    hw_batch *batch;
} fixture;

static int64_t integer(const fixture *f, const char *key) { return json_integer_value(json_object_get(f->json, key)); }
static const char *string(const fixture *f, const char *key)
{
    return json_string_value(json_object_get(f->json, key));
}

static int choice(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(word, words[i])) return i;
    ck_abort_msg("the fixture says %s", word);
}

static hw_transformer_options options_of(const fixture *f)
{
    static const char *const activations[] = {"identity", "relu", "gelu", "swish", NULL}, *const tying[] = {
                                                                                              "all", "output", "none",
                                                                                              NULL};
    return (hw_transformer_options){
        .encoder_layers = integer(f, "encoder_layers"),
        .decoder_layers = integer(f, "decoder_layers"),
        .width = integer(f, "width"),
        .heads = integer(f, "heads"),
        .feed_forward = integer(f, "feed_forward"),
        .source_vocabulary = integer(f, "source_vocabulary"),
        .target_vocabulary = integer(f, "target_vocabulary"),
        .activation = (hw_activation)choice(string(f, "activation"), activations),
        .pre_norm = !strcmp(string(f, "norm"), "pre"),
        .tied = (hw_tying)choice(string(f, "tied_embeddings"), tying),
    };
}

static void read_weights(const fixture *f, const char *name)
{
    char path[256];
    hw_error err;
    snprintf(path, sizeof path, "tests/fixtures/parity/%s/weights.safetensors", name);
    hw_safetensors *file = hw_safetensors_open(path, &err);
    ck_assert_msg(file, "%s", err.message);
    ck_assert_int_eq(hw_safetensors_count(file), hw_parameters_count(f->model->parameters));
    for (int i = 0; i < hw_parameters_count(f->model->parameters); i++) {
        hw_parameter *p = hw_parameters_at(f->model->parameters, i);
        ck_assert_msg(
            hw_safetensors_read(file, p->name, HW_DTYPE_REAL, p->tensor.rank, p->tensor.shape, p->tensor.data, &err),
            "%s", err.message);
    }
    hw_safetensors_close(file);
    hw_parameters_pack(f->model->parameters);
}

/* The words of a side, without the special tokens around them. */
static hw_ids words(const fixture *f, const char *side, int64_t b, int64_t skip_first)
{
    json_t *line = json_array_get(json_object_get(f->json, side), (size_t)b);
    int64_t count = (int64_t)json_array_size(line) - 1 - skip_first;
    int32_t *ids = hw_arena_alloc(f->arena, (size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)json_integer_value(json_array_get(line, (size_t)(i + skip_first)));
    return (hw_ids){ids, count};
}

static fixture load(int i)
{
    fixture f = {.arena = hw_arena_new(0)};
    char path[256];
    hw_error err;
    json_error_t why;
    snprintf(path, sizeof path, "tests/fixtures/parity/%s/case.json", case_names[i]);
    f.json = json_load_file(path, 0, &why);
    ck_assert_msg(f.json, "%s: %s", path, why.text);
    snprintf(path, sizeof path, "tests/fixtures/parity/%s/expected.safetensors", case_names[i]);
    f.expected = hw_safetensors_open(path, &err);
    ck_assert_msg(f.expected, "%s", err.message);
    hw_transformer_options o = options_of(&f);
    f.model = hw_transformer_new(&o, true, &err);
    ck_assert_msg(f.model, "%s", err.message);
    read_weights(&f, case_names[i]);
    int64_t sentences = (int64_t)json_array_size(json_object_get(f.json, "source"));
    hw_ids sources[16], targets[16];
    int64_t lines[16];
    for (int64_t b = 0; b < sentences; b++) {
        sources[b] = words(&f, "source", b, 0);
        targets[b] = words(&f, "target", b, 1);
        lines[b] = b + 1;
    }
    f.batch = hw_batch_new(f.arena, sentences, sources, targets, lines);
    return f;
}

static void unload(fixture *f)
{
    json_decref(f->json);
    hw_safetensors_close(f->expected);
    hw_transformer_free(f->model);
    hw_arena_free(f->arena);
}

static void same(const fixture *f, const char *name, const hw_real *got, int64_t size)
{
    const hw_stored *want = hw_safetensors_find(f->expected, name);
    ck_assert_msg(want, "the fixture has no %s", name);
    int64_t numbers = 1;
    for (int i = 0; i < want->rank; i++) numbers *= want->shape[i];
    ck_assert_msg(numbers == size, "%s: %lld numbers, %lld expected", name, (long long)size, (long long)numbers);
    for (int64_t i = 0; i < size; i++) {
        double w;
        memcpy(&w, (const char *)want->data + i * 8, 8);
        ck_assert_msg(fabs((double)got[i] - w) <= tolerance * fmax(1, fabs(w)), "%s[%lld] is %.12g, %.12g expected",
                      name, (long long)i, (double)got[i], w);
    }
}

static hw_token_rows source_rows(const hw_batch *b)
{
    return (hw_token_rows){b->source_rows, b->source_ids, b->source, 0, NULL};
}
static hw_token_rows target_rows(const hw_batch *b)
{
    return (hw_token_rows){b->target_rows, b->target_in, b->target, 0, NULL};
}

/* Attention of one sentence, as [H][n][m], against the fixture's. */
static void same_attention(const fixture *f, const hw_recorded *r, int64_t heads)
{
    int64_t sentence = integer(f, "traced_sentence"), at = 0;
    for (int64_t b = 0; b < sentence; b++) at += heads * r->queries.length[b] * r->keys.length[b];
    same(f, r->name, r->weights->data + at, heads * r->queries.length[sentence] * r->keys.length[sentence]);
}

START_TEST(forward_equals)
{
    fixture f = load(_i);
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_INFERENCE);
    hw_recorded entries[16];
    hw_recorder recorder = {.weights = true, .entries = entries};
    hw_pass pass = {.tape = t, .recorder = &recorder};
    hw_token_rows source = source_rows(f.batch), target = target_rows(f.batch);
    hw_tensor *encoded = hw_encode(&pass, f.model, &source);
    hw_tensor *decoded =
        hw_decode(&pass, f.model, &target, hw_cross_keys_values(&pass, f.model, encoded), f.batch->source, NULL);
    hw_tensor *log_probs = hw_log_softmax(t, hw_logits(&pass, f.model, decoded));
    same(&f, "encoder_output", encoded->data, hw_tensor_size(encoded));
    same(&f, "decoder_output", decoded->data, hw_tensor_size(decoded));
    same(&f, "log_probs", log_probs->data, hw_tensor_size(log_probs));
    for (int a = 0; a < f.model->attentions; a++) same_attention(&f, &entries[a], f.model->options.heads);
    hw_tape_free(t);
    unload(&f);
}
END_TEST

static hw_tensor *loss_of(hw_tape *t, const fixture *f, hw_loss_count *count)
{
    hw_pass pass = {.tape = t};
    hw_token_rows source = source_rows(f->batch), target = target_rows(f->batch);
    hw_real smoothing = (hw_real)json_real_value(json_object_get(f->json, "label_smoothing"));
    return hw_transformer_loss(&pass, f->model, &source, &target, f->batch->target_out, smoothing,
                               (hw_real)(1 / (double)f->batch->target_rows), count, NULL);
}

START_TEST(gradients_equal)
{
    fixture f = load(_i);
    hw_tape *t = hw_tape_new();
    hw_tape_reset(t, HW_GRADIENTS);
    hw_tensor *loss = loss_of(t, &f, NULL);
    hw_backward(t, loss, 1);
    same(&f, "loss", loss->data, 1);
    for (int i = 0; i < hw_parameters_count(f.model->parameters); i++) {
        const hw_parameter *p = hw_parameters_at(f.model->parameters, i);
        char name[300];
        snprintf(name, sizeof name, "grad.%s", p->name);
        same(&f, name, p->tensor.grad, hw_tensor_size(&p->tensor));
    }
    hw_tape_free(t);
    unload(&f);
}
END_TEST

/* The same numbers whatever the cuts: one shard, or three with tiny micro-batches. */
static void three_steps(int i, int shards, int micro_batch)
{
    fixture f = load(i);
    hw_config *c = hw_config_new(f.arena);
    json_t *o = json_object_get(f.json, "optimizer");
    c->training.optimizer = !strcmp(json_string_value(json_object_get(o, "name")), "adamw") ? HW_ADAMW : HW_ADAM;
    c->training.learning_rate = json_number_value(json_object_get(o, "learning_rate"));
    c->training.beta1 = json_number_value(json_object_get(o, "beta1"));
    c->training.beta2 = json_number_value(json_object_get(o, "beta2"));
    c->training.epsilon = json_number_value(json_object_get(o, "epsilon"));
    c->training.weight_decay = json_number_value(json_object_get(o, "weight_decay"));
    c->training.clip_norm = json_number_value(json_object_get(o, "clip_norm"));
    c->training.label_smoothing = json_real_value(json_object_get(f.json, "label_smoothing"));
    c->training.schedule = HW_SCHEDULE_CONSTANT;
    c->training.warmup_steps = 0;
    c->training.shards = shards;
    c->training.micro_batch_tokens = micro_batch;
    hw_trainer *trainer = hw_trainer_new(f.model, c);
    for (int step = 1; step <= 3; step++) {
        hw_trainer_step(trainer, f.batch);
        for (int k = 0; k < hw_parameters_count(f.model->parameters); k++) {
            const hw_parameter *p = hw_parameters_at(f.model->parameters, k);
            char name[300];
            snprintf(name, sizeof name, "step%d.%s", step, p->name);
            same(&f, name, p->tensor.data, hw_tensor_size(&p->tensor));
        }
    }
    hw_trainer_free(trainer);
    unload(&f);
}

START_TEST(steps_equal)
{
    if (sizeof(hw_real) < 8) return; /* Adam divides gradients near 0 by their own size: only double has the digits */
    three_steps(_i, 1, 0);
    three_steps(_i, 3, 4);
}
END_TEST

START_TEST(batch_is_the_sum_of_its_sentences)
{
    fixture f = load(_i);
    hw_tape *t = hw_tape_new();
    hw_loss_count whole = {0}, parts = {0};
    hw_tape_reset(t, HW_INFERENCE);
    loss_of(t, &f, &whole);
    int64_t count;
    hw_batch *all = f.batch, *each = hw_batch_micro(f.arena, all, 1, &count);
    ck_assert_int_eq(count, all->sentences);
    for (int64_t b = 0; b < count; b++) {
        f.batch = &each[b];
        hw_tape_reset(t, HW_INFERENCE);
        loss_of(t, &f, &parts);
    }
    ck_assert_int_eq(whole.tokens, parts.tokens);
    ck_assert_int_eq(whole.correct, parts.correct);
    ck_assert_double_eq_tol(whole.loss, parts.loss, 1e-12 * fabs(whole.loss) * 10);
    hw_tape_free(t);
    unload(&f);
}
END_TEST

Suite *test_parity(void)
{
    Suite *s = suite_create("parity");
    TCase *tc = tcase_create("parity");
    int cases = sizeof case_names / sizeof *case_names;
    tcase_add_loop_test(tc, forward_equals, 0, cases);
    tcase_add_loop_test(tc, gradients_equal, 0, cases);
    tcase_add_loop_test(tc, steps_equal, 0, cases);
    tcase_add_loop_test(tc, batch_is_the_sum_of_its_sentences, 0, cases);
    suite_add_tcase(s, tc);
    return s;
}
