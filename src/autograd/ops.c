/* The table of ops: every operation that can stand on a tape. The gradient test has a case for each line. */
#include "op.h"

const hw_op *const hw_ops[] = {
    &hw_op_add,         &hw_op_scale,      &hw_op_multiply, &hw_op_activate,    &hw_op_dropout,
    &hw_op_reshape,     &hw_op_slice,      &hw_op_concatenate, &hw_op_gather,   &hw_op_sum,
    &hw_op_row_dot,     &hw_op_row_norm,   &hw_op_matmul,   &hw_op_linear,      &hw_op_embedding,
    &hw_op_softmax,     &hw_op_log_softmax, &hw_op_layer_norm, &hw_op_residual, &hw_op_residual_layer_norm,
    &hw_op_attention,   &hw_op_gate,       &hw_op_head_cosine, &hw_op_head_overlap, &hw_op_head_orthogonal,
    &hw_op_head_entropy, &hw_op_head_targets, &hw_op_hard_concrete, &hw_op_hard_concrete_open, &hw_op_cross_entropy,
    NULL,
};
