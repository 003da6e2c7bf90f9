/* Several models compared. Student's t, means of runs and assignments are held against NumPy's and SciPy's figures
 * (scripts/make_compare_fixtures.py), distances of heads against the diversity study; a network whose heads changed
 * places is matched with itself; and models of other data are refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_heads.h"
#include "support_model.h"

/* ---- against NumPy and SciPy ------------------------------------------------------------------------------------- */

static const json_t *fixtures(const char *section)
{
    static json_t *all;
    if (!all) all = json_load_file("tests/fixtures/heads/compare.json", 0, NULL);
    ck_assert_ptr_nonnull(all);
    return json_object_get(all, section);
}

static double at(const json_t *list, size_t i) { return json_number_value(json_array_get(list, i)); }

static void near(double is, double should) { ck_assert_double_eq_tol(is, should, 1e-6 * fmax(1, fabs(should))); }

START_TEST(student_equals_scipy)
{
    size_t i;
    json_t *row;
    json_array_foreach(fixtures("student"), i, row)
    {
        double p = hw_student_p(at(row, 0), at(row, 1));
        near(p, at(row, 2));
        ck_assert_double_eq_tol(p / at(row, 2), 1, 1e-8); /* also where it is tiny */
    }
    json_array_foreach(fixtures("bounds"), i, row) near(hw_student_bound(at(row, 0), at(row, 1)), at(row, 2));
}
END_TEST

static int fill(const json_t *list, double *out)
{
    for (size_t i = 0; i < json_array_size(list); i++) out[i] = at(list, i);
    return (int)json_array_size(list);
}

static void expect_interval(hw_difference d, const json_t *should)
{
    near(d.low, at(should, 0));
    near(d.high, at(should, 1));
    near(d.p, at(should, 2));
}

START_TEST(means_of_runs_equal_scipy)
{
    size_t i;
    json_t *c;
    json_array_foreach(fixtures("runs"), i, c)
    {
        double a[16], b[16];
        int n = fill(json_object_get(c, "a"), a), m = fill(json_object_get(c, "b"), b);
        expect_interval(hw_runs_mean(a, n), json_object_get(c, "mean"));
        hw_difference welch = hw_runs_difference(a, n, b, m, false);
        near(welch.value, json_number_value(json_object_get(c, "value")));
        expect_interval(welch, json_object_get(c, "welch"));
        if (json_object_get(c, "paired"))
            expect_interval(hw_runs_difference(a, n, b, m, true), json_object_get(c, "paired"));
    }
}
END_TEST

/* What tells nothing has no interval. */
START_TEST(runs_that_tell_nothing)
{
    const double same[3] = {2, 2, 2}, more[3] = {3, 3, 3}, none[2] = {0, 0}, odd[2] = {1, NAN};
    hw_difference d = hw_runs_difference(same, 3, more, 3, true);
    ck_assert(d.value == 1 && isnan(d.low) && isnan(d.p));
    d = hw_runs_difference(same, 3, same, 3, true);
    ck_assert(d.value == 0 && d.low == 0 && d.high == 0 && d.p == 1);
    d = hw_runs_mean(same, 1);
    ck_assert(d.value == 2 && isnan(d.low));
    d = hw_runs_difference(same, 1, more, 3, false);
    ck_assert(d.value == 1 && isnan(d.low) && isnan(d.p));
    d = hw_runs_mean(none, 2);
    ck_assert(d.value == 0 && d.p == 1);
    ck_assert(isnan(hw_runs_mean(odd, 2).low));
}
END_TEST

