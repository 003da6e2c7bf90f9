/* A whole run: the loop of steps, validations and checkpoints.
 *
 * Every step is a function of data, configuration and the state in the checkpoint, so a run that was interrupted and
 * goes on ends with the same bytes as one that was not. The order of writing keeps it so: all that a checkpoint knows
 * of (a better model, kept weights, lines of the logs, the curves) is written before it, and logs and kept weights are
 * taken back to the checkpoint when a run goes on. The first checkpoint is written before the first step: a disk that
 * is too small shows at once, and where there is a model there is a checkpoint. */
#include "run.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "curves.h"
#include "trainer.h"

enum { SKIPPED_AT_MOST = 10 };
#define REMEDY "Begin anew with a lower training.learning_rate, a longer training.warmup_steps, or model.norm: pre"

void hw_run_say(const hw_run *r, const char *format, ...)
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

bool hw_run_over(const hw_config *c, const hw_run_state *state)
{
    return state->step >= c->training.max_steps || (c->training.patience && state->unimproved >= c->training.patience);
}

#define TRAIN_COLUMNS "step\tepoch\tloss\tnll\ttoken_accuracy\tlearning_rate\tgradient_norm\tskipped"

/* Is there a term that pushes heads apart, which has a column then? */
static bool has_term(const hw_config *c)
{
    return c->training.head_diversity.kind && c->training.head_diversity.weight > 0;
}

static bool has_guided(const hw_config *c) { return c->training.guided_alignment.weight > 0; }
static bool has_gates(const hw_config *c) { return c->training.head_l0.weight > 0; }

static bool open_logs(hw_run *r, hw_error *err)
{
    const char *train = hw_arena_string(r->arena, "%s%s%s%s", TRAIN_COLUMNS, has_term(r->config) ? "\thead_diversity" : "",
                                        has_guided(r->config) ? "\tguided_alignment" : "",
                                        has_gates(r->config) ? "\topen_heads" : "");
    const struct {
        hw_log *log;
        const char *name, *header, *group;
    } logs[] = {
        {&r->train_log, "train.tsv", train, "train"},
        {&r->valid_log, "valid.tsv",
         "step\tloss\tperplexity\ttoken_accuracy\texact_match\tbleu\tchrf\tbest\tbleu_signature\tchrf_signature", "valid"},
        {&r->times_log, "times.tsv", "step\tseconds\ttarget_tokens_per_s", "times"},
    };
    char path[HW_PATH];
    bool board = r->config->training.tensorboard;
    if (board && !hw_events_open(&r->events, hw_run_path(r, HW_EVENTS, path), r->state.step, err)) return false;
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        if (!hw_log_open(logs[i].log, hw_run_path(r, logs[i].name, path), logs[i].header, r->state.step, err))
            return false;
        logs[i].log->group = logs[i].group;
        logs[i].log->events = board ? &r->events : NULL;
    }
    return hw_run_track_begin(r, err);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

static double speed(const hw_run *r)
{
    double seconds = hw_seconds() - r->began;
    return seconds > 0 ? (double)r->tokens / seconds : 0;
}

static void progress(const hw_run *r)
{
    if (!r->options->progress) return;
    char detail[160], rate[32];
    double tokens = r->last.count.tokens > 0 ? (double)r->last.count.tokens : 1;
    snprintf(detail, sizeof detail, "loss %.3f, learning rate %.3g, %s tokens/s", r->last.count.loss / tokens,
             r->last.rate, hw_thousands((int64_t)speed(r), rate));
    r->options->progress(&(hw_progress){.what = "train", .done = r->state.step, .total = r->config->training.max_steps,
                                        .seconds = hw_seconds() - r->began, .detail = detail,
                                        .last = hw_run_over(r->config, &r->state)},
                         r->options->progress_context);
}

static bool write_train_line(hw_run *r, hw_error *err)
{
    hw_loss_count *w = &r->state.window;
    double tokens = w->tokens > 0 ? (double)w->tokens : NAN; /* all steps were skipped: no figure */
    char term[32] = "", guided[32] = "", open[32] = "";
    if (has_term(r->config)) snprintf(term, sizeof term, "\t%.6g", r->last.term);
    if (has_guided(r->config)) snprintf(guided, sizeof guided, "\t%.6g", r->last.guided);
    if (has_gates(r->config)) snprintf(open, sizeof open, "\t%.6g", r->last.open_heads);
    bool ok =
        hw_log_line(&r->train_log, err, "%lld\t%lld\t%.6f\t%.6f\t%.6f\t%.6g\t%.6g\t%lld%s%s%s", (long long)r->state.step,
                    (long long)r->state.place.epoch, w->loss / tokens, w->nll / tokens, (double)w->correct / tokens,
                    r->last.rate, r->last.gradient_norm, (long long)r->state.skipped, term, guided, open) &&
        hw_log_line(&r->times_log, err, "%lld\t%.3f\t%.1f", (long long)r->state.step, hw_seconds() - r->began,
                    speed(r));
    *w = (hw_loss_count){0};
    return ok;
}

