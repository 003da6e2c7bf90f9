/* The text that is measured on: files, with a vocabulary of all their words, or sentences that are made up.
 *
 * Speed does not depend on what words mean, but it does on how many there are, how common the commonest are (rows of
 * the embedding that are in cache) and how much lengths vary; so words are made up after Zipf's law, and lengths vary
 * by half. */
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEFAULT_VOCABULARY = 9537, DEFAULT_LENGTH = 13 };

const hw_cli_rule hw_bench_text_rules[] = {
    {"source", HW_CLI_NEEDS, "target", ": sentences and their translations, line by line"},
    {"target", HW_CLI_NEEDS, "source", ": sentences and their translations, line by line"},
    {"length", HW_CLI_EXCLUDES, "source", ": it is of made-up text"},
    {0},
};

void hw_bench_text_complete(bench_text_options *o)
{
    if (o->source) return;
    if (!o->vocabulary) o->vocabulary = DEFAULT_VOCABULARY;
    if (!o->length) o->length = DEFAULT_LENGTH;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct side {
    const char *path;
    hw_reader *reader;
    hw_tokens tokens; /* of the line */
    int32_t *ids;     /* and their ids; grows */
    int64_t room;
} side;

/* Both files, read in step. */
typedef struct files {
    side sides[2];
    hw_tokenizer *tokenizer;
    hw_vocabulary *vocabulary;
    hw_arena *arena;
} files;

static bool is_file(const char *path, hw_error *err)
{
    struct stat status;
    if (strcmp(path, "-") && (stat(path, &status) || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return true;
    return hw_fail(err, "%s: it is a pipe or a device, but it is read twice; a file is needed", path);
}

static bool open_files(files *f, const bench_text_options *o, hw_error *err)
{
    const char *const paths[2] = {o->source, o->target};
    if (!is_file(o->source, err) || !is_file(o->target, err)) return false;
    hw_counts *counts = hw_counts_new(f->arena);
    f->tokenizer = hw_tokenizer_new(&(hw_tokenizer_options){.name = "word"}, err);
    for (int i = 0; i < 2; i++)
        if (!f->tokenizer || !hw_counts_add_file(counts, f->tokenizer, paths[i], err)) return false;
    f->vocabulary = hw_vocabulary_build(f->arena, counts, &(hw_vocabulary_options){.max_size = o->vocabulary});
    for (int i = 0; i < 2; i++) {
        f->sides[i] = (side){.path = paths[i], .tokens = hw_tokens_new(f->arena)};
        if (!(f->sides[i].reader = hw_reader_open(paths[i], err))) return false;
    }
    return true;
}

/* 1: a line's ids; 0: the end; -1: an error. That text is UTF-8 was seen when words were counted. */
static int read_ids(const files *f, side *s, hw_ids *out, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = hw_reader_line(s->reader, &line, &bytes, err);
    if (got != 1) return got;
    hw_tokenizer_encode(f->tokenizer, f->vocabulary, line, bytes, &s->tokens);
    if (s->tokens.count > s->room) {
        s->room = 2 * s->tokens.count;
        s->ids = hw_arena_alloc(f->arena, (size_t)s->room * sizeof *s->ids);
    }
    for (int64_t i = 0; i < s->tokens.count; i++) s->ids[i] = s->tokens.items[i].id;
    *out = (hw_ids){s->ids, s->tokens.count};
    return 1;
}

/* A pair with a blank side is left out. */
static bool read_pairs(files *f, hw_corpus *corpus, hw_error *err)
{
    side *source = &f->sides[0], *target = &f->sides[1];
    hw_ids from, to;
    for (;;) {
        int got = read_ids(f, source, &from, err), other = got < 0 ? got : read_ids(f, target, &to, err);
        if (got < 0 || other < 0) return false;
        if (got != other)
            return hw_fail(err, "%s ends at line %lld, where %s goes on; line by line they must be translations",
                           got ? target->path : source->path,
                           (long long)hw_reader_number(got ? target->reader : source->reader),
                           got ? source->path : target->path);
        if (!got) break;
        if (from.count && to.count) hw_corpus_add(corpus, from, to, hw_reader_number(source->reader));
    }
    if (hw_corpus_count(corpus)->pairs) return true;
    return hw_fail(err, "%s and %s hold no pair of sentences", source->path, target->path);
}

static bool load_files(bench_text *t, const bench_text_options *o, hw_error *err)
{
    files f = {.arena = hw_arena_new(0)};
    bool ok = open_files(&f, o, err) && read_pairs(&f, t->corpus, err);
    if (ok) t->vocabulary = o->vocabulary ? o->vocabulary : hw_vocabulary_size(f.vocabulary);
    for (int i = 0; i < 2; i++) hw_reader_close(f.sides[i].reader);
    hw_tokenizer_free(f.tokenizer);
    hw_arena_free(f.arena);
    return ok;
}

/* ---- made up ----------------------------------------------------------------------------------------------------- */

static hw_ids make_sentence(hw_random *random, const bench_text_options *o, int32_t *ids)
{
    double words = (double)(o->vocabulary - HW_SPECIALS);
    int64_t low = (o->length + 1) / 2,
            count = low + (int64_t)hw_random_below(random, (uint64_t)(o->length + o->length / 2 - low + 1));
    for (int64_t i = 0; i < count; i++) /* P(rank) ~ 1 / rank: log(rank) is uniform */
        ids[i] = HW_SPECIALS + (int32_t)fmin(words - 1, exp(hw_random_uniform(random) * log(words + 1)) - 1);
    return (hw_ids){ids, count};
}

static void make_up(bench_text *t, const bench_text_options *o, int64_t pairs)
{
    hw_random random = hw_random_new(1, 0);
    size_t room = (size_t)(2 * o->length) * sizeof(int32_t);
    int32_t *source = malloc(room), *target = malloc(room);
    HW_CHECK(source && target, "no memory for a sentence of %lld words", (long long)o->length);
    for (int64_t i = 0; i < pairs; i++) {
        hw_ids from = make_sentence(&random, o, source), to = make_sentence(&random, o, target);
        hw_corpus_add(t->corpus, from, to, i + 1);
    }
    free(source);
    free(target);
    t->vocabulary = o->vocabulary;
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static int compare(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int by_source(const void *a, const void *b)
{
    const bench_pair *x = a, *y = b;
    int order = compare(x->source.count, y->source.count);
    if (!order) order = compare(x->target.count, y->target.count);
    return order ? order : compare(x->line, y->line);
}

static int by_target(const void *a, const void *b)
{
    const bench_pair *x = a, *y = b;
    int order = compare(x->target.count, y->target.count);
    return order ? order : by_source(a, b);
}

void hw_bench_text_sort(bench_text *t, bool target_first)
{
    qsort(t->pairs, (size_t)t->count, sizeof *t->pairs, target_first ? by_target : by_source);
}

bool hw_bench_text_load(bench_text *t, const bench_text_options *o, int64_t made_up, hw_error *err)
{
    *t = (bench_text){.corpus = hw_corpus_new()};
    if (!o->source) {
        make_up(t, o, made_up);
    } else if (!load_files(t, o, err)) {
        hw_bench_text_free(t);
        return false;
    }
    const hw_corpus_counts *n = hw_corpus_count(t->corpus);
    t->count = n->pairs;
    t->longest = 1 + (n->source_longest > n->target_longest ? n->source_longest : n->target_longest);
    t->pairs = malloc((size_t)t->count * sizeof *t->pairs);
    HW_CHECK(t->pairs, "no memory for %lld pairs", (long long)t->count);
    for (int64_t i = 0; i < t->count; i++)
        t->pairs[i] =
            (bench_pair){hw_corpus_source(t->corpus, i), hw_corpus_target(t->corpus, i), hw_corpus_line(t->corpus, i)};
    return true;
}

void hw_bench_text_free(bench_text *t)
{
    hw_corpus_free(t->corpus);
    free(t->pairs);
    *t = (bench_text){0};
}
