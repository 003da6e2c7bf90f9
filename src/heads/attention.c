/* Attention between words: the heads of a network, the places where a word's attention is read, and a head's block of
 * weights over tokens turned into rows and columns of words.
 *
 * The decoder's row t was fed token t of <s> w1 .. wm and predicts the next. So word j is fed at row j + 1 and
 * predicted at row j (words from 0), and a head may do its work at either. The norms are those of Kobayashi et al.
 * 2020, section 2: what arrives at a query from key j is a_ij f(x_j) with f(x) = (x W_value + b_value) W_output, and
 * its length tells more than a_ij alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

/* ---- heads and places -------------------------------------------------------------------------------------------- */

hw_attention_kind hw_attention_kind_of(const hw_transformer *m, int attention)
{
    int64_t decoder = attention - m->options.encoder_layers;
    if (decoder < 0) return HW_ENCODER_SELF;
    return hw_transformer_attention(m, attention) == &m->decoder[decoder / 2].cross ? HW_CROSS : HW_DECODER_SELF;
}

hw_head *hw_heads_of(const hw_transformer *m, hw_arena *arena, int *count)
{
    hw_head *heads = hw_arena_alloc(arena, (size_t)m->attentions * (size_t)m->options.heads * sizeof *heads);
    int of_kind[HW_ATTENTION_KINDS] = {0};
    *count = 0;
    for (int a = 0; a < m->attentions; a++) {
        const hw_attention_layer *layer = hw_transformer_attention(m, a);
        hw_attention_kind kind = hw_attention_kind_of(m, a);
        for (int h = 0; h < layer->heads; h++) {
            hw_head *head = &heads[(*count)++];
            *head = (hw_head){.attention = a, .head = h, .kind = kind, .of_kind = of_kind[kind]++};
            snprintf(head->name, sizeof head->name, "%s.%d", layer->name, layer->head_names[h]);
        }
    }
    return heads;
}

bool hw_head_is_closed(const hw_transformer *m, const hw_head *head)
{
    const hw_attention_layer *layer = hw_transformer_attention(m, head->attention);
    const hw_tensor *w = layer->output_weight; /* [D, H K] */
    int64_t all = w->shape[1], width = all / layer->heads;
    for (int64_t row = 0; row < w->shape[0]; row++)
        for (int64_t k = 0; k < width; k++)
            if (w->data[row * all + head->head * width + k] != 0) return false;
    return true;
}

static const hw_place places[HW_PLACES] = {
    [HW_PLACE_ENCODER] = {HW_ENCODER_SELF, NULL, HW_SOURCE, HW_SOURCE, .row = 0, .first_key = 0, .causal = false},
    [HW_PLACE_DECODER_FED] = {HW_DECODER_SELF, "fed", HW_TARGET, HW_TARGET, .row = 1, .first_key = 1, .causal = true},
    [HW_PLACE_DECODER_PREDICTED] = {HW_DECODER_SELF, "predicted", HW_TARGET, HW_TARGET, .row = 0, .first_key = 1,
                                    .causal = true},
    [HW_PLACE_CROSS_FED] = {HW_CROSS, "fed", HW_TARGET, HW_SOURCE, .row = 1, .first_key = 0, .causal = false},
    [HW_PLACE_CROSS_PREDICTED] = {HW_CROSS, "predicted", HW_TARGET, HW_SOURCE, .row = 0, .first_key = 0,
                                  .causal = false},
};

const hw_place *hw_place_at(int place) { return &places[place]; }

/* ---- words from tokens ------------------------------------------------------------------------------------------- */

/* How many columns the last row of a query word sees: <s>, and the words of which it sees a token. */
static int32_t visible_keys(const hw_place *place, const hw_sentence *query, int32_t q, int32_t keys)
{
    if (!place->causal) return keys;
    const hw_study_word *word = &query->words[q];
    bool sees_itself = place->row || word->count > 1;
    return place->first_key + q + sees_itself;
}

hw_word_attention hw_word_attention_new(const hw_place *place, const hw_sentence *query, const hw_sentence *key,
                                        hw_arena *arena)
{
    hw_word_attention a = {.place = place, .query = query, .key = key, .queries = query->count, .keys = key->count + 1};
    a.special = place->first_key ? 0 : key->count;
    int32_t *visible = hw_arena_alloc(arena, ((size_t)a.queries + 1) * sizeof *visible);
    for (int32_t q = 0; q < a.queries; q++) visible[q] = visible_keys(place, query, q, a.keys);
    a.visible = visible;
    a.own = hw_arena_alloc(arena, (size_t)a.queries * (size_t)a.keys * sizeof *a.own + 1);
    return a;
}

