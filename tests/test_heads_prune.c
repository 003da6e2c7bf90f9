/* Pruning: models without heads against gates of 0; the order in which heads go; and headwise heads prune, whose models
 * load, translate, are studied and trained further. */
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

static void begin(void)
{
    hw_error err = {""};
    scratch_begin_in_memory();
    arena = scratch_arena();
    bundle = wired_bundle(arena, scratch_path("."), SENTENCES);
    ck_assert_msg(hw_study_set_load(arena, bundle, bundle->config->data.dir, "test", &set, &err), "%s", err.message);
}

static void end(void)
{
    hw_bundle_free(bundle);
    scratch_end();
}

/* ---- removal ----------------------------------------------------------------------------------------------------- */

static const char *const some[] = {"encoder.0.self.1",  "encoder.0.self.3",  "decoder.1.self.0",
                                   "decoder.0.cross.2", "decoder.1.cross.3", "decoder.1.cross.1"};
enum { SOME = sizeof some / sizeof *some, ONCE = 4 };

static hw_bundle *without(const hw_bundle *b, const char *const *names, int count)
{
    hw_error err = {""};
    hw_bundle *part = hw_bundle_without(b, names, count, NULL, arena, &err);
    ck_assert_msg(part != NULL, "%s", err.message);
    return part;
}

static void losses(const hw_bundle *b, const hw_head_setting *settings, double out[SENTENCES])
{
    hw_quality q;
    hw_meter *meter = hw_meter_new(b, &set, NULL);
    hw_meter_measure(meter, settings, &q);
    for (int i = 0; i < SENTENCES; i++) out[i] = q.loss.rows[2 * i];
    hw_quality_clear(&q);
    hw_meter_free(meter);
}

/* Heads of differing number an attention, taken out at once and in two goes; post-norm and pre-norm. */
START_TEST(removal_equals_closed_gates)
{
    static const char *const kinds[] = {"model.norm=post", "model.norm=pre;model.tied_embeddings=none"};
    const hw_config *c =
        tiny_config(arena, hw_arena_string(arena, "model.heads=4;text.shared_vocabulary=true;%s", kinds[_i]));
    hw_bundle *whole = tiny_bundle(arena, c, "a b c d e f .", NULL);
    hw_bundle *part = without(whole, some, SOME), *first = without(whole, some, ONCE);
    hw_bundle *second = without(first, some + ONCE, SOME - ONCE);
    hw_head_changes *changes = hw_head_changes_new(whole->network, NULL, arena);
    int count;
    const hw_head *heads = hw_heads_of(whole->network, arena, &count);
    ck_assert_int_eq(count, 24);
    for (int i = 0; i < SOME; i++)
        for (int h = 0; h < count; h++)
            if (!strcmp(heads[h].name, some[i]))
                hw_head_changes_add(changes, heads[h].attention, heads[h].head, HW_ABLATE_ZERO);
    double open[SENTENCES], closed[SENTENCES], gone[SENTENCES], twice[SENTENCES], differ = 0;
    losses(whole, NULL, open);
    losses(whole, changes->settings, closed);
    losses(part, NULL, gone);
    losses(second, NULL, twice);
    for (int i = 0; i < SENTENCES; i++) {
        ck_assert_double_eq_tol(gone[i], closed[i], 1e-5 * fmax(1, closed[i]));
        ck_assert_double_eq(twice[i], gone[i]);
        differ = fmax(differ, fabs(open[i] - closed[i]));
    }
    ck_assert_double_gt(differ, 0.01);

    const hw_head *left = hw_heads_of(part->network, arena, &count);
    ck_assert_int_eq(count, 24 - SOME);
    ck_assert_str_eq(left[1].name, "encoder.0.self.2");
    ck_assert_str_eq(left[count - 1].name, "decoder.1.cross.2");
    ck_assert_int_eq(second->config->model.removed_heads.count, SOME);
    int64_t one = 4 * 16 * 4 + 3 * 4; /* a head's rows and columns, and biases */
    ck_assert_int_eq(hw_parameters_total(whole->network->parameters) - hw_parameters_total(part->network->parameters),
                     SOME * one);
    hw_bundle_free(second);
    hw_bundle_free(first);
    hw_bundle_free(part);
    hw_bundle_free(whole);
}
END_TEST

START_TEST(what_cannot_go)
{
    static const char *const all[] = {"decoder.0.self.0", "decoder.0.self.1", "decoder.0.self.2", "decoder.0.self.3"};
    hw_error err = {""};
    ck_assert_ptr_null(hw_bundle_without(bundle, all, 4, NULL, arena, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "all heads of decoder.0.self are removed"));
    ck_assert_ptr_null(hw_bundle_without(bundle, (const char *const[]){"decoder.0.self.4"}, 1, NULL, arena, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "there is no head decoder.0.self.4"));
}
END_TEST

