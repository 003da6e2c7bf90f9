/* headwise heads report: the whole study as one HTML page.
 *
 * Each section of the page shows one verb's result, kept from before or computed now; experiments that take long are
 * shown where their result is kept, or where they are asked for. To add a section, add a row here and a function to the
 * table in src/heads/page/sections.js. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

typedef struct options {
    hw_heads_options common;
    const char *output;
    int64_t pairs;
    hw_cli_list with, compare;
} options;

enum { PAIRS = 12, LETTERS = 2400000, TRACE_STEPS = 60 };

static const hw_cli_option table[] = {
    HW_HEADS_DATA_OPTIONS,
    {"output", 'o', "FILE", HW_CLI_TEXT, offsetof(options, output), .help = "where the page goes, such as heads.html"},
    {"pairs", 'p', "N", HW_CLI_INTEGER, offsetof(options, pairs),
     .help = "how many pairs of the data can be looked at beside the examples of roles (12)", .low = 0,
     .high = INT32_MAX},
    {"with", 'w', "VERB", HW_CLI_LIST, offsetof(options, with),
     .help = "compute this for the page too: prune, probe; what is kept from before is shown anyway"},
    {"compare", 'c', "MODEL", HW_CLI_LIST, offsetof(options, compare),
     .help = "put another model of the same data beside this one, see heads compare; once for each"},
};

/* ---- sections ---------------------------------------------------------------------------------------------------- */

typedef struct section {
    const hw_heads_verb *verb;
    enum { NEEDED, WANTED, KEPT } how; /* without it there is no report; computed; only where kept or asked for */
} section;

static const section sections[] = {
    {&hw_heads_stats, NEEDED},      {&hw_heads_roles, NEEDED},
    {&hw_heads_align, WANTED},      {&hw_heads_ablate[HW_ABLATE_HEADS], WANTED},
    {&hw_heads_importance, WANTED}, {&hw_heads_diversity, WANTED},
    {&hw_heads_prune, KEPT},        {&hw_heads_probe, KEPT},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static bool asked_for(const hw_heads *h, const section *s)
{
    const hw_cli_list *with = &((const options *)h->options)->with;
    for (int i = 0; i < with->count; i++)
        if (!strcmp(with->items[i], s->verb->name)) return true;
    return false;
}

/* NULL without a message: it is left out. */
static json_t *result_of(hw_heads *h, const section *s, hw_error *err)
{
    *err->message = 0;
    json_t *kept = s->how == KEPT ? hw_heads_kept_result(h, s->verb) : NULL;
    return kept || (s->how == KEPT && !asked_for(h, s)) ? kept : hw_heads_default_result(h, s->verb, err);
}

static void leave_out(hw_heads *h, json_t *data, const char *name, const hw_error *why)
{
    hw_cli_note(h->cli, "the report goes without heads %s: %s", name, why->message);
    json_array_append_new(json_object_get(data, "missing"),
                          json_pack("{s:s, s:o}", "name", name, "why", hw_json_text(why->message)));
}

/* Every k-th of the list and its last, at most `most`. */
static void thin(json_t *list, size_t most)
{
    size_t count = json_array_size(list), kept = 0;
    for (size_t i = 0; i < count && count > most; i++) {
        bool keep = i * (most - 1) / (count - 1) != (i + 1) * (most - 1) / (count - 1) || i + 1 == count;
        if (keep)
            kept++;
        else
            json_array_remove(list, kept);
    }
}

/* What the page draws of a trace: not every head's statistics, and no more validations than can be seen. */
static void shorten_trace(json_t *trace)
{
    size_t h, i;
    json_t *head, *role;
    thin(json_object_get(trace, "steps"), TRACE_STEPS);
    thin(json_object_get(trace, "course"), TRACE_STEPS);
    json_array_foreach(json_object_get(trace, "heads"), h, head)
    {
        json_object_del(head, "statistics");
        json_array_foreach(json_object_get(head, "roles"), i, role)
        {
            json_object_del(role, "held");
            thin(json_object_get(role, "scores"), TRACE_STEPS);
        }
    }
}

static void add_trace(hw_heads *h, json_t *data)
{
    char path[HW_PATH];
    hw_error err;
    if (!hw_bundle_path(path, h->model, "heads_trace.tsv", NULL) || !hw_file_exists(path)) return;
    json_t *trace = hw_heads_trace_of(h->model, h->config, &err);
    if (trace) {
        shorten_trace(trace);
        json_object_set_new(json_object_get(data, "sections"), "trace", trace);
    } else {
        leave_out(h, data, "trace", &err);
    }
}

/* "sections" and, where a verb has none to give, "missing" with the reason. */
static bool add_sections(hw_heads *h, json_t *data, hw_error *err)
{
    json_t *results = json_object();
    json_object_set_new(data, "sections", results);
    json_object_set_new(data, "missing", json_array());
    for (int i = 0; i < SECTIONS; i++) {
        const section *s = &sections[i];
        json_t *result = result_of(h, s, err);
        if (result)
            json_object_set_new(results, s->verb->name, result);
        else if (*err->message && s->how == NEEDED)
            return false;
        else if (*err->message)
            leave_out(h, data, s->verb->name, err);
    }
    add_trace(h, data);
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
    return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:o}", "name",
                     hw_json_text(base_of(h->cli->arena, h->model)), "encoder_layers",
                     (json_int_t)c->model.encoder_layers, "decoder_layers", (json_int_t)c->model.decoder_layers,
                     "heads_a_layer", (json_int_t)c->model.heads, "width", (json_int_t)c->model.width, "parameters",
                     (json_int_t)hw_parameters_total(m->parameters), "source", c->data.source, "target", c->data.target,
                     "heads", heads);
}

