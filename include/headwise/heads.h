/* Layer 10, heads: what every attention head does, over a whole data set, with baselines and intervals.
 *
 * A study reads pairs of sentences with their gold annotation (hw_study_set), runs a network over them, and looks at
 * each head's attention between words (hw_word_attention). Statistics describe it, roles ask what it points at and
 * whether that is more than chance, alignment compares it with gold links. The detectors take matrices, so that they
 * can be tried on planted ones. That is looking: the first five parts below. Attention tells where a head looks; whether
 * the network needs it, only experiments can tell: heads are turned down, weighed by gradients, taken out, asked what
 * they know, pushed apart, watched while they learn, and compared with those of other networks. Report and kept results
 * come last. Results are structs, and JSON for files and reports. Sources: Voita et al. 2019, "Analyzing
 * multi-head self-attention"; Kobayashi et al. 2020, "Attention is not only a weight"; Michel et al. 2019, "Are sixteen
 * heads really better than one?". */
#ifndef HEADWISE_HEADS_H
#define HEADWISE_HEADS_H

#include <headwise/decode.h>
#include <headwise/metrics.h>
#include <jansson.h>

/* ---- the data of a study ----------------------------------------------------------------------------------------- */

enum { HW_SOURCE, HW_TARGET }; /* the sides of a pair */

/* A word, or a token seen as one. The text is as it stands in the line. */
typedef struct hw_study_word {
    const char *text; /* not ended by a 0 byte */
    size_t bytes;
    int32_t first, count; /* its tokens in the sentence */
    int32_t rank; /* how rare it is: its tokens' largest id, since vocabularies go from the commonest down; INT32_MAX
                     where one is unknown */
    bool punctuation; /* nothing but Unicode punctuation and symbols */
    bool goes_on;     /* the next one is a piece of the same word ("bo@@") */
} hw_study_word;

typedef struct hw_sentence {
    hw_ids ids; /* its tokens, special ones not included; every token belongs to one word */
    int32_t count;
    const hw_study_word *words; /* [count] */
} hw_sentence;

/* A pair, by words (what blanks separate) and by tokens. Where every word is one token the two share their memory. */
typedef struct hw_study_pair {
    hw_sentence words[2], tokens[2];
    int64_t line; /* in the files, from 0 */
} hw_study_pair;

/* Pairs of a data set. Those with a blank side are left out, and those with a side of more tokens than the model reads
 * (hw_longest_source), which are counted. */
typedef struct hw_study_set {
    const char *directory, *prefix;
    int64_t count, lines; /* pairs; lines of the files */
    hw_too_long too_long; /* of a stream: of all that it gave so far */
    const hw_study_pair *pairs;
    const hw_lines *texts[2];  /* the files, by line; NULL in what a stream gives */
    const hw_conllu *trees[2]; /* gold, by line; NULL where there is none */
    const hw_alignments *links;
} hw_study_set;

/* Reads DIRECTORY/PREFIX.* with the gold that stands beside it into the arena. Errors: files missing, not parallel or
 * not UTF-8, no pair in them, gold of another length or that does not fit. */
bool hw_study_set_load(hw_arena *arena, const hw_bundle *bundle, const char *directory, const char *prefix,
                       hw_study_set *set, hw_error *err);
/* Fails, saying why there is no pair in a set, or was none in a stream. */
bool hw_study_fail_empty(const hw_bundle *bundle, const hw_study_set *set, hw_error *err);
/* Runs its pairs with the target fed; see hw_visit_pairs. The lines of a batch are places in set->pairs. */
void hw_study_visit(const hw_study_set *set, hw_runner *runner, const hw_visit_options *options,
                    void (*visit)(int i, const hw_visit *visit, void *argument), void *argument);
/* How many pairs of `set` stand in `other` too, by the text of both sides, wherever they stand and whatever files hold
 * them: what is chosen on those is not new to them. */
int64_t hw_study_shared(const hw_study_set *set, const hw_study_set *other);
/* Cuts one line into words and tokens. */
void hw_sentence_split(const hw_bundle *bundle, int side, const char *line, size_t bytes, hw_arena *arena,
                       hw_sentence *words, hw_sentence *tokens);

/* The same files some pairs at a time, without gold, in memory that does not grow with them. */
typedef struct hw_study_stream hw_study_stream;
hw_study_stream *hw_study_stream_open(const hw_bundle *bundle, const char *directory, const char *prefix,
                                      hw_error *err);
/* At most `most` pairs more into the arena, which outlives `set`. 1: there are some; 0: the end; -1: an error. */
int hw_study_stream_next(hw_study_stream *stream, hw_arena *arena, int64_t most, hw_study_set *set, hw_error *err);
void hw_study_stream_close(hw_study_stream *stream); /* NULL is fine */

/* ---- attention between words ------------------------------------------------------------------------------------- */

typedef enum hw_attention_kind { HW_ENCODER_SELF, HW_DECODER_SELF, HW_CROSS, HW_ATTENTION_KINDS } hw_attention_kind;
hw_attention_kind hw_attention_kind_of(const hw_transformer *network, int attention);

/* One head of a network. */
typedef struct hw_head {
    int attention, head; /* as the network counts them */
    hw_attention_kind kind;
    int of_kind;   /* its place among the heads of its kind */
    char name[64]; /* "encoder.0.self.2": keeps its number where others were pruned */
} hw_head;
hw_head *hw_heads_of(const hw_transformer *network, hw_arena *arena, int *count); /* encoder first */
/* Is what it gives multiplied by zeros? Training with training.head_l0 ends so: where it looks changes nothing. */
bool hw_head_is_closed(const hw_transformer *network, const hw_head *head);

