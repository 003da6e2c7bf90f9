/* headwise heads compare: several models on the same sentences. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

enum { TRIALS = 1000 };

typedef struct options {
    hw_heads_options common;
    hw_cli_list against;
    int within;
    bool matches;
} options;

static const char *const scopes[] = {"part", "layer", NULL};

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"against", 'a', "MODEL", HW_CLI_LIST, offsetof(options, against),
     .help = "a model of the second group, once for each; runs of both are paired where their seeds are the same"},
    {"within", 'w', "SCOPE", HW_CLI_CHOICE, offsetof(options, within),
     .help = "match heads within a part of the network (encoder, decoder, cross) or only within a layer (part)",
     .choices = scopes},
    {"matches", 'm', NULL, HW_CLI_FLAG, offsetof(options, matches),
     .help = "print every head's match in the other models, not the figures"},
};

static const hw_cli_rule rules[] = {
    {"matches", HW_CLI_EXCLUDES, "json", ", which has both"},
    {0},
};

/* ---- may they be compared? --------------------------------------------------------------------------------------- */

static const char advice[] = "heads can be compared only where data and vocabulary are the same";

static bool same_languages(const hw_heads *a, const hw_heads *b, hw_error *err)
{
    const hw_config *x = a->config, *y = b->config;
    if (!strcmp(x->data.source, y->data.source) && !strcmp(x->data.target, y->data.target)) return true;
    return hw_fail(err, "%s reads %s and writes %s, %s reads %s and writes %s; %s", a->model, x->data.source,
                   x->data.target, b->model, y->data.source, y->data.target, advice);
}

/* By what the directories say of the training set, and by its files where they are still there. */
static bool same_training(const hw_heads *a, const hw_heads *b, hw_error *err)
{
    char path[2][HW_PATH];
    json_t *counts[2] = {NULL, NULL};
    const hw_heads *both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        if (hw_bundle_path(path[i], both[i]->model, "corpus.json", NULL)) counts[i] = json_load_file(path[i], 0, NULL);
    for (int i = 0; i < 2; i++) json_object_del(counts[i], "models_found"); /* says nothing of the data */
    bool same = !counts[0] || !counts[1] || json_equal(counts[0], counts[1]);
    json_decref(counts[0]);
    json_decref(counts[1]);
    if (!same)
        return hw_fail(err, "%s and %s were trained on different data: %s and %s differ; %s", a->model, b->model,
                       path[0], path[1], advice);
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < 2; i++) {
            const hw_config *c = both[i]->config;
            if (!hw_corpus_path(path[i], c->data.dir, c->data.train, side ? c->data.target : c->data.source, NULL))
                return true;
        }
        if (strcmp(path[0], path[1]) && hw_fingerprint_file(0, path[0]) != hw_fingerprint_file(0, path[1]))
            return hw_fail(err, "%s and %s were trained on different data: %s and %s differ; %s", a->model, b->model,
                           path[0], path[1], advice);
    }
    return true;
}

static bool comparable(const hw_heads *a, const hw_heads *b, hw_error *err)
{
    hw_error why;
    if (!same_languages(a, b, err)) return false;
    if (!hw_same_texts(a->bundle, b->bundle, &why))
        return hw_fail(err, "%s and %s: %s; %s", a->model, b->model, why.message, advice);
    return same_training(a, b, err);
}

static bool is_against(const hw_heads_group *group, int model)
{
    return model > group->count - group->against || (group->count == 1 && model);
}

/* A run that stands twice in a group would count for two and make its interval too narrow; in both groups it is fine,
 * but is said: same_as [models]. */
