/* headwise heads stats: where every head looks. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

typedef struct options {
    hw_heads_options common;
    bool words, norms;
} options;

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"words", 'w', NULL, HW_CLI_FLAG, offsetof(options, words), .help = "print figures by word, not by token"},
    {"norms", 'n', NULL, HW_CLI_FLAG, offsetof(options, norms),
     .help = "print figures over the norms of what arrives, not over weights"},
};

static const hw_cli_rule rules[] = {
    {"words", HW_CLI_EXCLUDES, "json tsv", ": these have figures by word and by token"},
    {"norms", HW_CLI_EXCLUDES, "json tsv", ": these have figures over norms and over weights"},
    {0},
};

static json_t *compute(hw_heads *h, hw_error *err)
{
    hw_study_stream *stream = hw_study_stream_open(h->bundle, h->directory, h->prefix, err);
    if (!stream) return NULL;
    hw_stats *stats = hw_stats_study(h->bundle, stream, hw_cli_progress_show, &h->progress, h->cli->arena, err);
    hw_study_stream_close(stream);
    return stats ? hw_stats_json(stats) : NULL;
}

/* What a column of the table shows. */
static const struct {
    const char *title, *key;
} figures[] = {
    {"entropy", "entropy"},
    {"relative", "relative_entropy"},
    {"confidence", "confidence"},
    {"distance", "distance"},
    {"first", "first"},
    {"last", "last"},
    {"self", "self"},
    {"punct", "punct"},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* "-1 83 %" */
static const char *commonest(hw_cli *cli, const json_t *row)
{
    const json_t *offsets = json_object_get(row, "offsets");
    int best = 0;
    double most = -1;
    for (int i = 0; i < HW_STATS_OFFSETS; i++) {
        double share = json_number_value(json_array_get(offsets, (size_t)i));
        if (share > most) most = share, best = i;
    }
    double special = json_number_value(json_object_get(row, "argmax_special"));
    if (special > most) return hw_arena_string(cli->arena, "<s> or </s> %.0f %%", 100 * special);
    int offset = best - HW_STATS_FARTHEST - 1;
    const char *beyond = best == 0 || best == HW_STATS_OFFSETS - 1 ? " and beyond" : "";
    return hw_arena_string(cli->arena, "%+d%s %.0f %%", offset, beyond, 100 * most);
}

static void print(hw_heads *h, const json_t *result)
{
    const options *o = (const options *)h->options;
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "llrrrrrrrrl");
    hw_cli_cell(t, "head"), hw_cli_cell(t, "step");
    for (int i = 0; i < FIGURES; i++) hw_cli_cell(t, "%s", figures[i].title);
    hw_cli_cell(t, "most often at");
    const json_t *rows = json_object_get(result, "heads");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *step = json_object_get(row, "step");
        if (strcmp(json_string_value(json_object_get(row, "unit")), o->words ? "word" : "token") ||
            strcmp(json_string_value(json_object_get(row, "measure")), o->norms ? "norms" : "weights"))
            continue;
        hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "name")));
        hw_cli_cell(t, "%s", step ? json_string_value(step) : "");
        for (int k = 0; k < FIGURES; k++) {
            const json_t *x = json_object_get(row, figures[k].key);
            if (json_is_number(x))
                hw_cli_cell(t, "%.3f", json_number_value(x));
            else
                hw_cli_cell(t, "-");
        }
        hw_cli_cell(t, "%s", commonest(h->cli, row));
    }
    printf("%s on %s, %.0f sentences, by %s, %s\n", h->model, json_string_value(json_object_get(result, "data")),
           json_number_value(json_object_get(result, "sentences")), o->words ? "word" : "token",
           o->norms ? "norms of what arrives" : "weights");
    hw_cli_table_print(t, stdout);
}

static const char *const columns[] = {
    "name",  "step", "unit", "measure", "queries", "entropy",        "relative_entropy", "confidence", "distance",
    "first", "last", "self", "punct",   "special", "argmax_special", "offsets",          "arriving",   NULL};

const hw_heads_verb hw_heads_stats = {
    .name = "stats", .draws_nothing = true, .compute = compute, .print = print, .columns = columns};

static int run(hw_cli *cli)
{
    options o = {.common.seed = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    return hw_heads_run(cli, &o.common, &hw_heads_stats);
}

const hw_cli_command hw_cli_heads_stats = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description = "Means over all words of the data (rows of <s> and </s> left out): entropy in nats and relative to "
                   "the logarithm of the allowed "
                   "keys; confidence, the largest weight on a word; distance in words; the mass on the first and last "
                   "key (special tokens "
                   "included), on the word's own place and on punctuation; and where the largest weight stands most "
                   "often, key - query. --json and "
                   "--tsv have them by token and by word, over weights and over norms, with all offsets.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
