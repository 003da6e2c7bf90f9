/* Layer 12, private to headwise bleu: what reading hands to printing. */
#ifndef HW_CLI_BLEU_H
#define HW_CLI_BLEU_H

#include "cli/cli.h"

#include <headwise/metrics.h>

enum { BLEU, CHRF, METRICS };

/* A file of references (without metrics) or of a system's output. */
typedef struct bleu_input {
    const char *path; /* as messages call it */
    hw_reader *reader;
    int64_t lines;
    hw_span line;
    hw_metric *metrics[METRICS];
    hw_interval intervals[METRICS]; /* where resampled */
    double p[METRICS];              /* against the baseline, where compared */
} bleu_input;

typedef struct bleu_inputs {
    bleu_input *at; /* references first, then systems */
    int references, count;
    bleu_input *baseline; /* the first system */
    int64_t tokenized;    /* its lines that end in " ." */
    hw_resampling drawn;
} bleu_inputs;

void hw_bleu_print_figures(const bleu_inputs *all);
void hw_bleu_print_comparison(hw_arena *arena, const bleu_inputs *all);
void hw_bleu_print_sentences(const bleu_inputs *all);
void hw_bleu_print_json(const bleu_inputs *all, bool sentences);

#endif
