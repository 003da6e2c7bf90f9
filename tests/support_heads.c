#include "support_heads.h"

#include "support_model.h"
#include "support_text.h"

#include <check.h>
#include <math.h>
#include <string.h>

toy_study *toy_study_new(int64_t selection_pairs, int64_t test_pairs)
{
    hw_error err = {""};
    hw_arena *arena = hw_arena_new(0);
    toy_study *s = hw_arena_calloc(arena, 1, sizeof *s);
    s->arena = arena;
    hw_config *config = tiny_config(arena, "data.source=en;data.target=fr");
    hw_tokenizer *t = tokenizer_of(config->text.tokenizer, config->text.joiner);
    hw_counts *counts = hw_counts_new(arena);
    ck_assert(hw_counts_add_file(counts, t, "data/toy/test.en", &err) &&
              hw_counts_add_file(counts, t, "data/toy/test.fr", &err));
    hw_vocabulary *v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){0});
    s->bundle = hw_bundle_new(config, &(hw_texts){v, v, t, hw_tokenizer_share(t)}, false, &err);
    ck_assert_msg(s->bundle != NULL, "%s", err.message);
    ck_assert_msg(hw_study_set_load(arena, s->bundle, "data/toy", "valid", &s->selection, &err), "%s", err.message);
    ck_assert_msg(hw_study_set_load(arena, s->bundle, "data/toy", "test", &s->test, &err), "%s", err.message);
    s->selection.count = selection_pairs;
    s->test.pairs += s->test.count - test_pairs; /* the last ones: there the best offset of noun to adjective is weak */
    s->test.count = test_pairs;
    s->count = hw_role_tests(&s->selection, &s->test, arena, &s->tests);
    return s;
}

void toy_study_free(toy_study *s)
{
    hw_bundle_free(s->bundle);
    hw_arena_free(s->arena);
}

/* ---- planting ---------------------------------------------------------------------------------------------------- */

/* Quick numbers, since much noise is needed (Knuth's multiplier); about normal, with deviation 1. */
static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

static double noise(uint64_t *state) { return (uniform(state) + uniform(state) + uniform(state) - 1.5) * 2; }

static void softmax(hw_real *row, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += exp((double)row[k]);
    for (int64_t k = 0; k < count; k++) row[k] = (hw_real)(exp((double)row[k]) / sum);
}

/* Noise everywhere; a query that points gives nine tenths to its target. */
static void plant(const planted *p, const hw_place *place, const hw_study_set *set, int64_t pair, int64_t rows,
                  int64_t cols, uint64_t *random, hw_real *block)
{
    double deviation = p->noise > 0 ? p->noise : p->noise < 0 ? 0 : 2;
    for (int64_t r = 0; r < rows; r++) {
        int64_t seen = place->causal ? r + 1 : cols;
        hw_real *row = block + r * cols;
        for (int64_t k = 0; k < cols; k++)
            row[k] = k < seen && deviation > 0 ? (hw_real)(deviation * noise(random)) : 0;
        softmax(row, seen);
        for (int64_t k = seen; k < cols; k++) row[k] = 0;
    }
    const hw_sentence *query = &set->pairs[pair].words[place->query_side],
                      *key = &set->pairs[pair].words[place->key_side];
    int step = place->kind == HW_ENCODER_SELF ? 0 : p->row;
    for (int32_t q = 0; q < query->count && p->points; q++) {
        int32_t target = p->points(set, pair, q);
        if (target < 0 || (p->share > 0 && uniform(random) >= p->share)) continue;
        int64_t r = query->words[q].first + step, column = place->first_key + key->words[target].first;
        if (place->causal && column > r) continue;
        for (int64_t k = 0; k < cols; k++) block[r * cols + k] *= (hw_real)0.1;
        block[r * cols + column] += (hw_real)0.9;
    }
    for (int64_t r = 0; r < rows && p->parked > 0; r++) {
        for (int64_t k = 0; k < cols; k++) block[r * cols + k] *= (hw_real)(1 - p->parked);
        block[r * cols + (place->first_key ? 0 : cols - 1)] += (hw_real)p->parked;
    }
}

