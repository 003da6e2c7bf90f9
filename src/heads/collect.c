/* A network run over a set with its target fed, and what its heads do there added to evidence. Batches are visited by
 * several threads; each writes what belongs to its own pairs. */
#include "role.h"

typedef struct collection {
    hw_evidence *evidence;
    const hw_transformer *network;
    const hw_value_norms *norms; /* or NULL */
    const int *first_head;       /* [attentions] the place of each one's head 0 among the heads of its kind */
} collection;

static void collect_place(const collection *c, const hw_visit *v, int attention, int place, int64_t b,
                          const hw_real *block, const hw_real *norms)
{
    hw_arena *arena = hw_tape_arena(v->tape);
    hw_arena_mark mark = hw_arena_begin(arena);
    const hw_place *at = hw_place_at(place);
    int64_t pair = v->batch->lines[b], cols = v->attentions[attention].keys.length[b];
    int64_t rows_count = v->attentions[attention].queries.length[b];
    const hw_study_pair *p = &c->evidence->set->pairs[pair];
    hw_role_cases *cases = hw_role_cases_new(c->evidence, place, pair, arena);
    hw_word_attention words = hw_word_attention_new(at, &p->words[at->query_side], &p->words[at->key_side], arena);
    hw_word_attention tokens = hw_word_attention_new(at, &p->tokens[at->query_side], &p->tokens[at->key_side], arena);
    hw_word_attention arriving = hw_word_attention_new(at, &p->words[at->query_side], &p->words[at->key_side], arena);
    int heads = (int)hw_transformer_attention(c->network, attention)->heads;
    for (int h = 0; h < heads; h++, block += rows_count * cols) {
        hw_word_attention_fill(&words, block, cols, NULL);
        hw_word_attention_fill(&tokens, block, cols, NULL);
        if (norms) hw_word_attention_fill(&arriving, block, cols, norms + h * cols);
        hw_evidence_add(c->evidence, cases, c->first_head[attention] + h, &words, &tokens, norms ? &arriving : NULL);
    }
    hw_arena_end(arena, mark);
}

static void collect_batch(int i, const hw_visit *v, void *argument)
{
    (void)i;
    const collection *c = argument;
    hw_arena *arena = hw_tape_arena(v->tape);
    for (int a = 0; a < c->network->attentions; a++) {
        const hw_recorded *r = &v->attentions[a];
        const hw_real *block = r->weights->data;
        int64_t heads = hw_transformer_attention(c->network, a)->heads;
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            hw_arena_mark mark = hw_arena_begin(arena);
            hw_real *norms = NULL;
            if (c->norms) {
                norms = hw_arena_alloc(arena, (size_t)(heads * r->keys.length[b]) * sizeof *norms);
                hw_value_norms_of(c->norms, a, r, b, norms);
            }
            for (int p = 0; p < HW_PLACES; p++)
                if (hw_place_at(p)->kind == hw_attention_kind_of(c->network, a))
                    collect_place(c, v, a, p, b, block, norms);
            hw_arena_end(arena, mark);
            block += heads * r->queries.length[b] * r->keys.length[b];
        }
    }
}

void hw_evidence_collect(hw_evidence *e, hw_runner *runner, const hw_transformer *network, bool norms)
{
    hw_arena *arena = hw_arena_new(0);
    int *first = hw_arena_alloc(arena, (size_t)network->attentions * sizeof *first), of_kind[HW_ATTENTION_KINDS] = {0};
    for (int a = 0; a < network->attentions; a++) {
        hw_attention_kind kind = hw_attention_kind_of(network, a);
        first[a] = of_kind[kind];
        of_kind[kind] += (int)hw_transformer_attention(network, a)->heads;
    }
    hw_value_norms *values = norms ? hw_value_norms_new(network) : NULL;
    hw_study_visit(e->set, runner, &(hw_visit_options){.weights = true}, collect_batch,
                   &(collection){e, network, values, first});
    hw_value_norms_free(values);
    hw_arena_free(arena);
}
