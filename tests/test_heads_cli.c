/* headwise heads from the command line: what its verbs print, what they keep, and how bad input ends. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_model.h"
#include "support_toy.h"

#include <headwise/heads.h>

static hw_arena *arena;
static const char *model;

/* ---- data and models --------------------------------------------------------------------------------------------- */

/* A model directory with random weights and the toy's words. */
static const char *make_model(const char *name, const char *settings)
{
    hw_error err = {""};
    const char *directory = hw_arena_string(arena, "%s", scratch_path(name));
    hw_config *config = tiny_config(arena, hw_arena_string(arena,
                                                           "data.dir=%s;data.source=en;data.target=fr;data.train=train;"
                                                           "text.shared_vocabulary=true;%s",
                                                           scratch_path("."), settings));
    hw_texts texts;
    ck_assert_msg(hw_texts_new(config, arena, &texts, &err), "%s", err.message);
    hw_bundle *b = hw_bundle_new(config, &texts, false, &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_parameters_initialise(b->network->parameters, 3);
    save_bundle(b, directory);
    hw_bundle_free(b);
    return directory;
}

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
    toy_copy("valid", "valid", 40, true);
    toy_copy("test", "test", 30, true);
    toy_copy("train", "train", 200, false);
    model = make_model("model", "");
}
static json_t *json_of(const outcome *o)
{
    ck_assert_msg(o->status == 0, "%s", o->err);
    json_t *json = json_loads(o->out, 0, NULL);
    ck_assert_msg(json != NULL, "no JSON: %.200s", o->out);
    return json;
}

/* Results are too long for what a test keeps of standard output; the file has them. */
static json_t *kept(const char *name)
{
    json_t *json = json_load_file(scratch_path(hw_arena_string(arena, "model/heads/%s.json", name)), 0, NULL);
    ck_assert_msg(json != NULL, "heads/%s.json is not there", name);
    return json;
}

static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

static void expect_failure(const outcome *o, int status, const char *message)
{
    ck_assert_msg(o->status == status && strstr(o->err, message), "status %d: %s", o->status, o->err);
}

/* ---- roles ------------------------------------------------------------------------------------------------------- */

START_TEST(roles_keep_the_contract)
{
    ck_assert_int_eq(RUN("heads", "roles", model, "--quiet")->status, 0);
    json_t *all = kept("roles-test");
    const json_t *heads = json_object_get(all, "heads");
    ck_assert_uint_eq(json_array_size(heads), 6 * 2);
    ck_assert_str_eq(text(json_array_get(heads, 0), "name"), "encoder.0.self.0");
    int aligned = 0, predicted = 0, pieces = 0, tests = 0;
    for (size_t h = 0; h < json_array_size(heads); h++) {
        const json_t *head = json_array_get(heads, h), *roles = json_object_get(head, "roles");
        bool encoder = !strncmp(text(head, "name"), "encoder", 7), cross = strstr(text(head, "name"), "cross");
        for (size_t i = 0; i < json_array_size(roles); i++, tests++) {
            const json_t *r = json_array_get(roles, i);
            static const char *const numbers[] = {"score", "baseline", "low", "high", "p", "control"};
            for (size_t k = 0; k < 6; k++)
                ck_assert_msg(json_is_real(json_object_get(r, numbers[k])), "%s of %s", numbers[k], text(r, "role"));
            ck_assert(number(r, "score") >= 0 && number(r, "score") <= 1 && number(r, "p") >= 0 && number(r, "p") <= 1);
            ck_assert(number(r, "low") <= number(r, "score") && number(r, "score") <= number(r, "high"));
            ck_assert_double_ge(number(r, "p"), number(r, "p_raw"));
            ck_assert_int_eq(encoder, !json_object_get(r, "step"));
            ck_assert_int_eq(!strcmp(text(r, "role"), "aligned") && !cross, 0);
            aligned += !strcmp(text(r, "role"), "aligned");
            predicted += text(r, "step") && !strcmp(text(r, "step"), "predicted");
            pieces += !strcmp(text(r, "subset"), "pieces");
        }
    }
    ck_assert_int_eq(aligned, 4 * 2);
    ck_assert_int_gt(predicted, aligned);
    ck_assert_int_gt(pieces, 0);
    ck_assert_int_eq(tests, (int)number(all, "tests"));
    json_decref(all);
}
END_TEST

