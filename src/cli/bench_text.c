/* The text that is measured on: files, with a vocabulary of all their words, or sentences that are made up.
 *
 * Speed does not depend on what words mean, but it does on how many there are, how common the commonest are (rows of the
 * embedding that are in cache) and how much lengths vary; so words are made up after Zipf's law, and lengths vary by half. */
#include "cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_VOCABULARY = 9537, DEFAULT_LENGTH = 13 };

bool hw_bench_text_check(bench_text_options *o, hw_error *err)
{
    if (!o->source != !o->target)
        return hw_fail(err, "--%s needs --%s: sentences and their translations, line by line", o->source ? "source" : "target",
                       o->source ? "target" : "source");
    if (o->source && o->length) return hw_fail(err, "--length: it is of made-up text; --source and --target have lengths of their own");
    if (!o->source && !o->vocabulary) o->vocabulary = DEFAULT_VOCABULARY;
    if (!o->source && !o->length) o->length = DEFAULT_LENGTH;
    return true;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef struct files {
    const hw_lines *lines[2];
    hw_tokenizer *tokenizer;
    hw_vocabulary *vocabulary;
    hw_arena *arena;
} files;

static bool read_files(files *f, const bench_text_options *o, hw_error *err)
{
    const char *const paths[2] = {o->source, o->target};
    hw_counts *counts = hw_counts_new(f->arena);
    f->tokenizer = hw_tokenizer_new(&(hw_tokenizer_options){.name = "word"}, err);
    if (!f->tokenizer) return false;
    for (int i = 0; i < 2; i++)
        if (!(f->lines[i] = hw_lines_load(f->arena, paths[i], err)) || !hw_counts_add_file(counts, f->tokenizer, paths[i], err))
            return false;
    f->vocabulary = hw_vocabulary_build(f->arena, counts, &(hw_vocabulary_options){.max_size = o->vocabulary});
    return hw_lines_parallel(f->lines[0], f->lines[1], err);
}

/* A line's ids, in `ids`, which holds as many as the line has bytes. */
static hw_ids line_ids(const files *f, int side, int64_t i, hw_tokens *tokens, int32_t *ids)
{
    size_t bytes;
    const char *line = hw_lines_get(f->lines[side], i, &bytes);
    hw_tokenizer_encode(f->tokenizer, f->vocabulary, line, bytes, tokens);
    for (int64_t k = 0; k < tokens->count; k++) ids[k] = tokens->items[k].id;
    return (hw_ids){ids, tokens->count};
}

static int64_t longest_line(const hw_lines *lines)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < lines->count; i++)
        if (lines->start[i + 1] - lines->start[i] > longest) longest = lines->start[i + 1] - lines->start[i];
    return longest;
}

static void add_lines(hw_corpus *corpus, const files *f)
{
    hw_tokens tokens = hw_tokens_new(f->arena);
    int32_t *ids[2];
    for (int side = 0; side < 2; side++)
        ids[side] = hw_arena_alloc(f->arena, (size_t)longest_line(f->lines[side]) * sizeof **ids);
    for (int64_t i = 0; i < f->lines[0]->count; i++) {
        hw_ids source = line_ids(f, 0, i, &tokens, ids[0]), target = line_ids(f, 1, i, &tokens, ids[1]);
        if (source.count && target.count) hw_corpus_add(corpus, source, target, i + 1);
    }
}

static bool load_files(bench_text *t, const bench_text_options *o, hw_error *err)
{
    files f = {.arena = hw_arena_new(0)};
    bool ok = read_files(&f, o, err);
    if (ok) {
        add_lines(t->corpus, &f);
        t->vocabulary = o->vocabulary ? o->vocabulary : hw_vocabulary_size(f.vocabulary);
        if (!hw_corpus_count(t->corpus)->pairs) ok = hw_fail(err, "%s and %s hold no pair of sentences", o->source, o->target);
    }
    hw_tokenizer_free(f.tokenizer);
    hw_arena_free(f.arena);
    return ok;
}

/* ---- made up ----------------------------------------------------------------------------------------------------- */

static hw_ids make_sentence(hw_random *random, const bench_text_options *o, int32_t *ids)
{
    double words = (double)(o->vocabulary - HW_SPECIALS);
    int64_t low = (o->length + 1) / 2, count = low + (int64_t)hw_random_below(random, (uint64_t)(o->length + o->length / 2 - low + 1));
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
        t->pairs[i] = (bench_pair){hw_corpus_source(t->corpus, i), hw_corpus_target(t->corpus, i), hw_corpus_line(t->corpus, i)};
    return true;
}

void hw_bench_text_free(bench_text *t)
{
    hw_corpus_free(t->corpus);
    free(t->pairs);
    *t = (bench_text){0};
}
