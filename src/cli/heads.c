/* headwise heads: the study of attention heads. What its verbs have in common: the model and its data are found, a kept
 * result is looked for, else computed and kept, and it is printed. */
#include <math.h>
#include <string.h>

#include "cli/heads.h"

/* The verbs: a file src/cli/heads_NAME.c and a line each. */
#define VERBS(VERB)                                                                                                    \
    VERB(stats, hw_cli_heads_stats, "where every head looks: entropy, confidence, distance, offsets, mass")            \
    VERB(roles, hw_cli_heads_roles, "what every head does, with baselines, intervals and p")                           \
    VERB(align, hw_cli_heads_align, "how well cross-attention aligns words")                                           \
    VERB(ablate, hw_cli_heads_ablate, "what the network loses without each head")                                      \
    VERB(importance, hw_cli_heads_importance, "how much the loss would change with each head's gate")                  \
    VERB(diversity, hw_cli_heads_diversity, "how different the heads of each layer are, and a map of them")            \
    VERB(prune, hw_cli_heads_prune, "how many heads can go, and a model without them")                                 \
    VERB(probe, hw_cli_heads_probe, "what can be read off every head, layer and the embeddings")                       \
    VERB(trace, hw_cli_heads_trace, "when each role arose in training")                                                \
    VERB(compare, hw_cli_heads_compare, "several models: figures with intervals, and their heads matched")              \
    VERB(show, hw_cli_heads_show, "one head's attention in one pair, drawn")                                           \
    VERB(report, hw_cli_heads_report, "all of it as one HTML page")

#define VERB(name, command, summary) extern const hw_cli_command command;
VERBS(VERB)
#undef VERB

static const hw_cli_entry verbs[] = {
#define VERB(name, command, summary) {#name, &command, summary},
    VERBS(VERB)
#undef VERB
        {NULL, NULL, NULL},
};

/* ---- a verb ------------------------------------------------------------------------------------------------------ */

#define FORM " 6" /* of the results: where it changes, those kept from before are not read */

/* Of what every result of the verb depends on, whatever its options: model and data. */
static uint64_t print_of(const hw_heads *h, const hw_heads_verb *verb)
{
    uint64_t print =
        hw_fingerprint_text(hw_fingerprint_text(0, "headwise " HW_VERSION " " HW_REAL_NAME FORM), verb->name);
    print = hw_fingerprint_model(print, h->model);
    return hw_fingerprint_set(print, h->bundle, h->directory, h->prefix);
}

/* And of its options. */
static uint64_t print_with_options(const hw_heads *h, const hw_heads_verb *verb, uint64_t print)
{
    char text[64];
    snprintf(text, sizeof text, "seed %lld", verb->draws_nothing ? 0 : (long long)h->options->seed);
    print = hw_fingerprint_text(print, text);
    return verb->depends ? verb->depends(h, print) : print;
}

/* "roles-test" or, of a part, "ablate.zero_loss-test": a file's name. */
static const char *name_of(const hw_heads *h, const hw_heads_verb *verb, const char *part)
{
    char *name = hw_arena_string(h->cli->arena, "%s%s%s-%s", verb->name, part ? "." : "", part ? part : "",
                                 h->options->data ? h->options->data : h->prefix);
    for (char *c = name; *c; c++)
        if (*c == '/' || *c == ' ') *c = '_';
    return name;
}

static const char *const PART = "part";

/* Where a result goes: a part beside the whole, where one is kept that still holds. */
static const char *place_of(const hw_heads *h, const hw_heads_verb *verb, const char *part, uint64_t basis)
{
    const char *name = name_of(h, verb, NULL);
    json_t *kept = part ? hw_study_recall_any(h->model, name, basis) : NULL;
    if (kept && !json_object_get(kept, PART)) name = name_of(h, verb, part);
    json_decref(kept);
    return name;
}

/* What a result tells of how it came about. */
static void complete(json_t *result, const hw_heads *h, const char *part, uint64_t basis)
{
    const char *data = hw_arena_string(h->cli->arena, "%s/%s", h->directory, h->prefix);
    json_object_set_new(result, "data", hw_json_text(data));
    json_object_set_new(result, "seed", json_integer(h->options->seed));
    if (part) json_object_set_new(result, PART, json_string(part));
    hw_study_set_basis(result, basis);
}

json_t *hw_heads_result(hw_heads *h, const hw_heads_verb *verb, hw_error *err)
{
    uint64_t base = print_of(h, verb), print = print_with_options(h, verb, base),
             basis = hw_heads_depends_on_selection(h, base);
    const char *part = verb->part ? verb->part(h) : NULL;
    json_t *result = hw_study_recall(h->model, name_of(h, verb, NULL), print);
    if (!result && part) result = hw_study_recall(h->model, name_of(h, verb, part), print);
    if (result) {
        json_object_set_new(result, "seed", json_integer(h->options->seed));
        return result;
    }
    result = verb->compute(h, err);
    hw_cli_progress_clear();
    if (!result) return NULL;
    complete(result, h, part, basis);
    hw_heads_add_caveats(h, verb, result);
    hw_error why;
    if (!hw_study_keep(h->model, place_of(h, verb, part, basis), print, result, verb->list, verb->columns, &why))
        hw_cli_note(h->cli, "the result is not kept for the next time: %s", why.message);
    return result;
}

json_t *hw_heads_kept_result(const hw_heads *h, const hw_heads_verb *verb)
{
    return hw_study_recall_any(h->model, name_of(h, verb, NULL), hw_heads_depends_on_selection(h, print_of(h, verb)));
}

