/* What heads achieve, a sentence and test.
 *
 * A query that attends most to one of its targets achieves the target's credit; where several keys share the largest
 * weight each counts for its part, so that a uniform head gets what chance gives. Sentences are kept apart, because
 * intervals and tests are over sentences; nothing is added up here, so no figure depends on threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "role.h"

enum { FARTHEST = 64 }; /* offsets beyond are no baseline */

/* ---- making ------------------------------------------------------------------------------------------------------ */

static float **rows(hw_arena *arena, int count, int64_t pairs)
{
    float **all = hw_arena_alloc(arena, ((size_t)count + 1) * sizeof *all);
    for (int i = 0; i < count; i++) all[i] = hw_arena_calloc(arena, (size_t)pairs, sizeof **all);
    return all;
}

static void make_rows(hw_evidence *e, hw_arena *arena)
{
    size_t tests = (size_t)e->count + 1;
    int64_t pairs = e->set->count;
    e->size = rows(arena, e->count, pairs);
    e->guess = rows(arena, e->count, pairs);
    e->offset = hw_arena_alloc(arena, tests * sizeof *e->offset);
    e->got = hw_arena_alloc(arena, tests * sizeof *e->got);
    e->mass = hw_arena_calloc(arena, tests, sizeof *e->mass);
    for (int t = 0; t < e->count; t++) {
        size_t heads = (size_t)e->heads[hw_place_at(e->tests[t].place)->kind];
        e->offset[t] = INT32_MIN;
        e->got[t] = hw_arena_calloc(arena, heads * (size_t)pairs, sizeof **e->got);
        if (e->tests[t].role->mass) e->mass[t] = hw_arena_calloc(arena, heads * (size_t)pairs * 2, sizeof **e->mass);
    }
}

/* What each fixed offset would achieve, [tests][2 FARTHEST + 1]; and what there is to achieve. */
static void count_cases(hw_evidence *e, double (*by_offset)[2 * FARTHEST + 1])
{
    hw_arena *scratch = hw_arena_new(0);
    for (int64_t i = 0; i < e->set->count; i++)
        for (int p = 0; p < HW_PLACES; p++) {
            hw_arena_reset(scratch);
            const hw_role_cases *cases = hw_role_cases_new(e, p, i, scratch);
            int32_t first = hw_place_at(p)->first_key;
            for (int t = 0; t < e->count; t++)
                for (int32_t k = 0; k < cases->of[t].count; k++) {
                    const hw_role_case *c = &cases->of[t].items[k];
                    e->size[t][i] += c->worth;
                    for (int32_t j = c->first; j < c->first + c->count; j++) {
                        int32_t offset = cases->of[t].targets[j].column - first - c->query;
                        if (abs(offset) <= FARTHEST)
                            by_offset[t][FARTHEST + offset] += (double)cases->of[t].targets[j].credit;
                    }
                }
        }
    hw_arena_free(scratch);
}

static int32_t best_offset(const double *by_offset)
{
    int best = 0;
    for (int i = 1; i <= 2 * FARTHEST; i++)
        if (by_offset[i] > by_offset[best]) best = i;
    return best - FARTHEST;
}

static void guess(hw_evidence *e, int t, int64_t pair, const hw_cases *cases)
{
    const hw_place *place = hw_place_at(e->tests[t].place);
    const hw_sentence *words = e->set->pairs[pair].words;
    hw_role_baseline baseline = e->tests[t].role->baseline;
    for (int32_t k = 0; k < cases->count; k++) {
        const hw_role_case *c = &cases->items[k];
        int32_t key = baseline == HW_BASELINE_OFFSET
                          ? c->query + e->offset[t]
                          : hw_diagonal(c->query, words[place->query_side].count, words[place->key_side].count);
        e->guess[t][pair] += hw_case_credit(cases, c, place->first_key + key);
    }
}

static void make_guesses(hw_evidence *e)
{
    hw_arena *scratch = hw_arena_new(0);
    for (int64_t i = 0; i < e->set->count; i++)
        for (int p = 0; p < HW_PLACES; p++) {
            hw_arena_reset(scratch);
            const hw_role_cases *cases = hw_role_cases_new(e, p, i, scratch);
            for (int t = 0; t < e->count; t++)
                if (e->tests[t].role->baseline != HW_BASELINE_CONTROL) guess(e, t, i, &cases->of[t]);
        }
    hw_arena_free(scratch);
}

