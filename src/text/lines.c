/* Files of lines: where a corpus' files are, reading them whole, and what all readers of text share (lines.h). */
#include <headwise/text.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "text/lines.h"
#include "text/strings.h"

bool hw_next_word(const char **at, const char *end, const char **word, size_t *bytes)
{
    const char *p = *at;
    while (p < end && hw_is_blank(*p)) p++;
    *word = p;
    while (p < end && !hw_is_blank(*p)) p++;
    *bytes = (size_t)(p - *word);
    *at = p;
    return *bytes > 0;
}

int64_t hw_count_words(const char *text, size_t bytes)
{
    int64_t count = 0;
    const char *at = text, *word;
    size_t size;
    while (hw_next_word(&at, text + bytes, &word, &size)) count++;
    return count;
}

bool hw_check_utf8(const char *path, int64_t line, int64_t first, const char *text, size_t bytes, hw_error *err)
{
    int64_t at = hw_utf8_invalid(text, bytes);
    if (at < 0) return true;
    return hw_fail(err,
                   "%s:%" PRId64 ": byte %" PRId64 " is 0x%02X, which is not valid UTF-8; convert the file to UTF-8",
                   path, line, first + at, (unsigned)(uint8_t)text[at]);
}

int hw_next_line(hw_reader *reader, const char *path, char **line, size_t *bytes, hw_error *err)
{
    int got = hw_reader_line(reader, line, bytes, err);
    const char *name = strcmp(path, "-") ? path : "standard input";
    if (got != 1) return got;
    return hw_check_utf8(name, hw_reader_number(reader), hw_reader_byte(reader, 0), *line, *bytes, err) ? 1 : -1;
}

const char *hw_quote(char out[HW_QUOTE], const char *text, size_t bytes)
{
    const size_t most = HW_QUOTE - 6; /* two quotes, three dots, a 0 byte */
    size_t size = bytes < most ? bytes : most;
    while (size < bytes && size > 0 && ((uint8_t)text[size] & 0xC0) == 0x80) size--; /* not inside a code point */
    char *p = out;
    *p++ = '"';
    for (size_t i = 0; i < size; i++) *p++ = (uint8_t)text[i] < 0x20 || text[i] == 0x7F ? '?' : text[i];
    if (size < bytes) p = (char *)memcpy(p, "...", 3) + 3;
    *p++ = '"';
    *p = 0;
    return out;
}

bool hw_check_rereadable(const char *path, hw_error *err)
{
    struct stat status;
    if (!strcmp(path, "-")) return hw_fail(err, "standard input: it is read more than once; a file is needed");
    if (stat(path, &status) || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return true;
    return hw_fail(err, "%s: it is a pipe or a device, but it is read more than once; a file is needed", path);
}

bool hw_corpus_path(char path[HW_PATH], const char *directory, const char *prefix, const char *suffix, hw_error *err)
{
    int size = snprintf(path, HW_PATH, "%s/%s.%s", directory, prefix, suffix);
    if (size < 0 || size + 4 > HW_PATH) return hw_fail(err, "%.200s...: the path is too long", path);
    struct stat status;
    bool there = !stat(path, &status);
    if (!there) memcpy(path + size, ".gz", 4);
    if (there || !stat(path, &status)) return hw_check_rereadable(path, err);
    if (errno == EACCES)
        return hw_fail(err, "%s/%s.%s: cannot be read: %s", directory, prefix, suffix, strerror(errno));
    return hw_fail(err, "%s/%s.%s: there is no such file, nor %s/%s.%s.gz", directory, prefix, suffix, directory,
                   prefix, suffix);
}

/* Text and offsets that grow while a file is read. */
typedef struct growing {
    char *text;
    int64_t *start;
    int64_t bytes, room, count, capacity;
} growing;

static void append(hw_arena *arena, growing *g, const char *line, size_t bytes)
{
    if (g->bytes + (int64_t)bytes + 1 > g->room) {
        g->room = 2 * (g->bytes + (int64_t)bytes + 1);
        char *larger = hw_arena_alloc(arena, (size_t)g->room);
        if (g->bytes) memcpy(larger, g->text, (size_t)g->bytes);
        g->text = larger;
    }
    memcpy(g->text + g->bytes, line, bytes);
    g->bytes += (int64_t)bytes;
    g->text[g->bytes++] = 0;
    g->start = hw_grow(arena, g->start, g->count, &g->capacity, sizeof *g->start);
    g->start[g->count++] = g->bytes;
}

hw_lines *hw_lines_load(hw_arena *arena, const char *path, hw_error *err)
{
    hw_reader *reader = hw_reader_open(path, err);
    if (!reader) return NULL;
    growing g = {0};
    g.start = hw_grow(arena, NULL, 0, &g.capacity, sizeof *g.start);
    g.start[g.count++] = 0;
    char *line;
    size_t bytes;
    int got;
    while ((got = hw_next_line(reader, path, &line, &bytes, err)) == 1) append(arena, &g, line, bytes);
    hw_reader_close(reader);
    if (got < 0) return NULL;
    hw_lines *lines = hw_arena_alloc(arena, sizeof *lines);
    *lines =
        (hw_lines){.count = g.count - 1, .path = hw_arena_string(arena, "%s", path), .text = g.text, .start = g.start};
    return lines;
}

const char *hw_lines_get(const hw_lines *lines, int64_t i, size_t *bytes)
{
    HW_CHECK(i >= 0 && i < lines->count, "line %" PRId64 " of %" PRId64, i, lines->count);
    if (bytes) *bytes = (size_t)(lines->start[i + 1] - lines->start[i] - 1);
    return lines->text + lines->start[i];
}

bool hw_lines_parallel(const hw_lines *a, const hw_lines *b, hw_error *err)
{
    if (a->count == b->count) return true;
    return hw_fail(err, "%s has %" PRId64 " %s, but %s has %" PRId64 "; line by line they must belong together",
                   a->path, a->count, hw_plural(a->count, "line", "lines"), b->path, b->count);
}
