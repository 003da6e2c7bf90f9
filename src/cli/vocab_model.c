/* headwise vocab with a model: training one, and text to pieces and back, line by line.
 *
 * A model is a .model file of SentencePiece or a model directory, whose tokenizer may be of any kind. A line in is a
 * line out; pieces stand with a blank between. */
#include "cli/vocab.h"

#include "cli/lines.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include <headwise/bundle.h>

const char *const hw_vocab_types[] = {"unigram", "bpe", NULL};
const char *const hw_vocab_normalizations[] = {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity", NULL};
const char *const hw_vocab_sides[] = {"source", "target", NULL};

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* "x.model" -> "x.vocab" */
static const char *vocabulary_path(hw_cli *cli, const char *model)
{
    size_t length = strlen(model), cut = strlen(".model");
    bool ends = length > cut && !strcmp(model + length - cut, ".model");
    return hw_arena_string(cli->arena, "%.*s.vocab", (int)(ends ? length - cut : length), model);
}

/* Both or neither, of one call. */
static bool save_both(const hw_tokenizer *t, const char *model, const hw_vocabulary *v, const char *path, hw_error *err)
{
    hw_atomic file[2];
    if (!hw_atomic_begin(&file[0], model, err)) return false;
    if (!hw_atomic_begin(&file[1], path, err)) {
        hw_atomic_abandon(&file[0]);
        return false;
    }
    hw_tokenizer_write(t, file[0].stream);
    hw_vocabulary_write(v, file[1].stream);
    return hw_atomic_commit_all((hw_atomic *[]){&file[0], &file[1]}, 2, err);
}

/* Who forgets the model's name behind --train names a text there. */
static bool would_replace_a_text(const char *model)
{
    struct stat status;
    if (stat(model, &status) || !S_ISREG(status.st_mode) || !status.st_size) return false;
    hw_tokenizer *t = hw_tokenizer_new(&(hw_tokenizer_options){.name = "sentencepiece", .model = model}, NULL);
    hw_tokenizer_free(t);
    return !t;
}

int hw_vocab_train(hw_cli *cli, const hw_vocab_options *o)
{
    hw_error err;
    if (would_replace_a_text(o->train)) {
        hw_cli_say("vocab: --train %s: this file is there and no SentencePiece model; name the model that shall be made, "
                   "the texts behind it, or remove the file",
                   o->train);
        return HW_CLI_USAGE;
    }
    hw_subword_options options = {
        .bpe = o->type == 1,
        .size = o->max_size < 0 ? HW_SUBWORDS : o->max_size,
        .coverage = o->coverage < 0 ? 0.9995 : o->coverage,
        .byte_fallback = !o->no_byte_fallback,
        .normalization = hw_vocab_normalizations[o->normalization < 0 ? 0 : o->normalization],
        .lines = o->lines < 0 ? 0 : o->lines,
    };
    hw_tokenizer *t = hw_tokenizer_train(&options, cli->argument_count, cli->arguments, &err);
    if (!t) return hw_cli_fail(&err);
    const hw_vocabulary *v = hw_tokenizer_vocabulary(t, cli->arena);
    const char *path = vocabulary_path(cli, o->train);
    bool good = save_both(t, o->train, v, path, &err);
    hw_tokenizer_free(t);
    if (!good) return hw_cli_fail(&err);
    char size[32];
    hw_cli_note(cli, "%s and %s: %s tokens", o->train, path, hw_thousands(hw_vocabulary_size(v), size));
    if (cli->json) printf("{\"size\": %d}\n", hw_vocabulary_size(v));
    return HW_CLI_DONE;
}

/* ---- using ------------------------------------------------------------------------------------------------------- */

typedef struct model {
    hw_texts texts;
    const hw_tokenizer *tokenizer;
    const hw_vocabulary *vocabulary;
} model;

static bool open_directory(hw_cli *cli, const char *path, int side, model *m, hw_error *err)
{
    hw_config *config = hw_bundle_config(path, cli->arena, err);
    if (!config || !hw_config_check(config, NULL, err) || !hw_texts_load(config, path, cli->arena, &m->texts, err))
        return false;
    m->tokenizer = side == 1 ? m->texts.target_tokenizer : m->texts.source_tokenizer;
    m->vocabulary = side == 1 ? m->texts.target_vocabulary : m->texts.source_vocabulary;
    return true;
}

static bool open_model(hw_cli *cli, const char *path, int side, model *m, hw_error *err)
{
    struct stat status;
    *m = (model){0};
    if (!stat(path, &status) && S_ISDIR(status.st_mode)) return open_directory(cli, path, side, m, err);
    hw_tokenizer_options options = {.name = "sentencepiece", .model = path};
    m->texts.source_tokenizer = hw_tokenizer_new(&options, err);
    m->tokenizer = m->texts.source_tokenizer;
    if (m->tokenizer) m->vocabulary = hw_tokenizer_vocabulary(m->tokenizer, cli->arena);
    return m->tokenizer;
}

/* Prints what becomes of one line, without its end. False: the tokenizer fails. */
typedef bool (*line_function)(const model *m, hw_text line, hw_arena *arena);

static bool print_pieces(const model *m, hw_text line, hw_arena *arena)
{
    hw_tokens tokens = hw_tokens_new(arena);
    if (!hw_tokenizer_encode(m->tokenizer, m->vocabulary, line.text, line.bytes, &tokens)) return false;
    for (int64_t i = 0; i < tokens.count; i++) {
        if (i) putchar(' ');
        fwrite(tokens.items[i].text, 1, tokens.items[i].bytes, stdout);
    }
    return true;
}

/* Only blanks separate pieces: a tab may be one. */
static bool print_text(const model *m, hw_text line, hw_arena *arena)
{
    hw_tokens tokens = hw_tokens_new(arena);
    const char *end = line.text + line.bytes, *stop;
    for (const char *at = line.text; at < end; at = stop + 1) {
        stop = memchr(at, ' ', (size_t)(end - at));
        if (!stop) stop = end;
        if (stop > at) hw_tokens_add(&tokens, at, (size_t)(stop - at), HW_UNKNOWN);
    }
    size_t size;
    const char *text = hw_tokenizer_decode(m->tokenizer, arena, tokens.items, tokens.count, &size);
    if (text) fwrite(text, 1, size, stdout);
    return text;
}

/* What was read is printed before more is waited for. */
static bool each_line(const char *path, const model *m, line_function print, hw_error *err)
{
    hw_cli_lines in;
    if (!hw_cli_lines_open(&in, path, err)) return false;
    hw_arena *arena = hw_arena_new(0);
    hw_text line;
    int got = 1;
    while (!ferror(stdout) && (got = hw_cli_lines_next(&in, arena, &line, err)) == 1) {
        if (!print(m, line, arena)) {
            hw_tokenizer_failed(in.path, hw_reader_number(in.reader), err);
            got = -1;
            break;
        }
        putchar('\n');
        hw_arena_reset(arena);
        if (hw_reader_waiting(in.reader)) fflush(stdout);
    }
    hw_arena_free(arena);
    hw_cli_lines_close(&in);
    return got >= 0;
}

static int use(hw_cli *cli, const char *path, int side, line_function print)
{
    static const char *const standard_input[] = {"-"};
    const char *const *files = cli->argument_count ? cli->arguments : standard_input;
    int count = cli->argument_count ? cli->argument_count : 1;
    hw_error err;
    model m;
    bool good = open_model(cli, path, side, &m, &err);
    for (int i = 0; good && i < count; i++) good = each_line(files[i], &m, print, &err);
    hw_texts_free(&m.texts);
    return good ? HW_CLI_DONE : hw_cli_fail(&err);
}

int hw_vocab_encode(hw_cli *cli, const hw_vocab_options *o) { return use(cli, o->encode, o->side, print_pieces); }

int hw_vocab_decode(hw_cli *cli, const hw_vocab_options *o) { return use(cli, o->decode, o->side, print_text); }
