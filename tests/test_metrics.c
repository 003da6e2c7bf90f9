/* BLEU and chrF against sacreBLEU: tests/fixtures/metrics/text.json holds its figures for made-up lines, many of them
 * hostile (entities, separators, sigmas, joined emoji, empty lines), under many settings. It was made by
 * scripts/make_metric_fixtures.py. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include <headwise/metrics.h>

#define GROUPS 40 /* in text.json */

static json_t *fixture, *group;

static void begin(void)
{
    json_error_t error;
    fixture = json_load_file("tests/fixtures/metrics/text.json", JSON_ALLOW_NUL, &error);
    ck_assert_msg(fixture, "text.json:%d: %s", error.line, error.text);
    ck_assert_uint_eq(json_array_size(fixture), GROUPS);
}

static void end(void) { json_decref(fixture); }

static hw_span line_at(const json_t *lines, size_t i)
{
    const json_t *line = json_array_get(lines, i);
    return (hw_span){json_string_value(line), json_string_length(line)};
}

static void add_group(hw_metric *metric)
{
    const json_t *hypotheses = json_object_get(group, "hypotheses"), *references = json_object_get(group, "references");
    int count = (int)json_array_size(references);
    for (size_t i = 0; i < json_array_size(hypotheses); i++) {
        hw_span lines[8];
        for (int k = 0; k < count; k++) lines[k] = line_at(json_array_get(references, (size_t)k), i);
        hw_metric_add(metric, line_at(hypotheses, i), lines, count);
    }
}

static bool flag(const json_t *from, const char *key) { return json_is_true(json_object_get(from, key)); }
static double number(const json_t *from, const char *key) { return json_number_value(json_object_get(from, key)); }
static const char *string(const json_t *from, const char *key) { return json_string_value(json_object_get(from, key)); }

static void compare(const hw_metric *metric, const json_t *expected)
{
    char signature[256];
    hw_metric_signature(metric, NULL, signature, sizeof signature);
    char *version = strstr(signature, "|version:headwise-" HW_VERSION);
    ck_assert_ptr_nonnull(version);
    *version = 0;
    ck_assert_str_eq(signature, string(expected, "signature"));
    ck_assert_double_eq_tol(hw_metric_score(metric), number(expected, "score"), 1e-8);
    const json_t *sentences = json_object_get(expected, "sentences");
    for (size_t i = 0; i < json_array_size(sentences); i++) {
        double theirs = json_number_value(json_array_get(sentences, i)), ours = hw_metric_sentence(metric, (int64_t)i);
        ck_assert_msg(fabs(ours - theirs) < 1e-8, "group %s, %s: %.9f, not %.9f", json_dumps(group, JSON_COMPACT),
                      signature, ours, theirs);
    }
}

START_TEST(bleu_equals_sacrebleu)
{
    group = json_array_get(fixture, (size_t)_i);
    const json_t *cases = json_object_get(group, "bleu");
    for (size_t k = 0; k < json_array_size(cases); k++) {
        const json_t *expected = json_array_get(cases, k);
        hw_error err;
        hw_metric *bleu = hw_bleu_new(&(hw_bleu_options){.tokenizer = string(expected, "tokenize"),
                                                         .smooth = string(expected, "smooth_method"),
                                                         .smooth_value = number(expected, "smooth_value"),
                                                         .lowercase = flag(expected, "lowercase"),
                                                         .effective_order = flag(expected, "effective_order")},
                                      &err);
        ck_assert_msg(bleu, "%s", err.message);
        add_group(bleu);
        compare(bleu, expected);
        hw_bleu_result result = hw_bleu_details(bleu);
        ck_assert_double_eq(result.score, hw_metric_score(bleu));
        ck_assert_double_eq_tol(result.bp, number(expected, "bp"), 1e-8);
        ck_assert_int_eq(result.sys_len, (int64_t)number(expected, "sys_len"));
        ck_assert_int_eq(result.ref_len, (int64_t)number(expected, "ref_len"));
        const json_t *precisions = json_object_get(expected, "precisions");
        for (size_t n = 0; n < HW_BLEU_ORDER; n++)
            ck_assert_double_eq_tol(result.precisions[n], json_number_value(json_array_get(precisions, n)), 1e-8);
        hw_metric_free(bleu);
    }
}
END_TEST

