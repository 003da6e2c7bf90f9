/* headwise translate: N lines in, N lines out, in order, whatever the lines hold.
 *
 * Lines are read until a window is full or the input pauses, translated together, and printed; so a million lines take
 * the memory of a window, and whoever types one gets its translation at once. No result depends on where windows end.
 * Bytes that are not UTF-8 are read as U+FFFD with one warning; a line that cannot be translated gives an empty line.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/model_json.h"

enum {
    WINDOW_BYTES = 1 << 22, /* text of a window at most */
    WINDOW_BATCHES = 16,    /* batches a thread in it at most */
    EXAMINED = 64,          /* lines whose attention is kept at once */
};

typedef struct options {
    int64_t beam, n_best, max_length, batch; /* -1: as the model's configuration has it */
    double length_penalty;                   /* NAN: likewise */
    bool scores;
} options;

#define AT(field) offsetof(options, field)
static const hw_cli_option table[] = {
    {"beam", 'b', "K", HW_CLI_INTEGER, AT(beam), .low = 1, .high = 1024,
     .help = "hypotheses kept at each step, 1 is greedy (decoding.beam)"},
    {"n-best", 'n', "N", HW_CLI_INTEGER, AT(n_best), .low = 1, .high = 1024,
     .help = "translations of each line, the best first, on one line with tabs between (decoding.n_best)"},
    {"length-penalty", 0, "ALPHA", HW_CLI_NUMBER, AT(length_penalty), .low = 0, .high = 10,
     .help = "hypotheses are compared by log-probability over ((5 + tokens) / 6) ^ ALPHA (decoding.length_penalty)"},
    {"max-length", 0, "N", HW_CLI_INTEGER, AT(max_length), .low = 0, .high = 1e6,
     .help = "tokens of a translation at most; 0: twice the source's and 20 more (decoding.max_length)"},
    {"batch", 0, "N", HW_CLI_INTEGER, AT(batch), .low = 1, .high = 1e6,
     .help = "sentences translated together; no result depends on it (decoding.batch_sentences)"},
    {"scores", 0, NULL, HW_CLI_FLAG, AT(scores), .help = "the score and a tab before each translation"},
};

/* One call of the command. */
typedef struct job {
    hw_cli *cli;
    bool scores, prompt;
    const hw_bundle *bundle;
    hw_translator *translator;
    const char *path; /* as messages call it */
    hw_reader *reader;
    hw_arena *arena; /* of one window */
    int64_t window;  /* lines at most */
    const char **lines;
    size_t *bytes;
    int64_t count, done, failed;
    bool warned, warned_long;
    hw_cli_progress progress;
    double begun;
} job;

/* ---- options ----------------------------------------------------------------------------------------------------- */

