/* The data of a study: words and tokens, sets with gold, streams, and results that are kept. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_model.h"
#include "support_text.h"

#include <headwise/heads.h>

static hw_arena *arena;
static const char *directory;
static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
    directory = hw_arena_string(arena, "%s", scratch_path("."));
}
static hw_bundle *bundle_of(const char *settings, const char *words)
{
    hw_config *config = tiny_config(arena, hw_arena_string(arena, "data.source=en;data.target=fr;%s", settings));
    return tiny_bundle(arena, config, words, words);
}

/* "ab:2 c:1": words and how many tokens each has. */
static const char *shape(const hw_sentence *s)
{
    static char text[512];
    size_t at = 0;
    for (int32_t w = 0; w < s->count; w++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s:%d", w ? " " : "", (int)s->words[w].bytes,
                               s->words[w].text, s->words[w].count);
    text[at] = 0;
    return text;
}

static void split(const hw_bundle *b, const char *line, hw_sentence *words, hw_sentence *tokens)
{
    hw_sentence_split(b, HW_SOURCE, line, strlen(line), arena, words, tokens);
    int32_t at = 0;
    for (int32_t w = 0; w < words->count; w++) {
        ck_assert_int_eq(words->words[w].first, at);
        at += words->words[w].count;
    }
    ck_assert_int_eq(at, words->ids.count);
    ck_assert_int_eq(tokens->count, words->ids.count);
}

/* ---- words and tokens -------------------------------------------------------------------------------------------- */

START_TEST(words_of_one_token_share)
{
    hw_bundle *b = bundle_of("", "the cat , bo@@ ti");
    hw_sentence words, tokens;
    split(b, "the bo@@ ti , dog", &words, &tokens);
    ck_assert_str_eq(shape(&words), "the:1 bo@@:1 ti:1 ,:1 dog:1");
    ck_assert_ptr_eq(words.words, tokens.words);
    ck_assert(words.words[1].goes_on && !words.words[2].goes_on && !words.words[0].goes_on);
    ck_assert(words.words[3].punctuation && !words.words[1].punctuation && !words.words[0].punctuation);
    ck_assert_int_eq(words.words[4].rank, INT32_MAX); /* unknown: the rarest */
    ck_assert_int_lt(words.words[0].rank, words.words[3].rank);
    hw_bundle_free(b);
}
END_TEST

/* A word that the tokenizer cuts is one word of several tokens, which are pieces of it. */
START_TEST(words_in_pieces)
{
    hw_bundle *b = bundle_of("", "the cat bo@@ ti ra@@ ti@@");
    hw_sentence words, tokens;
    split(b, " the borati  boti cat ", &words, &tokens);
    ck_assert_str_eq(shape(&words), "the:1 borati:3 boti:2 cat:1");
    ck_assert_str_eq(shape(&tokens), "the:1 bo@@:1 ra@@:1 ti:1 bo@@:1 ti:1 cat:1");
    ck_assert(tokens.words[1].goes_on && tokens.words[2].goes_on && !tokens.words[3].goes_on &&
              !tokens.words[0].goes_on);
    ck_assert(!words.words[1].goes_on);
    ck_assert_int_eq(words.words[1].rank, tokens.words[2].rank);
    hw_bundle_free(b);
}
END_TEST

START_TEST(blanks_of_char_go_to_the_next_word)
{
    hw_bundle *b = bundle_of("text.tokenizer=char;text.joiner=", "a b c");
    hw_sentence words, tokens;
    split(b, "ab  c\xE2\x96\x81 ", &words, &tokens);
    ck_assert_str_eq(shape(&words), "ab:2 c\xE2\x96\x81:5");
    ck_assert(tokens.words[0].goes_on && !tokens.words[1].goes_on);
    split(b, "", &words, &tokens);
    ck_assert_int_eq(words.count, 0);
    split(b, "  ", &words, &tokens);
    ck_assert_int_eq(words.count, 0);
    hw_bundle_free(b);
}
END_TEST

/* ---- sets -------------------------------------------------------------------------------------------------------- */

