/* For tests of the base, the configuration and the command line: a scratch directory, and what a process printed. */
#ifndef HW_TESTS_SUPPORT_FILES_H
#define HW_TESTS_SUPPORT_FILES_H

#include <stddef.h>

#include <headwise/base.h>

/* A fresh directory for each test (use as checked fixture); all of it goes at the end. */
void scratch_begin(void);
void scratch_begin_in_memory(void); /* for tests that sync many small files, which a busy disk makes slow */
void scratch_end(void);
hw_arena *scratch_arena(void); /* of the test, which lives as long as the directory */
const char *scratch_root(void); /* its path */
const char *scratch_path(const char *name); /* valid until the end of the test */
const char *scratch_write(const char *name, const void *bytes, size_t size); /* returns the path */
const char *scratch_text(const char *name, const char *text);
/* The whole file, ended by a 0 byte; NULL where there is none. The caller frees it. */
char *scratch_read(const char *path, size_t *size);

/* Fails the test where a temporary file of an atomic one stands in or below a directory. */
void nothing_half_written(const char *name);

/* What a call of the program printed. */
typedef struct outcome {
    int status;
    char out[65536], err[16384];
} outcome;
/* Runs function(argument), whose result is the exit status, in a child process with empty standard input. */
const outcome *run_captured(int (*function)(void *argument), void *argument);
/* Runs hw_cli_main on these words (the last is NULL) likewise. */
const outcome *run_program(const char *const *words);
#define RUN(...) run_program((const char *const[]){__VA_ARGS__, NULL})
/* The words of a call, apart by blanks, behind "headwise" and ended by NULL, `@` standing for the scratch directory. */
const char *const *scratch_words(const char *call);
/* Runs a script of bash likewise. */
const outcome *run_bash(const char *script);
/* Runs the program that was built beside the tests, which must go well -> the most memory, in kB, that it or any
 * other child of the test has taken so far. */
long peak_of_program(const char *words);
/* Where the running tests, and the program beside them, were built. */
const char *built_directory(void);

#endif
