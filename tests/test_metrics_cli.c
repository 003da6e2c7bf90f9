/* The command `bleu`: what it prints, as text and as JSON, and how it ends where files or options are wrong. */
#include <check.h>
#include <jansson.h>
#include <string.h>

#include <headwise/base.h>

#include "support_files.h"
#include "support_text.h"

#define VERSION "version:headwise-" HW_VERSION

/* The example of sacreBLEU's documentation. */
#define REFERENCE "The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n"
#define SECOND "The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n"
#define HYPOTHESIS "The dog bit the man.\nIt wasn't surprising.\nThe man had just bitten him.\n"

static const char *reference, *second, *hypothesis;

static void begin(void)
{
    scratch_begin();
    reference = scratch_text("reference", REFERENCE);
    second = scratch_gzip("second.gz", SECOND);
    hypothesis = scratch_text("hypothesis", HYPOTHESIS);
}

static double number(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    ck_assert_msg(json_is_number(value), "no number %s", key);
    return json_number_value(value);
}

static json_t *parse(const outcome *o)
{
    ck_assert_int_eq(o->status, 0);
    json_t *json = json_loads(o->out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

START_TEST(figures_as_text)
{
    const outcome *o = RUN("bleu", reference, hypothesis, "-r", second);
    ck_assert_str_eq(o->err, "");
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->out, "  BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|" VERSION
                             " = 48.53 82.4/50.0/45.5/37.5 (BP = 0.943 ratio = 0.944 hyp_len = 17 ref_len = 18)\n"
                             "chrF2|nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|" VERSION " = 59.73\n");
    o = RUN("bleu", reference, "--reference", second, hypothesis, "--tokenize=none", "--lowercase", "--smooth", "floor",
            "--smooth-value", "0.2", "--chrf-word-order", "2", "--chrf-lowercase", "--chrf-whitespace");
    ck_assert_ptr_nonnull(strstr(o->out, "BLEU|nrefs:2|case:lc|eff:no|tok:none|smooth:floor[0.20]|" VERSION " = "));
    ck_assert_ptr_nonnull(strstr(o->out, "chrF2++|nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:yes|" VERSION " = "));
}
END_TEST

START_TEST(figures_as_json)
{
    json_t *json = parse(RUN("bleu", reference, hypothesis, "-r", second, "--json"));
    ck_assert_double_eq_tol(number(json, "bleu"), 48.530827009929865, 1e-10);
    ck_assert_double_eq_tol(number(json, "chrf"), 59.72751782684763, 1e-10);
    ck_assert_str_eq(json_string_value(json_object_get(json, "signature")),
                     "nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|" VERSION);
    ck_assert_double_eq(number(json, "sentences"), 3);
    ck_assert_ptr_null(json_object_get(json, "bleu_confidence"));
    ck_assert_ptr_null(json_object_get(json, "paired"));
    json_decref(json);
}
END_TEST

START_TEST(a_line_a_sentence)
{
    json_t *json = parse(RUN("bleu", reference, hypothesis, "--sentence-level", "--json"));
    const json_t *sentences = json_object_get(json, "sentence_scores");
    ck_assert_uint_eq(json_array_size(sentences), 3);
    char lines[256] = "";
    for (size_t i = 0; i < 3; i++) {
        const json_t *scores = json_array_get(sentences, i);
        size_t n = strlen(lines);
        snprintf(lines + n, sizeof lines - n, "%zu\t%.2f\t%.2f\n", i, number(scores, "bleu"), number(scores, "chrf"));
    }
    json_decref(json);
    const outcome *o = RUN("bleu", reference, hypothesis, "--sentence-level");
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->out, lines);
    ck_assert_int_eq(strncmp(lines, "0\t100.00\t100.00\n1\t", 18), 0);
}
END_TEST