START_TEST(assignments_equal_scipy)
{
    size_t i;
    json_t *c;
    json_array_foreach(fixtures("assign"), i, c)
    {
        const json_t *cost = json_object_get(c, "cost");
        int rows = (int)json_array_size(cost), columns = (int)json_array_size(json_array_get(cost, 0)), column[16];
        double flat[256], sum = 0;
        bool taken[16] = {false};
        for (int r = 0; r < rows; r++) fill(json_array_get(cost, (size_t)r), flat + r * columns);
        hw_assign(rows, columns, flat, column);
        int given = 0;
        for (int r = 0; r < rows; r++) {
            if (column[r] < 0) continue;
            ck_assert(column[r] < columns && !taken[column[r]]);
            taken[column[r]] = true;
            sum += flat[r * columns + column[r]];
            given++;
        }
        ck_assert_int_eq(given, rows < columns ? rows : columns);
        near(sum, json_number_value(json_object_get(c, "sum")));
    }
}
END_TEST

/* As many as may be are matched, and never what may not. */
START_TEST(infinite_costs_are_never_taken)
{
    const double cost[9] = {1, INFINITY, INFINITY, 5, INFINITY, INFINITY, 2, 9, INFINITY};
    int column[3];
    hw_assign(3, 3, cost, column);
    ck_assert_int_eq(column[0], 0);
    ck_assert_int_eq(column[1], -1);
    ck_assert_int_eq(column[2], 1);
    hw_assign(0, 3, cost, column);
    const double none[2] = {INFINITY, INFINITY};
    hw_assign(2, 1, none, column);
    ck_assert(column[0] == -1 && column[1] == -1);
}
END_TEST

/* ---- networks ---------------------------------------------------------------------------------------------------- */

static toy_study *network_new(int64_t pairs)
{
    toy_study *s = toy_study_new(5, pairs);
    hw_parameters *p = s->bundle->network->parameters;
    hw_parameters_initialise(p, 3);
    for (int64_t i = 0; i < hw_parameters_total(p); i++) hw_parameters_values(p)[i] *= 2; /* lively */
    hw_parameters_pack(p);
    return s;
}

static json_t *to_json(const hw_head_profile *p, const double *distances, int count)
{
    json_t *all =
        json_pack("[f, f, f]", hw_tally_score(&p->entropy), hw_tally_score(&p->js), hw_tally_score(&p->position));
    for (int i = 0; i < count; i++)
        json_array_append_new(all, isnan(distances[i]) ? json_null() : json_real(distances[i]));
    return all;
}

/* Of a network with itself, distances and profile are the diversity study's. */
START_TEST(distances_are_those_of_diversity)
{
    toy_study *s = network_new(140); /* more than one slice */
    const hw_bundle *both[2] = {s->bundle, s->bundle};
    hw_head_profile profiles[2];
    const hw_diversity *d = hw_diversity_study(s->bundle, &s->test, NULL, NULL, s->arena);
    double *js = hw_head_distances(both, 2, &s->test, profiles, NULL, NULL, s->arena)[1];
    json_t *result = hw_diversity_json(d, s->bundle->network), *overall = json_object_get(result, "overall");
    for (int i = 0; i < d->count; i++) {
        const hw_diversity_pair *p = &d->items[i];
        ck_assert_double_eq_tol(js[p->a * d->heads + p->b], p->js, 1e-12);
        ck_assert_double_eq_tol(js[p->b * d->heads + p->a], p->js, 1e-12);
    }
    for (int a = 0; a < d->heads; a++)
        for (int b = 0; b < d->heads; b++)
            ck_assert(isnan(js[a * d->heads + b]) == (d->head[a].kind != d->head[b].kind));
    /* All attentions have as many heads, but source and target not as many rows. */
    ck_assert_double_eq_tol(hw_tally_score(&profiles[0].js), json_number_value(json_object_get(overall, "js")), 0.01);
    near(hw_tally_score(&profiles[0].js), hw_tally_score(&profiles[1].js));
    ck_assert_int_eq(profiles[0].entropy.count, 140);
    json_decref(result);
    for (int m = 0; m < 2; m++) hw_head_profile_clear(&profiles[m]);
    toy_study_free(s);
}
END_TEST

