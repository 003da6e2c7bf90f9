/* headwise heads probe: what can be read off every head's output, every layer and the embeddings. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

enum { TRIALS = 1000 };

typedef struct options {
    hw_heads_options common;
    const char *label;
    int64_t words, hidden, seeds;
} options;

static const hw_cli_option table[] = {
    HW_HEADS_OPTIONS,
    {"label", 'l', "NAME", HW_CLI_TEXT, offsetof(options, label),
     .help = "only this: upos, position, previous, depth, quote, number, gender, head (all that the data has)"},
    {"words", 'w', "N", HW_CLI_INTEGER, offsetof(options, words),
     .help = "learn from at most N words, and test on as many (2000)", .low = 50, .high = 1e6},
    {"hidden", 0, "N", HW_CLI_INTEGER, offsetof(options, hidden),
     .help = "give the probe a hidden layer of N rectified units (0: linear)", .low = 0, .high = 4096},
    {"seeds", 0, "N", HW_CLI_INTEGER, offsetof(options, seeds),
     .help = "how often words, control labels and hidden units are drawn (3)", .low = 1, .high = 100},
};

static const char *label_at(int i, const void *unused)
{
    (void)unused;
    return hw_probe_label_at(i)->name;
}

static const hw_probe_label *find_label(const char *name, hw_error *err)
{
    char list[256] = "";
    const hw_probe_label *l;
    int count = 0;
    for (; (l = hw_probe_label_at(count)); count++) {
        if (!strcmp(l->name, name)) return l;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", l->name);
    }
    char suggestion[HW_SUGGESTION];
    hw_fail(err, "--label %.40s: there is no such label; there are %s%s", name, list,
            hw_suggestion(hw_nearest(name, count, label_at, NULL), suggestion));
    return NULL;
}

static uint64_t depends(const hw_heads *h, uint64_t print)
{
    const options *o = (const options *)h->options;
    char text[256];
    snprintf(text, sizeof text, "label %.40s, %lld words, %lld hidden, %lld seeds", o->label ? o->label : "all",
             (long long)o->words, (long long)o->hidden, (long long)o->seeds);
    return hw_fingerprint_text(hw_heads_depends_on_selection(h, print), text);
}

enum { WORDS = 2000, SEEDS = 3 };

/* One label, or fewer words or seeds than by themselves. */
static const char *part(const hw_heads *h)
{
    const options *o = (const options *)h->options;
    if (!o->label && o->words >= WORDS && o->seeds >= SEEDS) return NULL;
    return hw_arena_string(h->cli->arena, "%s %lld words %lld seeds", o->label ? o->label : "all", (long long)o->words,
                           (long long)o->seeds);
}

