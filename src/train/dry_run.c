/* What a training would be: counts, parameters, memory, and an estimate of the time. */
#include "run.h"
#include "trainer.h"

enum { TRIAL_STEPS = 3 };
static const double TRIAL_FLOPS = 1.5e10; /* of a trial step: a fraction of a second on any machine */

static double mebibytes(double bytes) { return bytes / (1 << 20); }

/* Seconds a step of at most so many target tokens, from a few that are made and thrown away; *tokens gets how many they
 * had, *bytes what a shard's tape needed. */
static double trial(hw_bundle *bundle, const hw_corpus *corpus, double most, double *tokens, double *bytes)
{
    const hw_config *c = bundle->config;
    hw_trainer *t = hw_trainer_new(bundle->network, c);
    hw_arena *arena = hw_arena_new(0);
    hw_batcher batcher = hw_batcher_new(
        corpus, &(hw_batcher_options){.seed = (uint64_t)c->training.seed, .target_tokens = (int64_t)most});
    double began = 0;
    *tokens = 0;
    for (int i = 0; i <= TRIAL_STEPS; i++) {
        if (i == 1) began = hw_seconds(); /* the first one only takes memory */
        hw_arena_reset(arena);
        const hw_batch *batch = hw_batcher_next(&batcher, arena);
        hw_trainer_step(t, batch);
        if (i) *tokens += (double)batch->target_rows / TRIAL_STEPS;
    }
    double seconds = (hw_seconds() - began) / TRIAL_STEPS;
    *bytes = 0;
    for (int i = 0; i < t->shards; i++) *bytes += (double)hw_arena_peak(hw_tape_arena(t->shard[i].tape));
    hw_trainer_free(t);
    hw_arena_free(arena);
    return seconds;
}

/* Seconds a step of `tokens` target tokens. A large network's is reckoned from two smaller ones, since a part of a step
 * (Adam, sums of gradients) costs the same whatever the batch. */
static double step_seconds(hw_bundle *bundle, const hw_corpus *corpus, double tokens, double *bytes)
{
    double source, target, some, more, most = tokens;
    hw_transformer_flops(bundle->network, &source, &target);
    double fit = TRIAL_FLOPS / (3 * (source + target));
    if (fit >= tokens) return trial(bundle, corpus, tokens, &some, bytes);
    most = fit < 32 ? 32 : fit;
    double less = trial(bundle, corpus, most / 2, &some, bytes), whole = trial(bundle, corpus, most, &more, bytes);
    double each = more > some ? (whole - less) / (more - some) : whole / more;
    double rows = (double)bundle->config->training.micro_batch_tokens,
           held = more / (double)bundle->config->training.shards;
    if (rows <= 0 || rows > tokens / (double)bundle->config->training.shards)
        rows = tokens / (double)bundle->config->training.shards;
    if (rows > held) *bytes *= rows / held; /* activations grow with the rows of a micro-batch */
    return whole + (each > 0 ? each : 0) * (tokens - more);
}

static const char *describe(const hw_bundle *bundle, const hw_corpus *corpus, hw_arena *arena)
{
    const hw_config *c = bundle->config;
    const hw_corpus_counts *n = hw_corpus_count(corpus);
    char text[512];
    double numbers = (double)hw_parameters_numbers(bundle->network->parameters) * (double)sizeof(hw_real);
    double averages = (double)c->training.average + (c->training.average || c->training.ema > 0 ? 2 : 0);
    double values =
        numbers * (4 + (double)c->training.shards + averages); /* values, packed, two moments, a gradient a shard */
    double tokens = c->training.batch_tokens > 0
                        ? (double)c->training.batch_tokens
                        : (double)c->training.batch_sentences * (double)n->target_tokens / (double)n->pairs;
    double epoch = (double)(n->target_tokens + n->pairs);
    if (tokens > epoch) tokens = epoch; /* a batch ends with the epoch */
    double tapes, step = step_seconds((hw_bundle *)bundle, corpus, tokens, &tapes);
    double total = step * (double)c->training.max_steps;
    return hw_arena_string(
        arena,
        "data         %s\n"
        "vocabulary   %d source, %d target tokens\n"
        "parameters   %lld\n"
        "memory       %.0f MiB: %.0f for parameters, gradients and moments, %.0f for a step\n"
        "steps        %lld of about %.0f target tokens, %.1f epochs\n"
        "time         about %.0f s for the steps (%.1f ms each on %d threads), validation not counted\n",
        hw_corpus_describe(corpus, text), hw_vocabulary_size(bundle->source_vocabulary),
        hw_vocabulary_size(bundle->target_vocabulary), (long long)hw_parameters_total(bundle->network->parameters),
        mebibytes(values + tapes), mebibytes(values), mebibytes(tapes), (long long)c->training.max_steps, tokens,
        tokens * (double)c->training.max_steps / epoch, total, 1000 * step, hw_threads());
}

const char *hw_train_dry_run(const hw_config *config, hw_arena *arena, hw_error *err)
{
    static const char *const required[] = {"training.model_dir", "data.dir", NULL};
    if (!hw_config_require(config, required, err)) return NULL;
    hw_texts texts;
    if (!hw_start_texts(config, arena, &texts, err)) return NULL;
    hw_bundle *bundle = hw_bundle_new(config, &texts, false, err);
    if (!bundle || !hw_start_values(config, bundle->network, err)) {
        hw_bundle_free(bundle);
        return NULL;
    }
    const char *text = NULL;
    hw_side from = hw_bundle_source(bundle), to = hw_bundle_target(bundle);
    hw_corpus_options filters = hw_bundle_filters(config);
    filters.scratch = NULL; /* the directory may not be there yet */
    hw_corpus *corpus = hw_corpus_load(config->data.dir, config->data.train, &from, &to, &filters, err);
    hw_corpus *valid = corpus && config->training.validate_every > 0
                           ? hw_corpus_load(config->data.dir, config->data.valid, &from, &to, NULL, err)
                           : NULL;
    if (corpus && (valid || config->training.validate_every <= 0)) text = describe(bundle, corpus, arena);
    hw_corpus_free(valid);
    hw_corpus_free(corpus);
    hw_bundle_free(bundle);
    return text;
}
