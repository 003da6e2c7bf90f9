/* What a bench found, as tables for people and as JSON.
 *
 * The keys target_tokens_per_s, roof_share, peak_rss_mib and threads are a contract with other programs. JSON numbers
 * are not rounded; a profile's seconds are summed over the threads. */
#include "cli/bench.h"

#include <stdlib.h>

static double roof_share(const bench_result *r, double roof) { return r->flops / r->seconds / (roof * r->threads); }

hw_cli_table *hw_bench_report_table(hw_cli *cli, const bench_result *r, double roof)
{
    char parameters[32], vocabulary[32], speed[32], sources[32];
    double busy = r->cpu_seconds / r->seconds / r->threads;
    hw_cli_table *table = hw_cli_table_new(cli->arena, "ll");
    hw_bench_machine_rows(table, roof);
    hw_cli_cell(table, "work");
    hw_cli_cell(table, "%s %s: %s parameters, vocabulary %s; %.0f target tokens a batch, %lld batches in %.4g s",
                r->mode, r->size, hw_thousands(r->parameters, parameters), hw_thousands(r->vocabulary, vocabulary),
                (double)r->target_tokens / (double)r->batches, (long long)r->batches, r->seconds);
    hw_cli_cell(table, "speed");
    hw_cli_cell(table, "%s target tokens/s, %s source tokens/s on %d %s",
                hw_thousands((int64_t)((double)r->target_tokens / r->seconds + 0.5), speed),
                hw_thousands((int64_t)((double)r->source_tokens / r->seconds + 0.5), sources), r->threads,
                hw_plural(r->threads, "thread", "threads"));
    hw_cli_cell(table, "busy");
    hw_cli_cell(table, "%.0f %% of the time the threads had the processor; %s target tokens a second of it", 100 * busy,
                hw_thousands((int64_t)((double)r->target_tokens / r->cpu_seconds + 0.5), speed));
    hw_cli_cell(table, "useful");
    hw_cli_cell(table, "%.4g MFLOP a target token, %.1f GFLOP/s, %.1f %% of the roof",
                r->flops / 1e6 / (double)r->target_tokens, r->flops / r->seconds / 1e9, 100 * roof_share(r, roof));
    hw_cli_cell(table, "memory");
    hw_cli_cell(table, "%.0f MiB at the peak (%.0f reckoned); %lld allocations in %lld batches", r->peak_mib,
                r->estimate_mib, (long long)r->allocations, (long long)r->batches);
    return table;
}

/* ---- profile ----------------------------------------------------------------------------------------------------- */

static double op_seconds(const hw_profile_entry *e) { return e->seconds[0] + e->seconds[1]; }
static double op_flops(const hw_profile_entry *e) { return e->flops[0] + e->flops[1]; }
static double op_bytes(const hw_profile_entry *e) { return e->bytes[0] + e->bytes[1]; }

static double thread_seconds(const bench_result *r) { return r->profile_seconds * r->threads; }

double hw_bench_op_seconds(const bench_result *r)
{
    double seconds = 0;
    for (int op = 0; op < hw_op_count(); op++) seconds += op_seconds(&r->profile[op]);
    return seconds;
}

static int slower_first(const void *a, const void *b, void *profile)
{
    const hw_profile_entry *entries = profile;
    double more = op_seconds(&entries[*(const int *)b]) - op_seconds(&entries[*(const int *)a]);
    return (more > 0) - (more < 0);
}

/* Ops that ran, the slowest first -> how many. */
static int sorted_ops(const bench_result *r, int *ops)
{
    int count = 0;
    for (int op = 0; op < hw_op_count(); op++)
        if (r->profile[op].calls[0]) ops[count++] = op;
    qsort_r(ops, (size_t)count, sizeof *ops, slower_first, (void *)(uintptr_t)r->profile);
    return count;
}

/* A number, or nothing. */
static void figure(hw_cli_table *table, bool known, int decimals, double value, const char *unit)
{
    if (known)
        hw_cli_cell(table, "%.*f%s", decimals, value, unit);
    else
        hw_cli_cell(table, "%s", "");
}