START_TEST(results_are_kept_until_something_changes)
{
    ck_assert_int_eq(RUN("heads", "roles", model, "--quiet")->status, 0);
    json_t *first = kept("roles-test");
    json_object_set_new(first, "sentences", json_integer(12345)); /* to tell a kept result from a new one */
    hw_study_seal(first);
    const char *path = scratch_path("model/heads/roles-test.json");
    json_dump_file(first, path, 0);
    ck_assert_ptr_nonnull(strstr(RUN("heads", "roles", model)->out, "12345 sentences"));
    ck_assert_ptr_null(strstr(RUN("heads", "roles", model, "--seed", "2")->out, "12345 sentences"));
    json_dump_file(first, path, 0);
    scratch_text("model/shared.model", "another way to cut words");
    ck_assert_ptr_null(strstr(RUN("heads", "roles", model)->out, "12345 sentences"));
    json_dump_file(first, path, 0);
    toy_copy("test", "test", 29, true);
    ck_assert_ptr_nonnull(strstr(RUN("heads", "roles", model)->out, "29 sentences"));
    json_decref(first);
}
END_TEST

/* Writes a number into a kept result, to tell it from a new one. */
static void mark(const char *name, int number)
{
    json_t *all = kept(name);
    json_object_set_new(all, "sentences", json_integer(number));
    hw_study_seal(all);
    ck_assert_int_eq(json_dump_file(all, scratch_path(hw_arena_string(arena, "model/heads/%s.json", name)), 0), 0);
    json_decref(all);
}

/* A part is kept in the place of the whole only as long as there is none that holds. */
START_TEST(a_part_does_not_replace_the_whole)
{
    toy_copy("test", "few", 3, true);
    static const char *const calls[][4] = {{"ablate", "--loss-only", NULL, "ablate.loss-few"},
                                           {"ablate", "--mode", "zero", "ablate.zero-few"},
                                           {"ablate", "--groups=layers", "--loss-only", "ablate-layers.loss-few"}};
    for (int i = 0; i < 3; i++) {
        const char *const *c = calls[i];
        const char *whole = i < 2 ? "ablate-few" : "ablate-layers-few", *groups = i < 2 ? "--groups=heads" : c[1];
        const char *of_whole[] = {"headwise", "heads", c[0], model, "--data", "few", "-q", groups, NULL};
        const char *of_part[] = {"headwise", "heads", c[0], model, "--data", "few", "-q", c[1], c[2], NULL};
        if (i == 0) {
            ck_assert_int_eq(run_program(of_part)->status, 0);
            json_t *part = kept(whole);
            ck_assert_str_eq(text(part, "part"), "loss");
            json_decref(part);
        }
        ck_assert_int_eq(run_program(of_whole)->status, 0);
        mark(whole, 12345);
        ck_assert_ptr_null(strstr(run_program(of_part)->out, "12345 sentences"));
        mark(c[3], 777);
        ck_assert_ptr_nonnull(strstr(run_program(of_part)->out, "777 sentences"));
        ck_assert_ptr_nonnull(strstr(run_program(of_whole)->out, "12345 sentences"));
    }
    toy_copy("test", "few", 2, true); /* now the whole does not hold any more */
    ck_assert_int_eq(RUN("heads", "ablate", model, "--data", "few", "--loss-only", "-q")->status, 0);
    json_t *part = kept("ablate-few");
    ck_assert_str_eq(text(part, "part"), "loss");
    json_decref(part);
}
END_TEST

