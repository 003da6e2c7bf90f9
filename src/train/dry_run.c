/* What a training would be: counts, parameters, memory, and an estimate of the time. */
#include "guided.h"
#include "run.h"
#include "trainer.h"

enum { TRIAL_STEPS = 3 };
static const double TRIAL_FLOPS = 1.5e10; /* of a trial step: a fraction of a second on any machine */

static int64_t mebibytes(double bytes) { return (int64_t)(bytes / (1 << 20) + 0.5); }

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

/* guided: what is known of an alignment, or "". */
static const char *describe(const hw_bundle *bundle, const hw_corpus *corpus, const char *guided, hw_arena *arena)
{
    const hw_config *c = bundle->config;
    const hw_corpus_counts *n = hw_corpus_count(corpus);
    double values = hw_train_values_bytes(c, (double)hw_parameters_numbers(bundle->network->parameters));
    double tokens = hw_train_batch_tokens(c, n), epoch = (double)(n->target_tokens + n->pairs);
    double tapes, step = step_seconds((hw_bundle *)bundle, corpus, tokens, &tapes);
    double total = step * (double)c->training.max_steps;
    char counts[512], t[8][32];
    const char *seconds =
        total < 1e12 ? hw_thousands((int64_t)(total + 0.5), t[7]) : hw_arena_string(arena, "%.1e", total);
    return hw_arena_string(
        arena,
        "data         %s\n%s%s%s"
        "vocabulary   %s source, %s target tokens\n"
        "parameters   %s\n"
        "memory       %s MiB: %s for parameters, gradients and moments, %s for a step\n"
        "steps        %s of about %.0f target tokens, %.1f epochs\n"
        "time         about %s s for the steps (%.1f ms each; threads: %d), validation not counted\n",
        hw_corpus_describe(corpus, counts), *guided ? "alignment    " : "", guided, *guided ? "\n" : "", hw_thousands(hw_vocabulary_size(bundle->source_vocabulary), t[0]),
        hw_thousands(hw_vocabulary_size(bundle->target_vocabulary), t[1]),
        hw_thousands(hw_parameters_total(bundle->network->parameters), t[2]), hw_thousands(mebibytes(values + tapes), t[3]),
        hw_thousands(mebibytes(values), t[4]), hw_thousands(mebibytes(tapes), t[5]),
        hw_thousands(c->training.max_steps, t[6]), tokens, tokens * (double)c->training.max_steps / epoch,
        seconds, 1000 * step, hw_threads());
}

const char *hw_train_dry_run(const hw_config *config, hw_arena *arena, hw_error *err)
{
    static const char *const required[] = {"training.model_dir", "data.dir", NULL};
    if (!hw_config_require(config, required, err)) return NULL;
    hw_texts texts;
    if (!hw_directory_can_be_made(config->training.model_dir, err) || !hw_start_data(config, err) ||
        !hw_start_texts(config, arena, &texts, err))
        return NULL;
    if (!hw_train_fits(config, &texts, NULL, err)) {
        hw_texts_free(&texts);
        return NULL;
    }
    hw_bundle *bundle = hw_bundle_new(config, &texts, false, err);
    if (!bundle || !hw_start_values(config, bundle->network, err)) {
        hw_bundle_free(bundle);
        return NULL;
    }
    const char *text = NULL, *guided = "";
    hw_side from = hw_bundle_source(bundle), to = hw_bundle_target(bundle);
    hw_corpus_options filters = hw_bundle_filters(config);
    hw_corpus_options limit = {.max_length = hw_longest_source(config)}; /* as validation has it */
    filters.scratch = NULL; /* the directory may not be there yet */
    hw_corpus *corpus = hw_corpus_load(config->data.dir, config->data.train, &from, &to, &filters, err);
    hw_corpus *valid = corpus && config->training.validate_every > 0
                           ? hw_corpus_load(config->data.dir, config->data.valid, &from, &to, &limit, err)
                           : NULL;
    if (corpus && config->training.guided_alignment.weight > 0)
        guided = hw_guided_describe(config, corpus, arena, err);
    if (corpus && guided && (valid || config->training.validate_every <= 0) && hw_train_fits(config, &texts, corpus, err))
        text = describe(bundle, corpus, guided, arena);
    hw_corpus_free(valid);
    hw_corpus_free(corpus);
    hw_bundle_free(bundle);
    return text;
}
