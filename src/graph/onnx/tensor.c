#include "graph/onnx/tensor.h"

#include <string.h>

enum { /* fields of a TensorProto */
       FIELD_DIMS = 1,
       FIELD_TYPE = 2,
       FIELD_FLOATS = 4,
       FIELD_INT32S = 5,
       FIELD_INT64S = 7,
       FIELD_NAME = 8,
       FIELD_RAW = 9,
       FIELD_DOUBLES = 10,
       FIELD_UINT64S = 11,
       FIELD_OUTSIDE = 13,
       FIELD_PLACE = 14,
};

/* Exactly held by a double, and by the bytes of any type. */
#define MOST_ELEMENTS (INT64_C(1) << 50)

const char *shape_check(size_t rank, const int64_t *dims, int64_t *elements)
{
    if (rank > GRAPH_MOST_DIMENSIONS)
        return "has more dimensions than are read (8)";
    *elements = 1;
    int64_t counted = 1;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return "has a negative dimension";
        if (dims[i] > MOST_ELEMENTS || (dims[i] > 0 && counted > MOST_ELEMENTS / dims[i]))
            return "is larger than can be counted";
        counted *= dims[i] ? dims[i] : 1;
        *elements *= dims[i];
    }
    return NULL;
}

/* ---- reading one ---- */

static const char *add_dim(struct onnx_tensor *tensor, uint64_t value)
{
    if (tensor->rank == GRAPH_MOST_DIMENSIONS)
        return "has more dimensions than are read (8)";
    tensor->dims[tensor->rank++] = (int64_t)value;
    return NULL;
}

static const char *add_dims(struct onnx_tensor *tensor, const struct wire_field *field)
{
    const char *wrong = NULL;
    struct slice rest = field->bytes;
    uint64_t value;
    if (field->type == WIRE_NUMBER)
        return add_dim(tensor, field->value);
    while (!wrong && wire_packed(&rest, &value))
        wrong = add_dim(tensor, value);
    return wrong;
}

/* key = 1, value = 2; the one whose key is "location" names a file. */
static void read_outside(struct slice entry, struct onnx_tensor *tensor)
{
    struct wire wire = wire_of(entry);
    struct wire_field field;
    bool is_location = false;
    while (wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == WIRE_BYTES)
            is_location = slice_is(field.bytes, "location");
        else if (field.number == 2 && field.type == WIRE_BYTES && is_location)
            tensor->outside = field.bytes;
    }
}

static const char *read_field(const struct wire_field *field, struct onnx_tensor *out)
{
    bool is_bytes = field->type == WIRE_BYTES;
    switch (field->number) {
    case FIELD_DIMS:
        return add_dims(out, field);
    case FIELD_TYPE:
        out->type = (int32_t)field->value;
        break;
    case FIELD_NAME:
        out->name = is_bytes ? field->bytes : out->name;
        break;
    case FIELD_RAW:
        out->raw = is_bytes ? field->bytes : out->raw;
        break;
    case FIELD_OUTSIDE:
        if (is_bytes)
            read_outside(field->bytes, out);
        break;
    default:
        break;
    }
    return NULL;
}

const char *tensor_read(struct slice body, struct onnx_tensor *out)
{
    struct wire wire = wire_of(body);
    struct wire_field field;
    const char *wrong = NULL;
    *out = (struct onnx_tensor){.body = body, .name = {"", 0}};
    while (!wrong && wire_next(&wire, &field))
        wrong = read_field(&field, out);
    if (!wrong && wire.is_damaged)
        wrong = "is cut short or damaged";
    return wrong ? wrong : shape_check(out->rank, out->dims, &out->elements);
}

