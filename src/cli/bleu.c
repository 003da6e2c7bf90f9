/* headwise bleu: BLEU and chrF of translations, how sure they are, and whether two systems differ.
 *
 * All files are read side by side, a line of each at a time, so their lengths do not matter; what is kept of a line is
 * its row of statistics. Figures and signatures are those of layer 9, and so equal to sacreBLEU's. */
#include "cli/bleu.h"

#include <string.h>

typedef struct options {
    int tokenize, smooth, test;
    double smooth_value;
    bool lowercase, chrf_lowercase, chrf_whitespace, chrf_eps_smoothing;
    int64_t char_order, word_order, beta;
    hw_cli_list references, others;
    bool sentence_level, confidence;
    int64_t trials, seed;
} options;

static const char *const tokenizers[] = {"13a", "intl", "char", "none", NULL};
static const char *const smoothings[] = {"exp", "floor", "add-k", "none", NULL};
enum { RANDOMIZATION, BOOTSTRAP };
static const char *const tests[] = {[RANDOMIZATION] = "randomization", [BOOTSTRAP] = "bootstrap", NULL};

#define AT(field) offsetof(options, field)
static const hw_cli_option table[] = {
    {"tokenize", 0, "NAME", HW_CLI_CHOICE, AT(tokenize), .choices = tokenizers,
     .help = "how BLEU cuts text: 13a, intl, char, none (13a)"},
    {"lowercase", 0, NULL, HW_CLI_FLAG, AT(lowercase), .help = "BLEU of lower-cased text"},
    {"smooth", 0, "NAME", HW_CLI_CHOICE, AT(smooth), .choices = smoothings,
     .help = "what BLEU makes of an order without a match: exp, floor, add-k, none (exp)"},
    {"smooth-value", 0, "X", HW_CLI_NUMBER, AT(smooth_value), .low = 1e-9, .high = 1e9,
     .help = "of floor (0.1) and add-k (1)"},
    {"chrf-char-order", 0, "N", HW_CLI_INTEGER, AT(char_order), .low = 1, .high = 8,
     .help = "the longest character n-grams of chrF (6)"},
    {"chrf-word-order", 0, "N", HW_CLI_INTEGER, AT(word_order), .low = 0, .high = 2,
     .help = "the longest word n-grams; 2 is chrF++ (0)"},
    {"chrf-beta", 0, "N", HW_CLI_INTEGER, AT(beta), .low = 1, .high = 9,
     .help = "how much more recall weighs than precision (2)"},
    {"chrf-lowercase", 0, NULL, HW_CLI_FLAG, AT(chrf_lowercase), .help = "chrF of lower-cased text"},
    {"chrf-whitespace", 0, NULL, HW_CLI_FLAG, AT(chrf_whitespace), .help = "blanks are characters of chrF too"},
    {"chrf-eps-smoothing", 0, NULL, HW_CLI_FLAG, AT(chrf_eps_smoothing),
     .help = "average chrF's F scores over all orders, as chrF++.py, NLTK and Moses do"},
    {"reference", 'r', "FILE", HW_CLI_LIST, AT(references), .help = "another reference; may be given again"},
    {"sentence-level", 0, NULL, HW_CLI_FLAG, AT(sentence_level),
     .help = "a line a sentence: its number from 0, BLEU with effective order, chrF, with tabs between"},
    {"confidence", 0, NULL, HW_CLI_FLAG, AT(confidence), .help = "mean and 95 % half-width by bootstrap resampling"},
    {"paired", 'p', "OTHER", HW_CLI_LIST, AT(others),
     .help = "compare another system's output with HYPOTHESIS, with p-values; may be given again"},
    {"paired-test", 0, "NAME", HW_CLI_CHOICE, AT(test), .choices = tests,
     .help = "the test of --paired: randomization, bootstrap (randomization)"},
    {"trials", 0, "N", HW_CLI_INTEGER, AT(trials), .low = 1, .high = 1e7,
     .help = "how often is drawn (bootstrap 1000, randomization 10000)"},
    {"seed", 0, "N", HW_CLI_INTEGER, AT(seed), .low = 0, .high = INT32_MAX, .help = "of what is drawn (12345)"},
};

