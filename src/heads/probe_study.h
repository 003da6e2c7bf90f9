/* Inside layer 10: what probes read, a vector a word. */
#ifndef HW_HEADS_PROBE_STUDY_H
#define HW_HEADS_PROBE_STUDY_H

#include <headwise/heads.h>

/* Embeddings (with positions), a head's output, or what comes out of a layer. */
typedef struct hw_thing {
    char name[64];
    bool is_head;
    int layers;          /* not a head: how many layers were run; 0: embeddings */
    int attention, head; /* a head */
    int column, width;   /* where its numbers stand in a row */
} hw_thing;

/* The words of one side of pairs first .. first + pairs - 1. */
typedef struct hw_vectors {
    const hw_study_set *set;
    int side;
    int64_t first, pairs;
    const int64_t *start; /* [pairs + 1] the row of each pair's first word */
    int count;            /* of things, the embeddings first */
    hw_thing *things;
    int total; /* numbers a row */
    float *x;  /* [start[pairs]][total] */
} hw_vectors;

/* Encoder and source, or decoder (where words are fed) and target. In the arena. */
hw_vectors *hw_vectors_of(const hw_transformer *network, const hw_study_set *set, int64_t first, int64_t end, int side,
                          hw_arena *arena);

#endif
