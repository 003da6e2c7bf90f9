/* Layer 12, private to headwise heads: what its verbs have in common.
 *
 * A verb is one file, src/cli/heads_NAME.c, and a line in the table of heads.c. It computes a JSON object, which is
 * kept in the model directory, and prints text from it; --json and --tsv print the object and its rows. */
#ifndef HW_CLI_HEADS_H
#define HW_CLI_HEADS_H

#include "cli/model_json.h"
#include "cli/test_set.h"

#include <headwise/heads.h>

/* The options of every verb; the first member of its own struct of options. */
typedef struct hw_heads_options {
    const char *data;
    int64_t seed;
    bool tsv;
} hw_heads_options;

#define HW_HEADS_DATA_OPTIONS                                                                                          \
    {"data",                                                                                                           \
     'd',                                                                                                              \
     "PREFIX",                                                                                                         \
     HW_CLI_TEXT,                                                                                                      \
     offsetof(hw_heads_options, data),                                                                                 \
     .help = "another test set: a prefix in data.dir, or a path such as data/mine/test (data.test)"},                  \
    {                                                                                                                  \
        "seed", 0, "N", HW_CLI_INTEGER, offsetof(hw_heads_options, seed),                                              \
            .help = "of what is drawn, such as resamples (1)", .low = 0, .high = INFINITY                              \
    }
#define HW_HEADS_OPTIONS                                                                                               \
    HW_HEADS_DATA_OPTIONS,                                                                                             \
    {                                                                                                                  \
        "tsv", 0, NULL, HW_CLI_FLAG, offsetof(hw_heads_options, tsv),                                                  \
            .help = "print tab-separated rows, a header first"                                                         \
    }

/* A model and the data that it is studied on. */
typedef struct hw_heads {
    hw_cli *cli;
    const char *model; /* its directory */
    hw_bundle *bundle;
    const hw_config *config; /* with --set */
    const hw_heads_options *options;
    const char *directory, *prefix; /* of the test set */
    hw_cli_progress progress;
    hw_too_long left_out;   /* pairs of the selection set; those of the test set are counted apart */
    bool chosen;            /* something was chosen on the selection set, */
    int64_t scored, shared; /* and is scored on so many sentences, of which so many stand in the selection set too */
} hw_heads;

typedef struct hw_heads_verb {
    const char *name;
    /* What the result depends on beside model, test set, seed and program: more text and data sets for the
     * fingerprint. */
    uint64_t (*depends)(const hw_heads *h, uint64_t fingerprint);
    /* Which part of the whole result was asked for, in words; NULL: the whole, as always where this is
     * NULL. A part is kept beside a whole that still holds, not in its place. */
    const char *(*part)(const hw_heads *h);
    bool draws_nothing;                             /* so that no result depends on the seed */
    json_t *(*compute)(hw_heads *h, hw_error *err); /* NULL: an error */
    void (*print)(hw_heads *h, const json_t *result);
    bool (*after)(hw_heads *h, const json_t *result, hw_error *err); /* what else was asked for; NULL: nothing */
    const char *list;                                                /* what hw_study_tsv wants */
    const char *const *columns;
    /* The verb's own struct of options as it is where nothing was given, for the report; NULL: it has none that compute
     * looks at. */
    const void *defaults;
    size_t defaults_size;
} hw_heads_verb;

extern const hw_heads_verb hw_heads_stats, hw_heads_roles, hw_heads_align, hw_heads_importance, hw_heads_diversity,
    hw_heads_prune, hw_heads_probe;
extern const hw_heads_verb hw_heads_ablate[]; /* by hw_ablation_groups */

/* Runs a verb whose options were read. Returns the exit status. */
int hw_heads_run(hw_cli *cli, const hw_heads_options *options, const hw_heads_verb *verb);
/* A verb's result, kept from before or computed and kept. The caller decrefs it; NULL: an error. */
json_t *hw_heads_result(hw_heads *h, const hw_heads_verb *verb, hw_error *err);
/* Opens a model and finds its test set. False: the message is printed, and cli->status is the exit status. */
bool hw_heads_open(hw_cli *cli, const char *model, const hw_heads_options *options, hw_heads *h);
/* Opens the model and calls work with it. Returns its status, or that of what went wrong. */
int hw_heads_with(hw_cli *cli, const hw_heads_options *options, int (*work)(hw_heads *h, const void *argument),
                  const void *argument);