START_TEST(threads_change_no_digit)
{
    toy_study *s = network_new(140);
    const hw_bundle *both[2] = {s->bundle, s->bundle};
    json_t *all[2];
    for (int i = 0; i < 2; i++) {
        hw_head_profile profiles[2];
        int heads;
        hw_heads_of(s->bundle->network, s->arena, &heads);
        hw_threads_set(i ? 3 : 1);
        double **js = hw_head_distances(both, 2, &s->test, profiles, NULL, NULL, s->arena);
        all[i] = to_json(&profiles[0], js[1], heads * heads);
        for (int m = 0; m < 2; m++) hw_head_profile_clear(&profiles[m]);
    }
    hw_threads_set(0);
    ck_assert(json_equal(all[0], all[1]));
    for (int i = 0; i < 2; i++) json_decref(all[i]);
    toy_study_free(s);
}
END_TEST

static void swap(hw_real *a, hw_real *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        hw_real x = a[i];
        a[i] = b[i];
        b[i] = x;
    }
}

/* The two heads of a self-attention change places; the network stays the same function. */
static void exchange_heads(const hw_attention_layer *l)
{
    int64_t width = l->head_width, size = l->heads * width, model = hw_tensor_cols(l->query_weight);
    ck_assert_int_eq(l->heads, 2);
    for (int part = 0; part < 3; part++) {
        hw_real *rows = l->query_weight->data + part * size * model, *bias = l->query_bias->data + part * size;
        swap(rows, rows + width * model, width * model);
        swap(bias, bias + width, width);
    }
    for (int64_t i = 0; i < model; i++)
        swap(l->output_weight->data + i * size, l->output_weight->data + i * size + width, width);
}

START_TEST(heads_that_changed_places_are_found)
{
    toy_study *s = network_new(30), *t = network_new(30);
    const hw_bundle *both[2] = {s->bundle, t->bundle};
    const hw_transformer *m = t->bundle->network;
    for (int a = 0; a < m->attentions; a++)
        if (hw_attention_kind_of(m, a) != HW_CROSS) exchange_heads(hw_transformer_attention(m, a));
    hw_parameters_pack(m->parameters);
    int count;
    const hw_head *heads = hw_heads_of(m, s->arena, &count);
    hw_head_profile profiles[2];
    double *js = hw_head_distances(both, 2, &s->test, profiles, NULL, NULL, s->arena)[1];
    hw_head_pair *pairs = hw_arena_alloc(s->arena, (size_t)count * sizeof *pairs);
    for (int same_layer = 0; same_layer < 2; same_layer++) {
        hw_head_match(heads, count, heads, count, js, same_layer, pairs);
        for (int h = 0; h < count; h++) {
            int should = heads[h].kind == HW_CROSS ? h : heads[h].head ? h - 1 : h + 1;
            ck_assert_msg(pairs[h].match == should, "%s is matched with %s", heads[h].name, heads[pairs[h].match].name);
            ck_assert_int_eq(pairs[h].nearest, should);
            ck_assert_double_lt(pairs[h].js, 2e-3);
            ck_assert_double_gt(pairs[h].chance, 10 * pairs[h].js);
        }
    }
    near(hw_tally_score(&profiles[0].entropy), hw_tally_score(&profiles[1].entropy));
    for (int i = 0; i < 2; i++) hw_head_profile_clear(&profiles[i]);
    toy_study_free(s);
    toy_study_free(t);
}
END_TEST

/* ---- groups of runs ---------------------------------------------------------------------------------------------- */

static hw_tally tally_of(double sum, double count)
{
    hw_tally t;
    hw_tally_init(&t, 2, hw_ratio_score, NULL);
    hw_tally_add(&t, (double[]){sum, count});
    return t;
}

