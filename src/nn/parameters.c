/* Parameters: declared one by one, laid out together.
 *
 * Values are one block of numbers, gradients another of the same layout, so that the optimizer, the sum over shards and
 * the norm are each one pass. A parameter begins at a multiple of 16 numbers unless it is fused with the one before it;
 * the gaps are zero and stay zero. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <headwise/nn.h>

enum { ALIGNMENT = 16 };

typedef struct fused {
    hw_tensor tensor;
    int first, count;
} fused;

typedef struct packing {
    hw_tensor *weight;
    hw_packed packed;
} packing;

struct hw_parameters {
    hw_arena *arena;
    hw_parameter **items;
    fused **fusions;
    packing **packings;
    int count, capacity, fusion_count, fusion_capacity, packing_count, packing_capacity;
    int64_t *offsets; /* of each parameter in the blocks */
    int64_t numbers;
    hw_real *values, *gradients;
    void *owned_values, *owned_gradients, *owned_panels;
    int64_t version; /* how often they were packed */
    bool settled;    /* packed weights are gone */
};

static void *grow(void *list, int count, int *capacity)
{
    if (count < *capacity) return list;
    *capacity = *capacity ? 2 * *capacity : 64;
    list = realloc(list, (size_t)*capacity * sizeof(void *));
    HW_CHECK(list, "no memory for the list of parameters");
    return list;
}

hw_parameters *hw_parameters_new(void)
{
    hw_parameters *p = calloc(1, sizeof *p);
    HW_CHECK(p, "no memory for parameters");
    p->arena = hw_arena_new(0);
    return p;
}

void hw_parameters_free(hw_parameters *p)
{
    if (!p) return;
    free(p->owned_values);
    free(p->owned_gradients);
    free(p->owned_panels);
    free(p->items);
    free(p->fusions);
    free(p->packings);
    hw_arena_free(p->arena);
    free(p);
}

hw_tensor *hw_parameters_add(hw_parameters *p, hw_initial initial, int rank, const int64_t *shape, const char *name,
                             ...)
{
    char text[256];
    va_list args;
    va_start(args, name);
    vsnprintf(text, sizeof text, name, args);
    va_end(args);
    hw_parameter *item = hw_arena_calloc(p->arena, 1, sizeof *item);
    item->name = hw_arena_string(p->arena, "%s", text);
    item->initial = initial;
    item->gain = 1;
    item->tensor.rank = rank;
    memcpy(item->tensor.shape, shape, (size_t)rank * sizeof *shape);
    p->items = grow(p->items, p->count, &p->capacity);
    p->items[p->count++] = item;
    return &item->tensor;
}

static int index_of(const hw_parameters *p, const hw_tensor *tensor)
{
    for (int i = 0; i < p->count; i++)
        if (&p->items[i]->tensor == tensor) return i;
    HW_CHECK(false, "a tensor that is no parameter of this set");
}

void hw_parameters_gain(hw_parameters *p, const hw_tensor *x, double gain) { p->items[index_of(p, x)]->gain = gain; }

hw_tensor *hw_parameters_fuse(hw_parameters *p, const hw_tensor *first, int count)
{
    fused *f = hw_arena_calloc(p->arena, 1, sizeof *f);
    f->first = index_of(p, first);
    f->count = count;
    HW_CHECK(f->first + count <= p->count, "fusing %d parameters, %d are declared from there", count,
             p->count - f->first);
    f->tensor = *first;
    f->tensor.shape[0] = 0;
    for (int i = 0; i < count; i++) {
        const hw_tensor *part = &p->items[f->first + i]->tensor;
        HW_CHECK(part->rank == first->rank && (part->rank < 2 || part->shape[1] == first->shape[1]),
                 "fusing %s with rows of another width", p->items[f->first + i]->name);
        f->tensor.shape[0] += part->shape[0];
    }
    p->fusions = grow(p->fusions, p->fusion_count, &p->fusion_capacity);
    p->fusions[p->fusion_count++] = f;
    return &f->tensor;
}

