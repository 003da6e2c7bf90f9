/* Where output goes (tests/rows/outputs.txt), every command in trouble (tests/rows/everywhere.txt), and what a signal leaves
 * of it: nothing half-written, whatever the command was doing. */
#include <check.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_rows.h"
#include "support_train.h"

START_TEST(outputs) { rows_run("outputs", _i); }
END_TEST

START_TEST(everywhere) { rows_run("everywhere", _i); }
END_TEST

/* ---- a full disk ------------------------------------------------------------------------------------------------- */

/* Every command that writes a file, onto a disk that is full, and the file that it says cannot be written; what train
 * does at each of its files stands in test_train_faults.c. */
static const struct {
    const char *call, *path;
} writers[] = {
    {"vocab -q words -o full/v", "full/v"},
    {"vocab -q --train full/p.model --max-size 300 data/train.en", "full/p.model"},
    {"evaluate k -q -o full/v", "full/v"},
    {"heads report k -q -o full/v", "full/v"},
    {"heads trace k --svg full/v", "full/v"},
    {"heads align k -q --pharaoh full/v", "full/v"},
    {"heads prune k -q --remove 1 -o full/half", "full/half/model.safetensors"},
    {"generate g.yaml -q -n 1 --valid 0 --test 0 -o full/c", "full/c/train.en"},
    {"--write-pages full/pages", "full/pages/headwise.1"},
    {"train run.yaml -q --set training.model_dir=full/t", "full/t/config.yaml"},
};

START_TEST(a_disk_that_is_full)
{
    hw_error err;
    hw_arena *arena = train_begin();
    const char *root = scratch_root(), *built = built_directory();
    ck_assert(hw_directory_make(scratch_path("full"), &err));
    if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", scratch_path("full"), "tmpfs", 0, "size=64k")) { /* only root may */
        scratch_end();
        return;
    }
    const hw_config *c = train_config(arena, "k", "training.track_heads=6;data.test=valid");
    ck_assert(hw_config_save(c, scratch_path("run.yaml"), &err));
    const outcome *o = run_bash(hw_arena_string(
        arena,
        "cd %s && %s/headwise train run.yaml -q && seq 9 > words && yes 0-0 | head -6 > data/valid.align && "
        "printf 'sides: [en, fr]\nstart: s\nlexicon:\n  n: {pos: N, en: a, fr: b}\nrules:\n  s:\n    - both: n\n' > "
        "g.yaml && echo kept > full/v && { dd if=/dev/zero of=full/filler bs=4096 2> /dev/null || :; }",
        root, built));
    ck_assert_msg(!o->status, "%s", o->err);
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        o = run_bash(hw_arena_string(arena, "cd %s && %s/headwise %s > /dev/null", root, built, writers[i].call));
        ck_assert_int_eq(o->status, 1);
        ck_assert_str_eq(o->err, hw_arena_string(arena, "headwise: %s: cannot be written whole: No space left on device\n",
                                                 writers[i].path));
        ck_assert_str_eq(run_bash(hw_arena_string(arena, "ls -A %s/full && cat %s/full/v", root, root))->out,
                         "filler\nv\nkept\n");
    }
    ck_assert_int_eq(umount(scratch_path("full")), 0);
    scratch_end();
}
END_TEST

/* ---- signals ----------------------------------------------------------------------------------------------------- */

/* How many names a scratch directory has; 0 too where there is none. */
static int names_in(const char *name)
{
    DIR *directory = opendir(scratch_path(name));
    int count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    if (directory) closedir(directory);
    return count;
}

/* The program in a child process that says nothing. */
static pid_t start(const char *call, void (*before)(void))
{
    const char *const *words = scratch_words(call);
    int count = 0;
    while (words[count]) count++;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child) return child;
    signal(SIGINT, SIG_DFL); /* tests may run behind a script's `&`, or under nohup */
    signal(SIGQUIT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (before) before();
    if (!freopen(scratch_path("said"), "w", stderr) || !freopen("/dev/null", "w", stdout)) _exit(99);
    exit(hw_cli_main(count, (char **)(uintptr_t)words));
}

static void expect_ended_by(pid_t child, int number)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == number, "status %x, not of signal %d", (unsigned)status,
                  number);
}

static void ignore_hangup(void) { signal(SIGHUP, SIG_IGN); }

/* Files of a corpus so large that it is never done are open. */
START_TEST(a_signal_leaves_nothing_half_written)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const char *call = "generate data/toy/grammar.yaml -q -n 100000000 --train-annotation -o @/out";
    for (int i = 0; i < 5; i++) {
        pid_t child = start(call, i == 4 ? ignore_hangup : NULL);
        while (names_in("out") < 12) usleep(1000);
        if (i == 4) kill(child, SIGHUP); /* as nohup has it */
        kill(child, i == 4 ? SIGTERM : numbers[i]);
        expect_ended_by(child, i == 4 ? SIGTERM : numbers[i]);
        ck_assert(!hw_file_exists(scratch_path("out")));
    }
}
END_TEST

