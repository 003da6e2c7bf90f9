/* headwise heads prune: how many heads can go, one after another; and, with --remove, a model without them. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

enum { TRIALS = 1000 };

typedef struct options {
    hw_heads_options common;
    int reading;
    bool normalised;
    int64_t remove;
    const char *output;
} options;

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"reading", 'r', "READING", HW_CLI_CHOICE, offsetof(options, reading),
     .help = "importance by token or sentence, see heads importance (token)", .choices = hw_importance_readings},
    {"normalised", 0, NULL, HW_CLI_FLAG, offsetof(options, normalised),
     .help = "compare importance after it was normalised within each attention"},
    {"remove", 'n', "N", HW_CLI_INTEGER, offsetof(options, remove),
     .help = "write a model without the parameters of the first N heads to go; needs --output", .low = 1,
     .high = INFINITY},
    {"output", 'o', "DIR", HW_CLI_TEXT, offsetof(options, output), .help = "with --remove: its model directory"},
};

static hw_search_options search_of(const hw_heads *h)
{
    hw_search_options s = hw_search_options_of(h->config);
    s.n_best = 1;
    s.ids_only = true;
    return s;
}

static uint64_t depends(const hw_heads *h, uint64_t print)
{
    const options *o = (const options *)h->options;
    char text[64];
    snprintf(text, sizeof text, "by %s, normalised %d", hw_importance_readings[o->reading], o->normalised);
    return hw_heads_depends_on_search(h, hw_fingerprint_text(hw_heads_depends_on_selection(h, print), text));
}

static json_t *compute(hw_heads *h, hw_error *err)
{
    const options *o = (const options *)h->options;
    hw_study_set test, selection;
    hw_arena *arena = h->cli->arena;
    if (!hw_heads_sets(h, &test, &selection, err)) return NULL;
    hw_prune_options prune = {.reading = (hw_importance_reading)o->reading,
                              .normalised = o->normalised,
                              .trials = TRIALS,
                              .seed = (uint64_t)h->options->seed};
    hw_search_options search = search_of(h);
    hw_meter *meter = hw_meter_new(h->bundle, &test, &search);
    const hw_pruning *p =
        hw_pruning_study(h->bundle, &selection, meter, &test, &prune, hw_cli_progress_show, &h->progress, arena);
    hw_meter_free(meter);
    return hw_pruning_json(p);
}

/* ---- the curve --------------------------------------------------------------------------------------------------- */

static void print_interval(hw_cli_table *t, const json_t *row, const char *low, const char *high, double scale,
                           int digits)
{
    if (isnan(hw_study_number(row, low)))
        hw_cli_cell(t, "one sentence");
    else
        hw_cli_cell(t, "[%+.*f, %+.*f]", digits, scale * hw_study_number(row, low), digits,
                    scale * hw_study_number(row, high));
}

static void print(hw_heads *h, const json_t *result)
{
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "rlrrlrlrl");
    static const char *const titles[] = {"gone",        "the last",     "importance", "loss",        "change, 95 %",
                                         "exact match", "change, 95 %", "BLEU",       "change, 95 %"};
    for (int i = 0; i < 9; i++) hw_cli_cell(t, "%s", titles[i]);
    const json_t *rows = json_object_get(result, "heads");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        hw_cli_cell(t, "%zu", i), hw_cli_cell(t, "%s", name ? name : "-");
        if (name)
            hw_cli_cell(t, "%.5f", hw_study_number(row, "importance"));
        else
            hw_cli_cell(t, "-");
        hw_cli_cell(t, "%.4f", hw_study_number(row, "loss"));
        print_interval(t, row, "low", "high", 1, 4);
        hw_cli_cell(t, "%.1f", 100 * hw_study_number(row, "exact_match"));
        print_interval(t, row, "exact_match_low", "exact_match_high", 100, 1);
        hw_cli_cell(t, "%.2f", hw_study_number(row, "bleu"));
        print_interval(t, row, "bleu_low", "bleu_high", 1, 2);
    }
    printf("%s on %s, %.0f sentences: heads taken away, the least important first\n", h->model,
           json_string_value(json_object_get(result, "data")), hw_study_number(result, "sentences"));
    hw_cli_table_print(t, stdout);
    printf("\n%.0f of %.0f heads (%.0f %%) go before exact match falls by more than a point.\n",
           hw_study_number(result, "spare"), hw_study_number(result, "network_heads"),
           100 * hw_study_number(result, "spare_share"));
    hw_cli_wrap(stdout,
                "Importance is |dL/dxi| on the validation set, computed anew after each removal; one head of each "
                "attention stays. Changes are against the whole network, paired by sentence; intervals are over "
                "sentences and speak of this model only, without further training.",
                0, 0, 100);
    putchar('\n');
}