static json_t *compute(hw_heads *h, hw_error *err)
{
    const options *o = (const options *)h->options;
    hw_study_set test, learn;
    hw_arena *arena = h->cli->arena;
    if (!hw_heads_sets(h, &test, &learn, err)) return NULL;
    if (learn.pairs == test.pairs) h->shared = 0; /* its halves */
    hw_probe_options p = {.words = o->words,
                          .hidden = (int)o->hidden,
                          .seeds = (int)o->seeds,
                          .seed = (uint64_t)h->options->seed,
                          .trials = TRIALS};
    if (o->label && !(p.only = find_label(o->label, err))) return NULL;
    const hw_probes *found =
        hw_probe_study(h->bundle, &learn, &test, &p, hw_cli_progress_show, &h->progress, arena, err);
    if (!found) return NULL;
    json_t *result = hw_probes_json(found);
    json_decref(found->skipped);
    json_object_set_new(result, "hidden", json_integer(o->hidden));
    json_object_set_new(result, "seeds", json_integer(o->seeds));
    return result;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void print_row(hw_cli_table *t, const json_t *row)
{
    static const char *const shares[] = {"majority", "embeddings", "untrained", "control"};
    hw_cli_cell(t, "%s", json_string_value(json_object_get(row, "name")));
    hw_cli_cell(t, "%.3f", hw_study_number(row, "accuracy"));
    if (isnan(hw_study_number(row, "low")))
        hw_cli_cell(t, "one sentence");
    else
        hw_cli_cell(t, "[%.3f, %.3f]", hw_study_number(row, "low"), hw_study_number(row, "high"));
    for (int k = 0; k < 4; k++) hw_cli_cell(t, "%.3f", hw_study_number(row, shares[k]));
    hw_cli_cell(t, "%+.3f", hw_study_number(row, "selectivity"));
    hw_cli_cell(t, "%.0f", hw_study_number(row, "bits"));
    hw_cli_cell(t, "%.2f", hw_study_number(row, "compression"));
}

/* The rows of one label on one side, which stand together. */
static size_t print_label(hw_heads *h, const json_t *rows, size_t first)
{
    static const char *const titles[] = {"what",      "accuracy", "95 %",        "commonest", "embeddings",
                                         "untrained", "control",  "selectivity", "bits",      "compression"};
    const json_t *head = json_array_get(rows, first);
    const char *name = json_string_value(json_object_get(head, "label")), *what = "";
    const hw_probe_label *l;
    for (int i = 0; (l = hw_probe_label_at(i)); i++)
        if (!strcmp(l->name, name)) what = l->what;
    bool decoder = !strncmp(json_string_value(json_object_get(head, "name")), "decoder", 7);
    double learnt = hw_study_number(head, "learnt");
    printf("\n%s, %s: %s; %.0f classes, %.0f %s learnt, %.0f tested%s\n", decoder ? "target" : "source", name, what,
           hw_study_number(head, "classes"), learnt, hw_plural((int64_t)learnt, "word", "words"),
           hw_study_number(head, "tested"),
           json_is_true(json_object_get(head, "words_held_out")) ? ", none of them learnt" : "");
    hw_cli_table *t = hw_cli_table_new(h->cli->arena, "lrlrrrrrrr");
    for (size_t k = 0; k < sizeof titles / sizeof *titles; k++) hw_cli_cell(t, "%s", titles[k]);
    size_t i = first;
    for (; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *thing = json_string_value(json_object_get(row, "name"));
        if (strcmp(json_string_value(json_object_get(row, "label")), name) || decoder != !strncmp(thing, "decoder", 7))
            break;
        print_row(t, row);
    }
    hw_cli_table_print(t, stdout);
    return i;
}

static void print(hw_heads *h, const json_t *result)
{
    const json_t *rows = json_object_get(result, "heads"), *skipped = json_object_get(result, "skipped");
    printf("%s on %s: probes\n", h->model, json_string_value(json_object_get(result, "data")));
    for (size_t i = 0; i < json_array_size(rows);) i = print_label(h, rows, i);
    for (size_t i = 0; i < json_array_size(skipped); i++)
        printf("%snot probed: %s\n", i ? "" : "\n", json_string_value(json_array_get(skipped, i)));
    putchar('\n');
    hw_cli_wrap(stdout,
                "Accuracy of a probe that learnt on the validation set. It tells what can be read off, not what the "
                "network uses. Hold it against the commonest label, the same probe on embeddings (with positions) and "
                "on a network with initial values. Control: each word type has one label wherever it stands, that of a "
                "word drawn at random from those learnt from (so common labels stay common), which can only be learnt "
                "by heart; selectivity is what the real labels exceed it by, both without words held out. Bits: the "
                "online code length of the labels learnt from; compression: a uniform code's length "
                "over it. Intervals are over sentences and speak of this model only.",
                0, 0, 100);
    putchar('\n');
}

static const char *const columns[] = {
    "label",    "name",        "is_head", "words_held_out", "classes",     "learnt",     "tested",
    "accuracy", "low",         "high",    "deviation",      "majority",    "embeddings", "untrained",
    "control",  "selectivity", "bits",    "uniform_bits",   "compression", NULL};

static const options defaults = {.common.seed = 1, .words = WORDS, .seeds = SEEDS};
const hw_heads_verb hw_heads_probe = {.name = "probe",
                                      .depends = depends,
                                      .part = part,
                                      .compute = compute,
                                      .print = print,
                                      .columns = columns,
                                      .defaults = &defaults,
                                      .defaults_size = sizeof defaults};

static int run(hw_cli *cli)
{
    options o = defaults;
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_error err;
    if (o.label && !find_label(o.label, &err)) return hw_cli_refuse(&err);
    return hw_heads_run(cli, &o.common, &hw_heads_probe);
}

const hw_cli_command hw_cli_heads_probe = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description =
        "Trains small classifiers on every head's output, on what comes out of every layer and on the embeddings, to "
        "read off part of speech, place, the word before, open brackets and quotations, agreement and the place of the "
        "head. They learn from the validation set and are tested on the test set; for labels that are nearly a "
        "function "
        "of the word, on words that were not learnt from. Each stands beside the commonest label, the embeddings, a "
        "network with initial values and a control task (Hewitt and Liang 2019), with its description length (Voita "
        "and Titov 2020). In the control task each word type has one label wherever it stands, in both sets: that of a "
        "word drawn at random, by the seed, from those learnt from. So labels are as frequent as the real ones, and "
        "who "
        "knows the word can know its label only by having learnt it by heart.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