hw_evidence *hw_evidence_new(const hw_role_test *tests, int count, const hw_study_set *set,
                             const int heads[HW_ATTENTION_KINDS], const int32_t *offsets, hw_arena *arena)
{
    hw_evidence *e = hw_arena_alloc(arena, sizeof *e);
    *e = (hw_evidence){.tests = tests, .count = count, .set = set};
    memcpy(e->heads, heads, sizeof e->heads);
    make_rows(e, arena);
    hw_arena *scratch = hw_arena_new(0);
    double(*by_offset)[2 * FARTHEST + 1] = hw_arena_calloc(scratch, (size_t)count + 1, sizeof *by_offset);
    count_cases(e, by_offset);
    for (int t = 0; t < count; t++)
        if (tests[t].role->baseline == HW_BASELINE_OFFSET)
            e->offset[t] = offsets ? offsets[t] : best_offset(by_offset[t]);
    hw_arena_free(scratch);
    make_guesses(e);
    return e;
}

/* ---- one head in one pair ---------------------------------------------------------------------------------------- */

/* The largest weight of each query, and how many keys have it. */
static void find_best(const hw_word_attention *a, bool words_only, hw_real *best, int32_t *ties)
{
    int32_t left_out = words_only ? a->special : -1;
    for (int32_t q = 0; q < a->queries; q++) {
        const hw_real *row = a->weights + q * a->stride;
        best[q] = -1;
        ties[q] = 1;
        for (int32_t k = 0; k < a->visible[q]; k++) {
            if (k == left_out) continue;
            if (row[k] > best[q]) {
                best[q] = row[k];
                ties[q] = 1;
            } else {
                ties[q] += row[k] == best[q];
            }
        }
    }
}

static double pointed(const hw_cases *cases, const hw_word_attention *a, const hw_real *best, const int32_t *ties)
{
    double got = 0;
    for (int32_t i = 0; i < cases->count; i++) {
        const hw_role_case *c = &cases->items[i];
        for (int32_t j = c->first; j < c->first + c->count; j++) {
            const hw_role_target *target = &cases->targets[j];
            if (a->weights[c->query * a->stride + target->column] == best[c->query])
                got += (double)target->credit / ties[c->query];
        }
    }
    return got;
}

static double spread(const hw_cases *cases, const hw_word_attention *a)
{
    double got = 0;
    for (int32_t i = 0; i < cases->count; i++) {
        int32_t q = cases->items[i].query, n = a->visible[q];
        got += hw_attention_entropy(a->weights + q * a->stride, n) / log((double)n);
    }
    return got;
}

static double mass_on_targets(const hw_cases *cases, const hw_word_attention *a)
{
    double mass = 0;
    for (int32_t i = 0; i < cases->count; i++)
        for (int32_t j = 0; j < cases->items[i].count; j++)
            mass +=
                (double)
                    a->weights[cases->items[i].query * a->stride + cases->targets[cases->items[i].first + j].column];
    return mass;
}

void hw_evidence_add(hw_evidence *e, hw_role_cases *cases, int head, const hw_word_attention *words,
                     const hw_word_attention *tokens, const hw_word_attention *norms)
{
    find_best(words, false, cases->best[HW_ROLE_BY_WORDS], cases->ties[HW_ROLE_BY_WORDS]);
    find_best(words, true, cases->best[HW_ROLE_WORDS_ONLY], cases->ties[HW_ROLE_WORDS_ONLY]);
    find_best(tokens, false, cases->best[HW_ROLE_BY_TOKENS], cases->ties[HW_ROLE_BY_TOKENS]);
    int64_t at = head * e->set->count + cases->pair;
    for (int t = 0; t < e->count; t++) {
        const hw_role_test *test = &e->tests[t];
        const hw_cases *of = &cases->of[t];
        if (test->place != cases->place || !of->count) continue;
        int way = test->pieces ? HW_ROLE_BY_TOKENS : test->role->words_only ? HW_ROLE_WORDS_ONLY : HW_ROLE_BY_WORDS;
        e->got[t][at] =
            (float)(test->role->targets ? pointed(of, test->pieces ? tokens : words, cases->best[way], cases->ties[way])
                                        : spread(of, words));
        if (!e->mass[t]) continue;
        e->mass[t][2 * at] = (float)mass_on_targets(of, words);
        if (norms) e->mass[t][2 * at + 1] = (float)mass_on_targets(of, norms);
    }
}
