/* Filters of a training corpus, which drop pairs as pairs and count why; and a corpus too large for memory, which is
 * the same as one that is not. */
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    target = (hw_side){.suffix = "fr", .tokenizer = tokenizer, .vocabulary = vocabulary_of(arena, "a b x y")};
}

static void end(void)
{
    hw_tokenizer_free(tokenizer);
    scratch_end();
}

static hw_corpus *load(const hw_corpus_options *options)
{
    hw_error err = {""};
    hw_corpus *corpus = hw_corpus_load(directory, "train", &source, &target, options, &err);
    ck_assert_msg(corpus != NULL, "%s", err.message);
    return corpus;
}

/* The lines of the pairs kept, "1 3 4". */
static const char *kept(const hw_corpus *corpus)
{
    const char *text = "";
    for (int64_t i = 0; i < hw_corpus_count(corpus)->pairs; i++)
        text = hw_arena_string(arena, "%s%s%d", text, i ? " " : "", (int)hw_corpus_line(corpus, i));
    return text;
}

/* ---- filters ----------------------------------------------------------------------------------------------------- */

/* 1 plain, 2 identical, 3 a blank side, 4 as 1, 5 ratio 3, 6 as 1 but for the target, 7 ratio 2 the other way,
 * 8 identical but for blanks, 9 as 2, 10 long, 11 as 1 but for where the sides meet */
static const char *const english = "a b\nb a\na\na b\na b c\na b\nb\nb  a\nb a\na a a a a\na\n";
static const char *const french = "x y\nb a\n \nx y\nx\ny x\nx y\nb a\nb a\nx x x x\nb x y\n";

static const struct {
    hw_corpus_options options;
    const char *lines, *dropped;
} filters[] = {
    {{0}, "1 2 4 5 6 7 8 9 10 11", "1 with a blank side"},
    {{.max_length = 4}, "1 2 4 5 6 7 8 9 11", "1 with a blank side, 1 longer than the limit"},
    {{.max_ratio = 2}, "1 2 4 6 7 8 9 10", "1 with a blank side, 2 with sides of too different length"},
    {{.max_ratio = 1.5}, "1 2 4 6 8 9 10", "1 with a blank side, 3 with sides of too different length"},
    {{.drop_identical = true}, "1 4 5 6 7 8 10 11", "1 with a blank side, 2 with identical sides"},
    {{.drop_duplicates = true}, "1 2 5 6 7 8 10 11", "1 with a blank side, 2 that stood there before"},
    {{.max_length = 4, .max_ratio = 2, .drop_identical = true, .drop_duplicates = true},
     "1 6 7 8",
     "1 with a blank side, 1 longer than the limit, 2 with sides of too different length, 2 with identical sides, "
     "1 that stood there before"},
};
enum { FILTERS = sizeof filters / sizeof *filters };

START_TEST(each_filter_counts_what_it_drops)
{
    scratch_text("train.en", english);
    scratch_text("train.fr", french);
    hw_corpus *corpus = load(&filters[_i].options);
    ck_assert_str_eq(kept(corpus), filters[_i].lines);
    char text[512];
    ck_assert_ptr_nonnull(strstr(hw_corpus_describe(corpus, text),
                                 hw_arena_string(arena, " of 11 pairs (dropped: %s), ", filters[_i].dropped)));
    const hw_corpus_counts *n = hw_corpus_count(corpus);
    int64_t sum = n->pairs;
    for (int i = 0; i < HW_DROPS; i++) sum += n->dropped[i];
    ck_assert_int_eq(sum, n->lines);
    ck_assert_int_eq(n->too_long.pairs, n->dropped[HW_DROP_LONG]);
    if (n->too_long.pairs)
        ck_assert_str_eq(hw_too_long_describe(&n->too_long, "x", arena),
                         "x:10: the line has 5 tokens, more than the 4 that are read");
    hw_corpus_free(corpus);
}
END_TEST

/* A line that is not blank but of which the model leaves nothing is no sentence. */
START_TEST(a_side_without_tokens_is_blank)
{
    hw_error err;
    hw_tokenizer_options o = {.name = "sentencepiece", .model = "tests/fixtures/sentencepiece/unigram.model"};
    hw_tokenizer *pieces = hw_tokenizer_new(&o, &err);
    source.tokenizer = pieces;
    source.vocabulary = hw_tokenizer_vocabulary(pieces, arena);
    scratch_text("train.en", "ba\n\xE2\x80\x8B\nbo\n");
    scratch_text("train.fr", "x\nx\nx\n");
    hw_corpus *corpus = load(NULL);
    ck_assert_str_eq(kept(corpus), "1 3");
    ck_assert_int_eq(hw_corpus_count(corpus)->dropped[HW_DROP_BLANK], 1);
    hw_corpus_free(corpus);
    hw_tokenizer_free(pieces);
}
END_TEST

/* ---- a large corpus ---------------------------------------------------------------------------------------------- */

