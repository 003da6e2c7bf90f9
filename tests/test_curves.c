/* The picture of a run: what is drawn of which logs, and what is said about damaged ones. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_files.h"
#include "train/curves.h"

#define TRAIN "step\tepoch\tloss\tnll\ttoken_accuracy\tlearning_rate\tgradient_norm\tskipped\n"
#define VALID \
    "step\tloss\tperplexity\ttoken_accuracy\texact_match\tbleu\tchrf\tbest\tbleu_signature\tchrf_signature\n"
#define TRAIN_ROW(step, loss) step "\t0\t" loss "\t4\t0.5\t0.001\t1.5\t0\n"
#define VALID_ROW(step, best) step "\t3.5\t20\t0.5\t0.25\t30\t45\t" best "\tnrefs:1\tnrefs:1\n"

/* Writes the logs (NULL: there is none) and draws them -> the directory. */
static const char *write_logs(const char *train, const char *valid)
{
    const char *directory = scratch_path("");
    unlink(scratch_path("train.tsv"));
    unlink(scratch_path("valid.tsv"));
    if (train) scratch_text("train.tsv", train);
    if (valid) scratch_text("valid.tsv", valid);
    return directory;
}

/* The picture, which the caller frees. */
static char *draw(const char *train, const char *valid)
{
    hw_error err;
    ck_assert_msg(hw_curves_write(write_logs(train, valid), &err), "%s", err.message);
    char *picture = scratch_read(scratch_path("curves.svg"), NULL);
    ck_assert_ptr_nonnull(picture);
    ck_assert_ptr_null(strstr(picture, "nan"));
    ck_assert_ptr_null(strstr(picture, "inf"));
    ck_assert_str_eq(picture + strlen(picture) - 7, "</svg>\n");
    return picture;
}

static int count(const char *text, const char *word)
{
    int found = 0;
    while ((text = strstr(text, word))) {
        found++;
        text += strlen(word);
    }
    return found;
}

/* How many points the first drawn curve of this class has. */
static int curve_points(const char *picture, const char *class, char letter)
{
    const char *at = strstr(picture, class);
    int found = 0;
    while (at && (at = strstr(at, " d=\"M"))) {
        const char *end = strchr(at + 4, '"');
        if (memchr(at, 'L', (size_t)(end - at))) {
            for (const char *c = at + 4; c < end; c++) found += *c == letter;
            return found;
        }
        at = end;
    }
    return 0;
}

/* ---- what is drawn ----------------------------------------------------------------------------------------------- */

START_TEST(whole_run)
{
    char *picture = draw(TRAIN TRAIN_ROW("100", "5") TRAIN_ROW("200", "4") TRAIN_ROW("300", "3"),
                         VALID VALID_ROW("150", "1") VALID_ROW("300", "0"));
    ck_assert_int_eq(count(picture, "class=\"title\""), 3);
    ck_assert_int_eq(count(picture, "class=\"best\""), 3);
    ck_assert_int_eq(count(picture, ">best: step 150<"), 1);
    /* signs: two validations of five figures, and five in the legends */
    ck_assert_int_eq(count(picture, "class=\"m k"), 2 * 5 + 5);
    /* curves: seven, and six strokes in the legends */
    ck_assert_int_eq(count(picture, "class=\"c k"), 7 + 6);
    /* loss from 3 to 5 over 190 units, 300 steps over 760 */
    ck_assert_ptr_nonnull(strstr(picture, "d=\"M317.3 40.0L570.7 135.0L824.0 230.0\""));
    /* 25 % exact match at steps 150 and 300 */
    ck_assert_ptr_nonnull(strstr(picture, "d=\"M444.0 424.5L824.0 424.5\""));
    ck_assert_ptr_nonnull(strstr(picture, "prefers-color-scheme:dark"));
    free(picture);
}
END_TEST

START_TEST(columns_in_another_order)
{
    char *picture = draw("learning_rate\tmore\tloss\tstep\n0.001\tx\t5\t100\n0.001\t\t4\t200", NULL);
    ck_assert_ptr_nonnull(strstr(picture, "d=\"M444.0 40.0L824.0 230.0\""));
    free(picture);
}
END_TEST

