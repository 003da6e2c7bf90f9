/* The vocabulary: tokens and ids, its file, and how it is made from counts.
 *
 * A file is read as bytes, not through hw_reader, because a token may end in \r (in a character vocabulary it may be
 * one), and whatever a token is, saving and loading must give it back. */
#include <headwise/text.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/lines.h"
#include "text/strings.h"
#include "text/vocabulary.h"

static const char *const specials[HW_SPECIALS] = {[HW_UNKNOWN] = "<unk>", [HW_BEGIN] = "<s>", [HW_END] = "</s>"};

struct hw_vocabulary {
    hw_strings tokens; /* a token's number is its id */
    size_t longest;
};

static hw_vocabulary *new_vocabulary(hw_arena *arena)
{
    hw_vocabulary *v = hw_arena_calloc(arena, 1, sizeof *v);
    v->tokens.arena = arena;
    return v;
}

bool hw_vocabulary_add(hw_vocabulary *v, const char *token, size_t bytes)
{
    int64_t count = v->tokens.count;
    HW_CHECK(count < INT32_MAX, "a vocabulary of more than 2^31 tokens");
    if (bytes > v->longest) v->longest = bytes;
    hw_strings_add(&v->tokens, token, bytes);
    return v->tokens.count > count;
}

hw_vocabulary *hw_vocabulary_begin(hw_arena *arena)
{
    hw_vocabulary *v = new_vocabulary(arena);
    for (int i = 0; i < HW_SPECIALS; i++) hw_vocabulary_add(v, specials[i], strlen(specials[i]));
    return v;
}

int32_t hw_vocabulary_size(const hw_vocabulary *v) { return (int32_t)v->tokens.count; }

size_t hw_vocabulary_longest(const hw_vocabulary *v) { return v->longest; }

int32_t hw_vocabulary_find(const hw_vocabulary *v, const char *token, size_t bytes)
{
    int64_t id = hw_strings_find(&v->tokens, token, bytes);
    return id < HW_SPECIALS ? HW_UNKNOWN : (int32_t)id;
}

const char *hw_vocabulary_token(const hw_vocabulary *v, int32_t id, size_t *bytes)
{
    HW_CHECK(id >= 0 && id < v->tokens.count, "id %d in a vocabulary of %" PRId64, id, v->tokens.count);
    if (bytes) *bytes = v->tokens.items[id].bytes;
    return v->tokens.items[id].text;
}

uint64_t hw_vocabulary_fingerprint(const hw_vocabulary *v)
{
    uint64_t hash = HW_HASH_START;
    for (int64_t i = 0; i < v->tokens.count; i++) {
        hash = hw_hash(hash, v->tokens.items[i].text, v->tokens.items[i].bytes);
        hash = hw_hash(hash, "\n", 1);
    }
    return hash;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static bool wrong_special(const char *path, int64_t id, const char *found, hw_error *err)
{
    return hw_fail(err,
                   "%s:%" PRId64 ": %s where %s is expected; a vocabulary file begins with the lines <unk>, <s>, </s>",
                   path, id + 1, found, specials[id]);
}

static bool take_line(hw_vocabulary *v, const char *path, const char *line, size_t bytes, hw_error *err)
{
    int64_t id = v->tokens.count, number = id + 1;
    char quoted[HW_QUOTE];
    if (!hw_check_utf8(path, number, 1, line, bytes, err)) return false;
    if (id < HW_SPECIALS && (bytes != strlen(specials[id]) || memcmp(line, specials[id], bytes)))
        return wrong_special(path, id, hw_quote(quoted, line, bytes), err);
    if (!bytes)
        return hw_fail(err, "%s:%" PRId64 ": an empty line; a vocabulary file has a token a line", path, number);
    int64_t before = hw_strings_find(&v->tokens, line, bytes);
    if (before >= 0)
        return hw_fail(err, "%s:%" PRId64 ": %s stands in line %" PRId64 " already; a vocabulary has each token once",
                       path, number, hw_quote(quoted, line, bytes), before + 1);
    return hw_vocabulary_add(v, line, bytes);
}

static bool take_lines(hw_vocabulary *v, const char *path, const char *text, size_t size, hw_error *err)
{
    const char *end = text + size;
    if (size >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) text += 3;
    bool returns = end - text > 6 && !memcmp(text, "<unk>\r\n", 7);
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((newline ? newline : end) - text);
        if (returns && bytes && text[bytes - 1] == '\r') bytes--;
        if (!take_line(v, path, text, bytes, err)) return false;
        text = newline ? newline + 1 : end;
    }
    if (v->tokens.count < HW_SPECIALS) return wrong_special(path, v->tokens.count, "the file ends", err);
    return true;
}