static const hw_cli_rule rules[] = {
    {"sentence-level", HW_CLI_EXCLUDES, "confidence paired", NULL},
    {"paired-test", HW_CLI_NEEDS, "paired", NULL},
    {"trials", HW_CLI_NEEDS, "confidence paired", NULL},
    {"seed", HW_CLI_NEEDS, "confidence paired", NULL},
    {0},
};

/* ---- the files --------------------------------------------------------------------------------------------------- */

/* Names the files. False: what was asked for cannot be. */
static bool plan(hw_cli *cli, bleu_inputs *all, const options *o, hw_error *err)
{
    int standard = 0;
    all->at = hw_arena_calloc(cli->arena, (size_t)(2 + o->references.count + o->others.count), sizeof *all->at);
    all->at[all->count++].path = cli->arguments[0];
    for (int i = 0; i < o->references.count; i++) all->at[all->count++].path = o->references.items[i];
    all->references = all->count;
    all->baseline = all->at + all->count;
    all->at[all->count++].path = cli->argument_count > 1 ? cli->arguments[1] : "-";
    for (int i = 0; i < o->others.count; i++) all->at[all->count++].path = o->others.items[i];

    for (int i = 0; i < all->count; i++) standard += !strcmp(all->at[i].path, "-");
    if (standard > 1) return hw_fail(err, "bleu: only one of the files can be standard input");
    const char *smooth = smoothings[o->smooth];
    if (o->smooth_value > 0 && strcmp(smooth, "floor") && strcmp(smooth, "add-k"))
        return hw_fail(err, "bleu: --smooth-value goes with --smooth floor or --smooth add-k, not with %s", smooth);
    return true;
}

static bool make_metrics(bleu_input *in, const options *o, hw_error *err)
{
    const hw_bleu_options bleu = {.tokenizer = tokenizers[o->tokenize],
                                  .smooth = smoothings[o->smooth],
                                  .smooth_value = o->smooth_value,
                                  .lowercase = o->lowercase,
                                  .effective_order = o->sentence_level};
    const hw_chrf_options chrf = {.char_order = (int)o->char_order,
                                  .word_order = (int)o->word_order,
                                  .beta = (int)o->beta,
                                  .lowercase = o->chrf_lowercase,
                                  .whitespace = o->chrf_whitespace,
                                  .eps_smoothing = o->chrf_eps_smoothing};
    in->metrics[BLEU] = hw_bleu_new(&bleu, err);
    in->metrics[CHRF] = in->metrics[BLEU] ? hw_chrf_new(&chrf, err) : NULL;
    return in->metrics[CHRF];
}

static bool open_all(bleu_inputs *all, const options *o, hw_error *err)
{
    for (int i = 0; i < all->count; i++) {
        bleu_input *in = &all->at[i];
        if (!(in->reader = hw_reader_open(in->path, err))) return false;
        if (!strcmp(in->path, "-")) in->path = "standard input";
        if (in >= all->baseline && !make_metrics(in, o, err)) return false;
    }
    return true;
}