START_TEST(without_validation)
{
    char *picture = draw(TRAIN TRAIN_ROW("100", "5") TRAIN_ROW("200", "4"), NULL);
    ck_assert_int_eq(count(picture, "class=\"title\""), 2);
    ck_assert_ptr_null(strstr(picture, "Quality"));
    ck_assert_ptr_null(strstr(picture, "best: "));
    free(picture);
}
END_TEST

START_TEST(validation_without_rows)
{
    char *picture = draw(TRAIN TRAIN_ROW("100", "5"), VALID);
    ck_assert_int_eq(count(picture, "class=\"title\""), 2);
    ck_assert_ptr_null(strstr(picture, "validation"));
    ck_assert_ptr_null(strstr(picture, "best: "));
    free(picture);
}
END_TEST

START_TEST(no_rows_at_all)
{
    char *picture = draw(TRAIN, NULL);
    ck_assert_int_eq(count(picture, "class=\"title\""), 2);
    free(picture);
}
END_TEST

START_TEST(one_point_gets_a_sign)
{
    char *picture = draw(TRAIN TRAIN_ROW("100", "5"), NULL);
    ck_assert_int_eq(count(picture, "class=\"m k0\""), 2); /* of loss and learning rate */
    free(picture);
}
END_TEST

START_TEST(equal_numbers)
{
    char *picture = draw(TRAIN TRAIN_ROW("1", "0") TRAIN_ROW("2", "0"), NULL);
    free(picture);
    picture = draw(TRAIN TRAIN_ROW("0", "-3") TRAIN_ROW("0", "-3"), NULL);
    free(picture);
    picture = draw(TRAIN TRAIN_ROW("1", "1") TRAIN_ROW("2", "1.0000000000000002"), NULL);
    free(picture);
}
END_TEST

START_TEST(not_finite)
{
    char *picture = draw(TRAIN TRAIN_ROW("1", "5") TRAIN_ROW("2", "4") TRAIN_ROW("3", "nan") TRAIN_ROW("4", "3")
                         TRAIN_ROW("5", "inf") TRAIN_ROW("6", "-inf") TRAIN_ROW("7", "2") TRAIN_ROW("8", "1"), NULL);
    ck_assert_int_eq(curve_points(picture, "<rect", 'M'), 3);
    ck_assert_int_eq(curve_points(picture, "<rect", 'L'), 2);
    ck_assert_int_eq(count(picture, "class=\"m k0\""), 1); /* step 4 stands alone */
    free(picture);
    picture = draw(TRAIN TRAIN_ROW("1", "nan") TRAIN_ROW("2", "-nan"), NULL);
    free(picture);
    picture = draw(TRAIN TRAIN_ROW("1", "1e308") TRAIN_ROW("2", "-1e308") TRAIN_ROW("3", "1e299")
                   TRAIN_ROW("4", "5e-324"), NULL);
    free(picture);
}
END_TEST

static char *long_log(int rows, int peak)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs(TRAIN, f);
    for (int i = 1; i <= rows; i++) fprintf(f, "%d\t0\t%d\t4\t0.5\t0.001\t1.5\t0\n", i, i == peak ? 9 : i % 2);
    fclose(f);
    return text;
}

START_TEST(long_logs_are_thinned_out)
{
    char *log = long_log(100000, 77777), *picture = draw(log, NULL);
    int points = curve_points(picture, "<rect", 'L') + curve_points(picture, "<rect", 'M');
    ck_assert_int_le(points, 500);
    ck_assert_int_ge(points, 400);
    ck_assert_int_lt((int)strlen(picture), 40000);
    /* the axis goes from 0 to 10 over 190 units, so the one peak of 9 stands at 59 */
    ck_assert_int_eq(count(picture, " 59.0L"), 1);
    free(picture);
    free(log);
    log = long_log(500, 250);
    picture = draw(log, NULL);
    ck_assert_int_eq(curve_points(picture, "<rect", 'L'), 499);
    free(picture);
    free(log);
}
END_TEST

