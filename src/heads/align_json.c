/* Alignment error rates of heads, means and baselines in JSON. The best head is picked on the selection set, so that
 * its figure on the test set is not the best of many. */
#include <math.h>
#include <string.h>

#include <headwise/heads.h>

/* "aer", "low", "high" or the same with "_norm" of one linking. */
static void add_figures(json_t *o, const hw_linkings *l, int item, const char *suffix, int trials, uint64_t seed)
{
    static const char *const keys[] = {"aer", "low", "high"};
    hw_tally tally;
    hw_linking_tally(l, item, &tally);
    double figures[3] = {hw_tally_score(&tally), NAN, NAN};
    if (tally.count > 1) {
        hw_interval x = hw_bootstrap_interval(&tally, trials, seed);
        figures[1] = x.low;
        figures[2] = x.high;
    }
    hw_tally_clear(&tally);
    for (int i = 0; i < 3; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s%s", keys[i], suffix);
        json_object_set_new(o, key, isfinite(figures[i]) ? json_real(figures[i]) : json_null());
    }
}

static double aer_of(const hw_linkings *l, int item)
{
    hw_tally tally;
    hw_linking_tally(l, item, &tally);
    double aer = hw_tally_score(&tally);
    hw_tally_clear(&tally);
    return aer;
}

/* A head or mean at one step: its linking by weights, and the next one, by norms. */
static json_t *step_json(const hw_linkings *selection, const hw_linkings *test, int item, int trials, uint64_t seed)
{
    json_t *o = json_pack("{s:s, s:s}", "name", test->items[item].name, "step", test->items[item].step);
    add_figures(o, test, item, "", trials, seed);
    add_figures(o, test, item + 1, "_norm", trials, seed);
    json_object_set_new(o, "selection_aer", json_real(aer_of(selection, item)));
    json_object_set_new(o, "selection_aer_norm", json_real(aer_of(selection, item + 1)));
    return o;
}

static json_t *best_json(const hw_linkings *selection, const hw_linkings *test, int trials, uint64_t seed)
{
    int best = -1;
    double least = 0;
    for (int i = 0; i < selection->count; i++) {
        double aer = aer_of(selection, i);
        if (!selection->items[i].is_head || (best >= 0 && aer >= least)) continue;
        best = i;
        least = aer;
    }
    const hw_linking *x = &test->items[best];
    json_t *o = json_pack("{s:s, s:s, s:s, s:f}", "name", x->name, "step", x->step, "measure",
                          x->norms ? "norms" : "weights", "selection_aer", least);
    add_figures(o, test, best, "", trials, seed);
    return o;
}

json_t *hw_align_json(const hw_linkings *selection, const hw_linkings *test, const hw_linkings *baselines, int trials,
                      uint64_t seed)
{
    json_t *heads = json_array(), *means = json_array(), *others = json_array();
    for (int i = 0; i < test->count; i += 2)
        json_array_append_new(test->items[i].is_head ? heads : means, step_json(selection, test, i, trials, seed));
    for (int i = 0; i < baselines->count; i++) {
        json_t *o = json_pack("{s:s}", "name", baselines->items[i].name);
        add_figures(o, baselines, i, "", trials, seed);
        json_array_append_new(others, o);
    }
    return json_pack("{s:I, s:o, s:o, s:o, s:o}", "sentences", (json_int_t)test->set->count, "best",
                     best_json(selection, test, trials, seed), "heads", heads, "means", means, "baselines", others);
}
