/* The detectors of roles on planted attention: what is planted is found with its strength and where it is, random heads
 * are not, and the traps of published code. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "support_heads.h"

static toy_study *toy;
static void begin(void) { toy = toy_study_new(150, 250); }
static void end(void) { toy_study_free(toy); }

/* ---- what heads point to ----------------------------------------------------------------------------------------- */

static const hw_conllu_word *tree(const hw_study_set *set, int side, int64_t pair)
{
    return set->trees[side]->words + set->trees[side]->start[set->pairs[pair].line];
}

static int32_t previous(const hw_study_set *set, int64_t pair, int32_t q)
{
    (void)set, (void)pair;
    return q - 1;
}

static int32_t next(const hw_study_set *set, int64_t pair, int32_t q)
{
    return q + 1 < set->pairs[pair].words[HW_SOURCE].count ? q + 1 : -1;
}

static bool has_form(const hw_conllu_word *word, const char *form) { return !strcmp(word->form, form); }

static int32_t bracket(const hw_study_set *set, int64_t pair, int32_t q)
{
    const hw_conllu_word *word = &tree(set, HW_SOURCE, pair)[q];
    return has_form(word, ")") ? word->match : -1;
}

static int32_t french_quote(const hw_study_set *set, int64_t pair, int32_t q)
{
    const hw_conllu_word *word = &tree(set, HW_TARGET, pair)[q];
    return has_form(word, "»") ? word->match : -1;
}

/* Of a noun with several adjectives the first. */
static int32_t adjective(const hw_study_set *set, int64_t pair, int32_t q)
{
    const hw_conllu_word *words = tree(set, HW_SOURCE, pair);
    for (int32_t i = 0; i < set->pairs[pair].words[HW_SOURCE].count; i++)
        if (words[i].head == q && !strcmp(words[i].relation, "amod")) return i;
    return -1;
}

static int32_t noun(const hw_study_set *set, int64_t pair, int32_t q)
{
    const hw_conllu_word *word = &tree(set, HW_SOURCE, pair)[q];
    return !strcmp(word->relation, "amod") ? word->head : -1;
}

static int32_t aligned(const hw_study_set *set, int64_t pair, int32_t q)
{
    const hw_alignments *links = set->links;
    for (int64_t i = links->start[set->pairs[pair].line]; i < links->start[set->pairs[pair].line + 1]; i++)
        if (links->links[i].target == q && links->links[i].sure) return links->links[i].source;
    return -1;
}

static int32_t first_word(const hw_study_set *set, int64_t pair, int32_t q)
{
    (void)set, (void)pair, (void)q;
    return 0;
}

/* ---- planted heads ----------------------------------------------------------------------------------------------- */

static void near(const char *what, double got, double want, double by)
{
    ck_assert_msg(fabs(got - want) <= by, "%s: %g, want %g", what, got, want);
}

