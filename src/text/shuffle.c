/* The shuffle of an epoch as a cipher on 0 .. count - 1 (Black and Rogaway 2002, "Ciphers with arbitrary finite
 * domains").
 *
 * A number is written as (row, column) of a grid that is just large enough; each round of a generalised Feistel network
 * adds to one of the two a random function of the other, which can be undone and so is a bijection of the grid; a
 * result outside 0 .. count - 1 goes through again, which is a bijection of what is inside. A corpus of any size is
 * shuffled without an array, and a training resumes in the middle of an epoch by its place alone. */
#include "text/shuffle.h"

#include <math.h>

enum { ROUNDS = 16 }; /* at 8 the neighbours of tiny corpora are not even yet */

/* Keeps these draws apart from all others of the same seed. */
static const uint64_t shuffle_key = UINT64_C(0x73687566666C6521);

hw_shuffle hw_shuffle_new(uint64_t seed, uint64_t epoch, int64_t count)
{
    HW_CHECK(count > 0, "a shuffle of nothing");
    uint64_t n = (uint64_t)count, rows = (uint64_t)sqrt((double)n);
    while (rows * rows < n) rows++;
    return (hw_shuffle){
        .key = seed ^ shuffle_key, .epoch = epoch, .count = n, .rows = rows, .cols = (n + rows - 1) / rows};
}

/* A random function of half, in 0 .. bound - 1; both halves of any corpus' numbers are far below 2^32. */
static uint64_t draw(const hw_shuffle *s, uint32_t round, uint64_t half, uint64_t bound)
{
    const uint32_t counter[4] = {(uint32_t)half, round, (uint32_t)s->epoch, (uint32_t)(s->epoch >> 32)};
    uint32_t out[4];
    hw_philox(s->key, counter, out);
    return out[0] * bound >> 32;
}

static uint64_t encipher(const hw_shuffle *s, uint64_t x)
{
    uint64_t row = x / s->cols, col = x % s->cols;
    for (uint32_t round = 0; round < ROUNDS; round += 2) {
        row += draw(s, round, col, s->rows);
        if (row >= s->rows) row -= s->rows;
        col += draw(s, round + 1, row, s->cols);
        if (col >= s->cols) col -= s->cols;
    }
    return row * s->cols + col;
}

int64_t hw_shuffle_at(const hw_shuffle *shuffle, int64_t place)
{
    HW_CHECK(place >= 0 && (uint64_t)place < shuffle->count, "a place outside the shuffle");
    uint64_t x = encipher(shuffle, (uint64_t)place);
    while (x >= shuffle->count) x = encipher(shuffle, x);
    return (int64_t)x;
}
