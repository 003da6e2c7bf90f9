/* The command `vocab`: what it prints, what it writes, how it ends. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support_files.h"
#include "support_text.h"

static const char *a, *b;

static void begin(void)
{
    scratch_begin();
    a = scratch_text("a", "the cat \xC2\xA0 the\n\ndog\n");
    b = scratch_gzip("b.gz", "the dog sat <s>\n");
}

START_TEST(the_vocabulary_is_printed)
{
    const outcome *o = RUN("vocab", a, b);
    ck_assert_int_eq(o->status, 0);
    ck_assert_str_eq(o->out, "<unk>\n<s>\n</s>\nthe\ndog\ncat\nsat\n\xC2\xA0\n");
    ck_assert_str_eq(o->err,
                     "headwise: 8 tokens in the vocabulary; the text has 6 different ones, 9 in all, of which it "
                     "covers 88.89 %\n");
    o = RUN("vocab", "--quiet", "--counts", "--max-size", "5", a, b);
    ck_assert_str_eq(o->out, "0\t0\t<unk>\n1\t0\t<s>\n2\t0\t</s>\n3\t3\tthe\n4\t2\tdog\n");
    ck_assert_str_eq(o->err, "");
}
END_TEST

START_TEST(the_vocabulary_is_written)
{
    const char *path = scratch_path("v");
    const outcome *o = RUN("vocab", a, b, "-o", path, "--min-count=2", "--json");
    ck_assert_int_eq(o->status, 0);
    ck_assert_ptr_nonnull(strstr(o->out, "\"size\": 5"));
    ck_assert_ptr_nonnull(strstr(o->out, "\"tokens\": 9"));
    ck_assert_ptr_nonnull(strstr(o->out, "\"distinct\": 6"));
    ck_assert_ptr_nonnull(strstr(o->out, "\"coverage\": 0.5555555555555"));
    char *text = scratch_read(path, NULL);
    ck_assert_str_eq(text, "<unk>\n<s>\n</s>\nthe\ndog\n");
    free(text);
    o = RUN("vocab", "--tokenizer", "char", "-q", scratch_text("c", "a b\n"));
    ck_assert_str_eq(o->out, "<unk>\n<s>\n</s>\na\nb\n\xE2\x96\x81\n");
}
END_TEST

START_TEST(faults_end_it)
{
    const outcome *o = RUN("vocab");
    ck_assert_int_eq(o->status, 2);
    o = RUN("vocab", "--tokenizer", "wrod", a);
    ck_assert_int_eq(o->status, 2);
    ck_assert_str_eq(o->err, "headwise: there is no tokenizer \"wrod\"; did you mean \"word\"? (known: word, char, sentencepiece)\n");
    o = RUN("vocab", a, scratch_path("missing"));
    ck_assert_int_eq(o->status, 1);
    ck_assert_str_eq(o->out, "");
    ck_assert_ptr_nonnull(strstr(o->err, "missing: cannot be read: No such file or directory"));
    const char *path = scratch_path("v");
    o = RUN("vocab", scratch_text("bad", "a\nb \xFF\n"), "-o", path);
    ck_assert_int_eq(o->status, 1);
    ck_assert_ptr_nonnull(strstr(o->err, "bad:2: byte 3 is 0xFF, which is not valid UTF-8; convert the file to UTF-8"));
    ck_assert_ptr_null(scratch_read(path, NULL));
}
END_TEST

Suite *test_vocab(void);
Suite *test_vocab(void)
{
    Suite *suite = suite_create("vocab");
    TCase *c = tcase_create("vocab");
    tcase_add_checked_fixture(c, begin, scratch_end);
    tcase_add_test(c, the_vocabulary_is_printed);
    tcase_add_test(c, the_vocabulary_is_written);
    tcase_add_test(c, faults_end_it);
    suite_add_tcase(suite, c);
    return suite;
}