static bool due(int64_t step, int64_t every, bool last) { return every > 0 && (last || step % every == 0); }

/* Not within a row of skipped steps, which may end the run: then it is the last good checkpoint that is kept. */
static bool save_due(const hw_run *r)
{
    return !r->state.skipped_row && due(r->state.step, r->config->training.save_every, false);
}

static bool save_model(hw_run *r, hw_error *err)
{
    char path[HW_PATH];
    return hw_run_holds(r, err) &&
           hw_bundle_save_model(hw_trainer_network(r->trainer), NULL, r->config->training.model_dir, err) &&
           (!has_gates(r->config) || hw_trainer_write_gates(r->trainer, hw_run_path(r, "gates.tsv", path), err));
}

static bool checkpoint(hw_run *r, hw_error *err)
{
    const hw_config *c = r->config;
    const hw_run_state *state = &r->state;
    char path[HW_PATH];
    bool keep = c->training.keep_checkpoints && (hw_run_over(c, state) || save_due(r));
    bool unvalidated = !state->best_step; /* then the last is the model */
    if (!hw_run_holds(r, err)) return false;
    if (state->step && unvalidated && !save_model(r, err)) return false;
    if (state->step && keep && !hw_run_keep(r, err)) return false;
    if (!hw_log_sync(&r->train_log, err) || !hw_log_sync(&r->valid_log, err) ||
        (r->tracer && !hw_log_sync(&r->trace_log, err)) || !hw_events_sync(&r->events, err))
        return false;
    bool drawn = hw_curves_write(c->training.model_dir, err); /* where not, no step is lost for a picture */
    if (!hw_checkpoint_save(r->trainer, state, hw_run_path(r, "checkpoint.safetensors", path), drawn ? err : NULL))
        return false;
    r->saved = state->step;
    return drawn;
}

static bool validate(hw_run *r, hw_error *err)
{
    const hw_config *c = r->config;
    hw_run_state *state = &r->state;
    hw_validation v;
    hw_trainer_network(r->trainer); /* up to date */
    if (!hw_validate(r->validator, &v, err)) return false;
    int metric = c->training.metric;
    bool better = !state->best_step || hw_validation_better(&v, metric, state->best, state->best_loss);
    hw_run_say(
        r, "step %lld: loss %.4f, perplexity %.4f, token accuracy %.2f %%, exact match %.2f %%, BLEU %.2f, chrF %.2f%s",
        (long long)state->step, v.loss, v.perplexity, 100 * v.token_accuracy, 100 * v.exact_match, v.bleu, v.chrf,
        better ? " (best so far)" : "");
    hw_run_say(r, "%s", v.samples);
    if (!hw_log_line(&r->valid_log, err, "%lld\t%.6f\t%.6f\t%.6f\t%.6f\t%.4f\t%.4f\t%d\t%s\t%s", (long long)state->step,
                     v.loss, v.perplexity, v.token_accuracy, v.exact_match, v.bleu, v.chrf, better, v.bleu_signature,
                     v.chrf_signature) ||
        !hw_run_track(r, err))
        return false;
    state->unimproved++;
    if (!better) return true;
    state->best = hw_validation_metric(&v, metric);
    state->best_loss = v.loss;
    state->best_step = state->step;
    state->unimproved = 0;
    return save_model(r, err);
}

static bool not_finite(hw_run *r, hw_error *err)
{
    r->state.skipped++;
    if (++r->state.skipped_row == 1)
        hw_run_say(r, "warning: step %lld: loss or gradient is not finite; the step is skipped",
                   (long long)r->state.step);
    if (r->state.skipped_row < SKIPPED_AT_MOST) return true;
    return hw_fail(
        err,
        "step %lld: loss or gradient was not finite in %d steps in a row; the checkpoint of step %lld is kept. " REMEDY,
        (long long)r->state.step, SKIPPED_AT_MOST, (long long)r->saved);
}

/* A run may be too short for ten in a row. */
static bool learned(const hw_run *r, const hw_run_state *state, hw_error *err)
{
    if (!state->step || state->skipped < state->step) return true;
    return hw_fail(err, "%s: nothing was learned: loss or gradient was not finite in any step. " REMEDY,
                   r->config->training.model_dir);
}

