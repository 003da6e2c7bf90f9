/* The tape: records the nodes of a step in order and walks them backwards.
 *
 * Two kinds of memory stand behind it. The step arena holds nodes, activations, gradients and scratch, and is reset
 * once a step. The tensor structs themselves lie in blocks that stay until the tape is freed, each stamped with the
 * step that made it, so that a tensor used after a reset is found out instead of read from freed memory. */
#include <stdlib.h>
#include <string.h>

#include "op.h"

#define TENSORS_A_BLOCK 256

typedef struct tensor_block {
    struct tensor_block *next;
    hw_tensor tensors[TENSORS_A_BLOCK];
} tensor_block;

struct hw_tape {
    hw_arena *arena;
    hw_mode mode;
    uint64_t generation;
    const char *scope;
    tensor_block *blocks, *block;
    int block_used;
    hw_node **nodes;
    int64_t count, capacity;
    bool walked;
    uint64_t dropout_seed;
    uint32_t dropout_step;
    hw_profile_entry *profile;
};

_Noreturn static void misuse(const hw_tape *t, const char *scope, const char *op, const char *reason)
{
    fprintf(stderr, "headwise: %s%s%s: %s\n", scope ? scope : "", scope ? ": " : "", op, reason);
    (void)t;
    abort();
}

hw_tape *hw_tape_new(void)
{
    hw_tape *t = calloc(1, sizeof *t);
    HW_CHECK(t, "no memory for a tape");
    t->arena = hw_arena_new(0);
    t->generation = 1;
    return t;
}

void hw_tape_free(hw_tape *t)
{
    if (!t) return;
    for (tensor_block *b = t->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    hw_arena_free(t->arena);
    free(t->nodes);
    free(t);
}

void hw_tape_reset(hw_tape *t, hw_mode mode)
{
    hw_arena_reset(t->arena);
    t->mode = mode;
    t->generation++;
    t->scope = NULL;
    t->block = t->blocks;
    t->block_used = 0;
    t->count = 0;
    t->walked = false;
}

hw_mode hw_tape_mode(const hw_tape *t) { return t->mode; }
hw_arena *hw_tape_arena(hw_tape *t) { return t->arena; }

const char *hw_tape_scope(hw_tape *t, const char *scope)
{
    const char *before = t->scope;
    t->scope = scope;
    return before;
}

void hw_tape_dropout_key(hw_tape *t, uint64_t seed, uint32_t step)
{
    t->dropout_seed = seed;
    t->dropout_step = step;
}

hw_dropout hw_tape_dropout(const hw_tape *t, double p, uint32_t site)
{
    return hw_dropout_new(t->mode == HW_TRAINING ? p : 0, t->dropout_seed, t->dropout_step, site);
}

static hw_tensor *tensor_struct(hw_tape *t)
{
    if (!t->block || t->block_used == TENSORS_A_BLOCK) {
        tensor_block *next = t->block ? t->block->next : t->blocks;
        if (!next) {
            next = calloc(1, sizeof *next);
            HW_CHECK(next, "no memory for the tape's tensors");
            if (t->block)
                t->block->next = next;
            else
                t->blocks = next;
        }
        t->block = next;
        t->block_used = 0;
    }
    hw_tensor *x = &t->block->tensors[t->block_used++];
    memset(x, 0, sizeof *x);
    x->tape = t;
    x->generation = t->generation;
    return x;
}

static hw_tensor *new_tensor(hw_tape *t, int rank, const int64_t *shape, bool with_data)
{
    HW_CHECK(rank >= 1 && rank <= HW_MAX_RANK, "a tensor has 1 to %d dimensions, not %d", HW_MAX_RANK, rank);
    hw_tensor *x = tensor_struct(t);
    x->rank = rank;
    for (int i = 0; i < rank; i++) {
        HW_CHECK(shape[i] >= 0, "dimension %d of a tensor is %lld", i, (long long)shape[i]);
        x->shape[i] = shape[i];
    }
    if (with_data) x->data = hw_arena_alloc(t->arena, (size_t)hw_tensor_size(x) * sizeof(hw_real));
    return x;
}

hw_tensor *hw_tape_tensor(hw_tape *t, int rank, const int64_t *shape, bool needs_grad)
{
    hw_tensor *x = new_tensor(t, rank, shape, true);
    x->needs_grad = needs_grad && t->mode != HW_INFERENCE;
    return x;
}

hw_tensor *hw_tape_matrix(hw_tape *t, int64_t rows, int64_t cols, const hw_real *data, bool needs_grad)
{
    hw_tensor *x = hw_tape_tensor(t, 2, (int64_t[]){rows, cols}, needs_grad);
    size_t bytes = (size_t)(rows * cols) * sizeof(hw_real);
    if (data)
        memcpy(x->data, data, bytes);
    else
        memset(x->data, 0, bytes);
    return x;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

hw_tensor *hw_node_output(hw_node *n, int rank, const int64_t *shape)
{
    HW_CHECK(n->outputs < HW_MAX_OUTPUTS, "%s has more than %d outputs", n->op->name, HW_MAX_OUTPUTS);
    return n->out[n->outputs++] = new_tensor(n->tape, rank, shape, false);
}

hw_tensor *hw_node_output_like(hw_node *n, const hw_tensor *x) { return hw_node_output(n, x->rank, x->shape); }

const char *hw_node_reason(hw_node *n, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hw_arena_string(n->tape->arena, "%s", text);
}

void *hw_node_scratch(hw_node *n, size_t numbers) { return hw_arena_alloc(n->tape->arena, numbers * sizeof(hw_real)); }

static void check_inputs(const hw_tape *t, const hw_node *n)
{
    if (t->walked)
        misuse(t, t->scope, n->op->name, "the tape went backward already; hw_tape_reset begins the next step");
    for (int i = 0; i < n->inputs; i++) {
        const hw_tensor *x = n->in[i];
        if (!x || !x->tape) continue;
        if (x->tape != t) misuse(t, t->scope, n->op->name, "an input was computed on another tape");
        if (x->generation != t->generation)
            misuse(t, t->scope, n->op->name, "an input is from before the last hw_tape_reset, its numbers are gone");
    }
}

static void remember(hw_tape *t, hw_node *n)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 256;
        t->nodes = realloc(t->nodes, (size_t)t->capacity * sizeof *t->nodes);
        HW_CHECK(t->nodes, "no memory for the tape's nodes");
    }
    t->nodes[t->count++] = n;
}

