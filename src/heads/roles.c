/* The study of roles: the network over the selection set and the test set, three untrained copies of it over the test
 * set, and the judgement; and its results in JSON. */
#include <string.h>

#include "heads/diversity.h"
#include "role.h"

/* A study while it runs: how far it is, and what all its networks share. */
typedef struct study {
    const hw_bundle *bundle;
    const hw_role_test *tests;
    int count, heads[HW_ATTENTION_KINDS];
    hw_progress_function progress;
    void *context;
    int64_t done;
    double begun;
    hw_arena *arena;
} study;

static void report(study *s, const char *detail)
{
    hw_progress p = {.what = "roles",
                     .done = s->done++,
                     .total = HW_ROLE_CONTROLS + 3,
                     .seconds = hw_seconds() - s->begun,
                     .detail = detail};
    if (s->progress) s->progress(&p, s->context);
}

static hw_evidence *evidence_of(study *s, const hw_transformer *network, const hw_study_set *set,
                                const int32_t *offsets, bool norms)
{
    hw_evidence *e = hw_evidence_new(s->tests, s->count, set, s->heads, offsets, s->arena);
    hw_runner *runner = hw_runner_new(network);
    hw_evidence_collect(e, runner, network, norms);
    hw_runner_free(runner);
    return e;
}

static hw_evidence *control_evidence(study *s, const hw_study_set *set, const int32_t *offsets, int copy, hw_error *err)
{
    hw_bundle *untrained =
        hw_bundle_untrained(s->bundle, (uint64_t)s->bundle->config->training.seed + 1 + (uint64_t)copy, err);
    if (!untrained) return NULL;
    hw_evidence *e = evidence_of(s, untrained->network, set, offsets, false);
    hw_bundle_free(untrained);
    return e;
}

hw_bundle *hw_bundle_untrained(const hw_bundle *bundle, uint64_t seed, hw_error *err)
{
    hw_texts texts = hw_bundle_texts(bundle);
    hw_bundle *b = hw_bundle_new(bundle->config, &texts, false, err);
    if (!b) return NULL;
    hw_parameters_initialise(b->network->parameters, seed);
    hw_parameters_pack(b->network->parameters);
    return b;
}

/* ---- what is not tested ------------------------------------------------------------------------------------------ */

/* Both sets as they bear on a role in the heads of one kind. */
typedef struct view {
    const study *s;
    const hw_role *role;
    hw_attention_kind kind;
    const hw_evidence *of[2];
} view;

static bool concerns(const view *v, int place)
{
    return hw_place_at(place)->kind == v->kind && hw_role_is_for(v->role, hw_place_at(place));
}

/* Is there a test of the role with cases in this set, or, set -1, in both? */
static bool has_cases(const view *v, int set)
{
    for (int t = 0; t < v->s->count; t++) {
        bool there = v->s->tests[t].role == v->role && concerns(v, v->s->tests[t].place);
        for (int i = 0; i < 2; i++)
            if (set < 0 || set == i) there = there && hw_evidence_has_cases(v->of[i], t);
        if (there) return true;
    }
    return false;
}

/* "there is no d/valid.align and no d/test.align"; false: the gold is there, or the role is not for heads of the kind.
 */
static bool lacks_gold(const view *v, hw_role_untested *out)
{
    *out = (hw_role_untested){.role = v->role, .kind = v->kind};
    for (int p = 0; p < HW_PLACES && !out->missing; p++)
        for (int i = 0; i < 2 && concerns(v, p); i++) {
            const hw_study_set *set = v->of[i]->set;
            hw_arena *arena = v->s->arena;
            const char *suffix = hw_role_lacks(v->role, hw_place_at(p), v->s->bundle->config, set, arena);
            if (!suffix) continue;
            const char *path = hw_arena_string(arena, "%s/%s.%s", set->directory, set->prefix, suffix);
            if (!out->missing) {
                out->missing = path;
                out->why = hw_arena_string(arena, "there is no %s", path);
            } else if (strcmp(out->missing, path)) {
                out->why = hw_arena_string(arena, "%s and no %s", out->why, path);
            }
        }
    return out->missing;
}

static bool is_untested(const view *v, hw_role_untested *out)
{
    bool looked_for = false;
    for (int p = 0; p < HW_PLACES; p++) looked_for |= concerns(v, p);
    if (!looked_for || !v->s->heads[v->kind] || has_cases(v, -1)) return false;
    if (lacks_gold(v, out)) return true;
    const hw_study_set *set = v->of[has_cases(v, 0)]->set;
    out->why = hw_arena_string(v->s->arena, "there is no case of it in %s/%s", set->directory, set->prefix);
    return true;
}