const char *tensor_read_sparse(struct slice body, struct onnx_tensor *out)
{
    enum { VALUES = 1, DIMS = 3 };
    struct wire wire = wire_of(body);
    struct wire_field field;
    struct onnx_tensor values = {.name = {"", 0}};
    const char *wrong = NULL;
    *out = (struct onnx_tensor){.name = {"", 0}};
    while (!wrong && wire_next(&wire, &field)) {
        if (field.number == VALUES && field.type == WIRE_BYTES)
            wrong = tensor_read(field.bytes, &values);
        else if (field.number == DIMS)
            wrong = add_dims(out, &field);
    }
    out->name = values.name;
    out->type = values.type;
    if (!wrong && wire.is_damaged)
        wrong = "is cut short or damaged";
    return wrong ? wrong : shape_check(out->rank, out->dims, &out->elements);
}

/* ---- its numbers ---- */

static uint64_t little(const char *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return value;
}

static double float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return (double)value;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static size_t type_bytes(int32_t type)
{
    switch (type) {
    case ONNX_UINT8:
    case ONNX_INT8:
    case ONNX_BOOL:
        return 1;
    case ONNX_INT16:
    case ONNX_UINT16:
        return 2;
    case ONNX_FLOAT:
    case ONNX_INT32:
    case ONNX_UINT32:
        return 4;
    case ONNX_INT64:
    case ONNX_UINT64:
    case ONNX_DOUBLE:
        return 8;
    default:
        return 0; /* none whose values decide a shape */
    }
}

static double number_of(int32_t type, uint64_t bits)
{
    switch (type) {
    case ONNX_FLOAT:
        return float_of(bits);
    case ONNX_DOUBLE:
        return double_of(bits);
    case ONNX_INT8:
        return (int8_t)bits;
    case ONNX_INT16:
        return (int16_t)bits;
    case ONNX_INT32:
        return (int32_t)bits;
    case ONNX_INT64:
        return (double)(int64_t)bits;
    default:
        return (double)bits;
    }
}

static bool raw_numbers(const struct onnx_tensor *tensor, double *out, size_t count)
{
    size_t width = type_bytes(tensor->type);
    if (width == 0 || tensor->raw.length / width < count)
        return false;
    for (size_t i = 0; i < count; i++)
        out[i] = number_of(tensor->type, little(tensor->raw.bytes + i * width, width));
    return true;
}

/* Which field has the numbers of a type, and how many bytes each takes there; 0: varints. */
static unsigned typed_field(int32_t type, size_t *width)
{
    *width = type == ONNX_FLOAT ? 4 : type == ONNX_DOUBLE ? 8 : 0;
    switch (type) {
    case ONNX_FLOAT:
        return FIELD_FLOATS;
    case ONNX_DOUBLE:
        return FIELD_DOUBLES;
    case ONNX_INT64:
        return FIELD_INT64S;
    case ONNX_UINT32:
    case ONNX_UINT64:
        return FIELD_UINT64S;
    default:
        return FIELD_INT32S;
    }
}

static size_t take_field(const struct onnx_tensor *tensor, const struct wire_field *field,
                         size_t width, double *out, size_t count)
{
    size_t taken = 0;
    struct slice rest = field->bytes;
    uint64_t bits;
    if (field->type != WIRE_BYTES) {
        if (count)
            out[taken++] = number_of(tensor->type, field->value);
        return taken;
    }
    if (width == 0)
        while (taken < count && wire_packed(&rest, &bits))
            out[taken++] = number_of(tensor->type, bits);
    else
        for (; taken < count && (taken + 1) * width <= rest.length; taken++)
            out[taken] = number_of(tensor->type, little(rest.bytes + taken * width, width));
    return taken;
}

bool tensor_numbers(const struct onnx_tensor *tensor, double *out, size_t count)
{
    if (tensor->raw.length > 0)
        return raw_numbers(tensor, out, count);
    if (!tensor->body.bytes || type_bytes(tensor->type) == 0)
        return false;
    size_t width, taken = 0;
    unsigned wanted = typed_field(tensor->type, &width);
    struct wire wire = wire_of(tensor->body);
    struct wire_field field;
    while (taken < count && wire_next(&wire, &field))
        if (field.number == wanted)
            taken += take_field(tensor, &field, width, out + taken, count - taken);
    return taken == count;
}
