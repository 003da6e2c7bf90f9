/* headwise bench train: steps of training, as PyTorch is fed with them.
 *
 * Pairs are sorted by (source, target) length and cut at a number of tokens a side; the batches come in an order drawn
 * from the seed. Others pad such batches, so their tokens a side are padded ones; here they are real. A step is
 * everything from the arrays of ids on: making the batch, cutting it, forward, backward, clipping, Adam, packing. */
#include "cli/bench.h"

#include <stdlib.h>

#include <headwise/train.h>

typedef struct options {
    bench_text_options text;
    int64_t batch_tokens, micro_batch_tokens, shards, steps;
} options;

enum { NOT_GIVEN = -1 };

static const hw_cli_option table[] = {
    BENCH_TEXT_OPTIONS(options),
    {"batch-tokens", 0, "N", HW_CLI_INTEGER, offsetof(options, batch_tokens),
     "tokens a side of a batch at most (4096); the same as --set training.batch_tokens=N", 1, 1e15, NULL},
    {"shards", 0, "N", HW_CLI_INTEGER, offsetof(options, shards), "the same as --set training.shards=N", 1, 1024, NULL},
    {"micro-batch-tokens", 0, "N", HW_CLI_INTEGER, offsetof(options, micro_batch_tokens),
     "the same as --set training.micro_batch_tokens=N", 0, 1e15, NULL},
    {"steps", 0, "N", HW_CLI_INTEGER, offsetof(options, steps), "steps that are measured (12 at least, and 3 seconds)",
     1, 1e9, NULL},
};

/* ---- batches ----------------------------------------------------------------------------------------------------- */

typedef struct batches {
    const bench_text *text;
    int64_t count;
    int64_t *first;    /* [count + 1] pair of each */
    int64_t *order;    /* [count] */
    int64_t oversized; /* pairs longer than a batch may be */
    int64_t widest;    /* the one with the most rows */
} batches;

static int64_t pair_rows(const bench_pair *p) { return p->source.count + p->target.count + 2; }

static void cut(batches *b, int64_t limit)
{
    int64_t source = 0, target = 0, rows = 0, most = 0;
    for (int64_t i = 0; i < b->text->count; i++) {
        const bench_pair *p = &b->text->pairs[i];
        int64_t n = p->source.count + 1, m = p->target.count + 1;
        b->oversized += n > limit || m > limit;
        if (!i || source + n > limit || target + m > limit) {
            b->first[b->count++] = i;
            source = target = rows = 0;
        }
        source += n;
        target += m;
        rows += pair_rows(p);
        if (rows <= most) continue;
        most = rows;
        b->widest = b->count - 1;
    }
    b->first[b->count] = b->text->count;
}

static batches batches_new(bench_text *text, int64_t limit, hw_arena *arena, uint64_t seed)
{
    hw_bench_text_sort(text, false);
    batches b = {.text = text, .first = hw_arena_alloc(arena, ((size_t)text->count + 1) * sizeof *b.first)};
    cut(&b, limit);
    b.order = hw_arena_alloc(arena, (size_t)b.count * sizeof *b.order);
    hw_random random = hw_random_new(seed, 0);
    for (int64_t i = 0; i < b.count; i++) { /* a shuffle from the inside out */
        int64_t k = (int64_t)hw_random_below(&random, (uint64_t)i + 1);
        b.order[i] = b.order[k];
        b.order[k] = i;
    }
    return b;
}