static bool different_runs(const hw_heads *all, const hw_heads_group *group, const char **same_as, hw_error *err)
{
    int count = group->count + 1;
    uint64_t *prints = hw_arena_alloc(all->cli->arena, (size_t)count * sizeof *prints);
    for (int m = 0; m < count; m++) {
        char path[HW_PATH];
        if (!hw_bundle_path(path, all[m].model, "model.safetensors", err)) return false;
        prints[m] = hw_fingerprint_file(0, path);
        for (int k = 0; k < m; k++) {
            if (prints[k] != prints[m]) continue;
            if (is_against(group, k) == is_against(group, m))
                return hw_fail(err,
                               "%s and %s are the same run: their weights are the same; it would count for two, and "
                               "intervals would be too narrow",
                               all[k].model, all[m].model);
            same_as[m] = group->names[k];
        }
    }
    return true;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static hw_quality quality_of(const hw_heads *h, const hw_study_set *set)
{
    hw_search_options search = hw_search_options_of(h->config);
    hw_quality quality;
    search.n_best = 1;
    search.ids_only = true;
    hw_meter *meter = hw_meter_new(h->bundle, set, &search);
    hw_meter_measure(meter, NULL, &quality);
    hw_meter_free(meter);
    return quality;
}

static bool measure(hw_heads *h, const hw_study_set *set, hw_compared *run, hw_error *err)
{
    if (!(run->roles = hw_heads_default_result(h, &hw_heads_roles, err)) ||
        !(run->diversity = hw_heads_default_result(h, &hw_heads_diversity, err)))
        return false;
    run->quality = quality_of(h, set);
    return true;
}

/* Intervals over runs do not come from sentences; what roles say of their choice holds here too. */
static void add_caveats(json_t *result, const hw_compared *runs, int count, int64_t sentences)
{
    const json_t *worst = runs[0].roles;
    for (int m = 1; m < count; m++)
        if (json_is_true(json_object_get(runs[m].roles, "chosen_on_scored"))) worst = runs[m].roles;
    static const char *const keys[] = {"chosen_on_scored", "shared_sentences", "untested", "left_out"};
    for (int i = 0; i < 4; i++) json_object_set(result, keys[i], json_object_get(worst, keys[i]));
    if (!strcmp(hw_study_text(result, "over"), "sentences")) hw_heads_add_rough(result, sentences);
}

static json_t *compare_all(hw_heads *all, int count, const hw_heads_group *group, hw_error *err)
{
    hw_arena *arena = all->cli->arena;
    hw_compared *runs = hw_arena_calloc(arena, (size_t)count, sizeof *runs);
    const hw_bundle **bundles = hw_arena_alloc(arena, (size_t)count * sizeof *bundles);
    hw_head_profile *profiles = hw_arena_calloc(arena, (size_t)count, sizeof *profiles);
    const char **same_as = hw_arena_calloc(arena, (size_t)count, sizeof *same_as);
    hw_study_set set;
    bool ok = different_runs(all, group, same_as, err) &&
              hw_study_set_load(arena, all->bundle, all->directory, all->prefix, &set, err);
    for (int m = 0; m < count && ok; m++) {
        runs[m] = (hw_compared){.name = group->names[m],
                                .bundle = all[m].bundle,
                                .seed = all[m].config->training.seed,
                                .against = is_against(group, m),
                                .same_as = same_as[m]};
        bundles[m] = all[m].bundle;
        ok = measure(&all[m], &set, &runs[m], err);
    }
    json_t *result = NULL;
    if (ok) {
        double **distances =
            hw_head_distances(bundles, count, &set, profiles, hw_cli_progress_show, &all->progress, arena);
        for (int m = 0; m < count; m++) runs[m].profile = profiles[m];
        result = hw_compare_json(runs, count, distances, group->same_layer, TRIALS, (uint64_t)all->options->seed);
        json_object_set_new(result, "sentences", json_integer(set.count));
        add_caveats(result, runs, count, set.count);
        for (int m = 0; m < count; m++)
            hw_heads_add_closed(&all[m], hw_arena_string(arena, "%s ", runs[m].name), result);
        hw_cli_progress_clear();
    }
    for (int m = 0; m < count; m++) {
        hw_quality_clear(&runs[m].quality);
        hw_head_profile_clear(&profiles[m]);
        json_decref((json_t *)runs[m].roles);
        json_decref((json_t *)runs[m].diversity);
    }
    return result;
}

json_t *hw_heads_compare_of(hw_heads *first, const hw_heads_group *group, hw_error *err)
{
    int count = group->count + 1, opened = 1;
    hw_heads *all = hw_arena_calloc(first->cli->arena, (size_t)count, sizeof *all);
    all[0] = *first;
    *err->message = 0;
    bool ok = true;
    for (; opened < count; opened++) {
        hw_heads *h = &all[opened];
        if (!hw_heads_open(first->cli, group->models[opened - 1], first->options, h)) break;
        ok = comparable(first, h, err);
        h->directory = first->directory;
        h->prefix = first->prefix;
        if (!ok) {
            opened++;
            break;
        }
    }
    json_t *result = ok && opened == count ? compare_all(all, count, group, err) : NULL;
    for (int m = 1; m < opened; m++) hw_bundle_free(all[m].bundle);
    return result;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *figure, *title;
    double scale;
    int digits;
} figures[] = {
    {"loss", "loss", 1, 4},
    {"exact_match", "exact match", 100, 1},
    {"bleu", "BLEU", 1, 2},
    {"relative_entropy", "relative entropy", 1, 3},
    {"js", "JS distance in a layer", 1, 3},
    {"position", "overlap of weights", 1, 3},
    {"output", "cosine of outputs", 1, 3},
    {"cka", "CKA", 1, 3},
    {"effective_heads", "effective heads a layer", 1, 2},
    {"heads_with_role", "heads with a role", 1, 1},
    {"kinds_of_roles", "kinds of roles", 1, 1},
};
enum { FIGURES = sizeof figures / sizeof *figures };

static const char *word(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "-";
}

static const char *group_title(hw_arena *arena, const json_t *models, bool against)
{
    size_t i;
    json_t *m;
    const char *one = "";
    int count = 0;
    json_array_foreach(models, i, m)
    {
        if (json_is_true(json_object_get(m, "against")) != against) continue;
        one = word(m, "model");
        count++;
    }
    return count == 1 ? one : hw_arena_string(arena, "mean of %d", count);
}

static void print_figures(hw_arena *arena, const json_t *result)
{
    const json_t *models = json_object_get(result, "models"), *list = json_object_get(result, "figures");
    bool one_group = true;
    size_t i;
    json_t *m;
    json_array_foreach(models, i, m) one_group &= !json_is_true(json_object_get(m, "against"));
    hw_cli_table *t = hw_cli_table_new(arena, one_group ? "lrl" : "lrrrlr");
    hw_cli_cell(t, "%s", ""), hw_cli_cell(t, "%s", group_title(arena, models, false));
    if (!one_group) hw_cli_cell(t, "%s", group_title(arena, models, true)), hw_cli_cell(t, "difference");
    hw_cli_cell(t, "95 %%");
    if (!one_group) hw_cli_cell(t, "p");
    for (int f = 0; f < FIGURES; f++) {
        const json_t *o = json_array_get(list, (size_t)f);
        hw_cli_cell(t, "%s", figures[f].title);
        hw_heads_number(t, o, "mean", figures[f].scale, figures[f].digits, false);
        if (!one_group) {
            hw_heads_number(t, o, "against", figures[f].scale, figures[f].digits, false);
            hw_heads_number(t, o, "difference", figures[f].scale, figures[f].digits, true);
        }
        hw_heads_interval(t, o, "low", "high", figures[f].scale, figures[f].digits, !one_group);
        if (!one_group) hw_heads_p(t, o);
    }
    hw_cli_table_print(t, stdout);
    printf("\nintervals over %s%s\n", word(result, "over"), one_group ? "" : "; p after Holm over these figures");
}

static void print_matching(hw_arena *arena, const json_t *result)
{
    hw_cli_table *t = hw_cli_table_new(arena, "lrrrrr");
    static const char *const titles[] = {"heads matched with", "heads",        "JS distance",
                                         "of any two",         "share a role", "by chance"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) hw_cli_cell(t, "%s", titles[i]);
    size_t i;
    json_t *m;
    json_array_foreach(json_object_get(result, "matching"), i, m)
    {
        hw_cli_cell(t, "%s", word(m, "with"));
        hw_heads_number(t, m, "matched", 1, 0, false), hw_heads_number(t, m, "js", 1, 3, false),
            hw_heads_number(t, m, "chance", 1, 3, false);
        hw_cli_cell(t, "%d of %d", (int)json_integer_value(json_object_get(m, "role_shared")),
                    (int)json_integer_value(json_object_get(m, "heads_with_role")));
        hw_heads_number(t, m, "role_shared_by_chance", 1, 1, false);
    }
    putchar('\n');
    hw_cli_table_print(t, stdout);
}

static const char *names_of(hw_arena *arena, const json_t *names)
{
    const char *all = "";
    size_t i;
    json_t *name;
    json_array_foreach(names, i, name) all =
        hw_arena_string(arena, "%s%s%s", all, i ? " " : "", json_string_value(name));
    return json_array_size(names) ? all : "-";
}

static void print_heads(hw_arena *arena, const json_t *result)
{
    hw_cli_table *t = hw_cli_table_new(arena, "lllrrll");
    static const char *const titles[] = {"head", "with", "match", "JS distance", "of any", "roles", "roles there"};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) hw_cli_cell(t, "%s", titles[i]);
    size_t i;
    json_t *m;
    json_array_foreach(json_object_get(result, "heads"), i, m)
    {
        hw_cli_cell(t, "%s", word(m, "name")), hw_cli_cell(t, "%s", word(m, "with")),
            hw_cli_cell(t, "%s", word(m, "match"));
        hw_heads_number(t, m, "js", 1, 3, false), hw_heads_number(t, m, "chance", 1, 3, false);
        hw_cli_cell(t, "%s", names_of(arena, json_object_get(m, "roles")));
        hw_cli_cell(t, "%s", names_of(arena, json_object_get(m, "match_roles")));
    }
    hw_cli_table_print(t, stdout);
}

