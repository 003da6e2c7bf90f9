/* Layer 10: how different heads are. The measures are held against NumPy's and SciPy's figures
 * (scripts/make_diversity_fixtures.py), the study of a network against what the attention op gives. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_heads.h"

Suite *test_heads_diversity(void);

static const json_t *fixtures(const char *section)
{
    static json_t *all;
    if (!all) all = json_load_file("tests/fixtures/heads/diversity.json", 0, NULL);
    ck_assert_ptr_nonnull(all);
    return json_object_get(all, section);
}

static double at(const json_t *matrix, int i, int j)
{
    return json_number_value(json_array_get(json_array_get(matrix, (size_t)i), (size_t)j));
}

static int fill(const json_t *matrix, double *out, int cols)
{
    int rows = (int)json_array_size(matrix);
    for (int i = 0; i < rows * cols; i++) out[i] = at(matrix, i / cols, i % cols);
    return rows;
}

/* ---- against NumPy and SciPy ------------------------------------------------------------------------------------- */

START_TEST(jensen_shannon)
{
    const json_t *f = fixtures("distances"), *matrix = json_object_get(f, "distances");
    double rows[16 * 4];
    int n = fill(json_object_get(f, "rows"), rows, 4);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            ck_assert_double_eq_tol(hw_js_distance(rows + 4 * i, rows + 4 * j, 4), at(matrix, i, j), 1e-6);
    ck_assert_double_eq_tol(hw_js_distance(rows, rows + 4, 4), 1, 1e-12); /* two words apart */
}
END_TEST

START_TEST(cka_and_effective_number)
{
    const json_t *f = fixtures("cka");
    double rows[64 * 15], matrix[25];
    int count = fill(json_object_get(f, "rows"), rows, 15);
    hw_cka *c = hw_cka_new(5, 3);
    hw_cka_add(c, rows, 7);
    hw_cka_add(c, rows + 7 * 15, count - 7); /* in parts as at once */
    hw_cka_matrix(c, matrix);
    for (int i = 0; i < 25; i++) ck_assert_double_eq_tol(matrix[i], at(json_object_get(f, "cka"), i / 5, i % 5), 1e-6);
    ck_assert_double_eq_tol(matrix[1], 1, 1e-9); /* rotated, scaled, shifted */
    ck_assert_double_eq_tol(hw_effective_number(matrix, 5), json_number_value(json_object_get(f, "effective")), 1e-6);
    hw_cka_free(c);
}
END_TEST

