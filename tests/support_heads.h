/* For the tests of layer 10: data of the toy as a study sees it, and heads whose attention is planted. */
#ifndef HW_TESTS_SUPPORT_HEADS_H
#define HW_TESTS_SUPPORT_HEADS_H

#include <headwise/heads.h>

/* A bundle that reads the toy's words, its validation and test set cut to their first pairs, and all tests. */
typedef struct toy_study {
    hw_arena *arena;
    hw_bundle *bundle;
    hw_study_set selection, test;
    hw_role_test *tests;
    int count;
    hw_evidence *controls[HW_ATTENTION_KINDS]
                         [HW_ROLE_CONTROLS]; /* of heads that are nearly uniform, made when they are needed */
} toy_study;
toy_study *toy_study_new(int64_t selection_pairs, int64_t test_pairs);
void toy_study_free(toy_study *s);

/* A planted head: which key word a query word of a place points to, -1: none; the rest of its attention is noise. */
typedef struct planted {
    const char *name;
    int32_t (*points)(const hw_study_set *set, int64_t pair, int32_t query);
    double share;  /* how many queries do so, the others are noise: 0: all */
    double noise;  /* deviation of the noise's scores; 0: 2; less than 0: none, so that it is uniform */
    double parked; /* the weight that every query gives to <s> or </s>, of which little arrives */
    int row;       /* the decoder: 1 where the word is fed, 0 where it is predicted */
} planted;

/* Evidence of planted heads of one kind over a set. offsets as in hw_evidence_new. */
hw_evidence *planted_evidence(toy_study *s, const hw_study_set *set, const int32_t *offsets, hw_attention_kind kind,
                              const planted *heads, int count, uint64_t seed);
/* The judgement over them, against three copies of eight nearly uniform heads. */
hw_roles *planted_roles(toy_study *s, hw_attention_kind kind, const planted *heads, int count, uint64_t seed,
                        int trials);

/* The result of one head in one test; step NULL: any. */
const hw_role_result *result_of(const hw_roles *roles, int head, const char *role, const char *step, bool pieces);
/* "previous previous(pieces)": the roles that a head was found to have, in a static buffer. */
const char *found_roles(const hw_roles *roles, int head);

#endif