START_TEST(nothing_drawn_needs_no_seed)
{
    static const char *const verbs[] = {"stats", "diversity"};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(RUN("heads", verbs[i], model, "-q")->status, 0);
        mark(hw_arena_string(arena, "%s-test", verbs[i]), 12345);
        ck_assert_ptr_nonnull(strstr(RUN("heads", verbs[i], model, "--seed", "2")->out, "12345 sentences"));
    }
    json_t *all = json_of(RUN("heads", "diversity", model, "--seed", "9", "--json"));
    ck_assert_int_eq((int)number(all, "seed"), 9);
    json_decref(all);
}
END_TEST

START_TEST(goes_on_where_nothing_can_be_kept)
{
    scratch_text("model/heads", "a file where the directory would be");
    const outcome *o = RUN("heads", "roles", model);
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->out, "encoder.0.self.0"));
    ck_assert_ptr_nonnull(strstr(o->err, "not kept"));
}
END_TEST

START_TEST(no_gold)
{
    toy_copy("test", "plain", 10, false);
    ck_assert_int_eq(RUN("heads", "roles", model, "--data", "plain", "--quiet")->status, 0);
    json_t *all = kept("roles-plain");
    const json_t *roles = json_object_get(json_array_get(json_object_get(all, "heads"), 0), "roles");
    for (size_t i = 0; i < json_array_size(roles); i++) {
        static const char *const free_of_gold[] = {"previous", "next", "self",  "rare",
                                                   "first",    "last", "punct", "broad"};
        bool known = false;
        for (size_t k = 0; k < 8; k++) known |= !strcmp(text(json_array_get(roles, i), "role"), free_of_gold[k]);
        ck_assert(known);
    }
    ck_assert_uint_ge(json_array_size(roles), 9);
    /* What was not tested is said, with the file that is missing. */
    const json_t *untested = json_object_get(all, "untested");
    static const char *const suffixes[] = {"encoder",         "plain.en.conllu", "decoder",
                                           "plain.fr.conllu", "cross",           "plain.align"};
    int of[3] = {0};
    for (size_t i = 0; i < json_array_size(untested); i++)
        for (int k = 0; k < 3; k++) {
            const json_t *u = json_array_get(untested, i);
            if (strcmp(text(u, "in"), suffixes[2 * k])) continue;
            ck_assert_str_eq(text(u, "missing"), scratch_path(hw_arena_string(arena, "./%s", suffixes[2 * k + 1])));
            of[k]++;
        }
    ck_assert(of[0] == 10 && of[1] == 10 && of[2] == 1);
    json_decref(all);
    const char *out = RUN("heads", "roles", model, "--data", "plain")->out;
    ck_assert_ptr_nonnull(strstr(out, "Not tested: bracket, quote,"));
    for (int k = 0; k < 3; k++) ck_assert_ptr_nonnull(strstr(out, suffixes[2 * k + 1]));
    ck_assert_ptr_null(strstr(RUN("heads", "roles", model)->out, "there is no /"));
    expect_failure(RUN("heads", "align", model, "--data", "plain"), 1, "plain.align: error rates need gold alignments");
}
END_TEST

