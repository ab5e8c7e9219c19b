/* Tensors of an ONNX file: their shape, and where their numbers are.  Nothing is copied. */
#ifndef IPW_GRAPH_ONNX_TENSOR_H
#define IPW_GRAPH_ONNX_TENSOR_H

#include <stddef.h>

#include "graph/onnx/file.h"

/* NULL, or what is wrong with it. */
const char *tensor_read(struct slice body, struct onnx_tensor *out) MUST_USE;
/* A sparse one: the shape is what it stands for. */
const char *tensor_read_sparse(struct slice body, struct onnx_tensor *out) MUST_USE;

/* Its first `count` numbers, which it must have; false when they are not in the file or of a type that is
 * no number. */
bool tensor_numbers(const struct onnx_tensor *tensor, double *out, size_t count);

/* NULL, or what is wrong: none negative, not too many, not more elements than can be counted. */
const char *shape_check(size_t rank, const int64_t *dims, int64_t *elements) MUST_USE;

#endif
