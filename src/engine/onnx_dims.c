#include "engine/onnx_dims.h"

#include <stdbool.h>

#include "core/text.h"

enum onnx_meaning onnx_meaning_of(const char *name)
{
    static const char *const SEQUENCES[] = {"sequence", "sequence_length", "seq_len", "seq_length",
                                            "seq",      "seqlen",          "tokens"};
    for (size_t i = 0; i < COUNT_OF(SEQUENCES); i++)
        if (str_equal_nocase(name, SEQUENCES[i]))
            return ONNX_MEANS_TOKENS;
    if (str_contains_nocase(name, "batch") || str_equal_nocase(name, "n"))
        return ONNX_MEANS_BATCH;
    if (str_contains_nocase(name, "height") || str_equal_nocase(name, "h"))
        return ONNX_MEANS_HEIGHT;
    if (str_contains_nocase(name, "width") || str_equal_nocase(name, "w"))
        return ONNX_MEANS_WIDTH;
    return str_contains_nocase(name, "image_size") ? ONNX_MEANS_SIDE : ONNX_MEANS_NOTHING;
}

static bool is_channels(int64_t size)
{
    return size == 1 || size == 3 || size == 4;
}

enum onnx_meaning onnx_meaning_at(const int64_t *dims, size_t rank, size_t axis, int batch_axis)
{
    if ((int)axis == batch_axis && rank > 1)
        return ONNX_MEANS_BATCH;
    if (rank != 4 || (!is_channels(dims[1]) && !is_channels(dims[3])))
        return ONNX_MEANS_NOTHING;
    size_t height = is_channels(dims[1]) ? 2 : 1;
    if (axis == height)
        return ONNX_MEANS_HEIGHT;
    return axis == height + 1 ? ONNX_MEANS_WIDTH : ONNX_MEANS_NOTHING;
}