/* Blocks of one pair's heads, [count][rows][cols], read at every place of their kind. */
static void add_pair(hw_evidence *e, hw_attention_kind kind, const planted *heads, int count, int64_t pair,
                     uint64_t seed, hw_arena *arena)
{
    const hw_study_pair *p = &e->set->pairs[pair];
    hw_real *blocks = NULL;
    for (int at = 0; at < HW_PLACES; at++) {
        const hw_place *place = hw_place_at(at);
        if (place->kind != kind) continue;
        const int query = place->query_side, key = place->key_side;
        int64_t rows = p->words[query].ids.count + 1, cols = p->words[key].ids.count + 1;
        uint64_t random = seed * 1000003 + (uint64_t)pair;
        if (!blocks) {
            blocks = hw_arena_alloc(arena, (size_t)(count * rows * cols) * sizeof *blocks);
            for (int h = 0; h < count; h++)
                plant(&heads[h], place, e->set, pair, rows, cols, &random, blocks + h * rows * cols);
        }
        hw_role_cases *cases = hw_role_cases_new(e, at, pair, arena);
        hw_word_attention words = hw_word_attention_new(place, &p->words[query], &p->words[key], arena);
        hw_word_attention tokens = hw_word_attention_new(place, &p->tokens[query], &p->tokens[key], arena);
        hw_word_attention arriving = hw_word_attention_new(place, &p->words[query], &p->words[key], arena);
        hw_real *norms = hw_arena_alloc(arena, (size_t)cols * sizeof *norms);
        for (int64_t k = 0; k < cols; k++) norms[k] = (hw_real)(k == (place->first_key ? 0 : cols - 1) ? 0.1 : 1);
        for (int h = 0; h < count; h++) {
            const hw_real *block = blocks + h * rows * cols;
            hw_word_attention_fill(&words, block, cols, NULL);
            hw_word_attention_fill(&tokens, block, cols, NULL);
            hw_word_attention_fill(&arriving, block, cols, norms);
            hw_evidence_add(e, cases, h, &words, &tokens, &arriving);
        }
    }
}

hw_evidence *planted_evidence(toy_study *s, const hw_study_set *set, const int32_t *offsets, hw_attention_kind kind,
                              const planted *heads, int count, uint64_t seed)
{
    int of_kind[HW_ATTENTION_KINDS] = {0};
    of_kind[kind] = count;
    hw_evidence *e = hw_evidence_new(s->tests, s->count, set, of_kind, offsets, s->arena);
    hw_arena *scratch = hw_arena_new(0);
    for (int64_t i = 0; i < set->count; i++) {
        add_pair(e, kind, heads, count, i, seed, scratch);
        hw_arena_reset(scratch);
    }
    hw_arena_free(scratch);
    return e;
}

hw_roles *planted_roles(toy_study *s, hw_attention_kind kind, const planted *heads, int count, uint64_t seed,
                        int trials)
{
    enum { UNTRAINED = 8 };
    planted untrained[UNTRAINED] = {{0}};
    for (int h = 0; h < UNTRAINED; h++) untrained[h].noise = 0.5;
    hw_head *names = hw_arena_calloc(s->arena, (size_t)count, sizeof *names);
    for (int h = 0; h < count; h++) names[h] = (hw_head){.head = h, .kind = kind, .of_kind = h};
    hw_evidence *selection = planted_evidence(s, &s->selection, NULL, kind, heads, count, seed);
    hw_evidence *test = planted_evidence(s, &s->test, selection->offset, kind, heads, count, seed + 1);
    for (int c = 0; c < HW_ROLE_CONTROLS; c++)
        if (!s->controls[kind][c])
            s->controls[kind][c] = planted_evidence(s, &s->test, NULL, kind, untrained, UNTRAINED, 90000 + (uint64_t)c);
    return hw_roles_judge(names, count, selection, test, s->controls[kind], HW_ROLE_CONTROLS,
                          &(hw_roles_options){.seed = 1, .trials = trials}, s->arena);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

const hw_role_result *result_of(const hw_roles *roles, int head, const char *role, const char *step, bool pieces)
{
    for (int i = 0; i < roles->head[head].count; i++) {
        const hw_role_result *r = &roles->head[head].results[i];
        const char *has = hw_place_at(r->test->place)->step;
        if (strcmp(hw_role_name(r->test->role), role) || r->test->pieces != pieces ||
            (step && has && strcmp(has, step)))
            continue;
        return r;
    }
    ck_abort_msg("head %d was not held against %s", head, role);
}

const char *found_roles(const hw_roles *roles, int head)
{
    static char text[512];
    *text = 0;
    for (int i = 0; i < roles->head[head].count; i++) {
        const hw_role_result *r = &roles->head[head].results[i];
        const char *step = hw_place_at(r->test->place)->step;
        if (!r->found) continue;
        size_t size = strlen(text);
        snprintf(text + size, sizeof text - size, "%s%s%s%s%s", size ? " " : "", hw_role_name(r->test->role),
                 r->test->pieces ? "(pieces)" : "", step ? "/" : "", step ? step : "");
    }
    return text;
}