/* What the intervals speak of, and why there are none. */
static const char *about_intervals(hw_arena *arena, const json_t *result)
{
    const json_t *runs = json_object_get(result, "runs");
    int own = (int)json_integer_value(json_array_get(runs, 0)),
        others = (int)json_integer_value(json_array_get(runs, 1));
    const char *why = hw_study_text(result, "unpaired");
    if (!strcmp(word(result, "over"), "sentences"))
        return "An interval over sentences tells these two models apart, not two ways of training: for that give "
               "several "
               "runs of each, the second group by --against. Figures without an interval are one number a model, not a "
               "sum over sentences.";
    if (!others)
        return hw_arena_string(arena,
                               "The models are %d runs of one kind: intervals are of their mean (Student's t), and "
                               "tell where the mean of other runs may be. To compare two kinds of runs, give the "
                               "second by --against.",
                               own);
    const char *text =
        hw_arena_string(arena,
                        "Intervals and p are of the difference between two groups of runs, %d and "
                        "%d, the second minus the first, by Student's t%s",
                        own, others,
                        *why ? hw_arena_string(arena, ", not paired by seed (Welch's test), since %s", why)
                             : ", each run with that of its seed");
    if (own > 1 && others > 1) return hw_arena_string(arena, "%s.", text);
    return hw_arena_string(arena,
                           "%s. A group of one run does not tell how runs spread, so there is no interval and no p: "
                           "give it two at least.",
                           text);
}