/* Where a word's row of attention is read. In the decoder a word has two: where it is fed, and one before, where it is
 * predicted. */
typedef struct hw_place {
    hw_attention_kind kind;
    const char *step; /* NULL, "fed", "predicted" */
    int query_side, key_side;
    int row;       /* token t's row of weights is t + row */
    int first_key; /* word 0's column: 1 where <s> stands before it; else </s> stands behind the words */
    bool causal;
} hw_place;
enum {
    HW_PLACE_ENCODER,
    HW_PLACE_DECODER_FED,
    HW_PLACE_DECODER_PREDICTED,
    HW_PLACE_CROSS_FED,
    HW_PLACE_CROSS_PREDICTED,
    HW_PLACES
};
const hw_place *hw_place_at(int place);

/* One head's attention in one pair, a row a query word, a column a key word and one for the special token (<s> or
 * </s>). Of a word in pieces: attention to it is the sum over its tokens, attention from it their mean. The rows of
 * special tokens are left out. */
typedef struct hw_word_attention {
    const hw_place *place;
    const hw_sentence *query, *key;
    int32_t queries, keys;  /* keys: words + 1 */
    int32_t special;        /* the column of <s> or </s> */
    const int32_t *visible; /* [queries] how many keys a query may see: columns 0 .. visible - 1 */
    int64_t stride;
    const hw_real *weights; /* [queries][stride] */
    hw_real *own;           /* room for weights that must be added up */
    double arriving;        /* with norms: the sum of all rows before they were scaled */
} hw_word_attention;

/* All but the weights, which are the same for every head. query and key: both by words or both by tokens. */
hw_word_attention hw_word_attention_new(const hw_place *place, const hw_sentence *query, const hw_sentence *key,
                                        hw_arena *arena);
/* The weights from a head's block [rows][cols] over tokens; valid until the next call and as long as the block is.
 * norms, where not NULL, are [cols] factors; rows are then scaled to sum to 1. */
void hw_word_attention_fill(hw_word_attention *a, const hw_real *block, int64_t cols, const hw_real *norms);

/* In nats: -sum w log w. */
double hw_attention_entropy(const hw_real *weights, int64_t count);

/* |f(x_j)| of every head and key token, f the value and output projections (Kobayashi et al. 2020, equation 3). */
typedef struct hw_value_norms hw_value_norms;
hw_value_norms *hw_value_norms_new(const hw_transformer *network); /* the caller frees it; the network outlives it */
void hw_value_norms_free(hw_value_norms *n);                       /* NULL is fine */
/* [H][keys] for sentence b of what a pass recorded. */
void hw_value_norms_of(const hw_value_norms *n, int attention, const hw_recorded *recorded, int64_t b, hw_real *out);

/* ---- statistics -------------------------------------------------------------------------------------------------- */

enum { HW_STATS_FARTHEST = 8, HW_STATS_OFFSETS = 2 * HW_STATS_FARTHEST + 3 };

/* Sums over queries; all numbers are doubles, so that two of them can be added as arrays. Divided by `queries` they are
 * means. */
typedef struct hw_stats_sums {
    double queries, choices;  /* choices: the queries that may see more than one key */
    double entropy, relative; /* nats; and over the log of the allowed keys, for choices only */
    double confidence;        /* the largest weight on a word */
    double distance;          /* |key - query| in words, weighted; <s> stands at -1, </s> behind the last word */
    double first, last;       /* mass on the first and the last key of the sentence, special tokens included */
    double self, punct;       /* on the query's own place; on punctuation */
    double special;           /* on <s> and </s> */
    double
        offsets[HW_STATS_OFFSETS]; /* where the largest weight is, key - query: under -8, -8 .. 8, over 8; ties share */
    double at_special;             /* on <s> or </s>, not counted in offsets */
    double arriving;               /* norms: of all that arrives at a query */
} hw_stats_sums;
void hw_stats_add(hw_stats_sums *sums, const hw_word_attention *a);

/* One head's statistics at one place. */
typedef struct hw_head_stats {
    hw_head head;
    int place;
    bool by_words, norms;
    hw_stats_sums sums;
} hw_head_stats;

typedef struct hw_stats {
    int64_t pairs;
    int count;
    hw_head_stats *items;
} hw_stats;

/* Over all pairs of the stream, in memory that does not grow with them; sums are taken in the order of the pairs.
 * Errors: the stream's, and a stream without any pair. */
hw_stats *hw_stats_study(const hw_bundle *bundle, hw_study_stream *stream, hw_progress_function progress, void *context,
                         hw_arena *arena, hw_error *err);
/* The same over the pairs of a set. In the arena. */
hw_stats *hw_stats_of(const hw_transformer *network, hw_runner *runner, const hw_study_set *set, hw_arena *arena);
json_t *hw_stats_json(const hw_stats *stats); /* "heads", a list of flat objects */

/* ---- roles ------------------------------------------------------------------------------------------------------- */

typedef struct hw_role hw_role;   /* a row of the table of roles, src/heads/role_table.c */
const hw_role *hw_role_at(int i); /* NULL past the last */
const char *hw_role_name(const hw_role *role);
json_t *hw_role_table_json(void); /* a list: name, counts, threshold, margin, ceiling, baseline, source */

