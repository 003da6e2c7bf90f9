/* headwise generate, end to end: what it writes, prints as text and as JSON, and how it fails. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"

static const char GRAMMAR[] = "sides: [en, fr]\n"
                              "start: s\n"
                              "corpus: {pairs: 2, valid: 1, test: 1, seed: 7}\n"
                              "lexicon:\n"
                              "  cat: {pos: NOUN, en: cat, fr: chat}\n"
                              "  old: {pos: ADJ, entries: [{en: old, fr: vieux}, {en: black, fr: noir}]}\n"
                              "rules:\n"
                              "  s:\n"
                              "    - both: cat\n"
                              "    - en: old:amod cat\n"
                              "      fr: cat old:amod\n"
                              "      count: described\n"
                              "    - en: a=old:amod b=old:amod cat\n"
                              "      fr: cat a:amod b:amod\n"
                              "      count: described\n";

static char *read_output(const char *name)
{
    char *text = scratch_read(scratch_path(name), NULL);
    ck_assert_msg(text != NULL, "%s is missing", name);
    return text;
}

START_TEST(it_writes_a_corpus_and_prints_counts)
{
    const char *grammar = scratch_text("grammar.yaml", GRAMMAR), *out = scratch_path("deep/out");
    const outcome *o = RUN("headwise", "generate", grammar, "-o", out, "--train-annotation");
    ck_assert_msg(o->status == 0, "%s", o->err);
    ck_assert_ptr_nonnull(strstr(o->out, "pairs: train 2, valid 1, test 1 ("));
    ck_assert_ptr_nonnull(strstr(o->out, "en: "));
    ck_assert_ptr_nonnull(strstr(o->out, "described"));
    ck_assert_ptr_nonnull(strstr(o->out, "amod"));
    static const char *const files[] = {"train.en", "train.fr.conllu", "train.align",
                                        "valid.fr", "test.en.conllu",  "test.align"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[64];
        snprintf(name, sizeof name, "deep/out/%s", files[i]);
        free(read_output(name));
    }
}
END_TEST

START_TEST(options_go_before_what_the_grammar_says)
{
    const char *grammar = scratch_text("grammar.yaml", GRAMMAR);
    const outcome *o = RUN("headwise", "generate", "--pairs=5", "--valid", "0", "--test", "0", "--seed", "1", "-q",
                           "--json", "-o", scratch_path("out"), grammar);
    ck_assert_msg(o->status == 0 && !*o->err, "%s", o->err);
    json_t *json = json_loads(o->out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "train")), 5);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "seed")), 1);
    json_t *english = json_object_get(json_object_get(json, "sides"), "en");
    ck_assert_int_eq(json_integer_value(json_object_get(english, "vocabulary")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(english, "longest")), 3);
    json_t *relation = json_array_get(json_object_get(json, "relations"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(relation, "relation")), "amod");
    ck_assert_int_eq(json_integer_value(json_object_get(relation, "distance")), 1);
    ck_assert_double_gt(json_real_value(json_object_get(relation, "share")), 0.5);
    json_decref(json);
    char *train = read_output("out/train.en");
    int lines = 0;
    for (const char *c = train; *c; c++) lines += *c == '\n';
    ck_assert_int_eq(lines, 5);
    free(train);
}
END_TEST

START_TEST(faults_end_with_their_status_and_a_message)
{
    const char *grammar = scratch_text("grammar.yaml", GRAMMAR),
               *wrong = scratch_text("wrong.yaml", "sides: [en, fr]\nstrat: s\n");
    const outcome *o = RUN("headwise", "generate", grammar);
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, "headwise: generate: -o DIR is missing: where the corpus is to be written\n");

    o = RUN("headwise", "generate", wrong, "-o", scratch_path("out"));
    ck_assert_int_eq(o->status, 2);
    char expected[512];
    snprintf(expected, sizeof expected, "headwise: %s:2:1: unknown key strat; did you mean start?\n", wrong);
    ck_assert_str_eq(o->err, expected);

    o = RUN("headwise", "generate", grammar, "-q", "-n", "1000", "-o", scratch_path("out"));
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, "Ask for fewer pairs"));

    o = RUN("headwise", "generate", grammar, "-q", "-o", grammar); /* a file is no directory */
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, grammar));
}
END_TEST

Suite *test_cli_generate(void);
Suite *test_cli_generate(void)
{
    Suite *suite = suite_create("cli_generate");
    TCase *tc = tcase_create("generate");
    tcase_add_checked_fixture(tc, scratch_begin, scratch_end);
    tcase_add_test(tc, it_writes_a_corpus_and_prints_counts);
    tcase_add_test(tc, options_go_before_what_the_grammar_says);
    tcase_add_test(tc, faults_end_with_their_status_and_a_message);
    suite_add_tcase(suite, tc);
    return suite;
}
