/* headwise translate: N lines in, N lines out, in order, whatever the lines hold.
 *
 * Windows of lines are read (translate_input.c), translated together, and printed. No result depends on where windows
 * end. A line that cannot be translated gives an empty line. */
#include <string.h>
#include <unistd.h>

#include "cli/ensemble.h"
#include "cli/model_json.h"
#include "cli/test_set.h"
#include "cli/translate.h"

enum {
    WINDOW_BATCHES = 16, /* batches a thread in a window at most */
    EXAMINED = 64,       /* lines at most whose attention is kept at once */
};

typedef struct options {
    bool scores;
    const char *prefix_file;
    hw_cli_list ensemble;
} options;

#define AT(field) offsetof(options, field)
static const hw_cli_option table[] = {
    {"scores", 0, NULL, HW_CLI_FLAG, AT(scores), .help = "the score and a tab before each translation"},
    {"prefix-file", 0, "FILE", HW_CLI_TEXT, AT(prefix_file),
     .help = "what each translation begins with, a line for each line in; an empty line leaves it open"},
    HW_ENSEMBLE_OPTION(AT(ensemble)),
};

static const hw_cli_rule rules[] = {
    {"scores", HW_CLI_EXCLUDES, "json", ", which has them"},
    {0},
};

/* One call of the command. */
typedef struct job {
    hw_cli *cli;
    const options *options;
    hw_search_options search;
    hw_cli_ensemble models;
    hw_translator *translator;
    hw_translate_input input;
    int64_t done, failed, broken;
    int64_t trained, longer, longest, longest_line; /* lines of more tokens than any of training; trained 0: unknown */
    bool warned_long;
    hw_cli_progress progress;
    double begun;
} job;

/* ---- what is said ------------------------------------------------------------------------------------------------ */

/* A line that is not read to its end is said at once, the first time; lines longer than any of training are counted. */
static void look_at(job *j, int64_t number, const hw_translation *t)
{
    int64_t tokens = t->source.count + t->unread;
    j->failed += !t->count && !t->broken;
    j->broken += t->broken;
    if (j->trained && tokens > j->trained) {
        j->longer++;
        if (tokens > j->longest) {
            j->longest = tokens;
            j->longest_line = number;
        }
    }
    if (!t->unread || j->warned_long) return;
    j->warned_long = true;
    hw_cli_say("%s:%lld: %lld tokens are too many; the first %lld %s translated, and so of all such lines",
               j->input.text.path, (long long)number, (long long)tokens, (long long)t->source.count,
               hw_plural(t->source.count, "is", "are"));
}