START_TEST(found_with_their_strength)
{
    static const planted heads[] = {
        {"previous", previous, .row = 0}, {"bracket", bracket, .row = 0},      {"adjective", adjective, .row = 0},
        {"uniform", NULL, .noise = -1},   {"mixture", previous, .share = 0.7}, {"noise", NULL, .share = 0},
        {"noun", noun, .row = 0},         {"first", first_word, .row = 0},
    };
    enum { PREVIOUS, BRACKET, ADJECTIVE, UNIFORM, MIXTURE, NOISE, NOUN, FIRST, COUNT };
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, COUNT, 10, 200);

    ck_assert_str_eq(found_roles(roles, PREVIOUS), "previous previous(pieces)");
    ck_assert_double_eq(result_of(roles, PREVIOUS, "previous", NULL, false)->score, 1);
    ck_assert_str_eq(result_of(roles, PREVIOUS, "previous", NULL, true)->tier, "strict");
    ck_assert_double_lt(result_of(roles, PREVIOUS, "next", NULL, false)->score,
                        0.05); /* what the first words happen to do */

    ck_assert_str_eq(found_roles(roles, BRACKET), "bracket");
    const hw_role_result *r = result_of(roles, BRACKET, "bracket", NULL, false);
    ck_assert_double_eq(r->score, 1);
    ck_assert_double_lt(r->p, 1e-6);
    ck_assert_double_lt(r->baseline, 0.6);
    ck_assert_int_lt(r->offset, -2);

    ck_assert_str_eq(found_roles(roles, ADJECTIVE), "amod");
    ck_assert_double_eq(result_of(roles, ADJECTIVE, "amod", NULL, false)->score, 1);
    ck_assert_double_lt(result_of(roles, ADJECTIVE, "amod_inv", NULL, false)->score, 0.2);
    ck_assert_str_eq(found_roles(roles, NOUN), "amod_inv");
    ck_assert_double_eq(result_of(roles, NOUN, "amod_inv", NULL, false)->score, 1);

    ck_assert_str_eq(found_roles(roles, UNIFORM), "broad");
    near("a uniform head's entropy", result_of(roles, UNIFORM, "broad", NULL, false)->score, 1, 1e-6);

    ck_assert_str_eq(found_roles(roles, MIXTURE), "previous previous(pieces)");
    r = result_of(roles, MIXTURE, "previous", NULL, false);
    near("a mixture of 70 %", r->score, 0.7 + 0.3 / 13, 0.03);
    ck_assert_str_eq(r->tier, r->score >= 0.7 ? "mostly" : "partly");
    ck_assert_double_lt(r->low, r->score);
    ck_assert_double_gt(r->high, r->score);
    near("its interval", r->high - r->low, 4 * sqrt(0.7 * 0.3 / r->cases), 0.02);

    ck_assert_str_eq(found_roles(roles, NOISE), "");
    ck_assert_str_eq(found_roles(roles, FIRST), "first");
}
END_TEST

/* A word is fed one row after it is predicted. */
START_TEST(fed_and_predicted_are_told_apart)
{
    static const planted heads[] = {{"fed", french_quote, .row = 1}, {"predicted", french_quote, .row = 0}};
    const hw_roles *roles = planted_roles(toy, HW_DECODER_SELF, heads, 2, 20, 0);
    static const char *const steps[] = {"fed", "predicted"};
    for (int h = 0; h < 2; h++) {
        ck_assert_double_eq(result_of(roles, h, "quote", steps[h], false)->score, 1);
        ck_assert_double_lt(result_of(roles, h, "quote", steps[1 - h], false)->score, 0.5);
        ck_assert(!result_of(roles, h, "quote", steps[1 - h], false)->found);
    }
    ck_assert_str_eq(found_roles(roles, 0), "quote/fed");
    ck_assert_str_eq(found_roles(roles, 1), "quote/predicted");
}
END_TEST

/* Source and target differ in length here, so a matrix read the wrong way round would show. */
START_TEST(cross_attention_is_rectangular)
{
    static const planted heads[] = {
        {"predicted", aligned, .row = 0}, {"fed", aligned, .row = 1}, {"noise", NULL, .row = 0}};
    const hw_roles *roles = planted_roles(toy, HW_CROSS, heads, 3, 30, 0);
    const hw_role_result *r = result_of(roles, 0, "aligned", "predicted", false);
    ck_assert_double_gt(r->score, 0.9);
    ck_assert_double_gt(r->score, r->baseline + 0.1);
    double size = 0; /* |A| + |S| */
    for (int64_t i = 0; i < toy->test.count; i++) {
        const hw_alignments *links = toy->test.links;
        int64_t line = toy->test.pairs[i].line;
        size += toy->test.pairs[i].words[HW_TARGET].count;
        for (int64_t k = links->start[line]; k < links->start[line + 1]; k++) size += links->links[k].sure;
    }
    ck_assert_double_eq(r->cases, size);
    ck_assert_str_eq(found_roles(roles, 0), "aligned/predicted");
    ck_assert_double_lt(result_of(roles, 0, "aligned", "fed", false)->score, 0.5);
    ck_assert_double_eq_tol(result_of(roles, 1, "aligned", "fed", false)->score, r->score, 0.03);
    ck_assert_str_eq(found_roles(roles, 2), "");
}
END_TEST