#define TREE "1\ta\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
#define TREE_1 "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"

START_TEST(a_set_with_its_gold)
{
    hw_error err = {""};
    hw_study_set set;
    scratch_text("x.en", "a b\n \na\n");
    scratch_text("x.fr", "a\nb\nb a\n");
    hw_bundle *b = bundle_of("", "a b");
    ck_assert_msg(hw_study_set_load(arena, b, directory, "x", &set, &err), "%s", err.message);
    ck_assert_int_eq(set.count, 2);
    ck_assert_int_eq(set.lines, 3);
    ck_assert_int_eq(set.pairs[1].line, 2);
    ck_assert_ptr_null(set.trees[HW_SOURCE]);
    ck_assert_ptr_null(set.links);
    hw_role_test *tests;
    int without = hw_role_tests(&set, &set, arena, &tests);

    scratch_text("y.en", "a b\na\n");
    scratch_text("y.fr", "a\nb a\n");
    scratch_text("y.en.conllu", TREE TREE_1);
    scratch_text("y.align", "0-0 1p0\n0-0 0-1\n");
    ck_assert_msg(hw_study_set_load(arena, b, directory, "y", &set, &err), "%s", err.message);
    ck_assert_ptr_nonnull(set.trees[HW_SOURCE]);
    ck_assert_ptr_null(set.trees[HW_TARGET]);
    ck_assert_ptr_nonnull(set.links);
    int with = hw_role_tests(&set, &set, arena, &tests);
    ck_assert_int_eq(with, without + 10 + 2); /* marks and relations in the encoder, aligned at both steps */
    hw_bundle_free(b);
}
END_TEST

static const struct {
    const char *name, *text, *message;
} faults[] = {
    {"x.en.conllu", TREE_1, "has 1 sentence, but"},
    {"x.en.conllu", TREE "1\tz\t_\tX\t_\t_\t0\troot\t_\t_\n\n", "the word is \"z\""},
    {"x.en.conllu", "1\ta\t_\tX\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tX\t_\t_\t1\tdet\t_\t_\n\n" TREE_1, "in a circle"},
    {"x.en.conllu", "1\ta\t_\tX\t_\t_\t9\tdet\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n\n" TREE_1, "HEAD is 9"},
    {"x.align", "0-0\n", "has 1 line, but"},
    {"x.align", "0-7\n0-0\n", "points beyond the pair"},
    {"x.fr", "a\n", "1"},
    {"x.en", " \n\n", "no pair of sentences in it to study"},
    {"x.en", "a\xFF\na\n", "not valid UTF-8"},
};

START_TEST(faults_are_refused)
{
    hw_error err = {""};
    hw_study_set set;
    scratch_text("x.en", "a b\na\n");
    scratch_text("x.fr", "a\nb a\n");
    scratch_text(faults[_i].name, faults[_i].text);
    hw_bundle *b = bundle_of("", "a b");
    ck_assert(!hw_study_set_load(arena, b, directory, "x", &set, &err));
    ck_assert_msg(strstr(err.message, faults[_i].message) != NULL, "%s", err.message);
    hw_bundle_free(b);
}
END_TEST

