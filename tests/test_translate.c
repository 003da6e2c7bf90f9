/* translate, evaluate and score from the command line, with a tiny model of random weights: whatever the lines hold, N
 * lines in are N lines out, in order, and the same as alone; figures are those that the library gives. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <headwise/decode.h>
#include <headwise/metrics.h>

#include "cli/cli.h"
#include "support_files.h"
#include "support_model.h"
#include "support_text.h"
#include "support_translate.h"

static hw_arena *arena;
static hw_bundle *bundle;
static const char *root, *model; /* the scratch directory, and the model in it */

static void begin(void)
{
    translate_begin();
    arena = scratch_arena();
    bundle = translate_bundle();
    favour(bundle->network, HW_END, 1); /* as it was saved */
    root = scratch_root();
    model = scratch_path("model");
}

/* ---- running with something to read ------------------------------------------------------------------------------ */

#define FEED(text, ...) feed_words(text, strlen(text), (const char *const[]){"headwise", __VA_ARGS__, NULL})

static void ck_done(const outcome *o) { ck_assert_msg(o->status == 0, "status %d: %s", o->status, o->err); }

/* ---- translate --------------------------------------------------------------------------------------------------- */

START_TEST(each_line_comes_out_as_alone)
{
    static const char *const ways[][6] = {
        {"translate", NULL},
        {"translate", "--batch", "1", NULL},
        {"translate", "--threads", "3", "--batch", "2", NULL},
        {"translate", "--beam", "3", NULL},
        {"translate", "--quiet", NULL},
    };
    static const char *const endings[][2] = {{"\n", "\n"}, {"\n", ""}, {"\r\n", "\r\n"}};
    const char *words[16] = {"headwise"};
    int n = 1;
    for (int i = 0; ways[_i][i]; i++) words[n++] = ways[_i][i];
    words[n++] = model;
    char *alone[SOME];
    for (int i = 0; i < SOME; i++) {
        const char *line = hw_arena_string(arena, "%s\n", some[i]);
        alone[i] = strdup(line_of(feed_words(line, strlen(line), words)->out, 0));
    }
    for (int e = 0; e < 3; e++) {
        const char *text = some_lines(endings[e][0], endings[e][1]);
        const outcome *o = feed_words(text, strlen(text), words);
        ck_done(o);
        ck_assert_str_eq(o->err, "");
        ck_assert_int_eq(lines_in(o->out), SOME);
        for (int i = 0; i < SOME; i++) ck_assert_str_eq(line_of(o->out, i), alone[i]);
    }
    ck_assert(!*alone[1] && !*alone[3] && *alone[0]);
    ck_assert_str_eq(alone[0], alone[6]);
    for (int i = 0; i < SOME; i++) free(alone[i]);
}
END_TEST

START_TEST(a_file_is_read_plain_or_compressed)
{
    const char *text = some_lines("\n", "\n");
    char *expected = strdup(FEED(text, "translate", model)->out);
    ck_assert_str_eq(RUN("headwise", "translate", model, scratch_text("a.en", text))->out, expected);
    ck_assert_str_eq(RUN("headwise", "translate", model, scratch_gzip("a.en.gz", text))->out, expected);
    ck_assert_str_eq(FEED(text, "translate", model, "-")->out, expected);
    ck_assert_str_eq(RUN("translate", model, scratch_path("a.en"))->out, expected);
    ck_assert_str_eq(FEED("", "translate", model)->out, "");
    free(expected);
}
END_TEST

/* More lines than one window holds: order and number hold across windows. */
START_TEST(many_lines_keep_their_order)
{
    enum { MANY = 300 };
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; i < MANY; i++) fprintf(f, "%s\n", some[i * 7 % SOME]);
    fclose(f);
    char *few = strdup(FEED(some_lines("\n", "\n"), "translate", model)->out);
    const outcome *o = FEED(text, "translate", model, "--batch", "1", "--threads", "2");
    ck_done(o);
    ck_assert_int_eq(lines_in(o->out), MANY);
    for (int i = 0; i < MANY; i++) ck_assert_str_eq(line_of(o->out, i), line_of(few, i * 7 % SOME));
    free(few);
    free(text);
}
END_TEST

