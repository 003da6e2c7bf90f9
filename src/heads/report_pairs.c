/* The sentences of a report: which ones it shows, and every head's attention in them, small enough for a page.
 *
 * A weight becomes two letters of base 64, 12 bits, which is finer than any picture shows. The norms of what keys send
 * (Kobayashi et al. 2020) need a number a key only, so the page can draw either. A page must open on a telephone: once
 * the letters of all pairs reach a limit, further pairs are left out. */
#include <string.h>

#include <headwise/heads.h>

enum { LEVELS = 4095 };

/* ---- the choice -------------------------------------------------------------------------------------------------- */

typedef struct choice {
    const hw_study_set *set;
    const hw_transformer *network;
    bool *taken;      /* [pairs of the set] */
    int64_t *of_line; /* [lines] the pair of a line, or -1 */
    int64_t letters, limit;
} choice;

static int64_t letters_of(const hw_transformer *m, const hw_study_pair *p)
{
    int64_t length[2] = {p->words[HW_SOURCE].ids.count + 1, p->words[HW_TARGET].ids.count + 1}, letters = 0;
    for (int a = 0; a < m->attentions; a++) {
        hw_attention_kind kind = hw_attention_kind_of(m, a);
        int64_t queries = length[kind != HW_ENCODER_SELF], keys = length[kind == HW_DECODER_SELF];
        letters += 2 * hw_transformer_attention(m, a)->heads * (queries + 1) * keys;
    }
    return letters;
}

static void take(choice *c, int64_t pair)
{
    if (pair < 0 || c->taken[pair]) return;
    int64_t letters = letters_of(c->network, &c->set->pairs[pair]);
    if (c->letters + letters > c->limit) return;
    c->letters += letters;
    c->taken[pair] = true;
}

/* The i-th example of every role that any head was found to have. */
static void take_examples(choice *c, const json_t *roles, const char *list, size_t i)
{
    size_t h, r;
    const json_t *head, *result;
    json_array_foreach(json_object_get(roles, "heads"), h, head)
    {
        json_array_foreach(json_object_get(head, "roles"), r, result)
        {
            const json_t *line = json_array_get(json_object_get(result, list), i);
            int64_t at = json_integer_value(line) - 1;
            if (line && at >= 0 && at < c->set->lines) take(c, c->of_line[at]);
        }
    }
}

int64_t *hw_report_choose(const hw_transformer *network, const hw_study_set *set, const json_t *roles, int64_t plain,
                          int64_t limit, hw_arena *arena, int64_t *count)
{
    choice c = {.set = set, .network = network, .limit = limit};
    c.taken = hw_arena_calloc(arena, (size_t)set->count, sizeof *c.taken);
    c.of_line = hw_arena_alloc(arena, (size_t)set->lines * sizeof *c.of_line);
    for (int64_t i = 0; i < set->lines; i++) c.of_line[i] = -1;
    for (int64_t i = 0; i < set->count; i++) c.of_line[set->pairs[i].line] = i;
    for (int64_t i = 0; i < set->count && i < plain; i++) take(&c, i);
    for (size_t i = 0; i < HW_ROLE_EXAMPLES; i++) {
        take_examples(&c, roles, "strongest", i);
        take_examples(&c, roles, "failing", i);
    }
    int64_t *chosen = hw_arena_alloc(arena, (size_t)set->count * sizeof *chosen);
    *count = 0;
    for (int64_t i = 0; i < set->count; i++)
        if (c.taken[i]) chosen[(*count)++] = i;
    return chosen;
}

/* ---- letters ----------------------------------------------------------------------------------------------------- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char *put(char *out, double share)
{
    int level = share > 0 ? (int)(share * LEVELS + 0.5) : 0;
    if (level > LEVELS) level = LEVELS;
    *out++ = alphabet[level >> 6];
    *out++ = alphabet[level & 63];
    return out;
}

/* What is drawn of one attention in one pair: letters of [H][queries][keys] weights, and of [H][keys] norms as shares
 * of the head's largest. */
typedef struct drawn {
    char *weights, *norms;
} drawn;

typedef struct work {
    const hw_transformer *network;
    const hw_value_norms *norms;
    drawn *drawn; /* [pairs][attentions] */
} work;

static void write_norms(char *out, const hw_real *norms, int64_t heads, int64_t keys)
{
    for (int64_t h = 0; h < heads; h++, norms += keys) {
        hw_real most = 0;
        for (int64_t k = 0; k < keys; k++)
            if (norms[k] > most) most = norms[k];
        for (int64_t k = 0; k < keys; k++) out = put(out, most > 0 ? (double)norms[k] / (double)most : 0);
    }
    *out = 0;
}