static const json_t *figure(const json_t *result, const char *name)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(result, "figures"), i,
                       o) if (!strcmp(json_string_value(json_object_get(o, "figure")), name)) return o;
    return NULL;
}
static double number(const json_t *o, const char *key)
{
    const json_t *x = json_object_get(o, key);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* Runs whose loss is given, with these seeds; roles and diversity are made up. */
static json_t *compared(toy_study *s, int count, const double *losses, const int64_t *seeds, int against)
{
    json_t *roles = json_loads("{\"heads\": [{\"name\": \"encoder.0.self.0\", \"roles\": [{\"role\": \"previous\", "
                               "\"found\": true}, {\"role\": \"next\", \"found\": false}]}]}",
                               0, NULL);
    json_t *diversity = json_loads("{\"overall\": {\"cka\": 0.5}}", 0, NULL);
    hw_compared runs[8];
    double *distances[8];
    int heads;
    hw_heads_of(s->bundle->network, s->arena, &heads);
    for (int m = 0; m < count; m++) {
        runs[m] = (hw_compared){.name = "m", .bundle = s->bundle, .seed = seeds[m], .against = m >= count - against};
        runs[m].quality.loss = tally_of(losses[m], 1);
        runs[m].quality.match = tally_of(0.5, 1);
        runs[m].quality.bleu = hw_bleu_new(NULL, NULL);
        runs[m].profile = (hw_head_profile){tally_of(1, 2), tally_of(1, 2), tally_of(1, 2)};
        runs[m].roles = roles;
        runs[m].diversity = diversity;
        distances[m] = hw_arena_calloc(s->arena, (size_t)(heads * heads), sizeof **distances);
    }
    json_t *result = hw_compare_json(runs, count, distances, false, 100, 1);
    for (int m = 0; m < count; m++) {
        hw_quality_clear(&runs[m].quality);
        hw_head_profile_clear(&runs[m].profile);
    }
    json_decref(roles);
    json_decref(diversity);
    return result;
}

START_TEST(runs_are_paired_by_seed)
{
    toy_study *s = toy_study_new(2, 2);
    const double losses[6] = {1, 2, 4, 4.5, 1.25, 2.125}, b[3] = {1.25, 2.125, 4.5};
    json_t *result = compared(s, 6, losses, (const int64_t[]){1, 2, 3, 3, 1, 2}, 3);
    ck_assert_str_eq(json_string_value(json_object_get(result, "over")), "runs paired by seed");
    ck_assert(json_is_null(json_object_get(result, "unpaired")));
    hw_difference d = hw_runs_difference(losses, 3, b, 3, true);
    const json_t *loss = figure(result, "loss");
    near(number(loss, "difference"), d.value);
    near(number(loss, "low"), d.low);
    near(number(loss, "p_raw"), d.p);
    ck_assert_double_eq(number(figure(result, "cka"), "mean"), 0.5);
    ck_assert_double_eq(number(figure(result, "heads_with_role"), "against"), 1);
    ck_assert_double_eq(number(figure(result, "kinds_of_roles"), "difference"), 0);
    json_decref(result);
    /* With other seeds they are not, nor where one stands twice. */
    static const int64_t others[2][6] = {{1, 2, 3, 3, 1, 4}, {1, 1, 3, 3, 1, 1}};
    for (int i = 0; i < 2; i++) {
        result = compared(s, 6, losses, others[i], 3);
        ck_assert_str_eq(json_string_value(json_object_get(result, "over")), "runs");
        ck_assert_str_eq(json_string_value(json_object_get(result, "unpaired")),
                         i ? "two runs of one group have the seed 1"
                           : "m with the seed 2 has no partner in the other group");
        near(number(figure(result, "loss"), "p_raw"), hw_runs_difference(losses, 3, b, 3, false).p);
        json_decref(result);
    }
    /* One group has a mean and its interval. */
    result = compared(s, 4, losses, (const int64_t[]){1, 2, 3, 4}, 0);
    near(number(figure(result, "loss"), "low"), hw_runs_mean(losses, 4).low);
    ck_assert(isnan(number(figure(result, "loss"), "difference")) && isnan(number(figure(result, "loss"), "p")));
    json_decref(result);
    toy_study_free(s);
}
END_TEST

/* ---- the command ------------------------------------------------------------------------------------------------- */

static hw_arena *arena;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
    static const char *const sets[] = {"train", "valid", "test"};
    for (int i = 0; i < 3; i++) {
        const char *text = "";
        for (int k = 0; k < 12; k++)
            text = hw_arena_string(arena, "%s%c %c %c .\n", text, 'a' + (k + i) % 5, 'a' + k % 3, 'a' + k % 5);
        scratch_text(hw_arena_string(arena, "%s.en", sets[i]), text);
        scratch_text(hw_arena_string(arena, "%s.fr", sets[i]), text);
    }
}