/* Where every noun stands right behind its determiner, a fixed offset finds them all, and no head can have the role. */
START_TEST(baselines_that_are_too_strong)
{
    static const char tree[] = "1\tla\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tvache\t_\t_\t_\t_\t0\troot\t_\t_\n\n";
    scratch_text("alike.en", "the cow\nthe cow\n");
    scratch_text("alike.fr", "la vache\nla vache\n");
    scratch_text("alike.fr.conllu", hw_arena_string(arena, "%s%s", tree, tree));
    const char *single = make_model("single", "model.heads=1;model.encoder_layers=1;model.decoder_layers=1");
    const outcome *o = RUN("heads", "roles", single, "--data", "alike", "--all");
    ck_assert_ptr_nonnull(strstr(o->out, "baseline too strong (100 %)"));
    ck_assert_ptr_nonnull(strstr(o->out, "Baseline too strong: decoder det (fed) 100 % (at most 60 %); decoder det"));
    json_t *all = json_load_file(scratch_path("single/heads/roles-alike.json"), 0, NULL);
    const json_t *heads = json_object_get(all, "heads");
    int strong = 0;
    for (size_t h = 0; h < json_array_size(heads); h++) {
        const json_t *roles = json_object_get(json_array_get(heads, h), "roles");
        for (size_t i = 0; i < json_array_size(roles); i++) {
            const json_t *r = json_array_get(roles, i), *is = json_object_get(r, "too_strong");
            bool det = !strcmp(text(r, "role"), "det");
            strong += det;
            ck_assert(json_is_boolean(is) && json_is_true(is) == det);
            if (det) ck_assert(json_is_false(json_object_get(r, "found")) && number(r, "baseline") == 1);
        }
    }
    ck_assert_int_eq(strong, 2);
    /* There is gold for the decoder, but no case of most relations. */
    const json_t *untested = json_object_get(all, "untested");
    int without_case = 0;
    for (size_t i = 0; i < json_array_size(untested); i++) {
        const json_t *u = json_array_get(untested, i);
        if (strcmp(text(u, "in"), "decoder")) continue;
        without_case++;
        ck_assert(json_is_null(json_object_get(u, "missing")) && strcmp(text(u, "role"), "det"));
        ck_assert_ptr_nonnull(strstr(text(u, "why"), "there is no case of it in "));
    }
    ck_assert_int_ge(without_case, 8);
    json_decref(all);
}
END_TEST

