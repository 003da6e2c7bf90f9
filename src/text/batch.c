/* Ragged batches, and how they are cut into shards and micro-batches.
 *
 * A batch is arrays of ids and segments. Shards are balanced so that cores finish together; micro-batches are views of
 * a shard, small enough for a cache. Both cuts are pure functions of the batch and the configuration, so that what is
 * trained does not depend on threads; and both tell where their rows stand in the whole step's batch, so that dropout
 * does not either. */
#include <headwise/text.h>

#include <string.h>

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* One run of rows a sentence: its tokens and one special token more. rows is the sum. */
static hw_segments make_segments(hw_arena *arena, int64_t sentences, const hw_ids *ids, int64_t *rows)
{
    int64_t *start = hw_arena_alloc(arena, (size_t)sentences * sizeof *start);
    int64_t *length = hw_arena_alloc(arena, (size_t)sentences * sizeof *length);
    *rows = 0;
    for (int64_t b = 0; b < sentences; b++) {
        start[b] = *rows;
        length[b] = ids ? ids[b].count + 1 : 0;
        *rows += length[b];
    }
    return (hw_segments){.count = sentences, .start = start, .length = length};
}

/* The tokens with </s> after each sentence, or, where before, with <s> in front of it. */
static const int32_t *make_ids(hw_arena *arena, const hw_segments *s, const hw_ids *ids, int64_t rows, bool before)
{
    int32_t *out = hw_arena_alloc(arena, (size_t)rows * sizeof *out);
    for (int64_t b = 0; b < s->count; b++) {
        int32_t *to = out + s->start[b];
        if (before) *to++ = HW_BEGIN;
        if (ids[b].count) memcpy(to, ids[b].ids, (size_t)ids[b].count * sizeof *to);
        if (!before) to[ids[b].count] = HW_END;
    }
    return out;
}

hw_batch *hw_batch_new(hw_arena *arena, int64_t sentences, const hw_ids *sources, const hw_ids *targets,
                       const int64_t *lines)
{
    hw_batch *batch = hw_arena_calloc(arena, 1, sizeof *batch);
    batch->sentences = sentences;
    batch->source = make_segments(arena, sentences, sources, &batch->source_rows);
    batch->target = make_segments(arena, sentences, targets, &batch->target_rows);
    batch->source_ids = make_ids(arena, &batch->source, sources, batch->source_rows, false);
    if (targets) {
        batch->target_in = make_ids(arena, &batch->target, targets, batch->target_rows, true);
        batch->target_out = make_ids(arena, &batch->target, targets, batch->target_rows, false);
    }
    batch->lines = hw_arena_copy(arena, lines, (size_t)sentences * sizeof *lines);
    return batch;
}

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

static int64_t sentence_rows(const hw_batch *batch, int64_t b)
{
    return batch->source.length[b] + batch->target.length[b];
}

/* The segments of sentences first .. first + count - 1, starting at row 0 again; rows is their sum. */
static hw_segments view_segments(hw_arena *arena, const hw_segments *s, int64_t first, int64_t count, int64_t *rows)
{
    int64_t *start = hw_arena_alloc(arena, (size_t)count * sizeof *start);
    *rows = 0;
    for (int64_t b = 0; b < count; b++) {
        start[b] = *rows;
        *rows += s->length[first + b];
    }
    return (hw_segments){.count = count, .start = start, .length = s->length + first};
}

/* A run of sentences of a batch as a batch of its own; ids, lengths and lines are shared. */
static void view(hw_arena *arena, hw_batch *out, const hw_batch *batch, int64_t first, int64_t count)
{
    bool behind = first == batch->sentences; /* an empty run at the end */
    int64_t source = behind ? batch->source_rows : batch->source.start[first];
    int64_t target = behind ? batch->target_rows : batch->target.start[first];
    *out = (hw_batch){.sentences = count,
                      .source_ids = batch->source_ids + source,
                      .target_in = batch->target_in ? batch->target_in + target : NULL,
                      .target_out = batch->target_out ? batch->target_out + target : NULL,
                      .first_source_row = batch->first_source_row + source,
                      .first_target_row = batch->first_target_row + target,
                      .lines = batch->lines + first,
                      .links = batch->links ? batch->links + first : NULL};
    out->source = view_segments(arena, &batch->source, first, count, &out->source_rows);
    out->target = view_segments(arena, &batch->target, first, count, &out->target_rows);
}

/* The sentences from the longest to the shortest, equal ones in their order. A counting sort, since qsort may call
 * malloc. */
