/* Importance of heads by gradients: how much the loss would change with a head's gate (Michel et al. 2019, section 4.1:
 * I_h = E_x |dL(x)/dxi_h|).
 *
 * One pass forward and back gives all heads at once, where ablation takes one each; but it tells what a small change
 * would do, not what removal does. What E_x |.| is over is not said twice the same way: the text has a sentence x, the
 * program that came with it sums absolute values over tokens. Both are here, and they rank heads differently, since
 * over a sentence gradients of opposite sign cancel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

const char *const hw_importance_readings[] = {"token", "sentence", NULL};

int64_t hw_query_rows(const hw_study_pair *pair, hw_attention_kind kind)
{
    return pair->words[kind == HW_ENCODER_SELF ? HW_SOURCE : HW_TARGET].ids.count + 1;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static void add_gradients(int i, const hw_visit *v, void *argument)
{
    hw_gate_gradients *g = argument;
    (void)i;
    hw_backward(v->tape, v->loss, 1);
    for (int h = 0; h < g->count; h++) {
        const hw_recorded *r = &v->attentions[g->heads[h].attention];
        const hw_real *gradient = r->gates->grad + g->heads[h].head;
        int64_t heads = hw_tensor_cols(r->gates);
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            double net = 0, size = 0;
            for (int64_t t = r->queries.start[b]; t < r->queries.start[b] + r->queries.length[b]; t++) {
                net += (double)gradient[t * heads];
                size += fabs((double)gradient[t * heads]);
            }
            int64_t at = h * g->set->count + v->batch->lines[b];
            g->net[at] = net;
            g->size[at] = size;
        }
    }
}

hw_gate_gradients *hw_gate_gradients_of(hw_runner *runner, const hw_transformer *m, const hw_study_set *set,
                                        hw_arena *arena)
{
    hw_gate_gradients *g = hw_arena_calloc(arena, 1, sizeof *g);
    g->set = set;
    g->heads = hw_heads_of(m, arena, &g->count);
    size_t numbers = (size_t)g->count * (size_t)set->count;
    g->net = hw_arena_alloc(arena, numbers * sizeof *g->net);
    g->size = hw_arena_alloc(arena, numbers * sizeof *g->size);
    hw_study_visit(set, runner, &(hw_visit_options){.mode = HW_GRADIENTS, .gates = true}, add_gradients, g);
    return g;
}

/* ---- readings ---------------------------------------------------------------------------------------------------- */

/* A row of sums for one head and pair: what is averaged, and over how much. */
static void row_of(const hw_gate_gradients *g, int head, int64_t pair, hw_importance_reading reading, double row[2])
{
    int64_t at = head * g->set->count + pair;
    bool token = reading == HW_IMPORTANCE_TOKEN;
    row[0] = token ? g->size[at] : fabs(g->net[at]);
    row[1] = token ? (double)hw_query_rows(&g->set->pairs[pair], g->heads[head].kind) : 1;
}

static void normalise(const hw_gate_gradients *g, double *values)
{
    for (int h = 0, end; h < g->count; h = end) {
        double squares = 0;
        for (end = h; end < g->count && g->heads[end].attention == g->heads[h].attention; end++)
            squares += values[end] * values[end];
        for (int k = h; k < end && squares > 0; k++) values[k] /= sqrt(squares);
    }
}

/* Over the pairs drawn, or all of them where `drawn` is NULL. */
static void values_of(const hw_gate_gradients *g, hw_importance_reading reading, const int64_t *drawn, double *values)
{
    for (int h = 0; h < g->count; h++) {
        double sum[2] = {0}, row[2];
        for (int64_t i = 0; i < g->set->count; i++) {
            row_of(g, h, drawn ? drawn[i] : i, reading, row);
            for (int k = 0; k < 2; k++) sum[k] += row[k];
        }
        values[h] = sum[0] / sum[1];
    }
}

void hw_importance_values(const hw_gate_gradients *g, hw_importance_reading reading, bool normalised, double *values)
{
    values_of(g, reading, NULL, values);
    if (normalised) normalise(g, values);
}

