/* headwise heads ablate: what the network loses without each head. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

enum { ALL = HW_ABLATION_MODES, TRIALS = 1000 };

typedef struct options {
    hw_heads_options common;
    int groups, mode;
    bool loss_only;
} options;

static const char *const modes[] = {"zero", "mean", "uniform", "all", NULL};

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"groups", 'g', "WHICH", HW_CLI_CHOICE, offsetof(options, groups),
     .help = "heads, each alone; pairs, each two of an attention; layers, each attention left with one head (heads)",
     .choices = hw_ablation_groupings},
    {"mode", 'm', "MODE", HW_CLI_CHOICE, offsetof(options, mode),
     .help = "what takes a head's place: zero; mean, its mean output over the data; uniform attention; all (all)",
     .choices = modes},
    {"loss-only", 'l', NULL, HW_CLI_FLAG, offsetof(options, loss_only),
     .help = "translate nothing: no exact match and no BLEU, but much faster"},
};

/* What was asked for, and how is translated. */
static uint64_t depends(const hw_heads *h, uint64_t print)
{
    const options *o = (const options *)h->options;
    char text[64];
    snprintf(text, sizeof text, "mode %d, loss only %d", o->mode, o->loss_only);
    return hw_heads_depends_on_search(h, hw_fingerprint_text(print, text));
}

/* "zero", "loss", "zero loss" */
static const char *part(const hw_heads *h)
{
    const options *o = (const options *)h->options;
    const char *mode = o->mode == ALL ? "" : modes[o->mode];
    if (o->mode == ALL && !o->loss_only) return NULL;
    return hw_arena_string(h->cli->arena, "%s%s%s", mode, *mode && o->loss_only ? " " : "", o->loss_only ? "loss" : "");
}

static json_t *compute(hw_heads *h, hw_error *err)
{
    const options *o = (const options *)h->options;
    hw_study_set set;
    if (!hw_study_set_load(h->cli->arena, h->bundle, h->directory, h->prefix, &set, err)) return NULL;
    hw_ablation_options ablation = {
        .groups = (hw_ablation_groups)o->groups, .trials = TRIALS, .seed = (uint64_t)h->options->seed};
    for (int i = 0; i < HW_ABLATION_MODES; i++) ablation.modes[i] = o->mode == ALL || o->mode == i;
    hw_search_options search = hw_search_options_of(h->config);
    search.n_best = 1;
    search.ids_only = true;
    hw_meter *meter = hw_meter_new(h->bundle, &set, o->loss_only ? NULL : &search);
    const hw_ablation *a = hw_ablation_study(meter, h->bundle->network, &set, &ablation, hw_cli_progress_show,
                                             &h->progress, h->cli->arena, err);
    hw_meter_free(meter);
    return a ? hw_ablation_json(a, h->bundle->network) : NULL;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A change with its interval. */
static void print_change(hw_cli_table *t, const json_t *row, const char *const keys[3], double scale, int digits)
{
    double delta = hw_study_number(row, keys[0]), low = hw_study_number(row, keys[1]),
           high = hw_study_number(row, keys[2]);
    hw_cli_cell(t, "%+.*f", digits, scale * delta);
    if (isnan(low))
        hw_cli_cell(t, "one sentence");
    else
        hw_cli_cell(t, "[%+.*f, %+.*f]", digits, scale * low, digits, scale * high);
}

static void print(hw_heads *h, const json_t *result)
{
    const bool translated = json_is_number(json_object_get(result, "bleu"));
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, translated ? "llrlrrlrl" : "llrlr");
    static const char *const titles[] = {"without", "mode", "loss", "95 %", "p", "exact match", "95 %", "BLEU", "95 %"};
    for (int i = 0; i < (translated ? 9 : 5); i++) hw_cli_cell(t, "%s", titles[i]);
    const json_t *rows = json_object_get(result, "heads");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "name")));
        hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "mode")));
        print_change(t, row, (const char *const[]){"loss_delta", "low", "high"}, 1, 4);
        hw_cli_cell(t, "%.2g", hw_study_number(row, "p"));
        if (!translated) continue;
        print_change(t, row, (const char *const[]){"exact_match_delta", "exact_match_low", "exact_match_high"}, 100, 1);
        print_change(t, row, (const char *const[]){"bleu_delta", "bleu_low", "bleu_high"}, 1, 2);
    }
    printf("%s on %s, %s: loss %.4f nats a token", h->model, hw_study_text(result, "data"),
           hw_heads_sentences(h, result), hw_study_number(result, "loss"));
    if (translated)
        printf(", exact match %.2f %%, BLEU %.2f", 100 * hw_study_number(result, "exact_match"),
               hw_study_number(result, "bleu"));
    printf("\nwhat changes without\n");
    hw_cli_table_print(t, stdout);
    putchar('\n');
    hw_cli_wrap(stdout,
                "Loss: -log p a target token with the target fed; p: of the change of loss, paired by sentence, after "
                "Holm over all rows. Exact match is in points. Intervals are over sentences and speak of this model "
                "only. A head that can be missed may have another that does the same: see --groups pairs and layers.",
                0, 0, 100);
    putchar('\n');
}

static const char *const columns[] = {"name",
                                      "mode",
                                      "ablated",
                                      "loss",
                                      "loss_delta",
                                      "low",
                                      "high",
                                      "p",
                                      "p_raw",
                                      "exact_match",
                                      "exact_match_delta",
                                      "exact_match_low",
                                      "exact_match_high",
                                      "exact_match_p",
                                      "bleu",
                                      "bleu_delta",
                                      "bleu_low",
                                      "bleu_high",
                                      "bleu_p",
                                      NULL};

#define VERB(NAME)                                                                                                     \
    {                                                                                                                  \
        .name = NAME, .depends = depends, .part = part, .compute = compute, .print = print, .columns = columns,        \
        .defaults = &defaults, .defaults_size = sizeof defaults                                                        \
    }
static const options defaults = {.common.seed = 1, .mode = ALL};
const hw_heads_verb hw_heads_ablate[] = {
    [HW_ABLATE_HEADS] = VERB("ablate"),
    [HW_ABLATE_PAIRS] = VERB("ablate-pairs"),
    [HW_ABLATE_LAYERS] = VERB("ablate-layers"),
};

static int run(hw_cli *cli)
{
    options o = defaults;
    if (!hw_cli_parse(cli, &o)) return cli->status;
    return hw_heads_run(cli, &o.common, &hw_heads_ablate[o.groups]);
}

const hw_cli_command hw_cli_heads_ablate = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Puts every head out of action, one after another, and says what the network loses by it: loss with the target "
        "fed, exact match and BLEU of the translations, each with a 95 % interval by paired bootstrap over sentences. "
        "zero takes the head's output away, with all that it always adds; mean leaves its mean output over the data, "
        "so that only what depends on the sentence is lost; uniform lets it attend evenly to all that it may see, so "
        "that only its choice is lost. What --mode or --loss-only leaves out is kept beside the whole result, not in "
        "its "
        "place.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
