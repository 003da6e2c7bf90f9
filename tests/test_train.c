/* Layer 11: runs that are stopped and go on, and the directory they write to. What models they leave is
 * test_train_models.c's; faults of disk, data and numbers are test_train_faults.c's, kill -9 is test_train_kill.c's. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_train.h"

static hw_arena *arena;
static train_call call;

static void begin(void)
{
    arena = train_begin();
    call = (train_call){0};
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
        train_until(&call, parts, stops[i]);
        check_directory(parts->training.model_dir);
        if (call.result.stopped) ck_assert_int_eq(call.result.step, stops[i] < 0 ? 0 : stops[i]);
    }
    train_until(&call, parts, 0);
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
            train_until(&call, parts, at);
        }
        if (call.result.stopped) train_until(&call, parts, 0);
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
    train_until(&call, parts, 0);
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

START_TEST(another_process_has_it)
{
    const hw_config *c = train_config(arena, "model", "training.max_steps=100000000");
    pid_t child = train_child(c);
    while (!hw_file_exists(scratch_path("model/checkpoint.safetensors"))) usleep(1000);
    train_refused(&call, c,
                  hw_arena_string(arena,
                                  "%s: another process is training in this directory; wait for it, or choose another "
                                  "training.model_dir",
                                  c->training.model_dir));
    call.overwrite = true;
    train_refused(&call, c, hw_arena_string(arena, "%s", call.err.message));
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    hw_run_state state;
    hw_error err;
    ck_assert(hw_checkpoint_peek(&state, scratch_path("model/checkpoint.safetensors"), &err));
    train_until(&call, c, state.step + 1); /* the lock went with it */
    ck_assert_int_eq(call.result.step, state.step + 1);
}
END_TEST

/* A run that goes on does not make its best model again; one that is finished makes none. */
START_TEST(a_model_that_is_gone)
{
    const hw_config *c = train_config(arena, "model", "");
    const char *message = hw_arena_string(arena, "%s/model.safetensors is gone, the model of step ",
                                          c->training.model_dir);
    train_whole(c, 1);
    ck_assert_int_eq(unlink(scratch_path("model/model.safetensors")), 0);
    for (int i = 0; i < 2; i++) {
        train_run(&call, i ? train_config(arena, "model", "training.max_steps=30") : c);
        ck_assert(!call.ok);
        ck_assert_msg(!strncmp(call.err.message, message, strlen(message)), "%s", call.err.message);
    }
    call = (train_call){.overwrite = true};
    train_run(&call, c);
    ck_assert(call.ok);
}
END_TEST

