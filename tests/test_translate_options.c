/* Every option of translate and evaluate from the command line: N lines in are N lines out, a line comes out as alone,
 * and what does not go together is said before the first sentence. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/decode.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_model.h"
#include "support_translate.h"

static hw_arena *arena;
static hw_bundle *bundle;
static const char *root, *model; /* the scratch directory, and the model in it */

static void begin(void)
{
    translate_begin();
    arena = scratch_arena();
    bundle = translate_bundle();
    root = scratch_root();
    model = scratch_path("model");
}

/* ---- lines in, lines out ----------------------------------------------------------------------------------------- */

static const char *const ways[] = {
    "--beam 4 --length-penalty 1.5",
    "--beam 4 --coverage-penalty 0.7 --scores",
    "--beam 4 --patience 2 --n-best 4 --scores",
    "--n-best 3 --patience 3.5",
    "--min-length 4 --max-length 6 --scores",
    "--no-repeat-ngram 1 --beam 2",
    "--replace-unknown",
    "--longest-source 50",
    "--beam 1000 --n-best 1000 --max-length 2",
    "--beam 3 --ensemble @/other --scores",
    "--top-k 1",
    "--json --beam 2 --n-best 2 --replace-unknown",
};
enum { WAYS = sizeof ways / sizeof *ways };

START_TEST(each_option_keeps_lines_and_order)
{
    translate_save(scratch_path("other"), 2, 0);
    const char *words = hw_arena_string(arena, "translate @/model %s", ways[_i]);
    bool json = strstr(ways[_i], "--json");
    char *out = strdup(fed(some_lines("\n", "\n"), words)->out);
    ck_assert_int_eq(lines_in(out), SOME);
    static const char *const others[] = {"--batch 1", "--batch 3 --threads 3"};
    for (int k = 0; k < 2; k++)
        ck_assert_str_eq(fed(some_lines("\n", "\n"), hw_arena_string(arena, "%s %s", words, others[k]))->out, out);
    for (int i = 0; i < SOME; i++) {
        const char *alone = line_of(fed(hw_arena_string(arena, "%s\n", some[i]), words)->out, 0);
        const char *here = line_of(out, i);
        if (json) { /* the number of the line differs */
            alone = strchr(alone, ',');
            here = strchr(here, ',');
        }
        ck_assert_str_eq(here, alone);
    }
    ck_assert(json || (!*line_of(out, 1) && !*line_of(out, 3)));
    free(out);
}
END_TEST

START_TEST(samples_depend_on_seed_and_line_alone)
{
    static const char *const draws[] = {"--sampling --scores", "--temperature 1.7 --n-best 3", "--top-k 5 --scores",
                                        "--top-p 0.8 --ensemble @/model"};
    const char *words = hw_arena_string(arena, "translate @/model %s", draws[_i]);
    char *out = strdup(fed(some_lines("\n", "\n"), words)->out);
    ck_assert_int_eq(lines_in(out), SOME);
    static const char *const others[] = {"--batch 1", "--batch 3 --threads 3", "--seed 1"};
    for (int k = 0; k < 3; k++)
        ck_assert_str_eq(fed(some_lines("\n", "\n"), hw_arena_string(arena, "%s %s", words, others[k]))->out, out);
    ck_assert_str_ne(fed(some_lines("\n", "\n"), hw_arena_string(arena, "%s --seed 2", words))->out, out);
    ck_assert_str_ne(line_of(out, 0), line_of(out, 6)); /* the same line at another place */
    const char *alone = fed("the cat sat on the mat\n", words)->out;
    ck_assert_str_eq(line_of(alone, 0), line_of(out, 0));
    free(out);
}
END_TEST

/* ---- prefixes ---------------------------------------------------------------------------------------------------- */