START_TEST(effective_number_of_known_similarities)
{
    static const double alike[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, apart[] = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                        two[] = {1, 1, 0, 1, 1, 0, 0, 0, 1}, unknown[] = {1, 0, 0, NAN};
    ck_assert_double_eq_tol(hw_effective_number(alike, 3), 1, 1e-9);
    ck_assert_double_eq_tol(hw_effective_number(apart, 3), 3, 1e-9);
    ck_assert_double_eq_tol(hw_effective_number(two, 3), 3 / pow(2, 2.0 / 3), 1e-9);
    ck_assert(isnan(hw_effective_number(unknown, 2)));
}
END_TEST

START_TEST(classical_scaling)
{
    const json_t *f = fixtures("scaling");
    double distances[49], places[7][2];
    int n = fill(json_object_get(f, "distances"), distances, 7);
    double shown = hw_classical_scaling(distances, n, places);
    for (int i = 0; i < 14; i++)
        ck_assert_double_eq_tol(places[i / 2][i % 2], at(json_object_get(f, "places"), i / 2, i % 2), 1e-6);
    ck_assert_double_eq_tol(shown, json_number_value(json_object_get(f, "shown")), 1e-6);
    double one[1][2], none[1] = {0};
    ck_assert(isnan(hw_classical_scaling(none, 1, one)));
    ck_assert_double_eq(one[0][0], 0);
}
END_TEST

/* ---- a network --------------------------------------------------------------------------------------------------- */

/* The toy's words, seen by a network with drawn weights. */
static toy_study *network_new(int64_t pairs)
{
    toy_study *s = toy_study_new(5, pairs);
    hw_parameters_initialise(s->bundle->network->parameters, 3);
    hw_parameters_pack(s->bundle->network->parameters);
    return s;
}

static hw_diversity *study_with(toy_study *s, int threads)
{
    hw_threads_set(threads);
    hw_diversity *d = hw_diversity_study(s->bundle, &s->test, NULL, NULL, s->arena);
    hw_threads_set(0);
    return d;
}

/* The measures of training, on the same network and pairs, as ops: the mean over rows and attentions. */
static double by_ops(const toy_study *s, int kind)
{
    const hw_transformer *m = s->bundle->network;
    hw_config *c = hw_config_new(s->arena);
    c->training.head_diversity.kind = kind;
    hw_tape *t = hw_tape_new();
    double sum = 0;
    int64_t rows[2] = {0, 0};
    hw_recorded *recorded = hw_arena_calloc(s->arena, (size_t)m->attentions, sizeof *recorded);
    for (int64_t i = 0; i < s->test.count; i++)
        for (int k = 0; k < 2; k++) rows[k] += s->test.pairs[i].words[k].ids.count + 1;
    for (int64_t i = 0; i < s->test.count; i++) {
        hw_tape_reset(t, HW_INFERENCE);
        hw_batch *b = hw_batch_new(s->arena, 1, &s->test.pairs[i].words[HW_SOURCE].ids,
                                   &s->test.pairs[i].words[HW_TARGET].ids, &(int64_t){1});
        hw_recorder recorder = {.weights = true, .entries = recorded};
        hw_pass pass = {.tape = t, .recorder = &recorder};
        hw_token_rows source = {.rows = b->source_rows, .ids = b->source_ids, .segments = b->source};
        hw_token_rows target = {.rows = b->target_rows, .ids = b->target_in, .segments = b->target};
        hw_transformer_loss(&pass, m, &source, &target, b->target_out, 0, 1, NULL, NULL);
        sum += (double)hw_diversity_term(t, m, recorded, c, rows[HW_SOURCE], rows[HW_TARGET])->data[0];
    }
    hw_tape_free(t);
    return sum;
}

START_TEST(the_study_measures_what_training_lowers)
{
    static const struct {
        int kind;
        const char *key;
    } kinds[] = {{HW_DIVERSITY_OUTPUT, "output"},
                 {HW_DIVERSITY_SUBSPACE, "subspace"},
                 {HW_DIVERSITY_POSITION, "position"},
                 {HW_DIVERSITY_ORTHOGONAL, "orthogonal"}};
    toy_study *s = network_new(150); /* more than one slice */
    json_t *result = hw_diversity_json(study_with(s, 2), s->bundle->network);
    const json_t *overall = json_object_get(result, "overall");
    for (int i = 0; i < 4; i++) {
        double is = json_number_value(json_object_get(overall, kinds[i].key)), should = by_ops(s, kinds[i].kind);
        ck_assert_msg(fabs(is - should) < 1e-5 * fmax(1, fabs(should)), "%s: %.9g, by ops %.9g", kinds[i].key, is,
                      should);
    }
    json_decref(result);
    toy_study_free(s);
}
END_TEST

START_TEST(threads_change_no_digit)
{
    toy_study *s = network_new(140);
    json_t *one = hw_diversity_json(study_with(s, 1), s->bundle->network);
    json_t *three = hw_diversity_json(study_with(s, 3), s->bundle->network);
    ck_assert(json_equal(one, three));
    json_decref(one);
    json_decref(three);
    toy_study_free(s);
}
END_TEST

Suite *test_heads_diversity(void)
{
    Suite *s = suite_create("heads_diversity");
    TCase *tc = tcase_create("heads_diversity");
    tcase_add_test(tc, jensen_shannon);
    tcase_add_test(tc, cka_and_effective_number);
    tcase_add_test(tc, effective_number_of_known_similarities);
    tcase_add_test(tc, classical_scaling);
    tcase_add_test(tc, the_study_measures_what_training_lowers);
    tcase_add_test(tc, threads_change_no_digit);
    suite_add_tcase(s, tc);
    return s;
}
