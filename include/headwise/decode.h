/* Layer 8, decode: a network run over many sentences, by teacher forcing or by search, and lines of text translated.
 *
 * Sentences are cut into batches that are spread over the threads. Rows of a batch never mix, so what comes out for a
 * sentence is the same to the bit whatever it was batched with, in whatever order and on however many threads. Search
 * keeps keys and values of what was decoded (a step runs one row a hypothesis), and one search serves greedy and beam
 * decoding: a beam of 1 is greedy. */
#ifndef HEADWISE_DECODE_H
#define HEADWISE_DECODE_H

#include <headwise/bundle.h>

/* ---- running a network ------------------------------------------------------------------------------------------- */

/* A network with the memory that each thread needs to run it, which is kept from call to call. The network may be in
 * training: it is only read, and must not change during a call. Serves one caller at a time. */
typedef struct hw_runner hw_runner;
hw_runner *hw_runner_new(const hw_transformer *network); /* the caller frees it; the network outlives it */
void hw_runner_free(hw_runner *r);                       /* NULL is fine */
/* All that follows runs with heads changed like this ([attentions of the network], outlives the runner); NULL: as they
 * are. */
void hw_runner_settings(hw_runner *r, const hw_head_setting *settings);
/* What a search does outside of ops: finding the likeliest token by the output layer in bytes; or, where all logits are
 * wanted, which are an op, their log-sum-exp and the best of them. */
typedef enum hw_search_part { HW_SEARCH_SCREEN, HW_SEARCH_RANK, HW_SEARCH_PARTS } hw_search_part;

/* Measures where the time goes from now on, or no longer; and the sums over the threads, hw_op_count() entries, and the
 * seconds of each part. */
void hw_runner_profile(hw_runner *r, bool on);
void hw_runner_profile_sum(const hw_runner *r, hw_profile_entry *entries);
void hw_runner_profile_parts(const hw_runner *r, double seconds[HW_SEARCH_PARTS]);
int64_t hw_runner_mallocs(const hw_runner *r); /* how often its arenas asked for memory */

/* ---- given translations ------------------------------------------------------------------------------------------ */

/* A batch of pairs that was run with the target fed (teacher forcing). Everything is gone when the visitor returns. */
typedef struct hw_visit {
    hw_tape *tape;
    const hw_batch *batch;         /* its lines are the pairs' places in the caller's arrays, from 0 */
    const hw_recorded *attentions; /* [attentions of the network]; NULL unless something is recorded */
    hw_tensor *loss;               /* label-smoothed cross-entropy summed over the batch's target rows */
    hw_loss_count count;
    const hw_real *nll; /* [target rows] -log p */
} hw_visit;

typedef struct hw_visit_options {
    hw_mode mode;               /* HW_INFERENCE, or HW_GRADIENTS for visitors that call hw_backward */
    bool heads, weights, gates; /* what is recorded of each attention (heads' outputs: always where anything is) */
    double smoothing;
} hw_visit_options;

/* Runs all pairs, special tokens not included, in batches of neighbours that depend on their lengths alone, and calls
 * visit(i, ...) once for the i-th batch, from several threads at a time. Returns the number of batches. */
int hw_visit_pairs(hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets,
                   const hw_visit_options *options, void (*visit)(int i, const hw_visit *visit, void *argument),
                   void *argument);

/* -log p of every target token and </s>, pair after pair, into nll [sum of lengths + 1], which may be NULL. Returns the
 * sums, added up in the order of the pairs. */
hw_loss_count hw_score_pairs(hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets,
                             double smoothing, hw_real *nll);
/* The sums over a corpus' first `most` pairs (0: all). */
hw_loss_count hw_score_corpus(hw_runner *r, const hw_corpus *corpus, int64_t most, double smoothing);

/* What one attention did with one pair: row t of the decoder was fed token t of <s> w1 .. wm and predicts the next. */
typedef struct hw_attention_map {
    const char *name; /* "encoder.0.self" */
    int64_t heads, queries, keys;
    const int *head_names; /* [heads] the numbers of the heads; pruned ones are missing */
    hw_real *weights;      /* [heads][queries][keys] */
} hw_attention_map;

typedef struct hw_examined {
    int64_t rows;       /* m + 1 */
    hw_real *log_probs; /* [rows] of w1 .. wm </s> */
    int attentions;
    hw_attention_map *attention; /* [attentions] as the network counts them */
} hw_examined;

/* Log-probabilities and every head's attention for each of the pairs -> [count], in the arena. */
hw_examined *hw_examine(hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets, hw_arena *arena);
/* How many of the first of these pairs to examine at once, one at least of any: so many that all their attention
 * weights are no more than `most` numbers (HW_EXAMINED_NUMBERS is 64 megabytes), since long pairs have very many. */
enum { HW_EXAMINED_NUMBERS = 1 << 24 };
int64_t hw_examine_count(const hw_runner *r, int64_t count, const hw_ids *sources, const hw_ids *targets, int64_t most);

/* ---- search ------------------------------------------------------------------------------------------------------ */

/* What --help-config says of the section `decoding`. replace_unknown and longest_source concern text and are the
 * translator's. */
