/* A parallel corpus as an array of ids.
 *
 * Two readers go through the files in step. What is dropped is dropped as a pair, so source and target never shift
 * against each other, and every pair remembers its line for messages and for the gold beside the corpus. The arrays of
 * a large corpus are in files (store.h). */
#include <headwise/text.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "text/filter.h"
#include "text/lines.h"
#include "text/links.h"
#include "text/store.h"
#include "text/strings.h"

/* A pair: its source's ids are ids[start ..], its target's follow. */
typedef struct record {
    int64_t start, line;
    int32_t source, target; /* how many */
} record;

struct hw_corpus {
    hw_corpus_counts counts;
    hw_store records, ids;
    int64_t id_count;
    bool aligned; /* read with an alignment */
    hw_link_store links;
    hw_store_place place;
};

/* How many pairs are looked at between two releases of their memory. */
enum { RELEASE_EVERY = 1 << 16 };

static const char *const drop_names[HW_DROPS] = {
    [HW_DROP_BLANK] = "with a blank side",
    [HW_DROP_LONG] = "longer than the limit",
    [HW_DROP_RATIO] = "with sides of too different length",
    [HW_DROP_IDENTICAL] = "with identical sides",
    [HW_DROP_DUPLICATE] = "that stood there before",
};

/* Room for one pair more. */
static bool make_room(hw_corpus *corpus, int64_t tokens, hw_error *err)
{
    return hw_store_grow(&corpus->ids, (size_t)(corpus->id_count + tokens) * sizeof(int32_t), &corpus->place, err) &&
           hw_store_grow(&corpus->records, (size_t)(corpus->counts.pairs + 1) * sizeof(record), &corpus->place, err);
}

/* Where the ids of the next pair go. */
static int32_t *next_ids(const hw_corpus *corpus) { return (int32_t *)corpus->ids.data + corpus->id_count; }

static void count_side(const int32_t *ids, int64_t count, int64_t *tokens, int64_t *unknown, int64_t *longest)
{
    for (int64_t i = 0; i < count; i++) *unknown += ids[i] == HW_UNKNOWN;
    *tokens += count;
    if (count > *longest) *longest = count;
}

/* Takes in the pair whose ids stand at next_ids. */
static void end_pair(hw_corpus *corpus, int64_t source, int64_t target, int64_t line)
{
    hw_corpus_counts *n = &corpus->counts;
    const int32_t *ids = next_ids(corpus);
    count_side(ids, source, &n->source_tokens, &n->source_unknown, &n->source_longest);
    count_side(ids + source, target, &n->target_tokens, &n->target_unknown, &n->target_longest);
    ((record *)corpus->records.data)[n->pairs++] =
        (record){.start = corpus->id_count, .line = line, .source = (int32_t)source, .target = (int32_t)target};
    corpus->id_count += source + target;
}

hw_corpus *hw_corpus_new(void)
{
    hw_corpus *corpus = calloc(1, sizeof *corpus);
    HW_CHECK(corpus, "out of memory");
    return corpus;
}

void hw_corpus_release(const hw_corpus *corpus)
{
    hw_store_release(&corpus->records);
    hw_store_release(&corpus->ids);
    hw_link_store_release(&corpus->links);
}

void hw_corpus_free(hw_corpus *corpus)
{
    if (!corpus) return;
    hw_store_free(&corpus->records);
    hw_store_free(&corpus->ids);
    hw_link_store_free(&corpus->links);
    free(corpus);
}

void hw_corpus_add(hw_corpus *corpus, hw_ids source, hw_ids target, int64_t line)
{
    hw_error err;
    HW_CHECK(source.count > 0 && target.count > 0, "a pair with an empty side");
    HW_CHECK(!corpus->aligned, "a pair without links");
    HW_CHECK(make_room(corpus, source.count + target.count, &err), "%s", err.message);
    memcpy(next_ids(corpus), source.ids, (size_t)source.count * sizeof *source.ids);
    memcpy(next_ids(corpus) + source.count, target.ids, (size_t)target.count * sizeof *target.ids);
    end_pair(corpus, source.count, target.count, line);
    corpus->counts.lines++;
}

