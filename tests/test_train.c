/* Layer 11: runs that are stopped and go on, the directory they write to, and the options that say how they end and
 * what they keep. Faults of disk, data and numbers are test_train_faults.c's, kill -9 is test_train_kill.c's. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/decode.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_train.h"

static hw_arena *arena;
static train_call call;

static void begin(void)
{
    scratch_begin_in_memory();
    arena = hw_arena_new(0);
    train_corpus("data", NULL);
    call = (train_call){0};
}

static void end(void)
{
    hw_arena_free(arena);
    scratch_end();
}

static void stop_after(const hw_config *c, int64_t step)
{
    call = (train_call){.stop_after = step};
    train_run(&call, c);
    ck_assert_msg(call.ok, "%s", call.err.message);
}

/* ---- the same bytes ---------------------------------------------------------------------------------------------- */

static const char *const variants[] = {
    "",
    "training.validate_every=0;training.save_every=0",
    "training.metric=exact_match;training.save_every=6;training.log_every=1;training.keep_checkpoints=2",
    "training.ema=0.8;training.metric=bleu",
    "training.average=3;training.average_every=2;training.keep_checkpoints=3",
    "training.average=4;training.schedule=cosine;training.batch_sentences=0;training.batch_tokens=40",
    ("training.patience=3;training.learning_rate=1;training.validate_every=3;training.keep_checkpoints=9;"
     "training.log_every=3"),
};
enum { VARIANTS = sizeof variants / sizeof *variants };

START_TEST(stopped_anywhere)
{
    static const int64_t stops[] = {-1, 1,  3,  4,  5, 7,
                                    10, 14, 16, 21, 22}; /* a line's step, a checkpoint's, a validation's */
    const hw_config *whole = train_config(arena, "whole", variants[_i]),
                    *parts = train_config(arena, "parts", variants[_i]);
    train_whole(whole, 1);
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) {
        hw_threads_set(1 + (int)i % 3);
        stop_after(parts, stops[i]);
        check_directory(parts->training.model_dir);
        if (call.result.stopped) ck_assert_int_eq(call.result.step, stops[i] < 0 ? 0 : stops[i]);
    }
    stop_after(parts, 0);
    ck_assert(!call.result.stopped);
    ck_assert(call.result.out_of_patience == (strstr(variants[_i], "patience") != NULL));
    same_directories(whole->training.model_dir, parts->training.model_dir);
}
END_TEST

START_TEST(stopped_at_random)
{
    hw_random random = hw_random_new(77, (uint64_t)_i);
    const hw_config *whole = train_config(arena, "whole", variants[_i]);
    train_whole(whole, 2);
    for (int k = 0; k < 3; k++) {
        const hw_config *parts = train_config(arena, hw_arena_string(arena, "parts%d", k), variants[_i]);
        for (int64_t at = 0; at < 23; at += 1 + (int64_t)hw_random_below(&random, 12)) {
            hw_threads_set(1 + (int)hw_random_below(&random, 3));
            stop_after(parts, at);
        }
        if (call.result.stopped) stop_after(parts, 0);
        same_directories(whole->training.model_dir, parts->training.model_dir);
    }
}
END_TEST

START_TEST(stopped_in_a_validation)
{
    const hw_config *whole = train_config(arena, "whole", ""), *parts = train_config(arena, "parts", "");
    train_whole(whole, 2);
    for (int64_t step = 7; step <= 21; step += 7) {
        call = (train_call){.stop_in_validation = true};
        train_run(&call, parts);
        ck_assert_msg(call.ok && call.result.stopped, "%s", call.err.message);
        ck_assert_int_eq(call.result.step, step);
    }
    stop_after(parts, 0);
    same_directories(whole->training.model_dir, parts->training.model_dir);
}
END_TEST

START_TEST(any_number_of_threads)
{
    const hw_config *one = train_config(arena, "one", variants[_i]);
    train_whole(one, 1);
    for (int threads = 2; threads <= 3; threads++) {
        const hw_config *more = train_config(arena, hw_arena_string(arena, "more%d", threads), variants[_i]);
        train_whole(more, threads);
        same_directories(one->training.model_dir, more->training.model_dir);
    }
}
END_TEST

