/* What a synchronous grammar is in memory, shared by the files grammar_*.c.
 *
 * A grammar rewrites a symbol into two sequences at once, a source and a target one (Aho and Ullman 1969, "Syntax
 * directed translations and the pushdown assembler"; Chiang 2006, "An introduction to synchronous grammars"), here with
 * features that must agree, as in unification grammars. Each rule has parts, and two orders of them. A part is a phrase
 * (rewritten further) or a word class of the lexicon. A feature is a variable: parts that agree hold the same one, so
 * agreement costs no unifier.
 *
 *   grammar_load.c     features, passes, settings     grammar_derive.c   draws a tree of one sentence pair
 *   grammar_lexicon.c  word classes and their forms   grammar_surface.c  its words, links, final passes
 *   grammar_rules.c    the rules and their notation   grammar_corpus.c   train, valid and test
 *   grammar_check.c    faults seen only in the whole  grammar_write.c    files and counts */
#ifndef HEADWISE_TEXT_GRAMMAR_H
#define HEADWISE_TEXT_GRAMMAR_H

#include <headwise/config.h>
#include <headwise/text.h>

enum { HW_SOURCE, HW_TARGET, HW_SIDES };
enum { HW_FEATURES = 16, HW_PIECES = 8 };

/* The value of each feature by its index, -1: open. */
typedef struct hw_bundle {
    int8_t value[HW_FEATURES];
} hw_bundle;

typedef struct hw_feature {
    const char *name;
    int count;
    const char **values;
    double *weights; /* of a value when nothing else decides */
} hw_feature;

typedef struct hw_form {
    hw_bundle when;
    const char *text; /* one word or several, a blank between them */
} hw_form;

typedef struct hw_entry {
    const char *name; /* its first source form, or its first target form */
    const hw_yaml *at;
    double weight;
    hw_bundle is;
    int forms[HW_SIDES];
    hw_form *form[HW_SIDES];
} hw_entry;

struct hw_symbol;

typedef struct hw_part {
    const char *label;
    const struct hw_symbol *symbol;
    const hw_entry *entry; /* the only one allowed, or NULL */
    hw_bundle is;
    bool free; /* its features are its own */
    double probability;
    bool on[HW_SIDES];
    const char *relation[HW_SIDES]; /* to the head of the rule; NULL: it is the head */
} hw_part;

typedef struct hw_pairing {
    int first, second; /* parts */
    bool sure;
} hw_pairing;

typedef struct hw_rule {
    const hw_yaml *at;
    double weight;
    hw_bundle is;     /* what it says of its phrase */
    hw_bundle shared; /* that, and what all its parts that agree say together (set by hw_grammar_check) */
    int parts;
    hw_part *part;
    int length[HW_SIDES];
    int *order[HW_SIDES]; /* indices of parts */
    int links, matches;
    hw_pairing *link;  /* words of the source part to words of the target part */
    hw_pairing *match; /* an opening and a closing mark */
    int phenomenon;    /* -1: none */
} hw_rule;

typedef struct hw_symbol {
    const char *name;
    const hw_yaml *at;
    uint32_t features; /* bit f: has feature f */
    bool used;
    /* a word class */
    bool word;
    bool distinct; /* none of its words twice in a sentence */
    const char *pos[HW_SIDES];
    bool on[HW_SIDES];
    int entries;
    hw_entry *entry;
    /* a class of names spelled from syllables */
    int syllables;
    const char **syllable;
    const char *joiner;
    int lengths;
    int pieces[HW_PIECES];
    double piece_weights[HW_PIECES];
    /* a phrase */
    int rules;
    hw_rule *rule;
} hw_symbol;

/* A final pass: these words, where the next one begins so, become those. */
typedef struct hw_rewrite {
    const hw_yaml *at;
    int words;
    const char **word;
    int starts; /* 0: any next word, or none */
    const char **start;
    hw_bundle is;         /* of the first word */
    const char *relation; /* of the first word, or NULL */
    int becomes;
    const char **become;
} hw_rewrite;

struct hw_grammar {
    hw_arena *arena;
    const char *path;
    const char *side[HW_SIDES];
    int features;
    hw_feature feature[HW_FEATURES];
    int symbols;
    hw_symbol *symbol;
    hw_symbol *start;
    int rewrites[HW_SIDES];
    hw_rewrite *rewrite[HW_SIDES];
    int avoided[HW_SIDES];
    const char **avoid[HW_SIDES]; /* words in a row that no sentence may have, joined by blanks */
    int pinned;
    hw_rule *pin;
    uint32_t annotated[HW_SIDES]; /* bit f: feature f is written into FEATS */
    int phenomena;
    const char **phenomenon;
    int min_length, max_length; /* of a sentence, both sides */
    int64_t pairs, valid, test, seed;
    /* combinations that train and valid never show */
    const hw_symbol *held[2]; /* NULL: none */
    int held_feature;
    double held_share;
    double held_test; /* share of the test set that has one */
};

/* ---- grammar_load.c ---- */

hw_bundle hw_bundle_open(void);
/* Adds b's values to a; false where they contradict. */
bool hw_bundle_unify(hw_bundle *a, const hw_bundle *b);
hw_symbol *hw_grammar_symbol(const hw_grammar *g, const char *name);
/* Reads names of values at text[0..size-1], a piece of the scalar `at`, separated by blanks or dots. */
bool hw_grammar_values(const hw_grammar *g, const hw_yaml *at, const char *text, int size, hw_bundle *out,
                       hw_error *err);
