/* Inside layer 6: alignments of words (Pharaoh's format) as they are read, kept beside the pairs of a training set, and
 * given to its tokens. */
#ifndef HW_TEXT_LINKS_H
#define HW_TEXT_LINKS_H

#include <headwise/text.h>

#include "text/store.h"

/* ---- reading (align.c) ------------------------------------------------------------------------------------------- */

typedef struct hw_link_list {
    hw_arena *arena;
    hw_link *items;
    int64_t count, capacity;
} hw_link_list;

/* Adds the links of a line, each once, ordered by source, then target. words: how many the pair has on each side; NULL:
 * nobody knows yet. Errors name file, line and column. */
bool hw_links_read(hw_link_list *list, const char *path, int64_t number, const char *line, size_t bytes,
                   const int64_t words[2], hw_error *err);

/* ---- beside a corpus (links.c) ----------------------------------------------------------------------------------- */

/* The links of a pair, between words, and how many tokens each word has. */
typedef struct hw_word_links {
    int64_t count, words[2];
    const int32_t *tokens[2]; /* [words] */
    const int32_t *links;     /* [2 count] source and target word, ordered by target, then source */
} hw_word_links;

/* Those of all pairs. */
typedef struct hw_link_store {
    hw_store start, numbers;
    int64_t pairs;
} hw_link_store;

/* Links of words become links of their tokens, a pair's HW_MOST_LINKS at most. Fails where there are more, which come of
 * words that are no words, naming file and line. */
enum { HW_MOST_LINKS = 1 << 20 };
bool hw_links_fit(const hw_word_links *words, const hw_link *links, int64_t count, const char *path, int64_t line,
                  hw_error *err);

/* Those of the next pair, which may be none. links: the caller's, put in another order. */
bool hw_link_store_add(hw_link_store *s, const hw_word_links *words, hw_link *links, int64_t count,
                       const hw_store_place *place, hw_error *err);
hw_word_links hw_link_store_at(const hw_link_store *s, int64_t pair);
/* All that is kept of a pair, for fingerprints. */
const int32_t *hw_link_store_numbers(const hw_link_store *s, int64_t pair, int64_t *count);
void hw_link_store_release(const hw_link_store *s);
void hw_link_store_free(hw_link_store *s);

/* Every token of a target word is linked to every token of the source words that its word is linked to. */
hw_pair_links hw_links_of_tokens(const hw_word_links *words, hw_arena *arena);

/* The word links of a pair, without any where the corpus was read without an alignment (corpus.c). */
bool hw_corpus_has_links(const hw_corpus *corpus);
hw_word_links hw_corpus_word_links(const hw_corpus *corpus, int64_t pair);

/* How many tokens each word has in another cut of a sentence, tokens being how many it has in the best one (sampler.c).
 */
const int32_t *hw_sampler_word_tokens(const hw_sampler *s, hw_ids best, const int32_t *tokens, int64_t words,
                                      hw_ids drawn, hw_arena *arena);

#endif