START_TEST(another_seed_gives_other_bytes)
{
    static const char *const names[] = {"model.safetensors", "checkpoint.safetensors", "train.tsv", "valid.tsv"};
    train_whole(train_config(arena, "one", ""), 1);
    train_whole(train_config(arena, "two", "training.seed=2"), 1);
    for (int i = 0; i < 4; i++) {
        size_t sizes[2];
        char *one = scratch_read(scratch_path(hw_arena_string(arena, "one/%s", names[i])), &sizes[0]);
        char *two = scratch_read(scratch_path(hw_arena_string(arena, "two/%s", names[i])), &sizes[1]);
        ck_assert_msg(sizes[0] != sizes[1] || memcmp(one, two, sizes[0]), "%s", names[i]);
        free(one);
        free(two);
    }
}
END_TEST

/* ---- the directory ----------------------------------------------------------------------------------------------- */

static void refused(const hw_config *c, const char *expected)
{
    call = (train_call){.overwrite = call.overwrite};
    train_run(&call, c);
    ck_assert(!call.ok);
    ck_assert_str_eq(call.err.message, expected);
}

START_TEST(another_process_has_it)
{
    const hw_config *c = train_config(arena, "model", "training.max_steps=100000000");
    pid_t child = train_child(c);
    while (!hw_file_exists(scratch_path("model/checkpoint.safetensors"))) usleep(1000);
    refused(c, hw_arena_string(arena,
                               "%s: another process is training in this directory; wait for it, or choose another "
                               "training.model_dir",
                               c->training.model_dir));
    call.overwrite = true;
    refused(c, call.err.message);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    hw_run_state state;
    hw_error err;
    ck_assert(hw_checkpoint_peek(&state, scratch_path("model/checkpoint.safetensors"), &err));
    stop_after(c, state.step + 1); /* the lock went with it */
    ck_assert_int_eq(call.result.step, state.step + 1);
}
END_TEST

START_TEST(another_configuration)
{
    const char *directory = train_config(arena, "model", "")->training.model_dir;
    stop_after(train_config(arena, "model", ""), 6);
    refused(train_config(arena, "model", "training.seed=2;model.norm=pre;training.max_steps=30"),
            hw_arena_string(arena,
                            "%s holds a run of another configuration: model.norm (there post, now pre), training.seed "
                            "(there 1, now 2). Go on with that one, choose another training.model_dir, or begin anew "
                            "with --overwrite",
                            directory));
    refused(
        train_config(arena, "model", "training.max_steps=22"),
        hw_arena_string(arena,
                        "%s holds a run of another configuration: training.max_steps (there 23, now 22). Go on with "
                        "that one, choose another training.model_dir, or begin anew with --overwrite",
                        directory));
    call = (train_call){.overwrite = true};
    train_run(&call, train_config(arena, "model", "training.seed=2"));
    ck_assert(call.ok && call.result.step == 23);
    train_whole(train_config(arena, "fresh", "training.seed=2"), 1);
    same_directories(directory, scratch_path("fresh"));
}
END_TEST

START_TEST(what_may_differ)
{
    hw_error err;
    stop_after(train_config(arena, "model", "training.patience=2"), 6);
    ck_assert(hw_directory_make(scratch_path("elsewhere"), &err));
    ck_assert_int_eq(rename(scratch_path("model"), scratch_path("elsewhere/model")), 0);
    ck_assert_int_eq(rename(scratch_path("data"), scratch_path("moved")), 0);
    const char *moved =
        hw_arena_string(arena, "data.dir=%s;training.max_steps=29;training.patience=50", scratch_path("moved"));
    const hw_config *c = train_config(arena, "elsewhere/model", moved);
    hw_threads_set(3);
    stop_after(c, 0);
    ck_assert_int_eq(call.result.step, 29);
    train_whole(train_config(arena, "whole", moved), 1);
    same_directories(scratch_path("whole"), c->training.model_dir);
    hw_config *saved = hw_config_load(arena, scratch_path("elsewhere/model/config.yaml"), &err);
    ck_assert(saved && !hw_config_differences(saved, c, arena).count);
}
END_TEST

