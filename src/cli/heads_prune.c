/* headwise heads prune: how many heads can go, one after another; and, with --remove, a model without them. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

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

static const hw_cli_rule rules[] = {
    {"remove", HW_CLI_NEEDS, "output", ", the directory of the model without them"},
    {"remove", HW_CLI_EXCLUDES, "tsv", NULL},
    {"output", HW_CLI_NEEDS, "remove", ", how many heads its model goes without"},
    {0},
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

static void print_spare(const json_t *result)
{
    const char *why = hw_study_text(result, "spare_undefined");
    double all = hw_study_number(result, "network_heads");
    if (*why) {
        printf("\n- of %.0f heads go before exact match falls by more than a point: not defined, since %s.\n", all,
               why);
        return;
    }
    double spare = hw_study_number(result, "spare");
    printf("\n%.0f of %.0f heads (%.0f %%) %s before exact match falls by more than a point.\n", spare, all,
           100 * hw_study_number(result, "spare_share"), hw_plural((int64_t)spare, "goes", "go"));
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
    printf("%s on %s, %s: heads taken away, the least important first\n", h->model, hw_study_text(result, "data"),
           hw_heads_sentences(h, result));
    hw_cli_table_print(t, stdout);
    print_spare(result);
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

/* The configuration, which makes it a model, comes last, so that after an interruption the same command works again. Of
 * two at once the first has the directory. */
static bool save(const hw_bundle *part, const char *from, const char *directory, hw_error *err)
{
    int reason;
    if (!hw_directory_make(directory, err)) return false;
    int lock = hw_directory_lock(directory, &reason);
    bool ok = reason == EWOULDBLOCK ? hw_fail(err, "%s: another process writes into this directory", directory)
                                    : may_stand(directory, err);
    ok = ok && hw_bundle_save_model(part->network, NULL, directory, err) && hw_bundle_copy_corpus(from, directory, err) &&
         hw_bundle_save_texts(part, directory, err);
    if (lock >= 0) close(lock);
    return ok;
}

/* What was measured of a speed, in JSON and as text. */
static const struct {
    const char *title, *key, *range, *gain;
    size_t offset;
} speeds[] = {
    {"tokens/s, target fed", "scoring_tokens_per_s", "scoring_range", "scoring_gain", offsetof(hw_removal, scored)},
    {"tokens/s, translating", "translation_tokens_per_s", "translation_range", "translation_gain",
     offsetof(hw_removal, translated)},
};
enum { SPEEDS = sizeof speeds / sizeof *speeds };

static const hw_removal_speed *speed_of(const hw_removal *r, int i)
{
    return (const void *)((const char *)r + speeds[i].offset);
}

static json_t *removal_json(const hw_removal *r, const char *directory, const char *const *names, int count)
{
    json_t *removed = json_array();
    for (int i = 0; i < count; i++) json_array_append_new(removed, json_string(names[i]));
    json_t *o = json_pack("{s:o, s:o, s:f, s:[I, I], s:f, s:i}", "directory", hw_json_text(directory), "removed",
                          removed, "largest_difference", r->difference, "parameters", (json_int_t)r->parameters[0],
                          (json_int_t)r->parameters[1], "work_saved", r->work, "rounds", HW_REMOVAL_ROUNDS);
    for (int i = 0; i < SPEEDS; i++) {
        const hw_removal_speed *s = speed_of(r, i);
        const hw_spread *a = &s->tokens[0], *b = &s->tokens[1];
        json_object_set_new(o, speeds[i].key, json_pack("[f, f]", a->median, b->median));
        json_object_set_new(o, speeds[i].range, json_pack("[[f, f], [f, f]]", a->low, a->high, b->low, b->high));
        json_object_set_new(o, speeds[i].gain, json_pack("[f, f, f]", s->gain.median, s->gain.low, s->gain.high));
    }
    return o;
}

static void print_removal(hw_heads *h, const hw_removal *r, const char *directory, const char *const *names, int count)
{
    char text[2][32];
    printf("%s: a model without %d %s:", directory, count, hw_plural(count, "head", "heads"));
    for (int i = 0; i < count; i++) printf(" %s", names[i]);
    printf("\nlargest difference of any token's log-probability to the gated network: %.2g\n", r->difference);
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "lrrrl");
    static const char *const titles[] = {"", "before", "without", "change", "from, to"};
    for (int i = 0; i < 5; i++) hw_cli_cell(t, "%s", titles[i]);
    hw_cli_cell(t, "parameters");
    for (int k = 0; k < 2; k++) hw_cli_cell(t, "%s", hw_thousands(r->parameters[k], text[k]));
    hw_cli_cell(t, "%+.1f %%", 100.0 * (double)(r->parameters[1] - r->parameters[0]) / (double)r->parameters[0]);
    hw_cli_cell(t, "%s", "");
    for (int i = 0; i < SPEEDS; i++) {
        const hw_removal_speed *s = speed_of(r, i);
        hw_cli_cell(t, "%s", speeds[i].title);
        for (int k = 0; k < 2; k++) hw_cli_cell(t, "%s", hw_thousands((int64_t)s->tokens[k].median, text[k]));
        hw_cli_cell(t, "%+.1f %%", 100 * (s->gain.median - 1));
        hw_cli_cell(t, "[%+.1f, %+.1f]", 100 * (s->gain.low - 1), 100 * (s->gain.high - 1));
    }
    hw_cli_table_print(t, stdout);
    printf("%.1f %% of the multiplications' work is saved. Speeds are medians of %d rounds, in which both take turns;\n"
           "the change is the median of the rounds' changes, with the least and the largest.\n",
           100 * r->work, HW_REMOVAL_ROUNDS);
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
    bool ok = save(part, h->model, o->output, err);
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
    .rules = rules,
    .run = run,
};