const hw_corpus_counts *hw_corpus_count(const hw_corpus *corpus) { return &corpus->counts; }

static const record *record_of(const hw_corpus *corpus, int64_t pair)
{
    HW_CHECK(pair >= 0 && pair < corpus->counts.pairs, "pair %" PRId64 " of %" PRId64, pair, corpus->counts.pairs);
    return (const record *)corpus->records.data + pair;
}

hw_ids hw_corpus_source(const hw_corpus *corpus, int64_t pair)
{
    const record *r = record_of(corpus, pair);
    return (hw_ids){.ids = (const int32_t *)corpus->ids.data + r->start, .count = r->source};
}

hw_ids hw_corpus_target(const hw_corpus *corpus, int64_t pair)
{
    const record *r = record_of(corpus, pair);
    return (hw_ids){.ids = (const int32_t *)corpus->ids.data + r->start + r->source, .count = r->target};
}

int64_t hw_corpus_line(const hw_corpus *corpus, int64_t pair) { return record_of(corpus, pair)->line; }

bool hw_corpus_has_links(const hw_corpus *corpus) { return corpus->aligned; }

hw_word_links hw_corpus_word_links(const hw_corpus *corpus, int64_t pair)
{
    return corpus->aligned ? hw_link_store_at(&corpus->links, pair) : (hw_word_links){0};
}

/* FNV-1a over whole numbers instead of bytes; its upper half is folded into the lower, which multiplying never does. */
static uint64_t mix(uint64_t state, uint64_t number)
{
    state = (state ^ number) * UINT64_C(1099511628211);
    return state ^ state >> 32;
}

static uint64_t mix_links(uint64_t state, const hw_corpus *corpus, int64_t pair)
{
    int64_t count;
    const int32_t *numbers = hw_link_store_numbers(&corpus->links, pair, &count);
    for (int64_t i = 0; i < count; i++) state = mix(state, (uint64_t)numbers[i]);
    return mix(state, (uint64_t)count);
}

