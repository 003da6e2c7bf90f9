/* Inside layer 6: a shuffle of 0 .. count - 1 that is computed, not stored: any place of it, at any time, in no
 * memory. */
#ifndef HW_TEXT_SHUFFLE_H
#define HW_TEXT_SHUFFLE_H

#include <headwise/base.h>

typedef struct hw_shuffle {
    uint64_t key, epoch, count;
    uint64_t rows, cols; /* of a nearly square grid that just holds count */
} hw_shuffle;

hw_shuffle hw_shuffle_new(uint64_t seed, uint64_t epoch, int64_t count);
int64_t hw_shuffle_at(const hw_shuffle *shuffle, int64_t place); /* a bijection of 0 .. count - 1 */

#endif