static const int64_t *longest_first(hw_arena *arena, const hw_batch *batch)
{
    int64_t longest = 0;
    for (int64_t b = 0; b < batch->sentences; b++)
        if (sentence_rows(batch, b) > longest) longest = sentence_rows(batch, b);
    int64_t *place = hw_arena_calloc(arena, (size_t)longest + 1, sizeof *place); /* of the next one of so many rows */
    for (int64_t b = 0; b < batch->sentences; b++) place[sentence_rows(batch, b)]++;
    int64_t before = 0;
    for (int64_t rows = longest; rows >= 0; rows--) {
        int64_t count = place[rows];
        place[rows] = before;
        before += count;
    }
    int64_t *order = hw_arena_alloc(arena, (size_t)batch->sentences * sizeof *order);
    for (int64_t b = 0; b < batch->sentences; b++) order[place[sentence_rows(batch, b)]++] = b;
    return order;
}

/* Which shard each sentence goes to. */
static const int *assign(hw_arena *arena, const hw_batch *batch, int shards)
{
    const int64_t *order = longest_first(arena, batch);
    int64_t *load = hw_arena_calloc(arena, (size_t)shards, sizeof *load);
    int *owner = hw_arena_alloc(arena, (size_t)batch->sentences * sizeof *owner);
    for (int64_t i = 0; i < batch->sentences; i++) {
        int least = 0;
        for (int s = 1; s < shards; s++)
            if (load[s] < load[least]) least = s;
        owner[order[i]] = least;
        load[least] += sentence_rows(batch, order[i]);
    }
    return owner;
}

/* The tokens of sentence b, without </s>. */
static hw_ids sentence(const hw_segments *s, const int32_t *ids, int64_t b)
{
    return (hw_ids){.ids = ids + s->start[b], .count = s->length[b] - 1};
}

hw_batch *hw_batch_shards(hw_arena *arena, const hw_batch *batch, int shards)
{
    HW_CHECK(shards > 0, "a batch cut into %d shards", shards);
    const int *owner = assign(arena, batch, shards);
    size_t room = (size_t)batch->sentences;
    hw_ids *sources = hw_arena_alloc(arena, room * sizeof *sources);
    hw_ids *targets = hw_arena_alloc(arena, room * sizeof *targets);
    int64_t *lines = hw_arena_alloc(arena, room * sizeof *lines);
    hw_pair_links *links = batch->links ? hw_arena_alloc(arena, room * sizeof *links) : NULL;
    int64_t *first = hw_arena_alloc(arena, ((size_t)shards + 1) * sizeof *first); /* sentence of each shard */
    int64_t count = 0;
    for (int s = 0; s < shards; s++) {
        first[s] = count;
        for (int64_t b = 0; b < batch->sentences; b++) {
            if (owner[b] != s) continue;
            sources[count] = sentence(&batch->source, batch->source_ids, b);
            if (batch->target_out) targets[count] = sentence(&batch->target, batch->target_out, b);
            if (links) links[count] = batch->links[b];
            lines[count++] = batch->lines[b];
        }
    }
    first[shards] = count;
    hw_batch *sorted = hw_batch_new(arena, count, sources, batch->target_out ? targets : NULL, lines);
    sorted->links = links;
    hw_batch *out = hw_arena_alloc(arena, (size_t)shards * sizeof *out);
    for (int s = 0; s < shards; s++) view(arena, &out[s], sorted, first[s], first[s + 1] - first[s]);
    return out;
}

/* The part of `parts` equal ones that the middle of sentence b falls into. Twice the rows, to stay in whole numbers. */
static int64_t part_of(const hw_batch *shard, int64_t b, int64_t parts)
{
    int64_t rows = shard->source_rows + shard->target_rows;
    int64_t middle = 2 * (shard->source.start[b] + shard->target.start[b]) + sentence_rows(shard, b);
    return middle * parts / (2 * rows);
}

hw_batch *hw_batch_micro(hw_arena *arena, const hw_batch *shard, int64_t rows, int64_t *count)
{
    int64_t larger = shard->source_rows > shard->target_rows ? shard->source_rows : shard->target_rows;
    int64_t parts = rows && rows < larger ? (larger - 1) / rows + 1 : 1;
    int64_t most = parts < shard->sentences ? parts : shard->sentences;
    hw_batch *out = hw_arena_alloc(arena, (size_t)most * sizeof *out);
    *count = 0;
    for (int64_t first = 0, next; first < shard->sentences; first = next) {
        for (next = first + 1; next < shard->sentences; next++)
            if (part_of(shard, next, parts) != part_of(shard, first, parts)) break;
        view(arena, &out[(*count)++], shard, first, next - first);
    }
    return out;
}
