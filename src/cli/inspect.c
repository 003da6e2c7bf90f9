/* headwise inspect: what happens inside a network, for a configuration or for a trained model and one pair of
 * sentences. */
#include "cli/inspect.h"

#include <string.h>
#include <sys/stat.h>

enum { ASSUMED_VOCABULARY = 1000 };
static const char *const EXAMPLE = "the cat sat on the mat";

typedef struct options {
    const char *source, *target;
} options;

static const hw_cli_option table[] = {
    {"source", 's', "TEXT", HW_CLI_TEXT, offsetof(options, source),
     .help = "a source sentence; a model translates it and shows every head's attention"},
    {"target", 't', "TEXT", HW_CLI_TEXT, offsetof(options, target),
     .help = "its translation, in place of the model's own"},
};

static const hw_cli_rule rules[] = {
    {"target", HW_CLI_NEEDS, "source", ", the sentence that it translates"},
    {0},
};

hw_text hw_inspect_word(const char *word) { return (hw_text){word, word ? strlen(word) : 0}; }

/* ---- the pair ---------------------------------------------------------------------------------------------------- */

/* A 0 byte in it must not hide what follows: it is shown as a blank. */
static const char *label(hw_arena *arena, const char *text, size_t bytes)
{
    char *copy = hw_arena_alloc(arena, bytes + 1);
    for (size_t i = 0; i < bytes; i++) copy[i] = text[i] ? text[i] : ' ';
    copy[bytes] = 0;
    return copy;
}

static const char **labels_of(hw_arena *arena, const hw_token *tokens, int64_t count, const char *before,
                              const char *after)
{
    const char **labels = hw_arena_alloc(arena, ((size_t)count + 2) * sizeof *labels);
    int64_t at = 0;
    if (before) labels[at++] = before;
    for (int64_t i = 0; i < count; i++) labels[at++] = label(arena, tokens[i].text, tokens[i].bytes);
    if (after) labels[at] = after;
    return labels;
}

/* The target's tokens as the network knows them, for a translation of its own. */
static hw_tokens tokens_of_ids(hw_cli *cli, const hw_vocabulary *v, const int32_t *ids, int64_t count)
{
    hw_tokens tokens = hw_tokens_new(cli->arena);
    for (int64_t i = 0; i < count; i++) {
        size_t bytes;
        const char *text = hw_vocabulary_token(v, ids[i], &bytes);
        hw_tokens_add(&tokens, text, bytes, ids[i]);
    }
    return tokens;
}

static hw_tokens translate(hw_cli *cli, const hw_bundle *bundle, hw_text source)
{
    hw_search_options search = hw_search_options_of(bundle->config);
    search.ids_only = true;
    hw_translator *t = hw_translator_new(bundle, &search);
    const hw_translation *best = hw_translate_lines(t, 1, &source.text, &source.bytes);
    hw_tokens tokens = hw_tokens_new(cli->arena);
    if (best->count && best->hypotheses)
        tokens = tokens_of_ids(cli, bundle->target_vocabulary, best->hypotheses->ids, best->hypotheses->length);
    hw_translator_free(t);
    return tokens;
}

/* Attention costs the square of a sentence's length. */
static bool check_length(const hw_bundle *bundle, const char *side, const hw_tokens *tokens, hw_error *err)
{
    int64_t count = tokens->count + tokens->unread, most = hw_longest_source(bundle->config);
    if (count <= most) return true;
    return hw_fail(err, "inspect: the %s has %lld tokens; at most %lld can be looked at", side, (long long)count,
                   (long long)most);
}

static bool read_side(hw_cli *cli, const hw_bundle *bundle, const char *name, const hw_side *side, hw_text line,
                      hw_tokens *tokens, hw_error *err)
{
    *tokens = hw_tokens_new(cli->arena);
    tokens->most = hw_longest_source(bundle->config);
    if (!hw_tokenizer_encode(side->tokenizer, side->vocabulary, line.text, line.bytes, tokens))
        return hw_tokenizer_failed(name, 1, err);
    return check_length(bundle, name, tokens, err);
}

/* Without a target a trained model translates; where nothing is trained, the target is as long as the source. */
static bool make_pair(hw_cli *cli, const hw_bundle *bundle, hw_text from_line, hw_text to_line, bool trained,
                      hw_inspected *out, hw_error *err)
{
    hw_inspected pair = {.bundle = bundle};
    hw_side source = hw_bundle_source(bundle), target = hw_bundle_target(bundle);
    hw_tokens from, to;
    hw_text text = from_line.text ? from_line : hw_inspect_word(EXAMPLE);
    if (!read_side(cli, bundle, "source", &source, text, &from, err)) return false;
    if (!to_line.text && trained && from_line.text) {
        to = translate(cli, bundle, text);
        if (!check_length(bundle, "target", &to, err)) return false;
    } else if (!read_side(cli, bundle, "target", &target, to_line.text ? to_line : text, &to, err)) {
        return false;
    }
    pair.source = hw_token_ids(&from, cli->arena);
    pair.target = hw_token_ids(&to, cli->arena);
    pair.source_labels = labels_of(cli->arena, from.items, from.count, NULL, "</s>");
    pair.fed_labels = labels_of(cli->arena, to.items, to.count, "<s>", NULL);
    pair.predicted_labels = labels_of(cli->arena, to.items, to.count, NULL, "</s>");
    *out = pair;
    return true;
}