/* The exit status of what failed. An empty message was printed where its fault was found, which left cli->status. */
int hw_heads_failed(const hw_cli *cli, const hw_error *err);

/* The selection set: data.valid, or, where that is not there, the test set itself, which is noted. Where both hold the
 * same pairs, under whatever names, it is the test set. Counts what the two share into h. */
bool hw_heads_selection(hw_heads *h, const hw_study_set *test, hw_study_set *set, hw_error *err);
/* Both: the set of --data, and the selection set. */
bool hw_heads_sets(hw_heads *h, hw_study_set *test, hw_study_set *selection, hw_error *err);
uint64_t hw_heads_depends_on_selection(const hw_heads *h, uint64_t fingerprint);
/* On every option of the search. */
uint64_t hw_heads_depends_on_search(const hw_heads *h, uint64_t fingerprint);

/* ---- text (heads_text.c) ---- */

/* A cell of a figure, an interval, p of the key "p": "-" where there is none. "< 0.01": p_is_bound. */
void hw_heads_number(hw_cli_table *t, const json_t *o, const char *key, double scale, int digits, bool sign);
void hw_heads_interval(hw_cli_table *t, const json_t *o, const char *low, const char *high, double scale, int digits,
                       bool sign);
void hw_heads_p(hw_cli_table *t, const json_t *o);
const char *hw_heads_sentences(const hw_heads *h, const json_t *result); /* "12 sentences" */
void hw_heads_say(const char *text);                                     /* a paragraph to standard output */

/* What a reader must know before he believes a result: unknown_tokens (of the tokens of the data); left_out, sets of
 * which pairs are too long for the model; chosen_on_scored
 * (with shared_sentences), where at least half of what is scored stands in the set on which something was chosen;
 * rough_intervals (with interval_sentences), where they come from few sentences; closed_heads, where there are any. */
void hw_heads_add_caveats(const hw_heads *h, const hw_heads_verb *verb, json_t *result);
void hw_heads_add_rough(json_t *result, int64_t sentences);
void hw_heads_add_closed(const hw_heads *h, const char *prefix, json_t *result); /* prefix: before each name */
void hw_heads_print_caveats(const hw_heads *h,
                            const json_t *result); /* behind the text; beside --json and --tsv a note */
/* What is done without a result says what it leaves out here. */
void hw_heads_note_left_out(const hw_heads *h, const hw_study_set *set);
void hw_heads_print_untested(hw_arena *arena, const json_t *result); /* its roles that were not tested, and why */
bool hw_heads_is_rough(int64_t sentences);
const char *hw_heads_rough(hw_arena *arena, int64_t sentences); /* the sentence that says so */

/* A result that was kept for this model and data, the whole rather than a part, whatever the options were; NULL: none.
 */
json_t *hw_heads_kept_result(const hw_heads *h, const hw_heads_verb *verb);
/* A result that heads report wants too: the verb computed with the options that it has where none is given. */
json_t *hw_heads_default_result(hw_heads *h, const hw_heads_verb *verb, hw_error *err);
/* The first model beside others, of which the last `against` are the second group; one other is always. `names` is what
 * they are called in the result (the first's too). The caller decrefs it; NULL: an error, which is printed where it is
 * about opening a model: then the message is empty. */
typedef struct hw_heads_group {
    int count; /* of others */
    const char *const *models; /* [count] */
    const char *const *names;  /* [1 + count] */
    int against;
    bool same_layer;
} hw_heads_group;
json_t *hw_heads_compare_of(hw_heads *first, const hw_heads_group *group, hw_error *err);

/* What heads trace prints, or an error. The caller decrefs it. */
json_t *hw_heads_trace_of(const char *model, const hw_config *config, hw_error *err);

#endif