static void list_untested(const study *s, const hw_evidence *chosen, const hw_evidence *found, hw_roles *out)
{
    int most = 0;
    while (hw_role_at(most)) most++;
    out->untested = hw_arena_alloc(s->arena, (size_t)(most * HW_ATTENTION_KINDS) * sizeof *out->untested);
    for (int kind = 0; kind < HW_ATTENTION_KINDS; kind++)
        for (int r = 0; r < most; r++) {
            view v = {s, hw_role_at(r), (hw_attention_kind)kind, {chosen, found}};
            out->untested_count += is_untested(&v, &out->untested[out->untested_count]);
        }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

hw_roles *hw_roles_study(const hw_bundle *bundle, const hw_study_set *selection, const hw_study_set *test,
                         const hw_roles_options *options, hw_progress_function progress, void *context, hw_arena *arena,
                         hw_error *err)
{
    study s = {.bundle = bundle, .progress = progress, .context = context, .begun = hw_seconds(), .arena = arena};
    int count;
    const hw_head *heads = hw_heads_of(bundle->network, arena, &count);
    for (int h = 0; h < count; h++) s.heads[heads[h].kind]++;
    hw_role_test *tests;
    s.count = hw_role_tests(selection, test, arena, &tests);
    s.tests = tests;
    report(&s, "selection set");
    const hw_evidence *chosen = evidence_of(&s, bundle->network, selection, NULL, false);
    report(&s, "test set");
    const hw_evidence *found = evidence_of(&s, bundle->network, test, chosen->offset, true);
    hw_evidence *controls[HW_ROLE_CONTROLS];
    for (int c = 0; c < HW_ROLE_CONTROLS; c++) {
        report(&s, "untrained copies");
        if (!(controls[c] = control_evidence(&s, test, chosen->offset, c, err))) return NULL;
    }
    report(&s, "intervals");
    hw_roles *roles = hw_roles_judge(heads, count, chosen, found, controls, HW_ROLE_CONTROLS, options, arena);
    list_untested(&s, chosen, found, roles);
    return roles;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* Line numbers in the files, from 1. */
static json_t *lines_json(const int64_t pairs[HW_ROLE_EXAMPLES], const hw_study_set *set)
{
    json_t *list = json_array();
    for (int i = 0; i < HW_ROLE_EXAMPLES && pairs[i] >= 0; i++)
        json_array_append_new(list, json_integer(set->pairs[pairs[i]].line + 1));
    return list;
}

static json_t *result_json(const hw_role_result *r, const hw_study_set *set)
{
    const hw_place *place = hw_place_at(r->test->place);
    json_t *o = json_object();
    json_object_set_new(o, "role", json_string(r->test->role->name));
    json_object_set_new(o, "subset", json_string(r->test->pieces ? "pieces" : "all"));
    if (place->step) json_object_set_new(o, "step", json_string(place->step));
    json_object_set_new(o, "score", hw_json_number(r->score));
    json_object_set_new(o, "baseline", hw_json_number(r->baseline));
    json_object_set_new(o, "low", hw_json_number(r->low));
    json_object_set_new(o, "high", hw_json_number(r->high));
    json_object_set_new(o, "p", hw_json_number(r->p));
    json_object_set_new(o, "p_raw", hw_json_number(r->p_raw));
    json_object_set_new(o, "control", hw_json_number(r->control));
    json_object_set_new(o, "selection_score", hw_json_number(r->selection));
    json_object_set_new(o, "cases", hw_json_number(r->cases));
    json_object_set_new(o, "sentences", json_integer(r->sentences));
    if (r->offset != INT32_MIN) json_object_set_new(o, "offset", json_integer(r->offset));
    if (r->test->role->mass) json_object_set_new(o, "norm_ratio", hw_json_number(r->norm_ratio));
    json_object_set_new(o, "too_strong", json_boolean(r->too_strong));
    json_object_set_new(o, "found", json_boolean(r->found));
    if (!r->found) return o;
    json_object_set_new(o, "tier", json_string(r->tier));
    json_object_set_new(o, "strongest", lines_json(r->strongest, set));
    json_object_set_new(o, "failing", lines_json(r->failing, set));
    return o;
}

static json_t *untested_json(const hw_roles *roles)
{
    json_t *list = json_array();
    for (int i = 0; i < roles->untested_count; i++) {
        const hw_role_untested *u = &roles->untested[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o, s:o}", "role", u->role->name, "in", hw_kind_name(u->kind), "missing",
                            u->missing ? hw_json_text(u->missing) : json_null(), "why", hw_json_text(u->why)));
    }
    return list;
}

json_t *hw_roles_json(const hw_roles *roles, const hw_study_set *test)
{
    json_t *heads = json_array();
    for (int h = 0; h < roles->heads; h++) {
        json_t *results = json_array();
        for (int i = 0; i < roles->head[h].count; i++)
            json_array_append_new(results, result_json(&roles->head[h].results[i], test));
        json_array_append_new(heads, json_pack("{s:s, s:o}", "name", roles->head[h].name, "roles", results));
    }
    return json_pack("{s:I, s:I, s:i, s:o, s:o, s:o}", "sentences", (json_int_t)test->count, "lines",
                     (json_int_t)test->lines, "tests", roles->tests, "untested", untested_json(roles), "table",
                     hw_role_table_json(), "heads", heads);
}
