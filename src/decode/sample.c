/* Sampling: temperature, then top-k, then top-p (Fan, Lewis and Dauphin 2018, "Hierarchical neural story generation";
 * Holtzman et al. 2020, "The curious case of neural text degeneration").
 *
 * Tokens are laid end to end, each as long as its weight exp(logit / temperature), from the likeliest on where some are
 * left out and in the order of their ids where none is; u points to one of them. Sums are taken in double in this
 * order, so that a draw depends on the logits and u alone. */
#include "decode/sample.h"

#include <math.h>
#include <stdlib.h>

enum { FEW = 256 }; /* tokens that are cheaper to pick out than to sort */

static int by_score(const void *a, const void *b)
{
    const hw_candidate *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : (x->id > y->id) - (x->id < y->id);
}

static double weight(const hw_decoding *o, hw_real logit, double best)
{
    return exp(((double)logit - best) / o->temperature);
}

static double weight_of_all(const hw_decoding *o, const hw_real *logits, int64_t n, double best)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += weight(o, logits[i], best);
    return sum;
}

static int32_t draw_from_all(const hw_decoding *o, const hw_real *logits, int64_t n, double best, double u)
{
    double at = u * weight_of_all(o, logits, n, best), sum = 0;
    int32_t last = -1;
    for (int64_t i = 0; i < n && sum <= at; i++) {
        double w = weight(o, logits[i], best);
        if (w > 0) last = (int32_t)i;
        sum += w;
    }
    return last;
}

/* The likeliest tokens, in order; ties go to the lower id. */
static hw_top likeliest(const hw_real *logits, int64_t n, const hw_real *maxima, int64_t count, hw_arena *arena)
{
    int64_t room = count <= FEW ? count : n;
    hw_top top = {0, room, hw_arena_alloc(arena, (size_t)room * sizeof *top.items)};
    if (count <= FEW) {
        hw_top_offer(&top, logits, n, maxima, 0, 0, 0);
        return top;
    }
    for (int64_t i = 0; i < n; i++)
        if (logits[i] > -(hw_real)INFINITY)
            top.items[top.count++] = (hw_candidate){(double)logits[i], logits[i], (int32_t)i, 0};
    qsort(top.items, (size_t)top.count, sizeof *top.items, by_score);
    if (top.count > count) top.count = count;
    return top;
}

/* How many of the tokens it takes to reach the weight `wanted`, at least one; *sum is what they have. */
static int64_t reach(const hw_decoding *o, const hw_top *top, double wanted, double *sum)
{
    int64_t count = 0;
    *sum = 0;
    while (count < top->count && (!count || *sum < wanted))
        *sum += weight(o, top->items[count++].log_prob, top->items[0].score);
    return count;
}

static int32_t draw_from_best(const hw_decoding *o, const hw_real *logits, int64_t n, const hw_real *maxima, double u,
                              double best, hw_arena *arena)
{
    hw_top top = likeliest(logits, n, maxima, o->top_k ? o->top_k : FEW, arena);
    double all, sum;
    if (o->top_k)
        reach(o, &top, INFINITY, &all);
    else
        all = weight_of_all(o, logits, n, best);
    double wanted = o->top_p < 1 ? o->top_p * all : INFINITY;
    int64_t count = reach(o, &top, wanted, &sum);
    if (!o->top_k && sum < wanted) {
        top = likeliest(logits, n, maxima, n, arena);
        count = reach(o, &top, wanted, &sum);
    }
    double at = u * sum, passed = 0;
    int64_t i = 0;
    for (; i + 1 < count; i++)
        if ((passed += weight(o, top.items[i].log_prob, best)) > at) break;
    return top.items[i].id;
}

int32_t hw_draw(const hw_decoding *o, const hw_real *logits, int64_t n, const hw_real *maxima, double u,
                hw_arena *arena)
{
    double best = -INFINITY;
    for (int64_t i = 0; i < n; i++) best = (double)logits[i] > best ? (double)logits[i] : best;
    if (!(best > -INFINITY)) return -1;
    if (!o->top_k && o->top_p >= 1) return draw_from_all(o, logits, n, best, u);
    return draw_from_best(o, logits, n, maxima, u, best, arena);
}