static const char *make_model(const char *name, uint64_t seed, const char *words, const char *settings)
{
    const hw_config *c = tiny_config(arena, hw_arena_string(arena,
                                                            "text.shared_vocabulary=true;data.dir=%s;data.train=train;"
                                                            "data.source=en;data.target=fr;training.seed=%d;%s",
                                                            scratch_path("."), (int)seed, settings));
    hw_bundle *b = tiny_bundle(arena, c, words, NULL);
    hw_parameters_initialise(b->network->parameters, seed);
    const char *directory = hw_arena_string(arena, "%s", scratch_path(name));
    save_bundle(b, directory);
    hw_bundle_free(b);
    return directory;
}

static void expect(const outcome *o, int status, const char *out, const char *message)
{
    ck_assert_msg(o->status == status && strstr(o->out, out) && strstr(o->err, message), "status %d: %s%s", o->status,
                  o->out, o->err);
}

START_TEST(command)
{
    const char *a = make_model("a", 1, "a b c d e .", ""), *b = make_model("b", 2, "a b c d e .", "");
    const char *c = make_model("c", 3, "a b c d e .", "model.heads=1"); /* fewer heads than the first has */
    const outcome *o = RUN("heads", "compare", a, b, "--json", "-q");
    expect(o, 0, "\"over\": \"sentences\"", "");
    json_t *result = json_loads(o->out, 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "heads")), 12);
    ck_assert_uint_eq(json_array_size(json_object_get(result, "models")), 2);
    const json_t *loss = figure(result, "loss");
    ck_assert_double_eq_tol(number(loss, "against") - number(loss, "mean"), number(loss, "difference"), 1e-12);
    ck_assert(number(loss, "low") <= number(loss, "difference") && number(loss, "difference") <= number(loss, "high"));
    json_decref(result);
    expect(RUN("heads", "compare", a, a, "--matches", "--tsv", "-q"), 0, "encoder.1.self.1\t", "");
    expect(RUN("heads", "compare", a, b, "-q"), 0, "intervals over sentences; p after Holm", "");
    expect(RUN("heads", "compare", a, b, c, "-q"), 0, "mean of 3", "");
    expect(RUN("heads", "compare", a, c, "--within", "layer", "--matches", "-q"), 0, "encoder.0.self.1", "");
    o = RUN("heads", "compare", a, b, "--against", b, "--against", a, "--tsv", "-q");
    expect(o, 0, "figure\tmean\tagainst\tdifference\tlow\thigh\tp\tp_raw\nloss\t", "");
    ck_assert_ptr_nonnull(strstr(o->out, "\nexact_match\t"));
    expect(RUN("heads", "compare", a, a, "-q"), 0, "a is compared with itself.", "");
    expect(RUN("heads", "compare", a), 2, "", "one model is nothing to compare");
    expect(RUN("heads", "compare", a, scratch_path("none")), 1, "", "none");
}
END_TEST

/* Each call, and what its text must say of intervals, without line breaks. */
static const char *flat(const char *text)
{
    char *copy = hw_arena_string(arena, "%s", text);
    for (char *c = copy; *c; c++)
        if (*c == '\n') *c = ' ';
    return copy;
}

