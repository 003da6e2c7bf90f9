/* The pool of threads: every item once, nested calls, other numbers of threads, fork, several callers. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/base.h>

enum { MOST = 5000 };

typedef struct work {
    atomic_int hits[MOST];
    atomic_int bad_index;
    int spin;
} work;

static void hit(int i, void *argument)
{
    work *w = argument;
    atomic_fetch_add(&w->hits[i], 1);
    if (hw_thread_index() < 0 || hw_thread_index() >= hw_threads()) atomic_store(&w->bad_index, 1);
    for (volatile int k = 0; k < w->spin; k++) continue;
}

static void run_and_check(int n, int spin)
{
    static work w;
    for (int i = 0; i < MOST; i++) atomic_store(&w.hits[i], 0);
    w.spin = spin;
    hw_parallel(n, hit, &w);
    int wrong = 0;
    for (int i = 0; i < MOST; i++) wrong += atomic_load(&w.hits[i]) != (i < n);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(atomic_load(&w.bad_index), 0);
}

START_TEST(every_item_once)
{
    static const int threads[] = {1, 2, 3, 8, 0};
    for (int t = 0; t < 5; t++) {
        hw_threads_set(threads[t]);
        ck_assert_int_ge(hw_threads(), 1);
        if (threads[t]) ck_assert_int_eq(hw_threads(), threads[t]);
        for (int n = 0; n < 20; n++) run_and_check(n, 0);
        run_and_check(MOST, 0);
        run_and_check(100, 2000);
        ck_assert_int_eq(hw_thread_index(), 0);
    }
    hw_threads_set(1000000);
    ck_assert_int_eq(hw_threads(), HW_MOST_THREADS);
}
END_TEST

START_TEST(many_short_calls)
{
    hw_threads_set(4);
    static work w;
    int wrong = 0;
    for (int round = 1; round <= 3000; round++) {
        hw_parallel(7, hit, &w);
        for (int i = 0; i < 7; i++) wrong += atomic_load(&w.hits[i]) != round;
        if (round % 1000 == 0) usleep(5000); /* long enough for the workers to sleep */
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

static atomic_int threads_seen;

/* Waits until all three threads are there, however busy the machine is. */
static void note_thread(int i, void *argument)
{
    (void)i, (void)argument;
    atomic_fetch_or(&threads_seen, 1 << hw_thread_index());
    for (int wait = 0; wait < 10000 && atomic_load(&threads_seen) != 7; wait++) usleep(1000);
}

START_TEST(all_threads_take_part)
{
    hw_threads_set(3);
    atomic_store(&threads_seen, 0);
    hw_parallel(9, note_thread, NULL);
    ck_assert_int_eq(atomic_load(&threads_seen), 7);
}
END_TEST

static atomic_int inner_hits, inner_moved;

static void inner(int i, void *argument)
{
    (void)i;
    atomic_fetch_add(&inner_hits, 1);
    if (hw_thread_index() != *(int *)argument) atomic_store(&inner_moved, 1);
}

static void outer(int i, void *argument)
{
    (void)i, (void)argument;
    int index = hw_thread_index();
    hw_parallel(11, inner, &index);
}

START_TEST(nested_calls_run_in_place)
{
    hw_threads_set(4);
    hw_parallel(20, outer, NULL);
    ck_assert_int_eq(atomic_load(&inner_hits), 220);
    ck_assert_int_eq(atomic_load(&inner_moved), 0);
    run_and_check(50, 0);
}
END_TEST

START_TEST(children_have_their_own_threads)
{
    hw_threads_set(3);
    run_and_check(100, 100);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            atomic_store(&threads_seen, 0);
            hw_parallel(9, note_thread, NULL);
            _exit(atomic_load(&threads_seen) == 7 ? 0 : 1);
        }
        run_and_check(100, 100);
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
END_TEST

static void *call_from_thread(void *argument)
{
    work *w = argument;
    for (int round = 0; round < 200; round++) hw_parallel(50, hit, w);
    return NULL;
}

START_TEST(callers_take_turns)
{
    static work works[4];
    pthread_t threads[4];
    hw_threads_set(3);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, call_from_thread, &works[i]), 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 50; k++) ck_assert_int_eq(atomic_load(&works[i].hits[k]), 200);
}
END_TEST

static atomic_int blocked_signals;

static void look_at_signals(int i, void *argument)
{
    (void)i, (void)argument;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    if (hw_thread_index() && sigismember(&set, SIGINT)) atomic_fetch_add(&blocked_signals, 1);
    usleep(10000);
}

START_TEST(workers_leave_signals_to_the_caller)
{
    hw_threads_set(2);
    hw_parallel(8, look_at_signals, NULL);
    ck_assert_int_gt(atomic_load(&blocked_signals), 0);
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    ck_assert(!sigismember(&set, SIGINT));
}
END_TEST

static void set_threads(int i, void *argument)
{
    (void)i, (void)argument;
    fclose(stderr);
    hw_threads_set(2);
}

START_TEST(threads_do_not_change_inside)
{
    hw_threads_set(1);
    hw_parallel(2, set_threads, NULL);
}
END_TEST

Suite *test_base_parallel(void);
Suite *test_base_parallel(void)
{
    Suite *suite = suite_create("base: threads");
    TCase *t = tcase_create("parallel");
    tcase_add_test(t, every_item_once);
    tcase_add_test(t, many_short_calls);
    tcase_add_test(t, all_threads_take_part);
    tcase_add_test(t, nested_calls_run_in_place);
    tcase_add_test(t, children_have_their_own_threads);
    tcase_add_test(t, callers_take_turns);
    tcase_add_test(t, workers_leave_signals_to_the_caller);
    tcase_add_test_raise_signal(t, threads_do_not_change_inside, SIGABRT);
    suite_add_tcase(suite, t);
    return suite;
}
