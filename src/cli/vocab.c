/* headwise vocab: the vocabulary of some text.
 *
 * Training makes its vocabularies by itself; this shows what they would be, makes one of text that is not the
 * training's, and tells how much of the text a smaller one covers. */
#include "cli/cli.h"

#include <inttypes.h>
#include <jansson.h>

#include <headwise/text.h>

typedef struct options {
    const char *output, *tokenizer;
    int64_t min_count, max_size;
    bool counts;
} options;

#define AT(field) offsetof(options, field)
static const hw_cli_option table[] = {
    {"output", 'o', "FILE", HW_CLI_TEXT, AT(output),
     "write the vocabulary to FILE, whole or not at all (standard output)", 0, 0, NULL},
    {"counts", 0, NULL, HW_CLI_FLAG, AT(counts), "print id, count and token of each, with tabs between", 0, 0, NULL},
    {"tokenizer", 0, "NAME", HW_CLI_TEXT, AT(tokenizer), "how lines are cut into tokens: word, char (word)", 0, 0,
     NULL},
    {"min-count", 0, "N", HW_CLI_INTEGER, AT(min_count), "leave out tokens that are rarer (1)", 1, 1e15, NULL},
    {"max-size", 0, "N", HW_CLI_INTEGER, AT(max_size), "keep only the commonest, N with <unk>, <s>, </s> (no limit)", 4,
     1e9, NULL},
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
                "%s tokens in the vocabulary; the text has %s different ones, %s in all, of which it covers %.2f %%",
                hw_cli_count(hw_vocabulary_size(v), size), hw_cli_count(hw_counts_distinct(counts), distinct),
                hw_cli_count(hw_counts_total(counts), total), 100 * coverage(counts, v));
}

static int make(hw_cli *cli, const options *o, const hw_tokenizer *t)
{
    hw_error err;
    hw_counts *counts = hw_counts_new(cli->arena);
    for (int i = 0; i < cli->argument_count; i++)
        if (!hw_counts_add_file(counts, t, cli->arguments[i], &err)) return hw_cli_fail(&err);
    const hw_vocabulary *v = hw_vocabulary_build(
        cli->arena, counts, &(hw_vocabulary_options){.min_count = o->min_count, .max_size = o->max_size});
    if (o->output && !hw_vocabulary_save(v, o->output, &err)) return hw_cli_fail(&err);
    if (cli->json)
        print_json(counts, v);
    else if (o->counts || !o->output)
        print_tokens(counts, v, o->counts);
    say_what_was_made(cli, counts, v);
    return HW_CLI_DONE;
}

static int run(hw_cli *cli)
{
    options o = {.tokenizer = "word", .min_count = 1};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_error err;
    hw_tokenizer *t = hw_tokenizer_new(&(hw_tokenizer_options){.name = o.tokenizer}, &err);
    if (!t) return hw_cli_refuse(&err);
    int status = make(cli, &o, t);
    hw_tokenizer_free(t);
    return status;
}

const hw_cli_command hw_cli_vocab = {
    .usage = "FILE...",
    .least = 1,
    .most = -1,
    .takes = HW_CLI_JSON,
    .description =
        "Counts the tokens of the files together, plain or compressed by gzip (- is standard input), and prints the "
        "vocabulary: a token a line, <unk>, <s> and </s> first, then the commonest first. The number of a line, "
        "from 0, is the token's id.\n"
        "\n"
        "Both sides of a corpus together make a shared vocabulary. Training needs none of this: it makes the "
        "vocabularies it needs from its training text.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .run = run,
};