uint64_t hw_corpus_fingerprint(const hw_corpus *corpus)
{
    uint64_t state = HW_HASH_START;
    for (int64_t pair = 0; pair < corpus->counts.pairs; pair++) {
        const record *r = record_of(corpus, pair);
        const int32_t *ids = (const int32_t *)corpus->ids.data + r->start;
        const uint64_t numbers[] = {(uint64_t)r->line, (uint64_t)r->source, (uint64_t)r->target};
        for (int i = 0; i < 3; i++) state = mix(state, numbers[i]);
        for (int64_t i = 0; i < r->source + r->target; i++) state = mix(state, (uint64_t)ids[i]);
        if (corpus->aligned) state = mix_links(state, corpus, pair);
        if (pair % RELEASE_EVERY == 0) hw_corpus_release(corpus);
    }
    return state;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* One side while it is read. */
typedef struct input {
    const hw_side *side;
    char path[HW_PATH];
    hw_reader *reader;
    hw_tokens tokens; /* of the line */
    hw_filter_side line;
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
    if (!hw_tokenizer_encode(in->side->tokenizer, in->side->vocabulary, line, bytes, &in->tokens)) {
        hw_tokenizer_failed(in->path, hw_reader_number(in->reader), err);
        return -1;
    }
    in->line = (hw_filter_side){line, bytes, in->tokens.count + in->tokens.unread};
    return 1;
}

/* The alignment of both, where one is read. */
typedef struct alignment {
    char path[HW_PATH];
    hw_reader *reader;  /* NULL: none is */
    hw_link_list links; /* of the line */
} alignment;

static bool open_alignment(alignment *a, const char *directory, const char *prefix, const char *suffix, hw_error *err)
{
    if (!hw_corpus_path(a->path, directory, prefix, suffix, err)) return false;
    a->reader = hw_reader_open(a->path, err);
    return a->reader != NULL;
}

/* Alignment and pairs have different numbers of lines: reads on to the end of each. */
static bool other_length(const alignment *a, const input *source, hw_error *err)
{
    char *line;
    size_t bytes;
    int got[2] = {1, 1};
    while (got[0] == 1) got[0] = hw_next_line(a->reader, a->path, &line, &bytes, err);
    while (got[1] == 1) got[1] = hw_next_line(source->reader, source->path, &line, &bytes, err);
    if (got[0] < 0 || got[1] < 0) return false;
    int64_t lines = hw_reader_number(a->reader);
    return hw_fail(err, "%s has %" PRId64 " %s, but %s has %" PRId64 "; each pair needs a line, empty or not", a->path,
                   lines, hw_plural(lines, "line", "lines"), source->path, hw_reader_number(source->reader));
}

/* The links of the pair that was just read. */
static bool read_alignment(alignment *a, const input *source, const input *target, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = hw_next_line(a->reader, a->path, &line, &bytes, err);
    if (got < 0) return false;
    if (!got) return other_length(a, source, err);
    const int64_t words[] = {hw_count_words(source->line.line, source->line.bytes),
                             hw_count_words(target->line.line, target->line.bytes)};
    a->links.count = 0;
    return hw_links_read(&a->links, a->path, hw_reader_number(a->reader), line, bytes, words, err);
}

/* Keeps them with the pair that is being taken in. */
static bool take_links(hw_corpus *corpus, alignment *a, const input *source, const input *target, hw_error *err)
{
    const input *const sides[] = {source, target};
    hw_arena *arena = a->links.arena;
    hw_word_links w = {0};
    for (int s = 0; s < 2; s++)
        w.tokens[s] = hw_word_tokens(sides[s]->side, sides[s]->line.line, sides[s]->line.bytes, &sides[s]->tokens,
                                     arena, &w.words[s]);
    if (!hw_links_fit(&w, a->links.items, a->links.count, a->path, hw_reader_number(a->reader), err)) return false;
    corpus->counts.aligned += a->links.count > 0;
    return hw_link_store_add(&corpus->links, &w, a->links.items, a->links.count, &corpus->place, err) ||
           hw_fail_in(err, "%s: ", source->path);
}

/* Reads on to the end of the longer side, so that the message can say both lengths. */
static bool different_lengths(input *source, input *target, hw_error *err)
{
    input *sides[2] = {source, target};
    char *line;
    size_t bytes;
    for (int i = 0; i < 2; i++) {
        int got;
        while ((got = hw_next_line(sides[i]->reader, sides[i]->path, &line, &bytes, err)) == 1) continue;
        if (got < 0) return false;
    }
    return hw_fail(err, "%s has %" PRId64 " %s, but %s has %" PRId64 "; line by line they must be translations",
                   source->path, hw_reader_number(source->reader),
                   hw_plural(hw_reader_number(source->reader), "line", "lines"), target->path,
                   hw_reader_number(target->reader));
}

static bool take_pair(hw_corpus *corpus, hw_filter *filter, const input *source, const input *target, alignment *links,
                      hw_error *err)
{
    hw_drop drop;
    if (links->reader && !read_alignment(links, source, target, err)) return false;
    if (!hw_filter_pair(filter, &source->line, &target->line, &drop, err)) return false;
    if (++corpus->counts.lines % RELEASE_EVERY == 0) hw_corpus_release(corpus);
    if (drop != HW_DROPS) {
        corpus->counts.dropped[drop]++;
        return true;
    }
    const hw_tokens *s = &source->tokens, *t = &target->tokens;
    if (!make_room(corpus, s->count + t->count, err)) return hw_fail_in(err, "%s: ", source->path);
    if (links->reader && !take_links(corpus, links, source, target, err)) return false;
    int32_t *ids = next_ids(corpus);
    for (int64_t i = 0; i < s->count; i++) *ids++ = s->items[i].id;
    for (int64_t i = 0; i < t->count; i++) *ids++ = t->items[i].id;
    end_pair(corpus, s->count, t->count, hw_reader_number(source->reader));
    return true;
}

/* Is there nothing left in it? */
static bool end_alignment(const alignment *a, const input *source, hw_error *err)
{
    char *line;
    size_t bytes;
    int got = a->reader ? hw_next_line(a->reader, a->path, &line, &bytes, err) : 0;
    return !got || (got == 1 && other_length(a, source, err));
}

/* What a line needs in memory goes with it. */
static hw_tokens tokens_of_line(hw_arena *arena, const hw_filter *filter)
{
    hw_tokens tokens = hw_tokens_new(arena);
    tokens.most = filter->options->max_length;
    return tokens;
}

static bool read_pairs(hw_corpus *corpus, hw_filter *filter, input *source, input *target, alignment *links,
                       hw_arena *arena, hw_error *err)
{
    for (;;) {
        hw_arena_reset(arena);
        source->tokens = tokens_of_line(arena, filter);
        target->tokens = tokens_of_line(arena, filter);
        links->links = (hw_link_list){.arena = arena};
        int got = read_input(source, err), other = got < 0 ? got : read_input(target, err);
        if (got < 0 || other < 0) return false;
        if (got != other) return different_lengths(source, target, err);
        if (!got) break;
        if (!take_pair(corpus, filter, source, target, links, err)) return false;
    }
    if (!end_alignment(links, source, err)) return false;
    if (corpus->counts.pairs) return true;
    char text[512];
    return hw_fail(err, "%s and %s hold no pair of sentences that can be used: %s", source->path, target->path,
                   hw_corpus_describe(corpus, text));
}

hw_corpus *hw_corpus_load(const char *directory, const char *prefix, const hw_side *source, const hw_side *target,
                          const hw_corpus_options *options, hw_error *err)
{
    static const hw_corpus_options all = {0};
    hw_corpus *corpus = hw_corpus_new();
    hw_filter filter = {.options = options ? options : &all};
    filter.too_long.most = filter.options->max_length;
    corpus->place = filter.place = (hw_store_place){filter.options->scratch, filter.options->memory};
    hw_arena *scratch = hw_arena_new(0);
    input in = {.side = source}, out = {.side = target};
    alignment links = {0};
    const char *suffix = filter.options->alignment;
    corpus->aligned = suffix;
    bool good = open_input(&in, directory, prefix, err) && open_input(&out, directory, prefix, err) &&
                (!suffix || open_alignment(&links, directory, prefix, suffix, err)) &&
                read_pairs(corpus, &filter, &in, &out, &links, scratch, err);
    hw_reader_close(in.reader);
    hw_reader_close(out.reader);
    hw_reader_close(links.reader);
    corpus->counts.too_long = filter.too_long;
    hw_arena_free(scratch);
    hw_filter_clear(&filter);
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
    char a[32], b[32], c[32], d[32];
    *text = 0;
    say(text, "%s of %s %s", hw_thousands(n->pairs, a), hw_thousands(n->lines, b),
        hw_plural(n->lines, "pair", "pairs"));
    const char *before = " (dropped: ";
    for (int i = 0; i < HW_DROPS; i++) {
        if (!n->dropped[i]) continue;
        say(text, "%s%s %s", before, hw_thousands(n->dropped[i], a), drop_names[i]);
        before = ", ";
    }
    if (n->pairs < n->lines) say(text, ")");
    say(text, ", %s source %s (%s unknown), %s target %s (%s unknown)", hw_thousands(n->source_tokens, a),
        hw_plural(n->source_tokens, "token", "tokens"), hw_thousands(n->source_unknown, b),
        hw_thousands(n->target_tokens, c), hw_plural(n->target_tokens, "token", "tokens"),
        hw_thousands(n->target_unknown, d));
    return text;
}
