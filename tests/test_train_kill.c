/* Layer 11: a run that is killed at any moment leaves a directory that can be loaded, and goes on to the same bytes.
 * The moments are drawn over the whole length of a run, its beginning and its writing included. HEADWISE_KILLS says how
 * many (make kill-test N=200); 20 unless given. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support_files.h"
#include "support_train.h"

static hw_arena *arena;

static void begin(void)
{
    const char *links = "";
    arena = train_begin();
    for (int i = 0; i < 40; i++) links = hw_arena_string(arena, "%s0-0\n", links);
    scratch_text("data/train.align", links);
}

static int ended(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* Seconds of a run that nobody kills. */
static double whole_run(const hw_config *c)
{
    double began = hw_seconds();
    ck_assert_int_eq(ended(train_child(c)), 0);
    return hw_seconds() - began;
}

/* Runs and kills until a run comes to its end -> how often it was killed. */
static int kill_until_it_ends(const hw_config *c, double longest, hw_random *random)
{
    for (int kills = 0;; kills++) {
        struct timespec wait = {0, (long)(1e9 * longest * hw_random_uniform(random))};
        hw_threads_set(1 + (int)hw_random_below(random, 3));
        pid_t child = train_child(c);
        if (kills < 6) {
            nanosleep(&wait, NULL);
            kill(child, SIGKILL);
        }
        int status = ended(child);
        check_directory(c->training.model_dir);
        if (!WIFSIGNALED(status)) {
            ck_assert_int_eq(status, 0);
            return kills;
        }
    }
}

START_TEST(killed_at_any_moment)
{
    static const char *const variants[] = {
        "training.keep_checkpoints=2;training.save_every=3",
        "training.ema=0.8;training.validate_every=4;training.track_heads=6",
        "training.average=3;training.average_every=2;training.save_every=2;training.validate_every=0",
        "training.head_l0.weight=0.01;training.patience=2;training.learning_rate=0.1;training.guided_alignment.weight=0.1;"
        "training.drop_head.rate=0.2",
        "text.tokenizer=sentencepiece;text.max_vocabulary=300;text.character_coverage=1;text.sampling=0.3;"
        "text.shared_vocabulary=true",
    };
    enum { VARIANTS = sizeof variants / sizeof *variants };
    const char *asked = getenv("HEADWISE_KILLS");
    int wanted = asked ? atoi(asked) : 20, kills = 0, runs = 0;
    ck_assert_int_gt(wanted, 0);
    hw_random random = hw_random_new((uint64_t)time(NULL), 5);
    double seconds[VARIANTS];
    for (int v = 0; v < VARIANTS; v++)
        seconds[v] = whole_run(train_config(arena, hw_arena_string(arena, "whole%d", v), variants[v]));
    for (; kills < wanted; runs++) {
        int v = runs % VARIANTS;
        const hw_config *c = train_config(arena, hw_arena_string(arena, "killed%d", runs), variants[v]);
        double most = seconds[v] < 0.9 ? seconds[v] : 0.9;
        kills += kill_until_it_ends(c, most, &random);
        same_directories(scratch_path(hw_arena_string(arena, "whole%d", v)), c->training.model_dir);
    }
    if (asked) printf("%d kills in %d runs, each ended with the same bytes\n", kills, runs);
}
END_TEST

Suite *test_train_kill(void);
Suite *test_train_kill(void)
{
    Suite *suite = suite_create("train_kill");
    TCase *t = tcase_create("kill");
    tcase_add_checked_fixture(t, begin, scratch_end);
    if (getenv("HEADWISE_KILLS")) tcase_set_timeout(t, 180 + 2 * atoi(getenv("HEADWISE_KILLS")));
    tcase_add_test(t, killed_at_any_moment);
    suite_add_tcase(suite, t);
    return suite;
}
