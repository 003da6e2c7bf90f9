/* The set of strings behind vocabularies, counts and labels; see strings.h. */
#include "text/strings.h"

#include <string.h>

enum { BLOCK = 4096 };

uint64_t hw_hash(uint64_t state, const void *data, size_t bytes)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < bytes; i++) state = (state ^ p[i]) * UINT64_C(1099511628211);
    return state;
}

void *hw_grow(hw_arena *arena, void *items, int64_t count, int64_t *capacity, size_t size)
{
    if (count < *capacity) return items;
    *capacity = *capacity ? 2 * *capacity : 16;
    void *larger = hw_arena_alloc(arena, (size_t)*capacity * size);
    if (count) memcpy(larger, items, (size_t)count * size);
    return larger;
}

/* Where the string stands in the table, or the free place where it would. */
static int64_t place_of(const hw_strings *s, uint64_t hash, const char *text, size_t bytes)
{
    uint64_t mask = (uint64_t)s->slots - 1, at = hash & mask;
    for (; s->table[at]; at = (at + 1) & mask) {
        const hw_string *item = &s->items[s->table[at] - 1];
        if (item->bytes == bytes && !memcmp(item->text, text, bytes)) break;
    }
    return (int64_t)at;
}

static uint64_t hash_of(const char *text, size_t bytes) { return hw_hash(HW_HASH_START, text, bytes); }

int64_t hw_strings_find_hash(const hw_strings *s, uint64_t hash, const char *text, size_t bytes)
{
    return s->slots ? s->table[place_of(s, hash, text, bytes)] - 1 : -1;
}

int64_t hw_strings_find(const hw_strings *s, const char *text, size_t bytes)
{
    return hw_strings_find_hash(s, hash_of(text, bytes), text, bytes);
}

static void double_table(hw_strings *s)
{
    s->slots = s->slots ? 2 * s->slots : 64;
    s->table = hw_arena_calloc(s->arena, (size_t)s->slots, sizeof *s->table);
    for (int64_t i = 0; i < s->count; i++) {
        const hw_string *item = &s->items[i];
        s->table[place_of(s, hash_of(item->text, item->bytes), item->text, item->bytes)] = i + 1;
    }
}

/* A copy ended by a 0 byte. Strings share blocks, since the arena's own unit is a cache line. */
static const char *copy_text(hw_strings *s, const char *text, size_t bytes)
{
    if (bytes + 1 > s->room_left) {
        s->room_left = bytes + 1 > BLOCK ? bytes + 1 : BLOCK;
        s->room = hw_arena_alloc(s->arena, s->room_left);
    }
    char *copy = s->room;
    s->room += bytes + 1;
    s->room_left -= bytes + 1;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

hw_string *hw_strings_add(hw_strings *s, const char *text, size_t bytes)
{
    if (2 * (s->count + 1) > s->slots) double_table(s);
    int64_t place = place_of(s, hash_of(text, bytes), text, bytes);
    if (s->table[place]) return &s->items[s->table[place] - 1];
    s->items = hw_grow(s->arena, s->items, s->count, &s->capacity, sizeof *s->items);
    s->items[s->count] = (hw_string){.text = copy_text(s, text, bytes), .bytes = bytes};
    s->table[place] = ++s->count;
    return &s->items[s->count - 1];
}