/* </s> is no word: a head that looks there most aligns all the same. What it gives to </s> hardly arrives: it is
 * parked. */
START_TEST(parked_heads)
{
    static const planted heads[] = {{"aligned", aligned, .row = 0}, {"parked", aligned, .row = 0, .parked = 0.6}};
    const hw_roles *roles = planted_roles(toy, HW_CROSS, heads, 2, 30, 0);
    double score = result_of(roles, 0, "aligned", "predicted", false)->score;
    ck_assert_double_gt(score, 0.9);
    ck_assert_double_eq_tol(result_of(roles, 1, "aligned", "predicted", false)->score, score, 0.03);
    ck_assert_str_eq(found_roles(roles, 1), "last/fed aligned/predicted");
    const hw_role_result *last = result_of(roles, 1, "last", "fed", false);
    ck_assert_double_eq(last->score, 1);
    ck_assert_double_eq_tol(last->norm_ratio, 0.06 / 0.46 / 0.6, 0.02);
    ck_assert(isnan(result_of(roles, 1, "aligned", "fed", false)->norm_ratio));
}
END_TEST

START_TEST(previous_and_next_are_not_swapped)
{
    static const planted heads[] = {{"previous", previous, .row = 0}, {"next", next, .row = 0}};
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, 2, 40, 0);
    ck_assert_str_eq(found_roles(roles, 0), "previous previous(pieces)");
    ck_assert_str_eq(found_roles(roles, 1), "next next(pieces)");
}
END_TEST

/* The first word has no previous one, the last no next one, and </s> asks nothing. */
START_TEST(queries_without_a_target_are_left_out)
{
    static const planted heads[] = {{"previous", previous, .row = 0}};
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, 1, 50, 0);
    double words = 0;
    for (int64_t i = 0; i < toy->test.count; i++) words += toy->test.pairs[i].words[HW_SOURCE].count;
    ck_assert_double_eq(result_of(roles, 0, "previous", NULL, false)->cases, words - (double)toy->test.count);
    ck_assert_double_eq(result_of(roles, 0, "next", NULL, false)->cases, words - (double)toy->test.count);
    ck_assert_double_eq(result_of(roles, 0, "self", NULL, false)->cases, words);
    ck_assert_double_eq(result_of(roles, 0, "broad", NULL, false)->cases, words);
}
END_TEST

/* Only the pieces of spelled names count in `pieces`, each with the one before it in the same name. */
static int32_t previous_piece(const hw_study_set *set, int64_t pair, int32_t q)
{
    return q && set->pairs[pair].words[HW_SOURCE].words[q - 1].goes_on ? q - 1 : -1;
}

START_TEST(pieces_of_names)
{
    static const planted heads[] = {{"piece", previous_piece, .row = 0}};
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, 1, 70, 0);
    double joints = 0;
    for (int64_t i = 0; i < toy->test.count; i++)
        for (int32_t q = 0; q < toy->test.pairs[i].words[HW_SOURCE].count; q++)
            joints += previous_piece(&toy->test, i, q) >= 0;
    ck_assert_double_gt(joints, 20);
    ck_assert_double_eq(result_of(roles, 0, "previous", NULL, true)->cases, joints);
    ck_assert_double_eq(result_of(roles, 0, "previous", NULL, true)->score, 1);
    ck_assert_double_lt(result_of(roles, 0, "previous", NULL, false)->score, 0.3);
    ck_assert_double_eq(result_of(roles, 0, "next", NULL, true)->cases, joints);
    ck_assert_double_lt(result_of(roles, 0, "next", NULL, true)->score, 0.3);
    ck_assert_str_eq(found_roles(roles, 0), "previous(pieces)");
}
END_TEST