/* What is chosen on the sentences that it is scored on: the validation set by its name, a copy of it, a part of it. */
START_TEST(chosen_on_what_is_scored)
{
    toy_copy("valid", "copy", 40, true);
    toy_copy("valid", "part", 10, true);
    static const struct {
        const char *verb, *data;
        int shared;
    } cases[] = {{"roles", "valid", 40}, {"roles", "copy", 40}, {"roles", "part", 10},
                 {"roles", "test", 0},   {"align", "copy", 40}, {"align", "test", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const outcome *o = RUN("heads", cases[i].verb, model, "--data", cases[i].data);
        ck_assert_msg(o->status == 0, "%s", o->err);
        ck_assert_msg(!strstr(o->out, "NOTE: ") == !cases[i].shared, "%s on %s", cases[i].verb, cases[i].data);
        json_t *all = kept(hw_arena_string(arena, "%s-%s", cases[i].verb, cases[i].data));
        const json_t *chosen = json_object_get(all, "chosen_on_scored");
        ck_assert(json_is_boolean(chosen) && json_is_true(chosen) == (cases[i].shared > 0));
        ck_assert_double_eq(number(all, "shared_sentences"), cases[i].shared);
        json_decref(all);
    }
    /* Said again of a result that was kept, and beside JSON and TSV. */
    ck_assert_ptr_nonnull(strstr(RUN("heads", "align", model, "--data", "copy", "--tsv")->err, "NOTE: 40 sentences"));
    ck_assert_ptr_nonnull(strstr(RUN("heads", "prune", model, "--data", "copy", "--tsv")->err, "NOTE: 40 sentences"));
    /* Probes halve such a set, whatever it is called. */
    const outcome *o = RUN("heads", "probe", model, "--data", "copy", "--label", "position", "--seeds", "1");
    ck_assert_msg(o->status == 0 && !strstr(o->out, "NOTE: "), "%s", o->err);
    double tested[2];
    for (int i = 0; i < 2; i++) {
        const char *data = i ? "valid" : "copy";
        RUN("heads", "probe", model, "--data", data, "--label", "position", "--seeds", "1", "-q");
        json_t *all = kept(hw_arena_string(arena, "probe-%s", data));
        tested[i] = number(json_array_get(json_object_get(all, "heads"), 0), "tested");
        json_decref(all);
    }
    ck_assert_double_eq(tested[0], tested[1]);
}
END_TEST

START_TEST(intervals_from_few_sentences)
{
    toy_copy("test", "few", 10, true);
    ck_assert_ptr_nonnull(
        strstr(RUN("heads", "align", model, "--data", "few")->out, "Intervals from 10 sentences are rough"));
    ck_assert_ptr_null(strstr(RUN("heads", "align", model)->out, "are rough"));
    json_t *all = kept("align-few");
    ck_assert(json_is_true(json_object_get(all, "rough_intervals")));
    json_decref(all);
    all = kept("align-test");
    ck_assert(json_is_false(json_object_get(all, "rough_intervals")));
    json_decref(all);
    ck_assert_ptr_null(strstr(RUN("heads", "stats", model, "--data", "few")->out, "are rough")); /* it has none */
}
END_TEST

/* "nan" or "inf" as a figure. */
static bool has_no_number(const char *out)
{
    for (const char *at = out; *at; at++)
        if ((!strncmp(at, "nan", 3) || !strncmp(at, "inf", 3)) && (at == out || strchr(" \t[-+", at[-1])) &&
            strchr(" \t\n],%)", at[3]))
            return true;
    return false;
}

/* A model with one head an attention, on sentences of one word: what there is not is "-", in every verb. */
START_TEST(what_is_no_number_is_not_printed)
{
    const char *single = make_model("single", "model.heads=1;model.encoder_layers=1;model.decoder_layers=1");
    const char *other = make_model("other", "model.heads=1;model.encoder_layers=1;model.decoder_layers=1");
    scratch_text("short.en", "the\n");
    scratch_text("short.fr", "le\n");
    scratch_text("short.align", "0-0\n");
    static const char *const verbs[][2] = {{"stats", "--norms"},   {"roles", "--all"},   {"align", "-q"},
                                           {"ablate", "-q"},       {"importance", "-q"}, {"diversity", "-q"},
                                           {"diversity", "--map"}, {"prune", "-q"},      {"probe", "-q"}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        for (int k = 0; k < 2; k++) {
            const outcome *o = RUN("heads", verbs[i][0], single, verbs[i][1], "--data", k ? "short" : "test");
            ck_assert_msg(o->status == 0 || !strcmp(verbs[i][0], "probe"), "%s: %s", verbs[i][0], o->err);
            ck_assert_msg(!has_no_number(o->out), "%s: %s", verbs[i][0], o->out);
        }
    const outcome *o = RUN("heads", "compare", single, other, "--data", "short", "-q");
    ck_assert_msg(o->status == 0 && !has_no_number(o->out), "%s%s", o->out, o->err);
    o = RUN("heads", "importance", single, "-q");
    ck_assert_ptr_nonnull(strstr(o->out, "a layer     zero                     -  -"));
    json_t *all = json_load_file(scratch_path("single/heads/importance-test.json"), 0, NULL);
    const json_t *checks = json_object_get(all, "correlations");
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *c = json_array_get(checks, i);
        if (json_is_true(json_object_get(c, "normalised")))
            ck_assert(json_is_null(json_object_get(c, "rho")) && json_is_null(json_object_get(c, "low")));
    }
    json_decref(all);
}
END_TEST

START_TEST(one_sentence)
{
    toy_copy("test", "one", 1, true);
    const outcome *o = RUN("heads", "roles", model, "--data", "one", "--all");
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->out, "one sentence"));
    ck_assert_ptr_nonnull(strstr(o->out, "one, 1 sentence\n"));
    ck_assert_ptr_nonnull(strstr(o->out, "So few sentences can show no role"));
    json_t *all = kept("roles-one");
    const json_t *r = json_array_get(json_object_get(json_array_get(json_object_get(all, "heads"), 0), "roles"), 0);
    ck_assert(json_is_null(json_object_get(r, "low")) && json_is_null(json_object_get(r, "high")));
    ck_assert_double_eq(number(r, "p"), 1);
    json_decref(all);
    ck_assert_ptr_nonnull(strstr(RUN("heads", "align", model, "--data", "one")->out, "one sentence"));
}
END_TEST