/* A role looked for in one place, over all words or over the pieces of spelled words. */
typedef struct hw_role_test {
    const hw_role *role;
    int place;
    bool pieces;
} hw_role_test;
/* The tests that the gold of both sets allows -> how many, into the arena. */
int hw_role_tests(const hw_study_set *selection, const hw_study_set *test, hw_arena *arena, hw_role_test **out);

/* What heads did, a sentence and test: a role's score is the sum of what was achieved over the sum of what there was to
 * achieve. */
typedef struct hw_evidence {
    const hw_role_test *tests;
    int count; /* of tests */
    const hw_study_set *set;
    int heads[HW_ATTENTION_KINDS]; /* how many of each kind */
    float **size;                  /* [tests][pairs] what there was to achieve: the same for all heads */
    float **guess;   /* [tests][pairs] what the baseline achieves; zeros where the control is the baseline */
    int32_t *offset; /* [tests] the fixed offset of the baseline, target - query; INT32_MIN: none */
    float **got;     /* [tests] -> [heads of the kind][pairs] what each head achieved */
    float **mass;    /* [tests] -> [heads of the kind][pairs][2] weights and norms on the targets; NULL: not kept */
} hw_evidence;

/* offsets: the baseline's, from the selection set's evidence; NULL: the best ones here. In the arena. */
hw_evidence *hw_evidence_new(const hw_role_test *tests, int count, const hw_study_set *set,
                             const int heads[HW_ATTENTION_KINDS], const int32_t *offsets, hw_arena *arena);
/* The cases of one place in a pair, for every test; with room to work in, so one serves one thread. In the arena. */
typedef struct hw_role_cases hw_role_cases;
hw_role_cases *hw_role_cases_new(const hw_evidence *e, int place, int64_t pair, hw_arena *arena);
/* Adds what one head did there. tokens: its attention by tokens; norms: by norms of what arrives in place of weights,
 * or NULL. Several threads may add for different pairs. */
void hw_evidence_add(hw_evidence *e, hw_role_cases *cases, int head_of_kind, const hw_word_attention *words,
                     const hw_word_attention *tokens, const hw_word_attention *norms);
/* Runs a network over the set and adds what its heads do. norms: also how much of what arrives comes from first, last,
 * punct. */
void hw_evidence_collect(hw_evidence *e, hw_runner *runner, const hw_transformer *network, bool norms);

enum { HW_ROLE_EXAMPLES = 3 };

/* How one head stands in one test. */
typedef struct hw_role_result {
    const hw_role_test *test;
    double score, low, high; /* on the test set, with its 95 % interval over sentences; NaN: of one sentence */
    double selection;        /* the score on the selection set */
    double baseline,
        control;     /* the best fixed offset, diagonal or, where there is none, the control; the best untrained head */
    int32_t offset;  /* of the baseline; INT32_MIN: none */
    double p, p_raw; /* head against the better of baseline and control; p after Holm over the model */
    int64_t sentences; /* that have a case */
    double cases;
    double
        norm_ratio; /* the share of norms on the targets over that of weights: well under 1 tells a parked head; NaN */
    bool too_strong; /* the baseline leaves nothing to claim, so the head does not get the role whatever it scores */
    bool found;
    const char *tier;                                               /* how strong: "strict", ... */
    int64_t strongest[HW_ROLE_EXAMPLES], failing[HW_ROLE_EXAMPLES]; /* pairs of the test set, -1: none */
} hw_role_result;

typedef struct hw_head_roles {
    const char *name;
    int count;
    hw_role_result *results;
} hw_head_roles;

/* A role that was not looked for in the heads of a kind. */
typedef struct hw_role_untested {
    const hw_role *role;
    hw_attention_kind kind;
    const char *missing; /* the gold file that is not there, or NULL */
    const char *why;     /* "there is no d/test.en.conllu", "there is no case of it in d/test" */
} hw_role_untested;

typedef struct hw_roles {
    int heads, tests; /* tests: of the whole model, what Holm corrects for */
    hw_head_roles *head;
    int untested_count;
    hw_role_untested *untested;
} hw_roles;

typedef struct hw_roles_options {
    uint64_t seed;
    int trials; /* of the bootstrap; 0: no intervals */
} hw_roles_options;

/* Scores, baselines, p and labels from evidence on the selection set, the test set, and the test set with untrained
 * copies. */
hw_roles *hw_roles_judge(const hw_head *heads, int count, const hw_evidence *selection, const hw_evidence *test,
                         hw_evidence *const *controls, int control_count, const hw_roles_options *options,
                         hw_arena *arena);

enum { HW_ROLE_CONTROLS = 3 };
/* A copy with the initial values of another seed: what attention looks like by chance. The caller frees it; bundle
 * outlives it. */
hw_bundle *hw_bundle_untrained(const hw_bundle *bundle, uint64_t seed, hw_error *err);
/* The whole of it, with what could not be tested. Errors: those of making untrained copies. */
hw_roles *hw_roles_study(const hw_bundle *bundle, const hw_study_set *selection, const hw_study_set *test,
                         const hw_roles_options *options, hw_progress_function progress, void *context, hw_arena *arena,
                         hw_error *err);
json_t *hw_roles_json(const hw_roles *roles,
                      const hw_study_set *test); /* "heads" and "untested", lists; see the README */

/* p of a mean of paired differences being over 0, two-sided, one sum a sentence: sign flips, exact for few sentences,
 * else by the normal approximation. Differences that favour the baseline give 1. */
double hw_paired_p(const double *differences, int64_t count);

