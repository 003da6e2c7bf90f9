/* A model without some of its heads: the same network with fewer rows in Query, Key and Value, fewer columns in the
 * output projection, and model.removed_heads to say so. Attention heads are independent up to their sum in the output
 * projection, so what is computed is what gates of 0 give (Michel et al. 2019, section 3; Voita et al. 2019). */
#include <headwise/bundle.h>

#include <string.h>

/* ---- values ------------------------------------------------------------------------------------------------------ */

static hw_tensor *find(const hw_transformer *m, const char *scope, const char *part)
{
    char name[256];
    snprintf(name, sizeof name, "%s.%s", scope, part);
    hw_parameter *p = hw_parameters_find(m->parameters, name);
    HW_CHECK(p, "there is no parameter %s", name);
    return &p->tensor;
}

static int place_of(const hw_attention_layer *layer, int head_name)
{
    int h = 0;
    while (h < layer->heads && layer->head_names[h] != head_name) h++;
    HW_CHECK(h < layer->heads, "%s has no head %d", layer->name, head_name);
    return h;
}

/* Head `to` of the smaller attention gets the numbers of head `from`: blocks of rows in the projections of its input,
 * of columns in that of its output. */
static void copy_head(const hw_transformer *whole, const hw_transformer *part, const hw_attention_layer *layer,
                      int from, int to)
{
    static const char *const blocks[] = {"query.weight", "key.weight", "value.weight",
                                         "query.bias",   "key.bias",   "value.bias"};
    int64_t k = layer->head_width;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const hw_tensor *x = find(whole, layer->scope, blocks[i]);
        int64_t size = k * (x->rank == 2 ? x->shape[1] : 1);
        memcpy(find(part, layer->scope, blocks[i])->data + to * size, x->data + from * size,
               (size_t)size * sizeof *x->data);
    }
    const hw_tensor *x = find(whole, layer->scope, "output.weight");
    hw_tensor *y = find(part, layer->scope, "output.weight");
    for (int64_t r = 0; r < x->shape[0]; r++)
        memcpy(y->data + r * y->shape[1] + to * k, x->data + r * x->shape[1] + from * k, (size_t)k * sizeof *x->data);
}

static void copy_values(const hw_transformer *whole, hw_transformer *part)
{
    for (int i = 0; i < hw_parameters_count(part->parameters); i++) {
        hw_parameter *to = hw_parameters_at(part->parameters, i);
        const hw_tensor *from = &hw_parameters_find(whole->parameters, to->name)->tensor;
        if (hw_tensor_same_shape(from, &to->tensor))
            memcpy(to->tensor.data, from->data, (size_t)hw_tensor_size(from) * sizeof *from->data);
    }
    for (int a = 0; a < part->attentions; a++) {
        const hw_attention_layer *to = hw_transformer_attention(part, a), *from = hw_transformer_attention(whole, a);
        for (int h = 0; h < to->heads; h++) copy_head(whole, part, to, place_of(from, to->head_names[h]), h);
    }
    hw_parameters_pack(part->parameters);
}

/* ---- the model --------------------------------------------------------------------------------------------------- */

hw_bundle *hw_bundle_without(const hw_bundle *b, const char *const *heads, int count, const char *directory,
                             hw_arena *arena, hw_error *err)
{
    hw_config *config = hw_arena_copy(arena, b->config, sizeof *config);
    const hw_names *before = &b->config->model.removed_heads;
    const char **names = hw_arena_alloc(arena, (size_t)(before->count + count) * sizeof *names);
    for (int i = 0; i < before->count; i++) names[i] = before->items[i];
    for (int i = 0; i < count; i++) names[before->count + i] = hw_arena_string(arena, "%s", heads[i]);
    config->model.removed_heads = (hw_names){before->count + count, names};
    if (directory) config->training.model_dir = hw_arena_string(arena, "%s", directory);
    hw_texts texts = hw_bundle_texts(b);
    hw_bundle *part = hw_bundle_new(config, &texts, false, err);
    if (part) copy_values(b->network, part->network);
    return part;
}