/* A set of more than one long pair: the first is told, all are counted, a blank side goes before. */
START_TEST(pairs_that_are_too_long_are_left_out_and_counted)
{
    hw_error err = {""};
    hw_study_set set;
    scratch_text("x.en", "a b a\na b\n\nb\na\n");
    scratch_text("x.fr", "b\na\na b b\nb a b a\nb\n");
    const char *en = hw_arena_string(arena, "%s/x.en", directory), *fr = hw_arena_string(arena, "%s/x.fr", directory);
    hw_bundle *b = bundle_of("decoding.longest_source=2", "a b");
    ck_assert_msg(hw_study_set_load(arena, b, directory, "x", &set, &err), "%s", err.message);
    hw_study_stream *s = hw_study_stream_open(b, directory, "x", &err);
    for (int way = 0; way < 2; way++) {
        ck_assert_int_eq(set.count, 2);
        ck_assert_int_eq(set.pairs[0].line, 1);
        ck_assert_int_eq(set.pairs[1].line, 4);
        ck_assert_int_eq(set.too_long.pairs, 2);
        ck_assert_str_eq(hw_too_long_describe(&set.too_long, en, arena),
                         hw_arena_string(arena, "%s:1: the line has 3 tokens, more than the 2 that are read", en));
        if (!way) ck_assert_int_eq(hw_study_stream_next(s, arena, 9, &set, &err), 1);
    }
    ck_assert_int_eq(hw_study_stream_next(s, arena, 9, &set, &err), 0);
    hw_study_stream_close(s);
    scratch_text("x.en", "a\n");
    scratch_text("x.fr", "b a b a\n");
    const char *message = hw_arena_string(arena,
                                          "%s:1: the line has 4 tokens, more than the 2 that are read; there is no "
                                          "pair of sentences beside such to study",
                                          fr);
    ck_assert(!hw_study_set_load(arena, b, directory, "x", &set, &err));
    ck_assert_str_eq(err.message, message);
    s = hw_study_stream_open(b, directory, "x", &err);
    ck_assert_ptr_null(hw_stats_study(b, s, NULL, NULL, arena, &err));
    ck_assert_str_eq(err.message, message);
    hw_study_stream_close(s);
    hw_bundle_free(b);
}
END_TEST

/* ---- streams ----------------------------------------------------------------------------------------------------- */

START_TEST(a_stream_gives_every_pair_once)
{
    hw_error err = {""};
    hw_study_set set;
    scratch_gzip("x.en.gz", "a\nb\n\na b\nb a\n");
    scratch_text("x.fr", "a\nb\na\na\nb\n");
    hw_bundle *b = bundle_of("", "a b");
    hw_study_stream *s = hw_study_stream_open(b, directory, "x", &err);
    ck_assert_msg(s != NULL, "%s", err.message);
    int64_t pairs = 0, lines[8];
    int got;
    while ((got = hw_study_stream_next(s, arena, 2, &set, &err)) == 1) {
        ck_assert_int_le(set.count, 2);
        for (int64_t i = 0; i < set.count; i++) lines[pairs++] = set.pairs[i].line;
    }
    ck_assert_int_eq(got, 0);
    ck_assert_int_eq(pairs, 4);
    ck_assert_int_eq(lines[2], 3);
    hw_study_stream_close(s);
    scratch_text("y.en", "a\nb\n");
    scratch_text("y.fr", "a\n");
    s = hw_study_stream_open(b, directory, "y", &err);
    ck_assert_int_eq(hw_study_stream_next(s, arena, 9, &set, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.message, "ends after line 1"));
    hw_study_stream_close(s);
    ck_assert_ptr_null(hw_study_stream_open(b, directory, "z", &err));
    hw_bundle_free(b);
}
END_TEST

/* ---- statistics of a data set ------------------------------------------------------------------------------------ */

static hw_stats *stats_of(const hw_bundle *b, const char *prefix)
{
    hw_error err = {""};
    hw_study_stream *s = hw_study_stream_open(b, directory, prefix, &err);
    ck_assert_msg(s != NULL, "%s", err.message);
    hw_stats *stats = hw_stats_study(b, s, NULL, NULL, arena, &err);
    ck_assert_msg(stats != NULL, "%s", err.message);
    hw_study_stream_close(s);
    return stats;
}

/* The same pairs more often, over several chunks and threads: sums grow by that factor, and the bits do not depend on
 * threads. */