START_TEST(the_text_says_what_was_compared)
{
    const char *a = make_model("a", 1, "a b c d e .", ""), *b = make_model("b", 2, "a b c d e .", "");
    const char *c = make_model("c", 3, "a b c d e .", ""), *d = make_model("d", 4, "a b c d e .", "");
    const char *out = flat(RUN("heads", "compare", a, b, "-q")->out);
    ck_assert_ptr_nonnull(strstr(out, "tells these two models apart, not two ways of training"));
    out = flat(RUN("heads", "compare", a, b, c, "-q")->out);
    ck_assert_ptr_nonnull(strstr(out, "The models are 3 runs of one kind"));
    ck_assert_ptr_null(strstr(out, "these two models"));
    out = flat(RUN("heads", "compare", a, b, c, "--against", d, "-q")->out);
    ck_assert_ptr_null(strstr(out, "these two models"));
    ck_assert_ptr_nonnull(strstr(out, "two groups of runs, 3 and 1, the second minus the first"));
    ck_assert_ptr_nonnull(strstr(out, "since one group has 3 runs, the other 1"));
    ck_assert_ptr_nonnull(strstr(out, "A group of one run does not tell how runs spread"));
    out = flat(RUN("heads", "compare", a, b, "--against", c, "--against", d, "-q")->out);
    ck_assert_ptr_nonnull(strstr(out, "a with the seed 1 has no partner in the other group"));
    out = flat(RUN("heads", "compare", a, b, "--against", b, "--against", a, "-q")->out);
    ck_assert_ptr_nonnull(strstr(out, "each run with that of its seed"));
    /* The same run twice in a group would count for two: under its own name, or as a copy. */
    const char *copy = make_model("copy", 1, "a b c d e .", "");
    expect(RUN("heads", "compare", a, b, a), 1, "",
           "are the same run: their weights are the same; it would count for two");
    expect(RUN("heads", "compare", b, "--against", a, "--against", copy), 1, "", "are the same run");
    out = flat(RUN("heads", "compare", a, copy, "-q")->out);
    ck_assert_ptr_nonnull(strstr(out, "copy has the weights of "));
    json_t *result = json_loads(RUN("heads", "compare", a, copy, "--json", "-q")->out, 0, NULL);
    const json_t *models = json_object_get(result, "models");
    ck_assert(json_is_null(json_object_get(json_array_get(models, 0), "same_as")));
    ck_assert_str_eq(json_string_value(json_object_get(json_array_get(models, 1), "same_as")), a);
    json_decref(result);
}
END_TEST

/* With one head a layer there is no pair of heads, so their distance and overlap are not 0 but none. */
START_TEST(one_head_a_layer)
{
    const char *a = make_model("a", 1, "a b c d e .", "model.heads=1"),
               *b = make_model("b", 2, "a b c d e .", "model.heads=1");
    const char *c = make_model("c", 3, "a b c d e .", "");
    static const char *const keys[] = {"mean", "against", "difference", "low", "high", "p", "p_raw"};
    static const char *const none[] = {"js", "position", "output", "cka", "effective_heads"};
    for (int i = 0; i < 2; i++) {
        json_t *result = json_loads(RUN("heads", "compare", a, i ? c : b, "--json", "-q")->out, 0, NULL);
        for (int f = 0; f < 5; f++)
            for (int k = 0; k < 7; k++) {
                bool there = i && k == 1; /* the second model has two heads */
                ck_assert_msg(json_is_null(json_object_get(figure(result, none[f]), keys[k])) != there, "%s of %s",
                              keys[k], none[f]);
            }
        ck_assert(json_is_number(json_object_get(figure(result, "loss"), "p")));
        json_decref(result);
    }
    const outcome *o = RUN("heads", "compare", a, b, "-q");
    expect(o, 0, "JS distance in a layer ", "");
    ck_assert_ptr_nonnull(strstr(strstr(o->out, "JS distance in a layer"), " -  "));
}
END_TEST

