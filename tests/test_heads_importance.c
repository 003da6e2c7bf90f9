/* Importance: gradients of gates against finite differences and against plain sums; known heads; Spearman's rank
 * correlation against SciPy's figures; and headwise heads importance. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_model.h"
#include "support_wired.h"

#include <headwise/heads.h>

enum { SENTENCES = 12 };

static hw_arena *arena;
static hw_bundle *bundle;
static hw_study_set set;

/* A network with random weights, or the wired one. */
static void begin(bool wired)
{
    hw_error err = {""};
    scratch_begin_in_memory();
    arena = scratch_arena();
    bundle = wired_bundle(arena, scratch_path("."), SENTENCES);
    ck_assert_msg(hw_study_set_load(arena, bundle, bundle->config->data.dir, "test", &set, &err), "%s", err.message);
    if (wired) return;
    hw_bundle_free(bundle);
    bundle = tiny_bundle(arena, tiny_config(arena, "text.shared_vocabulary=true;model.activation=gelu"),
                         "a b c d e f .", NULL);
}

static void begin_random(void) { begin(false); }
static void begin_wired(void) { begin(true); }

static void end(void)
{
    hw_bundle_free(bundle);
    scratch_end();
}

static const hw_gate_gradients *gradients(const hw_head_setting *settings)
{
    hw_runner *runner = hw_runner_new(bundle->network);
    hw_runner_settings(runner, settings);
    const hw_gate_gradients *g = hw_gate_gradients_of(runner, bundle->network, &set, arena);
    hw_runner_free(runner);
    return g;
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* -log p of every pair's target with one gate at this place. */
static void losses(hw_head_changes *changes, const hw_head *head, double gate, double out[SENTENCES])
{
    hw_meter *meter = hw_meter_new(bundle, &set, NULL);
    hw_quality q;
    double kept = (double)changes->gates[head->attention][head->head];
    changes->gates[head->attention][head->head] = (hw_real)gate;
    changes->settings[head->attention].gate = changes->gates[head->attention];
    hw_meter_measure(meter, changes->settings, &q);
    for (int i = 0; i < SENTENCES; i++) out[i] = q.loss.rows[2 * i];
    changes->gates[head->attention][head->head] = (hw_real)kept;
    hw_quality_clear(&q);
    hw_meter_free(meter);
}

/* With all gates at 1 and, as pruning needs it, with one at 0. */
static void compare_with_differences(bool with_a_closed_gate)
{
    bool exact = sizeof(hw_real) == sizeof(double);
    double h = exact ? 1e-4 : 4e-3, tolerance = exact ? 1e-6 : 2e-2, at[4][SENTENCES];
    hw_head_changes *changes = hw_head_changes_new(bundle->network, NULL, arena);
    if (with_a_closed_gate) hw_head_changes_add(changes, 0, 1, HW_ABLATE_ZERO);
    const hw_gate_gradients *g = gradients(changes->settings);
    ck_assert_int_eq(g->count, 6 * 2);
    double largest = 0;
    for (int k = 0; k < g->count; k++) {
        const hw_head *head = &g->heads[k];
        double gate = (double)changes->gates[head->attention][head->head];
        static const double steps[] = {-2, -1, 1, 2};
        for (int s = 0; s < 4; s++) losses(changes, head, gate + steps[s] * h, at[s]);
        for (int i = 0; i < SENTENCES; i++) {
            double want = (at[0][i] - 8 * at[1][i] + 8 * at[2][i] - at[3][i]) / (12 * h);
            double got = g->net[k * SENTENCES + i];
            ck_assert_msg(fabs(got - want) <= tolerance * fmax(1, fabs(want)), "%s, pair %d: %.9g, want %.9g",
                          head->name, i, got, want);
            ck_assert_double_ge(g->size[k * SENTENCES + i], fabs(got) - 1e-9);
            largest = fmax(largest, fabs(want));
        }
    }
    ck_assert_double_gt(largest, 0.05);
}

START_TEST(gradients_are_differences) { compare_with_differences(_i); }
END_TEST

typedef struct recorded {
    double *rows[6]; /* [attentions] -> gradients of the first pair, [rows][2] */
} recorded;

static void record(int i, const hw_visit *v, void *argument)
{
    recorded *r = argument;
    (void)i;
    hw_backward(v->tape, v->loss, 1);
    for (int a = 0; a < 6; a++)
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            if (v->batch->lines[b]) continue;
            const hw_recorded *x = &v->attentions[a];
            int64_t rows = x->queries.length[b];
            r->rows[a] = hw_arena_alloc(arena, (size_t)rows * 2 * sizeof(double));
            for (int64_t k = 0; k < 2 * rows; k++) r->rows[a][k] = (double)x->gates->grad[2 * x->queries.start[b] + k];
        }
}

