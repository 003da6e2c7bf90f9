/* Runs compared: their figures with differences and intervals, and their heads matched, as JSON.
 *
 * What an interval speaks of depends on what is compared. Two models have one interval over the sentences that both
 * translated: it tells these two apart, not two ways of training. Groups of runs have intervals over their seeds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

static double figure_in(const json_t *result, const char *list, const char *key)
{
    const json_t *x = json_object_get(list ? json_object_get(result, list) : result, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* ---- roles of heads ---------------------------------------------------------------------------------------------- */

/* The results that were found of one head (roles of hw_roles_json). */
static const json_t *roles_of(const json_t *roles, const char *name)
{
    size_t i;
    json_t *head;
    json_array_foreach(json_object_get(roles, "heads"), i,
                       head) if (!strcmp(json_string_value(json_object_get(head, "name")),
                                         name)) return json_object_get(head, "roles");
    return NULL;
}

static bool found(const json_t *r) { return json_is_true(json_object_get(r, "found")); }

static bool has_role(const json_t *results, const char *role)
{
    size_t i;
    json_t *r;
    json_array_foreach(results, i, r) if (found(r) && !strcmp(hw_study_text(r, "role"), role)) return true;
    return false;
}

/* Do two heads share a role, wherever it was found? */
static bool share_role(const json_t *a, const json_t *b)
{
    size_t i;
    json_t *r;
    json_array_foreach(a, i, r) if (found(r) && has_role(b, hw_study_text(r, "role"))) return true;
    return false;
}

/* The names, each once. */
static json_t *role_names(const json_t *results)
{
    json_t *names = json_array(), *r;
    size_t i, k;
    json_array_foreach(results, i, r)
    {
        if (!found(r)) continue;
        for (k = 0; k < json_array_size(names); k++)
            if (!strcmp(json_string_value(json_array_get(names, k)), hw_study_text(r, "role"))) break;
        if (k == json_array_size(names)) json_array_append_new(names, json_string(hw_study_text(r, "role")));
    }
    return names;
}

static double heads_with_role(const hw_compared *run)
{
    double count = 0;
    size_t i;
    json_t *head;
    json_array_foreach(json_object_get(run->roles, "heads"), i, head)
    {
        json_t *names = role_names(json_object_get(head, "roles"));
        count += json_array_size(names) > 0;
        json_decref(names);
    }
    return count;
}