/* ---- the order --------------------------------------------------------------------------------------------------- */

static const hw_pruning *prune(const hw_bundle *b, const hw_search_options *search, bool normalised)
{
    hw_meter *meter = hw_meter_new(b, &set, search);
    hw_prune_options o = {.reading = HW_IMPORTANCE_TOKEN, .normalised = normalised, .trials = 50, .seed = 1};
    const hw_pruning *p = hw_pruning_study(b, &set, meter, &set, &o, NULL, NULL, arena);
    hw_meter_free(meter);
    return p;
}

START_TEST(needed_heads_stay)
{
    hw_search_options search = hw_search_options_of(bundle->config);
    search.n_best = 1;
    search.ids_only = true;
    const hw_pruning *p = prune(bundle, &search, false);
    ck_assert_int_eq(p->count, 1 + 12 - 3);
    ck_assert_int_eq(p->spare, 9);
    ck_assert_ptr_null(p->steps[0].head);
    for (int i = 0; i < p->count; i++) {
        const hw_prune_step *s = &p->steps[i];
        ck_assert_double_eq(s->match, 1);
        if (!i) continue;
        ck_assert_str_ne(s->head->name, "encoder.0.self.0");
        ck_assert_str_ne(s->head->name, "decoder.0.cross.0");
        for (int k = 1; k < i; k++) ck_assert_ptr_ne(s->head, p->steps[k].head);
        if (i > 7)
            ck_assert(s->importance > 0 && s->loss_change.value != 0);
        else
            ck_assert(s->importance == 0 &&
                      s->loss_change.value == 0); /* three of decoder.0.self, of cross, one more */
    }
    ck_assert_str_eq(p->steps[8].head->name, "encoder.0.self.2");
    ck_assert_str_eq(p->steps[9].head->name, "encoder.0.self.3");
}
END_TEST

/* Each head had the least importance of those left that may go, with the gates of those before closed. */
START_TEST(importance_is_computed_anew)
{
    const hw_config *c = tiny_config(arena, "model.heads=4;text.shared_vocabulary=true");
    hw_bundle *b = tiny_bundle(arena, c, "a b c d e f .", NULL);
    const hw_pruning *p = prune(b, NULL, _i);
    ck_assert_int_eq(p->count, 1 + 24 - 6);
    ck_assert(isnan(p->steps[3].match) && isnan(p->steps[3].bleu));
    hw_head_changes *changes = hw_head_changes_new(b->network, NULL, arena);
    hw_runner *runner = hw_runner_new(b->network);
    int left[6] = {4, 4, 4, 4, 4, 4}, moved = 0;
    bool gone[24] = {false};
    double values[24], at_first[24];
    for (int i = 1; i < p->count; i++) {
        hw_runner_settings(runner, changes->settings);
        const hw_gate_gradients *g = hw_gate_gradients_of(runner, b->network, &set, arena);
        hw_importance_values(g, HW_IMPORTANCE_TOKEN, _i, values);
        if (i == 1) memcpy(at_first, values, sizeof values);
        int least = -1;
        for (int h = 0; h < 24; h++) {
            if (!strcmp(g->heads[h].name, p->steps[i].head->name)) least = h;
            moved += fabs(values[h] - at_first[h]) > 0.01 * at_first[h];
        }
        ck_assert_double_eq_tol(p->steps[i].importance, values[least], 1e-9);
        for (int h = 0; h < 24; h++)
            if (!gone[h] && left[g->heads[h].attention] > 1) ck_assert_double_ge(values[h], values[least]);
        gone[least] = true;
        left[g->heads[least].attention]--;
        hw_head_changes_add(changes, g->heads[least].attention, g->heads[least].head, HW_ABLATE_ZERO);
    }
    ck_assert_int_gt(moved, 24);
    hw_runner_free(runner);
    hw_bundle_free(b);
}
END_TEST

/* ---- the command line -------------------------------------------------------------------------------------------- */

static void expect(const outcome *o, int status, const char *out, const char *message)
{
    ck_assert_msg(o->status == status && strstr(o->out, out) && strstr(o->err, message), "status %d: %s%s", o->status,
                  o->out, o->err);
}

START_TEST(command)
{
    const char *model = bundle->config->training.model_dir;
    expect(RUN("heads", "prune", model), 0, "9 of 12 heads (75 %) go before exact match falls", "");
    expect(RUN("heads", "prune", model, "--tsv"), 0, "\n9\tencoder.0.self.3\t0.75\t", "");
    json_t *kept = json_load_file(scratch_path("model/heads/prune-test.json"), 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(kept, "heads")), 10);
    ck_assert_int_eq((int)json_integer_value(json_object_get(kept, "spare")), 9);
    json_decref(kept);
    expect(RUN("heads", "prune", model, "--remove", "3"), 2, "", "--remove needs --output");
    expect(RUN("heads", "prune", model, "-o", scratch_path("p")), 2, "", "--output needs --remove");
    expect(RUN("heads", "prune", model, "--remove", "0", "-o", scratch_path("p")), 2, "", "remove");
    expect(RUN("heads", "prune", model, "--remove", "10", "-o", scratch_path("p")), 1, "",
           "--remove 10: the network has 12 heads in 3 attentions, each of which keeps one; at most 9 can go");
    expect(RUN("heads", "prune", model, "--remove", "3", "-o", model), 1, "", "there is a model already");
}
END_TEST