/* ---- alignment --------------------------------------------------------------------------------------------------- */

/* IBM model 1 (Brown et al. 1993, section 4.2), with the empty word: which source word makes which target word, from
 * counts alone. */
typedef struct hw_ibm1 hw_ibm1;
hw_ibm1 *hw_ibm1_train(const hw_corpus *corpus, int iterations); /* the caller frees it */
void hw_ibm1_free(hw_ibm1 *m);                                   /* NULL is fine */
double hw_ibm1_probability(const hw_ibm1 *m, int32_t source,
                           int32_t target); /* t(target | source); source -1: the empty word */
/* The likeliest source word of each target word, the first among equals; -1: the empty word, or a word never seen. */
void hw_ibm1_align(const hw_ibm1 *m, hw_ids source, hw_ids target, int32_t *out);

/* The source word at the same part of its sentence as the target word is of its own. */
int32_t hw_diagonal(int32_t target, int32_t targets, int32_t sources);

/* How a set's target words are linked: each to one source word, or none. */
typedef struct hw_linking {
    char name[64]; /* a head, "decoder.1.cross.mean", "cross.mean", "diagonal", "ibm1" */
    bool is_head;
    const char *step; /* of a head or mean */
    bool norms;
    int32_t *sources; /* [target words of the set] source word, or -1 */
} hw_linking;
typedef struct hw_linkings {
    const hw_study_set *set;
    const int64_t *start; /* [pairs + 1] of each pair's words */
    int count;
    hw_linking *items;
} hw_linkings;

/* By the source word that gets most attention, <s> and </s> left out: every cross head, the mean of each layer and of
 * all, where words are fed and where they are predicted, weights and norms. In the arena. */
hw_linkings *hw_link_heads(hw_runner *runner, const hw_transformer *network, const hw_study_set *set, hw_arena *arena);
/* The baselines: the diagonal, and IBM model 1 trained on DIRECTORY/PREFIX. Errors: those of reading that. */
hw_linkings *hw_link_baselines(const hw_bundle *bundle, const char *directory, const char *prefix,
                               const hw_study_set *set, hw_arena *arena, hw_error *err);
/* Their statistics, a row a pair, for figures and intervals. set->links must be there. hw_tally_clear it. */
void hw_linking_tally(const hw_linkings *l, int item, hw_tally *tally);
/* In Pharaoh's format, a line for each line of the set's files. */
void hw_linking_write(const hw_linkings *l, int item, FILE *out);

/* The AER of all of them: heads, means, baselines, and the head that is best on the selection set. */
json_t *hw_align_json(const hw_linkings *selection, const hw_linkings *test, const hw_linkings *baselines, int trials,
                      uint64_t seed);

/* ---- what a network is worth with its heads changed -------------------------------------------------------------- */

/* Loss, exact match and BLEU of a network on a set, a row a sentence, so that two can be compared. */
typedef struct hw_quality {
    hw_tally loss;   /* -log p summed (natural log, not smoothed), target tokens: their ratio */
    hw_tally match;  /* 1 where the translation is the reference, 1 */
    hw_metric *bleu; /* NULL, and match without rows: nothing was translated */
} hw_quality;
void hw_quality_clear(hw_quality *q);

/* Measures the same network on the same pairs again and again. */
typedef struct hw_meter hw_meter;
/* search: how lines are translated; NULL: loss only. All of them outlive it; the caller frees it. The set was loaded
 * whole (hw_study_set_load). */
hw_meter *hw_meter_new(const hw_bundle *bundle, const hw_study_set *set, const hw_search_options *search);
void hw_meter_free(hw_meter *m); /* NULL is fine */
hw_runner *hw_meter_runner(hw_meter *m);
/* settings: how heads are changed ([attentions]), or NULL. hw_quality_clear what comes out. */
void hw_meter_measure(hw_meter *m, const hw_head_setting *settings, hw_quality *out);

/* ---- ablation ---------------------------------------------------------------------------------------------------- */

/* What takes the place of a head's output: nothing (gate 0), its mean over all rows of the data, or what it would give
 * if it attended evenly to all it may see. */
typedef enum hw_ablation_mode { HW_ABLATE_ZERO, HW_ABLATE_MEAN, HW_ABLATE_UNIFORM, HW_ABLATION_MODES } hw_ablation_mode;
extern const char *const hw_ablation_modes[]; /* "zero", "mean", "uniform", NULL */

/* Which heads go together. */
typedef enum hw_ablation_groups {
    HW_ABLATE_HEADS, /* each alone */
    HW_ABLATE_PAIRS, /* each two of an attention */
    HW_ABLATE_LAYERS /* all of an attention but one */
} hw_ablation_groups;
extern const char *const hw_ablation_groupings[]; /* "heads", "pairs", "layers", NULL */

/* Heads of a network changed in any of these ways: settings for a runner. */
typedef struct hw_head_changes {
    const hw_transformer *network;
    hw_head_setting *settings; /* [attentions]; gates are set wherever heads were changed, and may be recorded */
    hw_real **gates, **sharpness; /* [attentions] -> [H] */
    hw_real *const *means;        /* hw_head_means; read for HW_ABLATE_MEAN only */
} hw_head_changes;
hw_head_changes *hw_head_changes_new(const hw_transformer *network, hw_real *const *means, hw_arena *arena);
void hw_head_changes_reset(hw_head_changes *c); /* every head as it is */
void hw_head_changes_add(hw_head_changes *c, int attention, int head, hw_ablation_mode mode);
/* [attentions] -> [H K] every head's mean output (before gate and output projection) over all rows, those of special
 * tokens included. In the arena. */
