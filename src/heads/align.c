/* Word alignment from cross-attention: every target word is linked to the source word that it attends to most.
 *
 * Sources: Och and Ney 2003 (the error rate); Kobayashi et al. 2020, section 5 (norms align better than weights, and
 * the row where a word is fed better than the one where it is predicted, in their models; which it is here is
 * measured). The mean of a layer is over its heads' weights without </s>, each row renormalised, lest a head that is
 * parked there count for little; or over the norms of what arrives from them, which are amounts and stay as they are. */
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

static int64_t *starts_of(const hw_study_set *set, hw_arena *arena)
{
    int64_t *start = hw_arena_alloc(arena, ((size_t)set->count + 1) * sizeof *start);
    start[0] = 0;
    for (int64_t i = 0; i < set->count; i++) start[i + 1] = start[i] + set->pairs[i].words[HW_TARGET].count;
    return start;
}

static hw_linkings *linkings_new(const hw_study_set *set, int most, hw_arena *arena)
{
    hw_linkings *l = hw_arena_alloc(arena, sizeof *l);
    *l = (hw_linkings){
        .set = set, .start = starts_of(set, arena), .items = hw_arena_calloc(arena, (size_t)most, sizeof *l->items)};
    return l;
}

static hw_linking *add_linking(hw_linkings *l, const char *name, hw_arena *arena)
{
    hw_linking *x = &l->items[l->count++];
    snprintf(x->name, sizeof x->name, "%s", name);
    x->sources = hw_arena_alloc(arena, (size_t)l->start[l->set->count] * sizeof *x->sources + 1);
    return x;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* The order of the linkings: heads of the first cross-attention, its mean, those of the next ..., the mean of all; of
 * each [WAYS]. */
enum { WAYS = 4 }; /* fed by weights, fed by norms, predicted by weights, predicted by norms */
static const int steps[] = {HW_PLACE_CROSS_FED, HW_PLACE_CROSS_PREDICTED};

typedef struct linker {
    const hw_transformer *network;
    const hw_value_norms *norms;
    hw_linkings *out;
} linker;

/* A pair while its heads are gone through: sums over tokens, [rows][cols], by weights and by norms. */
typedef struct pair_sums {
    const linker *l;
    int64_t pair, rows, cols;
    hw_word_attention words[2]; /* of each step */
    hw_real *layer[2], *all[2];
    int at; /* the next linking */
} pair_sums;

static void link_block(pair_sums *p, int step, const hw_real *block, const hw_real *norms, int32_t *sources)
{
    hw_word_attention *a = &p->words[step];
    hw_word_attention_fill(a, block, p->cols, norms);
    for (int32_t q = 0; q < a->queries; q++) {
        const hw_real *row = a->weights + q * a->stride;
        int32_t best = 0;
        for (int32_t k = 1; k < a->key->count; k++)
            if (row[k] > row[best]) best = k;
        sources[q] = best;
    }
}

/* One head or mean at both steps; norms: factors for block, or NULL where by_norms holds sums of them already. */
static void link_ways(pair_sums *p, const hw_real *by_weights, const hw_real *by_norms, const hw_real *norms)
{
    const hw_linkings *out = p->l->out;
    for (int step = 0; step < 2; step++)
        for (int norm = 0; norm < 2; norm++)
            link_block(p, step, norm ? by_norms : by_weights, norm ? norms : NULL,
                       out->items[p->at++].sources + out->start[p->pair]);
}

static void add_block(pair_sums *p, const hw_real *block, const hw_real *norms)
{
    const int64_t words = p->cols - 1; /* </s> is the last */
    for (int64_t row = 0, i = 0; row < p->rows; row++, i += p->cols) {
        hw_real sum = 0;
        for (int64_t k = 0; k < words; k++) sum += block[i + k];
        for (int64_t k = 0; k < words; k++) {
            if (sum > 0) p->layer[0][i + k] += block[i + k] / sum;
            p->layer[1][i + k] += block[i + k] * norms[k];
        }
    }
}

static void link_layer(pair_sums *p, const hw_recorded *r, int attention, int64_t b, const hw_real *block,
                       hw_arena *arena)
{
    int64_t heads = hw_transformer_attention(p->l->network, attention)->heads, size = p->rows * p->cols;
    hw_real *norms = hw_arena_alloc(arena, (size_t)(heads * p->cols) * sizeof *norms);
    hw_value_norms_of(p->l->norms, attention, r, b, norms);
    for (int i = 0; i < 2; i++) memset(p->layer[i], 0, (size_t)size * sizeof *p->layer[i]);
    for (int64_t h = 0; h < heads; h++) {
        link_ways(p, block + h * size, block + h * size, norms + h * p->cols);
        add_block(p, block + h * size, norms + h * p->cols);
    }
    link_ways(p, p->layer[0], p->layer[1], NULL);
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < size; k++) p->all[i][k] += p->layer[i][k];
}

