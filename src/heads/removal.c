/* Heads taken out: the figures are those of heads turned down, with fewer parameters and less work.
 *
 * Speed: the whole network, with no gate in its way, and the one without the heads take turns, each goes first in every
 * other round, and a turn on a small set goes over it again until it has lasted long enough to be timed. What is told
 * are medians and the whole range, since the machine may do other things at the same time; of the gain it is that of
 * each round, in which both meet the same machine. */
#include <math.h>
#include <stdlib.h>

#include <headwise/heads.h>

enum { ROUNDS = HW_REMOVAL_ROUNDS };
static const double LEAST_SECONDS = 0.02; /* of a turn */

typedef struct contest {
    const hw_study_set *set;
    const hw_search_options *search;
    hw_ids *ids[2];
    int64_t tokens; /* target tokens, </s> included */
    hw_real *nll[2];
} contest;

/* A pass over the set -> how many target tokens it was. */
typedef int64_t pass(contest *c, hw_runner *runner, hw_real *nll);

static int64_t score(contest *c, hw_runner *runner, hw_real *nll)
{
    hw_score_pairs(runner, c->set->count, c->ids[HW_SOURCE], c->ids[HW_TARGET], 0, nll);
    return c->tokens;
}

/* Those that come out of the search, </s> included. */
static int64_t translate(contest *c, hw_runner *runner, hw_real *nll)
{
    (void)nll;
    int64_t tokens = 0;
    const hw_hypotheses *found = hw_search(runner, c->search, c->set->count, c->ids[HW_SOURCE]);
    for (int64_t i = 0; i < c->set->count; i++) tokens += found[i].count ? found[i].items[0].length + 1 : 0;
    return tokens;
}

/* ---- speed ------------------------------------------------------------------------------------------------------- */

static double turn(contest *c, pass *run, hw_runner *runner, hw_real *nll)
{
    double begun = hw_seconds(), seconds;
    int64_t tokens = 0;
    do {
        tokens += run(c, runner, nll);
        seconds = hw_seconds() - begun;
    } while (seconds < LEAST_SECONDS);
    return (double)tokens / seconds;
}

static hw_spread spread_of(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof *values, hw_ascending);
    return (hw_spread){.median = values[ROUNDS / 2], .low = values[0], .high = values[ROUNDS - 1]};
}

static hw_removal_speed race(contest *c, pass *run, hw_runner *const runner[2])
{
    double speed[2][ROUNDS], gain[ROUNDS];
    for (int k = 0; k < 2; k++) run(c, runner[k], c->nll[k]); /* memory is taken, caches are warm */
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            int k = (round + i) % 2;
            speed[k][round] = turn(c, run, runner[k], c->nll[k]);
        }
        gain[round] = speed[1][round] / speed[0][round];
    }
    return (hw_removal_speed){.tokens = {spread_of(speed[0]), spread_of(speed[1])}, .gain = spread_of(gain)};
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static contest contest_of(const hw_study_set *set, const hw_search_options *search, hw_arena *arena)
{
    contest c = {.set = set, .search = search};
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
    contest c = contest_of(set, search, arena);
    r.scored = race(&c, score, runner);
    r.translated = race(&c, translate, runner);
    hw_runner_settings(runner[0], changes->settings);
    score(&c, runner[0], c.nll[0]);
    for (int64_t t = 0; t < c.tokens; t++)
        r.difference = fmax(r.difference, fabs((double)c.nll[0][t] - (double)c.nll[1][t]));
    for (int k = 0; k < 2; k++) hw_runner_free(runner[k]);
    hw_arena_free(arena);
    return r;
}
