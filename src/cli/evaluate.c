/* headwise evaluate: translates a test set and says how good that is. */
#include "cli/evaluate.h"

#include <math.h>

#include "cli/lines.h"
#include "cli/model_json.h"

typedef struct options {
    const char *data, *output;
    hw_cli_list ensemble;
} options;

static const hw_cli_option table[] = {
    {"data", 'd', "PREFIX", HW_CLI_TEXT, offsetof(options, data),
     .help = "another test set: a prefix in data.dir, or a path such as data/toy/valid (data.test)"},
    {"output", 'o', "FILE", HW_CLI_TEXT, offsetof(options, output),
     .help = "where the translations are written, a line each"},
    HW_ENSEMBLE_OPTION(offsetof(options, ensemble)),
};

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static const char *names(hw_cli *cli, const options *o)
{
    const char *text = cli->arguments[0];
    for (int i = 0; i < o->ensemble.count; i++)
        text = hw_arena_string(cli->arena, "%s with %s", text, o->ensemble.items[i]);
    return text;
}

static void print_text(hw_cli *cli, const char *model, const hw_config *config, const hw_test_set *set,
                       const hw_evaluation *e)
{
    hw_cli_table *t = hw_cli_table_new(cli->arena, "lrl");
    char count[32];
    bool sampling = config->decoding.sampling;
    printf("%s on %s/%s, %s %s, %s %lld\n", model, set->directory, set->prefix, hw_thousands(e->sentences, count),
           hw_plural(e->sentences, "sentence", "sentences"), sampling ? "sampled with seed" : "beam",
           (long long)(sampling ? config->decoding.seed : config->decoding.beam));
    hw_cli_cell(t, "exact match"), hw_cli_cell(t, "%.2f %%", 100 * e->exact_match), hw_cli_cell(t, "%s", "");
    for (int g = 0; g < e->groups; g++) {
        const hw_evaluated_group *x = &e->group[g];
        hw_cli_cell(t, "  %s", x->name);
        hw_cli_cell(t, "%.2f %%", x->sentences ? 100 * (double)x->matches / (double)x->sentences : 0);
        hw_cli_cell(t, "of %s %s", hw_thousands(x->sentences, count), hw_plural(x->sentences, "sentence", "sentences"));
    }
    hw_cli_cell(t, "%s", e->bleu_name), hw_cli_cell(t, "%.2f", e->bleu), hw_cli_cell(t, "%s", e->signature);
    hw_cli_cell(t, "%s", e->chrf_name), hw_cli_cell(t, "%.2f", e->chrf), hw_cli_cell(t, "%s", e->chrf_signature);
    if (!e->together)
        hw_cli_cell(t, "token accuracy"), hw_cli_cell(t, "%.2f %%", 100 * e->token_accuracy),
            hw_cli_cell(t, "reference fed");
    hw_cli_cell(t, "perplexity"), hw_cli_cell(t, "%.4f", isnan(e->perplexity) ? NAN : e->perplexity),
        hw_cli_cell(t, "a target token, </s> included");
    if (e->alignment.is_there) {
        hw_cli_cell(t, "AER"), hw_cli_cell(t, "%.4f", e->alignment.aer);
        hw_cli_cell(t, "best cross head, %s, where a word is %s", e->alignment.head, e->alignment.step);
    }
    if (e->unknown) {
        hw_cli_cell(t, "unknown"), hw_cli_cell(t, "%.2f %%", 100 * (double)e->unknown / (double)e->source_tokens);
        hw_cli_cell(t, "of %s source %s", hw_thousands(e->source_tokens, count),
                    hw_plural(e->source_tokens, "token", "tokens"));
    }
    hw_cli_table_print(t, stdout);
}

static json_t *groups_json(const hw_evaluation *e)
{
    json_t *all = json_object();
    for (int g = 0; g < e->groups; g++) {
        const hw_evaluated_group *x = &e->group[g];
        double share = x->sentences ? (double)x->matches / (double)x->sentences : 0;
        json_object_set_new(all, x->name,
                            json_pack("{s:f, s:I}", "exact_match", share, "sentences", (json_int_t)x->sentences));
    }
    return all;
}

