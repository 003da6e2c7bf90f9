/* One pool of threads for all parallel work.
 *
 * The caller publishes a job and takes part in it; sleeping workers join. What is left of the job stands in one atomic
 * word, the ticket: the job's number in the upper half, how many items nobody has taken yet in the lower. Taking an
 * item is one compare-and-swap, which can only succeed while that job is unfinished, so a worker that comes late can
 * never see another job's function. Threads spin for a moment before they sleep, since a training step publishes
 * several jobs of 100 us each; where there are more threads than cores they sleep at once.
 *
 * fork: the child starts without workers and makes its own at its first call. A child must not be forked in the middle
 * of an hw_parallel whose end it wants to see. */
#include <headwise/base.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

static const double SPIN_SECONDS = 100e-6;

static struct {
    pthread_mutex_t turn; /* held by the caller whose job runs, and while the pool changes */
    int wanted;           /* threads asked for, the caller among them; 0: not decided yet */
    bool started, spin;
    int workers;
    pthread_t threads[HW_MOST_THREADS];

    /* The job. Written by the caller before the ticket, read after taking an item of it. */
    void (*function)(int i, void *argument);
    void *argument;
    int n;
    _Atomic uint64_t ticket;
    _Atomic int unfinished;

    pthread_mutex_t lock; /* for sleeping and waking only */
    pthread_cond_t published, finished;
    _Atomic int sleeping;
    _Atomic bool caller_sleeps, stop;
} pool = {.turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER,
          .published = PTHREAD_COND_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};

static _Thread_local int thread_index;
static _Thread_local bool inside;

static int cores(void)
{
    for (int most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        if (!set) break;
        size_t size = CPU_ALLOC_SIZE((size_t)most);
        int count = sched_getaffinity(0, size, set) ? 0 : CPU_COUNT_S(size, set);
        CPU_FREE(set);
        if (count > 0) return count < HW_MOST_THREADS ? count : HW_MOST_THREADS;
    }
    return 1;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Waits a moment for ready(); false if that was not enough. */
static bool spin_until(bool (*ready)(void))
{
    if (ready()) return true;
    if (!pool.spin) return false;
    double end = hw_seconds() + SPIN_SECONDS;
    do {
        for (int i = 0; i < 64; i++) {
            if (ready()) return true;
            relax();
        }
    } while (hw_seconds() < end);
    return false;
}

static bool job_open(void) { return (uint32_t)atomic_load(&pool.ticket) > 0 || atomic_load(&pool.stop); }
static bool job_done(void) { return atomic_load(&pool.unfinished) == 0; }

/* Takes items of the current job until none is left. */
static void work(void)
{
    inside = true;
    for (uint64_t ticket = atomic_load(&pool.ticket); (uint32_t)ticket > 0;) {
        if (!atomic_compare_exchange_weak(&pool.ticket, &ticket, ticket - 1)) continue;
        pool.function(pool.n - (int)(uint32_t)ticket, pool.argument);
        if (atomic_fetch_sub(&pool.unfinished, 1) == 1 && atomic_load(&pool.caller_sleeps)) {
            pthread_mutex_lock(&pool.lock);
            pthread_cond_signal(&pool.finished);
            pthread_mutex_unlock(&pool.lock);
        }
        ticket = atomic_load(&pool.ticket);
    }
    inside = false;
}

static void *worker(void *index)
{
    thread_index = (int)(intptr_t)index;
    while (!atomic_load(&pool.stop)) {
        if (!spin_until(job_open)) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.sleeping, 1);
            while (!job_open()) pthread_cond_wait(&pool.published, &pool.lock);
            atomic_fetch_sub(&pool.sleeping, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        work();
    }
    return NULL;
}

/* The caller either sees a sleeper here, or the sleeper sees the job before it waits: both sides write, then read. */
static void wake_workers(void)
{
    if (!atomic_load(&pool.sleeping)) return;
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.published);
    pthread_mutex_unlock(&pool.lock);
}

static void wait_for_end(void)
{
    if (spin_until(job_done)) return;
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.caller_sleeps, true);
    while (!job_done()) pthread_cond_wait(&pool.finished, &pool.lock);
    atomic_store(&pool.caller_sleeps, false);
    pthread_mutex_unlock(&pool.lock);
}

static void stop_workers(void)
{
    atomic_store(&pool.stop, true);
    wake_workers();
    for (int i = 0; i < pool.workers; i++) pthread_join(pool.threads[i], NULL);
    atomic_store(&pool.stop, false);
    pool.workers = 0;
    pool.started = false;
}

/* At exit the workers are joined, so that no tool reports their memory. Whoever exits while a job runs leaves it be. */
static void stop_at_exit(void)
{
    if (inside || pthread_mutex_trylock(&pool.turn)) return;
    stop_workers();
    pthread_mutex_unlock(&pool.turn);
}

static void forget_in_child(void)
{
    pthread_mutex_init(&pool.turn, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.published, NULL);
    pthread_cond_init(&pool.finished, NULL);
    pool.started = false;
    pool.workers = 0;
    atomic_store(&pool.ticket, 0);
    atomic_store(&pool.sleeping, 0);
    atomic_store(&pool.caller_sleeps, false);
    atomic_store(&pool.stop, false);
}

static void register_handlers(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
    atexit(stop_at_exit);
}

/* Signals stay with the thread that the program runs in: workers block them all. Where the system refuses a thread, the
 * work is done by those that there are. */
static void start_workers(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handlers);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pool.spin = pool.wanted <= cores();
    while (pool.workers < pool.wanted - 1 &&
           !pthread_create(&pool.threads[pool.workers], NULL, worker, (void *)(intptr_t)(pool.workers + 1)))
        pool.workers++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool.started = true;
}

void hw_threads_set(int threads)
{
    HW_CHECK(!inside, "the number of threads cannot change inside hw_parallel");
    HW_CHECK(threads >= 0, "%d threads were asked for", threads);
    pthread_mutex_lock(&pool.turn);
    if (pool.started) stop_workers();
    pool.wanted = threads == 0 ? cores() : threads < HW_MOST_THREADS ? threads : HW_MOST_THREADS;
    pthread_mutex_unlock(&pool.turn);
}

int hw_threads(void)
{
    if (inside) return pool.wanted;
    pthread_mutex_lock(&pool.turn);
    if (!pool.wanted) pool.wanted = cores();
    int threads = pool.wanted;
    pthread_mutex_unlock(&pool.turn);
    return threads;
}

int hw_thread_index(void) { return thread_index; }

void hw_parallel(int n, void (*function)(int i, void *argument), void *argument)
{
    if (n <= 0) return;
    if (inside || n == 1) {
        for (int i = 0; i < n; i++) function(i, argument);
        return;
    }
    pthread_mutex_lock(&pool.turn);
    if (!pool.wanted) pool.wanted = cores();
    if (!pool.started && pool.wanted > 1) start_workers();
    pool.function = function;
    pool.argument = argument;
    pool.n = n;
    atomic_store(&pool.unfinished, n);
    uint64_t number = (atomic_load(&pool.ticket) >> 32) + 1;
    atomic_store(&pool.ticket, number << 32 | (uint32_t)n);
    wake_workers();
    work();
    wait_for_end();
    pthread_mutex_unlock(&pool.turn);
}
