/* Layer 12: the models of a command that decide together, MODEL and those of --ensemble. */
#ifndef HW_CLI_ENSEMBLE_H
#define HW_CLI_ENSEMBLE_H

#include "cli/cli.h"

#include <headwise/decode.h>

/* The option's row; `at` is the offset of an hw_cli_list. */
#define HW_ENSEMBLE_OPTION(at)                                                                                         \
    {"ensemble", 0, "MODEL", HW_CLI_LIST, at,                                                                          \
     .help = "another model of the same vocabularies, which MODEL decides together with: the log-probability of a "    \
             "token is the mean of theirs; may be given again"}

typedef struct hw_cli_ensemble {
    int count;
    hw_bundle *bundles[HW_MOST_NETWORKS]; /* MODEL is the first */
} hw_cli_ensemble;

/* settled: for running forward only, in half the memory. Errors: those of a model, too many, other vocabularies than
 * the first has. Free it in any case. */
bool hw_cli_ensemble_load(hw_cli_ensemble *e, const char *model, const hw_cli_list *others, bool settled, hw_error *err);
void hw_cli_ensemble_free(hw_cli_ensemble *e);

#endif