static hw_search_options search_options(const options *o, const hw_config *config)
{
    hw_search_options s = hw_search_options_of(config);
    if (o->beam >= 0) s.beam = o->beam;
    if (o->n_best >= 0) s.n_best = o->n_best;
    if (o->max_length >= 0) s.max_length = o->max_length;
    if (o->batch >= 0) s.batch_sentences = o->batch;
    if (!isnan(o->length_penalty)) s.length_penalty = o->length_penalty;
    /* Only one of the two was given: the other follows. */
    if (o->beam < 0 && s.beam < s.n_best) s.beam = s.n_best;
    if (o->n_best < 0 && s.n_best > s.beam) s.n_best = s.beam;
    return s;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The line with U+FFFD for every byte that is not UTF-8. */
static const char *mend(job *j, const char *line, size_t *bytes, int64_t bad)
{
    if (!j->warned)
        hw_cli_say(
            "%s:%lld: byte %lld is 0x%02X, which is not valid UTF-8; it is read as U+FFFD, and so are all like it",
            j->path, (long long)hw_reader_number(j->reader), (long long)bad + 1, (unsigned)(unsigned char)line[bad]);
    j->warned = true;
    char *out = hw_arena_alloc(j->arena, 3 * *bytes + 1), *to = out;
    for (size_t at = 0; at < *bytes;) {
        int size;
        int32_t code = hw_utf8_decode(line + at, *bytes - at, &size);
        to += hw_utf8_encode(code < 0 ? 0xFFFD : code, to);
        at += (size_t)size;
    }
    *to = 0;
    *bytes = (size_t)(to - out);
    return out;
}

/* Reads a window. 1: go on afterwards, 0: that was the end, -1: an error after the lines that were read. */
static int read_window(job *j, hw_error *err)
{
    hw_arena_reset(j->arena);
    j->count = 0;
    for (size_t total = 0; j->count < j->window && total < WINDOW_BYTES; total += j->bytes[j->count++]) {
        if (hw_reader_waiting(j->reader)) {
            if (j->count) return 1;
            if (j->prompt) fputs("> ", stderr);
        }
        char *line;
        size_t *bytes = &j->bytes[j->count];
        int got = hw_reader_line(j->reader, &line, bytes, err);
        if (got <= 0) return got;
        int64_t bad = hw_utf8_invalid(line, *bytes);
        j->lines[j->count] = bad < 0 ? hw_arena_copy(j->arena, line, *bytes + 1) : mend(j, line, bytes, bad);
    }
    return 1;
}

/* A line that is too long is said, once. */
static void tell_unread(job *j, int64_t line, const hw_translation *t)
{
    if (!t->unread || j->warned_long) return;
    j->warned_long = true;
    hw_cli_say("%s:%lld: %lld tokens are too many; the first %lld are translated, and so of all such lines", j->path,
               (long long)line, (long long)(t->source.count + t->unread), (long long)t->source.count);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void print_text(const job *j, const hw_translation *t)
{
    for (int64_t k = 0; k < t->count; k++) {
        if (k) putchar('\t');
        if (j->scores && t->hypotheses) printf("%.6f\t", t->hypotheses[k].score);
        fputs(t->texts[k], stdout);
    }
    putchar('\n');
}

static json_t *hypothesis_json(const job *j, const hw_translation *t, int64_t k)
{
    json_t *one = json_pack("{s:s}", "text", t->texts[k]);
    if (!t->hypotheses) return one;
    const hw_hypothesis *h = &t->hypotheses[k];
    json_object_set_new(one, "tokens", hw_json_target_tokens(j->bundle->target_vocabulary, h->ids, h->length));
    json_object_set_new(one, "score", hw_json_number(h->score));
    json_object_set_new(one, "log_prob", hw_json_number(h->log_prob));
    json_object_set_new(one, "log_probs", hw_json_numbers(h->log_probs, h->length + 1));
    return one;
}

static void print_json(const job *j, int64_t i, const hw_translation *t, const hw_examined *x)
{
    json_t *root = json_object(), *list = json_array();
    json_object_set_new(root, "line", json_integer(j->done + i + 1));
    json_object_set_new(root, "source", json_stringn(j->lines[i], j->bytes[i]));
    if (t->source.count)
        json_object_set_new(root, "source_tokens", hw_json_source_tokens(t->source_tokens, t->source.count));
    for (int64_t k = 0; k < t->count; k++) json_array_append_new(list, hypothesis_json(j, t, k));
    json_object_set_new(root, "translations", list);
    if (x) json_object_set_new(root, "attention", hw_json_attention(x, "cross"));
    hw_json_print(root, false);
}

/* The attention of each line's best translation goes along; a few lines' at a time, since it is large. */
static void print_lines_json(job *j, const hw_translation *all, int64_t first, int64_t end)
{
    hw_arena_mark mark = hw_arena_begin(j->arena);
    hw_ids sources[EXAMINED], targets[EXAMINED];
    int64_t count = 0;
    for (int64_t i = first; i < end; i++) {
        if (!all[i].hypotheses) continue;
        sources[count] = all[i].source;
        targets[count++] = (hw_ids){all[i].hypotheses[0].ids, all[i].hypotheses[0].length};
    }
    const hw_examined *x = hw_examine(hw_translator_runner(j->translator), count, sources, targets, j->arena);
    for (int64_t i = first; i < end; i++) print_json(j, i, &all[i], all[i].hypotheses ? x++ : NULL);
    hw_arena_end(j->arena, mark);
}

static void print_window(job *j, const hw_translation *all)
{
    int64_t step = j->cli->json ? EXAMINED : 1;
    for (int64_t i = 0; i < j->count && !ferror(stdout); i += step) {
        if (j->cli->json)
            print_lines_json(j, all, i, i + step < j->count ? i + step : j->count);
        else
            print_text(j, &all[i]);
    }
}

static void show_progress(job *j, bool last)
{
    if (j->prompt || isatty(STDOUT_FILENO)) return;
    double seconds = hw_seconds() - j->begun;
    if (last && seconds < 2) return;
    const char *speed = hw_arena_string(j->arena, "%.0f lines/s", (double)j->done / seconds);
    hw_progress p = {.what = "translate", .done = j->done, .seconds = seconds, .detail = speed, .last = last};
    hw_cli_progress_show(&p, &j->progress);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool translate_all(job *j, hw_error *err)
{
    for (int more = 1; more > 0 && !ferror(stdout);) {
        more = read_window(j, err);
        const hw_translation *all = hw_translate_lines(j->translator, j->count, j->lines, j->bytes);
        for (int64_t i = 0; i < j->count; i++) {
            j->failed += !all[i].count;
            tell_unread(j, j->done + i + 1, &all[i]);
        }
        print_window(j, all);
        j->done += j->count;
        if (more < 0) return false;
        if (hw_reader_waiting(j->reader) && !hw_cli_flush()) break;
        show_progress(j, !more);
    }
    return true;
}

static int translate(hw_cli *cli, const options *o, const hw_bundle *bundle, hw_reader *reader)
{
    hw_error err;
    hw_search_options search = search_options(o, bundle->config);
    search.ids_only = !cli->json && !o->scores;
    if (!hw_search_options_check(&search, &err)) return hw_cli_refuse(&err);
    const char *path = cli->argument_count > 1 ? cli->arguments[1] : "-";
    bool standard = !strcmp(path, "-");
    job j = {.cli = cli,
             .scores = o->scores,
             .bundle = bundle,
             .reader = reader,
             .path = standard ? "standard input" : path};
    j.prompt = standard && isatty(STDIN_FILENO) && !cli->quiet;
    j.translator = hw_translator_new(bundle, &search);
    j.arena = hw_arena_new(0);
    j.window = search.batch_sentences * hw_threads() * WINDOW_BATCHES;
    if (j.window > WINDOW_BYTES / 64) j.window = WINDOW_BYTES / 64;
    j.lines = hw_arena_alloc(cli->arena, (size_t)j.window * sizeof *j.lines);
    j.bytes = hw_arena_alloc(cli->arena, (size_t)j.window * sizeof *j.bytes);
    j.progress = hw_cli_progress_new(cli);
    j.begun = hw_seconds();
    int status = translate_all(&j, &err) ? HW_CLI_DONE : hw_cli_fail(&err);
    if (j.failed) {
        hw_cli_say("%lld of %lld lines could not be translated and are empty: the network's numbers are not finite",
                   (long long)j.failed, (long long)j.done);
        status = HW_CLI_FAILED;
    }
    hw_arena_free(j.arena);
    hw_translator_free(j.translator);
    return status;
}

static int run(hw_cli *cli)
{
    options o = {.beam = -1, .n_best = -1, .max_length = -1, .batch = -1, .length_penalty = (double)NAN};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_error err;
    hw_bundle *bundle = hw_bundle_load(cli->arguments[0], &err);
    hw_reader *reader = bundle ? hw_reader_open(cli->argument_count > 1 ? cli->arguments[1] : "-", &err) : NULL;
    int status = reader ? translate(cli, &o, bundle, reader) : hw_cli_fail(&err);
    hw_reader_close(reader);
    hw_bundle_free(bundle);
    return status;
}

const hw_cli_command hw_cli_translate = {
    .usage = "MODEL [FILE]",
    .least = 1,
    .most = 2,
    .takes = HW_CLI_JSON,
    .description = "Translates FILE, or standard input, to standard output: one line out for each line in, always, in "
                   "order. MODEL is a "
                   "model directory. FILE may be compressed by gzip. An empty line gives an empty line. "
                   "Of a line of more than 1,024 tokens (data.max_length, where that is more) only so many are "
                   "translated.\n"
                   "With --json each line out is an object: source, source_tokens, translations (text, tokens, score, "
                   "log_prob, log_probs), "
                   "and the attention of every cross-attention head for the best translation.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