/* ---- removal ----------------------------------------------------------------------------------------------------- */

/* Are there so many heads beside the one that each attention keeps? */
static bool may_go(hw_heads *h, int64_t count, hw_error *err)
{
    int all, attentions = h->bundle->network->attentions;
    hw_heads_of(h->bundle->network, h->cli->arena, &all);
    if (all == attentions)
        return hw_fail(err, "--remove %lld: every attention of the network has one head only; none can go",
                       (long long)count);
    if (count <= all - attentions) return true;
    return hw_fail(
        err, "--remove %lld: the network has %d heads in %d attentions, each of which keeps one; at most %d can go",
        (long long)count, all, attentions, all - attentions);
}

/* The names of the first heads to go; their places in the network go to `places`. */
static void first_to_go(hw_heads *h, const json_t *result, int count, const char **names, int *places)
{
    const json_t *steps = json_object_get(result, "heads");
    int all;
    const hw_head *heads = hw_heads_of(h->bundle->network, h->cli->arena, &all);
    for (int i = 0; i < count; i++) {
        names[i] = json_string_value(json_object_get(json_array_get(steps, (size_t)i + 1), "name"));
        for (places[i] = 0; strcmp(heads[places[i]].name, names[i]);) places[i]++;
    }
}

/* May a model be put there? */
static bool may_stand(const char *directory, hw_error *err)
{
    char path[HW_PATH];
    if (!hw_bundle_path(path, directory, "config.yaml", err)) return false;
    return !hw_file_exists(path) || hw_fail(err, "%s: there is a model already; name another directory", directory);
}

static bool save(const hw_bundle *part, const char *directory, hw_error *err)
{
    return may_stand(directory, err) && hw_bundle_save_texts(part, directory, err) &&
           hw_bundle_save_model(part->network, NULL, directory, err);
}

static json_t *removal_json(const hw_removal *r, const char *directory, const char *const *names, int count)
{
    json_t *removed = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(removed, json_string(names[i]));
    return json_pack("{s:s, s:o, s:f, s:[I, I], s:f, s:[f, f], s:[f, f]}", "directory", directory, "removed", removed,
                     "largest_difference", r->difference, "parameters", (json_int_t)r->parameters[0],
                     (json_int_t)r->parameters[1], "work_saved", r->work, "scoring_tokens_per_s", r->scored[0],
                     r->scored[1], "translation_tokens_per_s", r->translated[0], r->translated[1]);
}

static void print_removal(hw_heads *h, const hw_removal *r, const char *directory, const char *const *names, int count)
{
    char text[2][32];
    printf("%s: a model without %d %s:", directory, count, hw_plural(count, "head", "heads"));
    for (int i = 0; i < count; i++) printf(" %s", names[i]);
    printf("\nlargest difference of any token's log-probability to the gated network: %.2g\n", r->difference);
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "lrrr");
    static const char *const titles[] = {"", "gates at 0", "removed", "change"};
    for (int i = 0; i < 4; i++) hw_cli_cell(t, "%s", titles[i]);
    hw_cli_cell(t, "parameters");
    for (int k = 0; k < 2; k++) hw_cli_cell(t, "%s", hw_thousands(r->parameters[k], text[k]));
    hw_cli_cell(t, "%+.1f %%", 100.0 * (double)(r->parameters[1] - r->parameters[0]) / (double)r->parameters[0]);
    const struct {
        const char *title;
        const double *speed;
    } speeds[] = {{"tokens/s, target fed", r->scored}, {"tokens/s, translating", r->translated}};
    for (int i = 0; i < 2; i++) {
        hw_cli_cell(t, "%s", speeds[i].title);
        for (int k = 0; k < 2; k++) hw_cli_cell(t, "%s", hw_thousands((int64_t)speeds[i].speed[k], text[k]));
        hw_cli_cell(t, "%+.1f %%", 100 * (speeds[i].speed[1] / speeds[i].speed[0] - 1));
    }
    hw_cli_table_print(t, stdout);
    printf("%.1f %% of the multiplications' work is saved.\n", 100 * r->work);
}

