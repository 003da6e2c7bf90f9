/* A parallel corpus as arrays of ids.
 *
 * Two readers go through the files in step. What is dropped is dropped as a pair, so source and target never shift
 * against each other, and every pair remembers its line for messages and for the gold beside the corpus. Pairs are read
 * through functions only, so that a corpus which does not fit in memory can be mapped instead without anyone else
 * changing. */
#include <headwise/text.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text/lines.h"
#include "text/strings.h"

/* The tokens of all sentences of one side, one after another. */
typedef struct column {
    int32_t *ids;
    int64_t count, capacity;
    int64_t *ends; /* [pairs] where each sentence ends in ids */
    int64_t ends_capacity;
} column;

struct hw_corpus {
    hw_corpus_counts counts;
    column source, target;
    int64_t *lines; /* [pairs] */
    int64_t lines_capacity;
};

static const char *const drop_names[HW_DROPS] = {
    [HW_DROP_BLANK] = "with a blank side",
    [HW_DROP_LONG] = "longer than the limit",
};

/* Room for count items in all; false where the machine has none. */
static bool make_room(void **items, int64_t count, int64_t *capacity, size_t size)
{
    if (count <= *capacity) return true;
    int64_t larger = count + count / 2 + 64;
    void *moved = realloc(*items, (size_t)larger * size);
    if (!moved) return false;
    *items = moved;
    *capacity = larger;
    return true;
}

static bool column_room(column *c, int64_t pairs, int64_t tokens)
{
    return make_room((void **)&c->ids, c->count + tokens, &c->capacity, sizeof *c->ids) &&
           make_room((void **)&c->ends, pairs + 1, &c->ends_capacity, sizeof *c->ends);
}

static bool corpus_room(hw_corpus *corpus, int64_t source_tokens, int64_t target_tokens)
{
    int64_t pairs = corpus->counts.pairs;
    return column_room(&corpus->source, pairs, source_tokens) && column_room(&corpus->target, pairs, target_tokens) &&
           make_room((void **)&corpus->lines, pairs + 1, &corpus->lines_capacity, sizeof *corpus->lines);
}

static hw_ids column_get(const column *c, int64_t pair)
{
    int64_t start = pair ? c->ends[pair - 1] : 0;
    return (hw_ids){.ids = c->ids + start, .count = c->ends[pair] - start};
}

/* Counts the sentence that was put at the end of the column. */
static void column_end(column *c, int64_t pair, int64_t count, int64_t *tokens, int64_t *unknown, int64_t *longest)
{
    for (int64_t i = 0; i < count; i++) *unknown += c->ids[c->count + i] == HW_UNKNOWN;
    c->count += count;
    c->ends[pair] = c->count;
    *tokens += count;
    if (count > *longest) *longest = count;
}

/* Takes in the pair whose ids stand behind the end of both columns. */
static void end_pair(hw_corpus *corpus, int64_t source, int64_t target, int64_t line)
{
    hw_corpus_counts *n = &corpus->counts;
    column_end(&corpus->source, n->pairs, source, &n->source_tokens, &n->source_unknown, &n->source_longest);
    column_end(&corpus->target, n->pairs, target, &n->target_tokens, &n->target_unknown, &n->target_longest);
    corpus->lines[n->pairs++] = line;
}

hw_corpus *hw_corpus_new(void)
{
    hw_corpus *corpus = calloc(1, sizeof *corpus);
    HW_CHECK(corpus, "out of memory");
    return corpus;
}

void hw_corpus_free(hw_corpus *corpus)
{
    if (!corpus) return;
    free(corpus->source.ids);
    free(corpus->source.ends);
    free(corpus->target.ids);
    free(corpus->target.ends);
    free(corpus->lines);
    free(corpus);
}

void hw_corpus_add(hw_corpus *corpus, hw_ids source, hw_ids target, int64_t line)
{
    HW_CHECK(source.count > 0 && target.count > 0, "a pair with an empty side");
    HW_CHECK(corpus_room(corpus, source.count, target.count), "out of memory");
    memcpy(corpus->source.ids + corpus->source.count, source.ids, (size_t)source.count * sizeof *source.ids);
    memcpy(corpus->target.ids + corpus->target.count, target.ids, (size_t)target.count * sizeof *target.ids);
    end_pair(corpus, source.count, target.count, line);
    corpus->counts.lines++;
}

const hw_corpus_counts *hw_corpus_count(const hw_corpus *corpus) { return &corpus->counts; }

static void check_pair(const hw_corpus *corpus, int64_t pair)
{
    HW_CHECK(pair >= 0 && pair < corpus->counts.pairs, "pair %" PRId64 " of %" PRId64, pair, corpus->counts.pairs);
}

hw_ids hw_corpus_source(const hw_corpus *corpus, int64_t pair)
{
    check_pair(corpus, pair);
    return column_get(&corpus->source, pair);
}

hw_ids hw_corpus_target(const hw_corpus *corpus, int64_t pair)
{
    check_pair(corpus, pair);
    return column_get(&corpus->target, pair);
}

int64_t hw_corpus_line(const hw_corpus *corpus, int64_t pair)
{
    check_pair(corpus, pair);
    return corpus->lines[pair];
}

/* FNV-1a over whole numbers instead of bytes; its upper half is folded into the lower, which multiplying never does. */
static uint64_t mix(uint64_t state, uint64_t number)
{
    state = (state ^ number) * UINT64_C(1099511628211);
    return state ^ state >> 32;
}

static uint64_t column_fingerprint(const column *c, int64_t pairs, uint64_t state)
{
    for (int64_t i = 0; i < c->count; i++) state = mix(state, (uint64_t)c->ids[i]);
    for (int64_t i = 0; i < pairs; i++) state = mix(state, (uint64_t)c->ends[i]);
    return state;
}

