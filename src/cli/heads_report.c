/* headwise heads report: the whole study as one HTML page.
 *
 * Each section of the page shows one verb's result, kept from before or computed now. To add one, add a row here and a
 * function to the table in src/heads/page/sections.js. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

typedef struct options {
    hw_heads_options common;
    const char *output;
    int64_t pairs;
} options;

enum { PAIRS = 12, LETTERS = 2400000 };

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"output", 'o', "FILE", HW_CLI_TEXT, offsetof(options, output), .help = "where the page goes, such as heads.html"},
    {"pairs", 'p', "N", HW_CLI_INTEGER, offsetof(options, pairs),
     .help = "how many pairs of the data can be looked at beside the examples of roles (12)", .low = 0,
     .high = INT32_MAX},
};

/* ---- sections ---------------------------------------------------------------------------------------------------- */

typedef struct section {
    const hw_heads_verb *verb;
    bool needed; /* without it there is no report */
} section;

static const section sections[] = {
    {&hw_heads_stats, true},
    {&hw_heads_roles, true},
    {&hw_heads_align, false},
    {&hw_heads_ablate[HW_ABLATE_HEADS], false},
    {&hw_heads_importance, false},
    {&hw_heads_diversity, false},
};

/* "sections" and, where a verb has none to give, "missing" with the reason. */
static bool add_sections(hw_heads *h, json_t *data, hw_error *err)
{
    json_t *results = json_object(), *missing = json_array();
    json_object_set_new(data, "sections", results);
    json_object_set_new(data, "missing", missing);
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const section *s = &sections[i];
        json_t *result = hw_heads_default_result(h, s->verb, err);
        if (result) {
            json_object_set_new(results, s->verb->name, result);
            continue;
        }
        if (s->needed) return false;
        hw_cli_note(h->cli, "the report goes without heads %s: %s", s->verb->name, err->message);
        json_array_append_new(missing, json_pack("{s:s, s:s}", "name", s->verb->name, "why", err->message));
    }
    return true;
}

/* ---- the data of the page ---------------------------------------------------------------------------------------- */

/* The last part of a path: where a model is kept is nobody's business. */
static const char *base_of(hw_arena *arena, const char *path)
{
    char *copy = hw_arena_string(arena, "%s", path);
    size_t size = strlen(copy);
    while (size > 1 && copy[size - 1] == '/') copy[--size] = 0;
    const char *slash = strrchr(copy, '/');
    return slash && slash[1] ? slash + 1 : copy;
}

static json_t *model_json(const hw_heads *h)
{
    const hw_transformer *m = h->bundle->network;
    const hw_config *c = h->bundle->config;
    json_t *heads = json_array();
    int count;
    const hw_head *all = hw_heads_of(m, h->cli->arena, &count);
    for (int i = 0; i < count; i++) json_array_append_new(heads, json_string(all[i].name));
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:o}", "name", base_of(h->cli->arena, h->model),
                     "encoder_layers", (json_int_t)c->model.encoder_layers, "decoder_layers",
                     (json_int_t)c->model.decoder_layers, "heads_a_layer", (json_int_t)c->model.heads, "width",
                     (json_int_t)c->model.width, "parameters", (json_int_t)hw_parameters_total(m->parameters), "source",
                     c->data.source, "target", c->data.target, "heads", heads);
}

static bool add_pairs(hw_heads *h, json_t *data, hw_error *err)
{
    hw_arena *arena = h->cli->arena;
    const options *o = (const options *)h->options;
    hw_study_set set;
    if (!hw_study_set_load(arena, h->bundle, h->directory, h->prefix, &set, err)) return false;
    const json_t *roles = json_object_get(json_object_get(data, "sections"), "roles");
    int64_t count;
    const int64_t *chosen =
        hw_report_choose(h->bundle->network, &set, roles, o->pairs, LETTERS, arena, &count);
    if (!count)
        hw_cli_note(h->cli, "the sentences of %s/%s are too long for a page, which goes without any", h->directory,
                    h->prefix);
    json_object_set_new(data, "pairs", hw_report_pairs(h->bundle->network, &set, chosen, count));
    return true;
}

static json_t *page_data(hw_heads *h, hw_error *err)
{
    json_t *data = json_pack("{s:s, s:s, s:o}", "program", "headwise " HW_VERSION, "data",
                             hw_arena_string(h->cli->arena, "%s/%s", base_of(h->cli->arena, h->directory), h->prefix),
                             "model", model_json(h));
    if (add_sections(h, data, err) && add_pairs(h, data, err)) return data;
    json_decref(data);
    return NULL;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* The file is opened first, so that nothing is computed for a page that cannot be written. */
static int report(hw_heads *h, const void *argument)
{
    const options *o = argument;
    hw_error err;
    hw_atomic file;
    if (!hw_atomic_begin(&file, o->output, &err)) return hw_cli_fail(&err);
    json_t *data = page_data(h, &err);
    if (!data) {
        hw_atomic_abandon(&file);
        return hw_cli_fail(&err);
    }
    hw_report_write(file.stream, data);
    json_decref(data);
    if (!hw_atomic_commit(&file, &err)) return hw_cli_fail(&err);
    hw_cli_note(h->cli, "%s is the report; open it in a browser", o->output);
    return HW_CLI_DONE;
}

static int run(hw_cli *cli)
{
    options o = {.common.seed = 1, .pairs = PAIRS};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    if (!o.output || !*o.output) {
        hw_cli_say("heads report: where to? -o FILE.html names the page");
        return HW_CLI_USAGE;
    }
    return hw_heads_with(cli, &o.common, report, &o);
}

const hw_cli_command hw_cli_heads_report = {
    .usage = "MODEL -o FILE.html",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_SET,
    .description = "Writes the whole study as one HTML page that needs nothing else: every head by its role, a card a "
                   "head, a sentence explorer, tables, and what each measure can and cannot show. Results that are "
                   "kept in heads/ and still hold are used; the others are computed and kept.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
