/* Labels of a corpus' pairs, so that figures can be told apart by group (seen and unseen combinations). */
#include <headwise/text.h>

#include <inttypes.h>

#include "text/lines.h"
#include "text/strings.h"

hw_groups *hw_groups_load(hw_arena *arena, const char *path, hw_error *err)
{
    const hw_lines *lines = hw_lines_load(arena, path, err);
    if (!lines) return NULL;
    hw_strings names = {.arena = arena};
    int32_t *group = hw_arena_alloc(arena, (size_t)lines->count * sizeof *group);
    for (int64_t i = 0; i < lines->count; i++) {
        size_t bytes;
        const char *label = hw_lines_get(lines, i, &bytes);
        if (!hw_count_words(label, bytes)) {
            hw_fail(err, "%s:%" PRId64 ": a label is missing; each pair has one, a line each", path, i + 1);
            return NULL;
        }
        const hw_string *name = hw_strings_add(&names, label, bytes);
        group[i] = (int32_t)(name - names.items);
    }
    const char **list = hw_arena_alloc(arena, (size_t)names.count * sizeof *list);
    for (int64_t i = 0; i < names.count; i++) list[i] = names.items[i].text;
    hw_groups *g = hw_arena_alloc(arena, sizeof *g);
    *g = (hw_groups){
        .count = lines->count, .path = lines->path, .groups = (int32_t)names.count, .names = list, .group = group};
    return g;
}