static void visit(int i, const hw_visit *v, void *argument)
{
    (void)i;
    const linker *l = argument;
    const hw_transformer *m = l->network;
    hw_arena *arena = hw_tape_arena(v->tape);
    int64_t *offset = hw_arena_calloc(arena, (size_t)m->attentions, sizeof *offset);
    for (int64_t b = 0; b < v->batch->sentences; b++) {
        hw_arena_mark mark = hw_arena_begin(arena);
        pair_sums p = {
            .l = l, .pair = v->batch->lines[b], .rows = v->batch->target.length[b], .cols = v->batch->source.length[b]};
        const hw_study_pair *pair = &l->out->set->pairs[p.pair];
        for (int s = 0; s < 2; s++) {
            p.words[s] =
                hw_word_attention_new(hw_place_at(steps[s]), &pair->words[HW_TARGET], &pair->words[HW_SOURCE], arena);
            p.layer[s] = hw_arena_alloc(arena, (size_t)(p.rows * p.cols) * sizeof *p.layer[s]);
            p.all[s] = hw_arena_calloc(arena, (size_t)(p.rows * p.cols), sizeof *p.all[s]);
        }
        for (int a = 0; a < m->attentions; a++) {
            if (hw_attention_kind_of(m, a) != HW_CROSS) continue;
            link_layer(&p, &v->attentions[a], a, b, v->attentions[a].weights->data + offset[a], arena);
            offset[a] += hw_transformer_attention(m, a)->heads * p.rows * p.cols;
        }
        link_ways(&p, p.all[0], p.all[1], NULL);
        hw_arena_end(arena, mark);
    }
}

static void name_ways(hw_linkings *l, const char *name, bool is_head, hw_arena *arena)
{
    for (int way = 0; way < WAYS; way++) {
        hw_linking *x = add_linking(l, name, arena);
        x->is_head = is_head;
        x->step = hw_place_at(steps[way / 2])->step;
        x->norms = way % 2;
    }
}

static void name_all(hw_linkings *l, const hw_transformer *m, hw_arena *arena)
{
    int count;
    const hw_head *heads = hw_heads_of(m, arena, &count);
    for (int h = 0; h < count; h++) {
        if (heads[h].kind != HW_CROSS) continue;
        name_ways(l, heads[h].name, true, arena);
        if (h + 1 == count || heads[h + 1].attention != heads[h].attention)
            name_ways(l, hw_arena_string(arena, "%s.mean", hw_transformer_attention(m, heads[h].attention)->name),
                      false, arena);
    }
    name_ways(l, "cross.mean", false, arena);
}

hw_linkings *hw_link_heads(hw_runner *runner, const hw_transformer *m, const hw_study_set *set, hw_arena *arena)
{
    int most = (int)(m->options.decoder_layers * (m->options.heads + 1) + 1) * WAYS;
    hw_value_norms *norms = hw_value_norms_new(m);
    linker l = {m, norms, linkings_new(set, most, arena)};
    name_all(l.out, m, arena);
    hw_study_visit(set, runner, &(hw_visit_options){.weights = true}, visit, &l);
    hw_value_norms_free(norms);
    return l.out;
}

/* ---- baselines --------------------------------------------------------------------------------------------------- */

enum { ITERATIONS = 10 };

/* Model 1 reads words as blanks separate them, with vocabularies of its own. */
typedef struct word_reader {
    hw_tokenizer *tokenizer;
    hw_side sides[2];
    hw_corpus *corpus;
} word_reader;

static bool read_words(word_reader *r, const hw_bundle *bundle, const char *directory, const char *prefix,
                       hw_arena *arena, hw_error *err)
{
    const char *suffixes[2] = {bundle->config->data.source, bundle->config->data.target};
    char path[HW_PATH];
    if (!(r->tokenizer = hw_tokenizer_new(&(hw_tokenizer_options){.name = "word"}, err))) return false;
    for (int s = 0; s < 2; s++) {
        hw_counts *counts = hw_counts_new(arena);
        if (!hw_corpus_path(path, directory, prefix, suffixes[s], err) ||
            !hw_counts_add_file(counts, r->tokenizer, path, err))
            return false;
        const hw_vocabulary *v = hw_vocabulary_build(arena, counts, &(hw_vocabulary_options){0});
        r->sides[s] = (hw_side){suffixes[s], r->tokenizer, v};
    }
    hw_corpus_options limit = {.max_length = hw_longest_source(bundle->config)}; /* it costs the square, too */
    r->corpus = hw_corpus_load(directory, prefix, &r->sides[HW_SOURCE], &r->sides[HW_TARGET], &limit, err);
    return r->corpus;
}

