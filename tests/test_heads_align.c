/* IBM model 1, alignment error rates, intervals, p and Holm against NumPy's and SciPy's figures (tests/fixtures/heads),
 * and links from cross-attention into Pharaoh's format. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_model.h"
#include "support_text.h"

#include <headwise/heads.h>

static hw_arena *arena;
static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
}
static json_t *load(const char *name)
{
    json_error_t error;
    json_t *json = json_load_file(hw_arena_string(arena, "tests/fixtures/heads/%s", name), 0, &error);
    ck_assert_msg(json != NULL, "%s: %s", name, error.text);
    return json;
}

static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static double at(const json_t *list, size_t i) { return json_number_value(json_array_get(list, i)); }

/* ---- IBM model 1 ------------------------------------------------------------------------------------------------- */

/* The fixture's words are ids from 0. */
static hw_ids ids_of(const json_t *list)
{
    int32_t *ids = hw_arena_alloc(arena, json_array_size(list) * sizeof *ids);
    for (size_t i = 0; i < json_array_size(list); i++) ids[i] = (int32_t)at(list, i);
    return (hw_ids){ids, (int64_t)json_array_size(list)};
}

START_TEST(model_1_equals_numpy)
{
    json_t *all = load("ibm1.json");
    const json_t *pairs = json_object_get(all, "pairs"), *t = json_object_get(all, "t"),
                 *links = json_object_get(all, "links");
    hw_corpus *corpus = hw_corpus_new();
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i);
        hw_corpus_add(corpus, ids_of(json_array_get(pair, 0)), ids_of(json_array_get(pair, 1)), (int64_t)i + 1);
    }
    hw_ibm1 *m = hw_ibm1_train(corpus, (int)number(all, "iterations"));
    for (size_t s = 0; s < json_array_size(t); s++)
        for (size_t f = 0; f < json_array_size(json_array_get(t, s)); f++)
            ck_assert_double_eq_tol(hw_ibm1_probability(m, (int32_t)s - 1, (int32_t)f), at(json_array_get(t, s), f),
                                    1e-12);
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        hw_ids source = hw_corpus_source(corpus, (int64_t)i), target = hw_corpus_target(corpus, (int64_t)i);
        int32_t got[8];
        hw_ibm1_align(m, source, target, got);
        for (int64_t j = 0; j < target.count; j++)
            ck_assert_int_eq(got[j], (int)at(json_array_get(links, i), (size_t)j));
    }
    ck_assert_double_eq(hw_ibm1_probability(m, 1000, 1), 0);
    hw_ibm1_align(m, (hw_ids){(int32_t[]){1, 2}, 2}, (hw_ids){(int32_t[]){999}, 1}, (int32_t[1]){0});
    hw_ibm1_free(m);
    hw_corpus_free(corpus);
    json_decref(all);
}
END_TEST

START_TEST(a_word_never_seen_is_not_linked)
{
    hw_corpus *corpus = hw_corpus_new();
    hw_corpus_add(corpus, (hw_ids){(int32_t[]){3, 4}, 2}, (hw_ids){(int32_t[]){5, 6}, 2}, 1);
    hw_ibm1 *m = hw_ibm1_train(corpus, 3);
    int32_t got[2];
    hw_ibm1_align(m, (hw_ids){(int32_t[]){3, 4}, 2}, (hw_ids){(int32_t[]){9, 0}, 2}, got);
    ck_assert_int_eq(got[0], -1);
    ck_assert_int_eq(got[1], -1);
    hw_ibm1_free(m);
    hw_corpus_free(corpus);
}
END_TEST

/* ---- statistics -------------------------------------------------------------------------------------------------- */

