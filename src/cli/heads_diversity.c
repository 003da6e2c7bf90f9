/* headwise heads diversity: how different the heads of each layer are, and a map of them. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

typedef struct options {
    hw_heads_options common;
    bool map;
} options;

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"map", 'm', NULL, HW_CLI_FLAG, offsetof(options, map), .help = "print the heads' places on the map of their kind"},
};

static const hw_cli_rule rules[] = {
    {"map", HW_CLI_EXCLUDES, "json tsv", ": these have the map anyway"},
    {0},
};

static json_t *compute(hw_heads *h, hw_error *err)
{
    hw_study_set set;
    if (!hw_study_set_load(h->cli->arena, h->bundle, h->directory, h->prefix, &set, err)) return NULL;
    const hw_diversity *d = hw_diversity_study(h->bundle, &set, hw_cli_progress_show, &h->progress, h->cli->arena);
    return hw_diversity_json(d, h->bundle->network);
}

static const struct {
    const char *title, *key;
} figures[] = {
    {"JS distance", "js"},
    {"output", "output"},
    {"squared", "output_squared"},
    {"subspace", "subspace"},
    {"position", "position"},
    {"|AA'-I|^2", "orthogonal"},
    {"CKA", "cka"},
    {"effective heads", "effective_heads"},
};
enum { FIGURES = sizeof figures / sizeof *figures };

/* Which attentions have one head only, so that nothing in them can be compared. */
static void print_single(hw_heads *h, const json_t *result)
{
    const json_t *layers = json_object_get(result, "layers");
    const char *single = "";
    size_t i, count = 0;
    json_t *row;
    json_array_foreach(layers, i, row)
    {
        if (json_integer_value(json_object_get(row, "heads")) > 1) continue;
        single = hw_arena_string(h->cli->arena, "%s%s%s", single, count++ ? ", " : "",
                                 json_string_value(json_object_get(row, "name")));
    }
    if (count == json_array_size(layers))
        printf("every attention of this model has one head: there is nothing to diversify\n");
    else if (count)
        printf("one head, so nothing to compare in the layer: %s\n", single);
}

static void print_layers(hw_heads *h, const json_t *result)
{
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "lrrrrrrrrr");
    hw_cli_cell(t, "attention"), hw_cli_cell(t, "heads");
    for (int i = 0; i < FIGURES; i++) hw_cli_cell(t, "%s", figures[i].title);
    const json_t *layers = json_object_get(result, "layers");
    size_t count = json_array_size(layers);
    for (size_t i = 0; i <= count; i++) {
        const json_t *row = i < count ? json_array_get(layers, i) : json_object_get(result, "overall");
        hw_cli_cell(t, "%s", i < count ? json_string_value(json_object_get(row, "name")) : "mean");
        if (i < count)
            hw_cli_cell(t, "%d", (int)json_integer_value(json_object_get(row, "heads")));
        else
            hw_cli_cell(t, "%s", "");
        for (int k = 0; k < FIGURES; k++) hw_heads_number(t, row, figures[k].key, 1, 3, false);
    }
    hw_cli_table_print(t, stdout);
    const json_t *kinds = json_object_get(result, "kinds");
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const json_t *kind = json_array_get(kinds, i);
        int heads = (int)json_integer_value(json_object_get(kind, "heads"));
        double effective = hw_study_number(kind, "effective_heads");
        if (heads > 1 && !isnan(effective))
            printf("%s: %.1f of %d heads by CKA across layers\n", hw_study_text(kind, "name"), effective, heads);
    }
    print_single(h, result);
}

static void print_map(hw_heads *h, const json_t *result)
{
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "lrrlr");
    static const char *const titles[] = {"head", "x", "y", "nearest", "JS distance"};
    for (int i = 0; i < 5; i++) hw_cli_cell(t, "%s", titles[i]);
    const json_t *rows = json_object_get(result, "heads");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *nearest = json_object_get(row, "nearest");
        hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "name")));
        hw_heads_number(t, row, "x", 1, 3, false), hw_heads_number(t, row, "y", 1, 3, false);
        hw_cli_cell(t, "%s", nearest ? json_string_value(nearest) : "-");
        hw_heads_number(t, row, "nearest_js", 1, 3, false);
    }
    hw_cli_table_print(t, stdout);
}

static void print(hw_heads *h, const json_t *result)
{
    printf("%s on %s, %s\n", h->model, hw_study_text(result, "data"), hw_heads_sentences(h, result));
    if (((const options *)h->options)->map)
        print_map(h, result);
    else
        print_layers(h, result);
}

static const char *const columns[] = {
    "name",     "kind", "x",       "y",          "js", "output", "output_squared", "subspace", "subspace_squared",
    "position", "cka",  "nearest", "nearest_js", NULL};

const hw_heads_verb hw_heads_diversity = {
    .name = "diversity", .draws_nothing = true, .compute = compute, .print = print, .columns = columns};

static int run(hw_cli *cli)
{
    options o = {.common.seed = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    return hw_heads_run(cli, &o.common, &hw_heads_diversity);
}

const hw_cli_command hw_cli_heads_diversity = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Means over all rows of the data and all pairs of different heads of an attention. JS distance: between where "
        "two "
        "heads look, 0 to 1. output, subspace: the cosine between what they give and between their values; squared: "
        "of outputs. position: the product of their weights, 1 where both look at one word. |AA'-I|^2: of the weights "
        "A of "
        "all heads at a word. CKA: how alike their outputs are up to rotation and scale (linear), 0 to 1. effective "
        "heads: how many different ones there are, from the eigenvalues of CKA. The disagreements of Li et al. 2018, "
        "which also pair a head with itself, stand in the JSON.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
