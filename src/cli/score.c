/* headwise score: how likely a model holds given translations. Both files are read side by side in windows, so their
 * length does not matter, and there is one number for every pair, blank lines included: </s> alone has a probability
 * too. */
#include <math.h>
#include <string.h>

#include "cli/lines.h"
#include "cli/model_json.h"

enum { WINDOW = 4096 }; /* pairs */

typedef struct options {
    bool tokens;
} options;

static const hw_cli_option table[] = {
    {"tokens", 't', NULL, HW_CLI_FLAG, offsetof(options, tokens),
     .help = "a line a token: sentence and position from 0, token, log-probability, with tabs between"},
};

static const hw_cli_rule rules[] = {
    {"tokens", HW_CLI_EXCLUDES, "json", ", which has them"},
    {0},
};

typedef struct side {
    const char *path; /* as messages call it */
    hw_reader *reader;
    hw_side reads;
    hw_tokens tokens[WINDOW];
    hw_ids ids[WINDOW];
} side;

typedef struct job {
    hw_cli *cli;
    bool tokens;
    hw_runner *runner;
    hw_arena *arena; /* of one window */
    side sides[2];
    bool no_score[WINDOW]; /* nothing was read of it */
    hw_too_long too_long;
    size_t bytes; /* in this window */
    int64_t count, done, failed, broken;
} job;

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* 1: a line, 0: the end, -1: an error. i: its place in the window. */
static int next_line(job *j, side *s, int64_t i, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = hw_next_line(s->reader, s->path, &line, &bytes, err);
    if (got <= 0) return got;
    j->bytes += bytes;
    s->tokens[i] = hw_tokens_new(j->arena);
    s->tokens[i].most = j->too_long.most;
    const char *copy = hw_arena_copy(j->arena, line, bytes + 1); /* tokens point into it */
    j->no_score[i] |= !hw_tokenizer_encode(s->reads.tokenizer, s->reads.vocabulary, copy, bytes, &s->tokens[i]);
    s->ids[i] = hw_token_ids(&s->tokens[i], j->arena);
    return 1;
}

/* One side ended before the other: reads that one to its end. */
static int fail_lengths(job *j, const int got[2], hw_error *err)
{
    char *line;
    size_t bytes;
    int64_t lines[2];
    for (int s = 0; s < 2; s++) {
        int more = got[s];
        while (more > 0) more = hw_reader_line(j->sides[s].reader, &line, &bytes, err);
        if (more < 0) return -1;
        lines[s] = hw_reader_number(j->sides[s].reader);
    }
    hw_fail(err, "%s has %lld %s, but %s has %lld; line by line they must belong together", j->sides[0].path,
            (long long)lines[0], hw_plural(lines[0], "line", "lines"), j->sides[1].path, (long long)lines[1]);
    return -1;
}

/* Attention costs the square of a line's length: what is too long for that has no score. */
static void look_at_pair(job *j, int64_t i)
{
    side *s = j->sides;
    hw_too_long *t = &j->too_long;
    int64_t line = hw_reader_number(s[0].reader);
    j->broken += j->no_score[i];
    if (!j->no_score[i])
        j->no_score[i] = hw_too_long_pair(t, s[0].tokens[i].count + s[0].tokens[i].unread,
                                          s[1].tokens[i].count + s[1].tokens[i].unread, line);
    if (t->pairs == 1 && t->line == line)
        hw_cli_say("%s; its pair has no score, and so have all like it",
                   hw_too_long_describe(t, s[t->side].path, j->arena));
    for (int k = 0; k < 2 && j->no_score[i]; k++) s[k].tokens[i].count = s[k].ids[i].count = 0;
}