START_TEST(sentences_of_one_word)
{
    scratch_text("short.en", "the\ncow\n\n");
    scratch_text("short.fr", "le\nvache\n\n");
    ck_assert_int_eq(RUN("heads", "roles", model, "--data", "short")->status, 0);
    ck_assert_int_eq(RUN("heads", "stats", model, "--data", "short")->status, 0);
}
END_TEST

/* One head an attention; and a model without encoder layers of its own mind: one layer. */
START_TEST(one_head)
{
    const char *single = make_model("single", "model.heads=1;model.encoder_layers=1;model.decoder_layers=1");
    const outcome *o = RUN("heads", "roles", single);
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->out, "decoder.0.cross.0"));
    ck_assert_int_eq(RUN("heads", "stats", single)->status, 0);
    ck_assert_int_eq(RUN("heads", "align", single)->status, 0);
}
END_TEST

START_TEST(without_a_validation_set)
{
    ck_assert_int_eq(remove(scratch_path("valid.en")), 0);
    const outcome *o = RUN("heads", "roles", model);
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->err, "chosen on the test set itself"));
}
END_TEST

START_TEST(words_that_the_model_does_not_know)
{
    static const char unknown[] = "75 % of the tokens are unknown to the model";
    scratch_text("alien.en", "qa qo\nthe qu\n");
    scratch_text("alien.fr", "qa qo\nle qu\n");
    for (int i = 0; i < 2; i++) /* computed, and kept */
        ck_assert_ptr_nonnull(strstr(RUN("heads", "stats", model, "--data", "alien")->out, unknown));
    ck_assert_ptr_nonnull(strstr(RUN("heads", "stats", model, "--data", "alien", "--tsv")->err, unknown));
    json_t *all = kept("stats-alien");
    ck_assert_int_eq((int)number(all, "tokens"), 8);
    ck_assert_int_eq((int)number(all, "unknown_tokens"), 6);
    json_decref(all);
    ck_assert_ptr_null(strstr(RUN("heads", "stats", model)->out, "unknown"));
}
END_TEST

START_TEST(closed_heads_are_named)
{
    hw_error err;
    const char *closed = make_model("closed", "");
    ck_assert_ptr_null(strstr(RUN("heads", "stats", closed)->out, "closed, what"));
    hw_bundle *b = hw_bundle_load(closed, &err);
    ck_assert_msg(b != NULL, "%s", err.message);
    hw_tensor *w = hw_transformer_attention(b->network, 0)->output_weight;
    int64_t all = w->shape[1], width = all / b->network->options.heads;
    for (int64_t row = 0; row < w->shape[0]; row++)
        memset(w->data + row * all + width, 0, (size_t)width * sizeof *w->data); /* of the second head */
    save_bundle(b, closed);
    hw_bundle_free(b);
    static const char says[] = "closed, what they give being multiplied by zeros: encoder.0.self.1.";
    static const char *const verbs[] = {"stats", "roles", "diversity"};
    for (int i = 0; i < 3; i++) ck_assert_ptr_nonnull(strstr(RUN("heads", verbs[i], closed)->out, says));
    json_t *stats = json_load_file(scratch_path("closed/heads/stats-test.json"), 0, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(stats, "closed_heads")), 1);
    json_decref(stats);
    ck_assert_ptr_nonnull(strstr(RUN("heads", "compare", model, closed, "--tsv")->err, "closed encoder.0.self.1."));
}
END_TEST

/* ---- statistics, alignment, one head ----------------------------------------------------------------------------- */