hw_real **hw_head_means(hw_runner *runner, const hw_transformer *network, const hw_study_set *set, hw_arena *arena);

typedef struct hw_ablation_options {
    hw_ablation_groups groups;
    bool modes[HW_ABLATION_MODES]; /* which are done */
    int trials;                    /* of the bootstrap */
    uint64_t seed;
} hw_ablation_options;

/* Some heads of one attention ablated. */
typedef struct hw_ablated {
    char name[64]; /* "encoder.0.self.2"; a pair "encoder.0.self.1+3"; a layer is called by the head that stays,
                      "encoder.0.self.2 alone" */
    int attention;
    int count; /* of heads ablated */
    int *heads; /* [count] as the network counts them within the attention */
    hw_ablation_mode mode;
    hw_difference loss;            /* nats a target token; p: after Holm over all items, of a paired test by sentence */
    double loss_p_raw;             /* before */
    hw_difference match, bleu;     /* exact match 0 to 1, BLEU 0 to 100; p: of this one comparison */
    double loss_after, match_after, bleu_after; /* the figures themselves */
} hw_ablated;

typedef struct hw_ablation {
    int64_t sentences;
    hw_ablation_options options;
    double loss, match, bleu; /* of the network as it is; NaN where nothing was translated */
    char signature[128];      /* of BLEU */
    int count;
    hw_ablated *items; /* group by group, each in the modes asked for */
} hw_ablation;

/* Errors: no attention has two heads, where pairs or layers were asked for. In the arena. */
hw_ablation *hw_ablation_study(hw_meter *meter, const hw_transformer *network, const hw_study_set *set,
                               const hw_ablation_options *options, hw_progress_function progress, void *context,
                               hw_arena *arena, hw_error *err);
json_t *hw_ablation_json(const hw_ablation *a, const hw_transformer *network); /* "heads", a list of flat objects */

/* ---- importance -------------------------------------------------------------------------------------------------- */

/* dL/dxi of every head's gate in every pair, L being -log p of the pair's target, summed over its tokens (natural log,
 * not smoothed). A gate has a gradient at each query row. */
typedef struct hw_gate_gradients {
    const hw_study_set *set;
    int count; /* of heads, as hw_heads_of counts them */
    const hw_head *heads;
    double *net;  /* [heads][pairs] the sum over the query rows: the gradient of one gate for the whole sentence */
    double *size; /* [heads][pairs] the sum of the absolute values */
} hw_gate_gradients;
/* With the runner's settings, whose gates may be other than 1. In the arena. */
hw_gate_gradients *hw_gate_gradients_of(hw_runner *runner, const hw_transformer *network, const hw_study_set *set,
                                        hw_arena *arena);
int64_t hw_query_rows(const hw_study_pair *pair, hw_attention_kind kind); /* with <s> or </s> */

/* The two readings of Michel et al. 2019, equation 4, E_x |dL(x)/dxi|: x is a token (the mean of |.| over query rows,
 * as their program computes it), or a sentence (the mean over sentences of the sum's |.|, as the text has it). */
typedef enum hw_importance_reading {
    HW_IMPORTANCE_TOKEN,
    HW_IMPORTANCE_SENTENCE,
    HW_IMPORTANCE_READINGS
} hw_importance_reading;
extern const char *const hw_importance_readings[]; /* "token", "sentence", NULL */

/* Of every head -> values [heads]; normalised: divided by the root of the sum of squares over the heads of its
 * attention (0 where all are 0). */
void hw_importance_values(const hw_gate_gradients *g, hw_importance_reading reading, bool normalised, double *values);

typedef struct hw_head_importance {
    const hw_head *head;
    hw_importance_reading reading;
    double value, low, high; /* with its 95 % interval over sentences; NaN: of one sentence */
    double normalised;
} hw_head_importance;

/* How well importance foretells ablation: Spearman's correlation over heads with the change of loss. */
typedef struct hw_importance_check {
    hw_importance_reading reading;
    bool normalised;
    hw_ablation_mode mode;
    double rho, low, high; /* NaN as above, or where all heads are equal. Interval: over sentences, both sides computed
                              anew. Drawing blurs both and so lowers the correlation, so resamples are taken about their
                              own mean, not about rho: it tells where rho would be with as many other sentences */
    double resampled;      /* that mean */
} hw_importance_check;

typedef struct hw_importance {
    int64_t sentences;
    int trials, count, checks;
    hw_head_importance *items; /* [count] head by head, each reading */
    hw_importance_check *check;
} hw_importance;
hw_importance *hw_importance_study(const hw_bundle *bundle, const hw_study_set *set, int trials, uint64_t seed,
                                   hw_progress_function progress, void *context, hw_arena *arena);
json_t *hw_importance_json(const hw_importance *x); /* "heads", a list of flat objects; "correlations", likewise */

/* ---- pruning ----------------------------------------------------------------------------------------------------- */

/* How heads are chosen to go. */
typedef struct hw_prune_options {
    hw_importance_reading reading;
    bool normalised;
    int trials; /* of the bootstrap */
    uint64_t seed;
} hw_prune_options;

/* A network with some heads' gates at 0. */
typedef struct hw_prune_step {
    const hw_head *head;           /* the one that went last; NULL: none */
    double importance;             /* it had, among those that were left */
    double loss, match, bleu;      /* on the test set */
    hw_difference loss_change, match_change, bleu_change; /* against the whole network */
} hw_prune_step;