static void print_same(hw_arena *arena, const json_t *result)
{
    size_t i;
    json_t *m;
    json_array_foreach(json_object_get(result, "models"), i, m)
    {
        const char *name = word(m, "model"), *other = hw_study_text(m, "same_as");
        if (!*other) continue;
        putchar('\n');
        hw_heads_say(!strcmp(name, other)
                         ? hw_arena_string(arena, "NOTE: %s is compared with itself.", name)
                         : hw_arena_string(arena, "NOTE: %s has the weights of %s: it is the same run.", name, other));
    }
}

static void print(const hw_heads *h, const json_t *result)
{
    hw_arena *arena = h->cli->arena;
    printf("%d models on %s/%s, %s\n", (int)json_array_size(json_object_get(result, "models")), h->directory, h->prefix,
           hw_heads_sentences(h, result));
    if (((const options *)h->options)->matches) {
        print_heads(arena, result);
        return;
    }
    print_figures(arena, result);
    print_matching(arena, result);
    putchar('\n');
    hw_heads_say(
        "Heads of the first model are matched one to one with those of each other, by where they look, such that "
        "the sum of the Jensen-Shannon distances is least; beside it is the mean distance of any two that could "
        "have been matched.");
    hw_heads_say(about_intervals(arena, result));
    hw_heads_print_untested(h->cli->arena, result);
    print_same(arena, result);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static const char *const head_columns[] = {"name",        "with",        "match",   "js",         "chance", "roles",
                                           "match_roles", "role_shared", "nearest", "nearest_js", NULL};
static const char *const figure_columns[] = {"figure", "mean", "against", "difference", "low",
                                             "high",   "p",    "p_raw",   NULL};

static void print_tsv(const json_t *result, bool matches)
{
    json_t *rows = json_object();
    json_object_set(rows, "heads", json_object_get(result, matches ? "heads" : "figures"));
    hw_study_tsv(stdout, rows, NULL, matches ? head_columns : figure_columns);
    json_decref(rows);
}

static int compare(hw_heads *h, const void *argument)
{
    const options *o = argument;
    hw_cli *cli = h->cli;
    int own = cli->argument_count - 1;
    const char **models = hw_arena_alloc(cli->arena, (size_t)(own + o->against.count + 1) * sizeof *models);
    models[0] = h->model;
    for (int i = 0; i < own; i++) models[1 + i] = cli->arguments[1 + i];
    for (int i = 0; i < o->against.count; i++) models[1 + own + i] = o->against.items[i];
    hw_heads_group group = {.count = own + o->against.count,
                            .models = models + 1,
                            .names = models,
                            .against = o->against.count,
                            .same_layer = o->within == 1};
    hw_error err;
    json_t *result = hw_heads_compare_of(h, &group, &err);
    if (!result) return hw_heads_failed(cli, &err);
    if (cli->json)
        json_dumpf(result, stdout, JSON_INDENT(2)), putchar('\n');
    else if (o->common.tsv)
        print_tsv(result, o->matches);
    else
        print(h, result);
    if (!o->matches) hw_heads_print_caveats(h, result);
    json_decref(result);
    return HW_CLI_DONE;
}

static int run(hw_cli *cli)
{
    options o = {.common.seed = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    if (cli->argument_count + o.against.count < 2) {
        hw_cli_say(
            "heads compare: one model is nothing to compare; name another, or a second group by --against MODEL");
        return HW_CLI_USAGE;
    }
    return hw_heads_with(cli, &o.common, compare, &o);
}

const hw_cli_command hw_cli_heads_compare = {
    .usage = "MODEL MODEL... [--against MODEL]...",
    .least = 1,
    .most = -1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Puts models of the same data and vocabulary side by side: quality, entropy, diversity and roles, and which "
        "head "
        "of one does what a head of the other does. Of two models differences have intervals over the sentences. Of "
        "several runs the figures have means and intervals over the runs; with --against, once for each model of a "
        "second group, these are of the difference between the groups, paired where both have the same seeds, and it "
        "is "
        "said where and why they cannot be. Of sentences p is no less than their number and the resamples can tell. A "
        "run "
        "given twice in a group is refused.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
