/* Layer 1, config: YAML with places, and the one table of options.
 *
 * hw_yaml reads any YAML file into a tree whose every node knows its line and column, so that whoever reads the tree
 * can say exactly what is wrong where. hw_config is what a run is told; one table (src/config/options.c) drives its
 * reading, its checks, --set, --help-config and the documentation. */
#ifndef HEADWISE_CONFIG_H
#define HEADWISE_CONFIG_H

#include <headwise/base.h>

/* ---- YAML -------------------------------------------------------------------------------------------------------- */

typedef enum hw_yaml_kind { HW_YAML_SCALAR, HW_YAML_SEQUENCE, HW_YAML_MAPPING } hw_yaml_kind;

typedef struct hw_yaml {
    hw_yaml_kind kind;
    const char *file;        /* as it was given */
    int line, column;        /* from 1 */
    const char *text;        /* scalar: its text, ended by a 0 byte (a 0 byte inside is an error) */
    bool quoted;             /* scalar: it stood in quotes, so it is a string whatever it looks like */
    int count;               /* sequence, mapping: how many */
    struct hw_yaml **keys;   /* mapping: scalars */
    struct hw_yaml **items;  /* sequence: its items; mapping: its values */
} hw_yaml;

/* The tree lives in the arena. Errors: unreadable file, malformed YAML, repeated keys, anchors, aliases, tags, several
 * documents; each with file:line:column. An empty file is an empty mapping. */
hw_yaml *hw_yaml_load(hw_arena *arena, const char *path, hw_error *err);
hw_yaml *hw_yaml_parse(hw_arena *arena, const char *name, const char *text, size_t size, hw_error *err);

/* The value of key, or NULL. */
hw_yaml *hw_yaml_get(const hw_yaml *mapping, const char *key);