typedef struct hw_pruning {
    int64_t sentences;
    int heads, count; /* of the network; of steps, the first without any head gone */
    hw_prune_options options;
    hw_prune_step *steps;
    int spare;                   /* how many heads go before exact match falls by more than a point; -1: not defined */
    const char *spare_undefined; /* and why; else NULL */
} hw_pruning;

/* Takes the least important head away, again and again, until every attention has one; importance is computed anew on
 * the selection set each time. The meter measures the test set. In the arena. */
hw_pruning *hw_pruning_study(const hw_bundle *bundle, const hw_study_set *selection, hw_meter *meter,
                             const hw_study_set *test, const hw_prune_options *options, hw_progress_function progress,
                             void *context, hw_arena *arena);
json_t *hw_pruning_json(const hw_pruning *p); /* "heads", a list of flat objects, a step each */

/* Of figures that were measured HW_REMOVAL_ROUNDS times. */
enum { HW_REMOVAL_ROUNDS = 7 };
typedef struct hw_spread {
    double median, low, high; /* the least and the largest */
} hw_spread;

/* Target tokens a second: with and without the heads, and how much faster it was without them in the same round (1: as
 * fast). */
typedef struct hw_removal_speed {
    hw_spread tokens[2], gain;
} hw_removal_speed;

/* What it is worth to take heads out of a network and not only turn them down. */
typedef struct hw_removal {
    double difference;      /* the largest, of any token's -log p, between gates at 0 and heads that are gone */
    int64_t parameters[2];  /* with and without the heads */
    double work;            /* the share of floating-point operations of the multiplications that is saved */
    hw_removal_speed scored, translated; /* with the target fed; and when translating */
} hw_removal;
/* part: bundle without these heads, which are places in the list of hw_heads_of. */
hw_removal hw_removal_measure(const hw_bundle *bundle, const hw_bundle *part, const int *heads, int count,
                              const hw_study_set *set, const hw_search_options *search);

/* ---- probes ------------------------------------------------------------------------------------------------------ */

/* What a probe learns from: rows of numbers with a class each. */
typedef struct hw_probe_data {
    int64_t count;
    int width, classes;
    const double *x;      /* [count][width] */
    const int32_t *label; /* [count] from 0 */
} hw_probe_data;

/* A classifier: softmax of a linear function of standardised inputs, or, with hidden > 0, of so many rectified units.
 * Trained on all rows at once by a fixed number of steps of Adam; the linear one begins at 0. In the arena. */
typedef struct hw_probe hw_probe;
hw_probe *hw_probe_train(const hw_probe_data *data, int hidden, uint64_t seed, hw_arena *arena);
/* -> how many rows it gets right; right, where not NULL, is [count]. bits, where not NULL: -log2 p of all labels. */
int64_t hw_probe_test(const hw_probe *p, const hw_probe_data *data, bool *right, double *bits);
/* Online code length of the labels in bits (Voita and Titov 2020, section 3.2): the first 1/1000 by a uniform code, and
 * each part that follows (to 2, 4, 8, 16, 32, 62.5, 125, 250, 500 and 1000 thousandths) by a probe trained on all that
 * comes before. */
double hw_probe_code_length(const hw_probe_data *data, int hidden, uint64_t seed);

/* What is asked for: a row of the table in src/heads/probe_labels.c. */
typedef struct hw_probe_label {
    const char *name, *what;
    bool lexical; /* nearly a function of the word alone, so words of the test are held out of training */
    bool gold;    /* needs dependencies */
    /* The label of word w, written into text or somewhere lasting; NULL: it has none. */
    const char *(*of)(const hw_sentence *words, const hw_conllu_word *tree, int32_t w, char text[128]);
} hw_probe_label;
const hw_probe_label *hw_probe_label_at(int i); /* NULL past the last */

typedef struct hw_probe_options {
    const hw_probe_label *only; /* NULL: all labels */
    int64_t words;              /* at most so many are learnt from, and so many tested */
    int hidden, seeds;
    uint64_t seed;
    int trials; /* of the bootstrap */
} hw_probe_options;

/* What one probe of one thing gives. Shares of words, 0 to 1, means over the seeds. */
typedef struct hw_probed {
    char name[64]; /* a head; "encoder.embeddings"; "encoder.layer.0", what comes out of it; likewise decoder */
    bool is_head;
    const hw_probe_label *label;
    int classes;
    int64_t learnt, tested;
    double accuracy, low, high, deviation; /* its interval over sentences, all seeds together; and between seeds */
    double majority, embeddings, untrained; /* the commonest class; the same probe on embeddings, and on a network with
                                               initial values */
    double control, selectivity;   /* random labels of word types, and what real ones exceed them by on the same words
                                      (Hewitt and Liang 2019) */
    double bits, uniform;          /* online code length of the labels learnt from, and that of a uniform code */
} hw_probed;

typedef struct hw_probes {
    int count;
    hw_probed *items;  /* label by label */
    json_t *skipped;   /* a list of "side: label: why" */
} hw_probes;
/* Probes are trained on `learn` and tested on `test`; where both are one set, on its halves. Errors: a label was asked
 * for that cannot be probed: no gold, one class, too few words. json_decref(skipped). */
hw_probes *hw_probe_study(const hw_bundle *bundle, const hw_study_set *learn, const hw_study_set *test,
                          const hw_probe_options *options, hw_progress_function progress, void *context,
                          hw_arena *arena, hw_error *err);