/* The row of one token added to a row of words. */
static void add_row(const hw_word_attention *a, const hw_real *row, const hw_real *norms, double share, double *out)
{
    int32_t first = a->place->first_key;
    for (int32_t k = 0; k < a->key->count; k++) {
        const hw_study_word *word = &a->key->words[k];
        const hw_real *weights = row + first + word->first;
        double sum = 0;
        for (int32_t t = 0; t < word->count; t++)
            sum += norms ? (double)weights[t] * (double)norms[first + word->first + t] : (double)weights[t];
        out[first + k] += share * sum;
    }
    int64_t special = first ? 0 : a->key->ids.count;
    out[a->special] += share * (norms ? (double)row[special] * (double)norms[special] : (double)row[special]);
}

static void join_query(hw_word_attention *a, int32_t q, const hw_real *block, int64_t cols, const hw_real *norms,
                       double *sums)
{
    const hw_study_word *word = &a->query->words[q];
    memset(sums, 0, (size_t)a->keys * sizeof *sums);
    for (int32_t t = word->first; t < word->first + word->count; t++)
        add_row(a, block + (t + a->place->row) * cols, norms, 1.0 / word->count, sums);
    double total = 0;
    for (int32_t k = 0; k < a->keys; k++) total += sums[k];
    double scale = norms && total > 0 ? 1 / total : 1;
    if (norms) a->arriving += total;
    hw_real *out = a->own + (int64_t)q * a->keys;
    for (int32_t k = 0; k < a->keys; k++) out[k] = (hw_real)(scale * sums[k]);
}

void hw_word_attention_fill(hw_word_attention *a, const hw_real *block, int64_t cols, const hw_real *norms)
{
    bool by_token = a->query->count == a->query->ids.count && a->key->count == a->key->ids.count;
    a->arriving = 0;
    if (by_token && !norms) {
        a->weights = block + a->place->row * cols;
        a->stride = cols;
        return;
    }
    double few[512], *sums = a->keys <= 512 ? few : malloc((size_t)a->keys * sizeof *sums);
    HW_CHECK(sums, "no memory for %d keys", a->keys);
    for (int32_t q = 0; q < a->queries; q++) join_query(a, q, block, cols, norms, sums);
    if (sums != few) free(sums);
    a->weights = a->own;
    a->stride = a->keys;
}

double hw_attention_entropy(const hw_real *weights, int64_t count)
{
    double entropy = 0;
    for (int64_t i = 0; i < count; i++)
        if (weights[i] > 0) entropy -= (double)weights[i] * log((double)weights[i]);
    return entropy;
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* |v W|^2 = v (W W') v', so each head needs the products of the K columns of its output projection once. */
struct hw_value_norms {
    const hw_transformer *network;
    double **products; /* [attentions] -> [H][K][K] */
};

static double *products_of(const hw_attention_layer *layer)
{
    int64_t width = layer->head_width, ld = layer->heads * width, rows = layer->output_weight->shape[0];
    double *all = calloc((size_t)(layer->heads * width * width), sizeof *all);
    HW_CHECK(all, "no memory for the output projection of %s", layer->name);
    for (int64_t d = 0; d < rows; d++)
        for (int64_t h = 0; h < layer->heads; h++) {
            const hw_real *w = layer->output_weight->data + d * ld + h * width;
            double *p = all + h * width * width;
            for (int64_t i = 0; i < width; i++)
                for (int64_t j = 0; j < width; j++) p[i * width + j] += (double)w[i] * (double)w[j];
        }
    return all;
}

hw_value_norms *hw_value_norms_new(const hw_transformer *m)
{
    hw_value_norms *n = calloc(1, sizeof *n);
    HW_CHECK(n, "no memory for norms");
    n->network = m;
    n->products = calloc((size_t)m->attentions, sizeof *n->products);
    HW_CHECK(n->products, "no memory for norms");
    for (int a = 0; a < m->attentions; a++) n->products[a] = products_of(hw_transformer_attention(m, a));
    return n;
}

void hw_value_norms_free(hw_value_norms *n)
{
    if (!n) return;
    for (int a = 0; a < n->network->attentions; a++) free(n->products[a]);
    free(n->products);
    free(n);
}

static double norm_of(const double *product, const hw_real *v, int64_t width)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++) {
        double row = 0;
        for (int64_t j = 0; j < width; j++) row += product[i * width + j] * (double)v[j];
        sum += row * (double)v[i];
    }
    return sqrt(sum > 0 ? sum : 0);
}

void hw_value_norms_of(const hw_value_norms *n, int attention, const hw_recorded *r, int64_t b, hw_real *out)
{
    const hw_attention_layer *layer = hw_transformer_attention(n->network, attention);
    int64_t width = layer->head_width, ld = hw_tensor_cols(r->values), keys = r->keys.length[b];
    for (int64_t h = 0; h < layer->heads; h++)
        for (int64_t k = 0; k < keys; k++) {
            const hw_real *v = r->values->data + (r->keys.start[b] + k) * ld + r->value_column + h * width;
            out[h * keys + k] = (hw_real)norm_of(n->products[attention] + h * width * width, v, width);
        }
}
