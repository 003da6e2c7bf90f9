/* A whole run: data, model directory, the loop of steps, validations and checkpoints.
 *
 * Every step is a function of data, configuration and the state in the checkpoint, so a run that was interrupted and goes on ends
 * with the same bytes as one that was not. The order of writing keeps it so: a better model is written before the checkpoint that
 * knows of it, and logs are taken back to the checkpoint when a run goes on. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <headwise/decode.h>

#include "curves.h"
#include "log.h"
#include "trainer.h"
#include "validate.h"

enum { SKIPPED_AT_MOST = 10 };

typedef struct run {
    const hw_config *config;
    const hw_train_options *options;
    hw_arena *arena, *batch_arena;
    hw_bundle *bundle;
    hw_corpus *corpus;
    hw_trainer *trainer;
    hw_validator *validator; /* NULL: nothing is validated */
    hw_batcher batcher;
    hw_run_state state;
    hw_log train_log, valid_log, times_log;
    int lock;
    double began;
    int64_t begun_at, tokens; /* the step this call began with; target tokens since then */
    hw_step_result last;
} run;

static void say(const run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const run *r, const char *format, ...)
{
    if (!r->options->say) return;
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        r->options->say(line, r->options->say_context);
    }
}

static const char *path_in(const run *r, const char *name, char path[HW_PATH])
{
    hw_error err;
    HW_CHECK(hw_bundle_path(path, r->config->training.model_dir, name, &err), "%s", err.message); /* its length was checked */
    return path;
}

/* ---- the model directory ----------------------------------------------------------------------------------------- */

