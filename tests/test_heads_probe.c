/* Probes: against NumPy's figures (tests/fixtures/heads/probe.json); labels by hand; planted labels are found and
 * shuffled ones are not; and headwise heads probe. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_model.h"

#include <headwise/heads.h>

enum { SENTENCES = 60 };

static hw_arena *arena;
static hw_bundle *bundle;
static hw_study_set set[2]; /* to learn from, to test on */
static const char *model;

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Sentences whose target is the source, with gold: a word's head is the one before it, brackets and quotes match; the
 * label upos is the word's first letter in capitals. */
static void write_set(const char *prefix, uint64_t seed)
{
    FILE *out[4];
    static const char *const suffixes[] = {"en", "fr", "en.conllu", "fr.conllu"};
    static const char *const words[] = {"ba", "be", "bi", "da", "de", "di", "do", "bo"};
    for (int k = 0; k < 4; k++) out[k] = fopen(scratch_path(hw_arena_string(arena, "%s.%s", prefix, suffixes[k])), "w");
    hw_random random = hw_random_new(seed, 0);
    for (int i = 0; i < SENTENCES; i++) {
        int open = (int)hw_random_below(&random, 3), close = open + 2 + (int)hw_random_below(&random, 3);
        const char *marks = hw_random_below(&random, 2) ? "()" : "\"\"";
        for (int w = 0; w < 8; w++) {
            const char *word = words[hw_random_below(&random, 8)];
            char form[8], misc[24] = "_", feats[48];
            snprintf(form, sizeof form, "%s", word);
            bool mark = w == open || w == close;
            if (mark) {
                snprintf(form, sizeof form, "%c", marks[w == close]);
                snprintf(misc, sizeof misc, "Match=%d", (w == open ? close : open) + 1);
            }
            snprintf(feats, sizeof feats, "Gender=%s|Number=%s", word[1] == 'a' ? "Fem" : "Masc",
                     word[1] == 'i' ? "Plur" : "Sing");
            for (int k = 0; k < 4; k++)
                if (k < 2)
                    fprintf(out[k], "%s%c", form, w < 7 ? ' ' : '\n');
                else
                    fprintf(out[k], "%d\t%s\t_\t%s\t_\t%s\t%d\t%s\t_\t%s\n%s", w + 1, form,
                            mark           ? "PUNCT"
                            : *word == 'b' ? "B"
                                           : "D",
                            mark ? "_" : feats, w, w ? "amod" : "root", misc, w < 7 ? "" : "\n");
        }
    }
    for (int k = 0; k < 4; k++) fclose(out[k]);
}

static void begin(void)
{
    hw_error err = {""};
    scratch_begin_in_memory();
    arena = scratch_arena();
    write_set("valid", 1);
    write_set("test", 2);
    const hw_config *c = tiny_config(arena, hw_arena_string(arena,
                                                            "text.shared_vocabulary=true;data.dir=%s;"
                                                            "data.source=en;data.target=fr",
                                                            scratch_path(".")));
    bundle = tiny_bundle(arena, c, "ba be bi da de di do bo ( ) \"", NULL);
    model = hw_arena_string(arena, "%s", scratch_path("model"));
    save_bundle(bundle, model);
    const char *prefixes[] = {"valid", "test"};
    for (int k = 0; k < 2; k++)
        ck_assert_msg(hw_study_set_load(arena, bundle, c->data.dir, prefixes[k], &set[k], &err), "%s", err.message);
}

static void end(void)
{
    hw_bundle_free(bundle);
    scratch_end();
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static hw_probe_data data_of(const json_t *o, const char *x, const char *labels)
{
    const json_t *list = json_object_get(o, x), *of = json_object_get(o, labels);
    hw_probe_data d = {.count = (int64_t)json_array_size(of),
                       .width = (int)json_integer_value(json_object_get(o, "width")),
                       .classes = (int)json_integer_value(json_object_get(o, "classes"))};
    double *numbers = hw_arena_alloc(arena, json_array_size(list) * sizeof *numbers);
    int32_t *classes = hw_arena_alloc(arena, (size_t)d.count * sizeof *classes);
    for (size_t i = 0; i < json_array_size(list); i++) numbers[i] = json_number_value(json_array_get(list, i));
    for (int64_t i = 0; i < d.count; i++) classes[i] = (int32_t)json_integer_value(json_array_get(of, (size_t)i));
    d.x = numbers;
    d.label = classes;
    return d;
}

START_TEST(against_numpy)
{
    json_error_t error;
    json_t *all = json_load_file("tests/fixtures/heads/probe.json", 0, &error);
    ck_assert_msg(all != NULL, "%s", error.text);
    ck_assert_uint_eq(json_array_size(all), 3);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *o = json_array_get(all, i);
        hw_probe_data learn = data_of(o, "learn", "learn_labels"), test = data_of(o, "test", "test_labels");
        double bits = 0, want = json_number_value(json_object_get(o, "bits"));
        const hw_probe *p = hw_probe_train(&learn, 0, 1, arena);
        ck_assert_int_eq(hw_probe_test(p, &test, NULL, &bits), json_integer_value(json_object_get(o, "right")));
        ck_assert_double_eq_tol(bits, want, 1e-6 * want);
        want = json_number_value(json_object_get(o, "code_length"));
        ck_assert_double_eq_tol(hw_probe_code_length(&learn, 0, 1), want, 1e-6 * want);
        double share = (double)hw_probe_test(p, &test, NULL, NULL) / (double)test.count;
        learn = data_of(o, "learn", "control_learn"), test = data_of(o, "test", "control_test");
        p = hw_probe_train(&learn, 0, 1, arena);
        double control = (double)hw_probe_test(p, &test, NULL, NULL) / (double)test.count;
        ck_assert_double_eq_tol(share - control, json_number_value(json_object_get(o, "selectivity")), 1e-6);
    }
    json_decref(all);
}
END_TEST

