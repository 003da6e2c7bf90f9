/* headwise heads show: one head in one pair. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"
#include "cli/inspect.h"

typedef struct options {
    hw_heads_options common;
    int64_t pair;
    const char *source, *target;
    bool norms;
} options;

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"pair", 'p', "N", HW_CLI_INTEGER, offsetof(options, pair), .help = "which pair of the data: its line, from 1 (1)",
     .low = 1, .high = INFINITY},
    {"source", 0, "TEXT", HW_CLI_TEXT, offsetof(options, source),
     .help = "a sentence of your own in place of one of the data"},
    {"target", 0, "TEXT", HW_CLI_TEXT, offsetof(options, target),
     .help = "with --source: its translation, in place of the model's own"},
    {"norms", 'n', NULL, HW_CLI_FLAG, offsetof(options, norms), .help = "draw norms of what arrives, not weights"},
};

static const hw_cli_rule rules[] = {
    {"target", HW_CLI_NEEDS, "source", ", the sentence that it translates"},
    {"source", HW_CLI_EXCLUDES, "pair data", NULL},
    {0},
};

/* What is drawn. */
typedef struct shown {
    const hw_transformer *network;
    hw_head head;
    bool norms;
    hw_arena *arena;
    int64_t queries, keys;
    hw_real *weights; /* [queries][keys] */
} shown;

static bool find_head(const hw_heads *h, const char *name, hw_head *head, hw_error *err)
{
    int count;
    const hw_head *heads = hw_heads_of(h->bundle->network, h->cli->arena, &count);
    for (int i = 0; i < count; i++)
        if (!strcmp(heads[i].name, name)) {
            *head = heads[i];
            return true;
        }
    const hw_names *removed = &h->bundle->config->model.removed_heads;
    for (int i = 0; i < removed->count; i++)
        if (!strcmp(removed->items[i], name))
            return hw_fail(
                err,
                "%s was removed from %s (model.removed_heads in its config.yaml); the others are there, such "
                "as %s",
                name, h->model, heads[0].name);
    return hw_fail(err, "%s has no head %s; heads are called like %s", h->model, name, heads[0].name);
}

/* The n-th line of both sides of the data. */
static bool read_pair(const hw_heads *h, int64_t n, hw_text texts[2], hw_error *err)
{
    const char *suffixes[2] = {h->bundle->config->data.source, h->bundle->config->data.target};
    char path[HW_PATH];
    for (int s = 0; s < 2; s++) {
        if (!hw_corpus_path(path, h->directory, h->prefix, suffixes[s], err)) return false;
        const hw_lines *lines = hw_lines_load(h->cli->arena, path, err);
        if (!lines) return false;
        if (n > lines->count)
            return hw_fail(err, "--pair %lld: %s has %lld %s", (long long)n, path, (long long)lines->count,
                           hw_plural(lines->count, "line", "lines"));
        texts[s].text = hw_lines_get(lines, n - 1, &texts[s].bytes);
    }
    return true;
}

static void keep(int i, const hw_visit *v, void *argument)
{
    (void)i;
    shown *s = argument;
    const hw_recorded *r = &v->attentions[s->head.attention];
    s->queries = r->queries.length[0];
    s->keys = r->keys.length[0];
    size_t size = (size_t)(s->queries * s->keys);
    s->weights = hw_arena_copy(s->arena, r->weights->data + (size_t)s->head.head * size, size * sizeof *s->weights);
    if (!s->norms) return;
    int64_t heads = hw_transformer_attention(s->network, s->head.attention)->heads;
    hw_real *norms = hw_arena_alloc(s->arena, (size_t)(heads * s->keys) * sizeof *norms);
    hw_value_norms *values = hw_value_norms_new(s->network);
    hw_value_norms_of(values, s->head.attention, r, 0, norms);
    hw_value_norms_free(values);
    for (int64_t q = 0; q < s->queries; q++) {
        double total = 0;
        hw_real *row = s->weights + q * s->keys;
        for (int64_t k = 0; k < s->keys; k++) total += (double)(row[k] *= norms[s->head.head * s->keys + k]);
        for (int64_t k = 0; k < s->keys && total > 0; k++) row[k] = (hw_real)((double)row[k] / total);
    }
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static const char *const *labels_of(const hw_inspected *pair, const shown *s, bool keys)
{
    bool source = s->head.kind == HW_ENCODER_SELF || (keys && s->head.kind == HW_CROSS);
    return source ? pair->source_labels : pair->fed_labels;
}

static json_t *strings(const char *const *texts, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) json_array_append_new(list, hw_json_text(texts[i]));
    return list;
}