static int op_index(const hw_op *op)
{
    for (int i = 0; hw_ops[i]; i++)
        if (hw_ops[i] == op) return i;
    HW_CHECK(false, "op %s is not in the table of ops", op->name);
}

/* What an input gives at least: of a table from which rows are picked, as many as come out. */
static int64_t numbers_read(const hw_tensor *x, const hw_tensor *y)
{
    int64_t size = hw_tensor_size(x), most = hw_tensor_size(y);
    return hw_tensor_cols(x) == hw_tensor_cols(y) && size > most ? most : size;
}

static double node_bytes(const hw_node *n)
{
    int64_t numbers = 0;
    for (int i = 0; i < n->inputs; i++)
        if (n->in[i]) numbers += numbers_read(n->in[i], n->out[0]);
    for (int i = 0; i < n->outputs; i++) numbers += hw_tensor_size(n->out[i]);
    return (double)numbers * (double)sizeof(hw_real);
}

/* Runs one direction of the node, with the clock where somebody asked for it. */
static void run(hw_tape *t, hw_node *n, int direction)
{
    void (*function)(hw_node *) = direction ? n->op->backward : n->op->forward;
    if (!t->profile) {
        function(n);
        return;
    }
    double begin = hw_seconds();
    function(n);
    hw_profile_entry *e = &t->profile[op_index(n->op)];
    e->seconds[direction] += hw_seconds() - begin;
    e->calls[direction]++;
    e->flops[direction] += n->op->flops ? n->op->flops(n) * (direction ? 2 : 1) : 0;
    e->bytes[direction] += node_bytes(n) * (direction ? 2 : 1);
}