/* Exclusive or is beyond a linear probe and within one with a hidden layer; shuffled labels are beyond both, and cost
 * more than a uniform code. */
START_TEST(planted_and_shuffled_labels)
{
    enum { N = 400 };
    double x[N][2];
    int32_t linear[N], crossed[N], shuffled[N];
    hw_random random = hw_random_new(5, 0);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 2; k++) x[i][k] = hw_random_normal(&random);
        linear[i] = x[i][0] > x[i][1];
        crossed[i] = (x[i][0] > 0) != (x[i][1] > 0);
        shuffled[i] = (int32_t)hw_random_below(&random, 2);
    }
    const struct {
        const int32_t *label;
        int hidden;
        double low, high;
    } cases[] = {{linear, 0, 0.95, 1},
                 {crossed, 0, 0.3, 0.7},
                 {crossed, 16, 0.9, 1},
                 {shuffled, 0, 0.35, 0.65},
                 {shuffled, 16, 0.35, 0.65}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        hw_probe_data learn = {N / 2, 2, 2, x[0], cases[c].label};
        hw_probe_data test = {N / 2, 2, 2, x[N / 2], cases[c].label + N / 2};
        bool right[N / 2];
        int64_t hits = hw_probe_test(hw_probe_train(&learn, cases[c].hidden, 1, arena), &test, right, NULL), sum = 0;
        for (int i = 0; i < N / 2; i++) sum += right[i];
        ck_assert_int_eq(sum, hits);
        double share = (double)hits / (N / 2);
        ck_assert_msg(share >= cases[c].low && share <= cases[c].high, "case %zu: %g", c, share);
        double bits = hw_probe_code_length(&learn, cases[c].hidden, 1), uniform = N / 2;
        if (cases[c].label == linear) ck_assert_double_lt(bits, 0.7 * uniform);
        if (cases[c].label == shuffled) ck_assert_double_gt(bits, uniform);
    }
}
END_TEST

/* ---- labels ------------------------------------------------------------------------------------------------------ */

START_TEST(labels)
{
    scratch_text("by.en", "the ( big ) dog said \" hi \"\n");
    scratch_text("by.fr", "x\n");
    scratch_text(
        "by.en.conllu",
        "1\tthe\t_\tDET\t_\t_\t5\tdet\t_\t_\n2\t(\t_\tPUNCT\t_\t_\t3\tpunct\t_\tMatch=4\n"
        "3\tbig\t_\tADJ\t_\t_\t5\tamod\t_\t_\n4\t)\t_\tPUNCT\t_\t_\t3\tpunct\t_\tMatch=2\n"
        "5\tdog\t_\tNOUN\t_\tGender=Masc|Number=Sing\t6\tnsubj:pass\t_\t_\n6\tsaid\t_\tVERB\t_\t_\t0\troot\t_\t_\n"
        "7\t\"\t_\tPUNCT\t_\t_\t8\tpunct\t_\tMatch=9\n8\thi\t_\tINTJ\t_\t_\t6\tobj\t_\t_\n"
        "9\t\"\t_\tPUNCT\t_\t_\t8\tpunct\t_\tMatch=7\n\n");
    static const char *const want[][10] = {
        {"upos", "DET", "PUNCT", "ADJ", "PUNCT", "NOUN", "VERB", "PUNCT", "INTJ", "PUNCT"},
        {"position", "0", "1", "2", "3", "4", "5", "6", "7", "8"},
        {"previous", NULL, "the", "(", "big", ")", "dog", "said", "\"", "hi"},
        {"depth", "0", NULL, "1", NULL, "0", "0", NULL, "0", NULL},
        {"quote", "closed", NULL, "closed", NULL, "closed", "closed", NULL, "open", NULL},
        {"number", "Sing", NULL, "Sing", NULL, NULL, "Sing", NULL, NULL, NULL},
        {"gender", "Masc", NULL, "Masc", NULL, NULL, "Masc", NULL, NULL, NULL},
        {"head", "+4", "+1", "+2", "-1", "+1", "root", "+1", "-2", "-1"},
    };
    hw_error err = {""};
    hw_study_set by;
    ck_assert_msg(hw_study_set_load(arena, bundle, bundle->config->data.dir, "by", &by, &err), "%s", err.message);
    for (int i = 0; i < 8; i++) {
        const hw_probe_label *l = hw_probe_label_at(i);
        ck_assert_str_eq(l->name, want[i][0]);
        for (int32_t w = 0; w < 9; w++) {
            char text[128];
            const char *got = l->of(&by.pairs[0].words[HW_SOURCE], by.trees[HW_SOURCE]->words, w, text);
            ck_assert_msg(got && want[i][w + 1] ? !strcmp(got, want[i][w + 1]) : got == want[i][w + 1],
                          "%s of word %d: %s", l->name, w, got ? got : "none");
        }
    }
    ck_assert_ptr_null(hw_probe_label_at(8));
}
END_TEST

