/* headwise heads importance: how much the loss would change with each head's gate. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

enum { TRIALS = 1000 };

static const hw_cli_option table[] = {HW_HEADS_OPTIONS};

static json_t *compute(hw_heads *h, hw_error *err)
{
    hw_study_set set;
    if (!hw_study_set_load(h->cli->arena, h->bundle, h->directory, h->prefix, &set, err)) return NULL;
    return hw_importance_json(hw_importance_study(h->bundle, &set, TRIALS, (uint64_t)h->options->seed,
                                                  hw_cli_progress_show, &h->progress, h->cli->arena));
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A head's readings stand one after another. */
static void print_heads(hw_cli *cli, const json_t *rows)
{
    hw_cli_table *t = hw_cli_table_new(cli->arena, "lrlrrlr");
    static const char *const titles[] = {"head",        "by token", "95 %",        "of its layer",
                                         "by sentence", "95 %",     "of its layer"};
    for (int i = 0; i < 7; i++) hw_cli_cell(t, "%s", titles[i]);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (i % HW_IMPORTANCE_READINGS == 0) hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "name")));
        hw_heads_number(t, row, "value", 1, 5, false);
        hw_heads_interval(t, row, "low", "high", 1, 5, false);
        hw_heads_number(t, row, "normalised", 1, 3, false);
    }
    hw_cli_table_print(t, stdout);
}

static void print_checks(hw_cli *cli, const json_t *rows)
{
    hw_cli_table *t = hw_cli_table_new(cli->arena, "lllrlr");
    static const char *const titles[] = {"reading", "normalised", "ablation", "rank correlation", "95 %", "resampled"};
    for (int i = 0; i < 6; i++) hw_cli_cell(t, "%s", titles[i]);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "reading")));
        hw_cli_cell(t, "%s", json_is_true(json_object_get(row, "normalised")) ? "a layer" : "no");
        hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "mode")));
        hw_heads_number(t, row, "rho", 1, 3, false);
        hw_heads_interval(t, row, "low", "high", 1, 3, false);
        hw_heads_number(t, row, "resampled", 1, 3, false);
    }
    hw_cli_table_print(t, stdout);
}

static void print(hw_heads *h, const json_t *result)
{
    printf("%s on %s, %s: importance, |dL/dxi|\n", h->model, hw_study_text(result, "data"),
           hw_heads_sentences(h, result));
    print_heads(h->cli, json_object_get(result, "heads"));
    printf("\nhow well it foretells the change of loss when a head is ablated\n");
    print_checks(h->cli, json_object_get(result, "correlations"));
    putchar('\n');
    hw_heads_say(
        "L is -log p of a sentence's target, xi a head's gate. By token: the mean of |dL/dxi| over query rows; by "
        "sentence: the mean over sentences of |the sum over its rows|. Of its layer: divided by the root of the "
        "sum of squares over the heads of the same attention. A gradient tells what a small change of the gate "
        "would do; the rank correlations tell how far it can be trusted about a large one. Intervals are over "
        "sentences and speak of this model only. Resampled: the mean correlation when sentences are drawn anew, "
        "which blurs both sides and lowers it; its interval is freed of that, and tells where the correlation "
        "would be with as many other sentences, not with more. \"-\": where all heads are equal there is none.");
}

static const char *const columns[] = {"name", "reading", "value", "low", "high", "normalised", NULL};

const hw_heads_verb hw_heads_importance = {
    .name = "importance", .compute = compute, .print = print, .columns = columns};

static int run(hw_cli *cli)
{
    hw_heads_options o = {.seed = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    return hw_heads_run(cli, &o, &hw_heads_importance);
}

const hw_cli_command hw_cli_heads_importance = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "How much the loss would change with each head's gate: the expected |dL/dxi| of Michel et al. 2019, over "
        "tokens "
        "and over sentences, as it is and normalised within each attention, with 95 % intervals; and Spearman's rank "
        "correlation of each with the change of loss when heads are ablated (by zero, mean and uniform attention). "
        "Drawing sentences anew lowers a correlation, so its interval is taken about the mean of the resamples.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