/* The decoder does not see what comes: a noun's case are its adjectives before it, and a determiner has none. */
START_TEST(hidden_targets_are_left_out)
{
    static const planted heads[] = {{"noise", NULL, .row = 0}};
    const hw_roles *roles = planted_roles(toy, HW_DECODER_SELF, heads, 1, 80, 0);
    double nouns = 0;
    for (int64_t i = 0; i < toy->test.count; i++) {
        const hw_conllu_word *words = tree(&toy->test, HW_TARGET, i);
        for (int32_t q = 0; q < toy->test.pairs[i].words[HW_TARGET].count; q++) {
            bool has = false;
            for (int32_t a = 0; a < q; a++) has |= words[a].head == q && !strcmp(words[a].relation, "amod");
            nouns += has;
        }
    }
    ck_assert_double_gt(nouns, 20);
    ck_assert_double_eq(result_of(roles, 0, "amod", "fed", false)->cases, nouns);
    ck_assert_double_eq(result_of(roles, 0, "amod", "predicted", false)->cases, nouns);
    for (int i = 0; i < roles->head[0].count; i++) {
        const char *role = hw_role_name(roles->head[0].results[i].test->role);
        const char *step = hw_place_at(roles->head[0].results[i].test->place)->step;
        ck_assert(strcmp(role, "next") && strcmp(role, "det_inv"));
        ck_assert(strcmp(role, "self") || !strcmp(step, "fed"));
    }
}
END_TEST

/* A thousand random heads, judged as models of twenty heads, some sharp, some flat. */
START_TEST(random_heads_have_no_role)
{
    enum { HEADS = 1000, MODEL = 20 };
    toy_study *small = toy_study_new(40, 60);
    planted heads[MODEL];
    int labelled = 0;
    for (int m = 0; m < HEADS / MODEL; m++) {
        for (int h = 0; h < MODEL; h++) heads[h] = (planted){.noise = 0.5 + 0.2 * h};
        const hw_roles *roles = planted_roles(small, HW_ENCODER_SELF, heads, MODEL, 1000 + 10 * (uint64_t)m, 0);
        for (int h = 0; h < MODEL; h++) labelled += *found_roles(roles, h) != 0;
    }
    toy_study_free(small);
    ck_assert_msg(labelled <= HEADS / 20, "%d of %d random heads have a role", labelled, HEADS);
}
END_TEST

/* ---- baselines --------------------------------------------------------------------------------------------------- */

static int test_of(const char *role, int place)
{
    int t = 0;
    while (strcmp(hw_role_name(toy->tests[t].role), role) || toy->tests[t].place != place || toy->tests[t].pieces) t++;
    return t;
}

/* The share that the best fixed offset gets, counted here by hand. */
static void check_offset(const char *role, int place, int side,
                         int32_t (*target)(const hw_conllu_word *words, int32_t q))
{
    int t = test_of(role, place), hits[64] = {0}, cases = 0, best = 0;
    int heads[HW_ATTENTION_KINDS] = {1, 1, 1};
    const hw_evidence *e = hw_evidence_new(toy->tests, toy->count, &toy->selection, heads, NULL, toy->arena);
    for (int64_t i = 0; i < toy->selection.count; i++) {
        const hw_conllu_word *words = tree(&toy->selection, side, i);
        for (int32_t q = 0; q < toy->selection.pairs[i].words[side].count; q++)
            if (target(words, q) >= 0) hits[32 + target(words, q) - q]++, cases++;
    }
    for (int i = 1; i < 64; i++)
        if (hits[i] > hits[best]) best = i;
    double guess = 0, size = 0;
    for (int64_t i = 0; i < toy->selection.count; i++) guess += (double)e->guess[t][i], size += (double)e->size[t][i];
    ck_assert_int_eq(e->offset[t], best - 32);
    ck_assert_double_eq(guess, hits[best]);
    ck_assert_double_eq(size, cases);
}

