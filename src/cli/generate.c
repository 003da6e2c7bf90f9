/* generate: a parallel corpus with gold alignments and dependencies from a grammar written in YAML. */
#include "cli/cli.h"

#include <headwise/text.h>

#include <jansson.h>
#include <string.h>

typedef struct options {
    hw_grammar_options corpus;
    const char *output;
} options;

static const hw_cli_option table[] = {
    {"output", 'o', "DIR", HW_CLI_TEXT, offsetof(options, output), "the directory to write into; it is made if missing",
     0, 0, NULL},
    {"pairs", 'n', "N", HW_CLI_INTEGER, offsetof(options, corpus.pairs),
     "how many pairs train has (as the grammar says)", 0, 1e9, NULL},
    {"valid", 0, "N", HW_CLI_INTEGER, offsetof(options, corpus.valid), "how many pairs valid has (as the grammar says)",
     0, 1e9, NULL},
    {"test", 0, "N", HW_CLI_INTEGER, offsetof(options, corpus.test), "how many pairs test has (as the grammar says)", 0,
     1e9, NULL},
    {"seed", 0, "S", HW_CLI_INTEGER, offsetof(options, corpus.seed),
     "the seed (as the grammar says); the same seed gives the same "
     "bytes",
     0, 0x1p62, NULL},
    {"train-annotation", 0, NULL, HW_CLI_FLAG, offsetof(options, corpus.train_annotation),
     "write alignments and dependencies of train too", 0, 0, NULL},
};

static double share(int64_t part, int64_t whole) { return whole ? (double)part / (double)whole : 0; }

static void print_text(hw_cli *cli, const hw_grammar_report *r)
{
    int64_t all = r->train + r->valid + r->test;
    printf("pairs: train %lld, valid %lld, test %lld (%lld of test with a held-out combination), seed %lld\n",
           (long long)r->train, (long long)r->valid, (long long)r->test, (long long)r->unseen, (long long)r->seed);
    printf("%s: %lld words, %.1f a sentence (%d to %d)\n", r->side[0], (long long)r->vocabulary[0], r->mean_length[0],
           r->shortest[0], r->longest[0]);
    printf("%s: %lld words, %.1f a sentence (%d to %d)\n", r->side[1], (long long)r->vocabulary[1], r->mean_length[1],
           r->shortest[1], r->longest[1]);
    printf("pieces of spelled names: %.1f %% of %s\n\n", 100 * r->spelled_share, r->side[0]);

    hw_cli_table *phenomena = hw_cli_table_new(cli->arena, "lrrrr");
    const char *const heads[] = {"phenomenon", "times", "sentences", "of all", "twice or more"};
    for (int i = 0; i < 5; i++) hw_cli_cell(phenomena, "%s", heads[i]);
    for (int i = 0; i < r->phenomena; i++) {
        const hw_grammar_phenomenon *p = &r->phenomenon[i];
        hw_cli_cell(phenomena, "%s", p->name);
        hw_cli_cell(phenomena, "%lld", (long long)p->times);
        hw_cli_cell(phenomena, "%lld", (long long)p->sentences);
        hw_cli_cell(phenomena, "%.1f %%", 100 * share(p->sentences, all));
        hw_cli_cell(phenomena, "%.1f %%", 100 * share(p->repeated, p->sentences));
    }
    hw_cli_table_print(phenomena, stdout);

    printf("\nWhere the head of a relation stands, as the commonest distance: what a fixed offset gets right.\n");
    hw_cli_table *relations = hw_cli_table_new(cli->arena, "llrrr");
    const char *const names[] = {"side", "relation", "times", "distance", "share"};
    for (int i = 0; i < 5; i++) hw_cli_cell(relations, "%s", names[i]);
    for (int i = 0; i < r->relations; i++) {
        const hw_grammar_relation *p = &r->relation[i];
        hw_cli_cell(relations, "%s", p->side);
        hw_cli_cell(relations, "%s", p->name);
        hw_cli_cell(relations, "%lld", (long long)p->count);
        hw_cli_cell(relations, "%+d", p->commonest);
        hw_cli_cell(relations, "%.1f %%", 100 * p->share);
    }
    hw_cli_table_print(relations, stdout);
}