/* What its memory may waver by; the sanitizer keeps what was freed for a while. */
#ifdef __SANITIZE_ADDRESS__
enum { FEW_KILOBYTES = 8192 };
#else
enum { FEW_KILOBYTES = 1024 };
#endif

/* It is asked for the peak of its memory while it waits for more: after some windows, and after many more. */
START_TEST(many_lines_take_no_more_memory)
{
    const char *script = hw_arena_string(
        arena,
        "export ASAN_OPTIONS=quarantine_size_mb=1\n"
        "coproc T { exec %s/headwise translate %s --threads 1 --beam 1; }\n"
        "exec 8<&${T[0]} 9>&${T[1]}\n"
        "for lines in 9000 30000; do\n"
        "    yes 'the cat' | head -n $lines >&9 & head -n $lines <&8 | wc -l\n"
        "    sed -n 's/VmHWM:[^0-9]*\\([0-9]*\\) kB/\\1/p' /proc/$T_PID/status\n"
        "done\n",
        built_directory(), model);
    int lines[2], kilobytes[2];
    const outcome *o = run_bash(script);
    ck_assert_msg(sscanf(o->out, "%d %d %d %d", &lines[0], &kilobytes[0], &lines[1], &kilobytes[1]) == 4, "%s%s", o->out,
                  o->err);
    ck_assert(lines[0] == 9000 && lines[1] == 30000);
    ck_assert_msg(kilobytes[1] - kilobytes[0] < FEW_KILOBYTES, "%d kB, then %d kB", kilobytes[0], kilobytes[1]);
}
END_TEST

/* Lines that are mostly blank, and one of very many words: what is not read further takes no memory. */
START_TEST(long_lines_take_no_more_memory)
{
    static const struct {
        const char *text, *call;
        int lines;
    } cases[] = {
        {"for i in {1..24}; do printf 'the cat%1048568s\n' ''; done", "score @/model @/long @/long", 24},
        {"yes a | head -2097152 | tr '\n' ' '; echo", "translate @/model @/long --max-length 3", 1},
    };
    const char *const *words = scratch_words(cases[_i].call), *call = "";
    for (int k = 1; words[k]; k++) call = hw_arena_string(arena, "%s %s", call, words[k]);
    scratch_text("long", "the cat\n");
    long before = peak_of_program(call);
    run_bash(hw_arena_string(arena, "{ %s; } > %s", cases[_i].text, scratch_path("long")));
    long after = peak_of_program(call);
    ck_assert_msg(after - before < 32 << 10, "%ld kB, then %ld kB", before, after);
    ck_assert_int_eq(lines_in(run_bash(hw_arena_string(arena, "%s/headwise %s", built_directory(), call))->out),
                     cases[_i].lines);
}
END_TEST

START_TEST(bytes_that_are_not_text_are_read_all_the_same)
{
    static const char bad[] = "the cat\n\xff\xfe the \xc3\ncat \xed\xa0\x80\n\0\na\0b\ndog\n";
    const outcome *o = feed_words(bad, sizeof bad - 1, (const char *const[]){"headwise", "translate", model, NULL});
    ck_done(o);
    ck_assert_int_eq(lines_in(o->out), 6);
    ck_assert_str_eq(
        o->err, "headwise: standard input:2: byte 1 is 0xFF, which is not valid UTF-8; it is read as U+FFFD, and so "
                "are all like it\n");
    o = FEED("\xef\xbf\xbd\xef\xbf\xbd the \xef\xbf\xbd\n", "translate", model, "--json");
    char *mended = strdup(strstr(o->out, "\"translations\""));
    o = feed_words("\xff\xfe the \xc3\n", 9, (const char *const[]){"headwise", "translate", model, "--json", NULL});
    ck_assert_str_eq(strstr(o->out, "\"translations\""), mended);
    free(mended);
}
END_TEST

