/* What the free dimensions of ONNX models mean. */
#ifndef IPW_ENGINE_ONNX_DIMS_H
#define IPW_ENGINE_ONNX_DIMS_H

#include <stddef.h>
#include <stdint.h>

enum onnx_meaning {
    ONNX_MEANS_NOTHING,
    ONNX_MEANS_BATCH,
    ONNX_MEANS_TOKENS,
    ONNX_MEANS_HEIGHT,
    ONNX_MEANS_WIDTH,
    ONNX_MEANS_SIDE,
};
/* By the names that exporters use. */
enum onnx_meaning onnx_meaning_of(const char *name);
/* By position, without a name: the batch comes first (batch_axis; -1: none), and a tensor with 1, 3 or 4 channels is an
 * image.  Free dimensions are negative. */
enum onnx_meaning onnx_meaning_at(const int64_t *dims, size_t rank, size_t axis, int batch_axis);

#endif