static void study_heads(hw_importance *x, const hw_gate_gradients *g, uint64_t seed, double *values[2])
{
    for (int reading = 0; reading < HW_IMPORTANCE_READINGS; reading++) {
        for (int n = 0; n < 2; n++) hw_importance_values(g, (hw_importance_reading)reading, n, values[n]);
        for (int h = 0; h < g->count; h++) {
            hw_tally tally;
            hw_tally_init(&tally, 2, hw_ratio_score, NULL);
            for (int64_t i = 0; i < g->set->count; i++) {
                double row[2];
                row_of(g, h, i, (hw_importance_reading)reading, row);
                hw_tally_add(&tally, row);
            }
            hw_interval interval = {.low = NAN, .high = NAN};
            if (tally.count > 1) interval = hw_bootstrap_interval(&tally, x->trials, seed);
            hw_tally_clear(&tally);
            x->items[h * HW_IMPORTANCE_READINGS + reading] = (hw_head_importance){
                &g->heads[h], (hw_importance_reading)reading, values[0][h], interval.low, interval.high, values[1][h]};
        }
    }
}

/* ---- against ablation -------------------------------------------------------------------------------------------- */

typedef struct check {
    const hw_gate_gradients *gradients;
    double *changes; /* [modes][heads][pairs] of -log p of the target when the head is ablated */
    uint64_t seed;
    int checks;
    double *rho; /* [trials][checks] */
} check;

static void measure_changes(const hw_bundle *bundle, check *c, hw_progress_function progress, void *context,
                            hw_arena *arena)
{
    const hw_gate_gradients *g = c->gradients;
    int64_t pairs = g->set->count;
    hw_meter *meter = hw_meter_new(bundle, g->set, NULL);
    hw_real **means = hw_head_means(hw_meter_runner(meter), bundle->network, g->set, arena);
    hw_head_changes *changes = hw_head_changes_new(bundle->network, means, arena);
    hw_quality before, after;
    hw_meter_measure(meter, NULL, &before);
    double begun = hw_seconds();
    for (int mode = 0; mode < HW_ABLATION_MODES; mode++)
        for (int h = 0; h < g->count; h++) {
            hw_progress p = {.what = "importance",
                             .done = mode * g->count + h,
                             .total = HW_ABLATION_MODES * g->count,
                             .seconds = hw_seconds() - begun,
                             .detail = "against ablation"};
            if (progress) progress(&p, context);
            hw_head_changes_reset(changes);
            hw_head_changes_add(changes, g->heads[h].attention, g->heads[h].head, (hw_ablation_mode)mode);
            hw_meter_measure(meter, changes->settings, &after);
            double *out = c->changes + (mode * g->count + h) * pairs;
            for (int64_t i = 0; i < pairs; i++) out[i] = after.loss.rows[2 * i] - before.loss.rows[2 * i];
            hw_quality_clear(&after);
        }
    hw_quality_clear(&before);
    hw_meter_free(meter);
}

/* All correlations over the pairs drawn -> out [checks], in the order of the checks. */
static void correlate(const check *c, const int64_t *drawn, double *out)
{
    const hw_gate_gradients *g = c->gradients;
    double *values = malloc(2 * (size_t)g->count * sizeof *values), *changes = values + g->count;
    HW_CHECK(values, "no memory for %d heads", g->count);
    for (int reading = 0; reading < HW_IMPORTANCE_READINGS; reading++) {
        values_of(g, (hw_importance_reading)reading, drawn, values);
        for (int normalised = 0; normalised < 2; normalised++) {
            if (normalised) normalise(g, values);
            for (int mode = 0; mode < HW_ABLATION_MODES; mode++) {
                for (int h = 0; h < g->count; h++) {
                    const double *of = c->changes + (mode * g->count + h) * g->set->count;
                    changes[h] = 0;
                    for (int64_t i = 0; i < g->set->count; i++) changes[h] += of[drawn ? drawn[i] : i];
                }
                *out++ = hw_rank_correlation(values, changes, g->count);
            }
        }
    }
    free(values);
}

static void correlate_trial(int t, void *argument)
{
    const check *c = argument;
    int64_t pairs = c->gradients->set->count, *drawn = malloc((size_t)pairs * sizeof *drawn);
    HW_CHECK(drawn, "no memory for %lld pairs", (long long)pairs);
    hw_random random = hw_random_new(c->seed, (uint64_t)t);
    for (int64_t i = 0; i < pairs; i++) drawn[i] = (int64_t)hw_random_below(&random, (uint64_t)pairs);
    correlate(c, drawn, c->rho + t * c->checks);
    free(drawn);
}