hw_vocabulary *hw_vocabulary_load(hw_arena *arena, const char *path, hw_error *err)
{
    hw_map map;
    if (!hw_map_open(&map, path, err)) return NULL;
    hw_vocabulary *v = new_vocabulary(arena);
    bool good = take_lines(v, path, map.size ? (const char *)map.data : "", map.size, err);
    hw_map_close(&map);
    return good ? v : NULL;
}

void hw_vocabulary_write(const hw_vocabulary *v, FILE *out)
{
    for (int64_t i = 0; i < v->tokens.count && !ferror(out); i++) {
        fwrite(v->tokens.items[i].text, 1, v->tokens.items[i].bytes, out);
        putc('\n', out);
    }
}

bool hw_vocabulary_save(const hw_vocabulary *v, const char *path, hw_error *err)
{
    hw_atomic file;
    if (!hw_atomic_begin(&file, path, err)) return false;
    hw_vocabulary_write(v, file.stream);
    return hw_atomic_commit(&file, err);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

struct hw_counts {
    hw_strings tokens; /* value: how often */
    int64_t total;
};

hw_counts *hw_counts_new(hw_arena *arena)
{
    hw_counts *counts = hw_arena_calloc(arena, 1, sizeof *counts);
    counts->tokens.arena = arena;
    return counts;
}

void hw_counts_add(hw_counts *counts, const char *token, size_t bytes, int64_t times)
{
    HW_CHECK(bytes > 0 && !memchr(token, '\n', bytes), "a token that no vocabulary file can hold");
    hw_strings_add(&counts->tokens, token, bytes)->value += times;
    counts->total += times;
}

bool hw_counts_add_file(hw_counts *counts, const hw_tokenizer *t, const char *path, hw_error *err)
{
    hw_reader *reader = hw_reader_open(path, err);
    if (!reader) return false;
    hw_arena *scratch = hw_arena_new(0);
    hw_tokens tokens = hw_tokens_new(scratch);
    char *line;
    size_t bytes;
    int got;
    while ((got = hw_next_line(reader, path, &line, &bytes, err)) == 1) {
        hw_tokenizer_encode(t, NULL, line, bytes, &tokens);
        for (int64_t i = 0; i < tokens.count; i++)
            hw_counts_add(counts, tokens.items[i].text, tokens.items[i].bytes, 1);
    }
    hw_arena_free(scratch);
    hw_reader_close(reader);
    return got == 0;
}

int64_t hw_counts_total(const hw_counts *counts) { return counts->total; }

int64_t hw_counts_distinct(const hw_counts *counts) { return counts->tokens.count; }

int64_t hw_counts_get(const hw_counts *counts, const char *token, size_t bytes)
{
    int64_t i = hw_strings_find(&counts->tokens, token, bytes);
    return i < 0 ? 0 : counts->tokens.items[i].value;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static int by_count_then_bytes(const void *left, const void *right)
{
    const hw_string *a = *(const hw_string *const *)left, *b = *(const hw_string *const *)right;
    if (a->value != b->value) return a->value > b->value ? -1 : 1;
    int order = memcmp(a->text, b->text, a->bytes < b->bytes ? a->bytes : b->bytes);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

hw_vocabulary *hw_vocabulary_build(hw_arena *arena, const hw_counts *counts, const hw_vocabulary_options *options)
{
    hw_vocabulary *v = hw_vocabulary_begin(arena);
    const hw_strings *tokens = &counts->tokens;
    const hw_string **order = malloc(((size_t)tokens->count + 1) * sizeof *order);
    HW_CHECK(order, "out of memory");
    int64_t kept = 0;
    for (int64_t i = 0; i < tokens->count; i++)
        if (tokens->items[i].value >= options->min_count) order[kept++] = &tokens->items[i];
    qsort(order, (size_t)kept, sizeof *order, by_count_then_bytes);
    for (int64_t i = 0; i < kept; i++) {
        if (options->max_size && v->tokens.count >= options->max_size) break;
        hw_vocabulary_add(v, order[i]->text, order[i]->bytes); /* a word spelled like a special token is there */
    }
    free(order);
    return v;
}
