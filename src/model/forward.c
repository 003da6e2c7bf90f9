/* How the Transformer runs: encoder, decoder, output layer (Vaswani et al. 2017, figure 1). */
#include <math.h>
#include <string.h>

#include <headwise/model.h>

static hw_tensor *embed(const hw_pass *pass, const hw_transformer *m, hw_tensor *table, const hw_token_rows *in,
                        const hw_dropout_site *site, const char *scope)
{
    const int32_t *positions = in->positions;
    if (!positions) {
        int32_t *counted = hw_arena_alloc(hw_tape_arena(pass->tape), (size_t)in->rows * sizeof *counted);
        for (int64_t b = 0; b < in->segments.count; b++)
            for (int64_t i = 0; i < in->segments.length[b]; i++) counted[in->segments.start[b] + i] = (int32_t)i;
        positions = counted;
    }
    hw_tape_scope(pass->tape, scope);
    return hw_embedding(pass->tape, table, in->ids, positions, in->rows, (hw_real)sqrt((double)m->options.width),
                        in->first_row, hw_tape_dropout(pass->tape, site->rate, site->site));
}

static hw_tensor *final_norm(const hw_pass *pass, const hw_norm_layer *n, hw_tensor *x)
{
    if (!n->gamma) return x;
    hw_tape_scope(pass->tape, n->scope);
    return hw_layer_norm(pass->tape, x, n->gamma, n->beta);
}

/* In inference nobody comes back to what a layer computed, so the next one computes where it did, in memory that is in
 * cache still; only its result is carried over. */
typedef struct layer_memory {
    hw_arena *arena;
    hw_tensor *result; /* NULL: all stays as it is */
    hw_arena_mark mark;
} layer_memory;

static layer_memory begin_layers(const hw_pass *pass, const hw_tensor *x)
{
    layer_memory m = {.arena = hw_tape_arena(pass->tape)};
    if (hw_tape_mode(pass->tape) == HW_INFERENCE && !pass->recorder)
        m.result = hw_tensor_new(m.arena, x->rank, x->shape);
    m.mark = hw_arena_begin(m.arena);
    return m;
}

static hw_tensor *end_layer(const layer_memory *m, hw_tensor *x)
{
    if (!m->result) return x;
    memcpy(m->result->data, x->data, (size_t)hw_tensor_size(x) * sizeof *x->data);
    hw_arena_end(m->arena, m->mark);
    return m->result;
}

hw_tensor *hw_encode(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *source)
{
    hw_tensor *x = embed(pass, m, m->source_embedding, source, &m->source_dropout, "source embedding");
    layer_memory memory = begin_layers(pass, x);
    for (int64_t l = 0; l < m->options.encoder_layers; l++) {
        x = hw_self_attention(pass, &m->encoder[l].self, x, source->segments, false, NULL);
        x = end_layer(&memory, hw_feed_forward(pass, &m->encoder[l].feed_forward, x));
    }
    return final_norm(pass, &m->encoder_norm, x);
}

hw_tensor *hw_cross_keys_values(const hw_pass *pass, const hw_transformer *m, hw_tensor *encoded)
{
    hw_tape_scope(pass->tape, "decoder cross-attention keys and values");
    return hw_linear(pass->tape, encoded, m->cross_weight, m->cross_bias, HW_IDENTITY, (hw_dropout){.scale = 1});
}

hw_tensor *hw_decode(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *target, hw_tensor *cross,
                     hw_segments keys, const hw_layer_cache *cache)
{
    hw_tensor *x = embed(pass, m, m->target_embedding, target, &m->target_dropout, "target embedding");
    layer_memory memory = begin_layers(pass, x);
    for (int64_t l = 0; l < m->options.decoder_layers; l++) {
        const hw_decoder_layer *d = &m->decoder[l];
        x = hw_self_attention(pass, &d->self, x, target->segments, true, cache ? &cache[l] : NULL);
        x = hw_cross_attention(pass, &d->cross, x, target->segments, cross, d->key_column, d->value_column, keys);
        x = end_layer(&memory, hw_feed_forward(pass, &d->feed_forward, x));
    }
    return final_norm(pass, &m->decoder_norm, x);
}

hw_tensor *hw_logits(const hw_pass *pass, const hw_transformer *m, hw_tensor *decoded)
{
    hw_tape_scope(pass->tape, "output");
    return hw_linear(pass->tape, decoded, m->output_weight, m->output_bias, HW_IDENTITY, (hw_dropout){.scale = 1});
}

hw_tensor *hw_transformer_loss(const hw_pass *pass, const hw_transformer *m, const hw_token_rows *source,
                               const hw_token_rows *target, const int32_t *target_out, hw_real smoothing, hw_real scale,
                               hw_loss_count *count, hw_real *nll)
{
    hw_tensor *encoded = hw_encode(pass, m, source);
    hw_tensor *cross = hw_cross_keys_values(pass, m, encoded);
    hw_tensor *decoded = hw_decode(pass, m, target, cross, source->segments, NULL);
    hw_tape_scope(pass->tape, "output");
    return hw_cross_entropy(pass->tape, decoded, m->output_weight, m->output_bias, target_out, smoothing, scale, count,
                            nll);
}

void hw_transformer_flops(const hw_transformer *m, double *source_token, double *target_token)
{
    double source = 0, target = 2.0 * (double)hw_tensor_size(m->output_weight);
    for (int i = 0; i < hw_parameters_count(m->parameters); i++) {
        const hw_parameter *p = hw_parameters_at(m->parameters, i);
        if (p->tensor.rank != 2 || p->initial == HW_INITIAL_EMBEDDING) continue;
        *(p->name[0] == 'e' ? &source : &target) += 2.0 * (double)hw_tensor_size(&p->tensor);
    }
    double cross = 2.0 * (double)hw_tensor_size(m->cross_weight); /* counted with the decoder, run over source tokens */
    *source_token = source + cross;
    *target_token = target - cross;
}
