/* Pruning: the least important head goes, again and again.
 *
 * Michel et al. 2019, section 4, sort heads once by importance; here it is computed anew after each removal, since a
 * head that could be missed beside another may be needed without it. One head of each attention stays, so that the
 * network can be built without the others. What is chosen on the selection set is measured on the test set. */
#include <math.h>
#include <stdlib.h>

#include <headwise/heads.h>

/* ---- the curve --------------------------------------------------------------------------------------------------- */

typedef struct pruning {
    const hw_head *heads;
    int count;
    bool *gone; /* [count] */
    int *left;  /* [attentions] */
    double *values;
} pruning;

/* The least important head that may go; -1: none. */
static int least(const pruning *p)
{
    int best = -1;
    for (int h = 0; h < p->count; h++)
        if (!p->gone[h] && p->left[p->heads[h].attention] > 1 && (best < 0 || p->values[h] < p->values[best])) best = h;
    return best;
}

static hw_prune_step step_of(const hw_quality *before, const hw_quality *after, const hw_prune_options *o)
{
    hw_prune_step s = {.loss = hw_tally_score(&after->loss), .match = NAN, .bleu = NAN};
    s.loss_change = hw_paired_difference(&before->loss, &after->loss, o->trials, o->seed);
    s.match_change = hw_paired_difference(&before->match, &after->match, o->trials, o->seed);
    s.bleu_change = (hw_difference){.value = NAN, .low = NAN, .high = NAN, .p = NAN};
    if (!after->bleu) return s;
    s.match = hw_tally_score(&after->match);
    s.bleu = hw_metric_score(after->bleu);
    s.bleu_change =
        hw_paired_difference(hw_metric_tally(before->bleu), hw_metric_tally(after->bleu), o->trials, o->seed);
    return s;
}

static const double POINT = 0.01 + 1e-9; /* rounding must not make one point more than one */

/* Why it is no question how many heads can go; NULL: it is one. */
static const char *why_undefined(const hw_pruning *p)
{
    if (p->count == 1) return "every attention has one head, which stays";
    if (p->steps[0].match <= POINT) return "exact match is at most one point from the start and cannot fall by more";
    return NULL;
}

/* Closed gates count as heads that are gone. */
static int spare_heads(const hw_pruning *p)
{
    int spare = 0;
    while (spare + 1 < p->count && p->steps[spare + 1].match_change.value >= -POINT) spare++;
    return spare;
}

static void begin(pruning *p, const hw_transformer *m, hw_arena *arena)
{
    p->heads = hw_heads_of(m, arena, &p->count);
    p->gone = hw_arena_calloc(arena, (size_t)p->count, sizeof *p->gone);
    p->left = hw_arena_calloc(arena, (size_t)m->attentions, sizeof *p->left);
    p->values = hw_arena_alloc(arena, (size_t)p->count * sizeof *p->values);
    for (int h = 0; h < p->count; h++) p->left[p->heads[h].attention]++;
}

hw_pruning *hw_pruning_study(const hw_bundle *bundle, const hw_study_set *selection, hw_meter *meter,
                             const hw_study_set *test, const hw_prune_options *options, hw_progress_function progress,
                             void *context, hw_arena *arena)
{
    const hw_transformer *m = bundle->network;
    pruning p;
    begin(&p, m, arena);
    hw_pruning *out = hw_arena_calloc(arena, 1, sizeof *out);
    *out = (hw_pruning){.sentences = test->count, .heads = p.count, .options = *options};
    out->steps = hw_arena_alloc(arena, (size_t)p.count * sizeof *out->steps);
    hw_runner *runner = hw_runner_new(m);
    hw_head_changes *changes = hw_head_changes_new(m, NULL, arena);
    hw_arena *scratch = hw_arena_new(0);
    hw_quality before, after;
    double begun = hw_seconds(), importance = NAN;
    hw_meter_measure(meter, NULL, &before);
    for (int h = -1;;) {
        hw_progress now = {.what = "prune",
                           .done = out->count,
                           .total = p.count - m->attentions + 1,
                           .seconds = hw_seconds() - begun,
                           .detail = h < 0 ? "" : p.heads[h].name};
        if (progress) progress(&now, context);
        hw_meter_measure(meter, changes->settings, &after);
        hw_prune_step *s = &out->steps[out->count++];
        *s = step_of(&before, &after, options);
        s->head = h < 0 ? NULL : &p.heads[h];
        s->importance = importance;
        hw_quality_clear(&after);

        hw_arena_reset(scratch);
        hw_runner_settings(runner, changes->settings);
        hw_importance_values(hw_gate_gradients_of(runner, m, selection, scratch), options->reading, options->normalised,
                             p.values);
        h = least(&p);
        if (h < 0) break;
        importance = p.values[h];
        p.gone[h] = true;
        p.left[p.heads[h].attention]--;
        hw_head_changes_add(changes, p.heads[h].attention, p.heads[h].head, HW_ABLATE_ZERO);
    }
    hw_quality_clear(&before);
    hw_arena_free(scratch);
    hw_runner_free(runner);
    out->spare_undefined = why_undefined(out);
    out->spare = out->spare_undefined ? -1 : spare_heads(out);
    return out;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *step_json(const hw_pruning *p, int i)
{
    const hw_prune_step *s = &p->steps[i];
    const struct {
        const char *key;
        double value;
    } figures[] = {
        {"share", (double)i / p->heads},
        {"importance", s->importance},
        {"loss", s->loss},
        {"loss_delta", s->loss_change.value},
        {"low", s->loss_change.low},
        {"high", s->loss_change.high},
        {"exact_match", s->match},
        {"exact_match_delta", s->match_change.value},
        {"exact_match_low", s->match_change.low},
        {"exact_match_high", s->match_change.high},
        {"bleu", s->bleu},
        {"bleu_delta", s->bleu_change.value},
        {"bleu_low", s->bleu_change.low},
        {"bleu_high", s->bleu_change.high},
    };
    json_t *o = json_pack("{s:i, s:s?}", "removed", i, "name", s->head ? s->head->name : NULL);
    for (size_t k = 0; k < sizeof figures / sizeof *figures; k++)
        json_object_set_new(o, figures[k].key, hw_json_number(figures[k].value));
    return o;
}

json_t *hw_pruning_json(const hw_pruning *p)
{
    json_t *steps = json_array();
    for (int i = 0; i < p->count; i++) json_array_append_new(steps, step_json(p, i));
    bool defined = !p->spare_undefined;
    return json_pack("{s:I, s:i, s:o, s:o, s:s?, s:s, s:b, s:i, s:o}", "sentences", (json_int_t)p->sentences,
                     "network_heads", p->heads, "spare", defined ? json_integer(p->spare) : json_null(), "spare_share",
                     hw_json_number(defined ? (double)p->spare / p->heads : NAN), "spare_undefined", p->spare_undefined,
                     "reading", hw_importance_readings[p->options.reading], "normalised", p->options.normalised,
                     "trials", p->options.trials, "heads", steps);
}