json_t *hw_heads_default_result(hw_heads *h, const hw_heads_verb *verb, hw_error *err)
{
    hw_heads as = *h;
    hw_heads_options *o = (hw_heads_options *)h->options;
    if (verb->defaults) {
        o = hw_arena_copy(h->cli->arena, verb->defaults, verb->defaults_size);
        o->data = h->options->data;
        o->seed = h->options->seed;
    }
    as.options = o;
    return hw_heads_result(&as, verb, err);
}

static int run_verb(hw_heads *h, const void *argument)
{
    const hw_heads_verb *verb = argument;
    hw_error err;
    json_t *result = hw_heads_result(h, verb, &err);
    if (!result) return hw_cli_fail(&err);
    if (h->cli->json)
        json_dumpf(result, stdout, JSON_INDENT(2)), putchar('\n');
    else if (h->options->tsv)
        hw_study_tsv(stdout, result, verb->list, verb->columns);
    else
        verb->print(h, result);
    hw_heads_print_caveats(h, result);
    bool ok = !verb->after || verb->after(h, result, &err);
    json_decref(result);
    return ok ? HW_CLI_DONE : hw_cli_fail(&err);
}

int hw_heads_run(hw_cli *cli, const hw_heads_options *options, const hw_heads_verb *verb)
{
    return hw_heads_with(cli, options, run_verb, verb);
}

bool hw_heads_open(hw_cli *cli, const char *model, const hw_heads_options *options, hw_heads *h)
{
    hw_config *config = hw_cli_model_config(cli, model);
    if (!config) return false;
    hw_error err;
    hw_bundle *bundle = hw_bundle_load(model, &err);
    if (!bundle || !hw_bundle_is_finite(bundle, model, &err)) {
        hw_bundle_free(bundle);
        cli->status = hw_cli_fail(&err);
        return false;
    }
    *h = (hw_heads){.cli = cli,
                    .model = model,
                    .bundle = bundle,
                    .config = config,
                    .options = options,
                    .progress = hw_cli_progress_new(cli)};
    hw_test_set_place(cli, config, options->data, &h->directory, &h->prefix);
    if (*h->directory) return true;
    hw_cli_say("the model's configuration has no data.dir, so there is nothing to study; --data PREFIX names a set");
    hw_bundle_free(bundle);
    cli->status = HW_CLI_FAILED;
    return false;
}

int hw_heads_with(hw_cli *cli, const hw_heads_options *options, int (*work)(hw_heads *h, const void *argument),
                  const void *argument)
{
    hw_heads h;
    if (!hw_heads_open(cli, cli->arguments[0], options, &h)) return cli->status;
    int status = work(&h, argument);
    hw_bundle_free(h.bundle);
    return status;
}

int hw_heads_failed(const hw_cli *cli, const hw_error *err)
{
    HW_CHECK(*err->message || cli->status, "heads: something failed without a message");
    return *err->message ? hw_cli_fail(err) : cli->status;
}

/* ---- the selection set ------------------------------------------------------------------------------------------- */

static bool has_selection(const hw_heads *h)
{
    char path[HW_PATH];
    return hw_corpus_path(path, h->config->data.dir, h->config->data.valid, h->config->data.source, NULL);
}

bool hw_heads_selection(hw_heads *h, const hw_study_set *test, hw_study_set *set, hw_error *err)
{
    h->chosen = true;
    h->scored = h->shared = test->count;
    if (has_selection(h)) {
        if (!hw_study_set_load(h->cli->arena, h->bundle, h->config->data.dir, h->config->data.valid, set, err))
            return false;
        h->shared = hw_study_shared(test, set);
        if (h->shared == test->count && hw_study_shared(set, test) == set->count)
            *set = *test;
        else
            h->left_out = set->too_long;
        return true;
    }
    hw_cli_note(h->cli, "there is no %s/%s.%s: what is chosen on it is chosen on the test set itself",
                h->config->data.dir, h->config->data.valid, h->config->data.source);
    *set = *test;
    return true;
}

bool hw_heads_sets(hw_heads *h, hw_study_set *test, hw_study_set *selection, hw_error *err)
{
    return hw_study_set_load(h->cli->arena, h->bundle, h->directory, h->prefix, test, err) &&
           hw_heads_selection(h, test, selection, err);
}

uint64_t hw_heads_depends_on_selection(const hw_heads *h, uint64_t print)
{
    return hw_fingerprint_set(print, h->bundle, h->config->data.dir, h->config->data.valid);
}

uint64_t hw_heads_depends_on_search(const hw_heads *h, uint64_t print)
{
    static const char section[] = "decoding.";
    const char *key;
    for (int i = 0; (key = hw_config_key(i)); i++)
        if (!strncmp(key, section, sizeof section - 1))
            print = hw_fingerprint_text(print, hw_config_value(h->config, key, h->cli->arena));
    return print;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

const hw_cli_command hw_cli_heads = {
    .usage = "VERB MODEL ...",
    .description = "The study of attention heads, over a whole data set: what every head of encoder, decoder and "
                   "cross-attention does, and "
                   "whether that is more than chance. Results are kept in heads/ in the model directory and computed "
                   "anew only when model or "
                   "data changed. Attention tells where a head looks, not whether the model needs it. Heads, offsets "
                   "and what to prune are chosen on the validation set and scored on the test set or that of --data; "
                   "where the two share at least half of the sentences scored, under whatever names, a note and "
                   "chosen_on_scored in the JSON say that figures are too good.",
    .verbs = verbs,
};