static bool remove_heads(hw_heads *h, const json_t *result, hw_error *err)
{
    const options *o = (const options *)h->options;
    hw_arena *arena = h->cli->arena;
    int count = (int)o->remove, *places = hw_arena_alloc(arena, (size_t)count * sizeof *places);
    const char **names = hw_arena_alloc(arena, (size_t)count * sizeof *names);
    hw_study_set test;
    first_to_go(h, result, count, names, places);
    if (!hw_study_set_load(arena, h->bundle, h->directory, h->prefix, &test, err)) return false;
    hw_bundle *part = hw_bundle_without(h->bundle, names, count, o->output, arena, err);
    if (!part) return false;
    bool ok = save(part, o->output, err);
    if (ok) {
        hw_search_options search = search_of(h);
        hw_removal r = hw_removal_measure(h->bundle, part, places, count, &test, &search);
        if (h->cli->json)
            hw_json_print(removal_json(&r, o->output, names, count), true);
        else
            print_removal(h, &r, o->output, names, count);
    }
    hw_bundle_free(part);
    return ok;
}

static const char *const columns[] = {"removed",
                                      "name",
                                      "share",
                                      "importance",
                                      "loss",
                                      "loss_delta",
                                      "low",
                                      "high",
                                      "exact_match",
                                      "exact_match_delta",
                                      "exact_match_low",
                                      "exact_match_high",
                                      "bleu",
                                      "bleu_delta",
                                      "bleu_low",
                                      "bleu_high",
                                      NULL};

static const options defaults = {.common.seed = 1};
const hw_heads_verb hw_heads_prune = {.name = "prune",
                                      .depends = depends,
                                      .compute = compute,
                                      .print = print,
                                      .columns = columns,
                                      .defaults = &defaults,
                                      .defaults_size = sizeof defaults};

static int write_model(hw_heads *h, const void *argument)
{
    const options *o = argument;
    hw_error err;
    json_t *result =
        may_go(h, o->remove, &err) && may_stand(o->output, &err) ? hw_heads_result(h, &hw_heads_prune, &err) : NULL;
    if (!result) return hw_cli_fail(&err);
    bool ok = remove_heads(h, result, &err);
    json_decref(result);
    return ok ? HW_CLI_DONE : hw_cli_fail(&err);
}

static int run(hw_cli *cli)
{
    options o = defaults;
    if (!hw_cli_parse(cli, &o)) return cli->status;
    if (!o.remove == !!o.output) {
        hw_cli_say("heads prune: --remove N and --output DIR go together");
        return HW_CLI_USAGE;
    }
    return o.remove ? hw_heads_with(cli, &o.common, write_model, &o) : hw_heads_run(cli, &o.common, &hw_heads_prune);
}

const hw_cli_command hw_cli_heads_prune = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Takes the least important head away, again and again, until every attention has one left, and prints loss, "
        "exact match and BLEU after each. Importance is computed on the validation set, anew each time. With --remove "
        "N "
        "and --output DIR it writes a model without the parameters of the first N heads: it gives what gates of 0 "
        "give, "
        "but is smaller and faster, and both speeds are printed. The other heads keep their names. To train it "
        "further, begin another run with it: headwise train DIR/config.yaml --set training.init_from=DIR --set "
        "training.model_dir=OTHER.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
