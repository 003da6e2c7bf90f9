/* The terms that push heads apart in training (training.head_diversity), from what a pass recorded.
 *
 * Output, subspace, position: Li et al. 2018, "Multi-Head Attention with Disagreement Regularization", section 3, whose
 * disagreements are made large; here agreement is made small, which is the same. Orthogonal: the penalty of Lin et al.
 * 2017, "A Structured Self-Attentive Sentence Embedding", section 2.2, a query at a time with the heads in place of its
 * hops; it is smallest where rows are one-hot and apart, so it also rewards sharp heads. Each is a mean over the rows
 * of the batch, then over attentions, so that a weight means the same for any batch and depth. */
#include <string.h>

#include <headwise/heads.h>

static bool wanted(const hw_config *c, hw_attention_kind kind)
{
    static const char *const places[HW_ATTENTION_KINDS] = {
        [HW_ENCODER_SELF] = "encoder", [HW_DECODER_SELF] = "decoder", [HW_CROSS] = "cross"};
    const hw_names *where = &c->training.head_diversity.where;
    for (int i = 0; i < where->count; i++)
        if (!strcmp(where->items[i], places[kind])) return true;
    return false;
}

/* An attention with one head has nothing to be apart from. */
static bool has_term(const hw_transformer *m, const hw_config *c, int attention)
{
    return hw_transformer_attention(m, attention)->heads > 1 && wanted(c, hw_attention_kind_of(m, attention));
}

int hw_diversity_attentions(const hw_transformer *network, const hw_config *config)
{
    int count = 0;
    for (int a = 0; a < network->attentions; a++) count += has_term(network, config, a);
    return count;
}

bool hw_diversity_needs_weights(const hw_config *c)
{
    return c->training.head_diversity.kind == HW_DIVERSITY_POSITION ||
           c->training.head_diversity.kind == HW_DIVERSITY_ORTHOGONAL;
}

/* A number a row of one attention. */
static hw_tensor *rows_of(hw_tape *t, const hw_config *c, const hw_attention_layer *layer, const hw_recorded *r)
{
    bool diagonal = c->training.head_diversity.diagonal, squared = c->training.head_diversity.squared;
    hw_real entropy = (hw_real)c->training.head_diversity.entropy;
    const hw_attention_blocks blocks = {layer->heads, r->queries, r->keys, r->causal};
    switch (c->training.head_diversity.kind) {
    case HW_DIVERSITY_OUTPUT:
        return hw_head_cosine(t, r->heads, 0, layer->heads, layer->head_width, diagonal, squared);
    case HW_DIVERSITY_SUBSPACE:
        return hw_head_cosine(t, r->values, r->value_column, layer->heads, layer->head_width, diagonal, squared);
    case HW_DIVERSITY_ORTHOGONAL:
        return hw_head_orthogonal(t, r->weights, &blocks);
    default:
        break;
    }
    hw_tensor *overlap = hw_head_overlap(t, r->weights, &blocks, diagonal);
    return entropy > 0 ? hw_add(t, overlap, hw_scale(t, hw_head_entropy(t, r->weights, &blocks), entropy)) : overlap;
}

hw_tensor *hw_diversity_term(hw_tape *t, const hw_transformer *m, const hw_recorded *recorded, const hw_config *c,
                             int64_t source_rows, int64_t target_rows)
{
    hw_tensor *sum = NULL;
    double attentions = (double)hw_diversity_attentions(m, c);
    const char *outer = hw_tape_scope(t, "head diversity");
    for (int a = 0; a < m->attentions; a++) {
        if (!has_term(m, c, a)) continue;
        bool source =
            hw_attention_kind_of(m, a) == HW_ENCODER_SELF ||
            (hw_attention_kind_of(m, a) == HW_CROSS && c->training.head_diversity.kind == HW_DIVERSITY_SUBSPACE);
        hw_tensor *term = hw_sum(t, rows_of(t, c, hw_transformer_attention(m, a), &recorded[a]));
        term = hw_scale(t, term, (hw_real)(1 / (attentions * (double)(source ? source_rows : target_rows))));
        sum = sum ? hw_add(t, sum, term) : term;
    }
    hw_tape_scope(t, outer);
    return sum;
}