typedef hw_decoding hw_search_options;

/* Those of a configuration. */
hw_search_options hw_search_options_of(const hw_config *config);
/* Fails where options cannot work, or not together. */
bool hw_search_options_check(const hw_search_options *o, hw_error *err);

typedef struct hw_hypothesis {
    int64_t length;           /* tokens, </s> not counted */
    const int32_t *ids;       /* [length] */
    const hw_real *log_probs; /* [length + 1] natural log, of each token and of </s>; NULL with ids_only */
    double log_prob;          /* their sum; with ids_only this and the score are 0 */
    /* What hypotheses are ordered by (Wu et al. 2016, equation 14): log_prob / ((5 + length + 1) / 6) ^ length_penalty,
     * and coverage_penalty times the sum over source tokens, </s> included, of log(min(1, attention that they got)). */
    double score;
    bool cut; /* it was ended at the maximum length */
} hw_hypothesis;

typedef struct hw_hypotheses {
    int64_t count; /* at most n_best: fewer where there are no more, 0 where the network's numbers are not finite;
                    * samples are as many as wanted, and some may be the same */
    const hw_hypothesis *items; /* the best first */
} hw_hypotheses;

/* Decodes the sources (special tokens not included) -> [count], valid until the next call for this runner. Among equal
 * hypotheses the one from the better row goes first, then the lower id. <s> is never chosen. */
const hw_hypotheses *hw_search(hw_runner *r, const hw_search_options *options, int64_t count, const hw_ids *sources);

enum { HW_MOST_NETWORKS = 64 }; /* of an ensemble */

/* The same with all that can be given. */
typedef struct hw_search_task {
    int networks; /* several make an ensemble: the log-probability of a token is the mean of theirs */
    hw_runner *const *runners; /* [networks] all different, of one target vocabulary; results are the first one's */
    int64_t count;
    const hw_ids *sources;  /* [count] */
    const hw_ids *prefixes; /* [count] what translations begin with, at most max_length tokens; NULL: nothing */
    const int64_t *lines;   /* [count] numbers that samples are drawn by; NULL: 0, 1 .. */
} hw_search_task;
const hw_hypotheses *hw_search_task_run(const hw_search_task *task, const hw_search_options *options);

/* ---- lines of text ----------------------------------------------------------------------------------------------- */

/* The ids of tokens, in the arena. */
hw_ids hw_token_ids(const hw_tokens *tokens, hw_arena *arena);

/* Tokens of a source, or of either side where a target is fed, that are read where decoding.longest_source does not say,
 * or data.max_length where that is more: attention costs the square, and a file without line ends must not take hours. */
#define HW_LONGEST_SOURCE 1024
int64_t hw_longest_source(const hw_config *config); /* as the three say */

typedef struct hw_translation {
    hw_ids source;                   /* its tokens' ids, */
    const hw_token *source_tokens;   /* and their text: [source.count] */
    int64_t unread;                  /* tokens of the line behind these, beyond the longest source; nearly always 0 */
    int64_t count;                   /* translations, the best first; 0 where there is none: */
    bool broken;                     /* SentencePiece failed; else the network's numbers are not finite */
    const char *const *texts;        /* [count] each ended by a 0 byte */
    const hw_hypothesis *hypotheses; /* [count]; NULL for a blank line, whose one translation is empty */
} hw_translation;

/* Translates lines with a bundle. Serves one caller at a time. */
typedef struct hw_translator hw_translator;
hw_translator *hw_translator_new(const hw_bundle *bundle, const hw_search_options *options); /* both outlive it */
/* With an ensemble of networks that read and write text alike, 1 to HW_MOST_NETWORKS. */
hw_translator *hw_translator_of(int count, const hw_bundle *const *bundles, const hw_search_options *options);
/* Fails where the two do not: other vocabularies, or text cut otherwise. */
bool hw_same_texts(const hw_bundle *a, const hw_bundle *b, hw_error *err);
void hw_translator_free(hw_translator *t);           /* NULL is fine */
hw_runner *hw_translator_runner(hw_translator *t);   /* of the first network */

/* Lines without their \n, valid UTF-8 -> [count] translations in the order of the lines, valid until the next call and
 * as long as the lines are. bytes NULL: they end at their 0 bytes. Lines are numbered through all calls, and samples
 * are drawn by these numbers. */
const hw_translation *hw_translate_lines(hw_translator *t, int64_t count, const char *const *lines,
                                         const size_t *bytes);

typedef struct hw_text {
    const char *text;
    size_t bytes;
} hw_text;
/* The same, each translation beginning with the words of its prefix (text NULL or blank: with any). A blank line's
 * translation stays empty. */
const hw_translation *hw_translate_from(hw_translator *t, int64_t count, const hw_text *lines, const hw_text *prefixes);
/* How many tokens a prefix is, and how many it may have: max_length or, where that is 0, as many as a source. What is
 * behind them is not read. */
int64_t hw_translator_prefix_tokens(hw_translator *t, hw_text prefix);
int64_t hw_translator_longest_prefix(const hw_translator *t);

#endif