/* The basic interval of Davison and Hinkley 1997, equation 5.6, less the bias; where all trials gave a figure. */
static void interval_of(const check *c, int k, int trials, double *sorted, hw_importance_check *out)
{
    double mean = 0;
    for (int t = 0; t < trials; t++) mean += (sorted[t] = c->rho[t * c->checks + k]) / trials;
    out->low = out->high = out->resampled = NAN;
    if (isnan(mean) || isnan(out->rho) || c->gradients->set->count < 2) return;
    qsort(sorted, (size_t)trials, sizeof *sorted, hw_ascending);
    out->resampled = mean;
    out->low = fmax(-1, out->rho - fmax(0, sorted[trials - trials / 40 - 1] - mean)); /* 0: but for rounding */
    out->high = fmin(1, out->rho + fmax(0, mean - sorted[trials / 40]));
}

static void study_checks(hw_importance *x, check *c, hw_arena *arena)
{
    double *all = hw_arena_alloc(arena, (size_t)c->checks * sizeof *all);
    double *sorted = hw_arena_alloc(arena, (size_t)x->trials * sizeof *sorted);
    c->rho = hw_arena_alloc(arena, (size_t)(x->trials * c->checks) * sizeof *c->rho);
    correlate(c, NULL, all);
    hw_parallel(x->trials, correlate_trial, c);
    for (int k = 0; k < c->checks; k++) {
        hw_importance_check *out = &x->check[k];
        *out = (hw_importance_check){.reading = (hw_importance_reading)(k / (2 * HW_ABLATION_MODES)),
                                     .normalised = k / HW_ABLATION_MODES % 2,
                                     .mode = (hw_ablation_mode)(k % HW_ABLATION_MODES),
                                     .rho = all[k]};
        interval_of(c, k, x->trials, sorted, out);
    }
}

hw_importance *hw_importance_study(const hw_bundle *bundle, const hw_study_set *set, int trials, uint64_t seed,
                                   hw_progress_function progress, void *context, hw_arena *arena)
{
    hw_importance *x = hw_arena_calloc(arena, 1, sizeof *x);
    hw_runner *runner = hw_runner_new(bundle->network);
    const hw_gate_gradients *g = hw_gate_gradients_of(runner, bundle->network, set, arena);
    hw_runner_free(runner);
    size_t heads = (size_t)g->count;
    double *values[2] = {hw_arena_alloc(arena, heads * sizeof **values),
                         hw_arena_alloc(arena, heads * sizeof **values)};
    x->sentences = set->count;
    x->trials = trials;
    x->count = g->count * HW_IMPORTANCE_READINGS;
    x->items = hw_arena_alloc(arena, (size_t)x->count * sizeof *x->items);
    study_heads(x, g, seed, values);
    x->checks = HW_IMPORTANCE_READINGS * 2 * HW_ABLATION_MODES;
    x->check = hw_arena_alloc(arena, (size_t)x->checks * sizeof *x->check);
    check c = {.gradients = g, .seed = seed, .checks = x->checks};
    c.changes = hw_arena_alloc(arena, HW_ABLATION_MODES * heads * (size_t)set->count * sizeof *c.changes);
    measure_changes(bundle, &c, progress, context, arena);
    study_checks(x, &c, arena);
    return x;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

json_t *hw_importance_json(const hw_importance *x)
{
    json_t *heads = json_array(), *checks = json_array();
    for (int i = 0; i < x->count; i++) {
        const hw_head_importance *h = &x->items[i];
        json_array_append_new(heads, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "name", h->head->name, "reading",
                                               hw_importance_readings[h->reading], "value", hw_json_number(h->value),
                                               "low", hw_json_number(h->low), "high", hw_json_number(h->high),
                                               "normalised", hw_json_number(h->normalised)));
    }
    for (int i = 0; i < x->checks; i++) {
        const hw_importance_check *c = &x->check[i];
        json_array_append_new(checks, json_pack("{s:s, s:b, s:s, s:o, s:o, s:o, s:o}", "reading",
                                                hw_importance_readings[c->reading], "normalised", c->normalised, "mode",
                                                hw_ablation_modes[c->mode], "rho", hw_json_number(c->rho), "low",
                                                hw_json_number(c->low), "high", hw_json_number(c->high), "resampled",
                                                hw_json_number(c->resampled)));
    }
    return json_pack("{s:I, s:i, s:o, s:o}", "sentences", (json_int_t)x->sentences, "trials", x->trials, "heads", heads,
                     "correlations", checks);
}
