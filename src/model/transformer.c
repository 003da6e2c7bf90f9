/* The Transformer as it is built: options checked, parameters declared under the names of the model directory, heads
 * that were pruned left out. How it runs stands in forward.c. */
#include <stdlib.h>
#include <string.h>

#include <headwise/model.h>

/* What a build in progress knows: every dropout site and attention gets the next number. */
typedef struct builder {
    hw_transformer *m;
    uint32_t sites;
    hw_error *err;
} builder;

static const char *name(builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *name(builder *b, const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hw_arena_string(b->m->arena, "%s", text);
}

static hw_dropout_site dropout(builder *b, double rate) { return (hw_dropout_site){rate, b->sites++}; }

static hw_tensor *matrix(builder *b, int64_t outputs, int64_t inputs, const char *scope, const char *part)
{
    return hw_parameters_add(b->m->parameters, HW_INITIAL_XAVIER, 2, (int64_t[]){outputs, inputs}, "%s.%s.weight",
                             scope, part);
}

/* Of queries, keys or values. */
static hw_tensor *projection(builder *b, int64_t outputs, const char *scope, const char *part)
{
    const hw_transformer_options *o = &b->m->options;
    hw_tensor *w = matrix(b, outputs, o->width, scope, part);
    if (o->attention_gain > 0) hw_parameters_gain(b->m->parameters, w, o->attention_gain);
    return w;
}

static hw_tensor *bias(builder *b, int64_t outputs, const char *scope, const char *part)
{
    return hw_parameters_add(b->m->parameters, HW_INITIAL_ZERO, 1, &outputs, "%s.%s.bias", scope, part);
}

static hw_norm_layer norm(builder *b, const char *scope)
{
    hw_parameters *p = b->m->parameters;
    int64_t width = b->m->options.width;
    hw_norm_layer n = {.scope = scope};
    n.gamma = hw_parameters_add(p, HW_INITIAL_ONE, 1, &width, "%s.weight", scope);
    n.beta = hw_parameters_add(p, HW_INITIAL_ZERO, 1, &width, "%s.bias", scope);
    return n;
}

static hw_add_norm add_norm(builder *b, const char *scope)
{
    const hw_transformer_options *o = &b->m->options;
    return (hw_add_norm){norm(b, name(b, "%s_norm", scope)), o->pre_norm, dropout(b, o->dropout_residual)};
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* Which heads are left, by the numbers they were born with; false if none is. */
static bool remaining_heads(builder *b, hw_attention_layer *a)
{
    const hw_transformer_options *o = &b->m->options;
    int *left = hw_arena_alloc(b->m->arena, (size_t)o->heads * sizeof *left);
    a->heads = 0;
    for (int h = 0; h < o->heads; h++) {
        char text[160];
        bool removed = false;
        snprintf(text, sizeof text, "%s.%d", a->name, h);
        for (int i = 0; i < o->removed_count; i++) removed |= !strcmp(o->removed_heads[i], text);
        if (!removed) left[a->heads++] = h;
    }
    a->head_names = left;
    if (!a->heads) return hw_fail(b->err, "model.removed_heads: all heads of %s are removed; one must stay", a->name);
    return true;
}

/* The parameters of cross-attention's keys and values are declared elsewhere, all layers' together. */
static bool attention(builder *b, hw_attention_layer *a, const char *stack, int64_t layer, bool cross)
{
    const hw_transformer_options *o = &b->m->options;
    hw_parameters *p = b->m->parameters;
    const char *kind = cross ? "cross" : "self";
    a->scope = name(b, "%s.%lld.%s_attention", stack, (long long)layer, kind);
    a->name = name(b, "%s.%lld.%s", stack, (long long)layer, kind);
    a->index = b->m->attentions++;
    a->head_width = o->width / o->heads;
    if (!remaining_heads(b, a)) return false;
    int64_t heads_width = a->heads * a->head_width;
    a->query_weight = projection(b, heads_width, a->scope, "query");
    if (!cross) {
        projection(b, heads_width, a->scope, "key");
        projection(b, heads_width, a->scope, "value");
        a->query_weight = hw_parameters_fuse(p, a->query_weight, 3);
    }
    a->query_bias = bias(b, heads_width, a->scope, "query");
    if (!cross) {
        bias(b, heads_width, a->scope, "key");
        bias(b, heads_width, a->scope, "value");
        a->query_bias = hw_parameters_fuse(p, a->query_bias, 3);
    }
    a->output_weight = matrix(b, o->width, heads_width, a->scope, "output");
    a->output_bias = bias(b, o->width, a->scope, "output");
    hw_parameters_packed(p, a->query_weight);
    hw_parameters_packed(p, a->output_weight);
    a->add_norm = add_norm(b, a->scope);
    a->weights = dropout(b, o->dropout_attention);
    return true;
}

static void cross_keys_values(builder *b)
{
    hw_transformer *m = b->m;
    const hw_tensor *first_weight = NULL, *first_bias = NULL;
    static const char *const parts[2] = {"key", "value"};
    int64_t column = 0, layers = m->options.decoder_layers;
    for (int64_t l = 0; l < layers; l++) {
        hw_decoder_layer *d = &m->decoder[l];
        int64_t width = d->cross.heads * d->cross.head_width;
        d->key_column = column;
        d->value_column = column + width;
        column += 2 * width;
        for (int k = 0; k < 2; k++) {
            const hw_tensor *w = projection(b, width, d->cross.scope, parts[k]);
            if (!first_weight) first_weight = w;
        }
    }
    for (int64_t l = 0; l < layers; l++)
        for (int k = 0; k < 2; k++) {
            const hw_attention_layer *c = &m->decoder[l].cross;
            const hw_tensor *w = bias(b, c->heads * c->head_width, c->scope, parts[k]);
            if (!first_bias) first_bias = w;
        }
    m->cross_weight = hw_parameters_fuse(m->parameters, first_weight, (int)(2 * layers));
    m->cross_bias = hw_parameters_fuse(m->parameters, first_bias, (int)(2 * layers));
    hw_parameters_packed(m->parameters, m->cross_weight);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static void feed_forward(builder *b, hw_feed_forward_layer *f, const char *stack, int64_t layer)
{
    const hw_transformer_options *o = &b->m->options;
    f->scope = name(b, "%s.%lld.feed_forward", stack, (long long)layer);
    f->activation = o->activation;
    f->expand_weight = matrix(b, o->feed_forward, o->width, f->scope, "expand");
    f->expand_bias = bias(b, o->feed_forward, f->scope, "expand");
    f->contract_weight = matrix(b, o->width, o->feed_forward, f->scope, "contract");
    f->contract_bias = bias(b, o->width, f->scope, "contract");
    hw_parameters_packed(b->m->parameters, f->expand_weight);
    hw_parameters_packed(b->m->parameters, f->contract_weight);
    f->add_norm = add_norm(b, f->scope);
    f->inner = dropout(b, o->dropout_feed_forward);
}

static hw_tensor *embedding(builder *b, int64_t vocabulary, const char *text)
{
    return hw_parameters_add(b->m->parameters, HW_INITIAL_EMBEDDING, 2, (int64_t[]){vocabulary, b->m->options.width},
                             "%s.weight", text);
}

static void embeddings(builder *b)
{
    hw_transformer *m = b->m;
    const hw_transformer_options *o = &m->options;
    if (o->tied == HW_TIED_ALL) {
        m->source_embedding = m->target_embedding = embedding(b, o->target_vocabulary, "embedding");
    } else {
        m->source_embedding = embedding(b, o->source_vocabulary, "source_embedding");
        m->target_embedding = embedding(b, o->target_vocabulary, "target_embedding");
    }
    m->output_weight = o->tied == HW_TIED_NONE ? embedding(b, o->target_vocabulary, "output") : m->target_embedding;
    m->output_bias = hw_parameters_add(m->parameters, HW_INITIAL_ZERO, 1, &o->target_vocabulary, "output.bias");
    hw_parameters_packed(m->parameters, m->output_weight);
    m->source_dropout = dropout(b, o->dropout_embedding);
    m->target_dropout = dropout(b, o->dropout_embedding);
}

static bool check_removed(builder *b)
{
    const hw_transformer *m = b->m;
    const hw_transformer_options *o = &m->options;
    for (int i = 0; i < o->removed_count; i++) {
        bool known = false;
        for (int k = 0; k < m->attentions && !known; k++) {
            const char *stem = hw_transformer_attention(m, k)->name;
            size_t length = strlen(stem);
            char *end;
            if (strncmp(o->removed_heads[i], stem, length) || o->removed_heads[i][length] != '.') continue;
            long h = strtol(o->removed_heads[i] + length + 1, &end, 10);
            known = !*end && end != o->removed_heads[i] + length + 1 && h >= 0 && h < o->heads;
        }
        if (!known)
            return hw_fail(b->err,
                           "model.removed_heads: there is no head %s; heads are called like encoder.0.self.2, "
                           "decoder.1.cross.0",
                           o->removed_heads[i]);
    }
    return true;
}

static bool check_options(const hw_transformer_options *o, hw_error *err)
{
    static const struct {
        const char *name;
        size_t offset;
    } sizes[] = {
        {"model.encoder_layers", offsetof(hw_transformer_options, encoder_layers)},
        {"model.decoder_layers", offsetof(hw_transformer_options, decoder_layers)},
        {"model.width", offsetof(hw_transformer_options, width)},
        {"model.heads", offsetof(hw_transformer_options, heads)},
        {"model.feed_forward", offsetof(hw_transformer_options, feed_forward)},
        {"the source vocabulary", offsetof(hw_transformer_options, source_vocabulary)},
        {"the target vocabulary", offsetof(hw_transformer_options, target_vocabulary)},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t value = *(const int64_t *)((const char *)o + sizes[i].offset);
        if (value < 1 || value > INT32_MAX)
            return hw_fail(err, "%s: %lld is not between 1 and %d", sizes[i].name, (long long)value, INT32_MAX);
    }
    if (o->width % o->heads)
        return hw_fail(err, "model.heads: %lld does not divide model.width %lld", (long long)o->heads,
                       (long long)o->width);
    if (o->width % 2)
        return hw_fail(err, "model.width: %lld is odd; positions need sines and cosines", (long long)o->width);
    if (o->tied == HW_TIED_ALL && o->source_vocabulary != o->target_vocabulary)
        return hw_fail(
            err, "model.tied_embeddings: all needs one vocabulary for both sides, these have %lld and %lld tokens",
            (long long)o->source_vocabulary, (long long)o->target_vocabulary);
    return true;
}

/* Declares everything; the parameters have no memory yet. */
static bool declare(builder *b)
{
    hw_transformer *m = b->m;
    const hw_transformer_options *o = &m->options;
    m->encoder = hw_arena_calloc(m->arena, (size_t)o->encoder_layers, sizeof *m->encoder);
    m->decoder = hw_arena_calloc(m->arena, (size_t)o->decoder_layers, sizeof *m->decoder);
    embeddings(b);
    for (int64_t l = 0; l < o->encoder_layers; l++) {
        if (!attention(b, &m->encoder[l].self, "encoder", l, false)) return false;
        feed_forward(b, &m->encoder[l].feed_forward, "encoder", l);
    }
    for (int64_t l = 0; l < o->decoder_layers; l++) {
        if (!attention(b, &m->decoder[l].self, "decoder", l, false)) return false;
        if (!attention(b, &m->decoder[l].cross, "decoder", l, true)) return false;
        feed_forward(b, &m->decoder[l].feed_forward, "decoder", l);
    }
    cross_keys_values(b);
    if (o->pre_norm) {
        m->encoder_norm = norm(b, "encoder.norm");
        m->decoder_norm = norm(b, "decoder.norm");
    }
    return check_removed(b);
}

static hw_transformer *build(const hw_transformer_options *options, hw_error *err)
{
    if (!check_options(options, err)) return NULL;
    hw_arena *arena = hw_arena_new(0);
    hw_transformer *m = hw_arena_calloc(arena, 1, sizeof *m);
    m->arena = arena;
    m->options = *options;
    const char **removed = hw_arena_calloc(arena, (size_t)options->removed_count, sizeof *removed);
    for (int i = 0; i < options->removed_count; i++)
        removed[i] = hw_arena_string(arena, "%s", options->removed_heads[i]);
    m->options.removed_heads = removed;
    m->parameters = hw_parameters_new();
    builder b = {.m = m, .err = err};
    if (declare(&b)) return m;
    hw_transformer_free(m);
    return NULL;
}

hw_transformer *hw_transformer_new(const hw_transformer_options *options, bool gradients, hw_error *err)
{
    hw_transformer *m = build(options, err);
    if (m) hw_parameters_layout(m->parameters, NULL, gradients);
    return m;
}

hw_transformer *hw_transformer_replica(const hw_transformer *m)
{
    hw_transformer *replica = build(&m->options, NULL);
    hw_parameters_layout(replica->parameters, m->parameters, true);
    return replica;
}

void hw_transformer_free(hw_transformer *m)
{
    if (!m) return;
    hw_parameters_free(m->parameters);
    hw_arena_free(m->arena);
}

int64_t hw_transformer_size(const hw_transformer_options *options, hw_error *err)
{
    hw_transformer *m = build(options, err);
    if (!m) return -1;
    int64_t total = hw_parameters_total(m->parameters);
    hw_transformer_free(m);
    return total;
}

const hw_attention_layer *hw_transformer_attention(const hw_transformer *m, int index)
{
    int64_t layers = m->options.encoder_layers;
    if (index < layers) return &m->encoder[index].self;
    const hw_decoder_layer *d = &m->decoder[(index - layers) / 2];
    return (index - layers) % 2 ? &d->cross : &d->self;
}