START_TEST(translations_begin_with_their_prefix)
{
    static const char *const prefixes[] = {"un gros", "le chat", "",         "le", "borati new@@ words",
                                           "\t",      "voit",    "bo@@ ra@@"};
    static const char *const begun[] = {"un gros", "", "", "", "borati newwords", "", "voit", "bora"};
    const char *text = "";
    for (int i = 0; i < SOME; i++) text = hw_arena_string(arena, "%s%s\n", text, prefixes[i]);
    scratch_text("prefixes", text);
    char *plain = strdup(fed(some_lines("\n", "\n"), "translate @/model")->out);
    static const char *const more[] = {"", "--beam 3", "--sampling", "--no-repeat-ngram 1", "--replace-unknown"};
    const char *words = hw_arena_string(arena, "translate @/model --prefix-file @/prefixes %s", more[_i]);
    const char *out = fed(some_lines("\n", "\n"), words)->out;
    ck_assert_int_eq(lines_in(out), SOME);
    for (int i = 0; i < SOME; i++) {
        const char *line = line_of(out, i);
        ck_assert_msg(!strncmp(line, begun[i], strlen(begun[i])), "%d: %s", i, line);
        if (!*some[i] || *some[i] == ' ') ck_assert_str_eq(line, "");
        if (_i == 0 && (i == 2 || i == 5)) ck_assert_str_eq(line, line_of(plain, i));
    }
    free(plain);
}
END_TEST

/* What could not be counted before is told at the end, and every line has been translated. */
START_TEST(uneven_prefixes_are_told)
{
    scratch_text("few", "un\ngros\n");
    scratch_text("many", "un\n\n\n\n\n\n\n\n\n");
    scratch_text("lines", some_lines("\n", "\n"));
    const outcome *o = feed(some_lines("\n", "\n"), "translate @/model --prefix-file @/few");
    ck_assert_int_eq(o->status, 1);
    ck_assert_int_eq(lines_in(o->out), SOME);
    ck_assert_str_eq(o->err, hw_arena_string(arena,
                                             "headwise: standard input has 8 lines, but %s/few has 2; each line is "
                                             "the prefix of one translation\n",
                                             root));
    o = feed(some_lines("\n", "\n"), "translate @/model --prefix-file @/many");
    ck_assert_int_eq(o->status, 1);
    ck_assert_int_eq(lines_in(o->out), SOME);
    o = feed("", "translate @/model @/lines --prefix-file @/many");
    ck_assert_int_eq(o->status, 1);
    ck_assert_str_eq(o->out, "");
    ck_assert_str_eq(o->err, hw_arena_string(arena,
                                             "headwise: %s/lines has 8 lines, but %s/many has 9; each line is the "
                                             "prefix of one translation\n",
                                             root, root));
}
END_TEST

/* A prefix is counted as it is read: the byte that is no UTF-8 as U+FFFD, which has a piece of its own here. */
START_TEST(mended_prefixes_are_counted)
{
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, ""), "the cat", "le \xEF\xBF\xBD@@ a");
    save_bundle(b, scratch_path("mended"));
    hw_bundle_free(b);
    scratch_text("prefixes", "\xFF" "a\n");
    const outcome *o = feed("the cat\n", "translate @/mended --max-length 1 --prefix-file @/prefixes");
    ck_assert_int_eq(o->status, 1);
    ck_assert_str_eq(o->out, "");
    ck_assert_ptr_nonnull(
        strstr(o->err, "/prefixes:1: the prefix has 2 tokens, but it can have 1 at most (decoding.max_length)\n"));
}
END_TEST

