/* How well cross-attention aligns words: the alignment error rate of every head against gold, and the best of them. The
 * best of many on the test set itself; `headwise heads align` picks it on other data and gives intervals and baselines.
 */
#include <string.h>

#include <headwise/heads.h>

#include "cli/evaluate.h"

static hw_evaluated_alignment best_of(const hw_linkings *l)
{
    hw_evaluated_alignment best = {.is_there = false};
    for (int i = 0; i < l->count; i++) {
        const hw_linking *x = &l->items[i];
        if (!x->is_head || x->norms) continue;
        hw_tally tally;
        hw_linking_tally(l, i, &tally);
        double aer = hw_tally_score(&tally);
        hw_tally_clear(&tally);
        if (best.is_there && aer >= best.aer) continue;
        best = (hw_evaluated_alignment){.is_there = true, .aer = aer, .step = x->step};
        snprintf(best.head, sizeof best.head, "%s", x->name);
    }
    return best;
}

bool hw_evaluate_alignment(const hw_bundle *bundle, const hw_test_set *set, hw_runner *runner,
                           hw_evaluated_alignment *out, hw_error *err)
{
    hw_arena *arena = hw_arena_new(0);
    hw_study_set pairs;
    bool ok = hw_study_set_load(arena, bundle, set->directory, set->prefix, &pairs, err);
    if (ok) *out = best_of(hw_link_heads(runner, bundle->network, &pairs, arena));
    hw_arena_free(arena);
    return ok;
}