static double kinds_of_roles(const hw_compared *run)
{
    json_t *kinds = json_object(), *head, *name;
    size_t i, k;
    json_array_foreach(json_object_get(run->roles, "heads"), i, head)
    {
        json_t *names = role_names(json_object_get(head, "roles"));
        json_array_foreach(names, k, name) json_object_set_new(kinds, json_string_value(name), json_true());
        json_decref(names);
    }
    double count = (double)json_object_size(kinds);
    json_decref(kinds);
    return count;
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static const hw_tally *loss_of(const hw_compared *r) { return &r->quality.loss; }
static const hw_tally *match_of(const hw_compared *r) { return &r->quality.match; }
static const hw_tally *bleu_of(const hw_compared *r) { return hw_metric_tally(r->quality.bleu); }
static const hw_tally *entropy_of(const hw_compared *r) { return &r->profile.entropy; }
static const hw_tally *js_of(const hw_compared *r) { return &r->profile.js; }
static const hw_tally *position_of(const hw_compared *r) { return &r->profile.position; }
static double output_of(const hw_compared *r) { return figure_in(r->diversity, "overall", "output"); }
static double cka_of(const hw_compared *r) { return figure_in(r->diversity, "overall", "cka"); }
static double effective_of(const hw_compared *r) { return figure_in(r->diversity, "overall", "effective_heads"); }

/* A figure has a row a sentence, or is one number. */
static const struct {
    const char *name;
    const hw_tally *(*tally)(const hw_compared *run);
    double (*value)(const hw_compared *run);
} figures[] = {
    {"loss", loss_of, NULL},
    {"exact_match", match_of, NULL},
    {"bleu", bleu_of, NULL},
    {"relative_entropy", entropy_of, NULL},
    {"js", js_of, NULL},
    {"position", position_of, NULL},
    {"output", NULL, output_of},
    {"cka", NULL, cka_of},
    {"effective_heads", NULL, effective_of},
    {"heads_with_role", NULL, heads_with_role},
    {"kinds_of_roles", NULL, kinds_of_roles},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* A ratio whose parts are all nothing is none: one head a layer has no other to be compared with. */
static bool is_defined(const hw_tally *tally)
{
    double sum[HW_TALLY_WIDTH];
    if (!tally || !tally->count) return false;
    hw_tally_sum(tally, sum);
    return tally->score != hw_ratio_score || sum[1] != 0;
}

static double value_of(int figure, const hw_compared *run)
{
    if (figures[figure].value) return figures[figure].value(run);
    const hw_tally *tally = figures[figure].tally(run);
    return is_defined(tally) ? hw_tally_score(tally) : NAN;
}

/* Two groups of runs, those of the second in the order of the first's seeds where all have a partner. */
typedef struct groups {
    int count[2];
    const hw_compared **run[2];
    bool paired;
    const char *unpaired; /* why not; NULL where nothing is to be paired */
} groups;

static void leave_unpaired(groups *g, const char *why)
{
    g->paired = false;
    g->unpaired = why;
}

static groups groups_of(const hw_compared *runs, int count, hw_arena *arena)
{
    groups g = {.paired = true};
    for (int side = 0; side < 2; side++) {
        g.run[side] = hw_arena_alloc(arena, (size_t)count * sizeof **g.run);
        for (int i = 0; i < count; i++)
            if (runs[i].against == (side == 1)) g.run[side][g.count[side]++] = &runs[i];
    }
    if (!g.count[1] || (g.count[0] == 1 && g.count[1] == 1))
        g.paired = false;
    else if (g.count[0] != g.count[1])
        leave_unpaired(&g, hw_arena_string(arena, "one group has %d %s, the other %d", g.count[0],
                                           hw_plural(g.count[0], "run", "runs"), g.count[1]));
    for (int i = 0; i < g.count[0] && g.paired; i++) {
        long long seed = g.run[0][i]->seed;
        int at = i;
        while (at < g.count[1] && g.run[1][at]->seed != seed) at++;
        for (int k = 0; k < i; k++)
            if (g.run[0][k]->seed == seed)
                leave_unpaired(&g, hw_arena_string(arena, "two runs of one group have the seed %lld", seed));
        if (at == g.count[1] && g.paired)
            leave_unpaired(&g, hw_arena_string(arena, "%s with the seed %lld has no partner in the other group",
                                               g.run[0][i]->name, seed));
        if (!g.paired) break;
        const hw_compared *partner = g.run[1][at];
        g.run[1][at] = g.run[1][i];
        g.run[1][i] = partner;
    }
    return g;
}

static hw_difference difference_of(const groups *g, int figure, const double *a, const double *b, int trials,
                                   uint64_t seed)
{
    if (!g->count[1]) return hw_runs_mean(a, g->count[0]);
    if (g->count[0] > 1 || g->count[1] > 1) return hw_runs_difference(a, g->count[0], b, g->count[1], g->paired);
    if (!figures[figure].tally || isnan(*b - *a))
        return (hw_difference){.value = *b - *a, .low = NAN, .high = NAN, .p = NAN};
    return hw_paired_difference(figures[figure].tally(g->run[0][0]), figures[figure].tally(g->run[1][0]), trials, seed);
}

static double mean_of(const double *x, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += x[i] / count;
    return count ? sum : NAN;
}

static json_t *figures_json(const hw_compared *runs, int count, int trials, uint64_t seed)
{
    hw_arena *arena = hw_arena_new(0);
    groups g = groups_of(runs, count, arena);
    hw_difference d[FIGURES];
    double p[FIGURES], values[2][FIGURES];
    int tested = 0, of[FIGURES];
    for (int f = 0; f < FIGURES; f++) {
        double *x[2];
        for (int side = 0; side < 2; side++) {
            x[side] = hw_arena_alloc(arena, (size_t)count * sizeof **x);
            for (int i = 0; i < g.count[side]; i++) x[side][i] = value_of(f, g.run[side][i]);
            values[side][f] = mean_of(x[side], g.count[side]);
        }
        d[f] = difference_of(&g, f, x[0], x[1], trials, seed);
        if (!g.count[1] || isnan(d[f].p)) continue;
        of[tested] = f;
        p[tested++] = d[f].p;
    }
    hw_holm(p, tested, p);
    json_t *list = json_array();
    for (int f = 0, t = 0; f < FIGURES; f++) {
        bool has_p = t < tested && of[t] == f;
        json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "figure", figures[f].name, "mean",
                              hw_json_number(values[0][f]), "against", hw_json_number(values[1][f]), "difference",
                              hw_json_number(g.count[1] ? d[f].value : NAN), "low", hw_json_number(d[f].low), "high",
                              hw_json_number(d[f].high));
        json_object_set_new(o, "p", has_p ? hw_json_number(p[t]) : json_null());
        json_object_set_new(o, "p_raw", has_p ? hw_json_number(d[f].p) : json_null());
        json_object_set_new(o, "p_is_bound", json_boolean(has_p && d[f].p_is_bound));
        t += has_p;
        json_array_append_new(list, o);
    }
    json_t *out = json_pack("{s:o, s:s}", "figures", list, "over",
                            !g.count[1]                          ? "runs"
                            : g.count[0] == 1 && g.count[1] == 1 ? "sentences"
                            : g.paired                           ? "runs paired by seed"
                                                                 : "runs");
    json_object_set_new(out, "runs", json_pack("[i, i]", g.count[0], g.count[1]));
    json_object_set_new(out, "unpaired", g.unpaired ? hw_json_text(g.unpaired) : json_null());
    hw_arena_free(arena);
    return out;
}

static json_t *models_json(const hw_compared *runs, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_t *o = json_pack("{s:o, s:I, s:b}", "model", hw_json_text(runs[i].name), "seed", (json_int_t)runs[i].seed,
                              "against", runs[i].against);
        json_object_set_new(o, "same_as", runs[i].same_as ? hw_json_text(runs[i].same_as) : json_null());
        for (int f = 0; f < FIGURES; f++)
            json_object_set_new(o, figures[f].name, hw_json_number(value_of(f, &runs[i])));
        json_array_append_new(list, o);
    }
    return list;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

typedef struct side {
    const hw_compared *run;
    const hw_head *heads;
    int count;
} side;

static bool may_match(const hw_head *a, const hw_head *b, bool same_layer)
{
    return a->kind == b->kind && (!same_layer || hw_head_layer(a) == hw_head_layer(b));
}

/* The share of all that head i could be matched with which have a role of its. */
static double roles_by_chance(const side *a, int i, const side *b, bool same_layer)
{
    const json_t *own = roles_of(a->run->roles, a->heads[i].name);
    int all = 0, shared = 0;
    for (int j = 0; j < b->count; j++) {
        if (!may_match(&a->heads[i], &b->heads[j], same_layer)) continue;
        all++;
        shared += share_role(own, roles_of(b->run->roles, b->heads[j].name));
    }
    return all ? (double)shared / all : 0;
}

static json_t *name_or_null(const side *b, int head)
{
    return head < 0 ? json_null() : json_string(b->heads[head].name);
}

static void add_matches(const side *a, const side *b, const double *distances, bool same_layer, json_t *rows,
                        json_t *matching)
{
    hw_arena *arena = hw_arena_new(0);
    hw_head_pair *pairs = hw_arena_alloc(arena, (size_t)a->count * sizeof *pairs);
    hw_head_match(a->heads, a->count, b->heads, b->count, distances, same_layer, pairs);
    double js = 0, chance = 0, expected = 0;
    int matched = 0, with_role = 0, shared = 0;
    for (int i = 0; i < a->count; i++) {
        const json_t *own = roles_of(a->run->roles, a->heads[i].name);
        const json_t *other = pairs[i].match < 0 ? NULL : roles_of(b->run->roles, b->heads[pairs[i].match].name);
        bool share = share_role(own, other);
        json_t *names = role_names(own);
        if (pairs[i].match >= 0) {
            matched++;
            js += pairs[i].js;
            chance += pairs[i].chance;
            if (json_array_size(names)) with_role++, shared += share, expected += roles_by_chance(a, i, b, same_layer);
        }
        json_array_append_new(
            rows, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "name", a->heads[i].name, "roles",
                            names, "with", hw_json_text(b->run->name), "match", name_or_null(b, pairs[i].match),
                            "match_roles", role_names(other), "js", hw_json_number(pairs[i].js), "chance",
                            hw_json_number(pairs[i].chance), "nearest", name_or_null(b, pairs[i].nearest), "nearest_js",
                            hw_json_number(pairs[i].nearest < 0 ? NAN : distances[i * b->count + pairs[i].nearest]),
                            "role_shared", share));
    }
    json_array_append_new(matching,
                          json_pack("{s:o, s:i, s:o, s:o, s:i, s:i, s:f}", "with", hw_json_text(b->run->name),
                                    "matched", matched, "js", hw_json_number(matched ? js / matched : NAN), "chance",
                                    hw_json_number(matched ? chance / matched : NAN), "heads_with_role", with_role,
                                    "role_shared", shared, "role_shared_by_chance", expected));
    hw_arena_free(arena);
}