START_TEST(statistics)
{
    const outcome *o = RUN("heads", "stats", model, "--tsv");
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_eq(strstr(o->out, "name\tstep\tunit\tmeasure\tqueries\tentropy\t"), o->out);
    json_t *all = kept("stats-test");
    const json_t *rows = json_object_get(all, "heads");
    ck_assert_uint_eq(json_array_size(rows), (4 + 2 * 8) * 4);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *offsets = json_object_get(row, "offsets");
        double sum = number(row, "argmax_special");
        for (size_t k = 0; k < json_array_size(offsets); k++) sum += json_number_value(json_array_get(offsets, k));
        ck_assert_double_eq_tol(sum, 1, 1e-9);
        ck_assert(number(row, "relative_entropy") >= 0 && number(row, "relative_entropy") <= 1 + 1e-6);
    }
    json_decref(all);
}
END_TEST

/* Offsets beyond 8 are many places, which together may hold more than any one does. */
START_TEST(the_commonest_place_is_one_place)
{
    static const struct {
        double beyond, third, special;
        const char *says;
    } cases[] = {{0.6, 0.3, 0.1, "+3 30 % (beyond 8: 60 %)"},
                 {0.1, 0.8, 0.1, "+3 80 %\n"},
                 {0.5, 0.1, 0.4, "<s> or </s> 40 % (beyond 8: 50 %)"}};
    ck_assert_int_eq(RUN("heads", "stats", model, "-q")->status, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *all = kept("stats-test"), *row = json_array_get(json_object_get(all, "heads"), 0);
        json_t *offsets = json_object_get(row, "offsets");
        for (size_t k = 0; k < json_array_size(offsets); k++) json_array_set_new(offsets, k, json_real(0));
        json_array_set_new(offsets, i % 2 ? 0 : 18, json_real(cases[i].beyond));
        json_array_set_new(offsets, 9 + 3, json_real(cases[i].third));
        json_object_set_new(row, "argmax_special", json_real(cases[i].special));
        hw_study_seal(all);
        json_dump_file(all, scratch_path("model/heads/stats-test.json"), 0);
        json_decref(all);
        const char *out = RUN("heads", "stats", model)->out, *line = strstr(out, "encoder.0.self.0");
        ck_assert_msg(line && strstr(line, cases[i].says), "%s", out);
    }
}
END_TEST

START_TEST(alignment)
{
    const char *path = scratch_path("found.align");
    const outcome *o = RUN("heads", "align", model, "--pharaoh", path, "--quiet");
    ck_assert_msg(o->status == 0, "%s", o->err);
    ck_assert_ptr_nonnull(strstr(o->out, "Best on the validation set: decoder."));
    size_t size, lines = 0;
    char *links = scratch_read(path, &size);
    for (size_t i = 0; i < size; i++) lines += links[i] == '\n';
    ck_assert_uint_eq(lines, 30);
    free(links);
    json_t *all = kept("align-test");
    ck_assert_uint_eq(json_array_size(json_object_get(all, "heads")), 4 * 2);
    ck_assert_uint_eq(json_array_size(json_object_get(all, "means")), 3 * 2);
    const json_t *model_1 = json_array_get(json_object_get(all, "baselines"), 1);
    ck_assert_str_eq(text(model_1, "name"), "ibm1");
    ck_assert_double_lt(number(model_1, "aer"), 0.5);
    json_decref(all);
    expect_failure(RUN("heads", "align", model, "--head", "cross.mean"), 2, "--head needs --pharaoh");
    expect_failure(RUN("heads", "align", model, "--head", "decoder.9.cross.0", "--pharaoh", path), 1, "no such head");
    toy_copy("test", "plain", 10, false);
    ck_assert_int_eq(RUN("heads", "align", model, "--data", "plain", "--head", "cross.mean", "--norms", "--step", "fed",
                         "--pharaoh", path)
                         ->status,
                     0);
    expect_failure(RUN("heads", "align", model, "--pharaoh", scratch_path("no/such/place")), 1, "no/such/place");
}
END_TEST