static int32_t determined(const hw_conllu_word *words, int32_t q)
{
    return !strcmp(words[q].relation, "det") ? words[q].head : -1;
}

static int32_t opened(const hw_conllu_word *words, int32_t q) { return has_form(&words[q], "»") ? words[q].match : -1; }

START_TEST(the_best_fixed_offset)
{
    check_offset("det_inv", HW_PLACE_ENCODER, HW_SOURCE, determined);
    check_offset("quote", HW_PLACE_DECODER_FED, HW_TARGET, opened);
    check_offset("quote", HW_PLACE_DECODER_PREDICTED, HW_TARGET, opened);
}
END_TEST

/* On the test set it is the selection set's. */
START_TEST(the_offset_is_not_chosen_where_it_is_scored)
{
    int heads[HW_ATTENTION_KINDS] = {1, 1, 1}, t = test_of("det_inv", HW_PLACE_ENCODER);
    int32_t *offsets = hw_arena_calloc(toy->arena, (size_t)toy->count, sizeof *offsets);
    offsets[t] = 7;
    const hw_evidence *e = hw_evidence_new(toy->tests, toy->count, &toy->test, heads, offsets, toy->arena);
    double guess = 0, want = 0;
    for (int64_t i = 0; i < toy->test.count; i++) {
        const hw_conllu_word *words = tree(&toy->test, HW_SOURCE, i);
        guess += (double)e->guess[t][i];
        for (int32_t q = 0; q < toy->test.pairs[i].words[HW_SOURCE].count; q++) want += determined(words, q) == q + 7;
    }
    ck_assert_int_eq(e->offset[t], 7);
    ck_assert_double_eq(guess, want);
}
END_TEST

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static hw_evidence *blank_evidence(const hw_study_set *set, int encoder_heads)
{
    int heads[HW_ATTENTION_KINDS] = {encoder_heads, 0, 0};
    return hw_evidence_new(toy->tests, toy->count, set, heads, NULL, toy->arena);
}

/* A head that achieves this part of everything in one test. */
static void achieve(hw_evidence *e, int test, int head, double part)
{
    for (int64_t i = 0; i < e->set->count; i++)
        e->got[test][head * e->set->count + i] = (float)(part * (double)e->size[test][i]);
}

/* The best of all untrained heads is the control; it must be exceeded by the margin, and p is against the better of it
 * and the baseline. */
START_TEST(controls)
{
    static const struct {
        const char *role;
        double control, score;
        bool found;
    } cases[] = {
        {"previous", 0.5, 0.62, true},  {"previous", 0.55, 0.62, false}, {"previous", 0.2, 0.49, false},
        {"previous", 0.9, 0.94, false}, {"previous", 0.9, 0.96, true},   {"det_inv", 0.2, 0.6, true},
        {"det_inv", 0.55, 0.6, false},  {"det_inv", 0.1, 0.3, false},
    };
    const hw_head head = {.kind = HW_ENCODER_SELF, .name = "encoder.0.self.0"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int t = test_of(cases[i].role, HW_PLACE_ENCODER);
        hw_evidence *selection = blank_evidence(&toy->selection, 1), *test = blank_evidence(&toy->test, 1);
        hw_evidence *copies[2] = {blank_evidence(&toy->test, 3), blank_evidence(&toy->test, 3)};
        achieve(selection, t, 0, cases[i].score);
        achieve(test, t, 0, cases[i].score);
        achieve(copies[0], t, 0, 0.05);
        achieve(copies[1], t, 1, cases[i].control);
        achieve(copies[1], t, 2, 0.01);
        const hw_roles *roles =
            hw_roles_judge(&head, 1, selection, test, copies, 2, &(hw_roles_options){0}, toy->arena);
        const hw_role_result *r = result_of(roles, 0, cases[i].role, NULL, false);
        near("control", r->control, cases[i].control, 1e-6);
        ck_assert_msg(r->found == cases[i].found, "%s at %g with control %g", cases[i].role, r->score, r->control);
        double *differences = hw_arena_alloc(toy->arena, (size_t)toy->test.count * sizeof *differences);
        bool own = r->baseline > r->control;
        for (int64_t k = 0; k < toy->test.count; k++) {
            double other = own ? (double)test->guess[t][k] : (double)copies[1]->got[t][toy->test.count + k];
            differences[k] = (double)test->got[t][k] - other;
        }
        ck_assert_double_eq(r->p_raw, hw_paired_p(differences, toy->test.count));
    }
}
END_TEST