/* The distances of all pairs that have one: rows are heads of the first, columns the other's. */
static json_t *distances_json(const side *a, const side *b, const double *distances)
{
    json_t *rows = json_array(), *columns = json_array(), *all = json_array();
    for (int j = 0; j < b->count; j++) json_array_append_new(columns, json_string(b->heads[j].name));
    for (int i = 0; i < a->count; i++) {
        json_t *row = json_array();
        for (int j = 0; j < b->count; j++) json_array_append_new(row, hw_json_number(distances[i * b->count + j]));
        json_array_append_new(rows, json_string(a->heads[i].name));
        json_array_append_new(all, row);
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "with", hw_json_text(b->run->name), "rows", rows, "columns", columns, "js",
                     all);
}

json_t *hw_compare_json(const hw_compared *runs, int count, double *const *distances, bool same_layer, int trials,
                        uint64_t seed)
{
    hw_arena *arena = hw_arena_new(0);
    json_t *rows = json_array(), *matching = json_array(), *all = json_array();
    side *sides = hw_arena_alloc(arena, (size_t)count * sizeof *sides);
    for (int m = 0; m < count; m++) {
        sides[m].run = &runs[m];
        sides[m].heads = hw_heads_of(runs[m].bundle->network, arena, &sides[m].count);
        if (!m) continue;
        add_matches(&sides[0], &sides[m], distances[m], same_layer, rows, matching);
        json_array_append_new(all, distances_json(&sides[0], &sides[m], distances[m]));
    }
    json_t *out = figures_json(runs, count, trials, seed);
    json_object_set_new(out, "models", models_json(runs, count));
    json_object_set_new(out, "matched_within", json_string(same_layer ? "layer" : "part"));
    json_object_set_new(out, "matching", matching);
    json_object_set_new(out, "heads", rows);
    json_object_set_new(out, "distances", all);
    hw_arena_free(arena);
    return out;
}