/* Whatever a text is made of, columns stay columns and nothing behind a 0 byte is lost. */
START_TEST(tabs_and_zeros_in_a_text)
{
    hw_bundle *b = tiny_bundle(arena, tiny_config(arena, "text.tokenizer=char;text.joiner="), "a b", "c d");
    save_bundle(b, scratch_path("chars"));
    hw_bundle_free(b);
    static const char begun[] = "c\td\0e\n";
    scratch_write("prefixes", begun, sizeof begun - 1);
    ck_assert(!strncmp(fed("ab\n", "translate @/chars --prefix-file @/prefixes --max-length 6")->out, "c\td e", 5));
    const char *out = fed("ab\n", "translate @/chars --prefix-file @/prefixes --max-length 6 --scores")->out;
    ck_assert(!strncmp(strchr(out, '\t') + 1, "c d e", 5));
    out = fed("ab\n", "translate @/chars --prefix-file @/prefixes --max-length 6 --n-best 2")->out;
    ck_assert(!strncmp(out, "c d e", 5) && !strncmp(strchr(out, '\t') + 1, "c d e", 5));
    out = fed("ab\n", hw_arena_string(arena, "score @/chars - %s --tokens", scratch_text("tab", "c\t\n")))->out;
    ck_assert_ptr_nonnull(strstr(out, "\n0\t1\t \t-"));
}
END_TEST

/* ---- unknown words ----------------------------------------------------------------------------------------------- */

/* Everything is unknown to this network, so each word out is the word in that was attended most; pieces of a word are
 * given as the whole word. */
START_TEST(unknown_words_become_the_most_attended)
{
    static const char *const words[] = {"the", "borati", "sees", "unseen", "."};
    static const int word_of[] = {0, 1, 1, 1, 2, 3, 4}; /* of each source token */
    translate_save(scratch_path("unknown"), -50, 50);
    const char *line = "the borati sees unseen .";
    ck_assert_str_eq(fed("the cat\n", "translate @/unknown --max-length 3")->out, "<unk> <unk> <unk>\n");
    const outcome *o =
        fed(hw_arena_string(arena, "\n%s\n", line), "translate @/unknown --max-length 6 --replace-unknown --json");
    json_t *root_json = json_loads(line_of(o->out, 1), 0, NULL);
    const json_t *cross = json_object_get(json_object_get(root_json, "attention"), "decoder.1.cross");
    const char *expected = "";
    for (size_t t = 0; t < 6; t++) {
        size_t best = 0;
        double most = -1;
        for (size_t i = 0; i < 7; i++) {
            double sum = 0;
            for (size_t h = 0; h < json_array_size(cross); h++)
                sum += json_number_value(json_array_get(json_array_get(json_array_get(cross, h), t), i));
            if (sum > most) most = sum, best = i;
        }
        expected = hw_arena_string(arena, "%s%s%s", expected, t ? " " : "", words[word_of[best]]);
    }
    const json_t *first = json_array_get(json_object_get(root_json, "translations"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "text")), expected);
    json_decref(root_json);
}
END_TEST

/* ---- long lines -------------------------------------------------------------------------------------------------- */

START_TEST(lines_longer_than_any_in_training_are_counted)
{
    const char *lines = "the cat\n\nthe cat sat on\nthe cat sat on mat a\nthe cat sat\n";
    hw_error err = {""};
    ck_assert_int_eq(hw_bundle_longest_source(model), 0);
    char *out = strdup(fed(lines, "translate @/model")->out);
    ck_assert_msg(hw_bundle_save_corpus(&(hw_corpus_counts){.source_longest = 3}, NULL, model, &err), "%s", err.message);
    ck_assert_int_eq(hw_bundle_longest_source(model), 3);
    const outcome *o = feed(lines, "translate @/model");
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->out, out);
    ck_assert_str_eq(o->err, "headwise: of 5 lines 2 have more tokens than any source in training, 3, and may come out "
                             "badly; the longest is line 4 with 6\n");
    fed("the cat sat\n", "translate @/model");
    scratch_text("model/corpus.json", "{");
    fed(lines, "translate @/model");
    free(out);
}
END_TEST

START_TEST(a_hard_limit_is_said)
{
    char *cut = strdup(fed("the cat sat\na dog\n", "translate @/model")->out);
    const outcome *o = feed("the cat sat on the mat\na dog\n", "translate @/model --longest-source 3");
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->out, cut);
    ck_assert_str_eq(o->err, "headwise: standard input:1: 6 tokens are too many; the first 3 are translated, and so of "
                             "all such lines\n");
    free(cut);
}
END_TEST