static void same_interval(const json_t *want, hw_score_function score)
{
    hw_tally tally;
    const json_t *rows = json_object_get(want, "rows");
    hw_tally_init(&tally, (int)json_array_size(json_array_get(rows, 0)), score, NULL);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        double row[HW_TALLY_WIDTH] = {0};
        for (int k = 0; k < tally.width; k++) row[k] = at(json_array_get(rows, i), (size_t)k);
        hw_tally_add(&tally, row);
    }
    hw_interval x = hw_bootstrap_interval(&tally, (int)number(want, "trials"), (uint64_t)number(want, "seed"));
    ck_assert_double_eq_tol(x.estimate, number(want, "estimate"), 1e-12);
    ck_assert_double_eq_tol(x.low, number(want, "low"), 1e-12);
    ck_assert_double_eq_tol(x.high, number(want, "high"), 1e-12);
    hw_tally_clear(&tally);
}

START_TEST(intervals_equal_numpy)
{
    json_t *all = load("statistics.json");
    same_interval(json_object_get(all, "ratio"), hw_ratio_score);
    same_interval(json_object_get(all, "aer"), hw_aer_score);
    json_decref(all);
}
END_TEST

START_TEST(p_equals_scipy)
{
    json_t *all = load("statistics.json");
    const json_t *cases = json_object_get(all, "paired");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *list = json_object_get(json_array_get(cases, i), "differences");
        double *d = hw_arena_alloc(arena, json_array_size(list) * sizeof *d),
               want = number(json_array_get(cases, i), "p");
        for (size_t k = 0; k < json_array_size(list); k++) d[k] = at(list, k);
        double got = hw_paired_p(d, (int64_t)json_array_size(list));
        ck_assert_msg(fabs(got - want) <= 1e-9 * fmax(want, 1e-300) || fabs(got - want) < 1e-15,
                      "case %zu: %g, want %g", i, got, want);
    }
    json_decref(all);
}
END_TEST

START_TEST(holm_equals_numpy)
{
    json_t *all = load("statistics.json");
    const json_t *cases = json_object_get(all, "holm");
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *p = json_object_get(json_array_get(cases, i), "p"),
                     *want = json_object_get(json_array_get(cases, i), "adjusted");
        double x[32];
        for (size_t k = 0; k < json_array_size(p); k++) x[k] = at(p, k);
        hw_holm(x, (int)json_array_size(p), x);
        for (size_t k = 0; k < json_array_size(p); k++) ck_assert_double_eq_tol(x[k], at(want, k), 1e-12);
    }
    json_decref(all);
}
END_TEST

/* ---- links ------------------------------------------------------------------------------------------------------- */

START_TEST(the_diagonal)
{
    ck_assert_int_eq(hw_diagonal(0, 1, 1), 0);
    for (int32_t j = 0; j < 7; j++) ck_assert_int_eq(hw_diagonal(j, 7, 7), j);
    ck_assert_int_eq(hw_diagonal(0, 4, 2), 0);
    ck_assert_int_eq(hw_diagonal(1, 4, 2), 0);
    ck_assert_int_eq(hw_diagonal(3, 4, 2), 1);
    ck_assert_int_eq(hw_diagonal(0, 1, 5), 2);
    ck_assert_int_eq(hw_diagonal(1, 2, 5), 3);
}
END_TEST

static hw_bundle *bundle_with_data(hw_study_set *set)
{
    hw_error err = {""};
    scratch_text("x.en", "a b c d\n\nb\nc a\n");
    scratch_text("x.fr", "u v w\nu\nw v\nu v w u\n");
    scratch_text("x.align", "0-0 3-2 1p1\n\n0-0 0-1\n0-0 1-1 0p2 1p3\n");
    hw_config *config = tiny_config(arena, "data.source=en;data.target=fr");
    hw_bundle *b = tiny_bundle(arena, config, "a b c d", "u v w");
    const char *directory = hw_arena_string(arena, "%s", scratch_path("."));
    ck_assert_msg(hw_study_set_load(arena, b, directory, "x", set, &err), "%s", err.message);
    return b;
}

