/* The page of heads report in a browser, without a window: marks are counted against the data, heads opened, keys
 * pressed, tables sorted (tests/fixtures/report/check.js), and nothing may be said on the console. Where there is no
 * Chromium, or it does not answer in time, the tests say so and pass. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_files.h"
#include "support_report.h"

enum { SECONDS = 60 };

static const char *browser(void)
{
    static const char *const names[] = {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!access(names[i], X_OK)) return names[i];
    return NULL;
}

/* The page with the script of the checks at its end. */
static void write_checked(const char *page)
{
    char *script = scratch_read("tests/fixtures/report/check.js", NULL);
    ck_assert_ptr_nonnull(script);
    FILE *out = fopen(scratch_path("checked.html"), "w");
    ck_assert_ptr_nonnull(out);
    fprintf(out, "%s<script>%s</script>\n", page, script);
    fclose(out);
    free(script);
}

static int open_page(void *argument)
{
    const char *page = argument;
    char limit[16], profile[512], size[64], address[512];
    snprintf(limit, sizeof limit, "%d", SECONDS);
    snprintf(profile, sizeof profile, "--user-data-dir=%s", scratch_path("profile"));
    snprintf(size, sizeof size, "--window-size=%s", strstr(page, "#phone") ? "500,900" : "1400,1000");
    snprintf(address, sizeof address, "file://%s", page);
    execlp("timeout", "timeout", limit, browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
           "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
           "--disable-dev-shm-usage", "--enable-logging=stderr", "--v=0", profile, size,
           "--virtual-time-budget=3000", "--dump-dom", address, NULL);
    return 124;
}

/* Opens what was made of this set and looks at what the checks found. */
static void check_in_browser(const char *data, const char *how, const char *option, const char *value)
{
    if (!browser()) {
        printf("there is no Chromium here: the report is not tested in a browser\n");
        return;
    }
    char *page = report_page_with(data, option, value), address[512];
    write_checked(page);
    free(page);
    snprintf(address, sizeof address, "%s%s", scratch_path("checked.html"), how);
    const outcome *o = run_captured(open_page, address);
    if (o->status == 124) {
        printf("Chromium did not answer in %d s: the report is not tested in a browser\n", SECONDS);
        return;
    }
    const char *found = strstr(o->out, "id=\"checked\">"), *said = strstr(o->err, ":CONSOLE");
    ck_assert_msg(found != NULL, "the checks did not end (status %d): %.300s", o->status, said ? said : o->out);
    ck_assert_msg(strstr(found, " 0 wrong") != NULL, "%.3000s", found);
    ck_assert_msg(said == NULL, "on the console: %.500s", said ? said : "");
}

START_TEST(toy_model) { check_in_browser("test", "", NULL, NULL); }
END_TEST

START_TEST(experiments)
{
    report_experiments();
    check_in_browser("test", "", "--compare", scratch_path("model"));
}
END_TEST

/* Words that look like HTML, quotes, both directions, signs of several code points, a very long word, one word; in a window as
 * narrow as a telephone's. */
START_TEST(odd_words)
{
    report_set("odd",
               "</script><script>window.hacked=1</script> <img/src=x/onerror=hacked=1> & \"a\" 'b' `c` ${hacked=1}\n"
               "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xd8\xb3\xd9\x84\xd8\xa7\xd9\x85 abc\n"
               "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 e\xcc\x81 \xe2\x80\xae x\n"
               "cat\n"
               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa undefined NaN\n",
               "<b>gras</b> &amp; <!-- data --> </style> \\u003c/script>\n"
               "\xd7\xa2\xd7\x95\xd7\x9c\xd7\x9d x\n"
               "\xf0\x9f\x98\x80 \xf0\x9f\x87\xab\xf0\x9f\x87\xb7\n"
               "chat\n"
               "</textarea> </title> b\n");
    check_in_browser("odd", "#phone", NULL, NULL);
}
END_TEST

/* The least that a page can be of: one head an attention, one sentence of one token, no gold, no intervals. */
START_TEST(one_of_everything)
{
    report_set("one", "cat\n", "chat\n");
    check_in_browser("one", "", NULL, NULL);
}
END_TEST

Suite *test_report_browser(void);
Suite *test_report_browser(void)
{
    Suite *suite = suite_create("report_browser");
    TCase *t = tcase_create("Chromium");
    tcase_add_unchecked_fixture(t, report_begin, report_end);
    tcase_set_timeout(t, 4 * SECONDS);
    tcase_add_test(t, toy_model);
    tcase_add_test(t, odd_words);
    tcase_add_test(t, experiments);
    suite_add_tcase(suite, t);
    t = tcase_create("one of everything");
    tcase_add_unchecked_fixture(t, report_begin_single, report_end);
    tcase_set_timeout(t, 4 * SECONDS);
    tcase_add_test(t, one_of_everything);
    suite_add_tcase(suite, t);
    return suite;
}
