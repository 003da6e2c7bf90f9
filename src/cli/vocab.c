/* headwise vocab: the vocabulary of some text, and the models that cut text into pieces (vocab_model.c).
 *
 * Training makes its vocabularies and models by itself; this shows what they would be, makes those of text that is not
 * the training's, tells how much of the text a smaller vocabulary covers, and shows what a model makes of a line. */
#include "cli/vocab.h"

#include <inttypes.h>
#include <jansson.h>

#include <headwise/text.h>

#define AT(field) offsetof(hw_vocab_options, field)
static const hw_cli_option table[] = {
    {"output", 'o', "FILE", HW_CLI_TEXT, AT(output),
     "write the vocabulary to FILE, whole or not at all (standard output)", 0, 0, NULL},
    {"counts", 0, NULL, HW_CLI_FLAG, AT(counts), "print id, count and token of each, with tabs between", 0, 0, NULL},
    {"tokenizer", 0, "NAME", HW_CLI_TEXT, AT(tokenizer), "how lines are cut into tokens: word, char (word)", 0, 0,
     NULL},
    {"min-count", 0, "N", HW_CLI_INTEGER, AT(min_count), "leave out tokens that are rarer (1)", 1, 1e15, NULL},
    {"max-size", 0, "N", HW_CLI_INTEGER, AT(max_size),
     "keep only the commonest, N with <unk>, <s>, </s> (no limit; with --train 8000)", 4, 1e9, NULL},
    {"train", 0, "MODEL", HW_CLI_TEXT, AT(train),
     "train a SentencePiece model on the files and write it to MODEL, say shared.model, and its vocabulary beside it",
     0, 0, NULL},
    {"type", 0, "NAME", HW_CLI_CHOICE, AT(type), "of the model to be trained: unigram, bpe (unigram)", 0, 0,
     hw_vocab_types},
    {"normalization", 0, "NAME", HW_CLI_CHOICE, AT(normalization),
     "what the model to be trained does to text first: nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf, identity (nmt_nfkc)", 0, 0,
     hw_vocab_normalizations},
    {"coverage", 0, "SHARE", HW_CLI_NUMBER, AT(coverage),
     "of the characters, rare ones left out, that the model to be trained has pieces for (0.9995)", 0.9, 1, NULL},
    {"no-byte-fallback", 0, NULL, HW_CLI_FLAG, AT(no_byte_fallback),
     "let the model to be trained have no pieces for bytes, so that rare characters are unknown", 0, 0, NULL},
    {"lines", 0, "N", HW_CLI_INTEGER, AT(lines), "train on so many lines at most, evenly over the files (all)", 0, 1e15,
     NULL},
    {"encode", 0, "MODEL", HW_CLI_TEXT, AT(encode),
     "cut each line into pieces, as a .model file or a model directory does, and print them with blanks between", 0, 0,
     NULL},
    {"decode", 0, "MODEL", HW_CLI_TEXT, AT(decode),
     "the reverse: print the text that the pieces of each line stand for", 0, 0, NULL},
    {"side", 0, "SIDE", HW_CLI_CHOICE, AT(side), "whose tokenizer of a model directory: source, target (source)", 0, 0,
     hw_vocab_sides},
};

static int64_t count_of(const hw_counts *counts, const hw_vocabulary *v, int32_t id)
{
    size_t bytes;
    const char *token = hw_vocabulary_token(v, id, &bytes);
    return id < HW_SPECIALS ? 0 : hw_counts_get(counts, token, bytes);
}

/* Of all tokens of the text, how many the vocabulary has, 0 to 1. */
static double coverage(const hw_counts *counts, const hw_vocabulary *v)
{
    int64_t covered = 0, total = hw_counts_total(counts);
    for (int32_t id = 0; id < hw_vocabulary_size(v); id++) covered += count_of(counts, v, id);
    return total ? (double)covered / (double)total : 1;
}

static bool write_tokens(const char *path, const hw_vocabulary *v, hw_error *err)
{
    hw_atomic file;
    if (!hw_output_begin(&file, path, err)) return false;
    hw_vocabulary_write(v, file.stream);
    return hw_atomic_commit(&file, err);
}

static void print_tokens(const hw_counts *counts, const hw_vocabulary *v, bool with_counts)
{
    for (int32_t id = 0; id < hw_vocabulary_size(v) && !ferror(stdout); id++) {
        size_t bytes;
        const char *token = hw_vocabulary_token(v, id, &bytes);
        if (with_counts) printf("%d\t%" PRId64 "\t", id, count_of(counts, v, id));
        fwrite(token, 1, bytes, stdout);
        putchar('\n');
    }
}

