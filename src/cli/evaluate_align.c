/* How well cross-attention aligns words: the alignment error rate (Och and Ney 2003) of every head against gold, and the best of them.
 *
 * A target word is linked to the source word that it attends to most. Attention is between tokens, gold between words, so the
 * weights of a word's pieces are added up. A target word has two rows: where it is fed to the decoder, and one before, where it is
 * predicted; heads differ in which of them they align. </s> is no word. */
#include <string.h>

#include "cli/evaluate.h"

enum { PAIRS_AT_ONCE = 512 };
static const char *const steps[] = {"predicted", "fed"}; /* a word's row is its place, or one more */

/* A line as tokens, and the word that each belongs to. */
typedef struct words {
    hw_ids ids;
    const int32_t *word; /* [ids.count] */
    int32_t count;
} words;

/* The words of `word` are what blanks separate, and it cuts each of them by itself. */
static words split(const hw_side *side, const char *line, size_t bytes, hw_arena *arena)
{
    hw_tokens all = hw_tokens_new(arena);
    hw_tokenizer_encode(side->tokenizer, side->vocabulary, line, bytes, &all);
    int32_t *word = hw_arena_alloc(arena, ((size_t)all.count + 1) * sizeof *word);
    words w = {hw_token_ids(&all, arena), word, 0};
    hw_tokens one = hw_tokens_new(arena);
    int64_t at = 0;
    for (size_t from = 0, size; from < bytes; from += size) {
        from += strspn(line + from, " \t");
        size = strcspn(line + from, " \t");
        if (!size) break;
        hw_tokenizer_encode(side->tokenizer, side->vocabulary, line + from, size, &one);
        for (int64_t k = 0; k < one.count && at < all.count; k++) word[at++] = w.count;
        w.count++;
    }
    return w;
}

/* The links of one head of one pair -> their number. rows: one of steps. */
static int64_t link_words(const hw_attention_map *map, int64_t head, int rows, const words *source, const words *target,
                          hw_link *links, double *sums)
{
    int64_t t = 0;
    for (int32_t w = 0; w < target->count; w++) {
        for (int32_t s = 0; s < source->count; s++) sums[s] = 0;
        for (; t < target->ids.count && target->word[t] == w; t++) {
            const hw_real *row = map->weights + (head * map->queries + t + rows) * map->keys;
            for (int64_t k = 0; k < source->ids.count; k++) sums[source->word[k]] += (double)row[k];
        }
        int32_t best = 0;
        for (int32_t s = 1; s < source->count; s++)
            if (sums[s] > sums[best]) best = s;
        links[w] = (hw_link){.source = best, .target = w, .sure = true};
    }
    return source->count ? target->count : 0;
}

/* Sums for every head and step, [heads of all attentions][2]. */
typedef struct tallies {
    const hw_bundle *bundle;
    const hw_test_set *set;
    double (*sums)[2][HW_AER_WIDTH];
} tallies;

static void add_pair(const tallies *t, int64_t pair, const hw_examined *x, const words *source, const words *target,
                     hw_arena *arena)
{
    const hw_alignments *gold = t->set->alignments;
    hw_link *links = hw_arena_alloc(arena, ((size_t)target->count + 1) * sizeof *links);
    double *sums = hw_arena_alloc(arena, ((size_t)source->count + 1) * sizeof *sums), row[HW_AER_WIDTH];
    int64_t at = 0;
    for (int a = 0; a < x->attentions; a++) {
        const hw_attention_map *map = &x->attention[a];
        for (int64_t h = 0; h < map->heads && strstr(map->name, "cross"); h++, at++)
            for (int step = 0; step < 2; step++) {
                int64_t count = link_words(map, h, step, source, target, links, sums);
                hw_aer_row(links, count, gold->links + gold->start[pair], gold->start[pair + 1] - gold->start[pair], row);
                for (int i = 0; i < HW_AER_WIDTH; i++) t->sums[at][step][i] += row[i];
            }
    }
}

static void add_pairs(const tallies *t, int64_t first, int64_t count, hw_runner *runner, hw_arena *arena)
{
    hw_side sides[2] = {hw_bundle_source(t->bundle), hw_bundle_target(t->bundle)};
    const hw_lines *lines[2] = {t->set->source, t->set->target};
    words *w[2];
    hw_ids *ids[2];
    for (int s = 0; s < 2; s++) {
        w[s] = hw_arena_alloc(arena, (size_t)count * sizeof *w[s]);
        ids[s] = hw_arena_alloc(arena, (size_t)count * sizeof *ids[s]);
        for (int64_t i = 0; i < count; i++) {
            size_t bytes;
            const char *line = hw_lines_get(lines[s], first + i, &bytes);
            w[s][i] = split(&sides[s], line, bytes, arena);
            ids[s][i] = w[s][i].ids;
        }
    }
    const hw_examined *x = hw_examine(runner, count, ids[0], ids[1], arena);
    for (int64_t i = 0; i < count; i++) add_pair(t, first + i, &x[i], &w[0][i], &w[1][i], arena);
}

static hw_evaluated_alignment best_of(const tallies *t)
{
    const hw_transformer *m = t->bundle->network;
    hw_evaluated_alignment best = {.is_there = false};
    int64_t at = 0;
    for (int a = 0; a < m->attentions; a++) {
        const hw_attention_layer *layer = hw_transformer_attention(m, a);
        for (int64_t h = 0; h < layer->heads && strstr(layer->name, "cross"); h++, at++)
            for (int step = 0; step < 2; step++) {
                double aer = hw_aer_score(t->sums[at][step], NULL);
                if (best.is_there && aer >= best.aer) continue;
                best = (hw_evaluated_alignment){.is_there = true, .aer = aer, .step = steps[step]};
                snprintf(best.head, sizeof best.head, "%s.%d", layer->name, layer->head_names[h]);
            }
    }
    return best;
}

hw_evaluated_alignment hw_evaluate_alignment(const hw_bundle *bundle, const hw_test_set *set, hw_runner *runner)
{
    if (strcmp(bundle->config->text.tokenizer, "word")) return (hw_evaluated_alignment){.is_there = false};
    const hw_transformer_options *o = &bundle->network->options;
    hw_arena *arena = hw_arena_new(0), *scratch = hw_arena_new(0);
    tallies t = {bundle, set, hw_arena_calloc(arena, (size_t)(o->decoder_layers * o->heads), sizeof *t.sums)};
    for (int64_t first = 0, count; first < set->count; first += count) {
        count = set->count - first < PAIRS_AT_ONCE ? set->count - first : PAIRS_AT_ONCE;
        hw_arena_reset(scratch);
        add_pairs(&t, first, count, runner, scratch);
    }
    hw_evaluated_alignment best = best_of(&t);
    hw_arena_free(scratch);
    hw_arena_free(arena);
    return best;
}
