/* headwise bench decode and latency: translation, as CTranslate2 is fed with it.
 *
 * Random weights never end a sentence where a trained network would, so each batch produces exactly as many tokens as
 * its longest reference has, and the work is the same whatever the weights are. Sentences are sorted by (target,
 * source) length, every so manyth is taken, and they come in batches. Latency is the same with batches of one on one
 * thread; there every weight is read for every token, so it is reported against the speed at which this machine reads a
 * block of their size. */
#include "cli/bench.h"

#include <stdlib.h>

#include <headwise/decode.h>
#include <headwise/metrics.h>

typedef struct options {
    bench_text_options text;
    int64_t beam, batch, sentences;
} options;

/* Latency has all but the last. */
static const hw_cli_option table[] = {
    BENCH_TEXT_OPTIONS(options),
    {"beam", 0, "K", HW_CLI_INTEGER, offsetof(options, beam), "hypotheses kept at each step (1: greedy)", 1, 1024,
     NULL},
    {"sentences", 0, "S", HW_CLI_INTEGER, offsetof(options, sentences), "how many sentences are translated (256)", 1,
     1e9, NULL},
    {"batch", 0, "B", HW_CLI_INTEGER, offsetof(options, batch), "sentences of a batch (64)", 1, 1e6, NULL},
};
enum { OPTIONS = sizeof table / sizeof *table };

typedef struct bench {
    const hw_transformer *network;
    hw_runner *runner;
    const options *options;
    const bench_text *text; /* sorted */
    int64_t count, stride;  /* sentences, and from one to the next in the text */
    hw_ids *sources;        /* [batch] */
    double *times;          /* [batches] seconds */
} bench;

/* ---- work -------------------------------------------------------------------------------------------------------- */

static const bench_pair *pair_at(const bench *b, int64_t i) { return &b->text->pairs[i * b->stride]; }

/* Decodes the batch that begins with sentence first, and adds to the sums. */
static void decode_batch(bench *b, int64_t first, bench_result *sums)
{
    int64_t count = b->count - first < b->options->batch ? b->count - first : b->options->batch, length = 0;
    for (int64_t i = 0; i < count; i++) {
        const bench_pair *p = pair_at(b, first + i);
        b->sources[i] = p->source;
        if (p->target.count > length) length = p->target.count;
    }
    hw_search_options o = {.beam = b->options->beam,
                           .n_best = 1,
                           .max_length = length,
                           .min_length = length,
                           .batch_sentences = b->options->batch,
                           .ids_only = true};
    double start = hw_seconds(), cpu = hw_bench_process_seconds();
    const hw_hypotheses *found = hw_search(b->runner, &o, count, b->sources);
    double seconds = hw_seconds() - start;
    if (b->times) b->times[sums->batches] = seconds;
    sums->seconds += seconds;
    sums->cpu_seconds += hw_bench_process_seconds() - cpu;
    sums->batches++;
    for (int64_t i = 0; i < count; i++) {
        sums->target_tokens += found[i].count ? found[i].items[0].length : 0;
        sums->source_tokens += b->sources[i].count + 1;
        sums->flops += hw_bench_flops(b->network, b->sources[i].count + 1, length, b->options->beam);
    }
}

static void decode_all(bench *b, bench_result *sums)
{
    for (int64_t i = 0; i < b->count; i += b->options->batch) decode_batch(b, i, sums);
}

/* What is not in an op. */
static void tell_parts(const bench *b, bench_result *r)
{
    static const char *const names[] = {[HW_SEARCH_SCREEN] = "likeliest token, output layer in bytes",
                                        [HW_SEARCH_RANK] = "log-sum-exp and ranking of logits"};
    double seconds[HW_SEARCH_PARTS], left = r->profile_seconds * r->threads - hw_bench_op_seconds(r);
    hw_runner_profile_parts(b->runner, seconds);
    int count = 0;
    for (int i = 0; i < HW_SEARCH_PARTS; i++) {
        left -= seconds[i];
        if (seconds[i] > 0) r->parts[count++] = (bench_part){names[i], seconds[i]};
    }
    r->parts[count] = (bench_part){"search, waiting, all else", left};
}

static void measure(bench *b, bench_result *r, hw_arena *arena)
{
    bench_result unused = {0}, sums = {0};
    double *times = b->times;
    b->times = NULL;
    decode_batch(b, (b->count - 1) / b->options->batch * b->options->batch, &unused); /* the longest */
    decode_batch(b, 0, &unused);
    b->times = times;
    int64_t before = hw_runner_mallocs(b->runner);
    decode_all(b, r);
    r->allocations = hw_runner_mallocs(b->runner) - before;
    r->peak_mib = hw_bench_peak_mib();

    b->times = NULL;
    hw_profile_entry *entries = hw_arena_alloc(arena, (size_t)hw_op_count() * sizeof *entries);
    hw_runner_profile(b->runner, true);
    decode_all(b, &sums);
    hw_runner_profile_sum(b->runner, entries);
    b->times = times;
    r->profile = entries;
    r->profile_seconds = sums.seconds;
    r->profile_batches = sums.batches;
    tell_parts(b, r);
}