START_TEST(chrf_equals_sacrebleu)
{
    group = json_array_get(fixture, (size_t)_i);
    const json_t *cases = json_object_get(group, "chrf");
    for (size_t k = 0; k < json_array_size(cases); k++) {
        const json_t *expected = json_array_get(cases, k);
        hw_error err;
        hw_metric *chrf = hw_chrf_new(&(hw_chrf_options){.char_order = (int)number(expected, "char_order"),
                                                         .word_order = (int)number(expected, "word_order"),
                                                         .beta = (int)number(expected, "beta"),
                                                         .lowercase = flag(expected, "lowercase"),
                                                         .whitespace = flag(expected, "whitespace"),
                                                         .eps_smoothing = flag(expected, "eps_smoothing")},
                                      &err);
        ck_assert_msg(chrf, "%s", err.message);
        ck_assert_str_eq(hw_metric_name(chrf), string(expected, "name"));
        add_group(chrf);
        compare(chrf, expected);
        hw_metric_free(chrf);
    }
}
END_TEST

/* The example of sacreBLEU's own documentation: BLEU 48.53, chrF2 59.73. */
static const char *const example[3] = {"The dog bit the man.", "It wasn't surprising.",
                                       "The man had just bitten him."};
static const char *const example_references[3][2] = {
    {"The dog bit the man.", "The dog had bit the man."},
    {"It was not unexpected.", "No one was surprised."},
    {"The man bit him first.", "The man had bitten the dog."},
};

static void add_example(hw_metric *metric, bool without_one)
{
    for (int i = 0; i < 3; i++) {
        hw_span references[2] = {hw_span_of(example_references[i][0]), hw_span_of(example_references[i][1])};
        if (without_one && i == 0) references[0] = hw_span_of(NULL);
        hw_metric_add(metric, hw_span_of(example[i]), references, 2);
    }
}

START_TEST(documented_example)
{
    hw_metric *bleu = hw_bleu_new(NULL, NULL), *chrf = hw_chrf_new(NULL, NULL);
    char text[256];
    add_example(bleu, false);
    add_example(chrf, false);
    hw_bleu_result r = hw_bleu_details(bleu);
    snprintf(text, sizeof text, "%.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f hyp_len = %lld ref_len = %lld)", r.score,
             r.precisions[0], r.precisions[1], r.precisions[2], r.precisions[3], r.bp, (long long)r.sys_len,
             (long long)r.ref_len);
    ck_assert_str_eq(text, "48.53 82.4/50.0/45.5/37.5 (BP = 0.943 hyp_len = 17 ref_len = 18)");
    snprintf(text, sizeof text, "%s = %.2f", hw_metric_name(chrf), hw_metric_score(chrf));
    ck_assert_str_eq(text, "chrF2 = 59.73");
    hw_metric_free(bleu);
    hw_metric_free(chrf);
}
END_TEST

START_TEST(signatures_say_how)
{
    hw_metric *bleu = hw_bleu_new(NULL, NULL);
    char text[256];
    hw_metric_signature(bleu, NULL, text, sizeof text);
    ck_assert_str_eq(text, "nrefs:0|case:mixed|eff:no|tok:13a|smooth:exp|version:headwise-" HW_VERSION);
    add_example(bleu, false);
    hw_metric_signature(bleu, &(hw_resampling){.bootstrap = 1000, .seed = 12345}, text, sizeof text);
    ck_assert_str_eq(text,
                     "nrefs:2|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:headwise-" HW_VERSION);
    hw_metric_signature(bleu, &(hw_resampling){1000, 10000, 7}, text, sizeof text);
    ck_assert_str_eq(text, "nrefs:2|bs:1000|ar:10000|seed:7|case:mixed|eff:no|tok:13a|smooth:exp|version:headwise-"
                     HW_VERSION);
    hw_metric_free(bleu);
}
END_TEST

START_TEST(a_missing_reference_is_left_out)
{
    hw_metric *bleu = hw_bleu_new(NULL, NULL), *alone = hw_bleu_new(NULL, NULL);
    char text[256];
    add_example(bleu, true);
    hw_metric_signature(bleu, NULL, text, sizeof text);
    ck_assert_int_eq(strncmp(text, "nrefs:var|", 10), 0);
    hw_span reference = hw_span_of(example_references[0][1]);
    hw_metric_add(alone, hw_span_of(example[0]), &reference, 1);
    ck_assert_double_eq(hw_metric_sentence(bleu, 0), hw_metric_score(alone));
    hw_metric_free(bleu);
    hw_metric_free(alone);
}
END_TEST

static double score_lines(hw_metric *metric, const char *hypothesis, const char *reference)
{
    hw_span wanted = hw_span_of(reference);
    hw_metric_add_lines(metric, &hypothesis, &wanted, 1);
    double score = hw_metric_score(metric);
    hw_metric_free(metric);
    return score;
}

