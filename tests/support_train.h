/* For the tests of layer 11: a small corpus of made-up sentences, runs of a tiny network on it that are stopped where a
 * test wants it, and the comparison of what they leave. Needs the scratch directory of support_files.h. */
#ifndef HW_TESTS_SUPPORT_TRAIN_H
#define HW_TESTS_SUPPORT_TRAIN_H

#include <headwise/train.h>

/* 40 pairs and 6 to validate, as DIRECTORY/train.en ... in the scratch directory: words w0 .. w11, the target reversed.
 * In place of the last pair's source stands `last`, where not NULL. Returns the path. */
const char *train_corpus(const char *directory, const char *last);

/* Begins a test: a scratch directory with such a corpus as "data"; use scratch_end to end it. Returns the test's arena. */
hw_arena *train_begin(void);

/* A tiny run on scratch "data" into a scratch directory: 23 steps, a line of the log every 4, a checkpoint every 5, a
 * validation every 7, and "key=value" words separated by semicolons over that. */
hw_config *train_config(hw_arena *arena, const char *model_dir, const char *settings);

/* One call of hw_train. */
typedef struct train_call {
    int64_t stop_after;       /* a step after which it is asked to stop; 0: none; -1: before the first */
    bool stop_in_validation;  /* or in the middle of the first validation */
    bool overwrite;
    void (*after_step)(const struct train_call *call, int64_t step); /* or NULL */
    int stop;
    char said[32768];
    bool ok;
    hw_train_result result;
    hw_error err;
} train_call;
void train_run(train_call *call, const hw_config *config);
/* Runs until a step, 0: to the end. It must go well. */
void train_until(train_call *call, const hw_config *config, int64_t step);
/* Runs as the call says. It must fail with this message. */
void train_refused(train_call *call, const hw_config *config, const char *message);
/* A run in a child process, which is the caller's to wait for: exit status 0 where it went well. */
int train_child(const hw_config *config);
/* A run from beginning to end, which must go well. */
hw_train_result train_whole(const hw_config *config, int threads);
/* A run with these settings as "whole", from beginning to end, and one as "parts" that is interrupted after each of the
 * steps, the last of which is 0: to the end. Each part has its own number of threads. Both must leave the same bytes. */
void train_whole_and_in_parts(hw_arena *arena, const char *settings, const int64_t *stops);
/* A configuration that has these "key=value" and is else as it is by itself, at most so many and ended by NULL where
 * fewer: setting one of them or checking all must fail with this message. */
void config_refused(hw_arena *arena, const char *const *settings, int most, const char *message);

/* Fails the test unless both directories have the same files with the same bytes, but for config.yaml and times.tsv. */
void same_directories(const char *a, const char *b);
/* The same of scratch directories of two configurations, which checkpoints hold; with training.keep_checkpoints the last
 * weights are compared all the same. */
void same_but_configuration(const char *a, const char *b);
/* Fails the test unless a run's directory is what a killed run may leave: each file whole, each model loadable. */
void check_directory(const char *directory);

#endif