START_TEST(statistics_of_many_pairs)
{
    enum { TIMES = 900 };
    static const char *const en[] = {"a b", "borati a", "b"}, *const fr[] = {"a", "b a boti", "a b a"};
    char *text[2] = {hw_arena_calloc(arena, TIMES * 3, 16), hw_arena_calloc(arena, TIMES * 3, 16)};
    hw_bundle *b = bundle_of("", "a b bo@@ ra@@ ti");
    for (int i = 0; i < 3 * TIMES; i++) {
        strcat(strcat(text[0] + strlen(text[0]), en[i % 3]), "\n");
        strcat(strcat(text[1] + strlen(text[1]), fr[i % 3]), "\n");
        if (i != 2) continue;
        scratch_text("few.en", text[0]);
        scratch_text("few.fr", text[1]);
    }
    scratch_text("many.en", text[0]);
    scratch_text("many.fr", text[1]);
    const hw_stats *few = stats_of(b, "few"), *many = stats_of(b, "many");
    ck_assert_int_eq(many->pairs, 3 * TIMES);
    ck_assert_int_eq(few->count, many->count);
    ck_assert_int_eq(few->count, (4 + 4 * 2 + 4 * 2) * 4);
    for (int i = 0; i < few->count; i++) {
        const double *x = (const double *)&few->items[i].sums, *y = (const double *)&many->items[i].sums;
        for (size_t k = 0; k < sizeof(hw_stats_sums) / sizeof *x; k++)
            ck_assert_double_eq_tol(y[k], TIMES * x[k], 1e-4 * TIMES * (x[k] + 1e-3));
    }
    hw_threads_set(1);
    const hw_stats *alone = stats_of(b, "many");
    hw_threads_set(0);
    for (int i = 0; i < alone->count; i++)
        ck_assert_mem_eq(&alone->items[i].sums, &many->items[i].sums, sizeof(hw_stats_sums));
    hw_bundle_free(b);
}
END_TEST

/* An attention that is even: what a query gives to a word is its number of pieces over all of them, whether they are
 * marked in the data or cut by the tokenizer. */
START_TEST(statistics_join_pieces)
{
    hw_bundle *b = bundle_of("", "a b bo@@ ra@@ ti");
    for (int i = 0; i < b->network->attentions; i++) {
        const hw_attention_layer *layer = hw_transformer_attention(b->network, i);
        int64_t rows = layer->heads * layer->head_width; /* those of the query come first */
        memset(layer->query_weight->data, 0, (size_t)(rows * hw_tensor_cols(layer->query_weight)) * sizeof(hw_real));
        memset(layer->query_bias->data, 0, (size_t)rows * sizeof(hw_real));
    }
    hw_parameters_pack(b->network->parameters);
    scratch_text("marked.en", "a bo@@ ra@@ ti\n");
    scratch_text("marked.fr", "bo@@ ti b\n");
    scratch_text("cut.en", "a borati\n");
    scratch_text("cut.fr", "boti b\n");
    const hw_stats *marked = stats_of(b, "marked"), *cut = stats_of(b, "cut");
    for (int i = 0; i < marked->count; i++) {
        const hw_head_stats *x = &marked->items[i];
        int side = hw_place_at(x->place)->query_side;
        ck_assert_double_eq(x->sums.queries, x->by_words ? 2 : side == HW_SOURCE ? 4 : 3);
        ck_assert_mem_eq(&x->sums, &cut->items[i].sums, sizeof x->sums);
        if (x->place != HW_PLACE_ENCODER || !x->by_words || x->norms) continue;
        double entropy = 2 * (-0.4 * log(0.2) - 0.6 * log(0.6)); /* 1, 3 and 1 of 5 tokens */
        ck_assert_double_eq_tol(x->sums.entropy, entropy, 1e-5);
        ck_assert_double_eq_tol(x->sums.self, 0.2 + 0.6, 1e-6);
        ck_assert_double_eq_tol(x->sums.confidence, 2 * 0.6, 1e-6);
        ck_assert_double_eq_tol(x->sums.distance, (0.6 + 2 * 0.2) + (0.2 + 0.2), 1e-6);
    }
    hw_bundle_free(b);
}
END_TEST

/* ---- results that are kept --------------------------------------------------------------------------------------- */

