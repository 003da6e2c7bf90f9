/* The cached state of a batch being decoded.
 *
 * A source is encoded once, and its keys and values for all cross-attentions are computed once. A step appends a row for
 * each hypothesis to the cache of every decoder layer, and each hypothesis knows which rows are its past. Those that
 * branch share the rows of what they have in common, so nothing is copied but numbers of rows. */
#include "decode/state.h"

#include <string.h>

enum {
    ENCODED_ROWS = 96, /* source rows that are encoded at once: activations of so many stay in cache */
    FIRST_ROOM = 8 /* positions there is room for to begin with, over those of the longest source and a quarter more */
};

/* ---- sources ----------------------------------------------------------------------------------------------------- */

/* Columns for so many numbers and a few more: an odd number of cache lines, lest the same part of each row fall into one
 * place of the processor's caches. */
static int64_t spread(int64_t numbers)
{
    const int64_t line = 64 / (int64_t)sizeof(hw_real);
    return ((numbers + line - 1) / line | 1) * line;
}

static void encode(hw_state *s, const hw_batch *b)
{
    hw_tape *tape = s->worker->tape;
    hw_tape_reset(tape, HW_INFERENCE);
    hw_pass pass = {.tape = tape, .settings = s->settings};
    hw_token_rows source = {.rows = b->source_rows, .ids = b->source_ids, .segments = b->source};
    const hw_tensor *cross = hw_cross_keys_values(&pass, s->network, hw_encode(&pass, s->network, &source));
    int64_t from = hw_tensor_cols(cross), to = hw_tensor_cols(&s->cross);
    for (int64_t r = 0; r < b->source_rows; r++)
        memcpy(s->cross.data + (b->first_source_row + r) * to, cross->data + r * from,
               (size_t)from * sizeof *cross->data);
}

static void encode_all(hw_state *s, int64_t count, const hw_ids *sources)
{
    hw_arena *arena = s->worker->batch;
    int64_t *lines = hw_arena_calloc(arena, (size_t)count, sizeof *lines), parts;
    const hw_batch *whole = hw_batch_new(arena, count, sources, NULL, lines);
    s->sources = whole->source;
    s->cross = *hw_tensor_new(arena, 2, (int64_t[]){whole->source_rows, spread(s->network->cross_weight->shape[0])});
    const hw_batch *part = hw_batch_micro(arena, whole, ENCODED_ROWS, &parts);
    for (int64_t i = 0; i < parts; i++) encode(s, &part[i]);
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void make_cache(hw_state *s, int64_t room)
{
    for (int64_t l = 0; l < s->network->options.decoder_layers; l++) {
        const hw_attention_layer *self = &s->network->decoder[l].self;
        const hw_tensor *old = s->cache[l].keys_values;
        hw_tensor *x = hw_tensor_new(s->worker->batch, 2, (int64_t[]){room, 2 * self->heads * self->head_width});
        if (s->used) memcpy(x->data, old->data, (size_t)(s->used * hw_tensor_cols(x)) * sizeof *x->data);
        s->cache[l].keys_values = x;
    }
    s->room = room;
}

/* Room for longer pasts. */
static void make_pasts(hw_state *s, int64_t stride)
{
    size_t size = (size_t)(s->most * stride) * sizeof *s->past;
    int32_t *past = hw_arena_alloc(s->worker->batch, size);
    for (int64_t i = 0; i < s->count && s->fed; i++)
        memcpy(past + i * stride, s->past + i * s->stride, (size_t)s->fed * sizeof *past);
    s->past = past;
    s->next = hw_arena_alloc(s->worker->batch, size);
    s->stride = stride;
}

void hw_state_begin(hw_state *s, const hw_runner *r, hw_worker *worker, int64_t count, const hw_ids *sources,
                    int64_t most)
{
    *s = (hw_state){
        .network = hw_runner_network(r), .settings = hw_runner_head_settings(r), .worker = worker, .most = most};
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) longest = sources[i].count > longest ? sources[i].count : longest;
    encode_all(s, count, sources);
    s->rows = hw_arena_alloc(worker->batch, (size_t)most * sizeof *s->rows);
    s->cache = hw_arena_calloc(worker->batch, (size_t)s->network->options.decoder_layers, sizeof *s->cache);
    make_pasts(s, FIRST_ROOM + longest * 5 / 4);
    make_cache(s, (most + 1) * s->stride);
}

void hw_state_continue(hw_state *s, const hw_state_row *rows, int64_t count)
{
    for (int64_t i = 0; i < count && s->fed; i++)
        memcpy(s->next + i * s->stride, s->past + rows[i].from * s->stride, (size_t)s->fed * sizeof *s->next);
    int32_t *before = s->past;
    s->past = s->next;
    s->next = before;
    memcpy(s->rows, rows, (size_t)count * sizeof *rows);
    s->count = count;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* What the rows read: one new token each, their own past, their sentence's source. */
typedef struct step_rows {
    int32_t *ids, *positions;
    int64_t *at, *one, *past_start, *past_length, *key_start, *key_length;
} step_rows;

static step_rows gather_rows(const hw_state *s, hw_arena *arena)
{
    size_t n = (size_t)s->count, wide = n * sizeof(int64_t), narrow = n * sizeof(int32_t);
    step_rows x = {hw_arena_alloc(arena, narrow), hw_arena_alloc(arena, narrow), hw_arena_alloc(arena, wide),
                   hw_arena_alloc(arena, wide),   hw_arena_alloc(arena, wide),   hw_arena_alloc(arena, wide),
                   hw_arena_alloc(arena, wide),   hw_arena_alloc(arena, wide)};
    for (int64_t i = 0; i < s->count; i++) {
        const hw_state_row *row = &s->rows[i];
        x.ids[i] = row->id;
        x.positions[i] = (int32_t)s->fed;
        x.at[i] = i;
        x.one[i] = 1;
        x.past_start[i] = i * s->stride;
        x.past_length[i] = s->fed + 1;
        s->past[i * s->stride + s->fed] = (int32_t)(s->used + i);
        x.key_start[i] = s->sources.start[row->sentence];
        x.key_length[i] = s->sources.length[row->sentence];
    }
    return x;
}

/* Rows of a step stand one after another; an odd number of them is taken, lest those of a hypothesis be as far apart as
 * the processor's caches put in one place. */
hw_tensor *hw_state_step(hw_state *s)
{
    hw_tape *tape = s->worker->tape;
    if (s->fed == s->stride) make_pasts(s, 2 * s->stride);
    const int64_t taken = s->count | 1;
    if (s->used + taken > s->room) make_cache(s, 2 * s->room);
    hw_tape_reset(tape, HW_INFERENCE);
    step_rows x = gather_rows(s, hw_tape_arena(tape));
    for (int64_t l = 0; l < s->network->options.decoder_layers; l++) {
        s->cache[l].next = s->used;
        s->cache[l].at = (hw_segments){s->count, x.past_start, x.past_length};
        s->cache[l].past = s->past;
    }
    hw_pass pass = {.tape = tape, .recorder = s->recorder, .settings = s->settings};
    hw_token_rows target = {s->count, x.ids, {s->count, x.at, x.one}, 0, x.positions};
    hw_segments keys = {s->count, x.key_start, x.key_length};
    hw_tensor *decoded = hw_decode(&pass, s->network, &target, &s->cross, keys, s->cache);
    s->used += taken;
    s->fed++;
    return decoded;
}