static void close_all(bleu_inputs *all)
{
    for (int i = 0; i < all->count; i++) {
        hw_reader_close(all->at[i].reader);
        for (int k = 0; k < METRICS; k++) hw_metric_free(all->at[i].metrics[k]);
    }
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* 1: a line, 0: the end, -1: an error. */
static int next_line(bleu_input *in, hw_error *err)
{
    char *text;
    int got = hw_next_line(in->reader, in->path, &text, &in->line.size, err);
    if (got <= 0) return got;
    in->line.text = text;
    in->lines++;
    return 1;
}

/* Reads every file to its end and says how long the first two that differ are. */
static bool fail_lengths(bleu_inputs *all, hw_error *err)
{
    const bleu_input *first = all->at, *other = NULL;
    for (int i = 0; i < all->count; i++) {
        bleu_input *in = &all->at[i];
        int got;
        while ((got = next_line(in, err)) > 0) continue;
        if (got < 0) return false;
        if (!other && in->lines != first->lines) other = in;
    }
    HW_CHECK(other, "files of the same length that ended at different lines");
    return hw_fail(err, "%s has %lld %s and %s has %lld: every file must have one line for each sentence",
                   first->path, (long long)first->lines, hw_plural(first->lines, "line", "lines"), other->path,
                   (long long)other->lines);
}

static bool read_all(hw_cli *cli, bleu_inputs *all, hw_error *err)
{
    hw_span *references = hw_arena_alloc(cli->arena, (size_t)all->references * sizeof *references);
    for (;;) {
        int lines = 0;
        for (int i = 0; i < all->count; i++) {
            int got = next_line(&all->at[i], err);
            if (got < 0) return false;
            lines += got;
        }
        if (lines == 0 && all->at->lines > 0) return true;
        if (lines == 0) return hw_fail(err, "%s holds no line: there is nothing to score", all->at->path);
        if (lines < all->count) return fail_lengths(all, err);
        for (int i = 0; i < all->references; i++) references[i] = all->at[i].line;
        for (bleu_input *in = all->baseline; in < all->at + all->count; in++)
            for (int k = 0; k < METRICS; k++) hw_metric_add(in->metrics[k], in->line, references, all->references);
        hw_span line = all->baseline->line;
        all->tokenized += line.size >= 2 && !memcmp(line.text + line.size - 2, " .", 2);
    }
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static void resample(bleu_inputs *all, const options *o)
{
    hw_resampling drawn = {.seed = (uint64_t)o->seed};
    bool paired = o->others.count > 0;
    if (o->confidence || paired) drawn.bootstrap = o->trials ? (int)o->trials : 1000;
    if (paired && o->test == RANDOMIZATION) drawn.randomization = o->trials ? (int)o->trials : 10000;
    all->drawn = drawn;
    for (bleu_input *in = all->baseline; in < all->at + all->count && drawn.bootstrap; in++)
        for (int k = 0; k < METRICS; k++) {
            const hw_tally *first = hw_metric_tally(all->baseline->metrics[k]);
            const hw_tally *tally = hw_metric_tally(in->metrics[k]);
            in->intervals[k] = hw_bootstrap_interval(tally, drawn.bootstrap, drawn.seed);
            if (in == all->baseline) continue;
            in->p[k] = o->test == BOOTSTRAP ? hw_paired_bootstrap(first, tally, drawn.bootstrap, drawn.seed)
                                            : hw_paired_randomization(first, tally, drawn.randomization, drawn.seed);
        }
}

static void score(hw_cli *cli, bleu_inputs *all, const options *o)
{
    const char *tokenizer = tokenizers[o->tokenize];
    if (all->tokenized >= 100 && (!strcmp(tokenizer, "13a") || !strcmp(tokenizer, "intl")))
        hw_cli_note(cli, "%lld lines of %s end in \" .\": they look tokenized, but --tokenize %s is for plain text",
                    (long long)all->tokenized, all->baseline->path, tokenizer);
    resample(all, o);
    if (cli->json) hw_bleu_print_json(all, o->sentence_level);
    else if (o->sentence_level) hw_bleu_print_sentences(all);
    else if (o->others.count) hw_bleu_print_comparison(cli->arena, all);
    else hw_bleu_print_figures(all);
}

static int run(hw_cli *cli)
{
    options o = {.char_order = 6, .beta = 2, .seed = 12345};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_error err;
    bleu_inputs all = {0};
    if (!plan(cli, &all, &o, &err)) return hw_cli_refuse(&err);
    bool done = open_all(&all, &o, &err) && read_all(cli, &all, &err);
    if (done) score(cli, &all, &o);
    close_all(&all);
    return done ? HW_CLI_DONE : hw_cli_fail(&err);
}

const hw_cli_command hw_cli_bleu = {
    .usage = "REFERENCE [HYPOTHESIS]",
    .least = 1,
    .most = 2,
    .takes = HW_CLI_JSON,
    .description =
        "Scores translations against their reference, a line each, with BLEU and chrF. Figures and signatures are "
        "those of sacreBLEU. HYPOTHESIS is standard input where it is not given; files may be compressed by gzip.\n"
        "With --paired each other system is compared with HYPOTHESIS on the same sentences: p is the chance of a "
        "difference at least as large if both were equally good.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