static void print_json(const hw_counts *counts, const hw_vocabulary *v)
{
    json_t *root =
        json_pack("{s:i, s:I, s:I, s:f}", "size", hw_vocabulary_size(v), "tokens", (json_int_t)hw_counts_total(counts),
                  "distinct", (json_int_t)hw_counts_distinct(counts), "coverage", coverage(counts, v));
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

static void say_what_was_made(const hw_cli *cli, const hw_counts *counts, const hw_vocabulary *v)
{
    char size[32], distinct[32], total[32];
    hw_cli_note(cli,
                "%s tokens in the vocabulary; the text has %s different %s, %s in all, of which it covers %.2f %%",
                hw_thousands(hw_vocabulary_size(v), size), hw_thousands(hw_counts_distinct(counts), distinct),
                hw_plural(hw_counts_distinct(counts), "one", "ones"),
                hw_thousands(hw_counts_total(counts), total), 100 * coverage(counts, v));
}

static int make(hw_cli *cli, const hw_vocab_options *o, const hw_tokenizer *t)
{
    hw_error err;
    hw_counts *counts = hw_counts_new(cli->arena);
    for (int i = 0; i < cli->argument_count; i++)
        if (!hw_counts_add_file(counts, t, cli->arguments[i], &err)) return hw_cli_fail(&err);
    hw_vocabulary_options limits = {.min_count = o->min_count < 0 ? 0 : o->min_count,
                                    .max_size = o->max_size < 0 ? 0 : o->max_size};
    const hw_vocabulary *v = hw_vocabulary_build(cli->arena, counts, &limits);
    if (o->output && !write_tokens(o->output, v, &err)) return hw_cli_fail(&err);
    if (cli->json)
        print_json(counts, v);
    else if (o->counts || !o->output)
        print_tokens(counts, v, o->counts);
    say_what_was_made(cli, counts, v);
    return HW_CLI_DONE;
}

static int count(hw_cli *cli, const hw_vocab_options *o)
{
    hw_error err;
    hw_tokenizer *t = hw_tokenizer_new(&(hw_tokenizer_options){.name = o->tokenizer ? o->tokenizer : "word"}, &err);
    if (!t) return hw_cli_refuse(&err);
    int status = make(cli, o, t);
    hw_tokenizer_free(t);
    return status;
}

/* ---- one work of four -------------------------------------------------------------------------------------------- */

static const hw_cli_rule rules[] = {
    {"train", HW_CLI_EXCLUDES, "encode decode", NULL},
    {"encode", HW_CLI_EXCLUDES, "decode", NULL},
    {"output", HW_CLI_EXCLUDES, "train encode decode", NULL},
    {"counts", HW_CLI_EXCLUDES, "train encode decode json", NULL},
    {"tokenizer", HW_CLI_EXCLUDES, "train encode decode", NULL},
    {"min-count", HW_CLI_EXCLUDES, "train encode decode", NULL},
    {"max-size", HW_CLI_EXCLUDES, "encode decode", NULL},
    {"json", HW_CLI_EXCLUDES, "encode decode", NULL},
    {"type", HW_CLI_NEEDS, "train", NULL},
    {"normalization", HW_CLI_NEEDS, "train", NULL},
    {"coverage", HW_CLI_NEEDS, "train", NULL},
    {"no-byte-fallback", HW_CLI_NEEDS, "train", NULL},
    {"lines", HW_CLI_NEEDS, "train", NULL},
    {"side", HW_CLI_NEEDS, "encode decode", NULL},
    {0},
};

static int run(hw_cli *cli)
{
    hw_vocab_options o = {
        .min_count = -1, .max_size = -1, .lines = -1, .coverage = -1, .type = -1, .normalization = -1, .side = -1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    if (o.encode) return hw_vocab_encode(cli, &o);
    if (o.decode) return hw_vocab_decode(cli, &o);
    if (cli->argument_count) return o.train ? hw_vocab_train(cli, &o) : count(cli, &o);
    hw_cli_say("vocab: too few arguments; a FILE is needed%s", o.train ? "" : ", - is standard input");
    return HW_CLI_USAGE;
}

const hw_cli_command hw_cli_vocab = {
    .usage = "[FILE]...",
    .least = 0,
    .most = -1,
    .takes = HW_CLI_JSON,
    .description =
        "Counts the tokens of the files together, plain or compressed by gzip (-, but not with --train: standard "
        "input), and prints the vocabulary: a token a line, <unk>, <s> and </s> first, then the commonest first. The "
        "number of a line, from 0, is the token's id.\n"
        "\n"
        "Pieces of words (text.joiner) are tokens like others here, so a joiner changes nothing.\n"
        "\n"
        "Both sides of a corpus together make a shared vocabulary. Training needs none of this: it makes the "
        "vocabularies and models it needs from its training text.\n"
        "\n"
        "With --train, --encode or --decode it makes or uses a model that cuts text into pieces instead. --train reads "
        "its files more than once, so they can be no pipes. --encode and --decode read standard input where no FILE is "
        "given and print a line for each line, bytes that are not UTF-8 as U+FFFD.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