static void draw_batch(int i, const hw_visit *v, void *argument)
{
    (void)i;
    const work *w = argument;
    hw_arena *arena = hw_tape_arena(v->tape);
    for (int a = 0; a < w->network->attentions; a++) {
        const hw_recorded *r = &v->attentions[a];
        const hw_real *block = r->weights->data;
        int64_t heads = hw_transformer_attention(w->network, a)->heads;
        for (int64_t b = 0; b < v->batch->sentences; b++) {
            int64_t keys = r->keys.length[b], size = heads * r->queries.length[b] * keys;
            drawn *d = &w->drawn[v->batch->lines[b] * w->network->attentions + a];
            char *out = d->weights;
            for (int64_t k = 0; k < size; k++) out = put(out, (double)block[k]);
            *out = 0;
            block += size;
            hw_arena_mark mark = hw_arena_begin(arena);
            hw_real *norms = hw_arena_alloc(arena, (size_t)(heads * keys) * sizeof *norms);
            hw_value_norms_of(w->norms, a, r, b, norms);
            write_norms(d->norms, norms, heads, keys);
            hw_arena_end(arena, mark);
        }
    }
}

/* Room for all letters, which several threads fill. */
static drawn *room_for(const hw_transformer *m, const hw_study_set *set, hw_arena *arena)
{
    drawn *all = hw_arena_alloc(arena, (size_t)(set->count * m->attentions + 1) * sizeof *all), *d = all;
    for (int64_t i = 0; i < set->count; i++)
        for (int a = 0; a < m->attentions; a++, d++) {
            const hw_study_pair *p = &set->pairs[i];
            hw_attention_kind kind = hw_attention_kind_of(m, a);
            int64_t heads = hw_transformer_attention(m, a)->heads;
            int64_t queries = p->words[kind != HW_ENCODER_SELF].ids.count + 1;
            int64_t keys = p->words[kind == HW_DECODER_SELF].ids.count + 1;
            d->weights = hw_arena_alloc(arena, (size_t)(2 * heads * queries * keys + 1));
            d->norms = hw_arena_alloc(arena, (size_t)(2 * heads * keys + 1));
        }
    return all;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *texts(const hw_sentence *s)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < s->count; i++)
        json_array_append_new(list, hw_json_text_of(s->words[i].text, s->words[i].bytes));
    return list;
}

/* Where words and tokens differ: the word of each token. */
static json_t *words_of_tokens(const hw_study_pair *p, int side)
{
    json_t *list = json_array();
    for (int32_t w = 0; w < p->words[side].count; w++)
        for (int32_t t = 0; t < p->words[side].words[w].count; t++) json_array_append_new(list, json_integer(w));
    return list;
}

static json_t *tree_json(const hw_conllu *tree, int64_t line)
{
    json_t *list = json_array();
    for (int64_t i = tree->start[line]; i < tree->start[line + 1]; i++) {
        const hw_conllu_word *w = &tree->words[i];
        json_t *entry = json_pack("[i, o]", (int)w->head, hw_json_text(w->relation));
        if (w->match >= 0) json_array_append_new(entry, json_integer(w->match));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *links_json(const hw_alignments *links, int64_t line)
{
    json_t *list = json_array();
    for (int64_t i = links->start[line]; i < links->start[line + 1]; i++)
        json_array_append_new(list, json_pack("[i, i, i]", (int)links->links[i].source, (int)links->links[i].target,
                                              (int)links->links[i].sure));
    return list;
}

static json_t *pair_json(const hw_transformer *m, const hw_study_set *set, const hw_study_pair *p, const drawn *d)
{
    static const char *const sides[] = {"source", "target"};
    json_t *pair = json_pack("{s:I}", "line", (json_int_t)(p->line + 1));
    for (int s = 0; s < 2; s++) {
        json_t *side = json_pack("{s:o}", "tokens", texts(&p->tokens[s]));
        if (p->tokens[s].words != p->words[s].words) json_object_set_new(side, "words", words_of_tokens(p, s));
        if (set->trees[s]) json_object_set_new(side, "tree", tree_json(set->trees[s], p->line));
        json_object_set_new(pair, sides[s], side);
    }
    if (set->links) json_object_set_new(pair, "links", links_json(set->links, p->line));
    json_t *weights = json_object(), *norms = json_object();
    for (int a = 0; a < m->attentions; a++) {
        const char *name = hw_transformer_attention(m, a)->name;
        json_object_set_new(weights, name, json_string(d[a].weights));
        json_object_set_new(norms, name, json_string(d[a].norms));
    }
    json_object_set_new(pair, "weights", weights);
    json_object_set_new(pair, "norms", norms);
    return pair;
}

json_t *hw_report_pairs(const hw_transformer *network, const hw_study_set *set, const int64_t *pairs, int64_t count)
{
    hw_arena *arena = hw_arena_new(0);
    hw_study_pair *some = hw_arena_alloc(arena, (size_t)(count + 1) * sizeof *some);
    for (int64_t i = 0; i < count; i++) some[i] = set->pairs[pairs[i]];
    hw_study_set shown = *set;
    shown.pairs = some;
    shown.count = count;
    work w = {.network = network, .norms = hw_value_norms_new(network), .drawn = room_for(network, &shown, arena)};
    hw_runner *runner = hw_runner_new(network);
    if (count) hw_study_visit(&shown, runner, &(hw_visit_options){.weights = true}, draw_batch, &w);
    hw_runner_free(runner);
    hw_value_norms_free((hw_value_norms *)w.norms);
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(list, pair_json(network, &shown, &some[i], w.drawn + i * network->attentions));
    hw_arena_free(arena);
    return list;
}
