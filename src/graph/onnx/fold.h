/* Small tensors that are computed while reading: exporters write a reshape as a chain of Shape, Gather,
 * Concat and the like, which says nothing until it is followed.  A folding gives the output's numbers into
 * `out`, which has room for all of them; false: it cannot.  Plain functions over the caller's step. */
#ifndef IPW_GRAPH_ONNX_FOLD_H
#define IPW_GRAPH_ONNX_FOLD_H

#include "graph/onnx/work.h"

/* The index is that of the output, whose shape is known. */
typedef bool fold_function(struct step *step, size_t index, double *out, int64_t count);

fold_function fold_none, fold_shape, fold_size, fold_constant, fold_copy, fold_fill, fold_gather,
    fold_concat, fold_slice, fold_transpose, fold_split, fold_expand, fold_range, fold_where,
    fold_reduce, fold_math;

#endif