/* A file line of its own for pairs with a blank side, and none is skipped in the gold. */
START_TEST(pharaoh_and_error_rate)
{
    hw_study_set set;
    hw_bundle *b = bundle_with_data(&set);
    const int64_t start[] = {0, 3, 5, 9};
    int32_t sources[] = {0, -1, 3, 0, 0, 0, 1, 0, 0};
    hw_linking item = {.sources = sources};
    hw_linkings l = {.set = &set, .start = start, .count = 1, .items = &item};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    hw_linking_write(&l, 0, out);
    fclose(out);
    ck_assert_str_eq(text, "0-0 3-2\n\n0-0 0-1\n0-0 1-1 0-2 0-3\n");
    free(text);
    hw_tally tally;
    hw_linking_tally(&l, 0, &tally);
    ck_assert_int_eq(tally.count, 3);
    /* A 8 links, S 6, of which all are found; P holds one more of them (0-2). */
    ck_assert_double_eq_tol(hw_tally_score(&tally), 1 - (6 + 7) / 14.0, 1e-12);
    hw_tally_clear(&tally);
    hw_bundle_free(b);
}
END_TEST

/* The best head is the selection set's, not the test set's. */
START_TEST(the_best_is_picked_on_the_selection_set)
{
    hw_study_set set;
    hw_bundle *b = bundle_with_data(&set);
    const int64_t start[] = {0, 3, 5, 9};
    int32_t right[] = {0, -1, 3, 0, 0, 0, 1, 0, 0}, nearly[] = {0, -1, -1, 0, 0, 0, 1, 0, 0};
    int32_t wrong[] = {2, 2, 2, -1, -1, 1, 0, 1, 0};
    hw_linking chosen[4] = {{.name = "a", .is_head = true, .step = "fed", .sources = wrong},
                            {.name = "a", .is_head = true, .step = "fed", .norms = true, .sources = nearly},
                            {.name = "m", .step = "fed", .sources = right},
                            {.name = "m", .step = "fed", .norms = true, .sources = right}};
    hw_linking tested[4];
    memcpy(tested, chosen, sizeof tested);
    tested[0].sources = right;
    tested[1].sources = wrong;
    hw_linkings selection = {.set = &set, .start = start, .count = 4, .items = chosen};
    hw_linkings test = {.set = &set, .start = start, .count = 4, .items = tested};
    json_t *result = hw_align_json(&selection, &test, &(hw_linkings){.set = &set, .start = start}, 50, 1);
    const json_t *best = json_object_get(result, "best"), *head = json_array_get(json_object_get(result, "heads"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(best, "measure")), "norms");
    ck_assert_str_eq(json_string_value(json_object_get(best, "name")), "a"); /* the mean is no head, though better */
    ck_assert_double_eq_tol(number(best, "selection_aer"), 1 - 11 / 13.0, 1e-12);
    ck_assert_double_eq_tol(number(best, "aer"), number(head, "aer_norm"), 1e-12);
    ck_assert_double_gt(number(best, "aer"), 0.5);
    ck_assert_double_eq_tol(number(head, "aer"), 1 - 13 / 14.0, 1e-12);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "heads")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "means")), 1);
    json_decref(result);
    hw_bundle_free(b);
}
END_TEST

Suite *test_heads_align(void);
Suite *test_heads_align(void)
{
    Suite *suite = suite_create("heads_align");
    TCase *t = tcase_create("align");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, model_1_equals_numpy);
    tcase_add_test(t, a_word_never_seen_is_not_linked);
    tcase_add_test(t, intervals_equal_numpy);
    tcase_add_test(t, p_equals_scipy);
    tcase_add_test(t, holm_equals_numpy);
    tcase_add_test(t, the_diagonal);
    tcase_add_test(t, pharaoh_and_error_rate);
    tcase_add_test(t, the_best_is_picked_on_the_selection_set);
    suite_add_tcase(suite, t);
    return suite;
}