/* |.| goes around each row's gradient by token and around their sum by sentence; means are over rows and sentences. */
START_TEST(readings)
{
    const hw_gate_gradients *g = gradients(NULL);
    recorded r;
    hw_runner *runner = hw_runner_new(bundle->network);
    hw_threads_set(1);
    hw_study_visit(&set, runner, &(hw_visit_options){.mode = HW_GRADIENTS, .gates = true}, record, &r);
    hw_threads_set(0);
    hw_runner_free(runner);
    int cancelled = 0;
    for (int k = 0; k < g->count; k++) {
        const hw_head *head = &g->heads[k];
        int64_t rows = hw_query_rows(&set.pairs[0], head->kind);
        ck_assert_int_eq(rows, set.pairs[0].words[head->kind != HW_ENCODER_SELF].ids.count + 1);
        double net = 0, size = 0;
        for (int64_t t = 0; t < rows; t++) {
            net += r.rows[head->attention][2 * t + head->head];
            size += fabs(r.rows[head->attention][2 * t + head->head]);
        }
        ck_assert_double_eq_tol(g->net[k * SENTENCES], net, 1e-9);
        ck_assert_double_eq_tol(g->size[k * SENTENCES], size, 1e-9);
        cancelled += fabs(net) < 0.9 * size;
    }
    ck_assert_int_gt(cancelled, 0);

    double token[12], sentence[12], normalised[12];
    hw_importance_values(g, HW_IMPORTANCE_TOKEN, false, token);
    hw_importance_values(g, HW_IMPORTANCE_SENTENCE, false, sentence);
    hw_importance_values(g, HW_IMPORTANCE_SENTENCE, true, normalised);
    for (int k = 0; k < g->count; k++) {
        double sizes = 0, nets = 0, rows = 0;
        for (int i = 0; i < SENTENCES; i++) {
            sizes += g->size[k * SENTENCES + i];
            nets += fabs(g->net[k * SENTENCES + i]);
            rows += (double)hw_query_rows(&set.pairs[i], g->heads[k].kind);
        }
        ck_assert_double_eq_tol(token[k], sizes / rows, 1e-12);
        ck_assert_double_eq_tol(sentence[k], nets / SENTENCES, 1e-12);
        double other = sentence[k ^ 1];
        ck_assert_double_eq_tol(normalised[k], sentence[k] / sqrt(sentence[k] * sentence[k] + other * other), 1e-9);
    }
}
END_TEST

/* ---- known heads ------------------------------------------------------------------------------------------------- */

START_TEST(needed_heads_are_found)
{
    const hw_importance *x = hw_importance_study(bundle, &set, 100, 1, NULL, NULL, arena);
    ck_assert_int_eq(x->count, 3 * WIRED_HEADS * HW_IMPORTANCE_READINGS);
    for (int reading = 0; reading < HW_IMPORTANCE_READINGS; reading++) {
        double encoder = x->items[reading].value, cross = x->items[8 * HW_IMPORTANCE_READINGS + reading].value;
        ck_assert_str_eq(x->items[8 * HW_IMPORTANCE_READINGS + reading].head->name, "decoder.0.cross.0");
        for (int h = 0; h < 3 * WIRED_HEADS; h++) {
            const hw_head_importance *i = &x->items[h * HW_IMPORTANCE_READINGS + reading];
            ck_assert_int_eq(i->reading, reading);
            ck_assert(i->low <= i->value && i->value <= i->high);
            if (h == 0 || h == 8) continue;
            if (h == 2 || h == 3)
                ck_assert(i->value > 0 && i->value < 0.6 * encoder); /* they do a little */
            else
                ck_assert_double_eq(i->value, 0);
            ck_assert_double_lt(i->value, cross);
            ck_assert_double_lt(i->normalised, 0.6);
        }
        ck_assert_double_gt(x->items[reading].normalised, 0.8);
        ck_assert_double_eq_tol(x->items[8 * HW_IMPORTANCE_READINGS + reading].normalised, 1, 1e-9);
    }
}
END_TEST

/* The correlations, from what ablation and importance say by themselves. */
START_TEST(importance_against_ablation)
{
    hw_error err = {""};
    const hw_importance *x = hw_importance_study(bundle, &set, 100, 1, NULL, NULL, arena);
    hw_meter *meter = hw_meter_new(bundle, &set, NULL);
    hw_ablation_options o = {.modes = {true, true, true}, .trials = 20, .seed = 1};
    const hw_ablation *a = hw_ablation_study(meter, bundle->network, &set, &o, NULL, NULL, arena, &err);
    hw_meter_free(meter);
    const hw_gate_gradients *g = gradients(NULL);
    ck_assert_int_eq(x->checks, 2 * 2 * HW_ABLATION_MODES);
    for (int k = 0; k < x->checks; k++) {
        const hw_importance_check *c = &x->check[k];
        double values[12], changes[12];
        hw_importance_values(g, c->reading, c->normalised, values);
        for (int h = 0; h < 12; h++) changes[h] = a->items[h * HW_ABLATION_MODES + c->mode].loss.value;
        ck_assert_double_eq_tol(c->rho, hw_rank_correlation(values, changes, 12), 1e-9);
        ck_assert(c->low <= c->rho && c->rho <= c->high && c->low >= -1 && c->high <= 1);
        for (int i = 0; i < k; i++)
            ck_assert(x->check[i].reading != c->reading || x->check[i].normalised != c->normalised ||
                      x->check[i].mode != c->mode);
    }
}
END_TEST

