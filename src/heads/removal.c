/* Heads taken out against heads turned down: the same figures, fewer parameters, less work. Both networks take turns,
 * and the best round of each counts, so that what else the machine does falls on neither. */
#include <math.h>
#include <stdlib.h>

#include <headwise/heads.h>

enum { ROUNDS = 5 };

typedef struct contest {
    const hw_study_set *set;
    hw_ids *ids[2];
    int64_t tokens; /* target tokens, </s> included */
    hw_real *nll[2];
} contest;

/* Target tokens a second with the target fed. */
static double score(contest *c, hw_runner *runner, hw_real *nll)
{
    double begun = hw_seconds();
    hw_score_pairs(runner, c->set->count, c->ids[HW_SOURCE], c->ids[HW_TARGET], 0, nll);
    return (double)c->tokens / (hw_seconds() - begun);
}

/* Tokens a second that come out of the search, </s> included. */
static double translate(contest *c, hw_runner *runner, const hw_search_options *search)
{
    double begun = hw_seconds();
    int64_t tokens = 0;
    const hw_hypotheses *found = hw_search(runner, search, c->set->count, c->ids[HW_SOURCE]);
    double seconds = hw_seconds() - begun;
    for (int64_t i = 0; i < c->set->count; i++) tokens += found[i].count ? found[i].items[0].length + 1 : 0;
    return (double)tokens / seconds;
}

static contest contest_of(const hw_study_set *set, hw_arena *arena)
{
    contest c = {.set = set};
    for (int s = 0; s < 2; s++) {
        c.ids[s] = hw_arena_alloc(arena, (size_t)set->count * sizeof *c.ids[s]);
        for (int64_t i = 0; i < set->count; i++) c.ids[s][i] = set->pairs[i].words[s].ids;
    }
    for (int64_t i = 0; i < set->count; i++) c.tokens += c.ids[HW_TARGET][i].count + 1;
    for (int k = 0; k < 2; k++) c.nll[k] = hw_arena_alloc(arena, (size_t)c.tokens * sizeof *c.nll[k]);
    return c;
}

/* Of a pair with as many target as source tokens. */
static double work_of(const hw_transformer *m)
{
    double source, target;
    hw_transformer_flops(m, &source, &target);
    return source + target;
}

hw_removal hw_removal_measure(const hw_bundle *bundle, const hw_bundle *part, const int *heads, int count,
                              const hw_study_set *set, const hw_search_options *search)
{
    hw_arena *arena = hw_arena_new(0);
    int all;
    const hw_head *list = hw_heads_of(bundle->network, arena, &all);
    hw_head_changes *changes = hw_head_changes_new(bundle->network, NULL, arena);
    for (int i = 0; i < count; i++)
        hw_head_changes_add(changes, list[heads[i]].attention, list[heads[i]].head, HW_ABLATE_ZERO);
    const hw_bundle *both[2] = {bundle, part};
    hw_runner *runner[2];
    hw_removal r = {.work = 1 - work_of(part->network) / work_of(bundle->network)};
    for (int k = 0; k < 2; k++) {
        runner[k] = hw_runner_new(both[k]->network);
        r.parameters[k] = hw_parameters_total(both[k]->network->parameters);
    }
    hw_runner_settings(runner[0], changes->settings);
    contest c = contest_of(set, arena);
    for (int round = 0; round < ROUNDS; round++)
        for (int k = 0; k < 2; k++) {
            r.scored[k] = fmax(r.scored[k], score(&c, runner[k], c.nll[k]));
            r.translated[k] = fmax(r.translated[k], translate(&c, runner[k], search));
        }
    for (int64_t t = 0; t < c.tokens; t++)
        r.difference = fmax(r.difference, fabs((double)c.nll[0][t] - (double)c.nll[1][t]));
    for (int k = 0; k < 2; k++) hw_runner_free(runner[k]);
    hw_arena_free(arena);
    return r;
}
