/* A vector for each word from everywhere in a network: embeddings, heads, layers. What comes out of the first l layers
 * is what a network of l layers gives, final norm included, so each depth is run as such. */
#include <string.h>

#include "probe_study.h"

enum { PAIRS_AT_ONCE = 16 };

/* ---- the list of things ------------------------------------------------------------------------------------------ */

static hw_thing *add(hw_vectors *v, int width)
{
    hw_thing *x = &v->things[v->count++];
    *x = (hw_thing){.column = v->total, .width = width};
    v->total += width;
    return x;
}

static void add_layers(hw_vectors *v, int64_t width, int layers)
{
    hw_thing *x = add(v, (int)width);
    x->layers = layers;
    if (layers)
        snprintf(x->name, sizeof x->name, "%s.layer.%d", v->side ? "decoder" : "encoder", layers - 1);
    else
        snprintf(x->name, sizeof x->name, "%s.embeddings", v->side ? "decoder" : "encoder");
}

static void list_things(hw_vectors *v, const hw_transformer *m, hw_arena *arena)
{
    int count, layers = (int)(v->side ? m->options.decoder_layers : m->options.encoder_layers);
    const hw_head *heads = hw_heads_of(m, arena, &count);
    v->things = hw_arena_alloc(arena, (size_t)(count + layers + 1) * sizeof *v->things);
    add_layers(v, m->options.width, 0);
    for (int l = 0; l < layers; l++) {
        for (int h = 0; h < count; h++) {
            int64_t decoder = heads[h].attention - m->options.encoder_layers;
            if ((decoder >= 0) != v->side || (v->side ? decoder / 2 : heads[h].attention) != l) continue;
            hw_thing *x = add(v, (int)hw_transformer_attention(m, heads[h].attention)->head_width);
            x->is_head = true;
            x->attention = heads[h].attention;
            x->head = heads[h].head;
            memcpy(x->name, heads[h].name, sizeof x->name);
        }
        add_layers(v, m->options.width, l + 1);
    }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct run {
    const hw_transformer *network;
    hw_vectors *vectors;
} run;

/* The means over tokens of columns column .. column + width - 1 of x, for the words of the batch. */
static void keep(const hw_vectors *v, const hw_thing *thing, const hw_tensor *x, int64_t column,
                 const hw_segments *rows, int64_t first)
{
    int64_t cols = hw_tensor_cols(x);
    for (int64_t b = 0; b < rows->count; b++) {
        const hw_sentence *s = &v->set->pairs[v->first + first + b].words[v->side];
        float *out = v->x + v->start[first + b] * v->total + thing->column;
        for (int32_t w = 0; w < s->count; w++, out += v->total)
            for (int k = 0; k < thing->width; k++) {
                double sum = 0;
                for (int32_t t = 0; t < s->words[w].count; t++)
                    sum += (double)x->data[(rows->start[b] + s->words[w].first + t + v->side) * cols + column + k];
                out[k] = (float)(sum / s->words[w].count);
            }
    }
}

/* What comes out after some layers. */
static hw_tensor *state(const hw_pass *pass, const hw_transformer *m, const hw_batch *b, int side, int layers,
                        hw_tensor *cross)
{
    hw_transformer part = *m;
    hw_token_rows source = {.rows = b->source_rows, .ids = b->source_ids, .segments = b->source};
    hw_token_rows target = {.rows = b->target_rows, .ids = b->target_in, .segments = b->target};
    if (side)
        part.options.decoder_layers = layers;
    else
        part.options.encoder_layers = layers;
    return side ? hw_decode(pass, &part, &target, cross, b->source, NULL) : hw_encode(pass, &part, &source);
}

static hw_batch *batch_of(const hw_vectors *v, int64_t first, int64_t count, hw_arena *arena)
{
    hw_ids *ids[2];
    int64_t *lines = hw_arena_calloc(arena, (size_t)count, sizeof *lines);
    for (int s = 0; s < 2; s++) {
        ids[s] = hw_arena_alloc(arena, (size_t)count * sizeof *ids[s]);
        for (int64_t i = 0; i < count; i++) ids[s][i] = v->set->pairs[v->first + first + i].words[s].ids;
    }
    return hw_batch_new(arena, count, ids[HW_SOURCE], ids[HW_TARGET], lines);
}

static void run_some(int i, void *argument)
{
    const run *r = argument;
    const hw_vectors *v = r->vectors;
    const hw_transformer *m = r->network;
    int64_t first = (int64_t)i * PAIRS_AT_ONCE, count = v->pairs - first;
    if (count > PAIRS_AT_ONCE) count = PAIRS_AT_ONCE;
    hw_arena *arena = hw_arena_new(0);
    hw_tape *tape = hw_tape_new();
    hw_tape_reset(tape, HW_INFERENCE);
    hw_recorder recorder = {.entries = hw_arena_calloc(arena, (size_t)m->attentions, sizeof *recorder.entries)};
    hw_pass pass = {.tape = tape, .recorder = &recorder};
    const hw_batch *b = batch_of(v, first, count, arena);
    hw_tensor *encoded = state(&pass, m, b, HW_SOURCE, (int)m->options.encoder_layers, NULL);
    hw_tensor *cross = v->side ? hw_cross_keys_values(&pass, m, encoded) : NULL;
    const hw_segments *rows = v->side ? &b->target : &b->source;
    for (int k = 0; k < v->count; k++) /* the last of these passes is the whole network, whose heads stay recorded */
        if (!v->things[k].is_head)
            keep(v, &v->things[k], state(&pass, m, b, v->side, v->things[k].layers, cross), 0, rows, first);
    for (int k = 0; k < v->count; k++) {
        const hw_thing *x = &v->things[k];
        if (x->is_head) keep(v, x, recorder.entries[x->attention].heads, (int64_t)x->head * x->width, rows, first);
    }
    hw_tape_free(tape);
    hw_arena_free(arena);
}

hw_vectors *hw_vectors_of(const hw_transformer *m, const hw_study_set *set, int64_t first, int64_t end, int side,
                          hw_arena *arena)
{
    hw_vectors *v = hw_arena_calloc(arena, 1, sizeof *v);
    *v = (hw_vectors){.set = set, .side = side, .first = first, .pairs = end - first};
    int64_t *start = hw_arena_alloc(arena, ((size_t)v->pairs + 1) * sizeof *start);
    start[0] = 0;
    for (int64_t i = 0; i < v->pairs; i++) start[i + 1] = start[i] + set->pairs[first + i].words[side].count;
    v->start = start;
    list_things(v, m, arena);
    v->x = hw_arena_alloc(arena, (size_t)start[v->pairs] * (size_t)v->total * sizeof *v->x + 1);
    hw_parallel((int)((v->pairs + PAIRS_AT_ONCE - 1) / PAIRS_AT_ONCE), run_some, &(run){m, v});
    return v;
}