static double median(double *values, int64_t count)
{
    qsort(values, (size_t)count, sizeof *values, hw_ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

/* Latency against memory: bytes of weights that the sentences must read, a second; and what could be read of a block as
 * large as the weights. */
typedef struct reading {
    double needed, possible, mib;
} reading;

static reading measure_reading(const bench *b, const bench_result *r)
{
    double source, target, all = (double)r->parameters * (double)sizeof(hw_real);
    hw_transformer_flops(b->network, &source, &target); /* two a weight */
    double bytes = (double)sizeof(hw_real) / 2 * (source * (double)r->batches + target * (double)r->target_tokens);
    return (reading){bytes / r->seconds, hw_bench_read_speed(all), all / (1 << 20)};
}

static void print(hw_cli *cli, bench *b, const bench_result *r, bool latency)
{
    double roof = hw_bench_roof(), milliseconds = 1000 * median(b->times, r->batches);
    reading read = {0};
    if (latency) read = measure_reading(b, r);
    if (cli->json) {
        json_t *root = hw_bench_report_json(r, roof);
        json_object_set_new(root, "beam", json_integer(b->options->beam));
        json_object_set_new(root, "batch", json_integer(b->options->batch));
        json_object_set_new(root, "sentences", json_integer(b->count));
        json_object_set_new(root, latency ? "ms_per_sentence" : "median_ms_per_batch", json_real(milliseconds));
        if (latency) {
            json_object_set_new(root, "weights_read_per_s", json_real(read.needed));
            json_object_set_new(root, "read_bandwidth", json_real(read.possible));
        }
        hw_bench_json_print(root);
        return;
    }
    hw_cli_table *rows = hw_bench_report_table(cli, r, roof);
    hw_cli_cell(rows, "median");
    hw_cli_cell(rows, "%.3f ms a %s, %lld of them; beam %lld", milliseconds, latency ? "sentence" : "batch",
                (long long)r->batches, (long long)b->options->beam);
    if (latency) {
        hw_cli_cell(rows, "reading");
        hw_cli_cell(rows, "%.1f GB/s of weights, %.1f %% of the %.1f GB/s that %.1f MiB are read at", read.needed / 1e9,
                    100 * read.needed / read.possible, read.possible / 1e9, read.mib);
    }
    hw_cli_table_print(rows, stdout);
    hw_bench_profile_print(cli, r, roof);
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

static int bench_text_on(hw_cli *cli, const hw_config *config, const options *o, bench_text *text, bool latency)
{
    hw_error err;
    int64_t count = text->count < o->sentences ? text->count : o->sentences;
    int64_t batch = o->batch < count ? o->batch : count;
    if (count < o->sentences)
        hw_cli_note(cli, "%s and %s hold %lld pairs of sentences, not %lld", o->text.source, o->text.target,
                    (long long)count, (long long)o->sentences);
    double bytes = hw_bench_decoding_bytes(config, text->vocabulary, text->longest, batch, o->beam);
    if (!hw_bench_fits(bytes, &err)) return hw_cli_fail(&err);
    hw_transformer *m = hw_bench_network(config, text->vocabulary);
    if (!m) return HW_CLI_USAGE;
    hw_parameters_settle(m->parameters);
    hw_bench_text_sort(text, true);
    bench b = {.network = m,
               .runner = hw_runner_new(m),
               .options = o,
               .text = text,
               .count = count,
               .stride = text->count / count};
    b.sources = hw_arena_alloc(cli->arena, (size_t)batch * sizeof *b.sources);
    b.times = hw_arena_alloc(cli->arena, (size_t)count * sizeof *b.times);
    bench_result r = {.mode = latency ? "latency" : "decode",
                      .size = cli->arguments[0],
                      .threads = hw_threads(),
                      .vocabulary = text->vocabulary,
                      .parameters = hw_parameters_total(m->parameters),
                      .estimate_mib = bytes / (1 << 20)};
    measure(&b, &r, cli->arena);
    print(cli, &b, &r, latency);
    hw_runner_free(b.runner);
    hw_transformer_free(m);
    return HW_CLI_DONE;
}

static int run(hw_cli *cli, bool latency)
{
    options o = {.beam = 1, .batch = latency ? 1 : 64, .sentences = 256};
    hw_error err;
    if (!hw_cli_parse(cli, &o)) return cli->status;
    if (latency && !cli->threads) hw_threads_set(1);
    hw_bench_text_complete(&o.text);
    hw_config *config = hw_bench_config(cli, cli->arguments[0], false);
    if (!config) return HW_CLI_USAGE;
    bench_text text;
    double bytes = hw_bench_decoding_bytes(config, o.text.vocabulary ? o.text.vocabulary : HW_SPECIALS + 1, 1, 1, 1) +
                   (o.text.source ? 0 : (double)o.sentences * (16.0 * (double)o.text.length + 128));
    if (!hw_bench_fits(bytes, &err)) return hw_cli_fail(&err);
    if (!hw_bench_text_load(&text, &o.text, o.sentences, &err)) return hw_cli_fail(&err);
    int status = bench_text_on(cli, config, &o, &text, latency);
    hw_bench_text_free(&text);
    return status;
}

static int run_decode(hw_cli *cli) { return run(cli, false); }
static int run_latency(hw_cli *cli) { return run(cli, true); }

const hw_cli_command hw_bench_decode = {
    .usage = "SIZE",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Translates with a network of SIZE (toy, tiny, small, base) whose weights are random: sentences sorted by "
        "length, in batches, each of which produces as many tokens as its longest reference has. Prints tokens a "
        "second, the share of the roof, the peak of memory, allocations, and where the time goes.",
    .options = table,
    .option_count = OPTIONS,
    .rules = hw_bench_text_rules,
    .run = run_decode,
};

const hw_cli_command hw_bench_latency = {
    .usage = "SIZE",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Translates one sentence at a time, on one thread unless --threads says otherwise, with a network of SIZE "
        "(toy, tiny, small, base) whose weights are random. Prints the median time of a sentence, and how fast "
        "weights were read beside how fast this machine can read them.",
    .options = table,
    .option_count = OPTIONS - 1,
    .rules = hw_bench_text_rules,
    .run = run_latency,
};
