/* IBM model 1 (Brown et al. 1993, "The mathematics of statistical machine translation", section 4.2): the baseline of
 * alignment that knows words but neither order nor sentences.
 *
 *   E: c(f | e) += t(f | e) / sum_e' t(f | e')    for every pair of words of a pair of sentences, e' its source words
 * and the empty one M: t(f | e)  = c(f | e) / sum_f' c(f' | e) begun with a uniform t. Pairs of words that stand
 * together are kept in a hash table, so memory grows with them only. */
#include <stdlib.h>
#include <string.h>

#include <headwise/heads.h>

typedef struct entry {
    int32_t source, target; /* source: its id + 1, 0 the empty word; -1: a free place */
    double t, count;
} entry;

struct hw_ibm1 {
    entry *table;
    uint64_t mask; /* places - 1 */
    int64_t used;
    double *totals; /* [sources + 1] of the counts of each source word */
    int32_t sources;
};

/* ---- the table --------------------------------------------------------------------------------------------------- */

static uint64_t place_of(const hw_ibm1 *m, int32_t source, int32_t target)
{
    uint64_t hash = ((uint64_t)(uint32_t)source << 32 | (uint32_t)target) * 0x9e3779b97f4a7c15u;
    uint64_t at = (hash ^ hash >> 29) & m->mask;
    while (m->table[at].source >= 0 && (m->table[at].source != source || m->table[at].target != target))
        at = (at + 1) & m->mask;
    return at;
}

static void make_table(hw_ibm1 *m, uint64_t places)
{
    m->table = malloc(places * sizeof *m->table);
    HW_CHECK(m->table, "no memory for %llu pairs of words", (unsigned long long)places);
    for (uint64_t i = 0; i < places; i++) m->table[i].source = -1;
    m->mask = places - 1;
}

static void grow(hw_ibm1 *m)
{
    entry *old = m->table;
    uint64_t places = m->mask + 1;
    make_table(m, 2 * places);
    for (uint64_t i = 0; i < places; i++)
        if (old[i].source >= 0) m->table[place_of(m, old[i].source, old[i].target)] = old[i];
    free(old);
}

static void meet(hw_ibm1 *m, int32_t source, int32_t target)
{
    if (source > m->sources) m->sources = source;
    uint64_t at = place_of(m, source, target);
    if (m->table[at].source >= 0) return;
    m->table[at] = (entry){source, target, 1, 0};
    if (2 * (uint64_t)++m->used > m->mask) grow(m);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The source words of a pair with the empty one before them: word i is at(i). */
static int32_t at(hw_ids source, int64_t i) { return i ? source.ids[i - 1] + 1 : 0; }

static void expect(hw_ibm1 *m, hw_ids source, int32_t target, uint64_t *places)
{
    double sum = 0;
    for (int64_t i = 0; i <= source.count; i++) {
        places[i] = place_of(m, at(source, i), target);
        sum += m->table[places[i]].t;
    }
    for (int64_t i = 0; i <= source.count && sum > 0; i++) {
        entry *e = &m->table[places[i]];
        double c = e->t / sum;
        e->count += c;
        m->totals[e->source] += c;
    }
}

static void maximise(hw_ibm1 *m)
{
    for (uint64_t i = 0; i <= m->mask; i++) {
        entry *e = &m->table[i];
        if (e->source < 0) continue;
        e->t = m->totals[e->source] > 0 ? e->count / m->totals[e->source] : 0;
        e->count = 0;
    }
    memset(m->totals, 0, ((size_t)m->sources + 1) * sizeof *m->totals);
}

hw_ibm1 *hw_ibm1_train(const hw_corpus *corpus, int iterations)
{
    hw_ibm1 *m = calloc(1, sizeof *m);
    HW_CHECK(m, "no memory for IBM model 1");
    make_table(m, 1 << 12);
    const hw_corpus_counts *counts = hw_corpus_count(corpus);
    for (int64_t p = 0; p < counts->pairs; p++) {
        hw_ids source = hw_corpus_source(corpus, p), target = hw_corpus_target(corpus, p);
        for (int64_t j = 0; j < target.count; j++)
            for (int64_t i = 0; i <= source.count; i++) meet(m, at(source, i), target.ids[j]);
    }
    m->totals = calloc((size_t)m->sources + 1, sizeof *m->totals);
    uint64_t *places = malloc(((size_t)counts->source_longest + 1) * sizeof *places);
    HW_CHECK(m->totals && places, "no memory for IBM model 1");
    for (int k = 0; k < iterations; k++) {
        for (int64_t p = 0; p < counts->pairs; p++) {
            hw_ids source = hw_corpus_source(corpus, p), target = hw_corpus_target(corpus, p);
            for (int64_t j = 0; j < target.count; j++) expect(m, source, target.ids[j], places);
        }
        maximise(m);
    }
    free(places);
    return m;
}

void hw_ibm1_free(hw_ibm1 *m)
{
    if (!m) return;
    free(m->table);
    free(m->totals);
    free(m);
}

double hw_ibm1_probability(const hw_ibm1 *m, int32_t source, int32_t target)
{
    const entry *e = &m->table[place_of(m, source + 1, target)];
    return e->source < 0 ? 0 : e->t;
}

void hw_ibm1_align(const hw_ibm1 *m, hw_ids source, hw_ids target, int32_t *out)
{
    for (int64_t j = 0; j < target.count; j++) {
        double best = hw_ibm1_probability(m, -1, target.ids[j]);
        out[j] = -1;
        for (int64_t i = 0; i < source.count; i++) {
            double t = hw_ibm1_probability(m, source.ids[i], target.ids[j]);
            if (t <= best) continue;
            best = t;
            out[j] = (int32_t)i;
        }
    }
}