/* ---- the study --------------------------------------------------------------------------------------------------- */

static const hw_probes *study_of(const char *label, const hw_study_set *learn, const hw_study_set *test, int seeds,
                                 uint64_t seed)
{
    hw_error err = {""};
    hw_probe_options o = {.words = 150, .seeds = seeds, .seed = seed, .trials = 50};
    for (int i = 0; hw_probe_label_at(i); i++)
        if (!strcmp(hw_probe_label_at(i)->name, label)) o.only = hw_probe_label_at(i);
    const hw_probes *p = hw_probe_study(bundle, learn, test, &o, NULL, NULL, arena, &err);
    ck_assert_msg(p != NULL, "%s", err.message);
    json_decref(p->skipped);
    return p;
}

static const hw_probes *study(const char *label, const hw_study_set *learn, const hw_study_set *test)
{
    return study_of(label, learn, test, 2, 1);
}

/* Positions stand in embeddings, which carry them; words before do not, and attention brings something of them. */
START_TEST(what_is_there_is_found)
{
    const hw_probes *p = study("position", &set[0], &set[1]);
    ck_assert_int_eq(p->count, 2 * (1 + 2) + 4 + 8);
    ck_assert_str_eq(p->items[0].name, "encoder.embeddings");
    ck_assert_str_eq(p->items[1].name, "encoder.0.self.0");
    ck_assert_str_eq(p->items[3].name, "encoder.layer.0");
    ck_assert_str_eq(p->items[7].name, "decoder.embeddings");
    ck_assert_str_eq(p->items[p->count - 1].name, "decoder.layer.1");
    for (int i = 0; i < p->count; i++) {
        const hw_probed *x = &p->items[i];
        ck_assert(x->learnt == 150 && x->tested == 150 && x->classes == 8);
        ck_assert(x->low <= x->accuracy && x->accuracy <= x->high);
        ck_assert_double_eq_tol(x->uniform, 150 * 3, 1e-9);
        ck_assert_double_eq_tol(x->selectivity, x->accuracy - x->control, 1e-9);
        ck_assert_double_eq(x->embeddings, p->items[i < 7 ? 0 : 7].accuracy);
    }
    ck_assert_double_gt(p->items[0].accuracy, 0.6);
    p = study("previous", &set[0], &set[1]);
    ck_assert_double_lt(p->items[0].accuracy, 0.35);
}
END_TEST

/* Words of the test were not learnt from, so a label that is an accident of each word cannot be found; the control task
 * can be learnt by heart from embeddings. */
START_TEST(words_are_held_out)
{
    const hw_probes *p = study("upos", &set[0], &set[1]);
    ck_assert(p->items[0].label->lexical);
    ck_assert_double_gt(p->items[0].control, 0.9);
    ck_assert_double_lt(p->items[0].accuracy, 0.95);
    ck_assert(fabs(p->items[0].selectivity) < 0.1); /* the real task is learnt by heart as well */
}
END_TEST

/* Each draw of words held out asks another number of words, and each counts the same: in the accuracy, in its interval
 * and in the commonest label's share beside it. */
