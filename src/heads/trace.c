/* Heads watched in training: what every head looks at, and which roles it has, at one moment of its network.
 *
 * The first pairs of the validation set serve, in two halves: baselines and labels are chosen on every other pair and
 * scored on those between, as the study of roles does with validation and test set; the test set stays unseen. What
 * does not change while the network learns (gold, offsets, untrained copies) is worked out once. */
#include <math.h>
#include <stdlib.h>

#include <headwise/heads.h>

struct hw_tracer {
    const hw_bundle *bundle;
    hw_arena *arena, *scratch; /* kept; of one look */
    hw_runner *runner;
    const hw_head *heads;
    int count, of_kind[HW_ATTENTION_KINDS];
    hw_study_set all, half[2]; /* chosen on, scored on */
    hw_role_test *tests;
    int test_count;
    hw_evidence *controls[HW_ROLE_CONTROLS];
};

const char hw_trace_header[] = "training_step\tname\tfigure\tsubset\tstep\tvalue\tbaseline\tp\tfound";

/* ---- what stays -------------------------------------------------------------------------------------------------- */

static bool load(hw_tracer *t, int64_t sentences, hw_error *err)
{
    const hw_config *c = t->bundle->config;
    if (!hw_study_set_load(t->arena, t->bundle, c->data.dir, c->data.valid, &t->all, err)) return false;
    if (t->all.count > sentences) t->all.count = sentences;
    if (t->all.count < 2)
        return hw_fail(err,
                       "%s/%s: roles of heads are chosen on one pair and scored on another, so training.track_heads "
                       "needs two pairs at least",
                       c->data.dir, c->data.valid);
    for (int h = 0; h < 2; h++) {
        hw_study_pair *pairs = hw_arena_alloc(t->arena, (size_t)t->all.count * sizeof *pairs);
        t->half[h] = t->all;
        t->half[h].count = 0;
        for (int64_t i = h; i < t->all.count; i += 2) pairs[t->half[h].count++] = t->all.pairs[i];
        t->half[h].pairs = pairs;
    }
    return true;
}

static hw_evidence *collect(const hw_tracer *t, hw_runner *runner, const hw_transformer *network, int half,
                            const int32_t *offsets, hw_arena *arena)
{
    hw_evidence *e = hw_evidence_new(t->tests, t->test_count, &t->half[half], t->of_kind, offsets, arena);
    hw_evidence_collect(e, runner, network, false);
    return e;
}

/* Untrained copies with the seeds that the study of roles gives them. */
static bool make_controls(hw_tracer *t, hw_error *err)
{
    const hw_evidence *chosen = hw_evidence_new(t->tests, t->test_count, &t->half[0], t->of_kind, NULL, t->scratch);
    for (int c = 0; c < HW_ROLE_CONTROLS; c++) {
        uint64_t seed = (uint64_t)t->bundle->config->training.seed + 1 + (uint64_t)c;
        hw_bundle *copy = hw_bundle_untrained(t->bundle, seed, err);
        if (!copy) return false;
        hw_runner *runner = hw_runner_new(copy->network);
        t->controls[c] = collect(t, runner, copy->network, 1, chosen->offset, t->arena);
        hw_runner_free(runner);
        hw_bundle_free(copy);
    }
    return true;
}

hw_tracer *hw_tracer_new(const hw_bundle *bundle, int64_t sentences, hw_error *err)
{
    hw_tracer *t = calloc(1, sizeof *t);
    HW_CHECK(t, "no memory for a tracer");
    t->bundle = bundle;
    t->arena = hw_arena_new(0);
    t->scratch = hw_arena_new(0);
    t->heads = hw_heads_of(bundle->network, t->arena, &t->count);
    for (int h = 0; h < t->count; h++) t->of_kind[t->heads[h].kind]++;
    bool ok = load(t, sentences, err);
    if (ok) t->test_count = hw_role_tests(&t->half[0], &t->half[1], t->arena, &t->tests);
    if (!ok || !make_controls(t, err)) {
        hw_tracer_free(t);
        return NULL;
    }
    t->runner = hw_runner_new(bundle->network);
    return t;
}

void hw_tracer_free(hw_tracer *t)
{
    if (!t) return;
    hw_runner_free(t->runner);
    hw_arena_free(t->scratch);
    hw_arena_free(t->arena);
    free(t);
}

/* ---- a look ------------------------------------------------------------------------------------------------------ */

static hw_trace_row role_row(const char *name, const hw_role_result *r)
{
    const char *step = hw_place_at(r->test->place)->step;
    return (hw_trace_row){.name = name,
                          .figure = hw_role_name(r->test->role),
                          .subset = r->test->pieces ? "pieces" : "all",
                          .step = step ? step : "",
                          .value = r->score,
                          .baseline = fmax(r->baseline, r->control),
                          .p = r->p,
                          .is_role = true,
                          .found = r->found};
}

static int stats_rows(const hw_head_stats *x, hw_trace_row *out)
{
    const hw_stats_sums *s = &x->sums;
    const char *step = hw_place_at(x->place)->step;
    const struct {
        const char *name;
        double sum, over;
    } figures[] = {
        {"entropy", s->entropy, s->queries},       {"relative_entropy", s->relative, s->choices},
        {"confidence", s->confidence, s->queries}, {"distance", s->distance, s->queries},
        {"special", s->special, s->queries},
    };
    enum { FIGURES = sizeof figures / sizeof *figures };
    _Static_assert((int)FIGURES == (int)HW_TRACE_STATISTICS, "room for the statistics of a head");
    for (int i = 0; i < FIGURES; i++)
        out[i] = (hw_trace_row){.name = x->head.name,
                                .figure = figures[i].name,
                                .subset = "",
                                .step = step ? step : "",
                                .value = figures[i].over > 0 ? figures[i].sum / figures[i].over : NAN,
                                .baseline = NAN,
                                .p = NAN};
    return FIGURES;
}

int hw_tracer_look(hw_tracer *t, const hw_trace_row **rows)
{
    hw_arena *arena = t->scratch;
    const hw_transformer *m = t->bundle->network;
    hw_arena_reset(arena);
    const hw_evidence *chosen = collect(t, t->runner, m, 0, NULL, arena);
    const hw_evidence *scored = collect(t, t->runner, m, 1, chosen->offset, arena);
    const hw_roles *roles = hw_roles_judge(t->heads, t->count, chosen, scored, t->controls, HW_ROLE_CONTROLS,
                                           &(hw_roles_options){.trials = 0}, arena);
    const hw_stats *stats = hw_stats_of(m, t->runner, &t->all, arena);
    int count = 0;
    size_t most = (size_t)roles->tests + (size_t)stats->count * HW_TRACE_STATISTICS;
    hw_trace_row *all = hw_arena_alloc(arena, (most + 1) * sizeof *all);
    for (int h = 0; h < roles->heads; h++)
        for (int i = 0; i < roles->head[h].count; i++)
            all[count++] = role_row(roles->head[h].name, &roles->head[h].results[i]);
    for (int i = 0; i < stats->count; i++)
        if (!stats->items[i].by_words && !stats->items[i].norms) count += stats_rows(&stats->items[i], &all[count]);
    *rows = all;
    return count;
}
