/* Inside layer 10: what a role is. One table holds them all (role_table.c). */
#ifndef HW_HEADS_ROLE_H
#define HW_HEADS_ROLE_H

#include <headwise/heads.h>

/* A column that a query should attend to, and what it is worth to do so. */
typedef struct hw_role_target {
    int32_t column;
    float credit;
} hw_role_target;

/* One pair as a role sees it. */
typedef struct hw_role_view {
    const hw_role_test *test;
    const hw_sentence *query, *key;
    const hw_conllu_word *tree; /* of the queries, which are the keys too; or NULL */
    const hw_link *links;       /* of the pair */
    int64_t link_count;
    int32_t keys, special; /* columns, as hw_word_attention has them */
    const int32_t *visible;
} hw_role_view;

typedef enum hw_role_gold { HW_GOLD_NONE, HW_GOLD_TREE, HW_GOLD_LINKS } hw_role_gold;

/* What a head is held against beside untrained heads. */
typedef enum hw_role_baseline { HW_BASELINE_CONTROL, HW_BASELINE_OFFSET, HW_BASELINE_DIAGONAL } hw_role_baseline;

enum { HW_IN_ENCODER = 1 << HW_ENCODER_SELF, HW_IN_DECODER = 1 << HW_DECODER_SELF, HW_IN_CROSS = 1 << HW_CROSS };

struct hw_role {
    const char *name, *counts, *source;
    unsigned kinds;  /* the attentions where it is looked for */
    bool both_steps; /* it is about the query word, so the decoder's steps differ; else it is scored where words are fed
                      */
    bool pieces;     /* scored over the pieces of spelled words too */
    hw_role_gold gold;
    hw_role_baseline baseline;
    double threshold; /* the least score, */
    double margin;    /* and by how much the baseline must be exceeded, for a head to have the role */
    double ceiling;   /* a baseline above it leaves nothing to claim; 0: any baseline will do */
    bool words_only;  /* <s> and </s> are no keys */
    bool mass;        /* how much arrives from the targets is kept too */
    /* The targets of a query -> how many; -1: it is no case. NULL: the score is the entropy of its attention, relative
     * to the largest possible. */
    int (*targets)(const hw_role_view *view, int32_t query, hw_role_target *out);
    /* What a query that hits all its targets is worth; NULL: 1. */
    float (*worth)(const hw_role_view *view, int32_t query);
    int32_t offset;       /* positional roles */
    const char *relation; /* of dependencies */
    bool inverse;         /* from the dependent to its head */
    bool bracket;         /* marks: brackets, or else quotation marks */
};

/* Is the role looked for at this place, if there is gold? */
bool hw_role_is_for(const hw_role *role, const hw_place *place);
/* The suffix of the gold file ("en.conllu") that the role needs there and the set does not have, in the arena; NULL: it
 * lacks none. */
const char *hw_role_lacks(const hw_role *role, const hw_place *place, const hw_config *config, const hw_study_set *set,
                          hw_arena *arena);
/* Is there anything to achieve in a test? */
bool hw_evidence_has_cases(const hw_evidence *e, int test);

/* The queries of one test in one pair. */
typedef struct hw_role_case {
    int32_t query;
    int32_t first, count; /* of targets */
    float worth;
} hw_role_case;

typedef struct hw_cases {
    int32_t count;
    hw_role_case *items;
    hw_role_target *targets;
} hw_cases;

/* How a query's largest weight is taken. */
enum { HW_ROLE_BY_WORDS, HW_ROLE_WORDS_ONLY, HW_ROLE_BY_TOKENS, HW_ROLE_WAYS };

struct hw_role_cases {
    int place;
    int64_t pair;
    const hw_cases *of;          /* [tests of the evidence]; those of other places are empty */
    hw_real *best[HW_ROLE_WAYS]; /* room: the largest weight of each query */
    int32_t *ties[HW_ROLE_WAYS]; /* how many keys have it */
};

/* What a query that attends to this column alone achieves. */
float hw_case_credit(const hw_cases *cases, const hw_role_case *c, int32_t column);

#endif