/* 1: go on afterwards, 0: that was the end, -1: an error behind the pairs that were read. */
static int read_window(job *j, hw_error *err)
{
    hw_arena_reset(j->arena);
    j->bytes = 0;
    for (j->count = 0; j->count < WINDOW && j->bytes < HW_CLI_WINDOW_BYTES; j->count++) {
        int got[2];
        j->no_score[j->count] = false;
        for (int s = 0; s < 2; s++)
            if ((got[s] = next_line(j, &j->sides[s], j->count, err)) < 0) return -1;
        if (got[0] != got[1]) return fail_lengths(j, got, err);
        if (!got[0]) return 0;
        look_at_pair(j, j->count);
    }
    return 1;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static const hw_token end = {"</s>", 4, HW_END};

static const hw_token *token_at(const hw_tokens *tokens, int64_t i)
{
    return i < tokens->count ? &tokens->items[i] : &end;
}

/* What is no number has no sign either. */
static double log_prob(double nll) { return isnan(nll) ? NAN : 0 - nll; }

static void print_tokens(int64_t sentence, const hw_tokens *tokens, const hw_real *nll)
{
    for (int64_t t = 0; t <= tokens->count && !ferror(stdout); t++) {
        const hw_token *token = token_at(tokens, t);
        printf("%lld\t%lld\t", (long long)sentence, (long long)t);
        hw_cli_print_column(token->text, token->bytes);
        printf("\t%.9g\n", log_prob((double)nll[t]));
    }
}

static void print_json(const hw_tokens *tokens, double sum, const hw_real *nll)
{
    json_t *list = json_array(), *log_probs = json_array();
    for (int64_t t = 0; t <= tokens->count; t++) {
        const hw_token *token = token_at(tokens, t);
        json_array_append_new(list, hw_json_text_of(token->text, token->bytes));
        json_array_append_new(log_probs, hw_json_number(0 - (double)nll[t]));
    }
    hw_json_print(
        json_pack("{s:o, s:o, s:o}", "log_prob", hw_json_number(0 - sum), "tokens", list, "log_probs", log_probs),
        false);
}

static void print_window(job *j, hw_real *nll)
{
    for (int64_t i = 0; i < j->count && !ferror(stdout); i++) {
        const hw_tokens *tokens = &j->sides[1].tokens[i];
        double sum = 0;
        for (int64_t t = 0; t <= tokens->count; t++) sum += (double)nll[t];
        j->failed += !isfinite(sum);
        if (j->no_score[i]) sum = (double)(nll[0] = (hw_real)NAN);
        if (j->cli->json)
            print_json(tokens, sum, nll);
        else if (j->tokens)
            print_tokens(j->done + i, tokens, nll);
        else
            printf("%.9g\n", log_prob(sum));
        nll += tokens->count + 1;
    }
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool score_all(job *j, hw_error *err)
{
    for (int more = 1; more > 0 && !ferror(stdout); j->done += j->count) {
        more = read_window(j, err);
        int64_t rows = 0;
        for (int64_t i = 0; i < j->count; i++) rows += j->sides[1].ids[i].count + 1;
        hw_real *nll = hw_arena_alloc(j->arena, (size_t)rows * sizeof *nll);
        hw_score_pairs(j->runner, j->count, j->sides[0].ids, j->sides[1].ids, 0, nll);
        print_window(j, nll);
        if (more < 0) return false;
    }
    return true;
}

static bool open_sides(job *j, const hw_bundle *bundle, hw_error *err)
{
    const char *const *paths = j->cli->arguments + 1;
    j->sides[0].reads = hw_bundle_source(bundle);
    j->sides[1].reads = hw_bundle_target(bundle);
    for (int s = 0; s < 2; s++) {
        if (!(j->sides[s].reader = hw_reader_open(paths[s], err))) return false;
        j->sides[s].path = strcmp(paths[s], "-") ? paths[s] : "standard input";
    }
    return true;
}

static int score(hw_cli *cli, const options *o, const hw_bundle *bundle)
{
    hw_error err;
    job *j = hw_arena_calloc(cli->arena, 1, sizeof *j);
    *j = (job){.cli = cli, .tokens = o->tokens, .too_long.most = hw_longest_source(bundle->config),
               .runner = hw_runner_new(bundle->network), .arena = hw_arena_new(0)};
    int status = open_sides(j, bundle, &err) && score_all(j, &err) ? HW_CLI_DONE : hw_cli_fail(&err);
    const hw_cli_loss losses[] = {
        {j->failed, HW_CLI_NOT_FINITE}, {j->too_long.pairs, "they are too long"}, {j->broken, HW_CLI_BROKEN}, {0}};
    static const hw_cli_loss_words words = {{"pair", "pairs"}, {"has no score", "have no score"}};
    if (hw_cli_say_losses(j->done, &words, losses)) status = HW_CLI_FAILED;
    for (int s = 0; s < 2; s++) hw_reader_close(j->sides[s].reader);
    hw_arena_free(j->arena);
    hw_runner_free(j->runner);
    return status;
}

static int run(hw_cli *cli)
{
    options o = {0};
    if (!hw_cli_parse(cli, &o)) return cli->status;
    hw_error err;
    if (!strcmp(cli->arguments[1], "-") && !strcmp(cli->arguments[2], "-")) {
        hw_fail(&err, "score: only one of the files can be standard input");
        return hw_cli_refuse(&err);
    }
    hw_bundle *bundle = hw_bundle_load_settled(cli->arguments[0], &err);
    if (!bundle) return hw_cli_fail(&err);
    int status = score(cli, &o, bundle);
    hw_bundle_free(bundle);
    return status;
}

const hw_cli_command hw_cli_score = {
    .usage = "MODEL SOURCE TARGET",
    .least = 3,
    .most = 3,
    .takes = HW_CLI_JSON,
    .description = "Prints the log-probability (natural log, </s> included) that the model gives to each line of "
                   "TARGET as a translation of "
                   "that line of SOURCE, a number a line. Files may be compressed by gzip; one of them may be -, "
                   "standard input. With --json "
                   "each line is an object: log_prob, and tokens with their log_probs.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .rules = rules,
    .run = run,
};
