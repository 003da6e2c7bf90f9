/* Parallel corpora: both sides stay in step whatever is dropped, and everything that is wrong with the files is said
 * exactly. */
#include <check.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_text.h"

static hw_arena *arena;
static hw_tokenizer *tokenizer;
static hw_side source, target;
static const char *directory;

static void begin(void)
{
    scratch_begin();
    arena = scratch_arena();
    directory = scratch_root();
    tokenizer = tokenizer_of("word", NULL);
    source = (hw_side){.suffix = "en", .tokenizer = tokenizer, .vocabulary = vocabulary_of(arena, "a b c")};
    target = (hw_side){.suffix = "fr", .tokenizer = tokenizer, .vocabulary = vocabulary_of(arena, "x y")};
}

static void end(void)
{
    hw_tokenizer_free(tokenizer);
    scratch_end();
}

static void check_ids(hw_ids ids, const char *expected)
{
    char text[256] = "";
    for (int64_t i = 0; i < ids.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? " " : "", ids.ids[i]);
    ck_assert_str_eq(text, expected);
}

static hw_corpus *load(int64_t max_length)
{
    hw_error err = {""};
    hw_corpus *corpus = hw_corpus_load(directory, "train", &source, &target, &(hw_corpus_options){.max_length = max_length}, &err);
    ck_assert_msg(corpus != NULL, "%s", err.message);
    return corpus;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *const english = "a b\n\nc a q\nb\n \t \na a a a\nb c\na\n";
static const char *const french = "x\ny\ny x\n\n\nx\ny z <s>\nx x x x\n";

static void check_corpus(void)
{
    hw_corpus *corpus = load(3);
    const hw_corpus_counts *n = hw_corpus_count(corpus);
    ck_assert_int_eq(n->lines, 8);
    ck_assert_int_eq(n->pairs, 3);
    ck_assert_int_eq(n->dropped[HW_DROP_BLANK], 3);
    ck_assert_int_eq(n->dropped[HW_DROP_LONG], 2);
    check_ids(hw_corpus_source(corpus, 0), "3 4");
    check_ids(hw_corpus_target(corpus, 0), "3");
    check_ids(hw_corpus_source(corpus, 1), "5 3 0");
    check_ids(hw_corpus_target(corpus, 1), "4 3");
    check_ids(hw_corpus_source(corpus, 2), "4 5");
    check_ids(hw_corpus_target(corpus, 2), "4 0 0");
    static const int64_t lines[] = {1, 3, 7};
    for (int i = 0; i < 3; i++) ck_assert_int_eq(hw_corpus_line(corpus, i), lines[i]);
    ck_assert_int_eq(n->source_longest, 3);
    ck_assert_int_eq(n->target_longest, 3);
    char text[512];
    ck_assert_str_eq(
        hw_corpus_describe(corpus, text),
        "3 of 8 pairs (dropped: 3 with a blank side, 2 longer than the limit), 7 source tokens (1 unknown), "
        "6 target tokens (2 unknown)");
    hw_corpus_free(corpus);
}

START_TEST(blank_and_long_pairs_are_dropped_in_step)
{
    scratch_text("train.en", english);
    scratch_text("train.fr", french);
    check_corpus();
    hw_corpus *corpus = load(0);
    ck_assert_int_eq(hw_corpus_count(corpus)->pairs, 5);
    char text[512];
    ck_assert_str_eq(hw_corpus_describe(corpus, text), "5 of 8 pairs (dropped: 3 with a blank side), 12 source tokens "
                                                       "(1 unknown), 11 target tokens (2 unknown)");
    hw_corpus_free(corpus);
}
END_TEST

START_TEST(gzip_and_plain_files_are_the_same)
{
    scratch_text("train.en", english);
    scratch_gzip("train.fr.gz", french);
    check_corpus();
    scratch_gzip("train.en.gz", "not this one: the plain file comes first\n");
    check_corpus();
}
END_TEST

START_TEST(only_newlines_end_lines)
{
    scratch_text("train.en", "\xEF\xBB\xBF"
                             "a\r\nb\xE2\x80\xA8 a\xC2\x85 \f \v \r b\n\xC2\xA0\nc");
    scratch_text("train.fr", "x\ny\r\nx\ny");
    hw_corpus *corpus = load(0);
    ck_assert_int_eq(hw_corpus_count(corpus)->pairs, 4);
    check_ids(hw_corpus_source(corpus, 0), "3");
    check_ids(hw_corpus_target(corpus, 1), "4");
    check_ids(hw_corpus_source(corpus, 1), "0 0 0 0 0 4");
    check_ids(hw_corpus_source(corpus, 2), "0"); /* a no-break space is text, not a blank line */
    check_ids(hw_corpus_source(corpus, 3), "5");
    hw_corpus_free(corpus);
}
END_TEST

START_TEST(null_bytes_and_long_lines_are_text)
{
    enum { LONG = 1000000 };
    char *text = malloc(LONG + 16);
    memcpy(text, "a\0b a\n", 6);
    memset(text + 6, 'a', LONG);
    memcpy(text + 6 + LONG, "\nb\n", 3);
    scratch_write("train.en", text, LONG + 9);
    scratch_text("train.fr", "x\nx\nx\n");
    hw_corpus *corpus = load(0);
    check_ids(hw_corpus_source(corpus, 0), "0 3");
    check_ids(hw_corpus_source(corpus, 1), "0");
    check_ids(hw_corpus_source(corpus, 2), "4");
    hw_corpus_free(corpus);
    free(text);
}
END_TEST

START_TEST(a_corpus_can_be_made_up)
{
    hw_corpus *corpus = hw_corpus_new();
    int32_t ids[5] = {3, 4, 0, 6, 7};
    for (int64_t i = 0; i < 1000; i++)
        hw_corpus_add(corpus, (hw_ids){ids, 1 + i % 5}, (hw_ids){ids + 1, 1 + i % 3}, 2 * i + 1);
    const hw_corpus_counts *n = hw_corpus_count(corpus);
    ck_assert_int_eq(n->pairs, 1000);
    ck_assert_int_eq(n->lines, 1000);
    ck_assert_int_eq(n->source_tokens, 3000);
    ck_assert_int_eq(n->source_unknown, 600);
    check_ids(hw_corpus_source(corpus, 999), "3 4 0 6 7");
    check_ids(hw_corpus_target(corpus, 998), "4 0 6");
    ck_assert_int_eq(hw_corpus_line(corpus, 999), 1999);
    hw_corpus_free(corpus);
}
END_TEST

/* Other ids, other cuts of the same ids, sides exchanged, another order, a pair less, other lines: each shows. */
START_TEST(fingerprints)
{
    static const int32_t ids[6] = {3, 4, 5, 6, 4, 3};
    static const struct {
        int source, length, target;
        int64_t line;
    } pairs[][2] = {
        {{0, 2, 2, 1}, {2, 2, 0, 2}}, {{1, 2, 2, 1}, {2, 2, 0, 2}}, {{0, 1, 2, 1}, {1, 3, 0, 2}},
        {{2, 2, 0, 1}, {0, 2, 2, 2}}, {{0, 2, 2, 1}, {0, 0, 0, 0}}, {{0, 2, 2, 1}, {2, 2, 0, 3}},
    };
    enum { CASES = sizeof pairs / sizeof *pairs };
    uint64_t found[CASES];
    for (int i = 0; i < CASES; i++) {
        hw_corpus *corpus = hw_corpus_new();
        for (int k = 0; k < 2; k++)
            if (pairs[i][k].length)
                hw_corpus_add(corpus, (hw_ids){ids + pairs[i][k].source, pairs[i][k].length},
                              (hw_ids){ids + pairs[i][k].target, 2}, pairs[i][k].line);
        found[i] = hw_corpus_fingerprint(corpus);
        ck_assert_uint_eq(found[i], hw_corpus_fingerprint(corpus));
        hw_corpus_free(corpus);
        for (int k = 0; k < i; k++) ck_assert_msg(found[k] != found[i], "%d and %d", k, i);
    }
}
END_TEST

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* In messages, DIR stands for the directory. */
static const struct {
    const char *english, *french, *message;
} faults[] = {
    {NULL, "x\n", "DIR/train.en: there is no such file, nor DIR/train.en.gz"},
    {"a\n", NULL, "DIR/train.fr: there is no such file, nor DIR/train.fr.gz"},
    {"a\nb\nc\n", "x\n", "DIR/train.en has 3 lines, but DIR/train.fr has 1; line by line they must be translations"},
    {"a\nb", "x\ny\n\n", "DIR/train.en has 2 lines, but DIR/train.fr has 3; line by line they must be translations"},
    {"", "x\n", "DIR/train.en has 0 lines, but DIR/train.fr has 1; line by line they must be translations"},
    {"a\nb \xC3\x28\n", "x\ny\n",
     "DIR/train.en:2: byte 3 is 0xC3, which is not valid UTF-8; convert the file to UTF-8"},
    {"a\nb\nc\n", "x\ny\n\xFF\n",
     "DIR/train.fr:3: byte 1 is 0xFF, which is not valid UTF-8; convert the file to UTF-8"},
    {"a\n\xF0\x9F\x91\n", "x\n", "DIR/train.en:2: byte 1 is 0xF0, which is not valid UTF-8; convert the file to UTF-8"},
    {"", "",
     "DIR/train.en and DIR/train.fr hold no pair of sentences that can be used: 0 of 0 pairs, 0 source tokens "
     "(0 unknown), 0 target tokens (0 unknown)"},
    {"a\nb\n", "\n \n",
     "DIR/train.en and DIR/train.fr hold no pair of sentences that can be used: 0 of 2 pairs (dropped: 2 "
     "with a blank side), 0 source tokens (0 unknown), 0 target tokens (0 unknown)"},
};

static const char *with_directory(const char *message)
{
    const char *out = "", *at;
    while ((at = strstr(message, "DIR"))) {
        out = hw_arena_string(arena, "%s%.*s%s", out, (int)(at - message), message, directory);
        message = at + 3;
    }
    return hw_arena_string(arena, "%s%s", out, message);
}

START_TEST(faults_are_said_exactly)
{
    if (faults[_i].english) scratch_text("train.en", faults[_i].english);
    if (faults[_i].french) scratch_text("train.fr", faults[_i].french);
    hw_error err = {""};
    ck_assert_ptr_null(hw_corpus_load(directory, "train", &source, &target, NULL, &err));
    ck_assert_str_eq(err.message, with_directory(faults[_i].message));
}
END_TEST

START_TEST(paths)
{
    hw_error err = {""};
    char path[HW_PATH];
    ck_assert(!hw_corpus_path(path, directory, "test", "align", NULL));
    scratch_gzip("test.align.gz", "0-0\n");
    ck_assert(hw_corpus_path(path, directory, "test", "align", &err));
    ck_assert_str_eq(path, scratch_path("test.align.gz"));
    scratch_text("test.align", "0-0\n");
    ck_assert(hw_corpus_path(path, directory, "test", "align", &err));
    ck_assert_str_eq(path, scratch_path("test.align"));
    char long_name[HW_PATH];
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    ck_assert(!hw_corpus_path(path, directory, long_name, "en", &err));
    ck_assert_ptr_nonnull(strstr(err.message, "the path is too long"));
}
END_TEST

/* ---- lines ------------------------------------------------------------------------------------------------------- */

START_TEST(lines_as_they_stand)
{
    hw_error err = {""};
    const hw_lines *lines = hw_lines_load(arena, scratch_text("a", "one\n\n two \xC2\xA0\r\nlast"), &err);
    ck_assert_msg(lines != NULL, "%s", err.message);
    ck_assert_int_eq(lines->count, 4);
    static const char *const expected[] = {"one", "", " two \xC2\xA0", "last"};
    for (int64_t i = 0; i < 4; i++) {
        size_t bytes;
        ck_assert_str_eq(hw_lines_get(lines, i, &bytes), expected[i]);
        ck_assert_uint_eq(bytes, strlen(expected[i]));
    }
    const hw_lines *other = hw_lines_load(arena, scratch_text("b", "1\n2\n"), &err);
    ck_assert(hw_lines_parallel(lines, lines, &err));
    ck_assert(!hw_lines_parallel(lines, other, &err));
    ck_assert_str_eq(err.message,
                     with_directory("DIR/a has 4 lines, but DIR/b has 2; line by line they must belong together"));
    ck_assert_ptr_null(hw_lines_load(arena, scratch_text("c", "\n\n\x80"), &err));
    ck_assert_str_eq(err.message,
                     with_directory("DIR/c:3: byte 1 is 0x80, which is not valid UTF-8; convert the file to UTF-8"));
    ck_assert_int_eq(hw_lines_load(arena, scratch_text("d", ""), &err)->count, 0);
}
END_TEST

START_TEST(many_lines)
{
    enum { LINES = 20000 };
    char *text = malloc(LINES * 8), *to = text;
    for (int i = 0; i < LINES; i++) to += sprintf(to, "%d\n", i);
    hw_error err = {""};
    const hw_lines *lines = hw_lines_load(arena, scratch_text("many", text), &err);
    ck_assert_int_eq(lines->count, LINES);
    for (int i = 0; i < LINES; i++) ck_assert_int_eq(atoi(hw_lines_get(lines, i, NULL)), i);
    free(text);
}
END_TEST

Suite *test_text_corpus(void);
Suite *test_text_corpus(void)
{
    Suite *suite = suite_create("text_corpus");
    TCase *c = tcase_create("text_corpus");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_test(c, blank_and_long_pairs_are_dropped_in_step);
    tcase_add_test(c, gzip_and_plain_files_are_the_same);
    tcase_add_test(c, only_newlines_end_lines);
    tcase_add_test(c, null_bytes_and_long_lines_are_text);
    tcase_add_test(c, a_corpus_can_be_made_up);
    tcase_add_test(c, fingerprints);
    tcase_add_loop_test(c, faults_are_said_exactly, 0, sizeof faults / sizeof *faults);
    tcase_add_test(c, paths);
    tcase_add_test(c, lines_as_they_stand);
    tcase_add_test(c, many_lines);
    suite_add_tcase(suite, c);
    return suite;
}
