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

static const hw_kernels *choose(const char *name)
{
    const hw_kernels *chosen = NULL;
    for (int i = 0; hw_kernels_at(i); i++)
        if (!name || !*name || !strcmp(name, hw_kernels_at(i)->name)) chosen = hw_kernels_at(i);
    return chosen;
}

const hw_kernels *hw_kernels_get(void)
{
    const hw_kernels *chosen = atomic_load_explicit(&current, memory_order_acquire);
    if (chosen) return chosen;
    hw_error err;
    HW_CHECK(hw_kernels_check(&err), "%s", err.message);
    hw_kernels_set(chosen = choose(getenv("HEADWISE_CPU")));
    return chosen;
}

bool hw_kernels_check(hw_error *err)
{
    const char *name = getenv("HEADWISE_CPU");
    if (choose(name)) return true;
    char known[64] = "";
    for (int i = 0; hw_kernels_at(i); i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", hw_kernels_at(i)->name);
    return hw_fail(err, "the environment has HEADWISE_CPU=%s, which this processor does not run; it runs %s", name,
                   known);
}

void hw_kernels_set(const hw_kernels *kernels)
{
    atomic_store_explicit(&current, kernels, memory_order_release);
}
