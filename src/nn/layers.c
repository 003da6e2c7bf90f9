/* The layers of a Transformer: Add&Norm, multi-head attention, feed-forward. Each sets the tape's scope to its own
 * name, so that messages and profiles say where they come from. */
#include <string.h>

#include <headwise/nn.h>

static hw_dropout site(const hw_pass *pass, const hw_dropout_site *s)
{
    return hw_tape_dropout(pass->tape, s->rate, s->site);
}
static hw_dropout none(void) { return (hw_dropout){.scale = 1}; }

/* ---- Add&Norm ---------------------------------------------------------------------------------------------------- */

hw_tensor *hw_add_norm_before(const hw_pass *pass, const hw_add_norm *a, hw_tensor *x)
{
    if (!a->pre) return x;
    const char *outer = hw_tape_scope(pass->tape, a->norm.scope);
    x = hw_layer_norm(pass->tape, x, a->norm.gamma, a->norm.beta);
    hw_tape_scope(pass->tape, outer);
    return x;
}

hw_tensor *hw_add_norm_after(const hw_pass *pass, const hw_add_norm *a, hw_tensor *x, hw_tensor *branch)
{
    const char *outer = hw_tape_scope(pass->tape, a->norm.scope);
    hw_dropout drop = site(pass, &a->residual);
    x = a->pre ? hw_residual(pass->tape, x, branch, drop)
               : hw_residual_layer_norm(pass->tape, x, branch, a->norm.gamma, a->norm.beta, drop);
    hw_tape_scope(pass->tape, outer);
    return x;
}

/* ---- multi-head attention ---------------------------------------------------------------------------------------- */

/* DropHead (Zhou et al. 2020, section 3.1): gates of 0 for the heads that a sentence goes without, and H over the number
 * of the others for these. One always stays. A draw depends on the sentence's place in the step's batch alone. */
static hw_tensor *dropped_heads(const hw_pass *pass, const hw_attention_layer *a, const hw_tensor *heads,
                                const hw_segments *queries)
{
    hw_dropout drop = hw_tape_dropout(pass->tape, pass->drop_head, a->weights.site);
    if (!drop.threshold) return NULL;
    hw_tensor *xi = hw_tape_matrix(pass->tape, hw_tensor_rows(heads), a->heads, NULL, false);
    uint32_t *bits = hw_arena_alloc(hw_tape_arena(pass->tape), (size_t)a->heads * sizeof *bits), word[4];
    for (int64_t b = 0; b < queries->count; b++) {
        hw_real *first = xi->data + queries->start[b] * a->heads;
        uint32_t place = (uint32_t)(heads->first_row + queries->start[b]);
        int64_t kept = 0, stays = 0;
        for (int64_t h = 0; h < a->heads; h++) { /* a site of its own: dropout's sites are small numbers */
            hw_philox(drop.seed, (const uint32_t[]){place, (uint32_t)h, drop.step, drop.site | 0x80000000u}, word);
            bits[h] = word[0] >> 16;
            kept += bits[h] >= drop.threshold;
            if (bits[h] > bits[stays]) stays = h;
        }
        for (int64_t h = 0; h < a->heads && queries->length[b]; h++)
            first[h] = bits[h] >= drop.threshold || (!kept && h == stays) ? (hw_real)a->heads / (hw_real)(kept ? kept : 1)
                                                                          : 0;
        for (int64_t i = a->heads; i < queries->length[b] * a->heads; i++) first[i] = first[i - a->heads];
    }
    return xi;
}

/* The gates of every query row: a row a query, all alike at first, so that each row's gradient is its own. */
static hw_tensor *set_gates(const hw_pass *pass, const hw_attention_layer *a, const hw_head_setting *s, int64_t rows)
{
    bool record = pass->recorder && pass->recorder->gates;
    if (s && s->trained_gate) {
        int64_t *same = hw_arena_calloc(hw_tape_arena(pass->tape), (size_t)rows, sizeof *same);
        return hw_gather(pass->tape, s->trained_gate, same, rows);
    }
    if (!record && !(s && s->gate)) return NULL;
    hw_tensor *xi = hw_tape_tensor(pass->tape, 2, (int64_t[]){rows, a->heads}, record);
    for (int64_t i = 0; i < rows * a->heads; i++) xi->data[i] = s && s->gate ? s->gate[i % a->heads] : 1;
    return xi;
}

static hw_tensor *gates(const hw_pass *pass, const hw_attention_layer *a, const hw_head_setting *s,
                        const hw_tensor *heads, const hw_segments *queries)
{
    hw_tensor *set = set_gates(pass, a, s, hw_tensor_rows(heads));
    hw_tensor *dropped = dropped_heads(pass, a, heads, queries);
    return set && dropped ? hw_multiply(pass->tape, set, dropped) : set ? set : dropped;
}

