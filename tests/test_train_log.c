/* Layer 11: what of a log stays when a training goes on. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_files.h"
#include "train/log.h"

Suite *test_train_log(void);

/* The log as it is after it was opened to go on behind step 20. */
static char *kept_of(const char *text)
{
    hw_log log = {0};
    hw_error err;
    const char *path = scratch_text("x.tsv", text);
    ck_assert_msg(hw_log_open(&log, path, "step\tloss", 20, &err), "%s", err.message);
    hw_log_close(&log);
    return scratch_read(path, NULL);
}

static const struct {
    const char *before, *after;
} logs[] = {
    {"step\tloss\n10\t3\n20\t2\n30\t1\n", "step\tloss\n10\t3\n20\t2\n"},
    {"step\tloss\n10\t3\n20\t2", "step\tloss\n10\t3\n"},
    {"step\tloss\n10\t3\n\n20\t2\n", "step\tloss\n10\t3\n20\t2\n"},
    {"step\tloss\n\n\n10\t3\n \n\n", "step\tloss\n10\t3\n"},
    {"step\tloss\nx\n-5\t3\n \t10\n", "step\tloss\n"},
    {"step\tloss\n", "step\tloss\n"},
    {"", "step\tloss\n"},
};

START_TEST(lines_of_steps_that_were_done_stay)
{
    char *kept = kept_of(logs[_i].before);
    ck_assert_str_eq(kept, logs[_i].after);
    free(kept);
}
END_TEST

/* Nothing is read behind a file that fills its last page. */
START_TEST(empty_lines_up_to_the_end_of_a_page)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *text = malloc(size + 1);
    memset(text, '\n', size);
    text[size] = 0;
    memcpy(text, "step\tloss\n10\t3\n", 15);
    char *kept = kept_of(text);
    ck_assert_msg(!strcmp(kept, "step\tloss\n10\t3\n"), "%zu bytes were kept", strlen(kept));
    free(kept);
    free(text);
}
END_TEST

Suite *test_train_log(void)
{
    Suite *s = suite_create("train_log");
    TCase *tc = tcase_create("log");
    tcase_add_checked_fixture(tc, scratch_begin, scratch_end);
    tcase_add_loop_test(tc, lines_of_steps_that_were_done_stay, 0, sizeof logs / sizeof *logs);
    tcase_add_test(tc, empty_lines_up_to_the_end_of_a_page);
    suite_add_tcase(s, tc);
    return s;
}