/* Four sentences cannot tell more than 1 in 8. */
START_TEST(few_sentences)
{
    const char *a = make_model("a", 1, "a b c d e .", ""), *b = make_model("b", 2, "a b c d e .", "");
    scratch_text("few.en", "a b\nb c\nc d\nd e .\n");
    scratch_text("few.fr", "a b\nb c\nc d\nd e .\n");
    json_t *result = json_loads(RUN("heads", "compare", a, b, "--data", "few", "--json", "-q")->out, 0, NULL), *o;
    size_t i;
    json_array_foreach(json_object_get(result, "figures"), i, o)
    {
        if (!json_is_number(json_object_get(o, "p_raw"))) continue;
        ck_assert_double_ge(number(o, "p_raw"), 0.125);
        ck_assert(number(o, "low") <= 0 && number(o, "high") >= 0);
        ck_assert(json_is_false(json_object_get(o, "p_is_bound")));
    }
    ck_assert(json_is_true(json_object_get(result, "rough_intervals")));
    json_decref(result);
    expect(RUN("heads", "compare", a, b, "--data", "few", "-q"), 0, "Intervals from 4 sentences are rough", "");
}
END_TEST

START_TEST(other_data_is_refused)
{
    static const char advice[] = "heads can be compared only where data and vocabulary are the same";
    const char *a = make_model("a", 1, "a b c d e .", "");
    const char *message = hw_arena_string(arena, "headwise: %s and ", a);
    expect(RUN("heads", "compare", a, make_model("words", 1, "a b c d x .", "")), 1, "", message);
    expect(RUN("heads", "compare", a, make_model("languages", 1, "a b c d e .", "data.target=de")), 1, "",
           "writes fr, ");
    expect(RUN("heads", "compare", a, make_model("cut", 1, "a b c d e .", "text.joiner=++")), 1, "",
           "text is not cut alike");
    scratch_text("other.en", "a b\n");
    scratch_text("other.fr", "a b\n");
    const char *other = make_model("other", 1, "a b c d e .", "data.train=other");
    message = hw_arena_string(arena,
                              "headwise: %s and %s were trained on different data: %s/train.en and %s/other.en "
                              "differ; %s",
                              a, other, scratch_path("."), scratch_path("."), advice);
    expect(RUN("heads", "compare", a, other), 1, "", message);
    /* Where the files are gone, the directories still tell. */
    remove(scratch_path("other.en"));
    expect(RUN("heads", "compare", a, other, "-q"), 0, "loss", "");
    scratch_text("a/corpus.json", "{\"pairs\": 12}");
    scratch_text("other/corpus.json", "{\"pairs\": 1}");
    expect(RUN("heads", "compare", a, other), 1, "", "other/corpus.json differ; heads can be compared only where");
}
END_TEST

Suite *test_heads_compare(void);
Suite *test_heads_compare(void)
{
    Suite *suite = suite_create("heads_compare");
    TCase *t = tcase_create("figures");
    tcase_add_test(t, student_equals_scipy);
    tcase_add_test(t, means_of_runs_equal_scipy);
    tcase_add_test(t, runs_that_tell_nothing);
    tcase_add_test(t, assignments_equal_scipy);
    tcase_add_test(t, infinite_costs_are_never_taken);
    tcase_add_test(t, distances_are_those_of_diversity);
    tcase_add_test(t, threads_change_no_digit);
    tcase_add_test(t, heads_that_changed_places_are_found);
    tcase_add_test(t, runs_are_paired_by_seed);
    suite_add_tcase(suite, t);
    t = tcase_create("command");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, command);
    tcase_add_test(t, the_text_says_what_was_compared);
    tcase_add_test(t, one_head_a_layer);
    tcase_add_test(t, few_sentences);
    tcase_add_test(t, other_data_is_refused);
    suite_add_tcase(suite, t);
    return suite;
}