/* Writes "file:line:column: message" and returns false. */
bool hw_yaml_fail(const hw_yaml *at, hw_error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Readers of one scalar, with the error at its place. `what` names it in messages ("model.heads"). */
bool hw_yaml_integer(const hw_yaml *node, const char *what, int64_t low, int64_t high, int64_t *out, hw_error *err);
bool hw_yaml_number(const hw_yaml *node, const char *what, double low, double high, double *out, hw_error *err);
bool hw_yaml_boolean(const hw_yaml *node, const char *what, bool *out, hw_error *err);
bool hw_yaml_string(const hw_yaml *node, const char *what, const char **out, hw_error *err);

/* Fails at the first key of the mapping that is not among the count allowed ones, naming the nearest. */
bool hw_yaml_known_keys(const hw_yaml *mapping, const char *const *allowed, int count, hw_error *err);

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* The words of the options that are choices. src/config/options.c has each option's words in this order. */
enum { HW_CONFIG_RELU = 1, HW_CONFIG_GELU, HW_CONFIG_SWISH }; /* model.activation: the values of hw_activation */
enum { HW_NORM_POST, HW_NORM_PRE };                           /* model.norm */
enum { HW_TIE_ALL, HW_TIE_OUTPUT, HW_TIE_NONE };              /* model.tied_embeddings */
enum { HW_ADAM, HW_ADAMW };                                   /* training.optimizer */
enum { HW_SCHEDULE_CONSTANT, HW_SCHEDULE_INVERSE_SQRT, HW_SCHEDULE_NOAM, HW_SCHEDULE_LINEAR, HW_SCHEDULE_COSINE };
enum {
    HW_METRIC_EXACT_MATCH, HW_METRIC_BLEU, HW_METRIC_CHRF, HW_METRIC_TOKEN_ACCURACY, HW_METRIC_PERPLEXITY, HW_METRIC_LOSS
}; /* training.metric */

enum { HW_DIVERSITY_NONE, HW_DIVERSITY_OUTPUT, HW_DIVERSITY_SUBSPACE, HW_DIVERSITY_POSITION, HW_DIVERSITY_ORTHOGONAL };
enum { HW_STEP_PREDICTED, HW_STEP_FED }; /* training.guided_alignment.step */
/* training.head_diversity.schedule, training.drop_head.schedule */
enum { HW_STRENGTH_CONSTANT, HW_STRENGTH_RISE, HW_STRENGTH_FALL, HW_STRENGTH_V };

typedef struct hw_names {
    int count;
    const char *const *items;
} hw_names;

/* How translations are searched for: the section `decoding`, and what hw_search (decode) is told. */
typedef struct hw_decoding {
    int64_t beam, n_best, min_length, max_length;
    double length_penalty, coverage_penalty, patience; /* a patience of 0 counts as 1 */
    int64_t no_repeat_ngram;
    bool sampling;
    double temperature; /* 0 counts as 1 */
    int64_t top_k;
    double top_p; /* 0 counts as 1 */
    int64_t seed;
    bool replace_unknown;
    int64_t longest_source, batch_sentences;
    bool ids_only; /* no option: the caller wants the tokens alone, for which greedy search saves the softmax */
} hw_decoding;

/* What a run is told. `headwise --help-config` says what each option means, with its unit, default and bounds; a new
 * option is a field here and a row in src/config/options.c. Everything lives in the arena that it was made in. */
typedef struct hw_config {
    struct {
        int64_t encoder_layers, decoder_layers, width, heads, feed_forward;
        int activation, norm, tied_embeddings;
        hw_names removed_heads;
    } model;
    struct {
        const char *dir, *train, *valid, *test, *source, *target;
        int64_t max_length;
        double max_ratio;
        bool drop_identical, drop_duplicates;
    } data;
    struct {
        const char *tokenizer, *joiner;
        int64_t min_count, max_vocabulary;
        bool shared_vocabulary;
        const char *model, *model_type, *normalization;
        double character_coverage;
        bool byte_fallback;
        int64_t model_lines;
        double sampling;
    } text;
    struct {
        const char *model_dir;
        int64_t seed, max_steps, shards, micro_batch_tokens, batch_tokens, batch_sentences;
        int optimizer;
        double learning_rate, beta1, beta2, epsilon, weight_decay;
        int schedule;
        int64_t warmup_steps;
        double attention_gain, label_smoothing, clip_norm;
        double dropout_embedding, dropout_residual, dropout_attention, dropout_feed_forward;
        struct {
            int kind, schedule;
            double weight, entropy;
            hw_names where;
            bool diagonal, squared;
        } head_diversity;
        struct {
            double rate;
            int schedule;
        } drop_head;
        struct {
            double weight;
            int64_t layer, head; /* layer -1: the last but one, or the only one; see hw_guided_layer */
            int step;
            const char *suffix;
        } guided_alignment;
        struct {
            double weight, learning_rate;
        } head_l0;
        const char *init_from;
        int64_t validate_every, validate_sentences, track_heads;
        int metric;
        int64_t patience;
        double ema;
        int64_t average, average_every, save_every, keep_checkpoints, log_every;
        bool tensorboard;
    } training;
    hw_decoding decoding;

    hw_arena *arena;
    const char *file;    /* the last file read, for messages; NULL: none */
    const char **places; /* of each option: "file:line:column", "--set", or NULL where it has its default */
} hw_config;

/* All defaults. */
hw_config *hw_config_new(hw_arena *arena);

/* Defaults, then the file. NULL and file:line:column for YAML errors, unknown keys (the nearest known one is named),
 * repeated keys, wrong types, values out of range. What concerns several options is hw_config_check's. */
hw_config *hw_config_load(hw_arena *arena, const char *path, hw_error *err);
/* The same from text; `name` stands for the file in messages. */
hw_config *hw_config_parse(hw_arena *arena, const char *name, const char *text, size_t size, hw_error *err);

/* One option from "key=value", as --set has it. Text is taken as it stands; a list is separated by commas. */
bool hw_config_set(hw_config *config, const char *assignment, hw_error *err);
/* The same from another place than --set, which messages will name ("--beam"). */
bool hw_config_set_from(hw_config *config, const char *place, const char *assignment, hw_error *err);

/* Checks what concerns several options (heads divide the width ...) and settles what follows from others: batch_tokens
 * is 0 where batch_sentences was given and it was not. Call it after the last hw_config_set. What is allowed but hardly
 * meant is added to warnings (NULL: not wanted), as complete sentences. */
bool hw_config_check(hw_config *config, hw_names *warnings, hw_error *err);

/* Why a text cannot be a joiner (text.joiner), or NULL. bytes: how many of it mark a piece, without the blanks behind,
 * which separate tokens anyway: "@@ " and "@@" are the same. */
enum { HW_LONGEST_JOINER = 15 }; /* bytes */
const char *hw_joiner_fault(const char *joiner, size_t *bytes);

/* The decoder layer of training.guided_alignment, from 0. */
int64_t hw_guided_layer(const hw_config *config);

/* How many finished hypotheses end a beam search: its width times the patience, rounded (Kasai et al. 2022). */
int64_t hw_decoding_enough(const hw_decoding *d);
/* Fails where options of a search cannot work, or not together; hw_config_check does this too. */
bool hw_decoding_check(const hw_decoding *d, hw_error *err);

/* Fails unless every one of the options (ended by NULL), texts that have no default, was given. */
bool hw_config_require(const hw_config *config, const char *const *keys, hw_error *err);

/* Writes a complete file that reads back as the same values, atomically. */
bool hw_config_save(const hw_config *config, const char *path, hw_error *err);
/* Has the file nothing that saving it again would change? A person's has comments, an order, options left out. */
bool hw_config_is_saved(const char *path);
/* The same as a text with whole keys, a line `model.width: 512` each, without those that leave_out says yes to. It lives
 * in the arena. */
const char *hw_config_text(const hw_config *config, bool (*leave_out)(const char *key), hw_arena *arena);

/* Which options have different values, in the order of the table. */
hw_names hw_config_differences(const hw_config *a, const hw_config *b, hw_arena *arena);

/* An option's value as the file would have it ("512", "relu", "\"data/toy\""). The key must exist. */
const char *hw_config_value(const hw_config *config, const char *key, hw_arena *arena);
/* Where an option was set ("configs/x.yaml:7:12", "--set"), or NULL. The key must exist. */
const char *hw_config_place(const hw_config *config, const char *key);

/* The page that --help-config prints. */
void hw_config_help(FILE *out);

/* The i-th option's key; NULL past the last. */
const char *hw_config_key(int i);
/* What its row says, for a command that has it as an option of its own; false past the last. */
typedef struct hw_config_row {
    const char *key, *help;
    enum { HW_ROW_INTEGER, HW_ROW_NUMBER, HW_ROW_BOOLEAN, HW_ROW_TEXT } kind; /* text: anything else, too */
    double low, high; /* of numbers; INFINITY: no bound */
} hw_config_row;
bool hw_config_row_at(int i, hw_config_row *row);

#endif