/* ---- evaluate ---------------------------------------------------------------------------------------------------- */

START_TEST(evaluate_takes_the_same_options)
{
    scratch_text("test.en", "the cat\nunseen dog sat on\n");
    const char *text =
        fed("the cat\nunseen dog sat on\n", "translate @/model --beam 3 --min-length 5 --coverage-penalty 1")->out;
    scratch_text("test.fr", text);
    const outcome *o = fed("", "evaluate @/model --json --beam 3 --min-length 5 --set decoding.coverage_penalty=1");
    json_t *figures = json_loads(o->out, 0, NULL);
    ck_assert_double_eq(json_real_value(json_object_get(figures, "exact_match")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(figures, "source_tokens")), 6);
    ck_assert_int_eq(json_integer_value(json_object_get(figures, "unknown_tokens")), 1);
    ck_assert_int_eq(json_integer_value(json_object_get(figures, "unread_tokens")), 0);
    json_decref(figures);
    ck_assert_ptr_nonnull(strstr(fed("", "evaluate @/model --sampling --seed 8")->out, "sampled with seed 8"));
    ck_assert_ptr_nonnull(strstr(fed("", "evaluate @/model")->out, "of 6 source tokens"));
    o = feed("", "evaluate @/model --longest-source 3");
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->err, "headwise: of 2 lines 1 has more tokens than decoding.longest_source lets be read; 1 "
                             "token was left out\n");
}
END_TEST

/* The sum of the numbers of `score`, and how many tokens they are of. */
static double scored(const char *name, int *tokens)
{
    const char *words = hw_arena_string(arena, "score @/%s @/test.en @/test.fr", name);
    double sum = 0;
    for (const char *at = fed("", words)->out; *at; at = strchr(at, '\n') + 1) sum += strtod(at, NULL);
    *tokens = lines_in(fed("", hw_arena_string(arena, "%s --tokens", words))->out);
    return sum;
}

/* Translations are those of translate, the perplexity that of the mean of what score prints; what is one network's is
 * left out. */
START_TEST(evaluate_takes_an_ensemble)
{
    const char *lines = "the cat\nunseen dog sat on\n";
    int tokens;
    translate_save(scratch_path("other"), 2, 0);
    scratch_text("test.en", lines);
    scratch_text("test.align", "0-0\n\n");
    scratch_text("test.fr", fed(lines, "translate @/model --ensemble @/other --beam 2 --min-length 3")->out);
    const outcome *o = fed("", "evaluate @/model --ensemble @/other --beam 2 --min-length 3 --json");
    json_t *figures = json_loads(o->out, 0, NULL);
    ck_assert_double_eq(json_real_value(json_object_get(figures, "exact_match")), 1);
    double perplexity = json_real_value(json_object_get(figures, "perplexity"));
    ck_assert(!json_object_get(figures, "token_accuracy") && !json_object_get(figures, "aer"));
    json_decref(figures);
    double sum = scored("model", &tokens) + scored("other", &tokens);
    ck_assert_double_eq_tol(log(perplexity), -sum / 2 / tokens, 1e-6);
    o = fed("", "evaluate @/model --ensemble @/other");
    ck_assert(!strstr(o->out, "token accuracy") && !strstr(o->out, "AER"));
    ck_assert_ptr_nonnull(strstr(o->out, "/model with "));
    o = fed("", "evaluate @/model");
    ck_assert(strstr(o->out, "token accuracy") && strstr(o->out, "AER"));
}
END_TEST

/* ---- what does not go together ----------------------------------------------------------------------------------- */

