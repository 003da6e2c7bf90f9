/* For the tests of the commands that translate: a tiny model in the scratch directory, lines of every kind to put in, and
 * calls of the program with something to read. Needs support_files.h. */
#ifndef HW_TESTS_SUPPORT_TRANSLATE_H
#define HW_TESTS_SUPPORT_TRANSLATE_H

#include <sys/types.h>

#include <headwise/bundle.h>

#include "support_files.h"

/* Use as checked fixture: a scratch directory with a model "model" of random weights, whose data would lie beside it. */
void translate_begin(void);
void translate_end(void);
hw_bundle *translate_bundle(void);
extern const char translate_source[], translate_target[]; /* its words */
/* The network with other logits of </s> and <unk>, as a model directory. */
void translate_save(const char *directory, double to_end, double to_unknown);

/* Words, unknown words, blanks, nothing: SOME lines, and all of them in a text. */
enum { SOME = 8 };
extern const char *const some[SOME];
const char *some_lines(const char *between, const char *after);

/* Runs the program, `words` ended by NULL, with this to read. */
const outcome *feed_words(const char *input, size_t size, const char *const *words);
/* The same with a text, and words apart by blanks in which @ stands for the scratch directory: "translate @/model". */
const outcome *feed(const char *text, const char *line);
/* It must go well and say nothing. */
const outcome *fed(const char *text, const char *line);

/* `translate` in a child process, quietly, with pipes to write lines into and read answers from. The caller waits. */
pid_t translate_piped(const char *directory, FILE **in, FILE **out);

/* The i-th line of a text, in the test's arena; NULL past the last. How many a text has. */
const char *line_of(const char *text, int i);
int lines_in(const char *text);

#endif
