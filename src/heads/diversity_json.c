/* What heads diversity found, as JSON: pairs of heads, and their means for each head, layer, kind, and overall. */
#include "heads/diversity.h"

#include <math.h>

/* Figures that are means over the pairs of different heads of a layer. */
static const struct {
    const char *key;
    size_t offset;
} figures[] = {
    {"js", offsetof(hw_diversity_pair, js)},
    {"output", offsetof(hw_diversity_pair, output)},
    {"output_squared", offsetof(hw_diversity_pair, output_squared)},
    {"subspace", offsetof(hw_diversity_pair, subspace)},
    {"subspace_squared", offsetof(hw_diversity_pair, subspace_squared)},
    {"position", offsetof(hw_diversity_pair, position)},
    {"cka", offsetof(hw_diversity_pair, cka)},
};
enum { FIGURES = sizeof figures / sizeof *figures };

static double figure(const hw_diversity_pair *p, int i)
{
    return *(const double *)((const char *)p + figures[i].offset);
}

static void set_number(json_t *o, const char *key, double x)
{
    json_object_set_new(o, key, hw_json_number(x));
}

static bool same_layer(const hw_diversity *d, const hw_diversity_pair *p)
{
    return d->head[p->a].attention == d->head[p->b].attention;
}

/* The mean of a figure over pairs of different heads of a layer, those of one head only where it is not -1. */
static double mean(const hw_diversity *d, int attention, int head, int i)
{
    double sum = 0, count = 0;
    for (int k = 0; k < d->count; k++) {
        const hw_diversity_pair *p = &d->items[k];
        if (p->a == p->b || !same_layer(d, p) || d->head[p->a].attention != attention) continue;
        if (head >= 0 && p->a != head && p->b != head) continue;
        sum += figure(p, i);
        count++;
    }
    return count > 0 ? sum / count : NAN;
}

/* The sums of Li et al. 2018 over all H^2 pairs, i = j included, as disagreement; and |A A' - I|^2. */
static void set_disagreement(json_t *o, const hw_diversity *d, int attention, double heads)
{
    double position = 0, orthogonal = 0, output = heads, subspace = heads;
    for (int k = 0; k < d->count; k++) {
        const hw_diversity_pair *p = &d->items[k];
        if (!same_layer(d, p) || d->head[p->a].attention != attention) continue;
        double times = p->a == p->b ? 1 : 2;
        position += times * p->position;
        orthogonal += times * p->orthogonal;
        output += p->a == p->b ? 0 : 2 * p->output;
        subspace += p->a == p->b ? 0 : 2 * p->subspace;
    }
    set_number(o, "orthogonal", orthogonal);
    set_number(o, "disagreement_output", -output / (heads * heads));
    set_number(o, "disagreement_subspace", -subspace / (heads * heads));
    set_number(o, "disagreement_position", -position / (heads * heads));
}

static json_t *layer_json(const hw_diversity *d, const hw_transformer *m, int attention)
{
    const hw_attention_layer *layer = hw_transformer_attention(m, attention);
    json_t *o = json_pack("{s:s, s:I}", "name", layer->name, "heads", (json_int_t)layer->heads);
    for (int i = 0; i < FIGURES; i++) set_number(o, figures[i].key, mean(d, attention, -1, i));
    set_disagreement(o, d, attention, (double)layer->heads);
    set_number(o, "effective_heads", d->layer_effective[attention]);
    return o;
}

/* Every figure's mean over the layers that have one: with one head there is no pair. */
static json_t *overall_json(const json_t *layers)
{
    json_t *o = json_object(), *value;
    const char *key;
    json_object_foreach(json_array_get(layers, 0), key, value)
    {
        double sum = 0, count = 0;
        if (json_is_string(value) || json_is_integer(value)) continue;
        for (size_t i = 0; i < json_array_size(layers); i++) {
            const json_t *layer = json_array_get(layers, i), *x = json_object_get(layer, key);
            if (!json_is_real(x) || json_integer_value(json_object_get(layer, "heads")) < 2) continue;
            sum += json_real_value(x);
            count++;
        }
        set_number(o, key, count > 0 ? sum / count : NAN);
    }
    return o;
}

/* All heads of a kind, across layers. */
static json_t *kind_json(const hw_diversity *d, hw_attention_kind kind)
{
    double js = 0, cka = 0, pairs = 0;
    int heads = 0;
    for (int h = 0; h < d->heads; h++) heads += d->head[h].kind == kind;
    for (int k = 0; k < d->count; k++) {
        const hw_diversity_pair *p = &d->items[k];
        if (p->a == p->b || d->head[p->a].kind != kind) continue;
        js += p->js;
        cka += p->cka;
        pairs++;
    }
    json_t *o = json_pack("{s:s, s:i}", "name", hw_kind_name(kind), "heads", heads);
    set_number(o, "js", js / pairs);
    set_number(o, "cka", cka / pairs);
    set_number(o, "effective_heads", d->effective[kind]);
    set_number(o, "map_shows", d->shown[kind]);
    return o;
}

static json_t *head_json(const hw_diversity *d, int h)
{
    const hw_head *head = &d->head[h];
    json_t *o = json_pack("{s:s, s:s}", "name", head->name, "kind", hw_kind_name(head->kind));
    set_number(o, "x", d->place[h][0]);
    set_number(o, "y", d->place[h][1]);
    for (int i = 0; i < FIGURES; i++) set_number(o, figures[i].key, mean(d, head->attention, h, i));
    double nearest = INFINITY;
    for (int k = 0; k < d->count; k++) {
        const hw_diversity_pair *p = &d->items[k];
        if (p->a == p->b || (p->a != h && p->b != h) || p->js >= nearest) continue;
        nearest = p->js;
        json_object_set_new(o, "nearest", json_string(d->head[p->a == h ? p->b : p->a].name));
    }
    set_number(o, "nearest_js", nearest);
    return o;
}

static json_t *pair_json(const hw_diversity *d, const hw_diversity_pair *p)
{
    json_t *o = json_pack("{s:s, s:s}", "a", d->head[p->a].name, "b", d->head[p->b].name);
    for (int i = 0; i < FIGURES; i++)
        if (isfinite(figure(p, i))) set_number(o, figures[i].key, figure(p, i));
    return o;
}

json_t *hw_diversity_json(const hw_diversity *d, const hw_transformer *m)
{
    json_t *heads = json_array(), *layers = json_array(), *kinds = json_array(), *pairs = json_array();
    for (int h = 0; h < d->heads; h++) json_array_append_new(heads, head_json(d, h));
    for (int a = 0; a < m->attentions; a++) json_array_append_new(layers, layer_json(d, m, a));
    for (int k = 0; k < HW_ATTENTION_KINDS; k++) json_array_append_new(kinds, kind_json(d, (hw_attention_kind)k));
    for (int i = 0; i < d->count; i++)
        if (d->items[i].a != d->items[i].b) json_array_append_new(pairs, pair_json(d, &d->items[i]));
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "sentences", (json_int_t)d->pairs, "heads", heads, "layers",
                     layers, "kinds", kinds, "pairs", pairs, "overall", overall_json(layers));
}