static const struct {
    int status;
    const char *words, *message;
} faults[] = {
    {2, "translate @/model --beam 0", "translate: --beam: 0 is out of range; it goes from 1 to 1024"},
    {2, "translate @/model --top-p 0", "translate: --top-p: 0 is out of range; it goes from 1e-06 to 1"},
    {2, "translate @/model --temperature 0", "translate: --temperature: 0 is out of range; it goes from 0.001 to 1000"},
    {2, "translate @/model --patience 0", "translate: --patience: 0 is out of range; it goes from 0.001 to 1000"},
    {2, "translate @/model --sampling=yes", "translate: --sampling takes no value"},
    {2, "translate @/model --top-k ten", "translate: --top-k: expected a whole number, found ten"},
    {2, "translate @/model --beem 3", "translate: unknown option --beem; did you mean --beam?"},
    {2, "translate @/model --beam 3 --sampling",
     "--beam: decoding.beam: 3 hypotheses do not go with decoding.sampling true; a sample is one hypothesis, set the "
     "beam to 1"},
    {2, "translate @/model --beam 3 --top-p 0.5",
     "--beam: decoding.beam: 3 hypotheses do not go with decoding.sampling true; a sample is one hypothesis, set the "
     "beam to 1"},
    {2, "evaluate @/model --beam 3 --sampling",
     "--beam: decoding.beam: 3 hypotheses do not go with decoding.sampling true; a sample is one hypothesis, set the "
     "beam to 1"},
    {2, "translate @/model --patience 2 --sampling",
     "--patience: decoding.patience: 2 does not go with decoding.sampling true; samples are not searched for"},
    {2, "translate @/model --beam 2 --n-best 3", "--n-best: decoding.n_best: 3 is more than decoding.beam 2"},
    {2, "translate @/model --n-best 3 --patience 0.5",
     "--n-best: decoding.n_best: 3 is more than the beam lets finish with decoding.patience 0.5"},
    {2, "translate @/model --beam 3 --patience 0.1",
     "--patience: decoding.n_best: 1 is more than the beam lets finish with decoding.patience 0.1"},
    {2, "translate @/model --seed 3",
     "--seed: nothing is drawn, so there is no seed; --sampling, --temperature, --top-k or --top-p draw"},
    {2, "translate @/model --min-length 10",
     "--min-length: decoding.min_length: 10 is more than decoding.max_length 9"},
    {1, "translate @/model --prefix-file @/none", "@/none: there is no such file of prefixes"},
    {1, "translate @/model --prefix-file /dev/null",
     "/dev/null: it is no file; prefixes are read more than once, so a pipe or a device will not do"},
    {1, "translate @/model --prefix-file -",
     "standard input: it is no file; prefixes are read more than once, so a pipe or a device will not do"},
    {1, "translate @/model --prefix-file @/prefixes --max-length 4",
     "@/prefixes:2: the prefix has 5 tokens, but it can have 4 at most (decoding.max_length)"},
    {1, "translate @/model --prefix-file @/prefixes --max-length 0 --longest-source 4",
     "@/prefixes:2: the prefix has 5 tokens, but it can have 4 at most (decoding.max_length)"},
    {1, "translate @/model --ensemble @/none", "@/none: there is no such model directory"},
    {1, "translate @/model --ensemble @/model --ensemble @/words",
     "@/model and @/words: the target vocabularies are not the same: 17 and 5 tokens; an ensemble needs one"},
    {1, "evaluate @/model --ensemble @/words",
     "@/model and @/words: the target vocabularies are not the same: 17 and 5 tokens; an ensemble needs one"},
    {1, "translate @/model --ensemble @/joined",
     "@/model and @/joined: text is not cut alike: tokenizer word with joiner \"@@ \", and word with \"\""},
};
enum { FAULTS = sizeof faults / sizeof *faults };

