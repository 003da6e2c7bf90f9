/* Ablation: what a network loses when heads are put out of action.
 *
 * Three ways, since each asks something else. Gate 0 takes a head's output away (Michel et al. 2019, section 3), with
 * all that it always adds, and so is the harshest. Its mean output over the data leaves that and takes away what
 * depends on the sentence. Uniform attention leaves the values and takes away the choice among them. A head that can be
 * missed may be one of several that do the same: pairs, and layers with one head left, tell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

const char *const hw_ablation_modes[] = {"zero", "mean", "uniform", NULL};
const char *const hw_ablation_groupings[] = {"heads", "pairs", "layers", NULL};

static int heads_of(const hw_transformer *m, int attention)
{
    return (int)hw_transformer_attention(m, attention)->heads;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

hw_head_changes *hw_head_changes_new(const hw_transformer *m, hw_real *const *means, hw_arena *arena)
{
    size_t attentions = (size_t)m->attentions;
    hw_head_changes *c = hw_arena_alloc(arena, sizeof *c);
    *c = (hw_head_changes){.network = m, .means = means};
    c->settings = hw_arena_alloc(arena, attentions * sizeof *c->settings);
    c->gates = hw_arena_alloc(arena, attentions * sizeof *c->gates);
    c->sharpness = hw_arena_alloc(arena, attentions * sizeof *c->sharpness);
    for (int a = 0; a < m->attentions; a++) {
        c->gates[a] = hw_arena_alloc(arena, (size_t)heads_of(m, a) * sizeof **c->gates);
        c->sharpness[a] = hw_arena_alloc(arena, (size_t)heads_of(m, a) * sizeof **c->sharpness);
    }
    hw_head_changes_reset(c);
    return c;
}

void hw_head_changes_reset(hw_head_changes *c)
{
    for (int a = 0; a < c->network->attentions; a++) {
        c->settings[a] = (hw_head_setting){0};
        for (int h = 0; h < heads_of(c->network, a); h++) c->gates[a][h] = c->sharpness[a][h] = 1;
    }
}

void hw_head_changes_add(hw_head_changes *c, int attention, int head, hw_ablation_mode mode)
{
    hw_head_setting *s = &c->settings[attention];
    if (mode == HW_ABLATE_UNIFORM) {
        c->sharpness[attention][head] = 0;
        s->sharpness = c->sharpness[attention];
        return;
    }
    c->gates[attention][head] = 0;
    s->gate = c->gates[attention];
    if (mode == HW_ABLATE_MEAN) s->otherwise = c->means[attention];
}

/* ---- means ------------------------------------------------------------------------------------------------------- */

typedef struct averaging {
    const hw_transformer *network;
    int64_t width;    /* of all attentions' outputs together */
    double **batches; /* [pairs at most] a batch: [width] sums, and behind them the rows of each attention */
} averaging;

static void sum_outputs(int i, const hw_visit *v, void *argument)
{
    const averaging *w = argument;
    double *sums = calloc((size_t)(w->width + w->network->attentions), sizeof *sums), *at = sums;
    HW_CHECK(sums, "no memory for mean outputs");
    for (int a = 0; a < w->network->attentions; a++) {
        const hw_tensor *heads = v->attentions[a].heads;
        int64_t rows = hw_tensor_rows(heads), cols = hw_tensor_cols(heads);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < cols; k++) at[k] += (double)heads->data[r * cols + k];
        at += cols;
        sums[w->width + a] = (double)rows;
    }
    w->batches[i] = sums;
}

