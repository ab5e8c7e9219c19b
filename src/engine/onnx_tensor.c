/* Element types and tensors. */
#include <math.h>
#include <string.h>

#include "core/half.h"
#include "engine/onnx.h"
#include "engine/ort_library.h"

static const struct {
    const char *name;
    size_t size;
} TYPES[] = {
    [ONNX_UNDEFINED] = {"undefined", 0}, [ONNX_FLOAT] = {"float", 4},
    [ONNX_UINT8] = {"uint8", 1},         [ONNX_INT8] = {"int8", 1},
    [ONNX_UINT16] = {"uint16", 2},       [ONNX_INT16] = {"int16", 2},
    [ONNX_INT32] = {"int32", 4},         [ONNX_INT64] = {"int64", 8},
    [ONNX_STRING] = {"string", 0},       [ONNX_BOOL] = {"bool", 1},
    [ONNX_FLOAT16] = {"float16", 2},     [ONNX_DOUBLE] = {"double", 8},
    [ONNX_UINT32] = {"uint32", 4},       [ONNX_UINT64] = {"uint64", 8},
    [ONNX_BFLOAT16] = {"bfloat16", 2},
};

size_t onnx_type_size(enum onnx_type type)
{
    return (size_t)type < COUNT_OF(TYPES) ? TYPES[type].size : 0;
}

const char *onnx_type_name(enum onnx_type type)
{
    const char *name = (size_t)type < COUNT_OF(TYPES) ? TYPES[type].name : NULL;
    return name ? name : "unknown";
}

void onnx_tensor_release(struct onnx_tensor *tensor)
{
    if (tensor->owner)
        ort_library()->api->release_value(tensor->owner);
    *tensor = (struct onnx_tensor){0};
}

struct onnx_tensor onnx_tensor_of(enum onnx_type type, void *data, size_t rank,
                                  const int64_t *shape)
{
    struct onnx_tensor tensor = {.type = type, .rank = rank, .count = 1, .data = data};
    for (size_t i = 0; i < rank; i++) {
        tensor.shape[i] = shape[i];
        tensor.count *= (size_t)shape[i];
    }
    return tensor;
}

/* The upper half of a float. */
static double of_bfloat16(uint16_t bits)
{
    uint32_t all = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &all, sizeof value);
    return (double)value;
}

double onnx_tensor_at(const struct onnx_tensor *tensor, size_t i)
{
    const void *data = tensor->data;
    switch (tensor->type) {
    case ONNX_FLOAT:
        return (double)((const float *)data)[i];
    case ONNX_DOUBLE:
        return ((const double *)data)[i];
    case ONNX_FLOAT16:
        return (double)half_to_float(((const uint16_t *)data)[i]);
    case ONNX_BFLOAT16:
        return of_bfloat16(((const uint16_t *)data)[i]);
    case ONNX_UINT8:
    case ONNX_BOOL:
        return ((const uint8_t *)data)[i];
    case ONNX_INT8:
        return ((const int8_t *)data)[i];
    case ONNX_UINT16:
        return ((const uint16_t *)data)[i];
    case ONNX_INT16:
        return ((const int16_t *)data)[i];
    case ONNX_INT32:
        return ((const int32_t *)data)[i];
    case ONNX_UINT32:
        return ((const uint32_t *)data)[i];
    case ONNX_INT64:
        return (double)((const int64_t *)data)[i];
    case ONNX_UINT64:
        return (double)((const uint64_t *)data)[i];
    default:
        return NAN;
    }
}