void hw_parameters_packed(hw_parameters *p, hw_tensor *weight)
{
    for (int i = 0; i < p->packing_count; i++)
        if (p->packings[i]->weight == weight) return; /* tied embeddings are marked once */
    packing *k = hw_arena_calloc(p->arena, 1, sizeof *k);
    k->weight = weight;
    k->packed = (hw_packed){weight->shape[0], weight->shape[1], NULL};
    p->packings = grow(p->packings, p->packing_count, &p->packing_capacity);
    p->packings[p->packing_count++] = k;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

static bool follows_directly(const hw_parameters *p, int i)
{
    for (int f = 0; f < p->fusion_count; f++)
        if (i > p->fusions[f]->first && i < p->fusions[f]->first + p->fusions[f]->count) return true;
    return false;
}

static void place(hw_parameters *p)
{
    p->offsets = hw_arena_calloc(p->arena, (size_t)p->count + 1, sizeof *p->offsets);
    int64_t at = 0;
    for (int i = 0; i < p->count; i++) {
        if (!follows_directly(p, i)) at = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        p->offsets[i] = at;
        at += hw_tensor_size(&p->items[i]->tensor);
    }
    p->numbers = (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static hw_real *block(int64_t numbers, void **owned)
{
    *owned = hw_memory_new((size_t)numbers * sizeof(hw_real));
    HW_CHECK(*owned, "no memory for %lld numbers", (long long)numbers);
    return *owned;
}

static hw_real *zeroed_block(int64_t numbers, void **owned)
{
    return memset(block(numbers, owned), 0, (size_t)numbers * sizeof(hw_real));
}

static void share_panels(hw_parameters *p, const hw_parameters *shared)
{
    if (shared) HW_CHECK(shared->packing_count == p->packing_count, "a set of parameters that is not equal");
    int64_t numbers = 0;
    for (int i = 0; i < p->packing_count; i++)
        numbers += hw_packed_size(p->packings[i]->packed.outputs, p->packings[i]->packed.inputs);
    hw_real *panels = shared ? NULL : block(numbers, &p->owned_panels);
    for (int i = 0; i < p->packing_count; i++) {
        packing *k = p->packings[i];
        k->packed.panels = shared ? shared->packings[i]->packed.panels : panels;
        k->weight->packed = &k->packed;
        if (!shared) panels += hw_packed_size(k->packed.outputs, k->packed.inputs);
    }
}

void hw_parameters_layout(hw_parameters *p, const hw_parameters *shared, bool gradients)
{
    place(p);
    if (shared) HW_CHECK(shared->numbers == p->numbers, "a set of parameters that is not equal");
    p->values = shared ? shared->values : zeroed_block(p->numbers, &p->owned_values);
    if (gradients) p->gradients = zeroed_block(p->numbers, &p->owned_gradients);
    for (int i = 0; i < p->count; i++) {
        hw_tensor *x = &p->items[i]->tensor;
        x->data = p->values + p->offsets[i];
        x->grad = gradients ? p->gradients + p->offsets[i] : NULL;
        x->needs_grad = gradients;
    }
    for (int i = 0; i < p->fusion_count; i++) {
        fused *f = p->fusions[i];
        const hw_tensor *first = &p->items[f->first]->tensor;
        f->tensor.data = first->data;
        f->tensor.grad = first->grad;
        f->tensor.needs_grad = gradients;
    }
    share_panels(p, shared);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint64_t name_hash(const char *name) /* FNV-1a */
{
    uint64_t hash = 14695981039346656037u;
    for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 1099511628211u;
    return hash;
}

void hw_parameters_draw(hw_parameters *p, uint64_t seed)
{
    for (int i = 0; i < p->count; i++) {
        hw_parameter *item = p->items[i];
        hw_tensor *x = &item->tensor;
        hw_random random = hw_random_new(seed, name_hash(item->name));
        int64_t size = hw_tensor_size(x);
        double bound = x->rank == 2 ? item->gain * sqrt(6.0 / (double)(x->shape[0] + x->shape[1])) : 0;
        double deviation = item->gain / sqrt((double)hw_tensor_cols(x));
        for (int64_t j = 0; j < size; j++) switch (item->initial) {
            case HW_INITIAL_ZERO:
                x->data[j] = 0;
                break;
            case HW_INITIAL_ONE:
                x->data[j] = 1;
                break;
            case HW_INITIAL_XAVIER:
                x->data[j] = (hw_real)(bound * (2 * hw_random_uniform(&random) - 1));
                break;
            case HW_INITIAL_EMBEDDING:
                x->data[j] = (hw_real)(deviation * hw_random_normal(&random));
                break;
            }
    }
}

void hw_parameters_initialise(hw_parameters *p, uint64_t seed)
{
    hw_parameters_draw(p, seed);
    hw_parameters_pack(p);
}

static void pack_one(int i, void *argument)
{
    const packing *k = ((hw_parameters *)argument)->packings[i];
    hw_packed packed = k->packed;
    hw_pack(&packed, k->weight->data, k->weight->shape[1], false);
}

void hw_parameters_pack(hw_parameters *p)
{
    HW_CHECK(!p->settled, "settled weights cannot be packed anew");
    hw_parallel(p->packing_count, pack_one, p);
    p->version++;
}

static void settle_one(int i, void *argument)
{
    const hw_tensor *weight = ((const hw_parameters *)argument)->packings[i]->weight;
    pack_one(i, argument);
    hw_memory_forget(weight->data, (size_t)hw_tensor_size(weight) * sizeof *weight->data);
}

/* Whoever reads the weight from now on crashes, rather than reading zeros. */
static void lose_values(hw_parameters *p, hw_tensor *weight)
{
    const hw_real *first = weight->data, *end = first + hw_tensor_size(weight);
    for (int i = 0; i < p->count; i++) {
        hw_tensor *x = &p->items[i]->tensor;
        if (x->data >= first && x->data < end) x->data = NULL;
    }
    weight->data = NULL;
}

void hw_parameters_settle(hw_parameters *p)
{
    HW_CHECK(p->owned_values && p->owned_panels && !p->gradients, "only parameters of one's own that are not trained");
    hw_parallel(p->packing_count, settle_one, p);
    for (int i = 0; i < p->packing_count; i++) lose_values(p, p->packings[i]->weight);
    p->version++;
    p->settled = true;
}

int64_t hw_parameters_version(const hw_parameters *p) { return p->version; }

/* ---- access ------------------------------------------------------------------------------------------------------ */

int hw_parameters_count(const hw_parameters *p) { return p->count; }
hw_parameter *hw_parameters_at(const hw_parameters *p, int i) { return i >= 0 && i < p->count ? p->items[i] : NULL; }

hw_parameter *hw_parameters_find(const hw_parameters *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (!strcmp(p->items[i]->name, name)) return p->items[i];
    return NULL;
}

int64_t hw_parameters_total(const hw_parameters *p)
{
    int64_t total = 0;
    for (int i = 0; i < p->count; i++) total += hw_tensor_size(&p->items[i]->tensor);
    return total;
}

int64_t hw_parameters_numbers(const hw_parameters *p) { return p->numbers; }
hw_real *hw_parameters_values(const hw_parameters *p) { return p->values; }
hw_real *hw_parameters_gradients(const hw_parameters *p) { return p->gradients; }
