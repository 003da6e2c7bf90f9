/* Which source token a predicted token looked at most (Luong et al. 2015, "Addressing the rare word problem in neural
 * machine translation", with attention in place of alignments, as in Jean et al. 2015). Found by running the finished
 * pairs again with the target fed, since hardly any has an unknown word. */
#include "decode/unknown.h"

#include <string.h>

/* Adds the heads' weights of row t; the mean has the same largest. */
static void add_heads(double *sums, const hw_attention_map *last, int64_t t, int64_t tokens)
{
    for (int64_t h = 0; h < last->heads; h++) {
        const hw_real *row = last->weights + (h * last->queries + t) * last->keys;
        for (int64_t i = 0; i < tokens; i++) sums[i] += (double)row[i] / (double)last->heads;
    }
}

static int64_t largest(const double *sums, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (sums[i] > sums[best]) best = i;
    return best;
}

const int64_t *const *hw_most_attended(int networks, hw_runner *const *runners, int64_t count, const hw_ids *sources,
                                       const hw_ids *hypotheses, hw_arena *arena)
{
    int64_t **out = hw_arena_alloc(arena, (size_t)count * sizeof *out);
    for (int64_t p = 0; p < count; p++) out[p] = hw_arena_alloc(arena, (size_t)hypotheses[p].count * sizeof **out);
    for (int64_t first = 0, some; first < count; first += some) {
        some = hw_examine_count(runners[0], count - first, sources + first, hypotheses + first,
                                HW_EXAMINED_NUMBERS / networks);
        hw_arena_mark mark = hw_arena_begin(arena);
        const hw_examined *x[HW_MOST_NETWORKS];
        for (int k = 0; k < networks; k++)
            x[k] = hw_examine(runners[k], some, sources + first, hypotheses + first, arena);
        for (int64_t p = 0; p < some; p++) {
            int64_t tokens = sources[first + p].count;
            double *sums = hw_arena_alloc(arena, (size_t)tokens * sizeof *sums);
            for (int64_t t = 0; t < hypotheses[first + p].count; t++) {
                memset(sums, 0, (size_t)tokens * sizeof *sums);
                for (int k = 0; k < networks; k++)
                    add_heads(sums, &x[k][p].attention[x[k][p].attentions - 1], t, tokens);
                out[first + p][t] = largest(sums, tokens);
            }
        }
        hw_arena_end(arena, mark);
    }
    return (const int64_t *const *)out;
}