START_TEST(one_head)
{
    const hw_config *c = tiny_config(arena, hw_arena_string(arena,
                                                            "model.heads=1;text.shared_vocabulary=true;data.dir=%s;"
                                                            "data.source=en;data.target=fr",
                                                            scratch_path(".")));
    hw_bundle *single = tiny_bundle(arena, c, "a b c d e f .", NULL);
    save_bundle(single, scratch_path("single"));
    hw_bundle_free(single);
    expect(RUN("heads", "prune", scratch_path("single")), 0,
           "\n- of 6 heads go before exact match falls by more than a point: not defined, since every attention has "
           "one head, "
           "which stays.\n",
           "");
    expect(RUN("heads", "prune", scratch_path("single"), "--remove", "1", "-o", scratch_path("p")), 1, "",
           "every attention of the network has one head only; none can go");
}
END_TEST

/* What was removed loads, translates, is studied, pruned further, trained further and resumed. */
START_TEST(a_pruned_model_is_a_model)
{
    const char *model = bundle->config->training.model_dir, *part = hw_arena_string(arena, "%s", scratch_path("part"));
    const char *fine = hw_arena_string(arena, "training.model_dir=%s", scratch_path("fine"));
    hw_error err = {""};
    hw_corpus_counts counts = {.pairs = 9, .source_tokens = 30, .source_longest = 4};
    ck_assert_msg(hw_bundle_save_corpus(&counts, NULL, model, &err), "%s", err.message);
    ck_assert(hw_directory_make(part, &err));
    hw_bundle_save_model(bundle->network, NULL, part, &err); /* what an interrupted command may leave */
    const outcome *o = RUN("heads", "prune", model, "--remove", "8", "-o", part, "--json", "--quiet");
    expect(o, 0, "\"largest_difference\"", "");
    ck_assert_int_eq(hw_bundle_longest_source(part), 4);
    json_t *all = json_loads(o->out, 0, NULL);
    ck_assert_double_lt(json_number_value(json_object_get(all, "largest_difference")), 1e-5);
    const json_t *parameters = json_object_get(all, "parameters");
    ck_assert_int_gt(json_integer_value(json_array_get(parameters, 0)),
                     json_integer_value(json_array_get(parameters, 1)));
    ck_assert_uint_eq(json_array_size(json_object_get(all, "removed")), 8);
    ck_assert_double_gt(json_number_value(json_array_get(json_object_get(all, "translation_tokens_per_s"), 1)), 0);
    json_decref(all);
    scratch_text("in.en", "b c a .\n");
    expect(RUN("translate", part, scratch_path("in.en")), 0, "b b c a\n", "");
    expect(RUN("heads", "stats", part), 0, "encoder.0.self.3", "");
    expect(RUN("heads", "ablate", part, "--loss-only"), 0, "encoder.0.self.3", "");
    ck_assert_ptr_null(strstr(RUN("heads", "importance", part)->out, "encoder.0.self.2"));
    expect(RUN("heads", "prune", part), 0, "1 of 4 heads", "");
    const char *config = hw_arena_string(arena, "%s/config.yaml", part);
    const char *from = hw_arena_string(arena, "training.init_from=%s", part);
    expect(RUN("train", config, "--set", from, "--set", fine, "--set", "training.max_steps=2", "--set",
               "training.validate_every=0"),
           0, "", "beginning with the weights of");
    expect(RUN("train", config, "--set", from, "--set", fine, "--set", "training.max_steps=3", "--set",
               "training.validate_every=0"),
           0, "", "going on at step 2 of 3");
    expect(RUN("translate", scratch_path("fine"), scratch_path("in.en")), 0, "", "");
}
END_TEST

Suite *test_heads_prune(void);
Suite *test_heads_prune(void)
{
    Suite *suite = suite_create("heads_prune");
    TCase *t = tcase_create("pruning");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_loop_test(t, removal_equals_closed_gates, 0, 2);
    tcase_add_test(t, what_cannot_go);
    tcase_add_test(t, needed_heads_stay);
    tcase_add_loop_test(t, importance_is_computed_anew, 0, 2);
    tcase_add_test(t, command);
    tcase_add_test(t, one_head);
    tcase_add_test(t, a_pruned_model_is_a_model);
    suite_add_tcase(suite, t);
    return suite;
}