START_TEST(a_finished_run_is_finished)
{
    const hw_config *c = train_config(arena, "model", "");
    hw_train_result first = train_whole(c, 1);
    ck_assert(!system(hw_arena_string(arena, "cp -rp %s %s", c->training.model_dir, scratch_path("copy"))));
    stop_after(c, 0);
    ck_assert(call.result.finished_before && !call.result.stopped);
    ck_assert_int_eq(call.result.step, 23);
    ck_assert_int_eq(call.result.best_step, first.best_step);
    ck_assert_double_eq(call.result.best, first.best);
    same_directories(c->training.model_dir, scratch_path("copy"));
    stop_after(train_config(arena, "model", "training.max_steps=25"), 0);
    ck_assert(!call.result.finished_before);
    ck_assert_int_eq(call.result.step, 25);
}
END_TEST

START_TEST(a_model_alone_is_not_replaced)
{
    const hw_config *c = train_config(arena, "model", "");
    train_whole(c, 1);
    ck_assert_int_eq(unlink(scratch_path("model/checkpoint.safetensors")), 0);
    refused(c, hw_arena_string(arena,
                               "%s holds a model without a checkpoint, which training would replace; choose another "
                               "training.model_dir, or begin anew with --overwrite",
                               c->training.model_dir));
}
END_TEST

/* --overwrite removes only when there is something to put in the place. */
START_TEST(overwriting_needs_data)
{
    const hw_config *c = train_config(arena, "model", "training.keep_checkpoints=1");
    train_whole(c, 1);
    ck_assert(!system(hw_arena_string(arena, "cp -rp %s %s", c->training.model_dir, scratch_path("copy"))));
    ck_assert_int_eq(unlink(scratch_path("data/valid.fr")), 0);
    call = (train_call){.overwrite = true};
    train_run(&call, c);
    ck_assert(!call.ok);
    same_directories(c->training.model_dir, scratch_path("copy"));
}
END_TEST

/* What an earlier, killed run left half-written goes; what is the user's stays. */
START_TEST(half_written_files_go)
{
    const hw_config *c = train_config(arena, "model", "training.keep_checkpoints=3");
    stop_after(c, 11);
    const char *mine = scratch_text("model/notes.txt", "mine");
    static const char *const left[] = {"model/model.safetensors.tmp", "model/checkpoint.safetensors.tmp",
                                       "model/checkpoints/step-15.safetensors.tmp",
                                       "model/checkpoints/step-20.safetensors"};
    for (int i = 0; i < 4; i++) scratch_text(left[i], "half");
    stop_after(c, 12);
    for (int i = 0; i < 4; i++) ck_assert_msg(!hw_file_exists(scratch_path(left[i])), "%s", left[i]);
    ck_assert(hw_file_exists(mine));
    ck_assert(hw_file_exists(scratch_path("model/checkpoints/step-10.safetensors")));
}
END_TEST

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static pid_t start_program(const char *config)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child) return child;
    if (!freopen(scratch_path("said"), "w", stderr)) _exit(99);
    exit(hw_cli_main(3, (char *[]){"headwise", "train", (char *)config, NULL}));
}