START_TEST(draws_count_the_same)
{
    static const char *const asked[] = {"upos", "number", "gender"};
    for (int k = 0; k < 3; k++) {
        const hw_probes *all = study_of(asked[k], &set[0], &set[1], 3, 1), *one[3];
        for (int s = 0; s < 3; s++) one[s] = study_of(asked[k], &set[0], &set[1], 1, 1 + (uint64_t)s);
        for (int i = 0; i < all->count; i++) {
            const hw_probed *x = &all->items[i];
            double accuracy = 0, majority = 0;
            for (int s = 0; s < 3; s++) accuracy += one[s]->items[i].accuracy / 3;
            for (int s = 0; s < 3; s++) majority += one[s]->items[i].majority / 3;
            ck_assert_double_eq_tol(x->accuracy, accuracy, 1e-9);
            ck_assert_double_eq_tol(x->majority, majority, 1e-9);
            ck_assert_msg(x->low <= x->accuracy && x->accuracy <= x->high, "%s of %s: %g [%g, %g]", asked[k], x->name,
                          x->accuracy, x->low, x->high);
        }
    }
}
END_TEST

/* One set is halved; the figures do not depend on threads. */
START_TEST(halves_and_threads)
{
    const hw_probes *one = study("head", &set[1], &set[1]);
    hw_threads_set(1);
    const hw_probes *two = study("head", &set[1], &set[1]);
    hw_threads_set(0);
    ck_assert_int_eq(one->count, two->count);
    for (int i = 0; i < one->count; i++) {
        ck_assert_double_eq(one->items[i].accuracy, two->items[i].accuracy);
        ck_assert_double_eq(one->items[i].bits, two->items[i].bits);
    }
}
END_TEST

/* ---- the command line -------------------------------------------------------------------------------------------- */

static void expect(const outcome *o, int status, const char *out, const char *message)
{
    ck_assert_msg(o->status == status && strstr(o->out, out) && strstr(o->err, message), "status %d: %.2000s%.1000s",
                  o->status, o->out, o->err);
}

START_TEST(command)
{
    expect(RUN("heads", "probe", model, "--words", "100", "--seeds", "1", "--label", "quote"), 0,
           "source, quote: whether a quotation is open; 2 classes, 100 words learnt, 100 tested\n", "");
    expect(RUN("heads", "probe", model, "--words", "60", "--seeds", "1", "--label", "upos", "--hidden", "4", "--tsv"),
           0, "\nupos\tdecoder.1.cross.1\ttrue\ttrue\t3\t", "");
    json_t *kept = json_load_file(scratch_path("model/heads/probe-test.json"), 0, NULL);
    const json_t *row = json_array_get(json_object_get(kept, "heads"), 0);
    static const char *const keys[] = {"accuracy", "low",         "high", "majority",     "embeddings", "untrained",
                                       "control",  "selectivity", "bits", "uniform_bits", "compression"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) ck_assert(json_is_real(json_object_get(row, keys[k])));
    json_decref(kept);
}
END_TEST

START_TEST(bad_input)
{
    expect(RUN("heads", "probe", model, "--label", "noun"), 2, "", "there is no such label; there are upos, position");
    expect(RUN("heads", "probe", model, "--label", "uops"), 2, "", "head; did you mean upos?");
    remove(scratch_path("test.en.conllu"));
    remove(scratch_path("test.fr.conllu"));
    expect(RUN("heads", "probe", model, "--label", "upos"), 1, "", "there is no gold annotation");
    expect(RUN("heads", "probe", model, "--words", "60", "--seeds", "1"), 0,
           "not probed: source: upos: there is no gold annotation", "");
    scratch_text("one.en", "ba\nba\n");
    scratch_text("one.fr", "ba\nba\n");
    expect(RUN("heads", "probe", model, "--data", "one", "--label", "position"), 1, "",
           "there are too few words that have one");
    scratch_text("valid.en", "ba\nba\n");
    scratch_text("valid.fr", "ba\nba\n");
    remove(scratch_path("valid.en.conllu"));
    remove(scratch_path("valid.fr.conllu"));
    expect(RUN("heads", "probe", model, "--data", "one", "--label", "position"), 1, "",
           "all words have one and the same label");
}
END_TEST

Suite *test_heads_probe(void);
Suite *test_heads_probe(void)
{
    Suite *suite = suite_create("heads_probe");
    TCase *t = tcase_create("probes");
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, against_numpy);
    tcase_add_test(t, planted_and_shuffled_labels);
    tcase_add_test(t, labels);
    tcase_add_test(t, what_is_there_is_found);
    tcase_add_test(t, words_are_held_out);
    tcase_add_test(t, draws_count_the_same);
    tcase_add_test(t, halves_and_threads);
    tcase_add_test(t, command);
    tcase_add_test(t, bad_input);
    suite_add_tcase(suite, t);
    return suite;
}