START_TEST(what_does_not_go_together_is_said_first)
{
    scratch_text("prefixes", "le chat\nle chat assis sur tapis\n");
    hw_bundle *words = tiny_bundle(arena, tiny_config(arena, ""), translate_source, "le chat");
    hw_bundle *joined = tiny_bundle(arena, tiny_config(arena, "text.joiner="), translate_source, translate_target);
    save_bundle(words, scratch_path("words"));
    save_bundle(joined, scratch_path("joined"));
    hw_bundle_free(words);
    hw_bundle_free(joined);
    const outcome *o = feed("the cat\nthe dog\n", faults[_i].words);
    ck_assert_msg(o->status == faults[_i].status, "status %d: %s", o->status, o->err);
    ck_assert_str_eq(o->out, "");
    const char *expected = "headwise: ";
    for (const char *c = faults[_i].message; *c; c++)
        expected = *c == '@' && c[1] == '/' ? hw_arena_string(arena, "%s%s", expected, root)
                                            : hw_arena_string(arena, "%s%c", expected, *c);
    ck_assert_str_eq(o->err, hw_arena_string(arena, "%s\n", expected));
}
END_TEST

/* Options of the configuration follow those that are given; a configuration that cannot work is refused as well. */
START_TEST(the_configuration_gives_way)
{
    static const struct {
        const char *section, *words, *message; /* NULL: it works */
    } cases[] = {
        {"{beam: 5, n_best: 2, patience: 2}", "translate @/model --sampling", NULL},
        {"{beam: 5}", "translate @/model --top-k 3", NULL},
        {"{sampling: true}", "translate @/model --beam 4", NULL},
        {"{beam: 4, n_best: 4}", "translate @/model --beam 2", NULL},
        {"{beam: 5, patience: 0.4}", "translate @/model --beam 1", NULL},
        {"{beam: 5, patience: 0.4}", "translate @/model --n-best 4", NULL},
        {"{beam: 5, patience: 0.4, n_best: 2}", "translate @/model --beam 3", NULL},
        {"{sampling: true}", "translate @/model --n-best 3", NULL},
        {"{beam: 4, min_length: 9, max_length: 8}", "translate @/model",
         "/model/config.yaml:1:33: decoding.min_length: 9 is more than decoding.max_length 8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = hw_arena_string(arena,
                                           "decoding: %s\nmodel: {encoder_layers: 2, decoder_layers: 2, width: 16, "
                                           "heads: 2, feed_forward: 32}\ntext: {joiner: \"@@ \"}\n",
                                           cases[i].section);
        scratch_text("model/config.yaml", text);
        const outcome *o = feed("the cat\na dog\n", cases[i].words);
        if (!cases[i].message) {
            ck_assert_msg(o->status == 0 && !*o->err && lines_in(o->out) == 2, "%d: %s", (int)i, o->err);
        } else {
            ck_assert_int_eq(o->status, 2);
            ck_assert_msg(strstr(o->err, cases[i].message) != NULL, "%s", o->err);
        }
    }
}
END_TEST

Suite *test_translate_options(void);
Suite *test_translate_options(void)
{
    Suite *s = suite_create("translate_options");
    TCase *c = tcase_create("translate_options");
    tcase_add_checked_fixture(c, begin, translate_end);
    tcase_add_loop_test(c, each_option_keeps_lines_and_order, 0, WAYS);
    tcase_add_loop_test(c, samples_depend_on_seed_and_line_alone, 0, 4);
    tcase_add_loop_test(c, translations_begin_with_their_prefix, 0, 5);
    tcase_add_test(c, uneven_prefixes_are_told);
    tcase_add_test(c, mended_prefixes_are_counted);
    tcase_add_test(c, tabs_and_zeros_in_a_text);
    tcase_add_test(c, unknown_words_become_the_most_attended);
    tcase_add_test(c, lines_longer_than_any_in_training_are_counted);
    tcase_add_test(c, a_hard_limit_is_said);
    tcase_add_test(c, evaluate_takes_the_same_options);
    tcase_add_test(c, evaluate_takes_an_ensemble);
    tcase_add_loop_test(c, what_does_not_go_together_is_said_first, 0, FAULTS);
    tcase_add_test(c, the_configuration_gives_way);
    suite_add_tcase(s, c);
    return s;
}