static hw_ids word_ids(const word_reader *r, int side, const hw_sentence *s, hw_arena *arena)
{
    int32_t *ids = hw_arena_alloc(arena, (size_t)s->count * sizeof *ids + 1);
    for (int32_t w = 0; w < s->count; w++)
        ids[w] = hw_vocabulary_find(r->sides[side].vocabulary, s->words[w].text, s->words[w].bytes);
    return (hw_ids){ids, s->count};
}

static void link_by_model(hw_linkings *l, const word_reader *r, hw_arena *arena, hw_arena *scratch)
{
    hw_linking *x = add_linking(l, "ibm1", arena);
    hw_ibm1 *m = hw_ibm1_train(r->corpus, ITERATIONS);
    for (int64_t i = 0; i < l->set->count; i++) {
        hw_arena_mark mark = hw_arena_begin(scratch);
        const hw_sentence *words = l->set->pairs[i].words;
        hw_ibm1_align(m, word_ids(r, HW_SOURCE, &words[HW_SOURCE], scratch),
                      word_ids(r, HW_TARGET, &words[HW_TARGET], scratch), x->sources + l->start[i]);
        hw_arena_end(scratch, mark);
    }
    hw_ibm1_free(m);
}

int32_t hw_diagonal(int32_t target, int32_t targets, int32_t sources)
{
    return (int32_t)((2 * (int64_t)target + 1) * sources / (2 * (int64_t)targets));
}

static void link_diagonally(hw_linkings *l, hw_arena *arena)
{
    hw_linking *x = add_linking(l, "diagonal", arena);
    for (int64_t i = 0; i < l->set->count; i++) {
        const hw_sentence *words = l->set->pairs[i].words;
        for (int32_t j = 0; j < words[HW_TARGET].count; j++)
            x->sources[l->start[i] + j] = hw_diagonal(j, words[HW_TARGET].count, words[HW_SOURCE].count);
    }
}

hw_linkings *hw_link_baselines(const hw_bundle *bundle, const char *directory, const char *prefix,
                               const hw_study_set *set, hw_arena *arena, hw_error *err)
{
    hw_linkings *l = linkings_new(set, 2, arena);
    link_diagonally(l, arena);
    hw_arena *scratch = hw_arena_new(0);
    word_reader r = {0};
    bool ok = read_words(&r, bundle, directory, prefix, scratch, err);
    if (ok) link_by_model(l, &r, arena, scratch);
    hw_corpus_free(r.corpus);
    hw_tokenizer_free(r.tokenizer);
    hw_arena_free(scratch);
    return ok ? l : NULL;
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

/* The links of one pair -> their number. */
static int64_t links_of(const hw_linkings *l, int item, int64_t pair, hw_link *out)
{
    int64_t count = 0;
    for (int64_t w = l->start[pair]; w < l->start[pair + 1]; w++) {
        int32_t source = l->items[item].sources[w];
        if (source >= 0)
            out[count++] = (hw_link){.source = source, .target = (int32_t)(w - l->start[pair]), .sure = true};
    }
    return count;
}

static hw_link *room_for_links(const hw_linkings *l)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < l->set->count; i++)
        if (l->start[i + 1] - l->start[i] > longest) longest = l->start[i + 1] - l->start[i];
    hw_link *links = malloc((size_t)longest * sizeof *links + 1);
    HW_CHECK(links, "no memory for %lld links", (long long)longest);
    return links;
}

void hw_linking_tally(const hw_linkings *l, int item, hw_tally *tally)
{
    const hw_alignments *gold = l->set->links;
    hw_link *links = room_for_links(l);
    hw_tally_init(tally, HW_AER_WIDTH, hw_aer_score, NULL);
    for (int64_t i = 0; i < l->set->count; i++) {
        double row[HW_AER_WIDTH];
        int64_t line = l->set->pairs[i].line, count = links_of(l, item, i, links);
        hw_aer_row(links, count, gold->links + gold->start[line], gold->start[line + 1] - gold->start[line], row);
        hw_tally_add(tally, row);
    }
    free(links);
}

void hw_linking_write(const hw_linkings *l, int item, FILE *out)
{
    hw_link *links = room_for_links(l);
    int64_t line = 0;
    for (int64_t i = 0; i < l->set->count; i++) {
        for (; line < l->set->pairs[i].line; line++) fputc('\n', out); /* pairs with a blank side have no links */
        int64_t count = links_of(l, item, i, links);
        for (int64_t k = 0; k < count; k++) fprintf(out, "%s%d-%d", k ? " " : "", links[k].source, links[k].target);
        fputc('\n', out);
        line++;
    }
    for (; line < l->set->lines; line++) fputc('\n', out);
    free(links);
}