/* Attention, gates and output projection; everything between the projections of the input and Add&Norm. */
static hw_tensor *attend(const hw_pass *pass, const hw_attention_layer *a, hw_tensor *query, hw_tensor *key,
                         hw_tensor *value, hw_attention_options *o)
{
    const hw_head_setting *s = pass->settings ? &pass->settings[a->index] : NULL;
    hw_recorder *recorder = pass->recorder;
    o->heads = a->heads;
    o->head_width = a->head_width;
    o->drop = site(pass, &a->weights);
    o->sharpness = s ? s->sharpness : NULL;
    hw_tensor *weights = NULL;
    bool wanted = recorder && recorder->weights && (!recorder->only || recorder->only[a->index]);
    hw_tensor *heads = hw_attention(pass->tape, query, key, value, o, wanted ? &weights : NULL);
    hw_tensor *xi = gates(pass, a, s, heads, &o->queries);
    if (recorder)
        recorder->entries[a->index] =
            (hw_recorded){a->name, o->queries, o->keys, o->causal, weights, heads, xi, value, o->value_column};
    if (xi) heads = hw_gate(pass->tape, heads, xi, s ? s->otherwise : NULL);
    return hw_linear(pass->tape, heads, a->output_weight, a->output_bias, HW_IDENTITY, none());
}

/* Writes keys and values of the new rows, one a hypothesis, into the cache. */
static void append(const hw_attention_layer *a, const hw_tensor *qkv, const hw_segments *rows,
                   const hw_layer_cache *cache)
{
    int64_t width = a->heads * a->head_width, ld = hw_tensor_cols(cache->keys_values);
    for (int64_t b = 0; b < rows->count; b++)
        memcpy(cache->keys_values->data + (cache->next + b) * ld, qkv->data + rows->start[b] * 3 * width + width,
               (size_t)(2 * width) * sizeof(hw_real));
}

hw_tensor *hw_self_attention(const hw_pass *pass, const hw_attention_layer *a, hw_tensor *x, hw_segments rows,
                             bool causal, const hw_layer_cache *cache)
{
    const char *outer = hw_tape_scope(pass->tape, a->scope);
    int64_t width = a->heads * a->head_width;
    hw_tensor *in = hw_add_norm_before(pass, &a->add_norm, x);
    hw_tensor *qkv = hw_linear(pass->tape, in, a->query_weight, a->query_bias, HW_IDENTITY, none());
    hw_attention_options o = {
        .queries = rows, .keys = rows, .key_column = width, .value_column = 2 * width, .causal = causal};
    hw_tensor *memory = qkv;
    if (cache) {
        append(a, qkv, &rows, cache);
        o.keys = cache->at;
        o.key_rows = cache->past;
        o.key_column = 0;
        o.value_column = width;
        memory = cache->keys_values;
    }
    hw_tensor *branch = attend(pass, a, qkv, memory, memory, &o);
    x = hw_add_norm_after(pass, &a->add_norm, x, branch);
    hw_tape_scope(pass->tape, outer);
    return x;
}

hw_tensor *hw_cross_attention(const hw_pass *pass, const hw_attention_layer *a, hw_tensor *x, hw_segments rows,
                              hw_tensor *keys_values, int64_t key_column, int64_t value_column, hw_segments keys)
{
    const char *outer = hw_tape_scope(pass->tape, a->scope);
    hw_tensor *in = hw_add_norm_before(pass, &a->add_norm, x);
    hw_tensor *query = hw_linear(pass->tape, in, a->query_weight, a->query_bias, HW_IDENTITY, none());
    hw_attention_options o = {.queries = rows, .keys = keys, .key_column = key_column, .value_column = value_column};
    hw_tensor *branch = attend(pass, a, query, keys_values, keys_values, &o);
    x = hw_add_norm_after(pass, &a->add_norm, x, branch);
    hw_tape_scope(pass->tape, outer);
    return x;
}

/* ---- feed-forward ------------------------------------------------------------------------------------------------ */

hw_tensor *hw_feed_forward(const hw_pass *pass, const hw_feed_forward_layer *f, hw_tensor *x)
{
    const char *outer = hw_tape_scope(pass->tape, f->scope);
    hw_tensor *in = hw_add_norm_before(pass, &f->add_norm, x);
    hw_tensor *inner =
        hw_linear(pass->tape, in, f->expand_weight, f->expand_bias, f->activation, site(pass, &f->inner));
    hw_tensor *branch = hw_linear(pass->tape, inner, f->contract_weight, f->contract_bias, HW_IDENTITY, none());
    x = hw_add_norm_after(pass, &f->add_norm, x, branch);
    hw_tape_scope(pass->tape, outer);
    return x;
}