/* Drawing sentences anew blurs both sides of a correlation; its interval does not follow: its middle is nearer to the
 * correlation than the resamples are. */
START_TEST(intervals_are_about_the_correlation)
{
    const hw_importance *x = hw_importance_study(bundle, &set, 200, 1, NULL, NULL, arena);
    double off = 0, bias = 0;
    int lowered = 0;
    for (int k = 0; k < x->checks; k++) {
        const hw_importance_check *c = &x->check[k];
        ck_assert_msg(c->low <= c->rho && c->rho <= c->high, "%g is not in [%g, %g]", c->rho, c->low, c->high);
        ck_assert(c->low >= -1 && c->high <= 1 && fabs(c->resampled) <= 1);
        lowered += c->resampled < c->rho;
        if (c->low <= -1 || c->high >= 1) continue; /* cut off */
        off += c->rho - (c->low + c->high) / 2;
        bias += c->rho - c->resampled;
    }
    ck_assert_int_gt(lowered, x->checks / 2);
    ck_assert_msg(bias > 0 && fabs(off) < 0.5 * bias, "%g, bias %g", off, bias);
}
END_TEST

/* ---- rank correlation -------------------------------------------------------------------------------------------- */

START_TEST(rank_correlations)
{
    json_error_t error;
    json_t *all = json_load_file("tests/fixtures/heads/ranks.json", 0, &error);
    ck_assert_msg(all != NULL, "%s", error.text);
    ck_assert_uint_ge(json_array_size(all), 4);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *o = json_array_get(all, i), *list[2] = {json_object_get(o, "x"), json_object_get(o, "y")};
        double x[2][64];
        int count = (int)json_array_size(list[0]);
        for (int k = 0; k < 2 * count; k++)
            x[k / count][k % count] = json_number_value(json_array_get(list[k / count], (size_t)(k % count)));
        ck_assert_double_eq_tol(hw_rank_correlation(x[0], x[1], count), json_number_value(json_object_get(o, "rho")),
                                1e-12);
    }
    json_decref(all);
    ck_assert(isnan(hw_rank_correlation((const double[]){1, 1}, (const double[]){1, 2}, 2)));
}
END_TEST

/* ---- the command line -------------------------------------------------------------------------------------------- */

START_TEST(command)
{
    const char *model = bundle->config->training.model_dir;
    const outcome *o = RUN("heads", "importance", model);
    ck_assert_msg(o->status == 0, "%s", o->err);
    ck_assert_ptr_nonnull(strstr(o->out, "decoder.0.cross.3"));
    o = RUN("heads", "importance", model, "--json");
    json_t *all = json_loads(o->out, 0, NULL);
    const json_t *heads = json_object_get(all, "heads"), *first = json_array_get(heads, 1);
    ck_assert_uint_eq(json_array_size(heads), 3 * WIRED_HEADS * HW_IMPORTANCE_READINGS);
    ck_assert_str_eq(json_string_value(json_object_get(first, "name")), "encoder.0.self.0");
    ck_assert_str_eq(json_string_value(json_object_get(first, "reading")), "sentence");
    static const char *const keys[] = {"value", "low", "high", "normalised"};
    for (int k = 0; k < 4; k++) ck_assert(json_is_real(json_object_get(first, keys[k])));
    ck_assert_uint_eq(json_array_size(json_object_get(all, "correlations")), 12);
    json_decref(all);
    scratch_text("one.en", "a b .\n");
    scratch_text("one.fr", "a a b\n");
    o = RUN("heads", "importance", model, "--data", "one", "--tsv");
    ck_assert_msg(o->status == 0, "%s", o->err);
    ck_assert_ptr_nonnull(strstr(o->out, "name\treading\tvalue\tlow\thigh\tnormalised\nencoder.0.self.0\ttoken\t"));
    ck_assert_int_eq(RUN("heads", "importance", model, "--data", "nowhere")->status, 1);
}
END_TEST

Suite *test_heads_importance(void);
Suite *test_heads_importance(void)
{
    Suite *suite = suite_create("heads_importance");
    TCase *t = tcase_create("gradients");
    tcase_add_checked_fixture(t, begin_random, end);
    tcase_add_loop_test(t, gradients_are_differences, 0, 2);
    tcase_add_test(t, readings);
    tcase_add_test(t, intervals_are_about_the_correlation);
    suite_add_tcase(suite, t);
    t = tcase_create("known heads");
    tcase_add_checked_fixture(t, begin_wired, end);
    tcase_add_test(t, needed_heads_are_found);
    tcase_add_test(t, importance_against_ablation);
    tcase_add_test(t, rank_correlations);
    tcase_add_test(t, command);
    suite_add_tcase(suite, t);
    return suite;
}
