/* The supported operators, one row each (operators.def), and the shape rules and foldings that their rows refer to.
 * The table is constant; rules and foldings work on the caller's step. */
#ifndef IPW_GRAPH_ONNX_OPERATORS_H
#define IPW_GRAPH_ONNX_OPERATORS_H

#include "graph/onnx/infer.h"

/* A shape rule reads the inputs and attributes and sets the outputs.  Without enough information it sets nothing; it
 * fails for contradictory inputs. */
typedef enum err rule_function(struct step *step) MUST_USE;
/* A folding computes the elements of one output, step->folded; false: it cannot. */
typedef bool fold_function(struct step *step, double *out, int64_t count);

struct onnx_operator {
    const char *name;
    rule_function *rule;
    uint8_t shapes; /* the rule requires this many leading inputs with known shapes */
    enum graph_op op;
    const char *order;     /* the inputs of its node without scales and the like, a digit each */
    int32_t dtype;         /* of its result, unless a rule sets it; 0: that of the first input */
    uint8_t like;          /* the same: that of this input, if it is known; 0: none */
    fold_function *fold;   /* NULL: none */
    uint16_t shape_inputs; /* bit masks of inputs: those that determine shapes, ... */
    uint16_t buffers;      /* ... those that belong to the model and are not trained, ... */
    uint16_t quantized;    /* ... and those that are weights even as integers */
};

const struct onnx_operator *operator_find(struct slice domain, struct slice op); /* NULL: unknown */

/* rules_elementwise.c: elementwise operations, norms, reductions */
rule_function rule_same, rule_broadcast, rule_cast, rule_dropout, rule_batch_norm, rule_layer_norm,
    rule_skip_norm, rule_dynamic_quantize, rule_reduce, rule_arg_reduce, rule_det;

/* rules_window.c: convolution and pooling */
rule_function rule_conv, rule_conv_transpose, rule_pool, rule_global_pool, rule_max_unpool,
    rule_roi_align, rule_max_roi_pool, rule_grid_sample;

/* rules_product.c: matrix products, attention, recurrence */
rule_function rule_matmul, rule_fused_matmul, rule_matmul_bits, rule_gemm, rule_einsum,
    rule_recurrent, rule_attention, rule_packed_attention, rule_multi_head_attention,
    rule_group_attention;

/* rules_view.c: another shape of the same elements, tensors made from a shape */
rule_function rule_reshape, rule_flatten, rule_squeeze, rule_unsqueeze, rule_transpose,
    rule_constant, rule_shape, rule_size, rule_constant_of_shape, rule_range, rule_random,
    rule_expand, rule_tile, rule_depth_to_space, rule_space_to_depth;

/* rules_move.c: concatenation, parts, resizing, selection by data */
rule_function rule_concat, rule_qlinear_concat, rule_split, rule_split_to_sequence, rule_slice,
    rule_gather, rule_gather_elements, rule_gather_nd, rule_pad, rule_resize, rule_center_crop_pad,
    rule_one_hot, rule_top_k, rule_non_max_suppression, rule_non_zero, rule_compress, rule_unique,
    rule_multinomial;

/* fold.c */
fold_function fold_shape, fold_size, fold_constant, fold_copy, fold_fill, fold_gather, fold_concat,
    fold_slice, fold_transpose, fold_split, fold_expand, fold_range, fold_where, fold_reduce,
    fold_math;

#endif