hw_node *hw_apply(hw_tape *t, const hw_op *op, int inputs, hw_tensor *const *in, const void *options, size_t size)
{
    hw_node *n = hw_arena_calloc(t->arena, 1, sizeof *n);
    n->op = op;
    n->tape = t;
    n->scope = t->scope;
    n->kernels = hw_kernels_get();
    n->inputs = inputs;
    memcpy(n->in, in, (size_t)inputs * sizeof *in);
    check_inputs(t, n);
    if (size) n->options = hw_arena_copy(t->arena, options, size);
    const char *reason = op->shape(n);
    if (reason) misuse(t, t->scope, op->name, reason);

    if (t->mode != HW_INFERENCE)
        for (int i = 0; i < inputs; i++) n->recorded |= in[i] && in[i]->needs_grad;
    for (int i = 0; i < n->outputs; i++) {
        hw_tensor *y = n->out[i];
        if (!y->data) y->data = hw_node_scratch(n, (size_t)hw_tensor_size(y));
        y->needs_grad = n->recorded;
        if (in[0]) y->first_row += in[0]->first_row;
    }
    run(t, n, 0);
    if (n->recorded) remember(t, n);
    return n;
}

/* ---- going back -------------------------------------------------------------------------------------------------- */

hw_real *hw_input_gradient_raw(hw_node *n, int i, bool *overwrite)
{
    hw_tensor *x = n->in[i];
    if (!x || !x->needs_grad) return NULL;
    *overwrite = !x->grad;
    if (!x->grad) x->grad = hw_node_scratch(n, (size_t)hw_tensor_size(x));
    return x->grad;
}

hw_real *hw_input_gradient(hw_node *n, int i)
{
    bool overwrite = false;
    hw_real *grad = hw_input_gradient_raw(n, i, &overwrite);
    if (grad && overwrite) memset(grad, 0, (size_t)hw_tensor_size(n->in[i]) * sizeof *grad);
    return grad;
}

static bool reached(const hw_node *n)
{
    for (int i = 0; i < n->outputs; i++)
        if (n->out[i]->grad) return true;
    return false;
}

void hw_backward(hw_tape *t, hw_tensor *loss, hw_real seed)
{
    if (t->walked) misuse(t, t->scope, "backward", "called twice in one step; hw_tape_reset begins the next");
    if (t->mode == HW_INFERENCE) misuse(t, t->scope, "backward", "the tape records nothing in HW_INFERENCE");
    if (loss->tape != t || loss->generation != t->generation)
        misuse(t, t->scope, "backward", "the loss does not come from this step of this tape");
    if (hw_tensor_size(loss) != 1) {
        char shape[96], reason[160];
        snprintf(reason, sizeof reason, "the loss has shape %s, one number was expected",
                 hw_tensor_shape_text(loss, shape));
        misuse(t, t->scope, "backward", reason);
    }
    t->walked = true;
    if (!loss->needs_grad) return; /* nothing on the way to it asks for a gradient */
    loss->grad = hw_arena_alloc(t->arena, sizeof(hw_real));
    loss->grad[0] = seed;
    for (int64_t i = t->count - 1; i >= 0; i--)
        if (reached(t->nodes[i])) run(t, t->nodes[i], 1);
}

/* ---- profile ----------------------------------------------------------------------------------------------------- */

void hw_tape_profile(hw_tape *t, hw_profile_entry *entries) { t->profile = entries; }

void hw_profile_add(hw_profile_entry *sum, const hw_profile_entry *entry)
{
    for (int d = 0; d < 2; d++) {
        sum->calls[d] += entry->calls[d];
        sum->seconds[d] += entry->seconds[d];
        sum->flops[d] += entry->flops[d];
        sum->bytes[d] += entry->bytes[d];
    }
}

int hw_op_count(void)
{
    int count = 0;
    while (hw_ops[count]) count++;
    return count;
}

const char *hw_op_name(int op)
{
    HW_CHECK(op >= 0 && op < hw_op_count(), "there is no op %d", op);
    return hw_ops[op]->name;
}

int64_t hw_segments_rows(const hw_segments *s)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < s->count; b++) rows += s->length[b];
    return rows;
}