static json_t *json_sides(const hw_grammar_report *r)
{
    json_t *sides = json_object();
    for (int s = 0; s < 2; s++)
        json_object_set_new(sides, r->side[s],
                            json_pack("{s:I, s:f, s:i, s:i}", "vocabulary", (json_int_t)r->vocabulary[s], "mean_length",
                                      r->mean_length[s], "shortest", r->shortest[s], "longest", r->longest[s]));
    return sides;
}

static void print_json(const hw_grammar_report *r)
{
    json_t *phenomena = json_array(), *relations = json_array();
    for (int i = 0; i < r->phenomena; i++)
        json_array_append_new(phenomena, json_pack("{s:s, s:I, s:I, s:I}", "name", r->phenomenon[i].name, "times",
                                                   (json_int_t)r->phenomenon[i].times, "sentences",
                                                   (json_int_t)r->phenomenon[i].sentences, "repeated",
                                                   (json_int_t)r->phenomenon[i].repeated));
    for (int i = 0; i < r->relations; i++)
        json_array_append_new(relations,
                              json_pack("{s:s, s:s, s:I, s:i, s:f}", "side", r->relation[i].side, "relation",
                                        r->relation[i].name, "count", (json_int_t)r->relation[i].count, "distance",
                                        r->relation[i].commonest, "share", r->relation[i].share));
    json_t *all = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o}", "train", (json_int_t)r->train,
                            "valid", (json_int_t)r->valid, "test", (json_int_t)r->test, "unseen", (json_int_t)r->unseen,
                            "seed", (json_int_t)r->seed, "ambiguous", (json_int_t)r->ambiguous, "spelled_share",
                            r->spelled_share, "sides", json_sides(r), "phenomena", phenomena, "relations", relations);
    json_dumpf(all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    putchar('\n');
    json_decref(all);
}

static int run(hw_cli *cli)
{
    options o = {.corpus = {-1, -1, -1, -1, false}};
    hw_error err;
    if (!hw_cli_parse(cli, &o)) return cli->status;
    if (!o.output) {
        hw_fail(&err, "generate: -o DIR is missing: where the corpus is to be written");
        return hw_cli_refuse(&err);
    }
    hw_grammar *grammar = hw_grammar_load(cli->arguments[0], &err);
    if (!grammar) return hw_cli_refuse(&err);
    hw_grammar_report report;
    hw_cli_progress progress = hw_cli_progress_new(cli);
    bool good = hw_grammar_generate(grammar, &o.corpus, o.output, &report, hw_cli_progress_show, &progress, &err);
    if (good) {
        if (report.ambiguous)
            hw_cli_say(
                "%s: %lld %s drawn with two different translations (only the first was kept), such as: %s",
                cli->arguments[0], (long long)report.ambiguous,
                hw_plural(report.ambiguous, "sentence was", "sentences were"), report.ambiguity);
        if (cli->json)
            print_json(&report);
        else
            print_text(cli, &report);
        hw_grammar_report_clear(&report);
    }
    hw_grammar_free(grammar);
    return good ? HW_CLI_DONE : hw_cli_fail(&err);
}

const hw_cli_command hw_cli_generate = {
    .usage = "GRAMMAR",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON,
    .description =
        "Makes a parallel corpus from a synchronous grammar in YAML: train, valid and test, all sentences different, "
        "with "
        "word alignments (Pharaoh) and dependencies (CoNLL-U) of valid and test. It prints how often each phenomenon "
        "stands in it and how far the head of each relation is. data/toy/grammar.yaml is an example that explains "
        "itself.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
