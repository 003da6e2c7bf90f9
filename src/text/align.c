/* Word alignments in Pharaoh's format, the gold that alignment error rates are computed from.
 *
 * A line a pair, `3-5` or `3p5` between blanks. Sure and possible links are Och and Ney's (2003, "A systematic
 * comparison of various statistical alignment models", section 5): every sure link counts as possible too. */
#include "text/links.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/lines.h"
#include "text/strings.h"

/* Digits at *at, which moves behind them; -1 where there are none or the number is too large. */
static int64_t read_number(const char **at, const char *end)
{
    int64_t value = -1;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        value = 10 * (value < 0 ? 0 : value) + (**at - '0');
        if (value > INT32_MAX) return -1;
    }
    return value;
}

static bool read_link(const char *word, size_t bytes, hw_link *link)
{
    const char *at = word, *end = word + bytes;
    int64_t source = read_number(&at, end);
    if (source < 0 || at == end || (*at != '-' && *at != 'p')) return false;
    bool sure = *at++ == '-';
    int64_t target = read_number(&at, end);
    if (target < 0 || at != end) return false;
    *link = (hw_link){.source = (int32_t)source, .target = (int32_t)target, .sure = sure};
    return true;
}

static int by_place(const void *left, const void *right)
{
    const hw_link *a = left, *b = right;
    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    return (a->target > b->target) - (a->target < b->target);
}

/* Puts the links from `first` on in order, each once. */
static void tidy(hw_link_list *l, int64_t first)
{
    if (l->count == first) return;
    qsort(l->items + first, (size_t)(l->count - first), sizeof *l->items, by_place);
    int64_t last = first;
    for (int64_t i = first + 1; i < l->count; i++) {
        if (by_place(&l->items[i], &l->items[last]))
            l->items[++last] = l->items[i];
        else
            l->items[last].sure |= l->items[i].sure;
    }
    l->count = last + 1;
}

#define BEYOND ": link %d%c%d points beyond the pair, which has %" PRId64 " source and %" PRId64 " target words"

static bool inside(const hw_link *link, const int64_t words[2])
{
    return link->source < words[0] && link->target < words[1];
}

bool hw_links_read(hw_link_list *list, const char *path, int64_t number, const char *line, size_t bytes,
                   const int64_t words[2], hw_error *err)
{
    int64_t first = list->count;
    const char *at = line, *word;
    size_t size;
    while (hw_next_word(&at, line + bytes, &word, &size)) {
        list->items = hw_grow(list->arena, list->items, list->count, &list->capacity, sizeof *list->items);
        hw_link *link = &list->items[list->count++];
        char quoted[HW_QUOTE];
        int64_t column = word - line + 1;
        if (!read_link(word, size, link))
            return hw_fail(err,
                           "%s:%" PRId64 ":%" PRId64
                           ": %s is no link; links are i-j (sure) or ipj (possible), counted from 0",
                           path, number, column, hw_quote(quoted, word, size));
        if (words && !inside(link, words))
            return hw_fail(err, "%s:%" PRId64 ":%" PRId64 BEYOND, path, number, column, link->source,
                           link->sure ? '-' : 'p', link->target, words[0], words[1]);
    }
    tidy(list, first);
    return true;
}

/* ---- a whole file ------------------------------------------------------------------------------------------------ */

hw_alignments *hw_alignments_load(hw_arena *arena, const char *path, hw_error *err)
{
    hw_reader *reader = hw_reader_open(path, err);
    if (!reader) return NULL;
    hw_link_list list = {.arena = arena};
    int64_t lines = 0, capacity = 0, *start = hw_grow(arena, NULL, 0, &capacity, sizeof *start);
    start[0] = 0;
    char *line;
    size_t bytes;
    int got;
    while ((got = hw_next_line(reader, path, &line, &bytes, err)) == 1) {
        if (!hw_links_read(&list, path, hw_reader_number(reader), line, bytes, NULL, err)) break;
        start = hw_grow(arena, start, ++lines, &capacity, sizeof *start);
        start[lines] = list.count;
    }
    hw_reader_close(reader);
    if (got) return NULL;
    hw_alignments *a = hw_arena_alloc(arena, sizeof *a);
    *a = (hw_alignments){
        .count = lines, .path = hw_arena_string(arena, "%s", path), .start = start, .links = list.items};
    return a;
}

bool hw_alignments_fit(const hw_alignments *a, const hw_lines *source, const hw_lines *target, hw_error *err)
{
    if (!hw_lines_parallel(source, target, err)) return false;
    if (a->count != source->count)
        return hw_fail(err, "%s has %" PRId64 " %s, but %s has %" PRId64 "; each pair needs a line, empty or not",
                       a->path, a->count, hw_plural(a->count, "line", "lines"), source->path, source->count);
    for (int64_t i = 0; i < a->count; i++) {
        size_t source_bytes, target_bytes;
        const char *source_text = hw_lines_get(source, i, &source_bytes);
        const char *target_text = hw_lines_get(target, i, &target_bytes);
        const int64_t words[] = {hw_count_words(source_text, source_bytes), hw_count_words(target_text, target_bytes)};
        for (int64_t k = a->start[i]; k < a->start[i + 1]; k++) {
            const hw_link *link = &a->links[k];
            if (inside(link, words)) continue;
            return hw_fail(err, "%s:%" PRId64 BEYOND, a->path, i + 1, link->source, link->sure ? '-' : 'p',
                           link->target, words[0], words[1]);
        }
    }
    return true;
}