START_TEST(one_head_in_one_pair)
{
    json_t *shown = json_of(RUN("heads", "show", model, "decoder.1.cross.1", "--json", "--pair", "2", "--norms"));
    const json_t *rows = json_object_get(shown, "weights");
    ck_assert_uint_eq(json_array_size(rows), json_array_size(json_object_get(shown, "queries")));
    for (size_t q = 0; q < json_array_size(rows); q++) {
        double sum = 0;
        for (size_t k = 0; k < json_array_size(json_array_get(rows, q)); k++)
            sum += json_number_value(json_array_get(json_array_get(rows, q), k));
        ck_assert_double_eq_tol(sum, 1, 1e-5);
    }
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(shown, "queries"), 0)), "<s>");
    json_decref(shown);
    const outcome *o = RUN("heads", "show", model, "encoder.0.self.1", "--source", "the cow", "--target", "la vache");
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->out, "head 1"));
    o = RUN("heads", "show", model, "encoder.0.self.1", "--source", "the cow", "--tsv");
    ck_assert_ptr_nonnull(strstr(o->out, "\n1\t2\tcow\t</s>\t"));
    expect_failure(RUN("heads", "show", model, "encoder.0.self.7"), 1, "has no head encoder.0.self.7");
    expect_failure(RUN("heads", "show", model, "encoder.0.self.1", "--pair", "31"), 1, "has 30 lines");
    expect_failure(RUN("heads", "show", model, "encoder.0.self.1", "--target", "x"), 2, "--target needs --source");
}
END_TEST

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

START_TEST(wrong_use)
{
    expect_failure(RUN("heads"), 2, "which?");
    expect_failure(RUN("heads", "role", model), 2, "did you mean roles?");
    expect_failure(RUN("heads", "foo"), 2, "heads: there is no verb foo; headwise heads --help lists what there is");
    expect_failure(RUN("heads", "roles"), 2, "MODEL");
    expect_failure(RUN("heads", "roles", scratch_path("nothing")), 1, "nothing");
    expect_failure(RUN("heads", "roles", model, "--data", "nowhere"), 1, "nowhere.en");
    expect_failure(RUN("heads", "stats", model, "--data", "nowhere"), 1, "nowhere.en");
    expect_failure(RUN("heads", "roles", model, "--seed", "-1"), 2, "seed");
    scratch_text("test.align", "\n\n\n\n\n\n\n");
    expect_failure(RUN("heads", "roles", model), 1, "has 7 lines");
    /* another vocabulary: the embedding does not fit it */
    scratch_text("model/shared.vocab", "<unk>\n<s>\n</s>\na\n");
    expect_failure(RUN("heads", "roles", model), 1, "shared.vocab");
}
END_TEST

Suite *test_heads_cli(void);
Suite *test_heads_cli(void)
{
    Suite *suite = suite_create("heads_cli");
    TCase *t = tcase_create("command line");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, roles_keep_the_contract);
    tcase_add_test(t, results_are_kept_until_something_changes);
    tcase_add_test(t, a_part_does_not_replace_the_whole);
    tcase_add_test(t, nothing_drawn_needs_no_seed);
    tcase_add_test(t, goes_on_where_nothing_can_be_kept);
    tcase_add_test(t, no_gold);
    tcase_add_test(t, baselines_that_are_too_strong);
    tcase_add_test(t, chosen_on_what_is_scored);
    tcase_add_test(t, intervals_from_few_sentences);
    tcase_add_test(t, what_is_no_number_is_not_printed);
    tcase_add_test(t, one_sentence);
    tcase_add_test(t, sentences_of_one_word);
    tcase_add_test(t, one_head);
    tcase_add_test(t, without_a_validation_set);
    tcase_add_test(t, words_that_the_model_does_not_know);
    tcase_add_test(t, closed_heads_are_named);
    tcase_add_test(t, statistics);
    tcase_add_test(t, the_commonest_place_is_one_place);
    tcase_add_test(t, alignment);
    tcase_add_test(t, one_head_in_one_pair);
    tcase_add_test(t, wrong_use);
    suite_add_tcase(suite, t);
    return suite;
}
