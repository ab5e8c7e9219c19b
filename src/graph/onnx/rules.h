/* The shapes that operators give, one rule for each way: a rule reads the step's inputs and settings and
 * calls step_give.  Where the inputs do not say enough it gives nothing; where they contradict each other
 * it fails.  Plain functions over the caller's step. */
#ifndef IPW_GRAPH_ONNX_RULES_H
#define IPW_GRAPH_ONNX_RULES_H

#include "graph/onnx/work.h"

typedef enum err rule_function(struct step *step) MUST_USE;

/* rules_same.c: number by number */
rule_function rule_same, rule_test, rule_broadcast, rule_qlinear_binary, rule_compare, rule_where,
    rule_cast, rule_cast_like, rule_dropout, rule_batch_norm, rule_layer_norm, rule_skip_norm,
    rule_quantize, rule_dequantize, rule_dynamic_quantize, rule_eye_like, rule_reduce, rule_arg,
    rule_det;

/* rules_window.c: windows over space */
rule_function rule_conv, rule_conv_transpose, rule_deform_conv, rule_qlinear_conv, rule_pool,
    rule_global_pool, rule_max_unpool, rule_roi_align, rule_max_roi_pool, rule_grid_sample;

/* rules_product.c: products of matrices, recurrence */
rule_function rule_matmul, rule_matmul_integer, rule_qlinear_matmul, rule_fused_matmul,
    rule_dynamic_matmul, rule_matmul_bits, rule_gemm, rule_qgemm, rule_einsum, rule_recurrent;

/* rules_attention.c */
rule_function rule_attention, rule_packed_attention, rule_multi_head_attention,
    rule_group_attention;

/* rules_view.c: other shapes of the same numbers */
rule_function rule_reshape, rule_flatten, rule_squeeze, rule_unsqueeze, rule_transpose,
    rule_constant, rule_shape, rule_size, rule_constant_of_shape, rule_range, rule_random,
    rule_expand, rule_tile, rule_depth_to_space, rule_space_to_depth;

/* rules_move.c: parts and whole */
rule_function rule_concat, rule_qlinear_concat, rule_split, rule_split_to_sequence, rule_slice,
    rule_gather, rule_gather_elements, rule_gather_nd, rule_pad, rule_resize, rule_center_crop_pad,
    rule_one_hot, rule_top_k, rule_non_max_suppression, rule_non_zero, rule_compress, rule_unique,
    rule_multinomial;

#endif