START_TEST(signals)
{
    static const int numbers[][2] = {{SIGINT, 0}, {SIGTERM, 0}, {SIGINT, SIGINT}};
    const char *long_one = "training.max_steps=100000000;training.save_every=100;training.validate_every=50";
    const hw_config *c = train_config(arena, "model", long_one);
    hw_error err;
    hw_run_state state;
    int status;
    ck_assert(hw_config_save(c, scratch_path("run.yaml"), &err));
    pid_t child = start_program(scratch_path("run.yaml"));
    while (!hw_file_exists(scratch_path("model/model.safetensors"))) usleep(1000);
    for (int i = 0; i < 2 && numbers[_i][i]; i++) kill(child, numbers[_i][i]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    check_directory(scratch_path("model"));
    ck_assert_msg(hw_checkpoint_peek(&state, scratch_path("model/checkpoint.safetensors"), &err), "%s", err.message);
    if (WIFSIGNALED(status)) {
        ck_assert_int_eq(_i, 2);
    } else {
        ck_assert_int_eq(WEXITSTATUS(status), 0);
        char *said = scratch_read(scratch_path("said"), NULL);
        const char *end = hw_arena_string(arena, "everything is saved in %s; the same command goes on from here\n",
                                          c->training.model_dir);
        ck_assert_msg(strstr(said, end) != NULL, "%s", said);
        free(said);
    }
    stop_after(c, state.step + 1); /* it goes on */
    stop_after(train_config(arena, "whole", long_one), state.step + 1);
    same_directories(scratch_path("whole"), scratch_path("model"));
}
END_TEST

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
    stop_after(c, -1);
    ck_assert(!hw_file_exists(scratch_path("model/model.safetensors"))); /* not trained yet */
    stop_after(c, 3);
    close_numbers(numbers_of("model/model.safetensors"), numbers_of("model/checkpoint.safetensors"), 0);
    stop_after(c, 7);
    double *best = numbers_of("model/model.safetensors");
    ck_assert_int_eq(call.result.best_step, 7);
    stop_after(c, 9);
    close_numbers(numbers_of("model/model.safetensors"), best, 0);
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
    stop_after(c, 0);
    ck_assert(call.result.finished_before && call.result.out_of_patience);
    stop_after(train_config(arena, "model", hw_arena_string(arena, "%s;training.max_steps=2000", settings)), 0);
    ck_assert(call.result.finished_before && call.result.out_of_patience);
    refused(
        train_config(arena, "model", hw_arena_string(arena, "%s;training.patience=1", settings)),
        hw_arena_string(arena,
                        "%s holds a run of another configuration: training.patience (there 2, now 1). Go on with that "
                        "one, choose another training.model_dir, or begin anew with --overwrite",
                        c->training.model_dir));
    stop_after(train_config(arena, "model", hw_arena_string(arena, "%s;training.patience=0", settings)), r.step + 3);
    ck_assert_int_eq(call.result.step, r.step + 3);
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
    stop_after(c, 0);
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

START_TEST(fine_tuning_goes_on)
{
    train_whole(train_config(arena, "model", "training.max_steps=5"), 1);
    const char *settings = hw_arena_string(arena, "training.init_from=%s;training.ema=0.9", scratch_path("model"));
    train_whole(train_config(arena, "whole", settings), 1);
    stop_after(train_config(arena, "parts", settings), 9);
    ck_assert_int_eq(rename(scratch_path("model"), scratch_path("gone")), 0); /* it is not needed any more */
    stop_after(train_config(arena, "parts", settings), 0);
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
        refused(c, message);
        ck_assert(!hw_file_exists(scratch_path("fine/config.yaml")));
    }
    check_directory(scratch_path("model"));
}
END_TEST

Suite *test_train(void);
Suite *test_train(void)
{
    Suite *suite = suite_create("train");
    TCase *t = tcase_create("resuming");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_loop_test(t, stopped_anywhere, 0, VARIANTS);
    tcase_add_loop_test(t, stopped_at_random, 0, VARIANTS);
    tcase_add_test(t, stopped_in_a_validation);
    tcase_add_loop_test(t, any_number_of_threads, 0, VARIANTS);
    tcase_add_test(t, another_seed_gives_other_bytes);
    suite_add_tcase(suite, t);
    t = tcase_create("directory");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, another_process_has_it);
    tcase_add_test(t, another_configuration);
    tcase_add_test(t, what_may_differ);
    tcase_add_test(t, a_finished_run_is_finished);
    tcase_add_test(t, a_model_alone_is_not_replaced);
    tcase_add_test(t, overwriting_needs_data);
    tcase_add_test(t, half_written_files_go);
    tcase_add_loop_test(t, signals, 0, 3);
    suite_add_tcase(suite, t);
    t = tcase_create("models");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, moving_average);
    tcase_add_loop_test(t, average_of_the_last, 0, 3);
    tcase_add_loop_test(t, averages_are_validated, 0, 2);
    tcase_add_test(t, kept_checkpoints);
    tcase_add_test(t, which_model_is_saved);
    tcase_add_test(t, patience);
    tcase_add_test(t, fine_tuning);
    tcase_add_test(t, fine_tuning_goes_on);
    tcase_add_test(t, fine_tuning_of_another_network);
    suite_add_tcase(suite, t);
    return suite;
}