json_t *hw_probes_json(const hw_probes *p); /* "heads", a list of flat objects */

/* ---- diversity --------------------------------------------------------------------------------------------------- */

/* scipy's jensenshannon(p, q, base=2), 0 to 1, of rows that sum to 1. */
double hw_js_distance(const double *p, const double *q, int64_t n);

/* Linear CKA between the outputs of heads, from sums over rows. */
typedef struct hw_cka hw_cka;
hw_cka *hw_cka_new(int heads, int64_t width);                     /* the caller frees it */
void hw_cka_free(hw_cka *c);                                      /* NULL is fine */
void hw_cka_add(hw_cka *c, const double *rows, int64_t count);    /* [count][H K] */
void hw_cka_matrix(const hw_cka *c, double *out);                 /* [H][H]; NaN where a head never changes */

/* a [n][n], symmetric, becomes diagonal, its eigenvalues in no order; row i of vectors belongs to a[i][i] (Jacobi). */
void hw_symmetric_eigen(int n, double *a, double *vectors);
/* exp of the entropy of the eigenvalues of a similarity over their sum: 1 where all n are alike, n where none is. */
double hw_effective_number(const double *similarity, int n);
/* Places in two dimensions whose distances are as near as can be to [n][n] -> the share of what could be shown. */
double hw_classical_scaling(const double *distances, int n, double (*out)[2]);

/* Two heads of one kind (or a head with itself); means over rows. What compares vectors is NaN for different layers, and
 * orthogonal is their part of |A A' - I|^2. */
typedef struct hw_diversity_pair {
    int a, b; /* places among the heads of hw_heads_of, a <= b */
    double js, position, orthogonal, output, output_squared, subspace, subspace_squared, cka;
} hw_diversity_pair;

typedef struct hw_diversity {
    int64_t pairs; /* of sentences */
    int heads, count;
    const hw_head *head;      /* [heads] */
    hw_diversity_pair *items; /* [count] */
    double (*place)[2];       /* [heads] on the map of their kind, by Jensen-Shannon distance */
    double shown[HW_ATTENTION_KINDS]; /* the share of the distances that the map shows */
    double effective[HW_ATTENTION_KINDS], *layer_effective; /* numbers of heads, by CKA; of each attention */
} hw_diversity;

/* Over all rows that the network has for the set, </s> and <s> included, as in training. In the arena. */
hw_diversity *hw_diversity_study(const hw_bundle *bundle, const hw_study_set *set, hw_progress_function progress,
                                 void *context, hw_arena *arena);
/* "heads", "layers", "kinds", "pairs" (lists) and "overall". */
json_t *hw_diversity_json(const hw_diversity *d, const hw_transformer *network);

/* ---- heads pushed apart in training ------------------------------------------------------------------------------ */

/* How many attentions have the term of training.head_diversity: those of `where` with two heads or more. */
int hw_diversity_attentions(const hw_transformer *network, const hw_config *config);
/* Does the pass have to record weights for it? */
bool hw_diversity_needs_weights(const hw_config *config);
/* The term for a part of a batch -> [1], before weight and schedule: rows are summed and divided by those of the whole
 * batch, source or target, then by the number of attentions. NULL where there are none. */
hw_tensor *hw_diversity_term(hw_tape *t, const hw_transformer *network, const hw_recorded *recorded,
                             const hw_config *config, int64_t source_rows, int64_t target_rows);

/* ---- heads in the course of training ----------------------------------------------------------------------------- */

/* A figure of one head at one moment: a role's score, or a statistic. */
typedef struct hw_trace_row {
    const char *name, *figure; /* the head; "previous", or "entropy" */
    const char *subset, *step; /* of a role: all, pieces; fed, predicted; "" where there is none */
    double value;              /* NaN: there is none */
    double baseline, p;        /* of a role: the better of baseline and untrained heads; after Holm over the model */
    bool is_role, found;
} hw_trace_row;

enum { HW_TRACE_STATISTICS = 5 }; /* of a head and step */

/* Looks at the heads of a network that goes on learning, on the first pairs of its validation set (training.track_heads
 * of them). The bundle outlives it; the caller frees it. Errors: as hw_study_set_load; fewer than two pairs. */
typedef struct hw_tracer hw_tracer;
hw_tracer *hw_tracer_new(const hw_bundle *bundle, int64_t sentences, hw_error *err);
void hw_tracer_free(hw_tracer *t); /* NULL is fine */
/* -> how many rows, always the same ones in the same order, valid until the next look. */
int hw_tracer_look(hw_tracer *t, const hw_trace_row **rows);

/* heads_trace.tsv in a model directory has them, with the training step in front: the columns' names. */
extern const char hw_trace_header[];
/* What it tells: "steps"; "course", a list by step; "roles", when each first comes to stay; "heads", each with "roles"
 * and "statistics" over the steps. A last validation that was not written whole is left out. The caller decrefs it;
 * NULL: there is no trace (the message says how to get one), or the file is damaged. */
json_t *hw_trace_load(const char *model, hw_error *err);
/* A picture of that: a panel for each role that some head comes to have, a line a head. */
void hw_trace_draw(FILE *out, const json_t *trace);

/* ---- several networks -------------------------------------------------------------------------------------------- */

/* How a network's heads spread and overlap, a row a sentence: entropy over its largest value, and, of two heads of one
 * attention, Jensen-Shannon distance and product of weights; means over rows. */