uint64_t hw_corpus_fingerprint(const hw_corpus *corpus)
{
    int64_t pairs = corpus->counts.pairs;
    uint64_t state = column_fingerprint(&corpus->source, pairs, HW_HASH_START);
    state = column_fingerprint(&corpus->target, pairs, state);
    for (int64_t i = 0; i < pairs; i++) state = mix(state, (uint64_t)corpus->lines[i]);
    return state;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* One side while it is read. */
typedef struct input {
    const hw_side *side;
    char path[HW_PATH];
    hw_reader *reader;
    hw_tokens tokens; /* of the line */
    bool blank;
} input;

static bool open_input(input *in, const char *directory, const char *prefix, hw_error *err)
{
    if (!hw_corpus_path(in->path, directory, prefix, in->side->suffix, err)) return false;
    in->reader = hw_reader_open(in->path, err);
    return in->reader != NULL;
}

/* 1: a line, cut into tokens; 0: the end; -1: an error. */
static int read_input(input *in, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = hw_next_line(in->reader, in->path, &line, &bytes, err);
    if (got != 1) return got;
    in->blank = hw_count_words(line, bytes) == 0;
    hw_tokenizer_encode(in->side->tokenizer, in->side->vocabulary, line, bytes, &in->tokens);
    return 1;
}

/* Reads on to the end of the longer side, so that the message can say both lengths. */
static bool different_lengths(input *source, input *target, hw_error *err)
{
    input *sides[2] = {source, target};
    for (int i = 0; i < 2; i++) {
        int got;
        while ((got = read_input(sides[i], err)) == 1) continue;
        if (got < 0) return false;
    }
    return hw_fail(err, "%s has %" PRId64 " lines, but %s has %" PRId64 "; line by line they must be translations",
                   source->path, hw_reader_number(source->reader), target->path, hw_reader_number(target->reader));
}

/* Why the pair is not wanted, or HW_DROPS. */
static hw_drop reason_to_drop(const input *source, const input *target, int64_t max_length)
{
    if (source->blank || target->blank) return HW_DROP_BLANK;
    if (max_length && (source->tokens.count > max_length || target->tokens.count > max_length)) return HW_DROP_LONG;
    return HW_DROPS;
}

static bool take_pair(hw_corpus *corpus, const input *source, const input *target, int64_t max_length, hw_error *err)
{
    corpus->counts.lines++;
    hw_drop drop = reason_to_drop(source, target, max_length);
    if (drop != HW_DROPS) {
        corpus->counts.dropped[drop]++;
        return true;
    }
    const hw_tokens *s = &source->tokens, *t = &target->tokens;
    if (!corpus_room(corpus, s->count, t->count))
        return hw_fail(err, "%s: this machine has not enough memory for the corpus (%" PRId64 " pairs so far)",
                       source->path, corpus->counts.pairs);
    for (int64_t i = 0; i < s->count; i++) corpus->source.ids[corpus->source.count + i] = s->items[i].id;
    for (int64_t i = 0; i < t->count; i++) corpus->target.ids[corpus->target.count + i] = t->items[i].id;
    end_pair(corpus, s->count, t->count, hw_reader_number(source->reader));
    return true;
}

static bool read_pairs(hw_corpus *corpus, input *source, input *target, int64_t max_length, hw_error *err)
{
    for (;;) {
        int got = read_input(source, err), other = got < 0 ? got : read_input(target, err);
        if (got < 0 || other < 0) return false;
        if (got != other) return different_lengths(source, target, err);
        if (!got) break;
        if (!take_pair(corpus, source, target, max_length, err)) return false;
    }
    if (corpus->counts.pairs) return true;
    char text[512];
    return hw_fail(err, "%s and %s hold no pair of sentences that can be used: %s", source->path, target->path,
                   hw_corpus_describe(corpus, text));
}

hw_corpus *hw_corpus_load(const char *directory, const char *prefix, const hw_side *source, const hw_side *target,
                          int64_t max_length, hw_error *err)
{
    hw_corpus *corpus = hw_corpus_new();
    hw_arena *scratch = hw_arena_new(0);
    input in = {.side = source, .tokens = hw_tokens_new(scratch)};
    input out = {.side = target, .tokens = hw_tokens_new(scratch)};
    bool good = open_input(&in, directory, prefix, err) && open_input(&out, directory, prefix, err) &&
                read_pairs(corpus, &in, &out, max_length, err);
    hw_reader_close(in.reader);
    hw_reader_close(out.reader);
    hw_arena_free(scratch);
    if (good) return corpus;
    hw_corpus_free(corpus);
    return NULL;
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

static void say(char text[512], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(char text[512], const char *format, ...)
{
    size_t size = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + size, 512 - size, format, arguments);
    va_end(arguments);
}

const char *hw_corpus_describe(const hw_corpus *corpus, char text[512])
{
    const hw_corpus_counts *n = &corpus->counts;
    *text = 0;
    say(text, "%" PRId64 " of %" PRId64 " pairs", n->pairs, n->lines);
    const char *before = " (dropped: ";
    for (int i = 0; i < HW_DROPS; i++) {
        if (!n->dropped[i]) continue;
        say(text, "%s%" PRId64 " %s", before, n->dropped[i], drop_names[i]);
        before = ", ";
    }
    if (n->pairs < n->lines) say(text, ")");
    say(text, ", %" PRId64 " source tokens (%" PRId64 " unknown), %" PRId64 " target tokens (%" PRId64 " unknown)",
        n->source_tokens, n->source_unknown, n->target_tokens, n->target_unknown);
    return text;
}
