/* Layer 9, metrics, private: lines as arrays of code points, n-gram matches, and what BLEU and chrF have in common.
 *
 * A line is decoded into symbols (code points), lower-cased and cut there as Python's str does it, because sacreBLEU's
 * figures are defined by that. N-grams are then counted over symbols: characters for chrF, ranks of words for BLEU and
 * chrF++. Everything lives in the metric's scratch arena, which is reset with each sentence. */
#ifndef HW_METRICS_METRIC_H
#define HW_METRICS_METRIC_H

#include <headwise/metrics.h>

/* ---- symbols (symbols.c) ----------------------------------------------------------------------------------------- */

typedef struct hw_symbols {
    const uint32_t *at;
    int64_t size;
} hw_symbols;

typedef struct hw_words {
    hw_symbols *at;
    int64_t size;
} hw_words;

bool hw_symbol_is_space(uint32_t c); /* str.isspace() */
hw_symbols hw_symbols_decode(hw_arena *arena, hw_span line);
hw_symbols hw_symbols_lower(hw_arena *arena, hw_symbols line);  /* str.lower() */
hw_symbols hw_symbols_strip(hw_symbols line);                   /* str.rstrip() */
hw_words hw_symbols_split(hw_arena *arena, hw_symbols line);    /* str.split() */

/* ---- cutting into tokens for BLEU (cut.c) ------------------------------------------------------------------------ */

typedef struct hw_cut {
    const char *name;
    hw_symbols (*apply)(hw_arena *arena, hw_symbols line); /* the line with blanks between its tokens */
} hw_cut;

const hw_cut *hw_cut_find(const char *name, hw_error *err);

/* ---- n-grams (ngrams.c) ------------------------------------------------------------------------------------------ */

#define HW_NGRAM_LIMIT 8 /* the longest n-gram */

/* Words as numbers from 1, equal for equal words, over all the lists together. */
hw_symbols *hw_words_rank(hw_arena *arena, const hw_words *lists, int count);

/* matches[n - 1], n in 1..order: n-grams of the hypothesis that stand in the references, each at most as often as in
 * the reference that has it most often (Papineni et al. 2002, section 2.1). No symbol is 0. */
void hw_ngram_matches(hw_arena *arena, hw_symbols hypothesis, const hw_symbols *references, int count, int order,
                      double *matches);

/* How many n-grams a sequence has. */
static inline double hw_ngram_total(int64_t size, int n)
{
    return size >= n ? (double)(size - n + 1) : 0;
}

/* ---- metrics (metric.c) ------------------------------------------------------------------------------------------ */

typedef struct hw_metric_kind {
    void (*row)(hw_metric *metric, hw_symbols hypothesis, const hw_symbols *references, int count, double *row);
    void (*describe)(const hw_metric *metric, char *out, size_t size); /* its own fields of the signature */
    hw_score_function score;
} hw_metric_kind;

struct hw_metric {
    const hw_metric_kind *kind;
    char name[16];
    hw_tally tally;
    hw_arena *scratch;
    int references; /* of every sentence; 0: none yet, -1: not of all the same number */
    union {
        hw_bleu_options bleu;
        hw_chrf_options chrf;
    } options; /* complete: every default filled in */
    const hw_cut *cut;
};

hw_metric *hw_metric_new(const hw_metric_kind *kind, int width);

#endif