/* sacreBLEU's figures, its lines read with errors="surrogateescape". */
START_TEST(malformed_bytes_are_characters)
{
    const hw_bleu_options characters = {.tokenizer = "char", .effective_order = true};
    const struct {
        const char *hypothesis, *reference;
        double chrf, bleu;
    } cases[] = {{"caf\xe9 noir\xe2\x82", "caf\xe9 noir\xe2", 96.82300673862483, 88.01117367933934},
                 {"a\xff\xfe b", "a\xff b", 46.42857142857143, 35.35533905932737}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *hypothesis = cases[i].hypothesis, *reference = cases[i].reference;
        double chrf = score_lines(hw_chrf_new(NULL, NULL), hypothesis, reference);
        double bleu = score_lines(hw_bleu_new(&characters, NULL), hypothesis, reference);
        ck_assert_double_eq_tol(chrf, cases[i].chrf, 1e-9);
        ck_assert_double_eq_tol(bleu, cases[i].bleu, 1e-9);
    }
}
END_TEST

START_TEST(nothing_to_score)
{
    hw_metric *bleu = hw_bleu_new(NULL, NULL), *chrf = hw_chrf_new(NULL, NULL);
    ck_assert_double_eq(hw_metric_score(bleu), 0);
    ck_assert_double_eq(hw_metric_score(chrf), 0);
    ck_assert_double_eq(hw_bleu_details(bleu).bp, 1);
    hw_metric_free(bleu);
    hw_metric_free(chrf);
    ck_assert_double_eq(score_lines(hw_bleu_new(NULL, NULL), "", "a b"), 0);
    ck_assert_double_eq(score_lines(hw_bleu_new(NULL, NULL), "a b", ""), 0);
    ck_assert_double_eq(score_lines(hw_bleu_new(NULL, NULL), "", ""), 0);
    ck_assert_double_eq(score_lines(hw_chrf_new(NULL, NULL), "", ""), 0);
}
END_TEST

/* Equal symbols for thousands of places are the worst case of sorting them. */
START_TEST(long_lines)
{
    static char same[20001], words[20001];
    memset(same, 'a', 20000);
    for (int i = 0; i < 20000; i++) words[i] = i % 2 ? ' ' : 'a';
    ck_assert_double_eq_tol(score_lines(hw_chrf_new(NULL, NULL), same, same), 100, 1e-9);
    ck_assert_double_eq_tol(score_lines(hw_bleu_new(NULL, NULL), words, words), 100, 1e-9);
}
END_TEST

START_TEST(wrong_options)
{
    const struct {
        hw_bleu_options options;
        const char *message;
    } bleu[] = {
        {{.tokenizer = "zh"}, "there is no tokenizer \"zh\" for BLEU: choose 13a, intl, char or none"},
        {{.smooth = "add"}, "there is no smoothing \"add\" for BLEU: choose exp, floor, add-k or none"},
        {{.smooth = "floor", .smooth_value = -1}, "a smoothing value of -1 for BLEU: it must be above 0"},
        {{.smooth = "floor", .smooth_value = NAN}, "a smoothing value of nan for BLEU: it must be above 0"},
    };
    const struct {
        hw_chrf_options options;
        const char *message;
    } chrf[] = {
        {{.char_order = 9}, "a character order of 9 for chrF: it must be 1 to 8"},
        {{.word_order = 3}, "a word order of 3 for chrF: it must be 0 to 2"},
        {{.beta = -2}, "a beta of -2 for chrF: it must be 1 to 9"},
    };
    hw_error err;
    for (size_t i = 0; i < sizeof bleu / sizeof *bleu; i++) {
        ck_assert_ptr_null(hw_bleu_new(&bleu[i].options, &err));
        ck_assert_str_eq(err.message, bleu[i].message);
    }
    for (size_t i = 0; i < sizeof chrf / sizeof *chrf; i++) {
        ck_assert_ptr_null(hw_chrf_new(&chrf[i].options, &err));
        ck_assert_str_eq(err.message, chrf[i].message);
    }
}
END_TEST

Suite *test_metrics(void);
Suite *test_metrics(void)
{
    Suite *suite = suite_create("metrics");
    TCase *sacrebleu = tcase_create("sacrebleu"), *other = tcase_create("other");
    tcase_add_checked_fixture(sacrebleu, begin, end);
    tcase_add_loop_test(sacrebleu, bleu_equals_sacrebleu, 0, GROUPS);
    tcase_add_loop_test(sacrebleu, chrf_equals_sacrebleu, 0, GROUPS);
    suite_add_tcase(suite, sacrebleu);
    tcase_add_test(other, documented_example);
    tcase_add_test(other, signatures_say_how);
    tcase_add_test(other, a_missing_reference_is_left_out);
    tcase_add_test(other, malformed_bytes_are_characters);
    tcase_add_test(other, nothing_to_score);
    tcase_add_test(other, long_lines);
    tcase_add_test(other, wrong_options);
    suite_add_tcase(suite, other);
    return suite;
}