hw_real **hw_head_means(hw_runner *runner, const hw_transformer *m, const hw_study_set *set, hw_arena *arena)
{
    averaging w = {.network = m};
    for (int a = 0; a < m->attentions; a++) w.width += heads_of(m, a) * hw_transformer_attention(m, a)->head_width;
    int64_t size = w.width + m->attentions;
    double *sums = hw_arena_calloc(arena, (size_t)size, sizeof *sums), *at = sums;
    w.batches = calloc((size_t)set->count, sizeof *w.batches);
    HW_CHECK(w.batches, "no memory for mean outputs");
    hw_study_visit(set, runner, &(hw_visit_options){.heads = true}, sum_outputs, &w);
    for (int64_t i = 0; i < set->count && w.batches[i]; i++) {
        for (int64_t k = 0; k < size; k++) sums[k] += w.batches[i][k];
        free(w.batches[i]);
    }
    free(w.batches);
    hw_real **means = hw_arena_alloc(arena, (size_t)m->attentions * sizeof *means);
    for (int a = 0; a < m->attentions; a++) {
        int64_t cols = heads_of(m, a) * hw_transformer_attention(m, a)->head_width;
        means[a] = hw_arena_alloc(arena, (size_t)cols * sizeof **means);
        for (int64_t k = 0; k < cols; k++) means[a][k] = (hw_real)(*at++ / sums[w.width + a]);
    }
    return means;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static hw_ablated *add(hw_ablation *a, int attention, int count, hw_arena *arena)
{
    hw_ablated *x = &a->items[a->count++];
    *x = (hw_ablated){.attention = attention, .count = count};
    x->heads = hw_arena_calloc(arena, (size_t)count, sizeof *x->heads);
    return x;
}

/* The groups of one attention, without modes; room for heads squared. */
static void list_groups(hw_ablation *a, const hw_transformer *m, int attention, hw_arena *arena)
{
    const hw_attention_layer *layer = hw_transformer_attention(m, attention);
    const int *names = layer->head_names;
    for (int h = 0; h < layer->heads; h++) {
        if (a->options.groups == HW_ABLATE_HEADS) {
            hw_ablated *x = add(a, attention, 1, arena);
            x->heads[0] = h;
            snprintf(x->name, sizeof x->name, "%s.%d", layer->name, names[h]);
        }
        for (int k = h + 1; k < layer->heads && a->options.groups == HW_ABLATE_PAIRS; k++) {
            hw_ablated *x = add(a, attention, 2, arena);
            x->heads[0] = h;
            x->heads[1] = k;
            snprintf(x->name, sizeof x->name, "%s.%d+%d", layer->name, names[h], names[k]);
        }
        if (a->options.groups != HW_ABLATE_LAYERS || layer->heads < 2) continue;
        hw_ablated *x = add(a, attention, (int)layer->heads - 1, arena);
        for (int k = 0; k < x->count; k++) x->heads[k] = k + (k >= h);
        snprintf(x->name, sizeof x->name, "%s.%d alone", layer->name, names[h]);
    }
}

/* Everything that is to be done, group by group, each in all modes. */
static void list_items(hw_ablation *a, const hw_transformer *m, hw_arena *arena)
{
    size_t most = (size_t)m->attentions * (size_t)(m->options.heads * m->options.heads);
    a->items = hw_arena_alloc(arena, most * HW_ABLATION_MODES * sizeof *a->items);
    for (int i = 0; i < m->attentions; i++) list_groups(a, m, i, arena);
    const hw_ablated *groups = hw_arena_copy(arena, a->items, (size_t)a->count * sizeof *groups);
    int count = a->count;
    a->count = 0;
    for (int i = 0; i < count; i++)
        for (int mode = 0; mode < HW_ABLATION_MODES; mode++)
            if (a->options.modes[mode]) {
                a->items[a->count] = groups[i];
                a->items[a->count++].mode = (hw_ablation_mode)mode;
            }
}

/* ---- the study --------------------------------------------------------------------------------------------------- */

/* Two-sided, of losses a sentence: for equal token counts the difference of the figures is the mean of these. */
static double loss_p(const hw_tally *baseline, const hw_tally *changed)
{
    double *d = malloc((size_t)baseline->count * sizeof *d);
    HW_CHECK(d, "no memory for differences");
    for (int64_t i = 0; i < baseline->count; i++) d[i] = changed->rows[2 * i] - baseline->rows[2 * i];
    double worse = hw_paired_p(d, baseline->count);
    for (int64_t i = 0; i < baseline->count; i++) d[i] = -d[i];
    double better = hw_paired_p(d, baseline->count);
    free(d);
    return fmin(worse, better);
}

static void compare(hw_ablated *x, const hw_quality *before, const hw_quality *after, const hw_ablation_options *o)
{
    x->loss = hw_paired_difference(&before->loss, &after->loss, o->trials, o->seed);
    x->loss_p_raw = loss_p(&before->loss, &after->loss);
    x->loss_after = hw_tally_score(&after->loss);
    x->match = hw_paired_difference(&before->match, &after->match, o->trials, o->seed);
    x->match_after = after->bleu ? hw_tally_score(&after->match) : NAN;
    x->bleu = (hw_difference){.value = NAN, .low = NAN, .high = NAN, .p = NAN};
    x->bleu_after = NAN;
    if (!after->bleu) return;
    x->bleu = hw_paired_difference(hw_metric_tally(before->bleu), hw_metric_tally(after->bleu), o->trials, o->seed);
    x->bleu_after = hw_metric_score(after->bleu);
}

static void correct(hw_ablation *a)
{
    double *p = malloc((size_t)a->count * sizeof *p);
    HW_CHECK(p, "no memory for %d p-values", a->count);
    for (int i = 0; i < a->count; i++) p[i] = a->items[i].loss_p_raw;
    hw_holm(p, a->count, p);
    for (int i = 0; i < a->count; i++) a->items[i].loss.p = p[i];
    free(p);
}

static void begin(hw_ablation *a, const hw_quality *before)
{
    a->loss = hw_tally_score(&before->loss);
    a->match = before->bleu ? hw_tally_score(&before->match) : NAN;
    a->bleu = before->bleu ? hw_metric_score(before->bleu) : NAN;
    if (before->bleu) hw_metric_signature(before->bleu, NULL, a->signature, sizeof a->signature);
}

hw_ablation *hw_ablation_study(hw_meter *meter, const hw_transformer *m, const hw_study_set *set,
                               const hw_ablation_options *options, hw_progress_function progress, void *context,
                               hw_arena *arena, hw_error *err)
{
    hw_ablation *a = hw_arena_calloc(arena, 1, sizeof *a);
    a->options = *options;
    a->sentences = set->count;
    list_items(a, m, arena);
    if (!a->count) {
        hw_fail(err, "every attention of the network has one head only: there is %s",
                options->groups == HW_ABLATE_PAIRS ? "no pair of heads in a layer" : "no layer to be reduced to one");
        return NULL;
    }
    hw_real **means = options->modes[HW_ABLATE_MEAN] ? hw_head_means(hw_meter_runner(meter), m, set, arena) : NULL;
    hw_head_changes *changes = hw_head_changes_new(m, means, arena);
    hw_quality before, after;
    double begun = hw_seconds();
    hw_meter_measure(meter, NULL, &before);
    begin(a, &before);
    for (int i = 0; i < a->count; i++) {
        hw_ablated *x = &a->items[i];
        hw_progress p = {
            .what = "ablate", .done = i, .total = a->count, .seconds = hw_seconds() - begun, .detail = x->name};
        if (progress) progress(&p, context);
        hw_head_changes_reset(changes);
        for (int k = 0; k < x->count; k++) hw_head_changes_add(changes, x->attention, x->heads[k], x->mode);
        hw_meter_measure(meter, changes->settings, &after);
        compare(x, &before, &after, options);
        hw_quality_clear(&after);
    }
    hw_quality_clear(&before);
    correct(a);
    return a;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* "loss", "loss_delta", and the interval and p under these names. */
static void set_figure(json_t *o, const char *name, double after, const hw_difference *d, const char *const keys[3])
{
    char delta[32];
    snprintf(delta, sizeof delta, "%s_delta", name);
    json_object_set_new(o, name, hw_json_number(after));
    json_object_set_new(o, delta, hw_json_number(d->value));
    json_object_set_new(o, keys[0], hw_json_number(d->low));
    json_object_set_new(o, keys[1], hw_json_number(d->high));
    json_object_set_new(o, keys[2], hw_json_number(d->p));
}

static json_t *item_json(const hw_ablated *x, const hw_transformer *m, bool translated)
{
    const hw_attention_layer *layer = hw_transformer_attention(m, x->attention);
    json_t *removed = json_array();
    for (int k = 0; k < x->count; k++)
        json_array_append_new(removed, json_sprintf("%s.%d", layer->name, layer->head_names[x->heads[k]]));
    json_t *o = json_pack("{s:s, s:s, s:o}", "name", x->name, "mode", hw_ablation_modes[x->mode], "ablated", removed);
    set_figure(o, "loss", x->loss_after, &x->loss, (const char *const[]){"low", "high", "p"});
    json_object_set_new(o, "p_raw", hw_json_number(x->loss_p_raw));
    if (!translated) return o;
    set_figure(o, "exact_match", x->match_after, &x->match,
               (const char *const[]){"exact_match_low", "exact_match_high", "exact_match_p"});
    set_figure(o, "bleu", x->bleu_after, &x->bleu, (const char *const[]){"bleu_low", "bleu_high", "bleu_p"});
    return o;
}

json_t *hw_ablation_json(const hw_ablation *a, const hw_transformer *m)
{
    bool translated = !isnan(a->bleu);
    json_t *heads = json_array();
    for (int i = 0; i < a->count; i++) json_array_append_new(heads, item_json(&a->items[i], m, translated));
    json_t *o = json_pack("{s:I, s:s, s:i, s:o}", "sentences", (json_int_t)a->sentences, "groups",
                          hw_ablation_groupings[a->options.groups], "trials", a->options.trials, "loss",
                          hw_json_number(a->loss));
    json_object_set_new(o, "exact_match", translated ? hw_json_number(a->match) : json_null());
    json_object_set_new(o, "bleu", hw_json_number(a->bleu));
    json_object_set_new(o, "signature", translated ? json_string(a->signature) : json_null());
    json_object_set_new(o, "heads", heads);
    return o;
}
