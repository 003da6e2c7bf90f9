/* Guided alignment: a term of the loss on the weights of one cross-attention head; see guided.h. */
#include "guided.h"

#include <stdlib.h>

/* ---- the head ---------------------------------------------------------------------------------------------------- */

hw_guided *hw_guided_new(const hw_transformer *model, const hw_config *c)
{
    if (!(c->training.guided_alignment.weight > 0)) return NULL;
    hw_guided *g = calloc(1, sizeof *g);
    HW_CHECK(g && (g->only = calloc((size_t)model->attentions, sizeof *g->only)), "no memory for guided alignment");
    g->layer = &model->decoder[hw_guided_layer(c)].cross;
    g->row = c->training.guided_alignment.step == HW_STEP_FED;
    g->only[g->layer->index] = true;
    while (g->head < g->layer->heads && g->layer->head_names[g->head] != c->training.guided_alignment.head) g->head++;
    HW_CHECK(g->head < g->layer->heads, "%s has no head %lld", g->layer->name,
             (long long)c->training.guided_alignment.head); /* hw_config_check looked */
    return g;
}

void hw_guided_free(hw_guided *g)
{
    if (!g) return;
    free(g->only);
    free(g);
}

/* ---- the term ---------------------------------------------------------------------------------------------------- */

static bool begins_token(const hw_pair_links *l, int64_t i)
{
    return !i || l->links[i].target != l->links[i - 1].target;
}

int64_t hw_guided_tokens(const hw_batch *batch)
{
    int64_t count = 0;
    HW_CHECK(batch->links, "guided alignment of a batch without links");
    for (int64_t b = 0; b < batch->sentences; b++)
        for (int64_t i = 0; i < batch->links[b].count; i++) count += begins_token(&batch->links[b], i);
    return count;
}

hw_tensor *hw_guided_term(const hw_guided *g, hw_tape *tape, const hw_recorded *recorded, const hw_batch *micro,
                          int64_t tokens)
{
    const hw_recorded *r = &recorded[g->layer->index];
    hw_arena *arena = hw_tape_arena(tape);
    int64_t count = 0, row = 0, at = 0;
    for (int64_t b = 0; b < micro->sentences; b++) count += micro->links[b].count;
    if (!count) return NULL;
    int64_t *first = hw_arena_alloc(arena, ((size_t)micro->target_rows + 1) * sizeof *first);
    int32_t *keys = hw_arena_alloc(arena, (size_t)count * sizeof *keys);
    for (int64_t b = 0; b < micro->sentences; b++) {
        const hw_pair_links *l = &micro->links[b];
        for (int64_t t = 0, i = 0; t < micro->target.length[b]; t++) {
            first[row++] = at;
            for (; i < l->count && l->links[i].target + g->row == t; i++) keys[at++] = l->links[i].source;
        }
    }
    first[row] = at;
    const char *outer = hw_tape_scope(tape, "guided alignment");
    const hw_attention_blocks blocks = {g->layer->heads, r->queries, r->keys, r->causal};
    hw_tensor *term = hw_sum(tape, hw_head_targets(tape, r->weights, &blocks, g->head, first, keys));
    term = hw_scale(tape, term, (hw_real)(1 / (double)tokens));
    hw_tape_scope(tape, outer);
    return term;
}

/* ---- in words ---------------------------------------------------------------------------------------------------- */

const char *hw_guided_describe(const hw_config *c, const hw_corpus *corpus, hw_arena *arena, hw_error *err)
{
    const hw_corpus_counts *n = hw_corpus_count(corpus);
    char some[32], all[32];
    if (!n->aligned) {
        hw_fail(err,
                "%s/%s.%s: no pair that is trained on has a link in it, so there is nothing that "
                "training.guided_alignment could teach",
                c->data.dir, c->data.train, c->training.guided_alignment.suffix);
        return NULL;
    }
    return hw_arena_string(arena, "%s of %s %s links for decoder.%lld.cross.%lld", hw_thousands(n->aligned, some),
                           hw_thousands(n->pairs, all), hw_plural(n->pairs, "pair has", "pairs have"),
                           (long long)hw_guided_layer(c), (long long)c->training.guided_alignment.head);
}
