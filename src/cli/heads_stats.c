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

/* "-1 83 %": the commonest of the places that are one place. What is beyond -8 .. 8 is many places counted together,
 * and is only named where it is more: "+1 9 % (beyond 8: 30 %)". */
static const char *commonest(hw_cli *cli, const json_t *row)
{
    enum { LAST = HW_STATS_OFFSETS - 1 };
    const json_t *offsets = json_object_get(row, "offsets");
    double share[HW_STATS_OFFSETS], special = json_number_value(json_object_get(row, "argmax_special"));
    int best = 1;
    for (int i = 0; i <= LAST; i++) {
        share[i] = json_number_value(json_array_get(offsets, (size_t)i));
        if (i > 1 && i < LAST && share[i] > share[best]) best = i;
    }
    double most = fmax(special, share[best]), beyond = share[0] + share[LAST];
    const char *rest =
        beyond > most ? hw_arena_string(cli->arena, " (beyond %d: %.0f %%)", HW_STATS_FARTHEST, 100 * beyond) : "";
    if (special > share[best]) return hw_arena_string(cli->arena, "<s> or </s> %.0f %%%s", 100 * special, rest);
    return hw_arena_string(cli->arena, "%+d %.0f %%%s", best - HW_STATS_FARTHEST - 1, 100 * share[best], rest);
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
        for (int k = 0; k < FIGURES; k++) hw_heads_number(t, row, figures[k].key, 1, 3, false);
        hw_cli_cell(t, "%s", commonest(h->cli, row));
    }
    printf("%s on %s, %s, by %s, %s\n", h->model, hw_study_text(result, "data"), hw_heads_sentences(h, result),
           o->words ? "word" : "token", o->norms ? "norms of what arrives" : "weights");
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
                   "often, key - query, of the offsets -8 to 8 and <s> and </s>. --json and "
                   "--tsv have them by token and by word, over weights and over norms, with all offsets. By word, "
                   "pieces are joined, those that the tokenizer cuts and those that text.joiner marks: to a word "
                   "summed, from a word averaged.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