/* A program that writes a line and waits for the answer gets it. */
START_TEST(the_output_is_flushed_when_the_input_pauses)
{
    FILE *in, *answers;
    pid_t child = translate_piped(model, &in, &answers);
    char line[2][256];
    for (int i = 0; i < 3; i++) {
        ck_assert(fputs("the cat\n", in) >= 0 && !fflush(in));
        ck_assert_ptr_nonnull(fgets(line[i > 0], sizeof line[0], answers));
        if (i) ck_assert_str_eq(line[0], line[1]);
    }
    fclose(in);
    ck_assert_ptr_null(fgets(line[1], sizeof line[1], answers));
    fclose(answers);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(json_tells_tokens_scores_and_attention)
{
    const outcome *o = FEED("the borati\n\nbig\n", "translate", model, "--json", "--beam", "3", "--n-best", "2");
    ck_done(o);
    ck_assert_int_eq(lines_in(o->out), 3);
    json_t *first = json_loads(line_of(o->out, 0), 0, NULL), *blank = json_loads(line_of(o->out, 1), 0, NULL);
    ck_assert(first && blank);
    ck_assert_int_eq(json_integer_value(json_object_get(first, "line")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(first, "source")), "the borati");
    static const char *const tokens[] = {"the", "bo@@", "ra@@", "ti", "</s>"};
    const json_t *source = json_object_get(first, "source_tokens"), *list = json_object_get(first, "translations");
    ck_assert_int_eq((int)json_array_size(source), 5);
    for (size_t i = 0; i < 5; i++) ck_assert_str_eq(json_string_value(json_array_get(source, i)), tokens[i]);
    ck_assert_int_eq((int)json_array_size(list), 2);
    double before = 0;
    for (size_t k = 0; k < 2; k++) {
        const json_t *one = json_array_get(list, k), *log_probs = json_object_get(one, "log_probs");
        size_t n = json_array_size(json_object_get(one, "tokens"));
        double sum = 0, score = json_real_value(json_object_get(one, "score"));
        ck_assert_uint_eq(json_array_size(log_probs), n - 1);
        for (size_t i = 0; i < n - 1; i++) sum += json_real_value(json_array_get(log_probs, i));
        ck_assert_double_lt(fabs(sum - json_real_value(json_object_get(one, "log_prob"))), 1e-5);
        ck_assert_double_lt(fabs(sum / pow((5 + (double)(n - 1)) / 6, 0.6) - score), 1e-5);
        ck_assert(k == 0 || score <= before);
        before = score;
    }
    const json_t *attention = json_object_get(first, "attention"),
                 *cross = json_object_get(attention, "decoder.1.cross");
    ck_assert_int_eq((int)json_object_size(attention), 2);
    ck_assert_int_eq((int)json_array_size(cross), 2);
    size_t rows = json_array_size(json_object_get(json_array_get(list, 0), "log_probs"));
    ck_assert_uint_eq(json_array_size(json_array_get(cross, 1)), rows);
    ck_assert_uint_eq(json_array_size(json_array_get(json_array_get(cross, 1), 0)), 5);
    ck_assert_str_eq(line_of(o->out, 1), "{\"line\":2,\"source\":\"\",\"translations\":[{\"text\":\"\"}]}");
    json_decref(first);
    json_decref(blank);
}
END_TEST

/* Attention is looked at for some lines at a time, and each line has its own. */
START_TEST(json_of_many_lines)
{
    enum { LINES = 150 };
    const char *text = "";
    for (int i = 0; i < LINES; i++) {
        for (int k = 0; k < i % 9; k++) text = hw_arena_string(arena, "%scat ", text);
        text = hw_arena_string(arena, "%s\n", text);
    }
    fed(text, "translate @/model --json -q");
    char *out = scratch_read(scratch_path("stdout"), NULL), *at = out; /* more than an outcome holds */
    ck_assert_int_eq(lines_in(out), LINES);
    for (int i = 0; i < LINES; i++, at = strchr(at, '\n') + 1) {
        json_t *line = json_loads(hw_arena_string(arena, "%.*s", (int)strcspn(at, "\n"), at), 0, NULL);
        ck_assert_int_eq(json_integer_value(json_object_get(line, "line")), i + 1);
        const json_t *cross = json_object_get(json_object_get(line, "attention"), "decoder.1.cross");
        ck_assert_uint_eq(json_array_size(json_array_get(json_array_get(cross, 0), 0)), i % 9 ? i % 9 + 1 : 0);
        json_decref(line);
    }
    free(out);
}
END_TEST

START_TEST(n_best_and_scores_stay_on_one_line)
{
    char *one = strdup(line_of(FEED("the cat\n", "translate", model, "--beam", "4")->out, 0));
    const outcome *o = FEED("the cat\n\n", "translate", model, "--beam", "4", "--n-best", "3", "--scores");
    ck_done(o);
    ck_assert_int_eq(lines_in(o->out), 2);
    ck_assert_str_eq(line_of(o->out, 1), "");
    char *text = (char *)(uintptr_t)line_of(o->out, 0), *place;
    int fields = 0;
    double before = 0;
    for (char *field = strtok_r(text, "\t", &place); field; field = strtok_r(NULL, "\t", &place), fields++) {
        if (fields == 1) ck_assert_str_eq(field, one);
        if (fields % 2) continue;
        ck_assert(fields == 0 || atof(field) <= before);
        before = atof(field);
    }
    ck_assert_int_eq(fields, 6);
    /* More are wanted than the default beam holds: the beam follows. */
    ck_done(FEED("the cat\n", "translate", model, "--n-best", "3"));
    free(one);
}
END_TEST

START_TEST(a_network_that_is_not_finite_gives_empty_lines)
{
    hw_parameters_find(bundle->network->parameters, "decoder.1.feed_forward_norm.bias")->tensor.data[3] = (hw_real)NAN;
    save_bundle(bundle, model);
    const outcome *o = FEED("the cat\n\ndog\n", "translate", model);
    ck_assert_int_eq(o->status, 1);
    ck_assert_str_eq(o->out, "\n\n\n");
    ck_assert_str_eq(
        o->err, "headwise: of 3 lines 2 could not be translated and are empty: the network's numbers are not finite\n");
}
END_TEST

/* Without an end a line of a hundred thousand words would take hours. */
START_TEST(a_line_without_end_is_read_up_to_the_longest_source)
{
    enum { WORDS = 100000, UNIT = 4 };
    char *text = malloc(WORDS * UNIT + 1);
    for (int i = 0; i < WORDS; i++) memcpy(text + i * UNIT, "cat ", UNIT);
    text[WORDS * UNIT - 1] = '\n';
    const char *const words[] = {"headwise", "translate", model, "--max-length", "3", "-q", NULL};
    const outcome *o = feed_words(text, WORDS * UNIT, words);
    ck_assert_int_eq(o->status, 0);
    ck_assert_int_eq(lines_in(o->out), 1);
    ck_assert_str_eq(o->err, "headwise: standard input:1: 100000 tokens are too many; the first 1024 are translated, "
                             "and so of all such lines\n");
    char *all = strdup(o->out);
    text[HW_LONGEST_SOURCE * UNIT - 1] = '\n';
    o = feed_words(text, HW_LONGEST_SOURCE * UNIT, words);
    ck_done(o);
    ck_assert_str_eq(o->err, "");
    ck_assert_str_eq(o->out, all);
    free(all);
    free(text);
}
END_TEST

/* Lines before the place where a file breaks are translated. */
START_TEST(a_broken_file_gives_what_came_before)
{
    char *text = calloc(1, 400000), *at = text;
    for (int i = 0; i < 4000; i++) at += sprintf(at, "the cat %d %d\n", i * 7919 % 4001, i * 104729 % 4001);
    const char *path = scratch_gzip("a.gz", text);
    size_t size;
    char *bytes = scratch_read(path, &size);
    scratch_write("a.gz", bytes, size / 2);
    const outcome *o = RUN("headwise", "translate", model, path, "--max-length", "1");
    ck_assert_int_eq(o->status, 1);
    ck_assert_int_gt(lines_in(o->out), 100);
    ck_assert_ptr_nonnull(strstr(o->err, path));
    free(bytes);
    free(text);
}
END_TEST

/* ---- score ------------------------------------------------------------------------------------------------------- */

START_TEST(score_prints_a_number_a_line_or_a_token)
{
    const char *source = scratch_text("s", "the cat\n\na dog .\n"),
               *target = scratch_text("t", "le chat voit\n\nunseen\n");
    hw_runner *r = hw_runner_new(bundle->network);
    static const int32_t en[] = {3, 4, 8, 11, 16}, fr[] = {3, 4, 12, HW_UNKNOWN};
    hw_ids sources[] = {{en, 2}, {NULL, 0}, {en + 2, 3}}, targets[] = {{fr, 3}, {NULL, 0}, {fr + 3, 1}};
    hw_real nll[7];
    hw_score_pairs(r, 3, sources, targets, 0, nll);
    hw_runner_free(r);
    static const char *const tokens[] = {"le", "chat", "voit", "</s>", "</s>", "unseen", "</s>"};
    static const int sentence[] = {0, 0, 0, 0, 1, 2, 2}, position[] = {0, 1, 2, 3, 0, 0, 1};

    const outcome *o = RUN("headwise", "score", model, source, target, "--tokens");
    ck_done(o);
    ck_assert_int_eq(lines_in(o->out), 7);
    double sums[3] = {0};
    for (int i = 0; i < 7; i++) {
        char expected[128];
        snprintf(expected, sizeof expected, "%d\t%d\t%s\t%.9g", sentence[i], position[i], tokens[i], -(double)nll[i]);
        ck_assert_str_eq(line_of(o->out, i), expected);
        sums[sentence[i]] -= (double)nll[i];
    }
    o = RUN("headwise", "score", model, source, target);
    ck_assert_int_eq(lines_in(o->out), 3);
    for (int i = 0; i < 3; i++) ck_assert_double_lt(fabs(atof(line_of(o->out, i)) - sums[i]), 1e-6);
    o = FEED("le chat voit\n\nunseen", "score", model, source, "-", "--json");
    ck_done(o);
    json_t *first = json_loads(line_of(o->out, 0), 0, NULL);
    ck_assert_double_lt(fabs(json_real_value(json_object_get(first, "log_prob")) - sums[0]), 1e-6);
    ck_assert_int_eq((int)json_array_size(json_object_get(first, "log_probs")), 4);
    json_decref(first);
}
END_TEST

/* ---- evaluate ---------------------------------------------------------------------------------------------------- */

/* A test set of whose references the model translates all but one. */
static void write_test_set(void)
{
    static const char *const lines[] = {"the cat", "a dog sees bo@@ ra@@ ti", "red mat", "sat on ."};
    hw_search_options search = hw_search_options_of(bundle->config);
    hw_translator *t = hw_translator_new(bundle, &search);
    const hw_translation *out = hw_translate_lines(t, 4, lines, NULL);
    const char *source = "", *target = "";
    for (int i = 0; i < 4; i++) {
        source = hw_arena_string(arena, "%s%s\n", source, lines[i]);
        target = hw_arena_string(arena, "%s%s\n", target, i == 2 ? "chien rouge" : out[i].texts[0]);
    }
    hw_translator_free(t);
    scratch_text("test.en", source);
    scratch_text("test.fr", target);
    scratch_text("test.groups", "seen\nunseen\nunseen\nunseen\n");
}

START_TEST(scores_that_are_not_finite_are_told)
{
    write_test_set();
    hw_parameters_find(bundle->network->parameters, "decoder.1.feed_forward_norm.bias")->tensor.data[3] = (hw_real)NAN;
    save_bundle(bundle, model);
    const char *text = scratch_text("s", "the cat\n\n");
    const outcome *o = RUN("headwise", "score", model, text, text);
    ck_assert_int_eq(o->status, 1);
    ck_assert_int_eq(lines_in(o->out), 2);
    ck_assert_str_eq(o->err, "headwise: of 2 pairs 2 have no score: the network's numbers are not finite\n");
    o = RUN("headwise", "evaluate", model, "--json");
    ck_assert_int_eq(o->status, 1);
    ck_assert_msg(strstr(o->out, "\"token_accuracy\": 0.0,") != NULL, "%s", o->out);
}
END_TEST

START_TEST(evaluate_gives_the_figures_of_the_library)
{
    write_test_set();
    const outcome *o = RUN("headwise", "evaluate", model, "--json", "--output", scratch_path("out"));
    ck_done(o);
    json_t *figures = json_loads(o->out, 0, NULL);
    ck_assert_ptr_nonnull(figures);
    ck_assert_double_eq(json_real_value(json_object_get(figures, "exact_match")), 0.75);
    ck_assert_int_eq(json_integer_value(json_object_get(figures, "sentences")), 4);
    const json_t *groups = json_object_get(figures, "groups"), *unseen = json_object_get(groups, "unseen");
    ck_assert_double_eq(json_real_value(json_object_get(json_object_get(groups, "seen"), "exact_match")), 1);
    ck_assert_double_eq(json_real_value(json_object_get(unseen, "exact_match")), 2.0 / 3);
    ck_assert_int_eq(json_integer_value(json_object_get(unseen, "sentences")), 3);

    hw_error err;
    hw_side source = hw_bundle_source(bundle), target = hw_bundle_target(bundle);
    hw_corpus *corpus = hw_corpus_load(root, "test", &source, &target, NULL, &err);
    hw_runner *r = hw_runner_new(bundle->network);
    hw_loss_count sums = hw_score_corpus(r, corpus, 0, 0);
    ck_assert_double_eq(json_real_value(json_object_get(figures, "perplexity")), exp(sums.nll / (double)sums.tokens));
    ck_assert_double_eq(json_real_value(json_object_get(figures, "token_accuracy")),
                        (double)sums.correct / (double)sums.tokens);
    hw_runner_free(r);
    hw_corpus_free(corpus);

    json_t *bleu =
        json_loads(RUN("headwise", "bleu", scratch_path("test.fr"), scratch_path("out"), "--json")->out, 0, NULL);
    static const char *const same[] = {"bleu", "chrf", "signature"};
    for (size_t i = 0; i < 3; i++)
        ck_assert(json_equal(json_object_get(figures, same[i]), json_object_get(bleu, same[i])));
    ck_assert_ptr_null(json_object_get(figures, "aer"));
    json_decref(bleu);
    json_decref(figures);
}
END_TEST

/* Gold that is what the best head links has an error rate of 0, and that head is named. */
START_TEST(evaluate_finds_the_head_that_aligns)
{
    write_test_set();
    static const int32_t en[] = {3, 4, 8, 11, 12, 13, 14, 15, 10, 7, 5, 6, 16};
    hw_ids sources[] = {{en, 2}, {en + 2, 6}, {en + 8, 2}, {en + 10, 3}}, targets[4];
    hw_lines *lines[2];
    hw_error err;
    lines[0] = hw_lines_load(arena, scratch_path("test.en"), &err);
    lines[1] = hw_lines_load(arena, scratch_path("test.fr"), &err);
    for (int i = 0; i < 4; i++) {
        hw_tokens tokens = hw_tokens_new(arena), in = hw_tokens_new(arena);
        size_t bytes;
        const char *text = hw_lines_get(lines[1], i, &bytes);
        hw_tokenizer_encode(bundle->target_tokenizer, bundle->target_vocabulary, text, bytes, &tokens);
        targets[i] = hw_token_ids(&tokens, arena);
        text = hw_lines_get(lines[0], i, &bytes);
        hw_tokenizer_encode(bundle->source_tokenizer, bundle->source_vocabulary, text, bytes, &in);
        sources[i] = hw_token_ids(&in, arena);
    }
    hw_runner *r = hw_runner_new(bundle->network);
    const hw_examined *x = hw_examine(r, 4, sources, targets, arena);
    const char *align = "";
    for (int i = 0; i < 4; i++) { /* head 1 of decoder.0.cross, the row where a word is predicted */
        const hw_attention_map *map = &x[i].attention[3];
        ck_assert_str_eq(map->name, "decoder.0.cross");
        const char *line = "";
        for (int64_t t = 0; t < targets[i].count; t++) {
            const hw_real *row = map->weights + (map->queries + t) * map->keys;
            int64_t best = 0;
            for (int64_t k = 1; k < sources[i].count; k++)
                if (row[k] > row[best]) best = k;
            line = hw_arena_string(arena, "%s%s%d-%d", line, t ? " " : "", (int)best, (int)t);
        }
        align = hw_arena_string(arena, "%s%s\n", align, line);
    }
    hw_runner_free(r);
    scratch_text("test.align", align);
    const outcome *o = RUN("headwise", "evaluate", model, "--json");
    ck_done(o);
    json_t *figures = json_loads(o->out, 0, NULL);
    ck_assert_double_eq(json_real_value(json_object_get(figures, "aer")), 0);
    ck_assert_str_eq(json_string_value(json_object_get(figures, "aer_head")), "decoder.0.cross.1");
    ck_assert_str_eq(json_string_value(json_object_get(figures, "aer_step")), "predicted");
    json_decref(figures);
    o = RUN("headwise", "evaluate", model);
    ck_assert_ptr_nonnull(strstr(o->out, "75.00 %"));
    ck_assert_ptr_nonnull(strstr(o->out, "best cross head, decoder.0.cross.1, where a word is predicted"));
}
END_TEST

START_TEST(evaluate_takes_another_set_and_other_options)
{
    write_test_set();
    scratch_text("other.en", "the cat\n");
    scratch_text("other.fr", "chat\n");
    const outcome *o = RUN("headwise", "evaluate", model, "--data", "other");
    ck_done(o);
    ck_assert_msg(strstr(o->out, "/other, 1 sentence, beam 1") != NULL, "%s", o->out);
    o = RUN("headwise", "evaluate", model, "--data", scratch_path("other"), "--set", "decoding.beam=3");
    ck_done(o);
    ck_assert_ptr_nonnull(strstr(o->out, "/other, 1 sentence, beam 3"));
    o = RUN("headwise", "evaluate", model, "--set", "data.test=other", "--json");
    ck_done(o);
    ck_assert_ptr_nonnull(strstr(o->out, "\"sentences\": 1"));
}
END_TEST

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void latin1(void) { scratch_write("t", "le\nm\xe9t\xe9o\n", 9); }
static void groups(void) { scratch_text("test.groups", "seen\n"); }
static void links(void) { scratch_text("test.align", "0-0\n0-0\n0-0\n9-0\n"); }
static void uneven(void) { scratch_text("test.fr", "a\nb\n"); }
static void empty(void)
{
    scratch_text("test.en", ""), scratch_text("test.fr", ""), unlink(scratch_path("test.groups"));
}

/* @ in words and messages stands for the scratch directory. */
static const struct {
    void (*fault)(void);
    int status;
    const char *words[6], *message;
} faults[] = {
    {NULL, 1, {"translate", "@/none"}, "@/none: there is no such model directory"},
    {NULL, 1, {"translate", "@/model", "@/none"}, "@/none: cannot be read: No such file or directory"},
    {NULL, 2, {"translate", "@/model", "--beam", "0"}, "translate: --beam: 0 is out of range; it goes from 1 to 1024"},
    {NULL,
     2,
     {"translate", "@/model", "--beam", "2", "--n-best", "3"},
     "--n-best: decoding.n_best: 3 is more than decoding.beam 2"},
    {NULL, 2, {"translate"}, "translate: too few arguments; usage: headwise translate MODEL [FILE]"},
    {NULL, 1, {"score", "@/model", "@/s", "@/none"}, "@/none: cannot be read: No such file or directory"},
    {NULL,
     1,
     {"score", "@/model", "@/s", "@/t3"},
     "@/s has 2 lines, but @/t3 has 3; line by line they must belong together"},
    {latin1,
     1,
     {"score", "@/model", "@/s", "@/t"},
     "@/t:2: byte 2 is 0xE9, which is not valid UTF-8; convert the file to UTF-8"},
    {NULL, 2, {"score", "@/model", "-", "-"}, "score: only one of the files can be standard input"},
    {NULL, 1, {"evaluate", "@/none"}, "@/none: there is no such model directory"},
    {NULL, 1, {"evaluate", "@/model", "--data", "none"}, "@/none.en: there is no such file, nor @/none.en.gz"},
    {NULL,
     2,
     {"evaluate", "@/model", "--set", "model.width=32"},
     "--set model.width: @/model was trained with 16; it cannot be changed any more"},
    {NULL, 2, {"evaluate", "@/model", "--set", "decoding.bean=3"}, NULL},
    {groups,
     1,
     {"evaluate", "@/model"},
     "@/test.groups has 1 line, but @/test.en has 4; each line is the group of one pair"},
    {links, 1, {"evaluate", "@/model"}, NULL},
    {uneven,
     1,
     {"evaluate", "@/model"},
     "@/test.en has 4 lines, but @/test.fr has 2; line by line they must belong together"},
    {empty, 1, {"evaluate", "@/model"}, "@/test.en is empty: there is nothing to evaluate"},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static const char *placed(const char *text)
{
    const char *out = "";
    for (; *text; text++)
        out = *text == '@' ? hw_arena_string(arena, "%s%s", out, root) : hw_arena_string(arena, "%s%c", out, *text);
    return out;
}

START_TEST(faults_are_told)
{
    write_test_set();
    scratch_text("s", "a\nb\n");
    scratch_text("t3", "a\nb\nc\n");
    if (faults[_i].fault) faults[_i].fault();
    const char *words[8] = {"headwise"};
    for (int i = 0; i < 6 && faults[_i].words[i]; i++) words[i + 1] = placed(faults[_i].words[i]);
    const outcome *o = run_program(words);
    ck_assert_msg(o->status == faults[_i].status, "status %d: %s", o->status, o->err);
    if (faults[_i].message)
        ck_assert_str_eq(o->err, hw_arena_string(arena, "headwise: %s\n", placed(faults[_i].message)));
    else
        ck_assert_int_gt((int)strlen(o->err), 20);
}
END_TEST

Suite *test_translate(void);
Suite *test_translate(void)
{
    Suite *s = suite_create("translate");
    TCase *c = tcase_create("translate");
    tcase_add_checked_fixture(c, begin, translate_end);
    tcase_add_loop_test(c, each_line_comes_out_as_alone, 0, 5);
    tcase_add_test(c, a_file_is_read_plain_or_compressed);
    tcase_add_test(c, many_lines_keep_their_order);
    tcase_add_test(c, many_lines_take_no_more_memory);
    tcase_add_loop_test(c, long_lines_take_no_more_memory, 0, 2);
    tcase_add_test(c, bytes_that_are_not_text_are_read_all_the_same);
    tcase_add_test(c, the_output_is_flushed_when_the_input_pauses);
    tcase_add_test(c, json_tells_tokens_scores_and_attention);
    tcase_add_test(c, json_of_many_lines);
    tcase_add_test(c, n_best_and_scores_stay_on_one_line);
    tcase_add_test(c, a_network_that_is_not_finite_gives_empty_lines);
    tcase_add_test(c, scores_that_are_not_finite_are_told);
    tcase_add_test(c, a_line_without_end_is_read_up_to_the_longest_source);
    tcase_add_test(c, a_broken_file_gives_what_came_before);
    tcase_add_test(c, score_prints_a_number_a_line_or_a_token);
    tcase_add_test(c, evaluate_gives_the_figures_of_the_library);
    tcase_add_test(c, evaluate_finds_the_head_that_aligns);
    tcase_add_test(c, evaluate_takes_another_set_and_other_options);
    tcase_add_loop_test(c, faults_are_told, 0, FAULTS);
    suite_add_tcase(s, c);
    return s;
}