static void say_longer(const job *j)
{
    if (j->longer)
        hw_cli_say("of %lld %s %lld %s more tokens than any source in training, %lld, and may come out badly; the "
                   "longest is line %lld with %lld",
                   (long long)j->done, hw_plural(j->done, "line", "lines"), (long long)j->longer,
                   hw_plural(j->longer, "has", "have"), (long long)j->trained, (long long)j->longest_line,
                   (long long)j->longest);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void print_text(const job *j, const hw_translation *t)
{
    bool columns = j->options->scores || j->search.n_best > 1;
    for (int64_t k = 0; k < t->count; k++) {
        if (k) putchar('\t');
        if (j->options->scores && t->hypotheses) printf("%.6f\t", t->hypotheses[k].score);
        if (columns)
            hw_cli_print_column(t->texts[k], strlen(t->texts[k]));
        else
            fputs(t->texts[k], stdout);
    }
    putchar('\n');
}

static json_t *hypothesis_json(const job *j, const hw_translation *t, int64_t k)
{
    json_t *one = json_pack("{s:o}", "text", hw_json_text(t->texts[k]));
    if (!t->hypotheses) return one;
    const hw_hypothesis *h = &t->hypotheses[k];
    json_object_set_new(one, "tokens", hw_json_target_tokens(j->models.bundles[0]->target_vocabulary, h->ids, h->length));
    json_object_set_new(one, "score", hw_json_number(h->score));
    json_object_set_new(one, "log_prob", hw_json_number(h->log_prob));
    json_object_set_new(one, "log_probs", hw_json_numbers(h->log_probs, h->length + 1));
    return one;
}

static void print_json(const job *j, int64_t i, const hw_translation *t, const hw_examined *x)
{
    json_t *root = json_object(), *list = json_array();
    json_object_set_new(root, "line", json_integer(j->done + i + 1));
    json_object_set_new(root, "source", hw_json_text_of(j->input.lines[i].text, j->input.lines[i].bytes));
    if (t->source.count)
        json_object_set_new(root, "source_tokens", hw_json_source_tokens(t->source_tokens, t->source.count));
    for (int64_t k = 0; k < t->count; k++) json_array_append_new(list, hypothesis_json(j, t, k));
    json_object_set_new(root, "translations", list);
    if (x) json_object_set_new(root, "attention", hw_json_attention(x, "cross"));
    hw_json_print(root, false);
}

static bool has_attention(const hw_translation *t) { return t->hypotheses && t->count; }

/* The attention of each line's best translation (by the first network of an ensemble) goes along; a few lines' at a
 * time, since it is large. Returns the line behind them. */
static int64_t print_lines_json(job *j, const hw_translation *all, int64_t first)
{
    hw_runner *runner = hw_translator_runner(j->translator);
    hw_arena *arena = j->input.arena;
    hw_arena_mark mark = hw_arena_begin(arena);
    hw_ids sources[EXAMINED], targets[EXAMINED];
    int64_t count = 0, i = first;
    for (; i < j->input.count && count < EXAMINED; i++) {
        if (!has_attention(&all[i])) continue;
        sources[count] = all[i].source;
        targets[count++] = (hw_ids){all[i].hypotheses[0].ids, all[i].hypotheses[0].length};
    }
    count = hw_examine_count(runner, count, sources, targets, HW_EXAMINED_NUMBERS);
    const hw_examined *x = hw_examine(runner, count, sources, targets, arena), *end = x + count;
    for (i = first; i < j->input.count && (x < end || !has_attention(&all[i])); i++)
        print_json(j, i, &all[i], has_attention(&all[i]) ? x++ : NULL);
    hw_arena_end(arena, mark);
    return i;
}

static void print_window(job *j, const hw_translation *all)
{
    for (int64_t i = 0; i < j->input.count && !ferror(stdout);) {
        if (j->cli->json)
            i = print_lines_json(j, all, i);
        else
            print_text(j, &all[i++]);
    }
}

static void show_progress(job *j, bool last)
{
    if (j->input.prompt || isatty(STDOUT_FILENO)) return;
    double seconds = hw_seconds() - j->begun;
    if (last && seconds < 2) return;
    const char *speed = hw_arena_string(j->input.arena, "%.0f lines/s", (double)j->done / seconds);
    hw_progress p = {.what = "translate", .done = j->done, .seconds = seconds, .detail = speed, .last = last};
    hw_cli_progress_show(&p, &j->progress);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool translate_all(job *j, hw_error *err)
{
    hw_translate_input *in = &j->input;
    for (int more = 1; more > 0 && !ferror(stdout);) {
        more = hw_translate_read(in, err);
        const hw_translation *all = hw_translate_from(j->translator, in->count, in->lines, in->prefixes);
        for (int64_t i = 0; i < in->count; i++) look_at(j, j->done + i + 1, &all[i]);
        print_window(j, all);
        j->done += in->count;
        if (more < 0) return false;
        if (hw_reader_waiting(in->text.reader) && !hw_cli_flush()) break;
        show_progress(j, !more);
    }
    return ferror(stdout) || hw_translate_even(in, j->done, err);
}

static bool open_all(job *j, hw_error *err)
{
    hw_translate_input *in = &j->input;
    if (!hw_cli_ensemble_load(&j->models, j->cli->arguments[0], &j->options->ensemble, true, err)) return false;
    j->trained = hw_bundle_longest_source(j->cli->arguments[0]);
    j->translator = hw_translator_of(j->models.count, (const hw_bundle *const *)j->models.bundles, &j->search);
    in->window = j->search.batch_sentences * hw_threads() * WINDOW_BATCHES;
    if (in->window > HW_CLI_WINDOW_BYTES / 64) in->window = HW_CLI_WINDOW_BYTES / 64;
    const char *path = j->cli->argument_count > 1 ? j->cli->arguments[1] : "-";
    return hw_translate_open(in, j->cli, path, j->options->prefix_file, j->translator, err);
}

static int translate(job *j)
{
    hw_error err;
    if (!open_all(j, &err)) return hw_cli_fail(&err);
    j->progress = hw_cli_progress_new(j->cli);
    j->begun = hw_seconds();
    int status = translate_all(j, &err) ? HW_CLI_DONE : hw_cli_fail(&err);
    say_longer(j);
    const hw_cli_loss losses[] = {{j->failed, HW_CLI_NOT_FINITE}, {j->broken, HW_CLI_BROKEN}, {0}};
    static const hw_cli_loss_words words = {
        {"line", "lines"}, {"could not be translated and is empty", "could not be translated and are empty"}};
    return hw_cli_say_losses(j->done, &words, losses) ? HW_CLI_FAILED : status;
}

static int run(hw_cli *cli)
{
    options o = {0};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    const hw_config *config = hw_cli_model_config(cli, cli->arguments[0]);
    if (!config) return cli->status;
    job j = {.cli = cli, .options = &o, .search = hw_search_options_of(config)};
    j.search.ids_only = !cli->json && !o.scores;
    int status = translate(&j);
    hw_translate_close(&j.input);
    hw_translator_free(j.translator);
    hw_cli_ensemble_free(&j.models);
    return status;
}

const hw_cli_command hw_cli_translate = {
    .usage = "MODEL [FILE]",
    .least = 1,
    .most = 2,
    .takes = HW_CLI_JSON | HW_CLI_DECODING,
    .description = "Translates FILE, or standard input, to standard output: one line out for each line in, always, in "
                   "order. MODEL is a "
                   "model directory. FILE may be compressed by gzip. An empty line gives an empty line.\n"
                   "Options of the search go over those of the model's configuration, decoding.*; those of the "
                   "configuration that do not go with them follow: --n-best widens the beam, --sampling, or an option "
                   "that only sampling has, sets it to 1. Lines have a number each, from 1, and --seed and this "
                   "number fix the samples of a line.\n"
                   "With --json each line out is an object: source, source_tokens, translations (text, tokens, score, "
                   "log_prob, log_probs), "
                   "and the attention of every cross-attention head for the best translation.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