static void print_json(const hw_inspected *pair, const shown *s)
{
    json_t *rows = json_array();
    for (int64_t q = 0; q < s->queries; q++)
        json_array_append_new(rows, hw_json_numbers(s->weights + q * s->keys, s->keys));
    hw_json_print(json_pack("{s:s, s:s, s:o, s:o, s:o}", "name", s->head.name, "measure",
                            s->norms ? "norms" : "weights", "queries", strings(labels_of(pair, s, false), s->queries),
                            "keys", strings(labels_of(pair, s, true), s->keys), "weights", rows),
                  false);
}

static void print_tsv(const hw_inspected *pair, const shown *s)
{
    printf("row\tcolumn\tquery\tkey\tweight\n");
    for (int64_t q = 0; q < s->queries; q++)
        for (int64_t k = 0; k < s->keys; k++)
            printf("%lld\t%lld\t%s\t%s\t%.9g\n", (long long)q, (long long)k, labels_of(pair, s, false)[q],
                   labels_of(pair, s, true)[k], (double)s->weights[q * s->keys + k]);
}

static void draw(hw_heads *h, const hw_inspected *pair, const shown *s)
{
    const hw_attention_layer *layer = hw_transformer_attention(s->network, s->head.attention);
    hw_attention_map map = {.name = layer->name,
                            .heads = 1,
                            .queries = s->queries,
                            .keys = s->keys,
                            .head_names = layer->head_names + s->head.head,
                            .weights = s->weights};
    hw_inspect_print_legend();
    hw_inspect_print_map(h->cli, pair, &map);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool examine(hw_heads *h, const options *o, hw_inspected *pair, shown *s, hw_error *err)
{
    hw_text texts[2] = {hw_inspect_word(o->source), hw_inspect_word(o->target)};
    if (!find_head(h, h->cli->arguments[1], &s->head, err) || (!o->source && !read_pair(h, o->pair, texts, err)) ||
        !hw_inspect_pair(h->cli, h->bundle, texts[0], texts[1], pair, err))
        return false;
    hw_runner *runner = hw_runner_new(s->network);
    hw_visit_pairs(runner, 1, &pair->source, &pair->target, &(hw_visit_options){.weights = true}, keep, s);
    hw_runner_free(runner);
    return true;
}

static int show(hw_heads *h, const void *argument)
{
    const options *o = argument;
    hw_error err;
    hw_inspected pair;
    shown s = {.network = h->bundle->network, .norms = o->norms, .arena = h->cli->arena};
    if (!examine(h, o, &pair, &s, &err)) return hw_cli_fail(&err);
    if (h->cli->json)
        print_json(&pair, &s);
    else if (o->common.tsv)
        print_tsv(&pair, &s);
    else
        draw(h, &pair, &s);
    return HW_CLI_DONE;
}

static int run(hw_cli *cli)
{
    options o = {.common.seed = 1, .pair = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    const char *texts[] = {o.source, o.target};
    for (int i = 0; i < 2; i++)
        if (texts[i] && hw_utf8_invalid(texts[i], strlen(texts[i])) >= 0) {
            hw_cli_say("heads show: --%s is not valid UTF-8", i ? "target" : "source");
            return HW_CLI_USAGE;
        }
    return hw_heads_with(cli, &o.common, show, &o);
}

const hw_cli_command hw_cli_heads_show = {
    .usage = "MODEL HEAD",
    .least = 2,
    .most = 2,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description = "Draws what one head (encoder.0.self.2) does with one pair of the data or a sentence of your own: a "
                   "row a token that attends, a "
                   "column a token that is attended to, the darker the more. --norms draws the norms of what arrives "
                   "(Kobayashi et al. 2020), "
                   "each row scaled to sum to 1.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
