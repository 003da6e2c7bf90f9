/* Layer 12, private to headwise inspect: a sentence pair, and what is shown of a network. */
#ifndef HW_CLI_INSPECT_H
#define HW_CLI_INSPECT_H

#include "cli/cli.h"
#include "cli/model_json.h"

#include <headwise/decode.h>

/* The pair that is looked at. Labels are words as they are shown: n + 1 source tokens with </s>, m + 1 tokens that the
 * decoder is fed, m + 1 that it predicts. */
typedef struct hw_inspected {
    const hw_bundle *bundle;
    hw_ids source, target;
    const char **source_labels, **fed_labels, **predicted_labels;
} hw_inspected;

hw_text hw_inspect_word(const char *word); /* of the command line, or none: NULL */
/* The pair of these lines; no text of the target: the model translates. False: a sentence too long to be looked at. */
bool hw_inspect_pair(hw_cli *cli, const hw_bundle *bundle, hw_text source, hw_text target, hw_inspected *pair,
                     hw_error *err);

/* The shapes of everything between ids and logits, the causal mask, and how many parameters each part has. */
void hw_inspect_print_shapes(hw_cli *cli, const hw_inspected *pair, const char *name);
json_t *hw_inspect_shapes_json(const hw_inspected *pair);

/* Log-probabilities a token, and every head's attention as shaded cells, at most 80 columns wide. */
void hw_inspect_print_pair(hw_cli *cli, const hw_inspected *pair, const hw_examined *x);

/* The word, or as much of it as fits so many columns, ended by …. */
const char *hw_inspect_fit(hw_arena *arena, const char *word, int columns);

/* One attention's heads, drawn; and what the drawing means. */
void hw_inspect_print_map(hw_cli *cli, const hw_inspected *pair, const hw_attention_map *map);
void hw_inspect_print_legend(void);

#endif
