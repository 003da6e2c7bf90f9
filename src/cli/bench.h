/* Layer 12, private to headwise bench: what its modes share.
 *
 * A mode (train, decode ...) is a file, which makes a network of a named size, gives it text, takes the time, and hands
 * what it found to hw_bench_report. What is measured, and why so, stands in docs/benchmarks.md. */
#ifndef HW_CLI_BENCH_H
#define HW_CLI_BENCH_H

#include "cli/cli.h"

#include <jansson.h>

#include <headwise/model.h>
#include <headwise/text.h>

extern const hw_cli_command hw_bench_machine, hw_bench_train, hw_bench_decode, hw_bench_latency, hw_bench_multiply;

/* ---- the machine (bench_machine.c) ------------------------------------------------------------------------------- */

double hw_bench_thread_seconds(void);       /* that the calling thread has had the processor for */
double hw_bench_process_seconds(void);      /* that all threads together have */
double hw_bench_roof(void);               /* FLOP/s of one thread's multiplication at 1024 cubed, the best of several */
double hw_bench_read_speed(double bytes); /* bytes/s at which one thread reads a block of this size again and again */
double hw_bench_peak_mib(void);           /* the most memory that the process has held so far */
double hw_bench_available(void);          /* bytes that may still be taken */
void hw_bench_machine_rows(hw_cli_table *table, double roof); /* "machine", "roof": two columns */
json_t *hw_bench_machine_json(double roof);

/* ---- networks (bench_size.c) ------------------------------------------------------------------------------------- */

/* The configuration that trains a named size as the peers do, with --set applied, which may name only what changes the
 * work of a mode that trains or does not. NULL: the message is printed, and the exit status is HW_CLI_USAGE. */
hw_config *hw_bench_config(hw_cli *cli, const char *size, bool trains);
/* Random weights, not yet packed or settled. NULL: the message is printed, and the exit status is HW_CLI_USAGE. */
hw_transformer *hw_bench_network(const hw_config *config, int64_t vocabulary);

/* Floating-point operations of the multiplications that a pair needs forward, attention included: `source` and `target`
 * rows in the network, of which no decoder row sees a later one; every target row `beam` times. */
double hw_bench_flops(const hw_transformer *m, int64_t source, int64_t target, int64_t beam);

/* Bytes that the work takes at its peak, over the text itself. rows: the longest sentence. */
double hw_bench_training_bytes(const hw_config *config, int64_t vocabulary, int64_t rows);
double hw_bench_decoding_bytes(const hw_config *config, int64_t vocabulary, int64_t rows, int64_t batch, int64_t beam);
/* Fails where the machine has not so many. */
bool hw_bench_fits(double bytes, hw_error *err);

/* ---- text (bench_text.c) ----------------------------------------------------------------------------------------- */

/* What a command line says about text; part of the options of a mode. */
typedef struct bench_text_options {
    const char *source, *target; /* files, or NULL: made up */
    int64_t vocabulary;          /* rows of the output layer; 0: what the files hold */
    int64_t length;              /* words of a made-up sentence on average */
} bench_text_options;
/* Its rows in a mode's table; `type` has a bench_text_options called text. */
#define BENCH_TEXT_OPTIONS(type)                                                                                       \
    {"source", 0, "FILE", HW_CLI_TEXT, offsetof(type, text.source),                                                    \
     "sentences, a line each, words apart by blanks, plain or .gz (made up)", 0, 0, NULL},                             \
    {"target", 0, "FILE", HW_CLI_TEXT, offsetof(type, text.target), "their translations, line by line", 0, 0, NULL},   \
    {"vocabulary", 0, "N", HW_CLI_INTEGER, offsetof(type, text.vocabulary),                                            \
     "rows of embedding and output layer (all words of the files and 3; 9537 for made-up text)", 4, INT32_MAX, NULL},  \
    {"length", 0, "N", HW_CLI_INTEGER, offsetof(type, text.length),                                                    \
     "words of a made-up sentence on average; they have N / 2 to 3 N / 2 (13)", 1, 1e6, NULL}

typedef struct bench_pair {
    hw_ids source, target; /* special tokens not included */
    int64_t line;
} bench_pair;

typedef struct bench_text {
    hw_corpus *corpus;
    bench_pair *pairs; /* [count] */
    int64_t count;
    int64_t vocabulary;
    int64_t longest; /* sentence of either side, in rows */
} bench_text;

extern const hw_cli_rule hw_bench_text_rules[];     /* between these options */
void hw_bench_text_complete(bench_text_options *o); /* by defaults */
/* Reads the files, or makes `made_up` pairs. */
bool hw_bench_text_load(bench_text *t, const bench_text_options *o, int64_t made_up, hw_error *err);
void hw_bench_text_free(bench_text *t);
/* Orders pairs by (source length, target length), or, with target_first, the other way round. */
void hw_bench_text_sort(bench_text *t, bool target_first);

/* ---- what was found (bench_report.c) ----------------------------------------------------------------------------- */

/* A stretch of time outside of ops. */
typedef struct bench_part {
    const char *name;
    double seconds; /* summed over the threads */
} bench_part;

enum { BENCH_PARTS = 8 };

typedef struct bench_result {
    const char *mode, *size;
    int threads;
    int64_t vocabulary, parameters;
    double seconds, cpu_seconds;          /* passed; and those in which threads had the processor */
    int64_t source_tokens, target_tokens; /* </s> included where the network computes it */
    double flops;                         /* useful ones */
    int64_t batches;                      /* steps, or calls */
    int64_t allocations;                  /* in all of them */
    double peak_mib, estimate_mib;

    /* A second run with the clock at every op, over profile_seconds. */
    const hw_profile_entry *profile; /* [hw_op_count()] */
    double profile_seconds;
    int64_t profile_batches;
    bench_part parts[BENCH_PARTS]; /* of what is not in an op; ended by a NULL name */
} bench_result;

/* The common part as a table and as JSON, to which a mode adds its own. */
hw_cli_table *hw_bench_report_table(hw_cli *cli, const bench_result *r, double roof);
json_t *hw_bench_report_json(const bench_result *r, double roof);
double hw_bench_op_seconds(const bench_result *r); /* of all ops, summed over the threads */
void hw_bench_profile_print(hw_cli *cli, const bench_result *r, double roof);
/* Prints it with a line end, and lets it go. */
void hw_bench_json_print(json_t *root);

#endif
