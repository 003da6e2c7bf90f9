/* Bad input: files, configurations, models and surroundings that are wrong, and what the program says to each, word
 * for word, through the program itself. The rows are tests/rows/bad_NAME.txt; support_rows.h tells how they are read. */
#include <check.h>

#include "support_files.h"
#include "support_rows.h"

START_TEST(text) { rows_run("bad_text", _i); }
END_TEST

START_TEST(config) { rows_run("bad_config", _i); }
END_TEST

START_TEST(model) { rows_run("bad_model", _i); }
END_TEST

START_TEST(heads) { rows_run("bad_heads", _i); }
END_TEST

START_TEST(machine) { rows_run("bad_machine", _i); }
END_TEST

Suite *test_bad_input(void);
Suite *test_bad_input(void)
{
    Suite *suite = suite_create("bad_input");
    const struct {
        const char *name;
        const TTest *test;
    } tables[] = {{"bad_text", text}, {"bad_config", config}, {"bad_model", model}, {"bad_heads", heads}, {"bad_machine", machine}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        TCase *t = tcase_create(tables[i].name);
        tcase_add_checked_fixture(t, scratch_begin_in_memory, scratch_end);
        tcase_add_loop_test(t, tables[i].test, 0, rows_count(tables[i].name));
        suite_add_tcase(suite, t);
    }
    return suite;
}