bool hw_inspect_pair(hw_cli *cli, const hw_bundle *bundle, hw_text source, hw_text target, hw_inspected *pair,
                     hw_error *err)
{
    return make_pair(cli, bundle, source, target, true, pair, err);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static json_t *side_json(const char *const *labels, int64_t count, const hw_ids *ids, bool target)
{
    json_t *tokens = json_array(), *numbers = json_array();
    if (target) json_array_append_new(numbers, json_integer(HW_BEGIN));
    for (int64_t i = 0; i < ids->count; i++) json_array_append_new(numbers, json_integer(ids->ids[i]));
    json_array_append_new(numbers, json_integer(HW_END));
    for (int64_t i = 0; i < count; i++) json_array_append_new(tokens, hw_json_text(labels[i]));
    if (target) json_array_append_new(tokens, json_string("</s>"));
    return json_pack("{s:o, s:o}", "tokens", tokens, "ids", numbers);
}

static void print_pair_json(const hw_inspected *pair, const hw_examined *x)
{
    json_t *root = json_object();
    json_object_set_new(root, "source", side_json(pair->source_labels, pair->source.count + 1, &pair->source, false));
    json_object_set_new(root, "target", side_json(pair->fed_labels, pair->target.count + 1, &pair->target, true));
    json_object_set_new(root, "log_probs", hw_json_numbers(x->log_probs, x->rows));
    json_object_set_new(root, "attention", hw_json_attention(x, ""));
    hw_json_print(root, false);
}

static void print_pair(hw_cli *cli, const hw_inspected *pair)
{
    hw_runner *runner = hw_runner_new(pair->bundle->network);
    const hw_examined *x = hw_examine(runner, 1, &pair->source, &pair->target, cli->arena);
    if (cli->json)
        print_pair_json(pair, x);
    else
        hw_inspect_print_pair(cli, pair, x);
    hw_runner_free(runner);
}

static int inspect(hw_cli *cli, const options *o, const hw_bundle *bundle, bool trained)
{
    hw_error err;
    hw_inspected pair;
    if (!make_pair(cli, bundle, hw_inspect_word(o->source), hw_inspect_word(o->target), trained, &pair, &err))
        return hw_cli_fail(&err);
    if (trained && o->source)
        print_pair(cli, &pair);
    else if (cli->json)
        hw_json_print(hw_inspect_shapes_json(&pair), true);
    else
        hw_inspect_print_shapes(cli, &pair, cli->arguments[0]);
    return !trained || hw_bundle_is_finite(bundle, cli->arguments[0], &err) ? HW_CLI_DONE : hw_cli_fail(&err);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool check_text(const char *option, const char *text, hw_error *err)
{
    int64_t bad = text ? hw_utf8_invalid(text, strlen(text)) : -1;
    if (bad < 0) return true;
    return hw_fail(err, "inspect: --%s: byte %lld is not valid UTF-8", option, (long long)bad + 1);
}

/* A network that nobody trained, with the vocabularies of its corpus or, where there is none, of a size that is
 * assumed. */
static int inspect_config(hw_cli *cli, const options *o)
{
    hw_error err;
    hw_config *config = hw_cli_config(cli, cli->arguments[0]);
    if (!config) return HW_CLI_USAGE;
    hw_texts texts;
    if (!hw_texts_new(config, cli->arena, &texts, &err)) {
        hw_cli_note(cli, "%s; a vocabulary of %d tokens is assumed", err.message, ASSUMED_VOCABULARY);
        hw_counts *counts = hw_counts_new(cli->arena);
        for (int i = HW_SPECIALS; i < ASSUMED_VOCABULARY; i++) {
            const char *word = hw_arena_string(cli->arena, "w%d", i);
            hw_counts_add(counts, word, strlen(word), 1);
        }
        texts.source_vocabulary = hw_vocabulary_build(cli->arena, counts, &(hw_vocabulary_options){0});
        texts.target_vocabulary = texts.source_vocabulary;
        texts.source_tokenizer = hw_tokenizer_new(&(hw_tokenizer_options){.name = "word"}, &err);
        texts.target_tokenizer = hw_tokenizer_share(texts.source_tokenizer);
    }
    hw_bundle *bundle = hw_bundle_new(config, &texts, false, &err);
    if (!bundle) return hw_cli_refuse(&err);
    int status = inspect(cli, o, bundle, false);
    hw_bundle_free(bundle);
    return status;
}

static int inspect_model(hw_cli *cli, const options *o)
{
    hw_error err;
    if (cli->set.count) {
        hw_fail(&err, "inspect: --set goes with a configuration; %s is a model, which is as it was trained",
                cli->arguments[0]);
        return hw_cli_refuse(&err);
    }
    hw_bundle *bundle = hw_bundle_load(cli->arguments[0], &err);
    if (!bundle) return hw_cli_fail(&err);
    int status = inspect(cli, o, bundle, true);
    hw_bundle_free(bundle);
    return status;
}

static int run(hw_cli *cli)
{
    options o = {0};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_error err;
    if (!check_text("source", o.source, &err) || !check_text("target", o.target, &err)) return hw_cli_refuse(&err);
    struct stat status;
    bool directory = !stat(cli->arguments[0], &status) && S_ISDIR(status.st_mode);
    return directory ? inspect_model(cli, &o) : inspect_config(cli, &o);
}

const hw_cli_command hw_cli_inspect = {
    .usage = "MODEL|CONFIG",
    .least = 1,
    .most = 1,
    .takes = HW_CLI_JSON | HW_CLI_SET,
    .description = "Shows a network from inside. For a configuration, which needs not be trained, or a model: the "
                   "shapes of everything between "
                   "token ids and logits for a sentence, the causal mask, and how many parameters each part has.\n"
                   "For a model with --source: its translation, or --target, with log-probabilities a token, and the "
                   "attention of every head, "
                   "drawn with the words at its sides. With --json: source and target (tokens, ids), log_probs, and "
                   "attention, an object of "
                   "arrays [head][query][key] under the names of the attentions.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