static hw_batch *make_batch(const batches *b, int64_t which, hw_arena *arena)
{
    int64_t first = b->first[which], count = b->first[which + 1] - first;
    hw_ids *sources = hw_arena_alloc(arena, (size_t)count * sizeof *sources);
    hw_ids *targets = hw_arena_alloc(arena, (size_t)count * sizeof *targets);
    int64_t *lines = hw_arena_alloc(arena, (size_t)count * sizeof *lines);
    for (int64_t i = 0; i < count; i++) {
        const bench_pair *p = &b->text->pairs[first + i];
        sources[i] = p->source;
        targets[i] = p->target;
        lines[i] = p->line;
    }
    return hw_batch_new(arena, count, sources, targets, lines);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

enum { WARM_UP = 3, LEAST_STEPS = 12 };
static const double LEAST_SECONDS = 3;

typedef struct bench {
    const hw_transformer *network;
    hw_trainer *trainer;
    batches batches;
    hw_arena *arena; /* of a batch */
    int64_t next, skipped;
    hw_step_result last;
} bench;

static void step(bench *b, int64_t which, bench_result *sums)
{
    double start = hw_seconds(), cpu = hw_bench_process_seconds();
    hw_arena_reset(b->arena);
    hw_batch *batch = make_batch(&b->batches, which, b->arena);
    b->last = hw_trainer_step(b->trainer, batch);
    sums->seconds += hw_seconds() - start;
    b->skipped += b->last.skipped;
    sums->cpu_seconds += hw_bench_process_seconds() - cpu;
    sums->batches++;
    sums->source_tokens += batch->source_rows;
    sums->target_tokens += batch->target_rows;
    for (int64_t i = 0; i < batch->sentences; i++)
        sums->flops += 3 * hw_bench_flops(b->network, batch->source.length[i], batch->target.length[i], 1);
}

static void next_step(bench *b, bench_result *sums) { step(b, b->batches.order[b->next++ % b->batches.count], sums); }

static int64_t mallocs(const bench *b) { return hw_trainer_mallocs(b->trainer) + hw_arena_mallocs(b->arena); }

static void measure(bench *b, const options *o, bench_result *r)
{
    bench_result unused = {0};
    for (int i = 0; i < WARM_UP; i++) step(b, i ? b->batches.order[i % b->batches.count] : b->batches.widest, &unused);
    int64_t before = mallocs(b);
    while (o->steps ? r->batches < o->steps : r->batches < LEAST_STEPS || r->seconds < LEAST_SECONDS) next_step(b, r);
    r->allocations = mallocs(b) - before;
    r->peak_mib = hw_bench_peak_mib();
}

/* What the threads do outside of ops; the time of a part is that of all threads, whether they work or wait. */
static void outside_of_ops(const bench *b, bench_result *r)
{
    static const char *const names[HW_STEP_PARTS] = {
        [HW_STEP_CUT] = "cutting into shards", [HW_STEP_SHARDS] = "clearing gradients, waiting for shards",
        [HW_STEP_SUM] = "adding up shards",    [HW_STEP_UPDATE] = "Adam",
        [HW_STEP_PACK] = "packing weights",
    };
    double seconds[HW_STEP_PARTS], threads = r->threads, all = 0;
    hw_trainer_profile_parts(b->trainer, seconds);
    for (int i = 0; i < HW_STEP_PARTS; i++) {
        all += seconds[i];
        r->parts[i] = (bench_part){names[i], threads * seconds[i] - (i == HW_STEP_SHARDS ? hw_bench_op_seconds(r) : 0)};
    }
    r->parts[HW_STEP_PARTS] = (bench_part){"making the batch", threads * (r->profile_seconds - all)};
}

static void profile(bench *b, bench_result *r, hw_arena *arena)
{
    bench_result sums = {0};
    hw_profile_entry *entries = hw_arena_alloc(arena, (size_t)hw_op_count() * sizeof *entries);
    hw_trainer_profile(b->trainer, true);
    while (sums.batches * 3 < r->batches) next_step(b, &sums);
    hw_trainer_profile_sum(b->trainer, entries);
    r->profile = entries;
    r->profile_seconds = sums.seconds;
    r->profile_batches = sums.batches;
    outside_of_ops(b, r);
}

static void print(hw_cli *cli, const hw_config *config, const bench *b, const bench_result *r)
{
    double roof = hw_bench_roof(), loss = b->last.count.loss / (double)b->last.count.tokens;
    if (cli->json) {
        json_t *root = hw_bench_report_json(r, roof);
        json_object_set_new(root, "loss", hw_json_number(loss));
        json_object_set_new(root, "skipped_batches", json_integer(b->skipped));
        json_object_set_new(root, "batch_tokens", json_integer(config->training.batch_tokens));
        json_object_set_new(root, "shards", json_integer(config->training.shards));
        json_object_set_new(root, "micro_batch_tokens", json_integer(config->training.micro_batch_tokens));
        hw_bench_json_print(root);
        return;
    }
    hw_cli_table *rows = hw_bench_report_table(cli, r, roof);
    hw_cli_cell(rows, "loss");
    hw_cli_cell(rows, "%.3f a target token in the last step", loss);
    hw_cli_table_print(rows, stdout);
    hw_bench_profile_print(cli, r, roof);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool settle(hw_config *config, const options *o, hw_error *err)
{
    if (config->training.batch_sentences)
        return hw_fail(err, "training.batch_sentences: bench counts batches in tokens; give --batch-tokens");
    if (o->batch_tokens) config->training.batch_tokens = o->batch_tokens;
    if (o->shards) config->training.shards = o->shards;
    if (o->micro_batch_tokens != NOT_GIVEN) config->training.micro_batch_tokens = o->micro_batch_tokens;
    return true;
}

/* Enough for some batches of different lengths. */
static int64_t pairs_to_make(const hw_config *config, const options *o)
{
    int64_t a_batch = config->training.batch_tokens / (o->text.length + 1) + 1;
    return 16 * a_batch;
}

static int bench_text_on(hw_cli *cli, const hw_config *config, const options *o, bench_text *text)
{
    hw_error err;
    double bytes = hw_bench_training_bytes(config, text->vocabulary, text->longest);
    if (!hw_bench_fits(bytes, &err)) return hw_cli_fail(&err);
    hw_transformer *m = hw_bench_network(config, text->vocabulary);
    if (!m) return HW_CLI_USAGE;
    hw_parameters_pack(m->parameters);
    bench b = {.network = m, .trainer = hw_trainer_new(m, config), .arena = hw_arena_new(0)};
    b.batches = batches_new(text, config->training.batch_tokens, cli->arena, (uint64_t)config->training.seed);
    if (b.batches.oversized)
        hw_cli_say("pairs with more than %lld tokens on a side: %lld of %lld; each is a batch of its own",
                   (long long)config->training.batch_tokens, (long long)b.batches.oversized, (long long)text->count);
    bench_result r = {.mode = "train",
                      .size = cli->arguments[0],
                      .threads = hw_threads(),
                      .vocabulary = text->vocabulary,
                      .parameters = hw_parameters_total(m->parameters),
                      .estimate_mib = bytes / (1 << 20)};
    measure(&b, o, &r);
    profile(&b, &r, cli->arena);
    if (b.skipped)
        hw_cli_say("loss or gradient was not finite in %lld steps, which left out Adam; their speed says little",
                   (long long)b.skipped);
    print(cli, config, &b, &r);
    hw_trainer_free(b.trainer);
    hw_transformer_free(m);
    hw_arena_free(b.arena);
    return HW_CLI_DONE;
}

static int run(hw_cli *cli)
{
    options o = {.micro_batch_tokens = NOT_GIVEN};
    hw_error err;
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_bench_text_complete(&o.text);
    hw_config *config = hw_bench_config(cli, cli->arguments[0], true);
    if (!config) return HW_CLI_USAGE;
    if (!settle(config, &o, &err)) return hw_cli_refuse(&err);
    bench_text text;
    if (!o.text.source && !hw_bench_fits(hw_bench_training_bytes(config, o.text.vocabulary, 2 * o.text.length), &err))
        return hw_cli_fail(&err);
    int64_t made_up = o.text.source ? 0 : pairs_to_make(config, &o);
    if (!hw_bench_text_load(&text, &o.text, made_up, &err)) return hw_cli_fail(&err);
    int status = bench_text_on(cli, config, &o, &text);
    hw_bench_text_free(&text);
    return status;
}

const hw_cli_command hw_bench_train = {
    .usage = "SIZE",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Trains a network of SIZE (toy, tiny, small, base) for some steps and throws it away. Prints tokens a "
        "second, the share of the roof, the peak of memory, allocations in the measured steps, and where the time "
        "goes.\n"
        "\n"
        "Batches are sentences of like lengths, up to so many tokens a side, without padding; a sentence that is "
        "longer goes alone. --set changes what a step depends on, options of model and training: --set model.width=96.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = hw_bench_text_rules,
    .run = run,
};