static void nothing(int number) { (void)number; }

/* A handler holds the list of half-written files: another one above it would wait for it for ever. */
START_TEST(no_signal_interrupts_another_ones_handler)
{
    struct sigaction now;
    hw_cli_catch(SIGTERM, nothing);
    ck_assert_int_eq(sigaction(SIGTERM, NULL, &now), 0);
    ck_assert(now.sa_handler == nothing);
    ck_assert(sigismember(&now.sa_mask, SIGHUP) && sigismember(&now.sa_mask, SIGINT));
    signal(SIGTERM, SIG_IGN);
    hw_cli_catch(SIGTERM, nothing);
    ck_assert_int_eq(sigaction(SIGTERM, NULL, &now), 0);
    ck_assert(now.sa_handler == SIG_IGN);
}
END_TEST

/* The first signal lets the step finish; the second comes while it does, or while all is saved. */
START_TEST(a_second_signal_ends_training_at_once)
{
    static const int pairs[][2] = {{SIGINT, SIGINT}, {SIGINT, SIGTERM}, {SIGTERM, SIGINT}, {SIGTERM, SIGTERM}};
    hw_arena *arena = train_begin();
    const hw_config *c = train_config(arena, "model",
                                      "training.max_steps=100000000;training.save_every=1;model.width=64;"
                                      "model.feed_forward=1024;training.keep_checkpoints=1");
    hw_random random = hw_random_new(11, 0);
    hw_error err;
    hw_run_state state;
    struct stat said;
    ck_assert(hw_config_save(c, scratch_path("run.yaml"), &err));
    for (int i = 0; i < 12; i++) {
        unlink(scratch_path("said"));
        pid_t child = start("train @/run.yaml", NULL);
        int status;
        while (stat(scratch_path("said"), &said) || !said.st_size) usleep(1000); /* it speaks when it handles signals */
        while (!hw_file_exists(scratch_path("model/model.safetensors"))) usleep(1000);
        usleep((useconds_t)hw_random_below(&random, 20000));
        kill(child, pairs[i % 4][0]);
        usleep((useconds_t)hw_random_below(&random, 1000));
        kill(child, pairs[i % 4][1]);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        bool ended = WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM);
        ck_assert_msg(ended, "status %x", (unsigned)status);
        check_directory(c->training.model_dir);
        nothing_half_written("model");
        ck_assert(hw_checkpoint_peek(&state, scratch_path("model/checkpoint.safetensors"), &err));
    }
    scratch_end();
}
END_TEST

/* SentencePiece has much to do, and there is nothing yet that could be saved. */
START_TEST(a_signal_before_the_first_step_ends_at_once)
{
    hw_arena *arena = train_begin();
    hw_random random = hw_random_new(12, 0);
    hw_error err;
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; i < 600000; i++) {
        for (int k = 3 + (int)hw_random_below(&random, 6); k > 0; k--) putc('a' + (int)hw_random_below(&random, 26), f);
        putc(i % 6 == 5 ? '\n' : ' ', f);
    }
    fclose(f);
    for (int side = 0; side < 2; side++) scratch_write(side ? "data/train.fr" : "data/train.en", text, size);
    free(text);
    const hw_config *c = train_config(arena, "deep/model", "text.tokenizer=sentencepiece;training.max_steps=100000000");
    ck_assert(hw_config_save(c, scratch_path("run.yaml"), &err));
    pid_t child = start("train @/run.yaml", NULL);
    while (!hw_file_exists(c->training.model_dir)) usleep(1000);
    kill(child, SIGTERM);
    expect_ended_by(child, SIGTERM);
    ck_assert(!hw_file_exists(scratch_path("deep")));
    scratch_end();
}
END_TEST

Suite *test_cli_outputs(void);
Suite *test_cli_outputs(void)
{
    Suite *suite = suite_create("cli: outputs");
    TCase *t = tcase_create("rows");
    tcase_add_checked_fixture(t, scratch_begin_in_memory, scratch_end);
    tcase_add_loop_test(t, outputs, 0, rows_count("outputs"));
    tcase_add_loop_test(t, everywhere, 0, rows_count("everywhere"));
    suite_add_tcase(suite, t);
    t = tcase_create("signals");
    tcase_add_checked_fixture(t, scratch_begin_in_memory, scratch_end);
    tcase_add_test(t, a_signal_leaves_nothing_half_written);
    tcase_add_test(t, no_signal_interrupts_another_ones_handler);
    suite_add_tcase(suite, t);
    t = tcase_create("training");
    tcase_add_test(t, a_second_signal_ends_training_at_once);
    tcase_add_test(t, a_signal_before_the_first_step_ends_at_once);
    tcase_add_test(t, a_disk_that_is_full);
    suite_add_tcase(suite, t);
    return suite;
}