static void add_to_window(hw_loss_count *window, const hw_loss_count *count)
{
    window->loss += count->loss;
    window->nll += count->nll;
    window->tokens += count->tokens;
    window->correct += count->correct;
}

/* One step and what is due after it. */
static bool step(hw_run *r, hw_error *err)
{
    const hw_config *c = r->config;
    hw_arena_reset(r->batch_arena);
    const hw_batch *batch = hw_batcher_next(&r->batcher, r->batch_arena);
    r->last = hw_trainer_step(r->trainer, batch);
    r->state.step = hw_trainer_steps(r->trainer);
    r->state.place = r->batcher.place;
    r->tokens += batch->target_rows;
    if (!r->last.skipped) {
        r->state.skipped_row = 0;
        add_to_window(&r->state.window, &r->last.count);
    } else if (!not_finite(r, err)) {
        return false;
    }
    bool last = r->state.step >= c->training.max_steps;
    if (due(r->state.step, c->training.log_every, last) && !write_train_line(r, err)) return false;
    bool validated = r->validator && due(r->state.step, c->training.validate_every, last);
    if (validated && !validate(r, err)) return false;
    return last || save_due(r) || (validated && !r->state.skipped_row) ? checkpoint(r, err) : true;
}

static void fill_result(const hw_run_state *state, const hw_config *c, hw_train_result *result)
{
    bool over = hw_run_over(c, state);
    result->step = state->step;
    result->best = state->best;
    result->best_step = state->best_step;
    result->skipped = state->skipped;
    result->stopped = !over;
    result->out_of_patience = over && state->step < c->training.max_steps;
}

static bool loop(hw_run *r, hw_train_result *result, hw_error *err)
{
    const volatile int *stop = r->options->stop;
    if (r->options->running) *r->options->running = 1;
    r->began = hw_seconds();
    while (!hw_run_over(r->config, &r->state) && !(stop && *stop)) {
        if (!step(r, err)) return false;
        progress(r);
    }
    if (r->saved != r->state.step && !checkpoint(r, err)) return false;
    fill_result(&r->state, r->config, result);
    result->seconds = hw_seconds() - r->began;
    result->target_tokens = r->tokens;
    return result->stopped || learned(r, &r->state, err);
}

static bool run_all(hw_run *r, hw_train_result *result, hw_error *err)
{
    char path[HW_PATH];
    if (!hw_run_take(r, err)) return false;
    bool resume = hw_run_has(r, "checkpoint.safetensors") && !r->options->overwrite;
    if (resume) {
        hw_run_state state;
        if (!hw_run_same(r, err) || !hw_checkpoint_peek(&state, hw_run_path(r, "checkpoint.safetensors", path), err))
            return false;
        fill_result(&state, r->config, result);
        result->finished_before = !result->stopped;
        if ((state.best_step || result->finished_before) && !hw_run_has(r, "model.safetensors"))
            return hw_fail(err,
                           "%s/model.safetensors is gone, the model of step %lld, which is not made again by going on. Put "
                           "it back, or begin anew with --overwrite",
                           r->config->training.model_dir,
                           (long long)(state.best_step ? state.best_step : state.step));
        if (result->finished_before) return learned(r, &state, err);
    } else if (!r->options->overwrite && !hw_run_may_begin(r, err)) {
        return false;
    }
    return hw_run_begin(r, resume, err) && open_logs(r, err) && (resume || checkpoint(r, err)) && loop(r, result, err);
}

bool hw_train(const hw_config *config, const hw_train_options *options, hw_train_result *result, hw_error *err)
{
    static const char *const required[] = {"training.model_dir", "data.dir", NULL};
    memset(result, 0, sizeof *result);
    if (!hw_config_require(config, required, err)) return false;
    hw_run r = {.config = config, .options = options, .lock = -1};
    r.arena = hw_arena_new(0);
    r.batch_arena = hw_arena_new(0);
    bool ok = run_all(&r, result, err);
    hw_log_close(&r.train_log);
    hw_log_close(&r.valid_log);
    hw_log_close(&r.times_log);
    hw_log_close(&r.trace_log);
    hw_events_close(&r.events);
    hw_tracer_free(r.tracer);
    hw_validator_free(r.validator);
    hw_trainer_free(r.trainer);
    for (int side = 0; side < 2; side++) hw_sampler_free(r.sampler[side]);
    hw_corpus_free(r.corpus);
    hw_bundle_free(r.bundle);
    hw_arena_free(r.batch_arena);
    hw_arena_free(r.arena);
    if (r.lock >= 0) close(r.lock);
    return ok;
}
