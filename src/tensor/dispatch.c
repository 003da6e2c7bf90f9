/* Which implementation of the kernels runs. Each path (src/tensor/kernels, compiled once a path) is one row of a
 * table, from the plainest; the last one that the processor runs is taken, unless HEADWISE_CPU names another. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/tensor.h>

extern const hw_kernels hw_kernels_generic;

static bool any_processor(void)
{
    return true;
}

#ifdef __x86_64__
extern const hw_kernels hw_kernels_avx2, hw_kernels_avx512;

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const struct {
    const hw_kernels *kernels;
    bool (*runs)(void);
} paths[] = {
    {&hw_kernels_generic, any_processor},
#ifdef __x86_64__
    {&hw_kernels_avx2, has_avx2},
    {&hw_kernels_avx512, has_avx512},
#endif
};
enum { PATHS = sizeof paths / sizeof *paths };

static _Atomic(const hw_kernels *) current;

const hw_kernels *hw_kernels_at(int i)
{
    for (int p = 0; p < PATHS; p++)
        if (paths[p].runs() && i-- == 0) return paths[p].kernels;
    return NULL;
}

const hw_kernels *hw_kernels_get(void)
{
    const hw_kernels *chosen = atomic_load_explicit(&current, memory_order_acquire);
    if (chosen) return chosen;
    const char *name = getenv("HEADWISE_CPU");
    for (int i = 0; hw_kernels_at(i); i++)
        if (!name || !*name || !strcmp(name, hw_kernels_at(i)->name)) chosen = hw_kernels_at(i);
    HW_CHECK(chosen, "HEADWISE_CPU=%s: this processor runs no such path; there are avx512, avx2 and generic", name);
    hw_kernels_set(chosen);
    return chosen;
}

void hw_kernels_set(const hw_kernels *kernels)
{
    atomic_store_explicit(&current, kernels, memory_order_release);
}