START_TEST(results_are_kept)
{
    static const char *const columns[] = {"name", "role", "score", "lines", "found", NULL};
    hw_error err = {""};
    json_t *result =
        json_loads("{\"heads\": [{\"name\": \"a\", \"roles\": [{\"role\": \"x\", \"score\": 0.1, \"lines\": [1, 2]},"
                   " {\"role\": \"y\", \"score\": null, \"found\": true}]}, {\"name\": \"b\", \"roles\": []}]}",
                   0, NULL);
    const char *model = scratch_path("model");
    ck_assert(hw_directory_make(model, &err));
    ck_assert_ptr_null(hw_study_recall(model, "roles-test", 77));
    ck_assert_msg(hw_study_keep(model, "roles-test", 77, result, "roles", columns, &err), "%s", err.message);
    json_t *kept = hw_study_recall(model, "roles-test", 77);
    ck_assert(json_equal(kept, result));
    json_decref(kept);
    ck_assert_ptr_null(hw_study_recall(model, "roles-test", 78));
    const char *path = hw_arena_string(arena, "%s", scratch_path("model/heads/roles-test.json"));
    static const char *const flipped[][2] = {{"0.1", "0.9"}, {"\"heads\"", "\"headz\""}, {"checksum", "chegksum"}};
    for (size_t i = 0; i < sizeof flipped / sizeof *flipped; i++) {
        size_t length;
        char *whole = scratch_read(path, &length), *changed = hw_arena_string(arena, "%s", whole);
        char *at = strstr(changed, flipped[i][0]);
        ck_assert_ptr_nonnull(at);
        memcpy(at, flipped[i][1], strlen(flipped[i][1]));
        scratch_text("model/heads/roles-test.json", changed);
        ck_assert_msg(!hw_study_recall(model, "roles-test", 77), "%s", flipped[i][1]);
        scratch_text("model/heads/roles-test.json", whole);
        free(whole);
        kept = hw_study_recall(model, "roles-test", 77);
        ck_assert_ptr_nonnull(kept);
        json_decref(kept);
    }
    size_t size;
    char *tsv = scratch_read(scratch_path("model/heads/roles-test.tsv"), &size);
    ck_assert_str_eq(tsv, "name\trole\tscore\tlines\tfound\na\tx\t0.10000000000000001\t1 2\t\na\ty\t\t\ttrue\n");
    free(tsv);
    scratch_text("model/heads/roles-test.json", "{\"fingerprint\": \"00000000");
    ck_assert_ptr_null(hw_study_recall(model, "roles-test", 77));
    ck_assert(!hw_study_keep("/proc/no such place", "roles", 1, result, "roles", columns, &err));
    json_decref(result);
}
END_TEST

START_TEST(fingerprints_follow_the_files)
{
    const char *path = scratch_text("f", "one");
    uint64_t a = hw_fingerprint_file(hw_fingerprint_text(0, "x"), path);
    ck_assert_uint_eq(a, hw_fingerprint_file(hw_fingerprint_text(0, "x"), path));
    ck_assert_uint_ne(a, hw_fingerprint_file(hw_fingerprint_text(0, "y"), path));
    scratch_text("f", "two");
    ck_assert_uint_ne(a, hw_fingerprint_file(hw_fingerprint_text(0, "x"), path));
    ck_assert_uint_ne(hw_fingerprint_file(0, path), hw_fingerprint_file(0, scratch_path("g")));
}
END_TEST

Suite *test_heads_study(void);
Suite *test_heads_study(void)
{
    Suite *suite = suite_create("heads_study");
    TCase *t = tcase_create("study");
    tcase_add_checked_fixture(t, begin, scratch_end);
    tcase_add_test(t, words_of_one_token_share);
    tcase_add_test(t, words_in_pieces);
    tcase_add_test(t, blanks_of_char_go_to_the_next_word);
    tcase_add_test(t, a_set_with_its_gold);
    tcase_add_loop_test(t, faults_are_refused, 0, sizeof faults / sizeof *faults);
    tcase_add_test(t, pairs_that_are_too_long_are_left_out_and_counted);
    tcase_add_test(t, a_stream_gives_every_pair_once);
    tcase_add_test(t, statistics_of_many_pairs);
    tcase_add_test(t, statistics_join_pieces);
    tcase_add_test(t, results_are_kept);
    tcase_add_test(t, fingerprints_follow_the_files);
    suite_add_tcase(suite, t);
    return suite;
}