/* Holds the directory for this process; the lock is gone with it, however it ends. */
static bool take(run *r, hw_error *err)
{
    char path[HW_PATH];
    const char *directory = r->config->training.model_dir;
    if (!hw_bundle_path(path, directory, "checkpoint.safetensors.tmp", err)) return false;
    if (!hw_directory_make(directory, err)) return false;
    r->lock = open(path_in(r, ".lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (r->lock < 0) return hw_fail(err, "%s: cannot be opened: %s", path, strerror(errno));
    if (flock(r->lock, LOCK_EX | LOCK_NB) == 0) return true;
    return hw_fail(err, "%s: another run is training in this directory; wait for it, or choose another training.model_dir",
                   directory);
}

/* Does what the directory holds belong to this configuration? */
static bool same_configuration(run *r, hw_error *err)
{
    static const char *const free_to_differ[] = {"training.model_dir", "data.dir", "training.max_steps"};
    char path[HW_PATH], list[1024] = "";
    hw_config *there = hw_config_load(r->arena, path_in(r, "config.yaml", path), err);
    if (!there || !hw_config_check(there, NULL, err)) return false;
    hw_names keys = hw_config_differences(there, r->config, r->arena);
    int count = 0;
    for (int i = 0; i < keys.count; i++) {
        bool allowed = false;
        for (size_t k = 0; k < sizeof free_to_differ / sizeof *free_to_differ; k++)
            allowed |= !strcmp(keys.items[i], free_to_differ[k]);
        if (!strcmp(keys.items[i], "training.max_steps") && r->config->training.max_steps < there->training.max_steps) allowed = false;
        if (allowed) continue;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s (there %s, now %s)", count++ ? ", " : "", keys.items[i],
                 hw_config_value(there, keys.items[i], r->arena), hw_config_value(r->config, keys.items[i], r->arena));
    }
    if (!count) return true;
    return hw_fail(err, "%s holds a run of another configuration: %s. Go on with that one, choose another training.model_dir, or "
                        "begin anew with --overwrite", r->config->training.model_dir, list);
}

static void remove_old(const run *r)
{
    static const char *const files[] = {"checkpoint.safetensors", "model.safetensors", "config.yaml", "source.vocab", "target.vocab",
                                        "shared.vocab", "train.tsv", "valid.tsv", "times.tsv", "curves.svg"};
    char path[HW_PATH];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(path_in(r, files[i], path));
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

/* The vocabularies of an earlier part of this run, or new ones from the training set. */
static bool vocabularies(run *r, bool resume, hw_vocabulary **source, hw_vocabulary **target, hw_error *err)
{
    char path[HW_PATH];
    if (!resume) return hw_bundle_vocabularies(r->config, r->arena, source, target, err);
    if (r->config->text.shared_vocabulary) {
        *source = *target = hw_vocabulary_load(r->arena, path_in(r, "shared.vocab", path), err);
        return *source != NULL;
    }
    *source = hw_vocabulary_load(r->arena, path_in(r, "source.vocab", path), err);
    *target = *source ? hw_vocabulary_load(r->arena, path_in(r, "target.vocab", path), err) : NULL;
    return *target != NULL;
}

static bool load_data(run *r, hw_error *err)
{
    const hw_config *c = r->config;
    hw_side source = hw_bundle_source(r->bundle), target = hw_bundle_target(r->bundle);
    char text[512];
    r->corpus = hw_corpus_load(c->data.dir, c->data.train, &source, &target, c->data.max_length, err);
    if (!r->corpus) return false;
    say(r, "training data: %s", hw_corpus_describe(r->corpus, text));
    r->batcher = hw_batcher_new(r->corpus, &(hw_batcher_options){.seed = (uint64_t)c->training.seed,
                                                                 .target_tokens = c->training.batch_tokens,
                                                                 .sentences = c->training.batch_sentences});
    if (r->batcher.oversized)
        say(r, "warning: %lld pairs are larger than training.batch_tokens; each makes a batch of its own",
            (long long)r->batcher.oversized);
    if (c->training.validate_every <= 0) return true;
    r->validator = hw_validator_new(r->bundle, err);
    return r->validator != NULL;
}

/* Everything up to the first step: the network with its initial values, or those of the checkpoint. */
static bool begin(run *r, bool resume, hw_error *err)
{
    const hw_config *c = r->config;
    hw_vocabulary *source, *target;
    char path[HW_PATH], blas[64];
    if (!vocabularies(r, resume, &source, &target, err)) return false;
    r->bundle = hw_bundle_new(c, source, target, false, err);
    if (!r->bundle || !load_data(r, err)) return false;
    hw_transformer *network = r->bundle->network;
    r->trainer = hw_trainer_new(network, c);
    say(r, "network: %lld parameters; vocabulary: %d source, %d target tokens; %d threads, %lld shards",
        (long long)hw_parameters_total(network->parameters), hw_vocabulary_size(source), hw_vocabulary_size(target), hw_threads(),
        (long long)c->training.shards);
    if (!resume) {
        hw_parameters_initialise(network->parameters, (uint64_t)c->training.seed);
        return hw_bundle_save_texts(r->bundle, c->training.model_dir, err);
    }
    if (!hw_checkpoint_load(r->trainer, &r->state, path_in(r, "checkpoint.safetensors", path), blas, err)) return false;
    if (strcmp(blas, hw_blas_kernel()))
        say(r, "warning: the run began with the BLAS kernel %s and goes on with %s; its last bits will not be those of one "
               "uninterrupted run", blas, hw_blas_kernel());
    r->batcher.place = r->state.place;
    say(r, "going on at step %lld of %lld", (long long)r->state.step, (long long)c->training.max_steps);
    return hw_config_save(c, path_in(r, "config.yaml", path), err); /* max_steps may have grown */
}

static bool open_logs(run *r, hw_error *err)
{
    const struct {
        hw_log *log;
        const char *name, *header;
    } logs[] = {
        {&r->train_log, "train.tsv", "step\tepoch\tloss\tnll\ttoken_accuracy\tlearning_rate\tgradient_norm\tskipped"},
        {&r->valid_log, "valid.tsv",
         "step\tloss\tperplexity\ttoken_accuracy\texact_match\tbleu\tchrf\tbest\tbleu_signature\tchrf_signature"},
        {&r->times_log, "times.tsv", "step\tseconds\ttarget_tokens_per_s"},
    };
    char path[HW_PATH];
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        if (!hw_log_open(logs[i].log, path_in(r, logs[i].name, path), logs[i].header, r->state.step, err)) return false;
    return true;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static double speed(const run *r)
{
    double seconds = hw_seconds() - r->began;
    return seconds > 0 ? (double)r->tokens / seconds : 0;
}

static void progress(const run *r, bool last)
{
    if (!r->options->progress) return;
    char detail[160];
    double tokens = r->last.count.tokens > 0 ? (double)r->last.count.tokens : 1;
    snprintf(detail, sizeof detail, "loss %.3f, learning rate %.3g, %.0f tokens/s", r->last.count.loss / tokens, r->last.rate, speed(r));
    r->options->progress(&(hw_progress){.what = "train", .done = r->state.step, .total = r->config->training.max_steps,
                                        .seconds = hw_seconds() - r->began, .detail = detail, .last = last},
                         r->options->progress_context);
}

static bool write_train_line(run *r, hw_error *err)
{
    hw_loss_count *w = &r->state.window;
    double tokens = w->tokens > 0 ? (double)w->tokens : 1;
    bool ok = hw_log_line(&r->train_log, err, "%lld\t%lld\t%.6f\t%.6f\t%.6f\t%.6g\t%.6g\t%lld", (long long)r->state.step,
                          (long long)r->state.place.epoch, w->loss / tokens, w->nll / tokens, (double)w->correct / tokens,
                          r->last.rate, r->last.gradient_norm, (long long)r->state.skipped) &&
              hw_log_line(&r->times_log, err, "%lld\t%.3f\t%.1f", (long long)r->state.step, hw_seconds() - r->began, speed(r));
    *w = (hw_loss_count){0};
    return ok;
}

static bool checkpoint(run *r, hw_error *err)
{
    char path[HW_PATH];
    return hw_log_sync(&r->train_log, err) && hw_log_sync(&r->valid_log, err) &&
           hw_checkpoint_save(r->trainer, &r->state, path_in(r, "checkpoint.safetensors", path), err) &&
           hw_curves_write(r->config->training.model_dir, err);
}

static bool validate(run *r, hw_error *err)
{
    const hw_config *c = r->config;
    hw_validation v;
    if (!hw_validate(r->validator, &v, err)) return false;
    double value = hw_validation_metric(&v, c->training.metric);
    bool better = !r->state.best_step || hw_metric_better(c->training.metric, value, r->state.best);
    say(r, "step %lld: loss %.4f, perplexity %.4f, token accuracy %.2f %%, exact match %.2f %%, BLEU %.2f, chrF %.2f%s",
        (long long)r->state.step, v.loss, v.perplexity, 100 * v.token_accuracy, 100 * v.exact_match, v.bleu, v.chrf,
        better ? " (best so far)" : "");
    say(r, "%s", v.samples);
    if (!hw_log_line(&r->valid_log, err, "%lld\t%.6f\t%.6f\t%.6f\t%.6f\t%.4f\t%.4f\t%d\t%s\t%s", (long long)r->state.step, v.loss,
                     v.perplexity, v.token_accuracy, v.exact_match, v.bleu, v.chrf, better, v.bleu_signature, v.chrf_signature))
        return false;
    if (!better) return true;
    r->state.best = value;
    r->state.best_step = r->state.step;
    return hw_bundle_save_model(r->bundle->network, NULL, c->training.model_dir, err);
}

static bool not_finite(run *r, hw_error *err)
{
    r->state.skipped++;
    if (++r->state.skipped_row == 1)
        say(r, "warning: step %lld: loss or gradient is not finite; the step is skipped", (long long)r->state.step);
    if (r->state.skipped_row < SKIPPED_AT_MOST) return true;
    return hw_fail(err, "step %lld: loss or gradient was not finite in %d steps in a row; the last checkpoint is kept. Try a lower "
                        "training.learning_rate, a longer training.warmup_steps, or model.norm: pre",
                   (long long)r->state.step, SKIPPED_AT_MOST);
}

static bool due(int64_t step, int64_t every, bool last) { return every > 0 && (last || step % every == 0); }

/* One step and what is due after it. */
static bool step(run *r, hw_error *err)
{
    const hw_config *c = r->config;
    hw_arena_reset(r->batch_arena);
    const hw_batch *batch = hw_batcher_next(&r->batcher, r->batch_arena);
    r->last = hw_trainer_step(r->trainer, batch);
    r->state.step = hw_trainer_steps(r->trainer);
    r->state.place = r->batcher.place;
    r->tokens += batch->target_rows;
    if (r->last.skipped && !not_finite(r, err)) return false;
    if (!r->last.skipped) {
        r->state.skipped_row = 0;
        r->state.window.loss += r->last.count.loss;
        r->state.window.nll += r->last.count.nll;
        r->state.window.tokens += r->last.count.tokens;
        r->state.window.correct += r->last.count.correct;
    }
    bool last = r->state.step >= c->training.max_steps, stop = r->options->stop && *r->options->stop;
    progress(r, last);
    if (due(r->state.step, c->training.log_every, last) && !write_train_line(r, err)) return false;
    bool validated = r->validator && due(r->state.step, c->training.validate_every, last);
    if (validated && !validate(r, err)) return false;
    return validated || last || stop || due(r->state.step, c->training.save_every, false) ? checkpoint(r, err) : true;
}

static bool loop(run *r, hw_train_result *result, hw_error *err)
{
    r->began = hw_seconds();
    r->begun_at = r->state.step;
    while (r->state.step < r->config->training.max_steps) {
        if (!step(r, err)) return false;
        result->stopped = r->options->stop && *r->options->stop && r->state.step < r->config->training.max_steps;
        if (result->stopped) break;
    }
    if (!result->stopped && !r->state.best_step && !hw_bundle_save_model(r->bundle->network, NULL, r->config->training.model_dir, err))
        return false;
    result->step = r->state.step;
    result->best = r->state.best;
    result->best_step = r->state.best_step;
    result->seconds = hw_seconds() - r->began;
    result->target_tokens = r->tokens;
    return true;
}

static bool finished(const run *r, hw_train_result *result)
{
    hw_error err;
    char path[HW_PATH];
    hw_safetensors *file = hw_safetensors_open(path_in(r, "checkpoint.safetensors", path), &err);
    const char *text = file ? hw_safetensors_metadata(file, "step") : NULL;
    result->step = text ? strtoll(text, NULL, 10) : 0;
    hw_safetensors_close(file);
    return result->step >= r->config->training.max_steps;
}

static bool run_all(run *r, hw_train_result *result, hw_error *err)
{
    char path[HW_PATH];
    if (!take(r, err)) return false;
    bool resume = hw_file_exists(path_in(r, "checkpoint.safetensors", path)) && !r->options->overwrite;
    if (resume && !same_configuration(r, err)) return false;
    if (resume && finished(r, result)) {
        result->finished_before = true;
        return true;
    }
    if (!resume && !r->options->overwrite && hw_file_exists(path_in(r, "model.safetensors", path)) &&
        !hw_file_exists(path_in(r, "train.tsv", path)))
        return hw_fail(err, "%s holds a model without a checkpoint, which training would replace; choose another training.model_dir, or "
                            "begin anew with --overwrite", r->config->training.model_dir);
    if (!resume) remove_old(r);
    return begin(r, resume, err) && open_logs(r, err) && loop(r, result, err);
}

bool hw_train(const hw_config *config, const hw_train_options *options, hw_train_result *result, hw_error *err)
{
    static const char *const required[] = {"training.model_dir", "data.dir", NULL};
    memset(result, 0, sizeof *result);
    if (!hw_config_require(config, required, err)) return false;
    run r = {.config = config, .options = options, .lock = -1};
    r.arena = hw_arena_new(0);
    r.batch_arena = hw_arena_new(0);
    bool ok = run_all(&r, result, err);
    hw_log_close(&r.train_log);
    hw_log_close(&r.valid_log);
    hw_log_close(&r.times_log);
    hw_validator_free(r.validator);
    hw_trainer_free(r.trainer);
    hw_corpus_free(r.corpus);
    hw_bundle_free(r.bundle);
    hw_arena_free(r.batch_arena);
    hw_arena_free(r.arena);
    if (r.lock >= 0) close(r.lock);
    return ok;
}
