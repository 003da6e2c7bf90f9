/* Ablation: a network wired by hand, in which it is known which heads are needed; the figures against plain ones; and
 * headwise heads ablate. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_model.h"
#include "support_wired.h"

#include <headwise/heads.h>

enum { SENTENCES = 40 };

static hw_arena *arena;
static hw_bundle *bundle;
static hw_study_set set;
static hw_meter *meter;

static void begin(void)
{
    hw_error err = {""};
    scratch_begin_in_memory();
    arena = scratch_arena();
    bundle = wired_bundle(arena, scratch_path("."), SENTENCES);
    ck_assert_msg(hw_study_set_load(arena, bundle, bundle->config->data.dir, "test", &set, &err), "%s", err.message);
    static hw_search_options search;
    search = hw_search_options_of(bundle->config);
    search.n_best = 1;
    search.ids_only = true;
    meter = hw_meter_new(bundle, &set, &search);
}

static void end(void)
{
    hw_meter_free(meter);
    hw_bundle_free(bundle);
    scratch_end();
}

static hw_ablation *study(hw_ablation_groups groups)
{
    hw_error err = {""};
    hw_ablation_options o = {.groups = groups, .modes = {true, true, true}, .trials = 200, .seed = 1};
    hw_ablation *a = hw_ablation_study(meter, bundle->network, &set, &o, NULL, NULL, arena, &err);
    ck_assert_msg(a != NULL, "%s", err.message);
    return a;
}

static const hw_ablated *item(const hw_ablation *a, const char *name, hw_ablation_mode mode)
{
    for (int i = 0; i < a->count; i++)
        if (!strcmp(a->items[i].name, name) && a->items[i].mode == mode) return &a->items[i];
    ck_abort_msg("%s is not there", name);
}

/* ---- known heads ------------------------------------------------------------------------------------------------- */

START_TEST(the_wired_network_translates)
{
    const hw_ablation *a = study(HW_ABLATE_HEADS);
    ck_assert_double_eq(a->match, 1);
    ck_assert_double_eq_tol(a->bleu, 100, 1e-9);
    ck_assert(a->loss > 0.001 && a->loss < 0.2);
    ck_assert_int_eq(a->count, 3 * WIRED_HEADS * HW_ABLATION_MODES);
}
END_TEST

START_TEST(needed_heads_are_found)
{
    static const char *const needed[] = {"encoder.0.self.0", "decoder.0.cross.0"};
    const hw_ablation *a = study(HW_ABLATE_HEADS);
    for (int i = 0; i < a->count; i++) {
        const hw_ablated *x = &a->items[i];
        bool is_needed = !strcmp(x->name, needed[0]) || !strcmp(x->name, needed[1]);
        ck_assert_msg(is_needed == (x->loss.value > 0.5), "%s, %s: %g", x->name, hw_ablation_modes[x->mode],
                      x->loss.value);
        if (!is_needed) continue;
        ck_assert_double_eq(x->match_after, 0);
        ck_assert_double_gt(x->loss.low, 0.5);
        ck_assert(x->loss.low <= x->loss.value && x->loss.value <= x->loss.high && x->loss.p < 1e-6);
        ck_assert_double_lt(x->bleu.high, 0);
        ck_assert_double_eq_tol(x->loss_after - a->loss, x->loss.value, 1e-12);
    }
}
END_TEST

START_TEST(idle_heads_change_nothing)
{
    static const char *const idle[] = {"encoder.0.self.1", "decoder.0.self.0", "decoder.0.self.3", "decoder.0.cross.2"};
    const hw_ablation *a = study(HW_ABLATE_HEADS);
    for (int k = 0; k < 4; k++)
        for (int mode = 0; mode < HW_ABLATION_MODES; mode++) {
            const hw_ablated *x = item(a, idle[k], (hw_ablation_mode)mode);
            ck_assert_double_eq(x->loss.value, 0);
            ck_assert_double_eq(x->loss.p, 1);
            ck_assert_double_eq(x->match.value, 0);
            ck_assert_double_eq(x->bleu.value, 0);
        }
}
END_TEST

START_TEST(a_uniform_head_made_uniform)
{
    const hw_ablation *a = study(HW_ABLATE_HEADS);
    ck_assert_double_eq(item(a, "encoder.0.self.2", HW_ABLATE_UNIFORM)->loss.value, 0);
    ck_assert_double_ne(item(a, "encoder.0.self.2", HW_ABLATE_ZERO)->loss.value, 0);
    ck_assert_double_ne(item(a, "encoder.0.self.2", HW_ABLATE_MEAN)->loss.value, 0);
    /* and a head that chooses is not */
    ck_assert_double_ne(item(a, "encoder.0.self.3", HW_ABLATE_UNIFORM)->loss.value, 0);
}
END_TEST

