/* Inside the command vocab: its options, and what it does with models (vocab_model.c) beside counting. */
#ifndef HW_CLI_VOCAB_H
#define HW_CLI_VOCAB_H

#include "cli/cli.h"

typedef struct hw_vocab_options {
    const char *train, *encode, *decode; /* a model's path, or NULL */
    const char *output, *tokenizer;      /* NULL: not given */
    int64_t min_count, max_size, lines;  /* -1: not given */
    int type, normalization, side;       /* -1: not given */
    double coverage;                     /* -1: not given */
    bool counts, no_byte_fallback;
} hw_vocab_options;

extern const char *const hw_vocab_types[], *const hw_vocab_normalizations[], *const hw_vocab_sides[];

/* Each does one work and returns the exit status. */
int hw_vocab_train(hw_cli *cli, const hw_vocab_options *o);
int hw_vocab_encode(hw_cli *cli, const hw_vocab_options *o);
int hw_vocab_decode(hw_cli *cli, const hw_vocab_options *o);

#endif