typedef struct hw_head_profile {
    hw_tally entropy, js, position;
} hw_head_profile;
void hw_head_profile_clear(hw_head_profile *p);

/* The mean Jensen-Shannon distance between the rows of every head of the first network and every head of each other
 * one, on the same pairs: [models] -> [heads of the first][heads of the other], NaN where kinds differ; the first's own
 * entry is NULL. All must read text alike (hw_same_texts). profiles: [models]; clear each. In the arena. */
double **hw_head_distances(const hw_bundle *const *bundles, int models, const hw_study_set *set,
                           hw_head_profile *profiles, hw_progress_function progress, void *context, hw_arena *arena);

/* Gives each row a column of its own, or each column a row where there are fewer, such that the sum of the costs is
 * least: column [rows], -1: none. An infinite cost [rows][columns] is never taken. */
void hw_assign(int rows, int columns, const double *cost, int *column);

/* What stands for a head in another network. */
typedef struct hw_head_pair {
    int match;     /* the other's head, no two heads having the same one; -1: none was left */
    int nearest;   /* the nearest, whoever else has it; -1: none could be */
    double js;     /* the distance to its match */
    double chance; /* the mean distance to all that could be */
} hw_head_pair;
/* Matches heads of the same kind, and, with same_layer, of the same layer; out [a_count]. */
void hw_head_match(const hw_head *a, int a_count, const hw_head *b, int b_count, const double *distances,
                   bool same_layer, hw_head_pair *out);
int hw_head_layer(const hw_head *head);

/* One run, measured. */
typedef struct hw_compared {
    const char *name; /* as it is called in results */
    const hw_bundle *bundle;
    int64_t seed;
    bool against;     /* it belongs to the second group */
    const char *same_as; /* the name of one of the others that has the very same weights; NULL */
    hw_quality quality;
    hw_head_profile profile;
    const json_t *roles, *diversity; /* hw_roles_json, hw_diversity_json */
} hw_compared;
/* "figures": means of both groups with the difference, its interval and p (Holm), "over" sentences for two models, else
 * over runs, paired by seed where each has a partner ("unpaired" says why not); "runs", how many in each; "models", the
 * figures of each; "heads": each head of the first model with its match in each other; "matching", a summary of that;
 * "distances" (hw_head_distances). */
json_t *hw_compare_json(const hw_compared *runs, int count, double *const *distances, bool same_layer, int trials,
                        uint64_t seed);

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* The pairs that a report shows, as places in the set, ascending, in the arena: its first `plain` ones and the examples
 * of the roles found (hw_roles_json; NULL: none), as many as fit into `limit` letters of hw_report_pairs. */
int64_t *hw_report_choose(const hw_transformer *network, const hw_study_set *set, const json_t *roles, int64_t plain,
                          int64_t limit, hw_arena *arena, int64_t *count);
/* A list: of each pair its line (from 1), tokens, gold, and every head's weights and norms, two letters of base 64 a
 * number. */
json_t *hw_report_pairs(const hw_transformer *network, const hw_study_set *set, const int64_t *pairs, int64_t count);
/* The page. data: what its script reads, see src/heads/page/data.js. Errors of writing are left to the caller. */
void hw_report_write(FILE *out, const json_t *data);

/* ---- results that are kept --------------------------------------------------------------------------------------- */

/* Results stand in heads/ in the model directory, as NAME.json and NAME.tsv, with a fingerprint of everything that they
 * were computed from. A fingerprint is begun with hw_fingerprint_text(0, ...) and goes on from what it was. */
uint64_t hw_fingerprint_bytes(uint64_t fingerprint, const void *bytes, size_t size);
uint64_t hw_fingerprint_text(uint64_t fingerprint, const char *text); /* with its 0 byte */
/* The file's bytes; a file that is not there counts as such. */
uint64_t hw_fingerprint_file(uint64_t fingerprint, const char *path);
/* All files of a model directory that a study depends on, and all of a data set with its gold. */
uint64_t hw_fingerprint_model(uint64_t fingerprint, const char *directory);
uint64_t hw_fingerprint_set(uint64_t fingerprint, const hw_bundle *bundle, const char *directory, const char *prefix);

/* What was kept under this name and fingerprint, or NULL, also where it was changed since. The caller decrefs it. */
json_t *hw_study_recall(const char *model, const char *name, uint64_t fingerprint);
/* A result may also have a basis, the fingerprint of all but the options that it was computed with: what was kept under
 * this name and basis, whatever its options. */
void hw_study_set_basis(json_t *result, uint64_t basis);
json_t *hw_study_recall_any(const char *model, const char *name, uint64_t basis);
/* Adds the checksum without which a kept result is not read. */
void hw_study_seal(json_t *result);
/* Keeps a result, an object, to which the fingerprint is added, and its rows as TSV. */
bool hw_study_keep(const char *model, const char *name, uint64_t fingerprint, json_t *result, const char *list,
                   const char *const *columns, hw_error *err);

/* Rows of a result as TSV: a header, then a line an entry of result["heads"], or, where list is not NULL, an entry of
 * its list of that name. A column is a key of the entry or of its head; what is not there is empty. columns: ended by
 * NULL. */
void hw_study_tsv(FILE *out, const json_t *result, const char *list, const char *const *columns);
/* What an entry of a result has under a key: NaN where that is no number, "" where it is no text. */
double hw_study_number(const json_t *entry, const char *key);
const char *hw_study_text(const json_t *entry, const char *key);

#endif
