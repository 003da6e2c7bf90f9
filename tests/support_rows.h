/* Tables of calls of the program, as text: tests/rows/NAME.txt. A row is
 *
 *     == what it is about
 *     + cp -r m broken              prepares it; a line of shell each
 *     $ headwise translate broken   the call, by /bin/sh in a directory of its own
 *     ? 1                           its exit status
 *     ! headwise: ...               a line of standard error, each exact
 *     > le chat                     a line of standard output, each exact
 *     ~ m2/                         what may be new or different afterwards: a name, or all that is below a directory/
 *
 * Everything else in the directory must be as before the call, and nothing may be half-written. A line of
 * output that is only `...` stands for any lines, `…` in a line for any characters; `@` at the end of a line is not part of it, so that blanks before it
 * are seen. {float|double} is what one of the two precisions says. Where a line `- WHAT` follows the name, the row is
 * left out unless the machine has it: root, asan (no sanitizer of addresses).
 *
 * The directory has: d/ with 40 pairs train, and 6 each valid and test; m/, a tiny model that nobody trained; c.yaml,
 * which trains another into t/. */
#ifndef HW_TESTS_SUPPORT_ROWS_H
#define HW_TESTS_SUPPORT_ROWS_H

#include <stdbool.h>

/* Of a table, once; rows_count(name) is for tcase_add_loop_test. */
int rows_count(const char *name);
/* Runs row i of it in the scratch directory of support_files.h and fails the test where anything differs. */
void rows_run(const char *name, int i);
/* Is this output what was expected? Line by line; `...` and `…` as above. */
bool rows_match(const char *expected, const char *got);

#endif
