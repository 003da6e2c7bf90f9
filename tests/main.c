/* Runs every suite (tests/test_NAME.c defines Suite *test_NAME(void)), or those named on the command line:
 * `make check-one SUITE=test_base`. The last line says how many tests ran. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/base.h>

#define SUITE(name) Suite *name(void);
#include "suites.h"
#undef SUITE

static const struct {
    const char *name;
    Suite *(*make)(void);
} suites[] = {
#define SUITE(name) {#name, name},
#include "suites.h"
#undef SUITE
};

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return true;
    return argc < 2;
}

/* Seconds after which a test hangs. A busy machine may need twenty times as long as a quiet one. */
#define HANGS_AFTER "180"

int main(int argc, char **argv)
{
    setenv("CK_DEFAULT_TIMEOUT", HANGS_AFTER, 0);
    SRunner *runner = NULL;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        if (!wanted(suites[i].name, argc, argv)) continue;
        if (runner) srunner_add_suite(runner, suites[i].make());
        else runner = srunner_create(suites[i].make());
    }
    if (!runner) {
        fprintf(stderr, "there is no suite of that name\n");
        return 2;
    }
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner), run = srunner_ntests_run(runner);
    srunner_free(runner);
    printf("%s: %d passed, %d failed\n", HW_REAL_NAME, run - failed, failed);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
