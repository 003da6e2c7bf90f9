/* What an op is, for the files of this folder: its block of shape, forward and backward, and the node that one use of
 * it leaves on the tape. An op file states its formulas above three static functions and ends with the op's line;
 * src/autograd/ops.c lists them all. */
#ifndef HW_AUTOGRAD_OP_H
#define HW_AUTOGRAD_OP_H

#include <headwise/autograd.h>

#define HW_MAX_INPUTS 8
#define HW_MAX_OUTPUTS 2

typedef struct hw_node hw_node;

typedef struct hw_op {
    const char *name;
    /* Checks the inputs and sets the shapes of the outputs (hw_node_output); NULL, or why the inputs do not fit. */
    const char *(*shape)(hw_node *n);
    void (*forward)(hw_node *n);
    /* Adds to the gradients of the inputs, read from those of the outputs. */
    void (*backward)(hw_node *n);
    /* Floating-point operations of the multiplications of one forward pass (a backward pass has twice as many); NULL:
     * none. */
    double (*flops)(const hw_node *n);
} hw_op;

struct hw_node {
    const hw_op *op;
    const char *scope;
    hw_tape *tape;
    const hw_kernels *kernels;
    int inputs, outputs;
    hw_tensor *in[HW_MAX_INPUTS];
    hw_tensor *out[HW_MAX_OUTPUTS];
    const void *options; /* the op's own arguments, in the tape's arena */
    void *saved;         /* what forward keeps for backward, in the tape's arena */
    bool recorded;       /* will backward be called? */
};

extern const hw_op hw_op_add, hw_op_scale, hw_op_multiply, hw_op_activate, hw_op_dropout, hw_op_reshape, hw_op_slice,
    hw_op_concatenate, hw_op_gather, hw_op_sum, hw_op_row_dot, hw_op_row_norm, hw_op_matmul, hw_op_linear,
    hw_op_embedding, hw_op_softmax, hw_op_log_softmax, hw_op_layer_norm, hw_op_residual, hw_op_residual_layer_norm,
    hw_op_attention, hw_op_gate, hw_op_head_cosine, hw_op_head_overlap, hw_op_head_orthogonal, hw_op_head_entropy,
    hw_op_head_targets, hw_op_hard_concrete, hw_op_hard_concrete_open, hw_op_cross_entropy;
extern const hw_op *const hw_ops[];

/* Checks, computes and records one use of op; returns its first output. NULL inputs are left out of what flows back.
 * options (size bytes, or NULL) are copied into the arena. */
hw_node *hw_apply(hw_tape *t, const hw_op *op, int inputs, hw_tensor *const *in, const void *options, size_t size);

/* For shape functions: gives the node one more output of this shape, whose data forward fills. */
hw_tensor *hw_node_output(hw_node *n, int rank, const int64_t *shape);
/* The same, of the shape of an input. */
hw_tensor *hw_node_output_like(hw_node *n, const hw_tensor *x);
/* For shape functions: the reason, formatted; lives in the arena. */
const char *hw_node_reason(hw_node *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For backward functions: the gradient of an input, ready to be added to (zeros at first), or NULL where none flows. */
hw_real *hw_input_gradient(hw_node *n, int i);
/* The same, for kernels that can overwrite: *overwrite tells that nothing was there yet, and what is there is not
 * zeroed. */
hw_real *hw_input_gradient_raw(hw_node *n, int i, bool *overwrite);

void *hw_node_scratch(hw_node *n, size_t numbers); /* hw_real numbers in the arena, not initialised */

/* The layout of w that the packed multiplication reads: its own, or one made for this node. */
const hw_packed *hw_weight_packed(hw_node *n, const hw_tensor *w);

#endif