static void profile_row(hw_cli_table *table, const bench_result *r, int op, double roof)
{
    const hw_profile_entry *e = &r->profile[op];
    double batches = (double)r->profile_batches, seconds = op_seconds(e), flops = op_flops(e);
    hw_cli_cell(table, "%s", hw_op_name(op));
    figure(table, true, 1, (double)(e->calls[0] + e->calls[1]) / batches, "");
    for (int d = 0; d < 2; d++) figure(table, e->calls[d], 3, 1000 * e->seconds[d] / batches, "");
    figure(table, true, 1, 100 * seconds / thread_seconds(r), " %");
    figure(table, !flops, 1, op_bytes(e) / seconds / 1e9, "");
    figure(table, flops, 1, flops / seconds / 1e9, "");
    figure(table, flops, 0, 100 * flops / seconds / roof, " %");
}

static void part_row(hw_cli_table *table, const bench_result *r, const bench_part *p)
{
    hw_cli_cell(table, "%s", p->name);
    figure(table, false, 0, 0, "");
    figure(table, true, 3, 1000 * p->seconds / (double)r->profile_batches, "");
    figure(table, false, 0, 0, "");
    figure(table, true, 1, 100 * p->seconds / thread_seconds(r), " %");
    for (int i = 0; i < 3; i++) figure(table, false, 0, 0, "");
}

void hw_bench_profile_print(hw_cli *cli, const bench_result *r, double roof)
{
    static const char *const heads[] = {"op",    "calls", "forward ms", "backward ms",
                                        "share", "GB/s",  "GFLOP/s",    "of a thread's roof"};
    hw_cli_table *table = hw_cli_table_new(cli->arena, "lrrrrrrr");
    for (int i = 0; i < 8; i++) hw_cli_cell(table, "%s", heads[i]);
    int *ops = hw_arena_alloc(cli->arena, (size_t)hw_op_count() * sizeof *ops), count = sorted_ops(r, ops);
    for (int i = 0; i < count; i++) profile_row(table, r, ops[i], roof);
    for (const bench_part *p = r->parts; p->name; p++) part_row(table, r, p);
    printf("\nWhere the time goes: a batch, summed over the threads (%lld batches more, with the clock at every op)\n",
           (long long)r->profile_batches);
    hw_cli_table_print(table, stdout);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void put(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, hw_json_number(value));
}
static void put_count(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static json_t *op_json(const bench_result *r, int op)
{
    const hw_profile_entry *e = &r->profile[op];
    json_t *entry = json_pack("{s:s}", "op", hw_op_name(op));
    put_count(entry, "forward_calls", e->calls[0]);
    put_count(entry, "backward_calls", e->calls[1]);
    put(entry, "forward_seconds", e->seconds[0]);
    put(entry, "backward_seconds", e->seconds[1]);
    put(entry, "flops", op_flops(e));
    put(entry, "bytes", op_bytes(e));
    put(entry, op_flops(e) ? "gflops_a_thread" : "gb_per_s",
        (op_flops(e) ? op_flops(e) : op_bytes(e)) / op_seconds(e) / 1e9);
    put(entry, "share", op_seconds(e) / thread_seconds(r));
    return entry;
}

static json_t *profile_json(const bench_result *r)
{
    json_t *list = json_array();
    for (int op = 0; op < hw_op_count(); op++)
        if (r->profile[op].calls[0]) json_array_append_new(list, op_json(r, op));
    for (const bench_part *p = r->parts; p->name; p++)
        json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "part", p->name, "seconds", p->seconds, "share",
                                              p->seconds / thread_seconds(r)));
    return list;
}

json_t *hw_bench_report_json(const bench_result *r, double roof)
{
    json_t *root = json_pack("{s:s, s:s}", "mode", r->mode, "size", r->size);
    put_count(root, "threads", r->threads);
    put(root, "target_tokens_per_s", (double)r->target_tokens / r->seconds);
    put(root, "source_tokens_per_s", (double)r->source_tokens / r->seconds);
    put(root, "roof_share", roof_share(r, roof));
    put(root, "useful_flops_per_target_token", r->flops / (double)r->target_tokens);
    put(root, "peak_rss_mib", r->peak_mib);
    put(root, "reckoned_mib", r->estimate_mib);
    put_count(root, "allocations", r->allocations);
    put(root, "seconds", r->seconds);
    put(root, "cpu_seconds", r->cpu_seconds);
    put_count(root, "batches", r->batches);
    put_count(root, "target_tokens", r->target_tokens);
    put_count(root, "source_tokens", r->source_tokens);
    put_count(root, "parameters", r->parameters);
    put_count(root, "vocabulary", r->vocabulary);
    json_object_set_new(root, "machine", hw_bench_machine_json(roof));
    put_count(root, "profile_batches", r->profile_batches);
    json_object_set_new(root, "profile", profile_json(r));
    return root;
}
