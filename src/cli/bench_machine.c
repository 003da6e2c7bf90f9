/* What this machine is: cores, vectors, BLAS, memory, and the speed that all shares are reckoned against.
 *
 * The roof is measured in the run whose figures it goes with, since the speed of a machine, above all of a virtual one,
 * changes by the minute; and by the time that the thread had the processor, so that other work does not lower it.
 * `headwise bench machine` prints all of it. */
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ROOF_SIZE = 1024, LEAST_REPEATS = 3 };
static const double ROOF_SECONDS = 0.3, READ_SECONDS = 0.03;

/* ---- time -------------------------------------------------------------------------------------------------------- */

static double clock_seconds(clockid_t clock)
{
    struct timespec t;
    HW_CHECK(!clock_gettime(clock, &t), "the system does not tell how long a thread has run");
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double hw_bench_thread_seconds(void) { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }
double hw_bench_process_seconds(void) { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

/* ---- speed ------------------------------------------------------------------------------------------------------- */

static hw_real *filled(int64_t numbers)
{
    hw_real *block = hw_memory_new((size_t)numbers * sizeof *block);
    HW_CHECK(block, "no memory for a measurement");
    for (int64_t i = 0; i < numbers; i++) block[i] = (hw_real)(i % 17 - 8) / 8;
    return block;
}

double hw_bench_roof(void)
{
    const int64_t n = ROOF_SIZE;
    hw_real *a = filled(n * n), *b = filled(n * n), *c = filled(n * n);
    double best = 0, began = hw_seconds();
    for (int i = 0; i < LEAST_REPEATS || hw_seconds() - began < ROOF_SECONDS; i++) {
        double start = hw_bench_thread_seconds();
        hw_gemm(false, false, n, n, n, 1, a, n, b, n, 0, c, n);
        double speed = 2.0 * (double)(n * n * n) / (hw_bench_thread_seconds() - start);
        if (speed > best) best = speed;
    }
    free(a);
    free(b);
    free(c);
    return best;
}

/* Eight independent chains, so that no addition waits for the one before it. The choice of a clone runs before the
 * thread sanitizer is ready. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static uint64_t
read_all(const uint64_t *block, int64_t lines)
{
    uint64_t sums[64] = {0};
    for (int64_t i = 0; i + 8 <= lines; i += 8)
        for (int k = 0; k < 64; k++) sums[k] += block[i * 8 + k];
    for (int k = 1; k < 64; k++) sums[0] += sums[k];
    return sums[0];
}

double hw_bench_read_speed(double bytes)
{
    int64_t lines = (int64_t)(bytes / 512 + 1) * 8;
    uint64_t *block = (uint64_t *)filled(lines * 64 / (int64_t)sizeof(hw_real));
    uint64_t sum = 0;
    double best = 0, began = hw_seconds();
    for (int i = 0; i < LEAST_REPEATS || hw_seconds() - began < READ_SECONDS; i++) {
        double start = hw_bench_thread_seconds();
        int64_t times = 0;
        do sum += read_all(block, lines);
        while (++times * lines < 1 << 14); /* a MiB at least, so that the clock does not count */
        double speed = (double)(times * lines * 64) / (hw_bench_thread_seconds() - start);
        if (speed > best) best = speed;
    }
    __asm__ volatile("" : : "r"(sum)); /* as if it were used */
    free(block);
    return best;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

double hw_bench_peak_mib(void)
{
    struct rusage usage;
    HW_CHECK(!getrusage(RUSAGE_SELF, &usage), "the system does not tell how much memory was used");
    return (double)usage.ru_maxrss / 1024; /* Linux counts KiB */
}

/* A number in a file of the system, in bytes; `fallback` where there is none. */
static double system_number(const char *path, const char *format, double factor, double fallback)
{
    FILE *f = fopen(path, "r");
    char line[256];
    double value = fallback, read;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, format, &read) == 1) {
            value = read * factor;
            break;
        }
    if (f) fclose(f);
    return value;
}

/* What a limit of address space must leave beside the work: the buffers that OpenBLAS maps, which waits for ever where
 * it gets none, and of every thread its stack and the space that malloc sets aside for it. */
static double set_aside(void) { return (double)(250 << 20) + (double)(72 << 20) * (hw_threads() - 1); }

