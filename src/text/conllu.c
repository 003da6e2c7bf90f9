/* Dependencies and parts of speech in the CoNLL-U format, the gold of the head study.
 *
 * https://universaldependencies.org/format.html: a word a line in ten columns separated by tabs, sentences ended by an
 * empty line, # before comments. What the study needs is kept: FORM, UPOS, FEATS, HEAD, DEPREL, and Match=ID of MISC,
 * by which our grammars name the other bracket or quotation mark of a pair. */
#include <headwise/text.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "text/lines.h"
#include "text/strings.h"

enum { ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC, COLUMNS };

/* A file while it is read. */
typedef struct reading {
    hw_arena *arena;
    const char *path;
    int64_t line;
    hw_error *err;
    hw_strings texts; /* upos and deprel repeat all the time, and so do forms */
    hw_conllu_word *words;
    int64_t *start;
    int64_t count, capacity, sentences, sentences_capacity;
} reading;

static bool fail_at(const reading *r, int64_t line, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool fail_at(const reading *r, int64_t line, const char *format, ...)
{
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return hw_fail(r->err, "%s:%" PRId64 ": %s", r->path, line, message);
}

static const char *keep(reading *r, const char *text) { return hw_strings_add(&r->texts, text, strlen(text))->text; }

/* A whole number without sign, or -1. */
static int32_t read_number(const char *text)
{
    int64_t value = *text ? 0 : -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return -1;
        value = 10 * value + (*text - '0');
        if (value > INT32_MAX) return -1;
    }
    return (int32_t)value;
}

/* Cuts the line at its tabs, in place; the number of columns, of which the first ten are stored. */
static int split(char *line, char *column[COLUMNS])
{
    int count = 0;
    for (char *next; line; line = next, count++) {
        next = strchr(line, '\t');
        if (next) *next++ = 0;
        if (count < COLUMNS) column[count] = line;
    }
    return count;
}

/* The number in Match=ID among the |-separated items of MISC; 0 where there is none, -1 where it is no number. */
static int32_t read_match(char *misc)
{
    for (char *item = misc, *next; item; item = next) {
        next = strchr(item, '|');
        if (next) *next++ = 0;
        if (!strncmp(item, "Match=", 6)) return read_number(item + 6);
    }
    return 0;
}

static bool read_word(reading *r, char *line)
{
    char *column[COLUMNS];
    int columns = split(line, column);
    if (columns != COLUMNS)
        return fail_at(r, r->line, "%d %s, but CoNLL-U has 10, separated by tabs", columns,
                       hw_plural(columns, "column", "columns"));
    if (strpbrk(column[ID], "-.")) return true; /* a multiword range or an empty node */
    int64_t expected = r->count - r->start[r->sentences - 1] + 1;
    if (read_number(column[ID]) != expected)
        return fail_at(r, r->line, "ID is \"%.40s\", but %" PRId64 " comes next", column[ID], expected);
    if (!*column[FORM]) return fail_at(r, r->line, "FORM is empty");
    int32_t head = read_number(column[HEAD]), match = read_match(column[MISC]);
    if (head < 0) return fail_at(r, r->line, "HEAD is \"%.40s\", not a number", column[HEAD]);
    if (match < 0) return fail_at(r, r->line, "Match= is not followed by a number");
    r->words = hw_grow(r->arena, r->words, r->count, &r->capacity, sizeof *r->words);
    r->words[r->count++] = (hw_conllu_word){.form = keep(r, column[FORM]),
                                            .upos = keep(r, column[UPOS]),
                                            .relation = keep(r, column[DEPREL]),
                                            .features = keep(r, column[FEATS]),
                                            .head = head - 1,
                                            .match = match - 1,
                                            .line = r->line};
    return true;
}

/* Follows the heads upwards from every word; what was found to reach a root is not gone through again. */
static bool check_circles(reading *r, const hw_conllu_word *words, int32_t n)
{
    enum { NEW, ON_THE_WAY, DONE };
    hw_arena_mark mark = hw_arena_begin(r->arena);
    uint8_t *state = hw_arena_calloc(r->arena, (size_t)n, 1);
    int32_t circle = -1;
    for (int32_t i = 0; i < n && circle < 0; i++) {
        int32_t at = i;
        for (; at >= 0 && state[at] == NEW; at = words[at].head) state[at] = ON_THE_WAY;
        if (at >= 0 && state[at] == ON_THE_WAY) circle = at;
        for (at = i; at >= 0 && state[at] == ON_THE_WAY; at = words[at].head) state[at] = DONE;
    }
    hw_arena_end(r->arena, mark);
    if (circle < 0) return true;
    return fail_at(r, words[circle].line, "the heads of word %d lead back to it in a circle", circle + 1);
}

