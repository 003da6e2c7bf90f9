/* Philox4x32-10 and the sequences drawn from it.
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3 and table 2.
 * One round multiplies two of the four words by constants and mixes the high halves with the other two and the key; the
 * key moves on by a Weyl constant. There is no state: the same key and counter always give the same four words. */
#include <headwise/base.h>

#include <math.h>

void hw_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

hw_random hw_random_new(uint64_t seed, uint64_t stream) { return (hw_random){seed, stream, 0}; }

/* The block of four words that holds the sequence's word at `position`. */
static void block_at(const hw_random *random, uint32_t out[4])
{
    uint64_t block = random->position / 4;
    uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)random->stream,
                           (uint32_t)(random->stream >> 32)};
    hw_philox(random->key, counter, out);
}

uint32_t hw_random_bits(hw_random *random)
{
    uint32_t block[4];
    block_at(random, block);
    return block[random->position++ % 4];
}

/* Two words of one block, so that a long draw costs one Philox. */
static uint64_t bits64(hw_random *random)
{
    random->position += random->position % 2;
    uint32_t block[4];
    block_at(random, block);
    const uint32_t *pair = block + random->position % 4;
    random->position += 2;
    return (uint64_t)pair[0] << 32 | pair[1];
}

uint64_t hw_random_below(hw_random *random, uint64_t bound)
{
    HW_CHECK(bound > 0, "a random number below 0 was asked for");
    uint64_t surplus = -bound % bound; /* 2^64 mod bound: this many draws are refused, the rest divides evenly */
    uint64_t bits;
    do bits = bits64(random);
    while (bits < surplus);
    return bits % bound;
}

double hw_random_uniform(hw_random *random) { return (double)(bits64(random) >> 11) * 0x1p-53; }

/* Box and Muller 1958. */
double hw_random_normal(hw_random *random)
{
    double radius = sqrt(-2.0 * log(1.0 - hw_random_uniform(random)));
    return radius * cos(2.0 * 3.14159265358979323846 * hw_random_uniform(random));
}
