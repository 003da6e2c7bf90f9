/* For the tests of the report: the trained toy model beside a few of its sentences, all in the scratch directory, and
 * the page that is made of them. */
#ifndef HW_TESTS_SUPPORT_REPORT_H
#define HW_TESTS_SUPPORT_REPORT_H

#include <jansson.h>

/* Use as unchecked fixture, so that the tests of a case share results that are kept: a scratch directory with the sets train, valid and test, with gold, and a copy of the toy
 * model that is called "model" and reads them. */
void report_begin(void);
void report_end(void);
/* The same with a model of one layer and one head an attention, whose weights are random, in place of the toy's. */
void report_begin_single(void);
/* Makes a set of other lines without gold. */
void report_set(const char *prefix, const char *source, const char *target);

/* Writes page.html for the model with this --data (NULL: the test set) and gives its text; the caller frees it. */
char *report_page(const char *data);
/* The same with an option and its value. */
char *report_page_with(const char *data, const char *option, const char *value);
/* Leaves in the model directory what experiments leave: results of prune and probe, and a trace of three validations. */
void report_experiments(void);
/* What the page holds for its script; json_decref it. */
json_t *report_data(const char *page);

#endif