/* On the target side most adjectives stand at one place, so that even a head which finds all of them has proved
 * nothing; on the source side they do not. */
START_TEST(a_baseline_that_is_too_strong)
{
    static const struct {
        hw_attention_kind kind;
        int place;
        bool too_strong;
    } cases[] = {{HW_ENCODER_SELF, HW_PLACE_ENCODER, false}, {HW_DECODER_SELF, HW_PLACE_DECODER_FED, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int t = test_of("amod_inv", cases[i].place), heads[HW_ATTENTION_KINDS] = {0};
        heads[cases[i].kind] = 1;
        const hw_head head = {.kind = cases[i].kind, .name = "head"};
        hw_evidence *e[2];
        const hw_study_set *sets[2] = {&toy->selection, &toy->test};
        for (int s = 0; s < 2; s++) {
            e[s] = hw_evidence_new(toy->tests, toy->count, sets[s], heads, NULL, toy->arena);
            achieve(e[s], t, 0, 1);
        }
        hw_roles *roles = hw_roles_judge(&head, 1, e[0], e[1], NULL, 0, &(hw_roles_options){0}, toy->arena);
        const hw_role_result *r = result_of(roles, 0, "amod_inv", hw_place_at(cases[i].place)->step, false);
        ck_assert_double_eq(r->score, 1);
        ck_assert_double_lt(r->p, 0.05);
        ck_assert(r->too_strong == cases[i].too_strong && r->too_strong == (r->baseline > 0.6));
        ck_assert(r->found == !cases[i].too_strong);
    }
}
END_TEST

START_TEST(few_sentences_prove_nothing)
{
    static const planted heads[] = {{"previous", previous, .row = 0}};
    toy->test.count = 3;
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, 1, 90, 0);
    const hw_role_result *r = result_of(roles, 0, "previous", NULL, false);
    ck_assert_double_eq(r->score, 1);
    ck_assert_double_eq_tol(r->p_raw, 0.25, 1e-12); /* 2 of the 8 patterns of signs */
    ck_assert(!r->found);
}
END_TEST

START_TEST(p_is_corrected_over_the_model)
{
    static const planted heads[] = {
        {"noise", NULL, .row = 0}, {"some", previous, .share = 0.1}, {"more", next, .share = 0.2}};
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, 3, 95, 0);
    double p[256];
    int count = 0, below = 0;
    for (int h = 0; h < 3; h++)
        for (int i = 0; i < roles->head[h].count; i++) p[count++] = roles->head[h].results[i].p_raw;
    ck_assert_int_eq(count, roles->tests);
    hw_holm(p, count, p);
    count = 0;
    for (int h = 0; h < 3; h++)
        for (int i = 0; i < roles->head[h].count; i++) {
            ck_assert_double_eq(roles->head[h].results[i].p, p[count++]);
            below += roles->head[h].results[i].p_raw < roles->head[h].results[i].p;
        }
    ck_assert_int_gt(below, 0);
}
END_TEST