static void print_json(const hw_evaluation *e)
{
    json_t *root = json_object();
    json_object_set_new(root, "exact_match", hw_json_number(e->exact_match));
    if (!e->together) json_object_set_new(root, "token_accuracy", hw_json_number(e->token_accuracy));
    json_object_set_new(root, "bleu", hw_json_number(e->bleu));
    json_object_set_new(root, "chrf", hw_json_number(e->chrf));
    json_object_set_new(root, "signature", json_string(e->signature));
    json_object_set_new(root, "chrf_signature", json_string(e->chrf_signature));
    json_object_set_new(root, "perplexity", hw_json_number(e->perplexity));
    json_object_set_new(root, "sentences", json_integer(e->sentences));
    json_object_set_new(root, "source_tokens", json_integer(e->source_tokens));
    json_object_set_new(root, "unknown_tokens", json_integer(e->unknown));
    json_object_set_new(root, "unread_tokens", json_integer(e->unread_tokens));
    json_object_set_new(root, "long_pairs", json_integer(e->too_long.pairs));
    if (e->groups) json_object_set_new(root, "groups", groups_json(e));
    if (e->alignment.is_there) {
        json_object_set_new(root, "aer", hw_json_number(e->alignment.aer));
        json_object_set_new(root, "aer_head", json_string(e->alignment.head));
        json_object_set_new(root, "aer_step", json_string(e->alignment.step));
    }
    hw_json_print(root, true);
}

static bool write_output(hw_atomic *file, const hw_evaluation *e, hw_error *err)
{
    fflush(stdout); /* the figures come first where both go there */
    for (int64_t i = 0; i < e->sentences; i++) fprintf(file->stream, "%s\n", e->translations[i]);
    return hw_atomic_commit(file, err);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* The file is opened first, so that nothing is translated for one that cannot be written. */
static int evaluate(hw_cli *cli, const options *o, const hw_config *config, const hw_cli_ensemble *models)
{
    hw_error err;
    hw_test_set set;
    hw_evaluation e;
    hw_atomic file;
    if (o->output && !hw_output_begin(&file, o->output, &err)) return hw_cli_fail(&err);
    if (!hw_test_set_load(cli, models->bundles[0], config, o->data, &set, &err) ||
        !hw_evaluate(cli, models, config, &set, &e, &err)) {
        if (o->output) hw_atomic_abandon(&file);
        return hw_cli_fail(&err);
    }
    if (cli->json)
        print_json(&e);
    else
        print_text(cli, names(cli, o), config, &set, &e);
    if (o->output && !write_output(&file, &e, &err)) return hw_cli_fail(&err);
    if (e.unread_lines)
        hw_cli_say("of %lld %s %lld %s more tokens than decoding.longest_source lets be read; %lld %s left out",
                   (long long)e.sentences, hw_plural(e.sentences, "line", "lines"), (long long)e.unread_lines,
                   hw_plural(e.unread_lines, "has", "have"), (long long)e.unread_tokens,
                   hw_plural(e.unread_tokens, "token was", "tokens were"));
    if (e.too_long.pairs)
        hw_cli_say("%s; of %lld %s %lld %s left out of %s for that",
                   hw_too_long_describe(&e.too_long, (e.too_long.side ? set.target : set.source)->path, cli->arena),
                   (long long)e.sentences, hw_plural(e.sentences, "pair", "pairs"), (long long)e.too_long.pairs,
                   hw_plural(e.too_long.pairs, "is", "are"),
                   e.together ? "perplexity" : "perplexity, token accuracy and AER");
    const hw_cli_loss losses[] = {{e.failed, HW_CLI_NOT_FINITE}, {e.broken, HW_CLI_BROKEN}, {0}};
    static const hw_cli_loss_words words = {{"line", "lines"}, {"could not be translated and counts as empty",
                                                                "could not be translated and count as empty"}};
    return hw_cli_say_losses(e.sentences, &words, losses) ? HW_CLI_FAILED : HW_CLI_DONE;
}

/* Alignment reads the weights themselves (norms of what heads give); all else only runs forward. */
static bool only_forward(hw_cli *cli, const options *o, const hw_config *config)
{
    const char *directory, *prefix;
    char path[HW_PATH];
    hw_test_set_place(cli, config, o->data, &directory, &prefix);
    return o->ensemble.count || !hw_corpus_path(path, directory, prefix, "align", NULL);
}

static int run(hw_cli *cli)
{
    options o = {0};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_config *config = hw_cli_model_config(cli, cli->arguments[0]);
    if (!config) return cli->status;
    hw_error err;
    hw_cli_ensemble models = {0};
    int status = hw_cli_ensemble_load(&models, cli->arguments[0], &o.ensemble, only_forward(cli, &o, config), &err)
                     ? evaluate(cli, &o, config, &models)
                     : hw_cli_fail(&err);
    hw_cli_ensemble_free(&models);
    return status;
}

const hw_cli_command hw_cli_evaluate = {
    .usage = "MODEL",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET | HW_CLI_DECODING,
    .description =
        "Translates the test set of the model's configuration and prints how good that is: exact match of whole lines, "
        "BLEU and "
        "chrF with their signatures, token accuracy and perplexity with the reference fed. Where PREFIX.groups stands "
        "beside the "
        "test set, exact match is given for each group; where PREFIX.align does, the alignment error rate of the best "
        "cross-attention head. With --ensemble the perplexity is that of the mean log-probabilities; token accuracy "
        "and "
        "alignment, which are of one network, are left out.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