/* hw_yaml_fail at the place where `text`, a part of the scalar's text, stands. */
bool hw_grammar_fail(const hw_yaml *at, const char *text, hw_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reads names of features, separated by blanks, at text[0..size-1] into bits. */
bool hw_grammar_features(const hw_grammar *g, const hw_yaml *at, const char *text, int size, uint32_t *out,
                         hw_error *err);
/* The values that a scalar names; node NULL: none. */
bool hw_grammar_read_values(const hw_grammar *g, const hw_yaml *node, const char *what, hw_bundle *out, hw_error *err);
/* Fails unless the scalar can be a name of the grammar's own (of a feature, a value, a class ...). */
bool hw_grammar_check_name(const hw_yaml *node, hw_error *err);
bool hw_grammar_is_mapping(const hw_yaml *node, const char *what, hw_error *err); /* and not empty */
bool hw_grammar_is_sequence(const hw_yaml *node, const char *what, hw_error *err);
/* Fails unless the scalar can stand in a line of text and in a column of CoNLL-U: as one word, or, with blanks, as
 * several. */
bool hw_grammar_check_text(const hw_yaml *node, const char *what, bool blanks, hw_error *err);
/* The words of a scalar, or of a sequence of scalars with one each. */
bool hw_grammar_words(const hw_grammar *g, const hw_yaml *node, const char *what, int *count, const char ***words,
                      hw_error *err);
/* The name nearest to a misspelt one as ", did you mean X?", or "". */
const char *hw_grammar_hint(const hw_grammar *g, const char *word, int count, const char *(*name)(int, const void *),
                            const void *argument);

/* ---- grammar_lexicon.c ---- */

/* Makes room for all symbols at once, since rules keep pointers to them. */
bool hw_grammar_read_lexicon(hw_grammar *g, const hw_yaml *node, const hw_yaml *rules, hw_error *err);

/* ---- grammar_rules.c ---- */

bool hw_grammar_read_rules(hw_grammar *g, const hw_yaml *root, hw_error *err);

/* ---- grammar_check.c ---- */

bool hw_grammar_check(hw_grammar *g, hw_error *err);

/* ---- grammar_derive.c, grammar_surface.c ---- */

typedef struct hw_node {
    const hw_symbol *symbol;
    int variable[HW_FEATURES]; /* -1: it has no such feature */
    const hw_rule *rule;       /* a phrase */
    struct hw_node **child;    /* by part; NULL: left out */
    const hw_entry *entry;     /* a word */
    int pieces;                /* a spelled word */
    const char *piece[HW_PIECES];
    int first[HW_SIDES], count[HW_SIDES]; /* its words, before the final passes; head of the phrase */
    int head[HW_SIDES];
} hw_node;

typedef struct hw_variable {
    int feature, value; /* value -1: open */
} hw_variable;

typedef struct hw_derivation {
    hw_arena *arena; /* holds everything of one sentence pair */
    hw_node *root;
    int variables;
    hw_variable *variable;
    int leaves;
    hw_node **leaf;     /* the words' nodes, in the order in which they were drawn */
    uint16_t *counts;   /* by phenomenon */
    const char *reason; /* why it failed */
} hw_derivation;

typedef struct hw_word {
    const char *text, *pos, *relation;
    int head;       /* index, -1: the root */
    int match;      /* the other mark, -1: none */
    int piece;      /* of a spelled word, from 1; 0: not spelled */
    hw_bundle says; /* what its form and its entry say of features */
    const hw_node *node;
} hw_word;

typedef struct hw_pair {
    int count[HW_SIDES];
    hw_word *word[HW_SIDES];
    int links;
    hw_link *link; /* as in hw_alignments: by source, then target, each once */
    const char *text[HW_SIDES];
} hw_pair;

/* Draws one derivation (of the pinned rule, where it is not NULL); false, with d->reason, where features or depth did
 * not work out. The arena in d is reset first. */
bool hw_derive(const hw_grammar *g, const hw_rule *pin, hw_random *random, hw_derivation *d);
int hw_node_value(const hw_derivation *d, const hw_node *node, int feature); /* -1: it has none */
/* The pair's words, in d's arena. Error: final passes that let a sentence grow on and on. */
bool hw_surface(const hw_grammar *g, hw_derivation *d, hw_pair *out, hw_error *err);

/* ---- grammar_write.c ---- */

/* The files of one set; those of all sets are written whole or not at all. */
enum { HW_SETS = 3 };
typedef struct hw_grammar_files hw_grammar_files;
hw_grammar_files *hw_grammar_files_begin(const hw_grammar *g, const char *directory, const char *prefix, bool annotated,
                                         bool grouped, hw_error *err);
void hw_grammar_files_add(hw_grammar_files *files, const hw_pair *pair, bool unseen);
/* Puts the files of all sets into place, or, with keep false or at an error, removes them. Frees each (NULL is fine). */
bool hw_grammar_files_end(hw_grammar_files *const *sets, int count, bool keep, hw_error *err);

/* Counts over all sets, which become the report. */
typedef struct hw_grammar_tally hw_grammar_tally;
hw_grammar_tally *hw_grammar_tally_new(const hw_grammar *g);
void hw_grammar_tally_add(hw_grammar_tally *tally, const hw_derivation *d, const hw_pair *pair);
void hw_grammar_tally_report(const hw_grammar_tally *tally, hw_grammar_report *report);
void hw_grammar_tally_free(hw_grammar_tally *tally);

/* A set of keys, each with a number, that grows. */
typedef struct hw_keys {
    int64_t count, capacity; /* capacity: a power of two, or 0 */
    uint64_t *key, *value;   /* key 0: free */
} hw_keys;
/* The place of the key's value; *added tells whether it was new (its value is then 0). */
uint64_t *hw_keys_add(hw_keys *keys, uint64_t key, bool *added);
void hw_keys_clear(hw_keys *keys);
uint64_t hw_text_hash(const char *text); /* never 0 */

#endif