double hw_bench_available(void)
{
    static const char *const groups[][2] = {
        {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"}, /* "max": no limit */
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
    };
    double least = system_number("/proc/meminfo", "MemAvailable: %lf", 1024, 1e18);
    for (int i = 0; i < 2; i++)
        least = fmin(least, system_number(groups[i][0], "%lf", 1, 1e18) - system_number(groups[i][1], "%lf", 1, 0));
    struct rlimit space;
    if (!getrlimit(RLIMIT_AS, &space) && space.rlim_cur != RLIM_INFINITY)
        least = fmin(least,
                     (double)space.rlim_cur - system_number("/proc/self/status", "VmSize: %lf", 1024, 0) - set_aside());
    return fmax(least, 0);
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static int cores(void)
{
    int threads = hw_threads();
    hw_threads_set(0);
    int all = hw_threads();
    hw_threads_set(threads);
    return all;
}

/* "Intel(R) Xeon(R) Processor", or what kind of machine it is. */
static const char *processor(char text[128])
{
    snprintf(text, 128, "unknown processor");
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[256];
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %127[^\n]", text) == 1) break;
    if (f) fclose(f);
    return text;
}

void hw_bench_machine_rows(hw_cli_table *table, double roof)
{
    const hw_kernels *k = hw_kernels_get();
    char name[128];
    hw_cli_cell(table, "machine");
    hw_cli_cell(table, "%s, %d cores; kernels %s (%d bits), OpenBLAS %s, %s", processor(name), cores(), k->name,
                k->vector_bits, hw_blas_kernel(), HW_REAL_NAME);
    hw_cli_cell(table, "roof");
    hw_cli_cell(table, "%.1f GFLOP/s a thread at %d cubed, %.1f for %d", roof / 1e9, ROOF_SIZE,
                roof / 1e9 * hw_threads(), hw_threads());
}

json_t *hw_bench_machine_json(double roof)
{
    const hw_kernels *k = hw_kernels_get();
    char name[128];
    return json_pack("{s:o, s:i, s:s, s:i, s:s, s:s, s:f}", "processor", hw_json_text(processor(name)), "cores",
                     cores(), "kernels", k->name, "vector_bits", k->vector_bits, "blas_kernel", hw_blas_kernel(),
                     "real", HW_REAL_NAME, "roof_gflops_a_thread", roof / 1e9);
}

void hw_bench_json_print(json_t *root)
{
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

/* ---- headwise bench machine -------------------------------------------------------------------------------------- */

static void measure_roof(int i, void *roofs) { ((double *)roofs)[i] = hw_bench_roof(); }

static int run(hw_cli *cli)
{
    static const double sizes[] = {1 << 18, 1 << 20, 1 << 23, 1 << 28};
    hw_error err;
    if (!hw_cli_parse(cli, NULL)) return cli->status;
    int threads = hw_threads() < cores() ? hw_threads() : cores();
    double blocks = 3.0 * ROOF_SIZE * ROOF_SIZE * (double)sizeof(hw_real) * threads;
    if (!hw_bench_fits(fmax(blocks, sizes[3]), &err)) return hw_cli_fail(&err);
    double roof = hw_bench_roof(), together = 0;
    double *roofs = hw_arena_calloc(cli->arena, (size_t)threads, sizeof *roofs);
    hw_parallel(threads, measure_roof, roofs);
    for (int i = 0; i < threads; i++) together += roofs[i];
    json_t *speeds = json_array();
    hw_cli_table *table = hw_cli_table_new(cli->arena, "ll");
    hw_bench_machine_rows(table, roof);
    hw_cli_cell(table, "together");
    hw_cli_cell(table, "%.1f GFLOP/s on %d threads at once", together / 1e9, threads);
    for (int i = 0; i < 4; i++) {
        double speed = hw_bench_read_speed(sizes[i]);
        hw_cli_cell(table, i ? "" : "reading");
        hw_cli_cell(table, "%.1f GB/s at %.4g MiB", speed / 1e9, sizes[i] / (1 << 20));
        json_array_append_new(speeds, json_pack("{s:f, s:f}", "mib", sizes[i] / (1 << 20), "gb_per_s", speed / 1e9));
    }
    hw_cli_cell(table, "memory");
    hw_cli_cell(table, "%.0f MiB available", hw_bench_available() / (1 << 20));
    json_t *root = json_pack("{s:s, s:i, s:o, s:f, s:o, s:f}", "mode", "machine", "threads", threads, "machine",
                             hw_bench_machine_json(roof), "together_gflops", together / 1e9, "reading", speeds,
                             "available_mib", hw_bench_available() / (1 << 20));
    if (cli->json) {
        hw_bench_json_print(root);
    } else {
        hw_cli_table_print(table, stdout);
        json_decref(root);
    }
    return HW_CLI_DONE;
}

const hw_cli_command hw_bench_machine = {
    .usage = "",
    .takes = HW_CLI_JSON,
    .description =
        "Prints what this machine is, how fast one thread and all of them multiply matrices of 1024 x 1024, how fast "
        "one thread reads blocks of several sizes, and how much memory there is.",
    .run = run,
};
