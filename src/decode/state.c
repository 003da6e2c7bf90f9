/* The cached state of a batch being decoded.
 *
 * A source is encoded once, and its keys and values for all cross-attentions are computed once. Each hypothesis has a
 * slot, a run of rows in the cache of every decoder layer; a step appends one row to it. When hypotheses branch, the
 * first to go on from a slot stays there and the others copy it; slots of hypotheses that died are used again, so a
 * batch in which sentences have finished costs only what its living hypotheses cost. */
#include "decode/state.h"

#include <string.h>

enum {
    ENCODED_ROWS = 96, /* source rows that are encoded at once: activations of so many stay in cache */
    FIRST_ROOM = 8      /* positions of a slot to begin with, over those of the longest source and a quarter more */
};

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static void encode(hw_state *s, const hw_batch *b)
{
    hw_tape *tape = s->worker->tape;
    hw_tape_reset(tape, HW_INFERENCE);
    hw_pass pass = {.tape = tape, .settings = s->settings};
    hw_token_rows source = {.rows = b->source_rows, .ids = b->source_ids, .segments = b->source};
    const hw_tensor *cross = hw_cross_keys_values(&pass, s->network, hw_encode(&pass, s->network, &source));
    memcpy(s->cross.data + b->first_source_row * hw_tensor_cols(cross), cross->data,
           (size_t)hw_tensor_size(cross) * sizeof *cross->data);
}

static void encode_all(hw_state *s, int64_t count, const hw_ids *sources)
{
    hw_arena *arena = s->worker->batch;
    int64_t *lines = hw_arena_calloc(arena, (size_t)count, sizeof *lines), parts;
    const hw_batch *whole = hw_batch_new(arena, count, sources, NULL, lines);
    s->sources = whole->source;
    s->cross = *hw_tensor_new(arena, 2, (int64_t[]){whole->source_rows, s->network->cross_weight->shape[0]});
    const hw_batch *part = hw_batch_micro(arena, whole, ENCODED_ROWS, &parts);
    for (int64_t i = 0; i < parts; i++) encode(s, &part[i]);
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* One arena block a layer, for all slots. */
static hw_real *layer_numbers(hw_state *s, int64_t layer, int64_t room)
{
    const hw_attention_layer *self = &s->network->decoder[layer].self;
    hw_tensor *x = hw_tensor_new(s->worker->batch, 2, (int64_t[]){s->slots * room, 2 * self->heads * self->head_width});
    s->cache[layer].keys_values = x;
    return x->data;
}

/* Makes slots longer. Those in use move to the front, in the order of the rows. */
static void grow(hw_state *s)
{
    int64_t room = 2 * s->room;
    for (int64_t l = 0; l < s->network->options.decoder_layers; l++) {
        const hw_tensor *old = s->cache[l].keys_values;
        int64_t cols = hw_tensor_cols(old);
        hw_real *to = layer_numbers(s, l, room);
        for (int64_t i = 0; i < s->count; i++)
            memcpy(to + i * room * cols, old->data + s->rows[i].slot * s->room * cols,
                   (size_t)(s->fed * cols) * sizeof *to);
    }
    for (int64_t i = 0; i < s->count; i++) s->rows[i].slot = i;
    s->room = room;
}

static void copy_slot(hw_state *s, int64_t from, int64_t to)
{
    for (int64_t l = 0; l < s->network->options.decoder_layers; l++) {
        hw_tensor *x = s->cache[l].keys_values;
        int64_t cols = hw_tensor_cols(x), size = s->room * cols;
        memcpy(x->data + to * size, x->data + from * size, (size_t)(s->fed * cols) * sizeof *x->data);
    }
}

void hw_state_begin(hw_state *s, const hw_runner *r, hw_worker *worker, int64_t count, const hw_ids *sources,
                    int64_t slots)
{
    hw_arena *arena = worker->batch;
    *s = (hw_state){.network = hw_runner_network(r),
                    .settings = hw_runner_head_settings(r),
                    .worker = worker,
                    .slots = slots};
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) longest = sources[i].count > longest ? sources[i].count : longest;
    s->room = FIRST_ROOM + longest * 5 / 4;
    int64_t layers = s->network->options.decoder_layers;
    encode_all(s, count, sources);
    s->rows = hw_arena_alloc(arena, (size_t)slots * sizeof *s->rows);
    s->cache = hw_arena_calloc(arena, (size_t)layers, sizeof *s->cache);
    for (int64_t l = 0; l < layers; l++) layer_numbers(s, l, s->room);
}

void hw_state_continue(hw_state *s, const hw_state_row *rows, int64_t count)
{
    hw_arena *arena = s->worker->batch;
    hw_arena_mark mark = hw_arena_begin(arena);
    bool *taken = hw_arena_calloc(arena, (size_t)s->slots, sizeof *taken);
    bool *stays = hw_arena_calloc(arena, (size_t)count + 1, sizeof *stays);
    for (int64_t i = 0; i < count; i++) {
        stays[i] = !taken[rows[i].slot];
        taken[rows[i].slot] = true;
    }
    int64_t free_slot = 0;
    for (int64_t i = 0; i < count; i++) {
        s->rows[i] = rows[i];
        if (stays[i]) continue;
        while (taken[free_slot]) free_slot++;
        s->rows[i].slot = free_slot++;
        copy_slot(s, rows[i].slot, s->rows[i].slot);
    }
    s->count = count;
    hw_arena_end(arena, mark);
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* What the rows read: one new token each, their own past, their sentence's source. */
typedef struct step_rows {
    int32_t *ids, *positions;
    int64_t *at, *one, *slot_start, *fed, *key_start, *key_length;
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
        x.slot_start[i] = row->slot * s->room;
        x.fed[i] = s->fed;
        x.key_start[i] = s->sources.start[row->sentence];
        x.key_length[i] = s->sources.length[row->sentence];
    }
    return x;
}

hw_tensor *hw_state_step(hw_state *s)
{
    hw_tape *tape = s->worker->tape;
    if (s->fed == s->room) grow(s);
    hw_tape_reset(tape, HW_INFERENCE);
    step_rows x = gather_rows(s, hw_tape_arena(tape));
    for (int64_t l = 0; l < s->network->options.decoder_layers; l++) {
        s->cache[l].start = x.slot_start;
        s->cache[l].length = x.fed;
    }
    hw_pass pass = {.tape = tape, .recorder = s->recorder, .settings = s->settings};
    hw_token_rows target = {s->count, x.ids, {s->count, x.at, x.one}, 0, x.positions};
    hw_segments keys = {s->count, x.key_start, x.key_length};
    hw_tensor *decoded = hw_decode(&pass, s->network, &target, &s->cross, keys, s->cache);
    s->fed++;
    return decoded;
}
