/* Filters of a training corpus: each pair is dropped for the first reason that holds, in the order of hw_drop.
 *
 * Pairs that stood there before are known by a hash of 64 bits, in a table with open addressing that is at most half
 * full (16 to 32 bytes a pair); that two different pairs of ten million have the same one has a chance of 3 in a
 * million. */
#include "text/filter.h"

#include <inttypes.h>
#include <string.h>

#include "text/lines.h"
#include "text/strings.h"

/* How many pairs are remembered between two releases of the table's memory. */
enum { RELEASE_EVERY = 1 << 16 };

static uint64_t hash_pair(const hw_filter_side *source, const hw_filter_side *target)
{
    uint64_t hash = hw_hash(HW_HASH_START, source->line, source->bytes);
    hash = hw_hash(hash, "\n", 1);
    hash = hw_hash(hash, target->line, target->bytes);
    hash ^= hash >> 32;
    return hash ? hash : 1;
}

/* The slot of a hash, or the free one where it would stand. */
static uint64_t *slot_of(const hw_store *seen, int64_t slots, uint64_t hash)
{
    uint64_t *table = seen->data, mask = (uint64_t)slots - 1, at = hash & mask;
    while (table[at] && table[at] != hash) at = (at + 1) & mask;
    return &table[at];
}

static bool double_table(hw_filter *f, hw_error *err)
{
    hw_store larger = {0};
    int64_t slots = f->slots ? 2 * f->slots : 1024;
    if (!hw_store_grow(&larger, (size_t)slots * sizeof(uint64_t), &f->place, err)) return false;
    memset(larger.data, 0, (size_t)slots * sizeof(uint64_t));
    const uint64_t *old = f->seen.data;
    for (int64_t i = 0; i < f->slots; i++)
        if (old[i]) *slot_of(&larger, slots, old[i]) = old[i];
    hw_store_free(&f->seen);
    f->seen = larger;
    f->slots = slots;
    return true;
}

/* Whether the pair stood there before; it is remembered. */
static bool seen_before(hw_filter *f, const hw_filter_side *source, const hw_filter_side *target, bool *before,
                        hw_error *err)
{
    if (2 * (f->count + 1) > f->slots && !double_table(f, err)) return false;
    uint64_t hash = hash_pair(source, target), *slot = slot_of(&f->seen, f->slots, hash);
    *before = *slot == hash;
    f->count += !*before;
    *slot = hash;
    if (f->count % RELEASE_EVERY == 0) hw_store_release(&f->seen);
    return true;
}

static bool blank(const hw_filter_side *side) { return !side->tokens || !hw_count_words(side->line, side->bytes); }

bool hw_too_long_pair(hw_too_long *t, int64_t source_tokens, int64_t target_tokens, int64_t line)
{
    const int64_t tokens[] = {source_tokens, target_tokens};
    int side = source_tokens <= t->most;
    if (!t->most || tokens[side] <= t->most) return false;
    if (!t->pairs++) {
        t->side = side;
        t->line = line;
        t->tokens = tokens[side];
    }
    return true;
}

const char *hw_too_long_describe(const hw_too_long *t, const char *path, hw_arena *arena)
{
    return hw_arena_string(arena, "%s:%" PRId64 ": the line has %" PRId64 " tokens, more than the %" PRId64
                                  " that are read", path, t->line, t->tokens, t->most);
}

static bool longer_than(const hw_filter_side *a, const hw_filter_side *b, double ratio)
{
    return (double)a->tokens > ratio * (double)b->tokens;
}

bool hw_filter_pair(hw_filter *f, const hw_filter_side *source, const hw_filter_side *target, hw_drop *drop,
                    hw_error *err)
{
    const hw_corpus_options *o = f->options;
    bool before = false;
    *drop = HW_DROPS;
    f->lines++;
    if (blank(source) || blank(target))
        *drop = HW_DROP_BLANK;
    else if (hw_too_long_pair(&f->too_long, source->tokens, target->tokens, f->lines))
        *drop = HW_DROP_LONG;
    else if (o->max_ratio > 0 &&
             (longer_than(source, target, o->max_ratio) || longer_than(target, source, o->max_ratio)))
        *drop = HW_DROP_RATIO;
    else if (o->drop_identical && source->bytes == target->bytes && !memcmp(source->line, target->line, source->bytes))
        *drop = HW_DROP_IDENTICAL;
    else if (o->drop_duplicates && !seen_before(f, source, target, &before, err))
        return false;
    if (before) *drop = HW_DROP_DUPLICATE;
    return true;
}

void hw_filter_clear(hw_filter *f) { hw_store_free(&f->seen); }
