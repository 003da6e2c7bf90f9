/* Layer 12: the test set that a command is asked to work on: the configuration's, or the one that --data names. */
#ifndef HW_CLI_TEST_SET_H
#define HW_CLI_TEST_SET_H

#include "cli/cli.h"

#include <headwise/bundle.h>
#include <headwise/metrics.h>

typedef struct hw_test_set {
    const char *directory, *prefix; /* files are DIRECTORY/PREFIX.SUFFIX */
    int64_t count;
    const hw_lines *source, *target; /* as they stand in the files */
    hw_span *references;             /* [count] the target as a reader would write it */
    const hw_groups *groups;         /* or NULL */
    const hw_alignments *alignments; /* or NULL */
} hw_test_set;

/* Loads it into cli->arena. data: the value of --data, or NULL: a prefix in data.dir, or a path from the current
 * directory. */
bool hw_test_set_load(hw_cli *cli, const hw_bundle *bundle, const hw_config *config, const char *data, hw_test_set *set,
                      hw_error *err);

/* Where it stands: PREFIX is looked for in data.dir first; if it is not there and has a slash, it is a path. */
void hw_test_set_place(hw_cli *cli, const hw_config *config, const char *data, const char **directory,
                       const char **prefix);

/* The configuration of a model directory with --set applied. What a trained network or its vocabularies depend on
 * cannot be set any more. NULL: the message is printed; the exit status is in cli->status. */
hw_config *hw_cli_model_config(hw_cli *cli, const char *directory);

#endif
