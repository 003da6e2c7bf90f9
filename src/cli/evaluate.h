/* Layer 12, private to headwise evaluate: what is computed and what is printed. */
#ifndef HW_CLI_EVALUATE_H
#define HW_CLI_EVALUATE_H

#include "cli/ensemble.h"
#include "cli/test_set.h"

#include <headwise/decode.h>
#include <headwise/metrics.h>

enum { EVALUATE_SIGNATURE = 256 };

/* One group of the test set, or all of it. */
typedef struct hw_evaluated_group {
    const char *name;
    int64_t sentences, matches; /* matches: detokenised lines that equal their reference */
} hw_evaluated_group;

/* The cross-attention head, and the step, whose links come nearest to the gold ones. */
typedef struct hw_evaluated_alignment {
    bool is_there;
    double aer;
    char head[64];    /* "decoder.1.cross.0" */
    const char *step; /* a target word's row: where it is "fed" to the decoder, or where it is "predicted" */
} hw_evaluated_alignment;

typedef struct hw_evaluation {
    int64_t sentences, failed, broken;   /* no translation, counted as an empty line; broken: as in hw_translation */
    int64_t source_tokens, unknown;      /* of the lines as they are read, and how many the vocabulary lacks */
    int64_t unread_lines, unread_tokens; /* lines beyond the longest source, and what of them was left out */
    hw_too_long too_long;                /* pairs that are not fed: only their translations count */
    bool together;                       /* several models decided; there is no token accuracy and no alignment then */
    double exact_match, token_accuracy, bleu, chrf, perplexity;
    char bleu_name[16], chrf_name[16], signature[EVALUATE_SIGNATURE], chrf_signature[EVALUATE_SIGNATURE];
    int groups;
    hw_evaluated_group *group;
    hw_evaluated_alignment alignment;
    const char **translations; /* [sentences] */
} hw_evaluation;

/* Everything lives in cli->arena. */
bool hw_evaluate(hw_cli *cli, const hw_cli_ensemble *models, const hw_config *config, const hw_test_set *set,
                 hw_evaluation *out, hw_error *err);

/* The best head's alignment error rate (evaluate_align.c). */
bool hw_evaluate_alignment(const hw_bundle *bundle, const hw_test_set *set, hw_runner *runner,
                           hw_evaluated_alignment *out, hw_error *err);

#endif
