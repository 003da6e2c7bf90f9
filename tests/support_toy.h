/* For the tests of data/toy: its lines and gold annotation, and the table of its words that was written by hand
 * (tests/fixtures/toy_paradigms.tsv). */
#ifndef HW_TESTS_SUPPORT_TOY_H
#define HW_TESTS_SUPPORT_TOY_H

#include <headwise/text.h>

/* ---- the table ---- */

enum { TOY_FIELDS = 12, TOY_ROWS = 400 };
typedef struct toy_row {
    int fields;
    const char *field[TOY_FIELDS]; /* field[0] is the row's kind: noun, adjective, verb ... */
} toy_row;
typedef struct toy_table {
    int count;
    toy_row row[TOY_ROWS];
} toy_table;
toy_table *toy_table_load(hw_arena *arena);
/* The first row of a kind with this word among fields from..to; NULL: none. */
const toy_row *toy_find(const toy_table *table, const char *kind, int from, int to, const char *word);

/* ---- a set ---- */

typedef struct toy_set {
    hw_lines *line[2]; /* English, French */
    hw_conllu *gold[2];
    hw_alignments *links;
} toy_set;
/* gold: the annotation too; it is checked to fit the lines. */
toy_set *toy_load(hw_arena *arena, const char *directory, const char *prefix, bool gold);

/* The first pairs of a set of data/toy as the set `to` of the scratch directory (support_files.h), gold too or without. */
void toy_copy(const char *from, const char *to, int count, bool gold);

/* The words of one annotated sentence. */
typedef struct toy_sentence {
    const hw_conllu_word *word;
    int count;
} toy_sentence;
toy_sentence toy_words(const hw_conllu *gold, int64_t i);
/* The first dependent of word i in this relation, or -1. */
int toy_dependent(const toy_sentence *s, int i, const char *relation);
/* The word that an adjective, a participle or a verb agrees with: the noun that it describes, its subject, or what the
 * relative pronoun that is its subject stands for; -1: none. */
int toy_controller(const toy_sentence *s, int i);

#endif