/* Checks the sentence that has just ended, and begins the next. */
static bool end_sentence(reading *r)
{
    int32_t n = (int32_t)(r->count - r->start[r->sentences - 1]);
    if (!n) return true;
    const hw_conllu_word *words = r->words + r->start[r->sentences - 1];
    const char *noun = hw_plural(n, "word", "words");
    for (int32_t i = 0; i < n; i++) {
        const hw_conllu_word *w = &words[i];
        if (w->head >= n) return fail_at(r, w->line, "HEAD is %d, but the sentence has %d %s", w->head + 1, n, noun);
        if (w->head == i) return fail_at(r, w->line, "word %d is its own head", i + 1);
        if (w->match >= n) return fail_at(r, w->line, "Match=%d, but the sentence has %d %s", w->match + 1, n, noun);
        if (w->match >= 0 && (w->match == i || words[w->match].match != i))
            return fail_at(r, w->line, "Match=%d, but word %d does not name word %d in turn", w->match + 1,
                           w->match + 1, i + 1);
    }
    if (!check_circles(r, words, n)) return false;
    r->start = hw_grow(r->arena, r->start, r->sentences, &r->sentences_capacity, sizeof *r->start);
    r->start[r->sentences++] = r->count;
    return true;
}

static bool read_line(reading *r, char *line, size_t bytes)
{
    if (!bytes) return end_sentence(r);
    if (memchr(line, 0, bytes)) return fail_at(r, r->line, "there is a 0 byte in this line");
    return *line == '#' || read_word(r, line);
}

hw_conllu *hw_conllu_load(hw_arena *arena, const char *path, hw_error *err)
{
    hw_reader *reader = hw_reader_open(path, err);
    if (!reader) return NULL;
    reading r = {.arena = arena, .path = path, .err = err, .texts = {.arena = arena}};
    r.start = hw_grow(arena, NULL, 0, &r.sentences_capacity, sizeof *r.start);
    r.start[r.sentences++] = 0;
    char *line;
    size_t bytes;
    int got;
    while ((got = hw_next_line(reader, path, &line, &bytes, err)) == 1) {
        r.line = hw_reader_number(reader);
        if (!read_line(&r, line, bytes)) break;
    }
    hw_reader_close(reader);
    if (got || !end_sentence(&r)) return NULL; /* the last sentence needs no empty line after it */
    hw_conllu *c = hw_arena_alloc(arena, sizeof *c);
    *c = (hw_conllu){
        .count = r.sentences - 1, .path = hw_arena_string(arena, "%s", path), .start = r.start, .words = r.words};
    return c;
}

/* ---- beside a corpus --------------------------------------------------------------------------------------------- */

static bool sentence_fits(const hw_conllu *c, const hw_lines *lines, int64_t i, hw_error *err)
{
    size_t bytes, size;
    const char *text = hw_lines_get(lines, i, &bytes), *at = text, *word;
    int64_t first = c->start[i], n = c->start[i + 1] - first, m = hw_count_words(text, bytes);
    if (n != m)
        return hw_fail(err, "%s:%" PRId64 ": a sentence of %" PRId64 " %s, but line %" PRId64 " of %s has %" PRId64,
                       c->path, c->words[first].line, n, hw_plural(n, "word", "words"), i + 1, lines->path, m);
    for (int64_t k = first; hw_next_word(&at, text + bytes, &word, &size); k++) {
        char quoted[HW_QUOTE];
        if (strlen(c->words[k].form) == size && !memcmp(c->words[k].form, word, size)) continue;
        return hw_fail(err, "%s:%" PRId64 ": the word is \"%.80s\", but line %" PRId64 " of %s has %s there", c->path,
                       c->words[k].line, c->words[k].form, i + 1, lines->path, hw_quote(quoted, word, size));
    }
    return true;
}

bool hw_conllu_fit(const hw_conllu *c, const hw_lines *lines, hw_error *err)
{
    if (c->count != lines->count)
        return hw_fail(err, "%s has %" PRId64 " %s, but %s has %" PRId64 " %s; each line needs its sentence",
                       c->path, c->count, hw_plural(c->count, "sentence", "sentences"), lines->path, lines->count,
                       hw_plural(lines->count, "line", "lines"));
    for (int64_t i = 0; i < c->count; i++)
        if (!sentence_fits(c, lines, i, err)) return false;
    return true;
}