START_TEST(confidence_and_comparison)
{
    const outcome *o = RUN("bleu", reference, hypothesis, "--confidence", "--trials", "200");
    ck_assert_ptr_nonnull(strstr(o->out, "BLEU|nrefs:1|bs:200|seed:12345|case:mixed|"));
    ck_assert_ptr_nonnull(strstr(o->out, " (μ = "));
    o = RUN("bleu", reference, hypothesis, "--paired", second, "-p", hypothesis);
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->out, "baseline: "));
    ck_assert_ptr_nonnull(strstr(o->out, "BLEU|nrefs:1|bs:1000|ar:10000|seed:12345|case:mixed|"));
    json_t *json = parse(RUN("bleu", reference, hypothesis, "--paired", second, "-p", hypothesis, "--json", "--seed",
                             "3", "--paired-test", "bootstrap"));
    const json_t *others = json_object_get(json, "paired"), *same = json_array_get(others, 1);
    ck_assert_uint_eq(json_array_size(others), 2);
    ck_assert_str_eq(json_string_value(json_object_get(same, "system")), hypothesis);
    ck_assert_double_eq(number(same, "bleu_p"), 1);
    ck_assert_double_eq(number(same, "chrf_p"), 1);
    ck_assert_double_eq(number(same, "bleu"), number(json, "bleu"));
    const json_t *ours = json_object_get(json, "bleu_confidence"), *theirs = json_object_get(same, "bleu_confidence");
    ck_assert_double_eq(number(ours, "half_width"), number(theirs, "half_width"));
    ck_assert_double_gt(number(ours, "half_width"), 0);
    ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(json, "signature")), "nrefs:1|bs:1000|seed:3|"));
    json_decref(json);
}
END_TEST

START_TEST(tokenized_text_is_noted)
{
    char lines[1024] = "";
    for (int i = 0; i < 100; i++) strcat(lines, "a b .\n");
    const char *path = scratch_text("tokenized", lines);
    const outcome *o = RUN("bleu", path, path);
    ck_assert_ptr_nonnull(strstr(o->err, "100 lines of "));
    ck_assert_ptr_nonnull(strstr(o->err, "end in \" .\": they look tokenized, but --tokenize 13a is for plain text\n"));
    o = RUN("bleu", path, path, "--quiet");
    ck_assert_str_eq(o->err, "");
    o = RUN("bleu", path, path, "--tokenize", "none");
    ck_assert_str_eq(o->err, "");
}
END_TEST

static void check_fails(const outcome *o, int status, const char *message)
{
    ck_assert_str_eq(o->out, "");
    ck_assert_msg(strstr(o->err, message), "\"%s\" is not in \"%s\"", message, o->err);
    ck_assert_int_eq(o->status, status);
}

START_TEST(files_that_do_not_fit)
{
    const char *shorter = scratch_text("shorter", "one\n"), *empty = scratch_text("empty", "");
    const char *latin = scratch_text("latin", "a\ncaf\xe9\nb\n");
    const char *cut = scratch_write("cut.gz", "\x1f\x8b\x08\0\0\0", 6);
    check_fails(RUN("bleu", reference, shorter), 1, "shorter has 1: every file must have one line for each sentence\n");
    check_fails(RUN("bleu", shorter, hypothesis), 1, "shorter has 1 line and ");
    check_fails(RUN("bleu", reference, hypothesis, "-r", shorter), 1, "reference has 3 lines and ");
    check_fails(RUN("bleu", reference), 1, "standard input has 0: every file");
    check_fails(RUN("bleu", empty, empty), 1, "empty holds no line: there is nothing to score\n");
    check_fails(RUN("bleu", reference, latin), 1, "latin:2: byte 4 is 0xE9, which is not valid UTF-8");
    check_fails(RUN("bleu", reference, cut), 1, "cut.gz: ");
    check_fails(RUN("bleu", reference, scratch_path("none")), 1, "none: cannot be read: No such file or directory\n");
}
END_TEST

START_TEST(wrong_usage)
{
    check_fails(RUN("bleu"), 2, "too few arguments");
    check_fails(RUN("bleu", "-"), 2, "bleu: only one of the files can be standard input\n");
    check_fails(RUN("bleu", reference, hypothesis, "--tokenize", "13b"), 2, "did you mean 13a?");
    check_fails(RUN("bleu", reference, hypothesis, "--smooth-value", "1"), 2,
                "bleu: --smooth-value goes with --smooth floor or --smooth add-k, not with exp\n");
    check_fails(RUN("bleu", reference, hypothesis, "--sentence-level", "--confidence"), 2,
                "bleu: --sentence-level and --confidence exclude each other\n");
    check_fails(RUN("bleu", reference, hypothesis, "--chrf-word-order", "3"), 2, "it goes from 0 to 2");
}
END_TEST

Suite *test_metrics_cli(void);
Suite *test_metrics_cli(void)
{
    Suite *suite = suite_create("metrics_cli");
    TCase *command = tcase_create("bleu");
    tcase_add_checked_fixture(command, begin, scratch_end);
    tcase_add_test(command, figures_as_text);
    tcase_add_test(command, figures_as_json);
    tcase_add_test(command, a_line_a_sentence);
    tcase_add_test(command, confidence_and_comparison);
    tcase_add_test(command, tokenized_text_is_noted);
    tcase_add_test(command, files_that_do_not_fit);
    tcase_add_test(command, wrong_usage);
    suite_add_tcase(suite, command);
    return suite;
}