enum { LINES = 30000 };

/* Made-up pairs; every tenth is the one before. */
static void write_large(void)
{
    static const char *const words[] = {"a", "b", "c", "x", "y", "q"};
    hw_random random = hw_random_new(9, 9);
    char *text[2], *to[2], last[2][128];
    for (int side = 0; side < 2; side++) to[side] = text[side] = malloc(LINES * 64);
    for (int i = 0; i < LINES; i++) {
        for (int side = 0; side < 2; side++) {
            int count = 1 + (int)hw_random_below(&random, 12);
            if (i % 10 != 9)
                for (int k = 0, at = 0; k < count; k++)
                    at += sprintf(last[side] + at, "%s%s", k ? " " : "", words[hw_random_below(&random, 6)]);
            to[side] += sprintf(to[side], "%s\n", last[side]);
        }
    }
    scratch_write("train.en", text[0], (size_t)(to[0] - text[0]));
    scratch_write("train.fr", text[1], (size_t)(to[1] - text[1]));
    free(text[0]);
    free(text[1]);
}

static int files_in(const char *path)
{
    DIR *d = opendir(path);
    ck_assert_ptr_nonnull(d);
    int count = 0;
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

START_TEST(a_corpus_in_a_file_is_the_same)
{
    write_large();
    const char *scratch = scratch_path("room");
    ck_assert_int_eq(mkdir(scratch, 0777), 0);
    hw_corpus_options o = {.drop_duplicates = true};
    hw_corpus *in_memory = load(&o);
    o.scratch = scratch;
    o.memory = 20000; /* which they outgrow on the way */
    hw_corpus *in_file = load(&o);
    ck_assert_int_eq(files_in(scratch), 2); /* . and .. */
    const hw_corpus_counts *a = hw_corpus_count(in_memory), *b = hw_corpus_count(in_file);
    ck_assert_mem_eq(a, b, sizeof *a);
    ck_assert_int_ge(a->dropped[HW_DROP_DUPLICATE], LINES / 10);
    ck_assert_uint_eq(hw_corpus_fingerprint(in_memory), hw_corpus_fingerprint(in_file));
    hw_corpus_release(in_file);
    for (int64_t i = 0; i < a->pairs; i += 7) {
        hw_ids s[2] = {hw_corpus_source(in_memory, i), hw_corpus_source(in_file, i)};
        hw_ids t[2] = {hw_corpus_target(in_memory, i), hw_corpus_target(in_file, i)};
        ck_assert(s[0].count == s[1].count && !memcmp(s[0].ids, s[1].ids, (size_t)s[0].count * sizeof *s[0].ids));
        ck_assert(t[0].count == t[1].count && !memcmp(t[0].ids, t[1].ids, (size_t)t[0].count * sizeof *t[0].ids));
        ck_assert_int_eq(hw_corpus_line(in_memory, i), hw_corpus_line(in_file, i));
    }
    hw_batcher_options batches = {.seed = 2, .target_tokens = 300};
    hw_batcher x = hw_batcher_new(in_memory, &batches), y = hw_batcher_new(in_file, &batches);
    for (int i = 0; i < 50; i++) {
        const hw_batch *p = hw_batcher_next(&x, arena), *q = hw_batcher_next(&y, arena);
        ck_assert_int_eq(p->source_rows, q->source_rows);
        ck_assert_int_eq(p->target_rows, q->target_rows);
        ck_assert_mem_eq(p->source_ids, q->source_ids, (size_t)p->source_rows * 4);
        ck_assert_mem_eq(p->target_out, q->target_out, (size_t)p->target_rows * 4);
        ck_assert_mem_eq(p->lines, q->lines, (size_t)p->sentences * sizeof *p->lines);
    }
    hw_corpus_free(in_memory);
    hw_corpus_free(in_file);
}
END_TEST

START_TEST(no_room_for_a_file_is_told)
{
    hw_error err;
    write_large();
    const char *scratch = scratch_path("missing");
    hw_corpus_options o = {.scratch = scratch, .memory = 1000};
    ck_assert_ptr_null(hw_corpus_load(directory, "train", &source, &target, &o, &err));
    ck_assert_str_eq(err.message,
                     hw_arena_string(arena,
                                     "%s/train.en: %s: no file for a large corpus can be made in it: No such file or "
                                     "directory",
                                     directory, scratch));
}
END_TEST

Suite *test_text_filter(void);
Suite *test_text_filter(void)
{
    Suite *suite = suite_create("filter");
    TCase *c = tcase_create("filter");
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_loop_test(c, each_filter_counts_what_it_drops, 0, FILTERS);
    tcase_add_test(c, a_side_without_tokens_is_blank);
    tcase_add_test(c, a_corpus_in_a_file_is_the_same);
    tcase_add_test(c, no_room_for_a_file_is_told);
    suite_add_tcase(suite, c);
    return suite;
}
