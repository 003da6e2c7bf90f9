/* The tensor struct's helpers and the dropout site. Memory comes from arenas; a tensor is never freed by itself. */
#include <string.h>

#include <headwise/tensor.h>

int64_t hw_tensor_size(const hw_tensor *x)
{
    int64_t size = 1;
    for (int i = 0; i < x->rank; i++) size *= x->shape[i];
    return size;
}

int64_t hw_tensor_cols(const hw_tensor *x)
{
    return x->rank > 0 ? x->shape[x->rank - 1] : 1;
}

int64_t hw_tensor_rows(const hw_tensor *x)
{
    int64_t rows = 1;
    for (int i = 0; i < x->rank - 1; i++) rows *= x->shape[i];
    return rows;
}

hw_tensor *hw_tensor_new(hw_arena *arena, int rank, const int64_t *shape)
{
    HW_CHECK(rank >= 0 && rank <= HW_MAX_RANK, "a tensor has 0 to %d dimensions, not %d", HW_MAX_RANK, rank);
    hw_tensor *x = hw_arena_calloc(arena, 1, sizeof *x);
    x->rank = rank;
    for (int i = 0; i < rank; i++) {
        HW_CHECK(shape[i] >= 0, "dimension %d of a tensor is %lld", i, (long long)shape[i]);
        x->shape[i] = shape[i];
    }
    x->data = hw_arena_alloc(arena, (size_t)hw_tensor_size(x) * sizeof *x->data);
    return x;
}

bool hw_tensor_same_shape(const hw_tensor *a, const hw_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
}

const char *hw_tensor_shape_text(const hw_tensor *x, char text[96])
{
    int length = snprintf(text, 96, "[");
    for (int i = 0; i < x->rank; i++)
        length += snprintf(text + length, (size_t)(96 - length), i ? ", %lld" : "%lld", (long long)x->shape[i]);
    snprintf(text + length, (size_t)(96 - length), "]");
    return text;
}

hw_dropout hw_dropout_new(double p, uint64_t seed, uint32_t step, uint32_t site)
{
    HW_CHECK(p >= 0 && p < 1, "a dropout probability lies in [0, 1), not at %g", p);
    uint32_t threshold = (uint32_t)(p * 65536 + 0.5);
    if (threshold > 65535) threshold = 65535;
    return (hw_dropout){threshold, (hw_real)(65536.0 / (65536 - threshold)), seed, step, site};
}