START_TEST(another_configuration)
{
    const char *directory = train_config(arena, "model", "")->training.model_dir;
    train_until(&call, train_config(arena, "model", ""), 6);
    train_refused(
        &call, train_config(arena, "model", "training.seed=2;model.norm=pre;training.max_steps=30"),
        hw_arena_string(arena,
                        "%s holds a run of another configuration: model.norm (there post, now pre), training.seed "
                        "(there 1, now 2). Go on with that one, choose another training.model_dir, or begin anew "
                        "with --overwrite",
                        directory));
    train_refused(
        &call, train_config(arena, "model", "training.max_steps=22"),
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
    static const char *const averages[] = {"", ";training.ema=0.8", ";training.average=3;training.average_every=4"};
    hw_error err;
    train_until(&call, train_config(arena, "model", hw_arena_string(arena, "training.patience=2%s", averages[_i])), 6);
    ck_assert(hw_directory_make(scratch_path("elsewhere"), &err));
    ck_assert_int_eq(rename(scratch_path("model"), scratch_path("elsewhere/model")), 0);
    ck_assert_int_eq(rename(scratch_path("data"), scratch_path("moved")), 0);
    const char *moved = hw_arena_string(arena, "data.dir=%s;training.max_steps=29;training.patience=50%s",
                                        scratch_path("moved"), averages[_i]);
    const hw_config *c = train_config(arena, "elsewhere/model", moved);
    hw_threads_set(3);
    train_until(&call, c, 0);
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
    train_until(&call, c, 0);
    ck_assert(call.result.finished_before && !call.result.stopped);
    ck_assert_int_eq(call.result.step, 23);
    ck_assert_int_eq(call.result.best_step, first.best_step);
    ck_assert_double_eq(call.result.best, first.best);
    same_directories(c->training.model_dir, scratch_path("copy"));
    train_until(&call, train_config(arena, "model", "training.max_steps=25"), 0);
    ck_assert(!call.result.finished_before);
    ck_assert_int_eq(call.result.step, 25);
}
END_TEST

START_TEST(a_model_alone_is_not_replaced)
{
    const hw_config *c = train_config(arena, "model", "");
    train_whole(c, 1);
    ck_assert_int_eq(unlink(scratch_path("model/checkpoint.safetensors")), 0);
    train_refused(&call, c,
                  hw_arena_string(arena,
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
    train_until(&call, c, 11);
    static const char *const mine[] = {"model/notes.txt", "model/train.tsv.tmp", "model/checkpoints/step-15.safetensors.tmp"};
    for (int i = 0; i < 3; i++) scratch_text(mine[i], "mine");
    static const char *const left[] = {"model/.model.safetensors.headwise-0a1b2c.tmp",
                                       "model/.train.tsv.headwise-abcdef.tmp",
                                       "model/checkpoints/.step-15.safetensors.headwise-999999.tmp",
                                       "model/checkpoints/step-20.safetensors"};
    for (int i = 0; i < 4; i++) scratch_text(left[i], "half");
    train_until(&call, c, 12);
    for (int i = 0; i < 4; i++) ck_assert_msg(!hw_file_exists(scratch_path(left[i])), "%s", left[i]);
    for (int i = 0; i < 3; i++) ck_assert_msg(hw_file_exists(scratch_path(mine[i])), "%s", mine[i]);
    ck_assert(hw_file_exists(scratch_path("model/checkpoints/step-10.safetensors")));
}
END_TEST

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* Quiet, it still says how to go on. */
static pid_t start_program(const char *config, bool in_background)
{
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child) return child;
    signal(SIGINT, in_background ? SIG_IGN : SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* tests may run under nohup */
    if (!freopen(scratch_path("said"), "w", stderr)) _exit(99);
    exit(hw_cli_main(4, (char *[]){"headwise", "train", "--quiet", (char *)config, NULL}));
}

START_TEST(signals)
{
    static const int numbers[][2] = {{SIGINT, 0}, {SIGTERM, 0}, {SIGHUP, 0}, {SIGINT, SIGINT}};
    const char *long_one = "training.max_steps=100000000;training.save_every=100;training.validate_every=50";
    const hw_config *c = train_config(arena, "model", long_one);
    hw_error err;
    hw_run_state state;
    int status;
    ck_assert(hw_config_save(c, scratch_path("run.yaml"), &err));
    pid_t child = start_program(scratch_path("run.yaml"), false);
    while (!hw_file_exists(scratch_path("model/model.safetensors"))) usleep(1000);
    for (int i = 0; i < 2 && numbers[_i][i]; i++) kill(child, numbers[_i][i]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    check_directory(scratch_path("model"));
    ck_assert_msg(hw_checkpoint_peek(&state, scratch_path("model/checkpoint.safetensors"), &err), "%s", err.message);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == numbers[_i][0], "status %x", (unsigned)status);
    if (!numbers[_i][1]) { /* the second one ends at once */
        char *said = scratch_read(scratch_path("said"), NULL);
        const char *end = hw_arena_string(arena, "everything is saved in %s; the same command goes on from here\n",
                                          c->training.model_dir);
        ck_assert_msg(strstr(said, end) != NULL, "%s", said);
        free(said);
    }
    train_until(&call, c, state.step + 1); /* it goes on */
    train_until(&call, train_config(arena, "whole", long_one), state.step + 1);
    same_directories(scratch_path("whole"), scratch_path("model"));
}
END_TEST

/* Of a script's `train ... &` Ctrl-C is not meant; SIGTERM is. */
START_TEST(ignored_interrupts)
{
    const hw_config *c = train_config(arena, "model", "training.max_steps=100000000;training.save_every=100");
    const char *checkpoint = scratch_path("model/checkpoint.safetensors");
    hw_error err;
    hw_run_state before, now;
    int status;
    ck_assert(hw_config_save(c, scratch_path("run.yaml"), &err));
    pid_t child = start_program(scratch_path("run.yaml"), true);
    while (!hw_file_exists(scratch_path("model/model.safetensors"))) usleep(1000);
    kill(child, SIGINT);
    ck_assert(hw_checkpoint_peek(&before, checkpoint, &err));
    do {
        usleep(1000);
        ck_assert_msg(waitpid(child, &status, WNOHANG) == 0, "it ended");
        ck_assert(hw_checkpoint_peek(&now, checkpoint, &err));
    } while (now.step < before.step + 300);
    kill(child, SIGTERM);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}
END_TEST

Suite *test_train(void);
Suite *test_train(void)
{
    Suite *suite = suite_create("train");
    TCase *t = tcase_create("resuming");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_loop_test(t, stopped_anywhere, 0, VARIANTS);
    tcase_add_loop_test(t, stopped_at_random, 0, VARIANTS);
    tcase_add_test(t, stopped_in_a_validation);
    tcase_add_loop_test(t, any_number_of_threads, 0, VARIANTS);
    tcase_add_test(t, another_seed_gives_other_bytes);
    suite_add_tcase(suite, t);
    t = tcase_create("directory");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, another_process_has_it);
    tcase_add_test(t, a_model_that_is_gone);
    tcase_add_test(t, another_configuration);
    tcase_add_loop_test(t, what_may_differ, 0, 3);
    tcase_add_test(t, a_finished_run_is_finished);
    tcase_add_test(t, a_model_alone_is_not_replaced);
    tcase_add_test(t, overwriting_needs_data);
    tcase_add_test(t, half_written_files_go);
    tcase_add_loop_test(t, signals, 0, 4);
    tcase_add_test(t, ignored_interrupts);
    suite_add_tcase(suite, t);
    return suite;
}
