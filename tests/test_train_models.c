/* Layer 11: which weights a run leaves: the best, the last, averages, former ones; when it ends by itself; and runs
 * that begin with the weights of another. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <headwise/decode.h>

#include "support_files.h"
#include "support_train.h"

static hw_arena *arena;
static train_call call;

static void begin(void)
{
    arena = train_begin();
    call = (train_call){0};
}

/* ---- best, last, averages ---------------------------------------------------------------------------------------- */

static int64_t count; /* of the network's numbers */

/* All of them in a file, parameter after parameter. */
static double *numbers_of(const char *name)
{
    hw_error err;
    hw_bundle *b = hw_bundle_load(scratch_path("model"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_safetensors *file = hw_safetensors_open(scratch_path(name), &err);
    ck_assert_msg(file != NULL, "%s", err.message);
    double *all = hw_arena_alloc(arena, (size_t)hw_parameters_total(b->network->parameters) * sizeof *all), *at = all;
    for (int i = 0; i < hw_parameters_count(b->network->parameters); i++) {
        const hw_parameter *p = hw_parameters_at(b->network->parameters, i);
        ck_assert_msg(hw_safetensors_read(file, p->name, HW_F64, p->tensor.rank, p->tensor.shape, at, &err), "%s",
                      err.message);
        at += hw_tensor_size(&p->tensor);
    }
    count = at - all;
    hw_safetensors_close(file);
    hw_bundle_free(b);
    return all;
}

static void close_numbers(const double *a, const double *b, double tolerance)
{
    for (int64_t i = 0; i < count; i++) ck_assert_double_le(fabs(a[i] - b[i]), tolerance);
}

/* The weights after each step, from the files that keep_checkpoints left. */
static const double *weights_after(int64_t step)
{
    return numbers_of(hw_arena_string(arena, "model/checkpoints/step-%lld.safetensors", (long long)step));
}

#define EVERY_STEP                                                                                                     \
    "training.keep_checkpoints=100;training.save_every=1;training.max_steps=12;training.validate_every=0;"

START_TEST(moving_average)
{
    train_whole(train_config(arena, "model", EVERY_STEP "training.ema=0.7"), 2);
    double *expected = hw_arena_alloc(arena, sizeof(double) * 100000);
    for (int64_t n = 1; n <= 12; n++) {
        const double *weights = weights_after(n);
        double d = fmin(0.7, (double)(n - 1) / (double)(n + 8));
        for (int64_t i = 0; i < count; i++) expected[i] = n == 1 ? weights[i] : d * expected[i] + (1 - d) * weights[i];
    }
    close_numbers(numbers_of("model/model.safetensors"), expected, 1e-6);
    const double *last = weights_after(12);
    close_numbers(numbers_of("model/checkpoint.safetensors"), last, 0);
    double moved = 0;
    for (int64_t i = 0; i < count; i++) moved += fabs(expected[i] - last[i]) / (double)count;
    ck_assert_double_gt(moved, 1e-4);
}
END_TEST

START_TEST(average_of_the_last)
{
    static const struct {
        const char *settings;
        int64_t steps[3];
    } cases[] = {
        {"training.average=3;training.average_every=2", {8, 10, 12}},
        {"training.average=3;training.average_every=5", {5, 10, 12}}, /* the last step counts */
        {"training.average=2;training.average_every=100", {12, 12, 12}},
    };
    train_whole(train_config(arena, "model", hw_arena_string(arena, EVERY_STEP "%s", cases[_i].settings)), 2);
    const double *average = numbers_of("model/model.safetensors");
    double *expected = hw_arena_calloc(arena, (size_t)count, sizeof *expected);
    for (int k = 0; k < 3; k++) {
        const double *weights = weights_after(cases[_i].steps[k]);
        for (int64_t i = 0; i < count; i++) expected[i] += weights[i] / 3;
    }
    close_numbers(average, expected, 1e-7);
}
END_TEST

/* What is validated is the average: its loss stands in valid.tsv. */
START_TEST(averages_are_validated)
{
    hw_error err;
    train_whole(train_config(arena, "model", _i ? "training.average=3" : "training.ema=0.5"), 2);
    double best = INFINITY;
    int64_t best_step = 0;
    char *log = scratch_read(scratch_path("model/valid.tsv"), NULL);
    for (char *line = strchr(log, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        double loss = strtod(strchr(line, '\t'), NULL);
        if (loss < best) best_step = strtoll(line, NULL, 10);
        best = fmin(best, loss);
    }
    free(log);
    hw_bundle *b = hw_bundle_load(scratch_path("model"), &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_side source = hw_bundle_source(b), target = hw_bundle_target(b);
    hw_corpus *corpus = hw_corpus_load(scratch_path("data"), "valid", &source, &target, 0, &err);
    ck_assert(corpus != NULL);
    hw_runner *runner = hw_runner_new(b->network);
    hw_loss_count sums = hw_score_corpus(runner, corpus, 0, b->config->training.label_smoothing);
    ck_assert_double_eq_tol(sums.loss / (double)sums.tokens, best, 1e-6);
    ck_assert_int_gt(best_step, 0);
    hw_runner_free(runner);
    hw_corpus_free(corpus);
    hw_bundle_free(b);
}
END_TEST

START_TEST(kept_checkpoints)
{
    train_whole(train_config(arena, "model", "training.keep_checkpoints=3"), 1); /* every 5 steps and at the end, 23 */
    for (int64_t step = 1; step <= 23; step++) {
        bool there = hw_file_exists(
            scratch_path(hw_arena_string(arena, "model/checkpoints/step-%lld.safetensors", (long long)step)));
        ck_assert_msg(there == (step == 15 || step == 20 || step == 23), "step %lld", (long long)step);
    }
}
END_TEST

/* The best by the metric, the last where nothing was validated. */
START_TEST(which_model_is_saved)
{
    const hw_config *c = train_config(arena, "model", "");
    train_until(&call, c, -1);
    ck_assert(!hw_file_exists(scratch_path("model/model.safetensors"))); /* not trained yet */
    train_until(&call, c, 3);
    close_numbers(numbers_of("model/model.safetensors"), numbers_of("model/checkpoint.safetensors"), 0);
    train_until(&call, c, 7);
    double *best = numbers_of("model/model.safetensors");
    ck_assert_int_eq(call.result.best_step, 7);
    train_until(&call, c, 9);
    close_numbers(numbers_of("model/model.safetensors"), best, 0);
}
END_TEST

/* Whatever the configuration says of translating. */
START_TEST(validation_is_greedy)
{
    static const char *const searches[] = {"", "decoding.beam=5;decoding.patience=0.4", "decoding.sampling=true",
                                           "decoding.patience=4;decoding.length_penalty=4"};
    char *first = NULL;
    for (int i = 0; i < 4; i++) {
        train_whole(train_config(arena, "model", searches[i]), 1);
        char *log = scratch_read(scratch_path("model/valid.tsv"), NULL);
        if (first) ck_assert_str_eq(log, first);
        else first = strdup(log);
        free(log);
        ck_assert_int_eq(rename(scratch_path("model"), scratch_path(hw_arena_string(arena, "model%d", i))), 0);
    }
    free(first);
}
END_TEST

START_TEST(patience)
{
    const char *settings =
        "training.patience=2;training.learning_rate=1;training.validate_every=2;training.max_steps=1000";
    const hw_config *c = train_config(arena, "model", settings);
    hw_train_result r = train_whole(c, 1);
    ck_assert(r.out_of_patience);
    ck_assert_int_lt(r.step, 1000);
    ck_assert_int_eq(r.step, r.best_step + 2 * 2);
    train_until(&call, c, 0);
    ck_assert(call.result.finished_before && call.result.out_of_patience);
    train_until(&call, train_config(arena, "model", hw_arena_string(arena, "%s;training.max_steps=2000", settings)), 0);
    ck_assert(call.result.finished_before && call.result.out_of_patience);
    train_refused(
        &call, train_config(arena, "model", hw_arena_string(arena, "%s;training.patience=1", settings)),
        hw_arena_string(arena,
                        "%s holds a run of another configuration: training.patience (there 2, now 1). Go on with that "
                        "one, choose another training.model_dir, or begin anew with --overwrite",
                        c->training.model_dir));
    train_until(&call, train_config(arena, "model", hw_arena_string(arena, "%s;training.patience=0", settings)),
                r.step + 3);
    ck_assert_int_eq(call.result.step, r.step + 3);
    train_run(&call, train_config(arena, "model", hw_arena_string(arena, "%s;training.patience=50", settings)));
    ck_assert(!call.ok); /* which would end a run that nothing would have ended */
    check_directory(scratch_path("model"));
}
END_TEST

/* ---- beginning with another model -------------------------------------------------------------------------------- */

static void beginning_with(const char *from, const char *model)
{
    const hw_config *c =
        train_config(arena, "fine", hw_arena_string(arena, "training.init_from=%s", scratch_path(from)));
    call = (train_call){.stop_after = -1, .overwrite = true};
    train_run(&call, c);
    ck_assert_msg(call.ok, "%s", call.err.message);
    close_numbers(numbers_of("fine/checkpoint.safetensors"), numbers_of(model), 0);
    train_until(&call, c, 0);
    ck_assert_int_eq(call.result.step, 23);
}

START_TEST(fine_tuning)
{
    train_whole(train_config(arena, "model", "training.keep_checkpoints=9"), 1);
    char *before = scratch_read(scratch_path("model/source.vocab"), NULL);
    train_corpus("data", "words never seen"); /* they stay unknown: the vocabulary comes with the model */
    beginning_with("model", "model/model.safetensors");
    beginning_with("model/model.safetensors", "model/model.safetensors");
    beginning_with("model/checkpoints/step-10.safetensors", "model/checkpoints/step-10.safetensors");
    char *after = scratch_read(scratch_path("fine/source.vocab"), NULL);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

/* What says how a vocabulary is made goes unheeded where another value made it. */
START_TEST(fine_tuning_keeps_vocabularies)
{
    train_whole(train_config(arena, "model", "training.max_steps=1"), 1);
    static const char *const settings[] = {"", "text.min_count=1", "text.min_count=30;text.max_vocabulary=5"};
    static const char *const said[] = {"", "", "warning: its vocabularies stay, whatever the configuration says of new "
                                               "ones: text.min_count (there 1, now 30), text.max_vocabulary (there 0, "
                                               "now 5)\n"};
    for (int i = 0; i < 3; i++) {
        call = (train_call){.stop_after = -1, .overwrite = true};
        train_run(&call, train_config(arena, "fine", hw_arena_string(arena, "training.init_from=%s;%s",
                                                                     scratch_path("model"), settings[i])));
        ck_assert_msg(call.ok, "%s", call.err.message);
        const char *after = strstr(call.said, "beginning with the weights of ");
        ck_assert_ptr_nonnull(after);
        after = strchr(after, '\n') + 1;
        ck_assert_msg(!strncmp(after, said[i], strlen(said[i])), "%s", after);
        ck_assert(*said[i] || !strstr(after, "vocabularies stay"));
        char *before = scratch_read(scratch_path("model/source.vocab"), NULL),
             *now = scratch_read(scratch_path("fine/source.vocab"), NULL);
        ck_assert_str_eq(before, now);
        free(before);
        free(now);
    }
}
END_TEST

START_TEST(fine_tuning_goes_on)
{
    train_whole(train_config(arena, "model", "training.max_steps=5"), 1);
    const char *settings = hw_arena_string(arena, "training.init_from=%s;training.ema=0.9", scratch_path("model"));
    train_whole(train_config(arena, "whole", settings), 1);
    train_until(&call, train_config(arena, "parts", settings), 9);
    ck_assert_int_eq(rename(scratch_path("model"), scratch_path("gone")), 0); /* it is not needed any more */
    train_until(&call, train_config(arena, "parts", settings), 0);
    same_directories(scratch_path("whole"), scratch_path("parts"));
}
END_TEST

START_TEST(fine_tuning_of_another_network)
{
    train_whole(train_config(arena, "model", "training.max_steps=1"), 1);
    const struct {
        const char *from, *settings, *expected;
    } cases[] = {
        {"nowhere", "", "%s: there is no such model"},
        {"data", "",
         "%s: there is no config.yaml beside it; a model directory, or a file of weights in one, is needed"},
        {"data/train.en", "",
         "%s: there is no config.yaml beside it; a model directory, or a file of weights in one, is needed"},
        {"model/checkpoint.safetensors", "",
         "%s is a checkpoint, with which only its own run goes on; its directory, or a file of weights in it, is "
         "needed"},
        {"model", "model.width=32;text.joiner=@@",
         "%s is another network: model.width (there 16, now 32), text.joiner (there \"\", now \"@@\")"},
        {"model", "training.model_dir=", "%s is the directory that is trained into; choose another training.model_dir"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *from = scratch_path(cases[i].from);
        const char *own = strcmp(cases[i].settings, "training.model_dir=") ? "" : scratch_path("model");
        const hw_config *c = train_config(arena, "fine", hw_arena_string(arena, "training.init_from=%s;%s%s", from,
                                                                         cases[i].settings, own));
        char message[1024] = "--set: training.init_from: ";
        snprintf(message + strlen(message), sizeof message - strlen(message), cases[i].expected, from);
        call.overwrite = true;
        train_refused(&call, c, message);
        ck_assert(!hw_file_exists(scratch_path("fine/config.yaml")));
    }
    check_directory(scratch_path("model"));
}
END_TEST

Suite *test_train_models(void);
Suite *test_train_models(void)
{
    Suite *suite = suite_create("train_models");
    TCase *t = tcase_create("models");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, moving_average);
    tcase_add_loop_test(t, average_of_the_last, 0, 3);
    tcase_add_loop_test(t, averages_are_validated, 0, 2);
    tcase_add_test(t, kept_checkpoints);
    tcase_add_test(t, which_model_is_saved);
    tcase_add_test(t, validation_is_greedy);
    tcase_add_test(t, patience);
    tcase_add_test(t, fine_tuning);
    tcase_add_test(t, fine_tuning_keeps_vocabularies);
    tcase_add_test(t, fine_tuning_goes_on);
    tcase_add_test(t, fine_tuning_of_another_network);
    suite_add_tcase(suite, t);
    return suite;
}