START_TEST(groups)
{
    const hw_ablation *pairs = study(HW_ABLATE_PAIRS), *layers = study(HW_ABLATE_LAYERS);
    ck_assert_int_eq(pairs->count, 3 * 6 * HW_ABLATION_MODES);
    ck_assert_int_eq(layers->count, 3 * WIRED_HEADS * HW_ABLATION_MODES);
    ck_assert_double_eq(item(pairs, "decoder.0.cross.1+3", HW_ABLATE_ZERO)->loss.value, 0);
    ck_assert_double_gt(item(pairs, "decoder.0.cross.0+3", HW_ABLATE_ZERO)->loss.value, 0.5);
    const hw_ablated *alone = item(layers, "encoder.0.self.0 alone", HW_ABLATE_ZERO);
    ck_assert_int_eq(alone->count, WIRED_HEADS - 1);
    ck_assert_double_eq(alone->match_after, 1);
    ck_assert_double_gt(item(layers, "encoder.0.self.3 alone", HW_ABLATE_ZERO)->loss.value, 0.5);
    ck_assert_double_eq(item(layers, "decoder.0.cross.0 alone", HW_ABLATE_MEAN)->loss.value, 0);
}
END_TEST

/* ---- figures ----------------------------------------------------------------------------------------------------- */

typedef struct summed {
    double *sums;
    double rows;
} summed;

static void sum_first(int i, const hw_visit *v, void *argument)
{
    (void)i;
    summed *s = argument;
    const hw_tensor *heads = v->attentions[0].heads;
    int64_t cols = hw_tensor_cols(heads);
    for (int64_t k = 0; k < hw_tensor_size(heads); k++) s->sums[k % cols] += (double)heads->data[k];
    s->rows += (double)hw_tensor_rows(heads);
}

START_TEST(means_over_all_rows)
{
    double sums[64] = {0};
    summed s = {sums, 0};
    hw_runner *runner = hw_meter_runner(meter);
    hw_real **means = hw_head_means(runner, bundle->network, &set, arena);
    hw_threads_set(1);
    hw_study_visit(&set, runner, &(hw_visit_options){.heads = true}, sum_first, &s);
    hw_threads_set(0);
    int64_t rows = 0;
    for (int64_t i = 0; i < set.count; i++) rows += set.pairs[i].words[HW_SOURCE].ids.count + 1;
    ck_assert_double_eq(s.rows, (double)rows);
    for (int k = 0; k < 64; k++) ck_assert_double_eq_tol((double)means[0][k], sums[k] / s.rows, 1e-6);
}
END_TEST

/* The loss of a network whose head is gone for good: its columns of the output projection are 0. */
START_TEST(zero_is_a_head_without_output)
{
    const hw_ablation *a = study(HW_ABLATE_HEADS);
    hw_tensor *w = &hw_parameters_find(bundle->network->parameters, "encoder.0.self_attention.output.weight")->tensor;
    for (int64_t i = 0; i < hw_tensor_size(w); i++)
        if (i % 64 / 16 == 3) w->data[i] = 0;
    hw_parameters_pack(bundle->network->parameters);
    hw_quality q;
    hw_meter_measure(meter, NULL, &q);
    ck_assert_double_eq_tol(hw_tally_score(&q.loss), item(a, "encoder.0.self.3", HW_ABLATE_ZERO)->loss_after, 1e-6);
    ck_assert_int_eq(q.match.count, SENTENCES);
    hw_quality_clear(&q);
}
END_TEST

static double score_side_by_side(const double *sum, const void *unused)
{
    (void)unused;
    return sum[2] / sum[3] - sum[0] / sum[1];
}

/* The interval of a difference is that of the rows side by side, and p goes with it. */
START_TEST(paired_differences)
{
    hw_tally one, two, both;
    hw_tally_init(&one, 2, hw_ratio_score, NULL);
    hw_tally_init(&two, 2, hw_ratio_score, NULL);
    hw_tally_init(&both, 4, score_side_by_side, NULL);
    hw_random random = hw_random_new(4, 0);
    for (int i = 0; i < 50; i++) {
        double n = 1 + (double)hw_random_below(&random, 9), a = hw_random_uniform(&random) * n;
        double row[4] = {a, n, a + 0.2 * hw_random_normal(&random) + 0.1, n};
        hw_tally_add(&one, row);
        hw_tally_add(&two, row + 2);
        hw_tally_add(&both, row);
    }
    hw_difference d = hw_paired_difference(&one, &two, 400, 9);
    hw_interval x = hw_bootstrap_interval(&both, 400, 9);
    ck_assert_double_eq_tol(d.value, x.estimate, 1e-12);
    ck_assert_double_eq_tol(d.low, x.low, 1e-12);
    ck_assert_double_eq_tol(d.high, x.high, 1e-12);
    ck_assert(d.p > 0 && d.p < 0.5);
    ck_assert_int_eq(d.p <= 0.05, d.low > 0 || d.high < 0);
    d = hw_paired_difference(&one, &one, 400, 9);
    ck_assert(d.value == 0 && d.low == 0 && d.high == 0 && d.p == 1);
    one.count = two.count = 1;
    d = hw_paired_difference(&one, &two, 400, 9);
    ck_assert(isfinite(d.value) && isnan(d.low) && isnan(d.p));
    hw_tally_clear(&one);
    hw_tally_clear(&two);
    hw_tally_clear(&both);
}
END_TEST

/* ---- the command line -------------------------------------------------------------------------------------------- */

