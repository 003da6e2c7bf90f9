/* The table of one processor path's kernels. */
#include "kernel.h"

#include "../attention_kernel.h"

#define TEXT2(path) #path
#define TEXT(path) TEXT2(path)

extern const hw_kernels HW_JOIN(hw_kernels, HW_PATH);

const hw_kernels HW_JOIN(hw_kernels, HW_PATH) = {
    .name = TEXT(HW_PATH),
    .vector_bits = HW_PART_BYTES * 8,
    .multiply = HW_KERNEL(multiply),
    .product = HW_KERNEL(product),
    .add = HW_KERNEL(add),
    .axpy = HW_KERNEL(axpy),
    .scale = HW_KERNEL(scale),
    .multiply_add = HW_KERNEL(multiply_add),
    .sum = HW_KERNEL(sum),
    .dot = HW_KERNEL(dot),
    .column_sum = HW_KERNEL(column_sum),
    .exp = HW_KERNEL(exp),
    .softmax = HW_KERNEL(softmax),
    .softmax_backward = HW_KERNEL(softmax_backward),
    .maxima = HW_KERNEL(maxima),
    .next_above = HW_KERNEL(next_above),
    .log_sum_exp = HW_KERNEL(log_sum_exp),
    .log_softmax = HW_KERNEL(log_softmax),
    .log_softmax_backward = HW_KERNEL(log_softmax_backward),
    .activation = HW_KERNEL(activation),
    .activation_backward = HW_KERNEL(activation_backward),
    .layer_norm = HW_KERNEL(layer_norm),
    .residual_layer_norm = HW_KERNEL(residual_layer_norm),
    .layer_norm_backward = HW_KERNEL(layer_norm_backward),
    .cross_entropy = HW_KERNEL(cross_entropy),
    .adam = HW_KERNEL(adam),
    .attention = &HW_JOIN(hw_attention_kernels, HW_PATH),
};