START_TEST(same_bytes)
{
    char *first = draw(TRAIN TRAIN_ROW("100", "5") TRAIN_ROW("200", "4"), VALID VALID_ROW("150", "1"));
    char *second = draw(TRAIN TRAIN_ROW("100", "5") TRAIN_ROW("200", "4"), VALID VALID_ROW("150", "1"));
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
}
END_TEST

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static const struct {
    const char *train, *valid, *file, *message; /* the message behind the file's path */
} faults[] = {
    {NULL, NULL, "train.tsv", ": cannot be read: No such file or directory"},
    {"", NULL, "train.tsv", ":1: the line with the columns' names is missing"},
    {"\n", NULL, "train.tsv", ":1: there is no column step"},
    {"step\tlearning_rate\n", NULL, "train.tsv", ":1: there is no column loss"},
    {TRAIN "100\t0\t5\n", NULL, "train.tsv", ":2: 3 columns here, but the first line has 8"},
    {TRAIN TRAIN_ROW("100", "5") "\n", NULL, "train.tsv", ":3: 1 column here, but the first line has 8"},
    {TRAIN TRAIN_ROW("100", "5") TRAIN_ROW("200", "4x"), NULL, "train.tsv", ":3: loss: \"4x\" is not a number"},
    {TRAIN TRAIN_ROW("100", ""), NULL, "train.tsv", ":2: loss: \"\" is not a number"},
    {TRAIN TRAIN_ROW("soon", "5"), NULL, "train.tsv", ":2: step: \"soon\" is not a number"},
    {TRAIN TRAIN_ROW("nan", "5"), NULL, "train.tsv", ":2: step: nan is not the number of a step"},
    {TRAIN TRAIN_ROW("-1", "5"), NULL, "train.tsv", ":2: step: -1 is not the number of a step"},
    {TRAIN, VALID VALID_ROW("100", "yes"), "valid.tsv", ":2: best: \"yes\" is not a number"},
    {TRAIN, "step\tloss\n", "valid.tsv", ":1: there is no column best"},
};

START_TEST(faulty_logs)
{
    hw_error err;
    char expected[512];
    ck_assert(!hw_curves_write(write_logs(faults[_i].train, faults[_i].valid), &err));
    snprintf(expected, sizeof expected, "%s%s", scratch_path(faults[_i].file), faults[_i].message);
    ck_assert_str_eq(err.message, expected);
    ck_assert_ptr_null(scratch_read(scratch_path("curves.svg"), NULL));
}
END_TEST

START_TEST(a_zero_byte)
{
    hw_error err;
    char expected[512];
    const char *directory = write_logs(NULL, NULL);
    scratch_write("train.tsv", TRAIN "100\t\0", sizeof TRAIN + 5);
    ck_assert(!hw_curves_write(directory, &err));
    snprintf(expected, sizeof expected, "%s:2: there is a byte 0; the file is damaged", scratch_path("train.tsv"));
    ck_assert_str_eq(err.message, expected);
}
END_TEST

START_TEST(an_old_picture_survives_a_faulty_log)
{
    hw_error err;
    char *before = draw(TRAIN TRAIN_ROW("100", "5"), NULL);
    ck_assert(!hw_curves_write(write_logs("faulty", NULL), &err));
    char *after = scratch_read(scratch_path("curves.svg"), NULL);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

Suite *test_curves(void);
Suite *test_curves(void)
{
    Suite *suite = suite_create("curves");
    TCase *drawn = tcase_create("what is drawn"), *refused = tcase_create("what is refused");
    tcase_add_checked_fixture(drawn, scratch_begin, scratch_end);
    tcase_add_checked_fixture(refused, scratch_begin, scratch_end);
    tcase_add_test(drawn, whole_run);
    tcase_add_test(drawn, columns_in_another_order);
    tcase_add_test(drawn, without_validation);
    tcase_add_test(drawn, validation_without_rows);
    tcase_add_test(drawn, no_rows_at_all);
    tcase_add_test(drawn, one_point_gets_a_sign);
    tcase_add_test(drawn, equal_numbers);
    tcase_add_test(drawn, not_finite);
    tcase_add_test(drawn, long_logs_are_thinned_out);
    tcase_add_test(drawn, same_bytes);
    tcase_add_loop_test(refused, faulty_logs, 0, sizeof faults / sizeof *faults);
    tcase_add_test(refused, a_zero_byte);
    tcase_add_test(refused, an_old_picture_survives_a_faulty_log);
    suite_add_tcase(suite, drawn);
    suite_add_tcase(suite, refused);
    return suite;
}
