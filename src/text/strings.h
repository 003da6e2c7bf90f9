/* Inside layer 6: a growing set of strings, numbered in the order in which they came.
 *
 * Vocabularies, counts and group labels are all this one thing. Open addressing with linear probing over FNV-1a hashes
 * (Fowler, Noll and Vo, 1991), at most half full. Everything lives in the arena; outgrown tables stay there until it is
 * reset, which at doubling sizes costs no more than the table itself. */
#ifndef HW_TEXT_STRINGS_H
#define HW_TEXT_STRINGS_H

#include <headwise/base.h>

typedef struct hw_string {
    const char *text; /* ended by a 0 byte beyond bytes */
    size_t bytes;
    int64_t value; /* its owner's */
} hw_string;

typedef struct hw_strings {
    hw_arena *arena;
    int64_t count, capacity;
    hw_string *items;
    int64_t slots;  /* a power of two, or 0 */
    int64_t *table; /* [slots] number of the string + 1; 0: free */
    char *room;     /* where the next string's bytes go */
    size_t room_left;
} hw_strings;

int64_t hw_strings_find(const hw_strings *s, const char *text, size_t bytes); /* its number, or -1 */
/* The same where the hash, hw_hash(HW_HASH_START, text, bytes), is known. */
int64_t hw_strings_find_hash(const hw_strings *s, uint64_t hash, const char *text, size_t bytes);
/* The string of the set, old or new (with value 0); valid until the next is added. */
hw_string *hw_strings_add(hw_strings *s, const char *text, size_t bytes);

#define HW_HASH_START UINT64_C(14695981039346656037)
uint64_t hw_hash(uint64_t state, const void *data, size_t bytes); /* FNV-1a, going on from state */

/* Room for one more item of an array in an arena: the array itself, or a larger copy. */
void *hw_grow(hw_arena *arena, void *items, int64_t count, int64_t *capacity, size_t size);

#endif