static json_t *kept(const char *name)
{
    json_t *json = json_load_file(scratch_path(hw_arena_string(arena, "model/heads/%s.json", name)), 0, NULL);
    ck_assert_msg(json != NULL, "heads/%s.json is not there", name);
    return json;
}

static double number(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);
    ck_assert_msg(json_is_number(x), "%s is no number", key);
    return json_number_value(x);
}

START_TEST(command)
{
    const char *model = bundle->config->training.model_dir;
    const outcome *o = RUN("heads", "ablate", model, "--quiet");
    ck_assert_msg(o->status == 0, "%s", o->err);
    ck_assert_ptr_nonnull(strstr(o->out, "exact match 100.00 %, BLEU 100.00"));
    ck_assert_ptr_nonnull(strstr(o->out, "decoder.0.cross.3  uniform"));
    json_t *all = kept("ablate-test");
    const json_t *heads = json_object_get(all, "heads");
    ck_assert_uint_eq(json_array_size(heads), 3 * WIRED_HEADS * HW_ABLATION_MODES);
    for (size_t i = 0; i < json_array_size(heads); i++) {
        static const char *const keys[] = {"loss_delta",
                                           "low",
                                           "high",
                                           "p",
                                           "p_raw",
                                           "loss",
                                           "exact_match_delta",
                                           "exact_match_low",
                                           "exact_match_high",
                                           "exact_match_p",
                                           "bleu_delta",
                                           "bleu_low",
                                           "bleu_high",
                                           "bleu_p",
                                           "bleu",
                                           "exact_match"};
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) number(json_array_get(heads, i), keys[k]);
    }
    ck_assert_double_eq(number(all, "exact_match"), 1);
    json_decref(all);
    o = RUN("heads", "ablate", model, "--loss-only", "--mode", "mean", "--groups", "layers", "--tsv");
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->out, "\nencoder.0.self.0 alone\tmean\tencoder.0.self.1 encoder.0.self.2 "));
    all = kept("ablate-layers-test");
    ck_assert(json_is_null(json_object_get(all, "bleu")));
    json_decref(all);
    json_decref(kept("ablate-test")); /* other groups have a file of their own */
}
END_TEST

/* A search with other options may translate otherwise. */
START_TEST(kept_with_the_options_of_the_search)
{
    static const char *const settings[] = {"decoding.beam=1", "decoding.no_repeat_ngram=2", "decoding.max_length=3"};
    const char *model = bundle->config->training.model_dir;
    char before[20] = "";
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        ck_assert_int_eq(RUN("heads", "ablate", model, "--mode", "zero", "--set", settings[i])->status, 0);
        json_t *all = kept("ablate-test");
        const char *print = json_string_value(json_object_get(all, "fingerprint"));
        ck_assert_str_ne(print, before);
        snprintf(before, sizeof before, "%s", print);
        json_decref(all);
    }
}
END_TEST

START_TEST(bad_input)
{
    const char *model = bundle->config->training.model_dir;
    const outcome *o = RUN("heads", "ablate", model, "--mode", "none");
    ck_assert_msg(o->status == 2 && strstr(o->err, "zero, mean, uniform, all"), "%s", o->err);
    o = RUN("heads", "ablate", model, "--data", "nowhere");
    ck_assert_msg(o->status == 1 && strstr(o->err, "nowhere.en"), "%s", o->err);
    scratch_text("one.en", "a b .\n");
    scratch_text("one.fr", "a a b\n");
    o = RUN("heads", "ablate", model, "--data", "one");
    ck_assert_msg(o->status == 0 && strstr(o->out, "one sentence"), "%s", o->err);
    const hw_config *c = tiny_config(
        arena, hw_arena_string(arena, "model.heads=1;text.shared_vocabulary=true;data.dir=%s", scratch_path(".")));
    hw_bundle *single = tiny_bundle(arena, c, "a b", NULL);
    save_bundle(single, scratch_path("single"));
    hw_bundle_free(single);
    ck_assert_int_eq(
        RUN("heads", "ablate", scratch_path("single"), "--set", "data.source=en", "--set", "data.target=fr")->status,
        0);
    o = RUN("heads", "ablate", scratch_path("single"), "--groups", "pairs");
    ck_assert_msg(o->status == 1 && strstr(o->err, "has one head only: there is no pair"), "%s", o->err);
}
END_TEST

Suite *test_heads_ablate(void);
Suite *test_heads_ablate(void)
{
    Suite *suite = suite_create("heads_ablate");
    TCase *t = tcase_create("ablation");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, the_wired_network_translates);
    tcase_add_test(t, needed_heads_are_found);
    tcase_add_test(t, idle_heads_change_nothing);
    tcase_add_test(t, a_uniform_head_made_uniform);
    tcase_add_test(t, groups);
    tcase_add_test(t, means_over_all_rows);
    tcase_add_test(t, zero_is_a_head_without_output);
    tcase_add_test(t, paired_differences);
    tcase_add_test(t, command);
    tcase_add_test(t, kept_with_the_options_of_the_search);
    tcase_add_test(t, bad_input);
    suite_add_tcase(suite, t);
    return suite;
}