/* What the models are called on the page, each otherwise than those before it. */
static const char *const *names_of(hw_heads *h, const hw_cli_list *others)
{
    hw_arena *arena = h->cli->arena;
    const char **names = hw_arena_alloc(arena, (size_t)(others->count + 1) * sizeof *names);
    for (int i = 0; i <= others->count; i++) {
        const char *name = names[i] = base_of(arena, i ? others->items[i - 1] : h->model);
        for (int k = 0, again = 2; k < i; k++)
            if (!strcmp(names[k], names[i])) names[i] = hw_arena_string(arena, "%s (%d)", name, again++), k = -1;
    }
    return names;
}

static bool add_comparison(hw_heads *h, json_t *data, hw_error *err)
{
    const hw_cli_list *others = &((const options *)h->options)->compare;
    if (!others->count) return true;
    hw_heads_group group = {.count = others->count, .models = others->items, .names = names_of(h, others)};
    json_t *result = hw_heads_compare_of(h, &group, err);
    if (!result) return false;
    json_object_set_new(json_object_get(data, "sections"), "compare", result);
    return true;
}

static bool add_pairs(hw_heads *h, json_t *data, hw_error *err)
{
    hw_arena *arena = h->cli->arena;
    const options *o = (const options *)h->options;
    hw_study_set set;
    if (!hw_study_set_load(arena, h->bundle, h->directory, h->prefix, &set, err)) return false;
    hw_heads_note_left_out(h, &set);
    const json_t *roles = json_object_get(json_object_get(data, "sections"), "roles");
    int64_t count;
    const int64_t *chosen = hw_report_choose(h->bundle->network, &set, roles, o->pairs, LETTERS, arena, &count);
    if (!count)
        hw_cli_note(h->cli, "the sentences of %s/%s are too long for a page, which goes without any", h->directory,
                    h->prefix);
    json_object_set_new(data, "pairs", hw_report_pairs(h->bundle->network, &set, chosen, count));
    return true;
}

static json_t *page_data(hw_heads *h, hw_error *err)
{
    const char *set = hw_arena_string(h->cli->arena, "%s/%s", base_of(h->cli->arena, h->directory), h->prefix);
    json_t *data = json_pack("{s:s, s:o, s:o}", "program", "headwise " HW_VERSION, "data", hw_json_text(set), "model",
                             model_json(h));
    if (add_sections(h, data, err) && add_comparison(h, data, err) && add_pairs(h, data, err)) return data;
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
    if (!hw_output_begin(&file, o->output, &err)) return hw_cli_fail(&err);
    json_t *data = page_data(h, &err);
    if (!data) {
        hw_atomic_abandon(&file);
        return hw_heads_failed(h->cli, &err);
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
    if (!o.output) {
        hw_cli_say("heads report: where to? -o FILE.html names the page");
        return HW_CLI_USAGE;
    }
    for (int i = 0; i < o.with.count; i++) {
        int k = 0;
        while (k < SECTIONS && (sections[k].how != KEPT || strcmp(sections[k].verb->name, o.with.items[i]))) k++;
        if (k == SECTIONS) {
            hw_cli_say("heads report: --with %.40s: expected prune or probe; the other sections are always there",
                       o.with.items[i]);
            return HW_CLI_USAGE;
        }
    }
    hw_error err; /* before all that is computed */
    for (int i = 0; i < o.compare.count; i++)
        if (!hw_bundle_config(o.compare.items[i], cli->arena, &err)) return hw_cli_fail(&err);
    return hw_heads_with(cli, &o.common, report, &o);
}

const hw_cli_command hw_cli_heads_report = {
    .usage = "MODEL -o FILE.html",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_SET,
    .description = "Writes the whole study as one HTML page that needs nothing else: every head by its role, a card a "
                   "head, a sentence explorer, tables, and what each measure can and cannot show. Results that are "
                   "kept in heads/ and still hold are used; the others are computed and kept. Pruning and probes are "
                   "shown where heads prune and heads probe left them or --with asks for them, roles over training "
                   "where heads were tracked (training.track_heads).",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
