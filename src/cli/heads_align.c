/* headwise heads align: how well cross-attention aligns words. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

typedef struct options {
    hw_heads_options common;
    const char *pharaoh, *head;
    int step;
    bool norms;
} options;

static const char *const steps[] = {"fed", "predicted", NULL};

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"pharaoh", 'p', "FILE", HW_CLI_TEXT, offsetof(options, pharaoh),
     .help = "write the alignment of the best head there, i-j a link, a line a pair"},
    {"head", 0, "NAME", HW_CLI_TEXT, offsetof(options, head),
     .help = "with --pharaoh: only write, by this head (decoder.1.cross.0) or mean (decoder.1.cross.mean, cross.mean); "
             "needs no gold"},
    {"step", 0, "STEP", HW_CLI_CHOICE, offsetof(options, step), .help = "with --head: fed or predicted (predicted)",
     .choices = steps},
    {"norms", 'n', NULL, HW_CLI_FLAG, offsetof(options, norms),
     .help = "with --head: by norms of what arrives, not by weights"},
};

static const hw_cli_rule rules[] = {
    {"head", HW_CLI_NEEDS, "pharaoh", ", the file where its alignment goes"},
    {"head", HW_CLI_EXCLUDES, "json tsv", ": nothing is printed"},
    {"step", HW_CLI_NEEDS, "head", NULL},
    {"norms", HW_CLI_NEEDS, "head", NULL},
    {0},
};

enum { TRIALS = 1000 };

static bool load(hw_heads *h, hw_study_set *test, hw_error *err)
{
    return hw_study_set_load(h->cli->arena, h->bundle, h->directory, h->prefix, test, err);
}

static bool needs_links(const hw_study_set *set, hw_error *err)
{
    if (set->links) return true;
    return hw_fail(
        err,
        "there is no %s/%s.align: error rates need gold alignments; --pharaoh FILE --head NAME writes without them",
        set->directory, set->prefix);
}

static uint64_t depends(const hw_heads *h, uint64_t print)
{
    return hw_fingerprint_set(hw_heads_depends_on_selection(h, print), h->bundle, h->config->data.dir,
                              h->config->data.train);
}

static json_t *compute(hw_heads *h, hw_error *err)
{
    hw_study_set test, selection;
    hw_arena *arena = h->cli->arena;
    if (!load(h, &test, err) || !needs_links(&test, err) || !hw_heads_selection(h, &test, &selection, err) ||
        !needs_links(&selection, err))
        return NULL;
    const hw_linkings *baselines =
        hw_link_baselines(h->bundle, h->config->data.dir, h->config->data.train, &test, arena, err);
    if (!baselines) return NULL;
    hw_runner *runner = hw_runner_new(h->bundle->network);
    const hw_linkings *chosen = hw_link_heads(runner, h->bundle->network, &selection, arena);
    const hw_linkings *found = hw_link_heads(runner, h->bundle->network, &test, arena);
    hw_runner_free(runner);
    return hw_align_json(chosen, found, baselines, TRIALS, (uint64_t)h->options->seed);
}

/* ---- Pharaoh's format -------------------------------------------------------------------------------------------- */

static bool write_links(hw_heads *h, const char *path, const char *name, const char *step, bool norms, hw_error *err)
{
    hw_study_set test;
    hw_atomic file;
    if (!load(h, &test, err)) return false;
    if (((const options *)h->options)->head) hw_heads_note_left_out(h, &test);
    hw_runner *runner = hw_runner_new(h->bundle->network);
    const hw_linkings *l = hw_link_heads(runner, h->bundle->network, &test, h->cli->arena);
    hw_runner_free(runner);
    int item = 0;
    while (item < l->count &&
           (strcmp(l->items[item].name, name) || strcmp(l->items[item].step, step) || l->items[item].norms != norms))
        item++;
    if (item == l->count)
        return hw_fail(err, "--head %s: there is no such head of cross-attention; the first is %s", name,
                       l->items[0].name);
    if (!hw_output_begin(&file, path, err)) return false;
    hw_linking_write(l, item, file.stream);
    return hw_atomic_commit(&file, err);
}

static bool write_best(hw_heads *h, const json_t *result, hw_error *err)
{
    const options *o = (const options *)h->options;
    const json_t *best = json_object_get(result, "best");
    if (!o->pharaoh) return true;
    return write_links(h, o->pharaoh, json_string_value(json_object_get(best, "name")),
                       json_string_value(json_object_get(best, "step")),
                       !strcmp(json_string_value(json_object_get(best, "measure")), "norms"), err);
}

static int write_head(hw_heads *h, const void *argument)
{
    const options *o = argument;
    hw_error err;
    return write_links(h, o->pharaoh, o->head, steps[o->step], o->norms, &err) ? HW_CLI_DONE : hw_cli_fail(&err);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_rows(hw_cli_table *t, const json_t *rows)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *step = json_object_get(row, "step");
        hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "name")));
        hw_cli_cell(t, "%s", step ? json_string_value(step) : "");
        hw_heads_number(t, row, "aer", 1, 4, false), hw_heads_interval(t, row, "low", "high", 1, 4, false);
        if (step)
            hw_heads_number(t, row, "aer_norm", 1, 4, false),
                hw_heads_interval(t, row, "low_norm", "high_norm", 1, 4, false);
        else
            hw_cli_cell(t, " "), hw_cli_cell(t, " ");
    }
}

static void print(hw_heads *h, const json_t *result)
{
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "llrlrl");
    static const char *const titles[] = {"head", "step", "AER", "95 %", "by norms", "95 %"};
    for (int i = 0; i < 6; i++) hw_cli_cell(t, "%s", titles[i]);
    print_rows(t, json_object_get(result, "heads"));
    print_rows(t, json_object_get(result, "means"));
    print_rows(t, json_object_get(result, "baselines"));
    printf("%s on %s, %s: alignment error rate\n", h->model, hw_study_text(result, "data"),
           hw_heads_sentences(h, result));
    hw_cli_table_print(t, stdout);
    const json_t *best = json_object_get(result, "best");
    printf("\nBest on the validation set: %s, %s, by %s (%.4f there); here %.4f.\n",
           json_string_value(json_object_get(best, "name")), json_string_value(json_object_get(best, "step")),
           json_string_value(json_object_get(best, "measure")),
           json_number_value(json_object_get(best, "selection_aer")), json_number_value(json_object_get(best, "aer")));
}

static const char *const columns[] = {"name",     "step",     "aer",       "low",           "high",
                                      "aer_norm", "low_norm", "high_norm", "selection_aer", "selection_aer_norm",
                                      NULL};

const hw_heads_verb hw_heads_align = {.name = "align",
                                      .depends = depends,
                                      .compute = compute,
                                      .print = print,
                                      .after = write_best,
                                      .columns = columns};

static int run(hw_cli *cli)
{
    options o = {.common.seed = 1, .step = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    if (o.head) return hw_heads_with(cli, &o.common, write_head, &o);
    return hw_heads_run(cli, &o.common, &hw_heads_align);
}

const hw_cli_command hw_cli_heads_align = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description = "Links every target word to the source word that a head of cross-attention attends to most, </s> "
                   "left out, and compares the "
                   "links with PREFIX.align: the alignment error rate of every head, of the mean of each layer and of "
                   "all, where a word is fed to "
                   "the decoder and where it is predicted, by weights and by the norms of what arrives. The best head "
                   "is picked on the validation "
                   "set; if --data names that set too, its error rate is that of the best of many, and this is said. "
                   "Baselines are the diagonal and IBM model 1, trained on the training set.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