/* A mean that is a mean: every case counts alike, not every sentence. */
START_TEST(scores_are_over_cases)
{
    static const planted heads[] = {{"half", previous, .share = 0.5}};
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, 1, 60, 0);
    const hw_evidence *e = planted_evidence(toy, &toy->test, NULL, HW_ENCODER_SELF, heads, 1, 61);
    double got = 0, size = 0;
    for (int64_t i = 0; i < toy->test.count; i++) got += (double)e->got[0][i], size += (double)e->size[0][i];
    ck_assert_str_eq(hw_role_name(e->tests[0].role), "previous");
    ck_assert_double_eq_tol(result_of(roles, 0, "previous", NULL, false)->score, got / size, 1e-12);
}
END_TEST

/* What the report shows of a role: where the head achieved and lost most, by their lines in the files. */
START_TEST(examples)
{
    static const planted heads[] = {{"half", previous, .share = 0.6}};
    const hw_roles *roles = planted_roles(toy, HW_ENCODER_SELF, heads, 1, 60, 0);
    const hw_evidence *e = planted_evidence(toy, &toy->test, NULL, HW_ENCODER_SELF, heads, 1, 61);
    const hw_role_result *r = result_of(roles, 0, "previous", NULL, false);
    for (int64_t i = 0; i < toy->test.count; i++) {
        double got = (double)e->got[0][i], size = (double)e->size[0][i];
        int64_t strong = r->strongest[0], weak = r->failing[0];
        if (size == 0) continue;
        ck_assert_double_le(got * got / size,
                            (double)(e->got[0][strong] * e->got[0][strong] / e->size[0][strong]) + 1e-6);
        ck_assert_double_le(size - got, (double)(e->size[0][weak] - e->got[0][weak]) + 1e-6);
    }
    hw_study_pair *pairs = hw_arena_copy(toy->arena, toy->test.pairs, (size_t)toy->test.count * sizeof *pairs);
    for (int64_t i = 0; i < toy->test.count; i++) pairs[i].line = 2 * i + 10;
    hw_study_set set = toy->test;
    set.pairs = pairs;
    json_t *all = hw_roles_json(roles, &set);
    const json_t *head = json_array_get(json_object_get(all, "heads"), 0);
    const json_t *first = json_array_get(json_object_get(head, "roles"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "role")), "previous");
    ck_assert_str_eq(json_string_value(json_object_get(first, "tier")), r->tier);
    const json_t *lines = json_object_get(first, "failing");
    ck_assert_uint_eq(json_array_size(lines), HW_ROLE_EXAMPLES);
    ck_assert_int_eq(json_integer_value(json_array_get(lines, 1)), 2 * r->failing[1] + 11);
    json_decref(all);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, found_with_their_strength);
    tcase_add_test(t, fed_and_predicted_are_told_apart);
    tcase_add_test(t, cross_attention_is_rectangular);
    tcase_add_test(t, parked_heads);
    tcase_add_test(t, previous_and_next_are_not_swapped);
    tcase_add_test(t, queries_without_a_target_are_left_out);
    tcase_add_test(t, pieces_of_names);
    tcase_add_test(t, hidden_targets_are_left_out);
    tcase_add_test(t, random_heads_have_no_role);
    tcase_add_test(t, the_best_fixed_offset);
    tcase_add_test(t, the_offset_is_not_chosen_where_it_is_scored);
    tcase_add_test(t, controls);
    tcase_add_test(t, a_baseline_that_is_too_strong);
    tcase_add_test(t, few_sentences_prove_nothing);
    tcase_add_test(t, p_is_corrected_over_the_model);
    tcase_add_test(t, scores_are_over_cases);
    tcase_add_test(t, examples);
}

Suite *test_heads_roles(void);
Suite *test_heads_roles(void)
{
    Suite *suite = suite_create("heads_roles");
    TCase *t = tcase_create("roles");
    add(t);
    suite_add_tcase(suite, t);
    return suite;
}
