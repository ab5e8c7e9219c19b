/* A field is a tag (number and wire type) and a scalar or a run of bytes; unknown fields are skipped. */
#include "graph/onnx/proto.h"

#include <string.h>

#include "graph/model_files.h"

/* ---- wire format ---- */

struct wire wire_of(struct slice message)
{
    const char *start = message.start ? message.start : "";
    return (struct wire){.at = start, .end = start + message.length};
}

/* Seven bits per byte, least significant first; ten bytes at most. */
static bool read_varint(const char **at, const char *end, uint64_t *out)
{
    uint64_t value = 0;
    const char *byte = *at;
    for (unsigned shift = 0; shift < 70 && byte < end; shift += 7, byte++) {
        if (shift < 64)
            value |= (uint64_t)((unsigned char)*byte & 0x7f) << shift;
        if (!((unsigned char)*byte & 0x80)) {
            *at = byte + 1;
            *out = value;
            return true;
        }
    }
    return false;
}

static bool read_scalar(const char **at, const char *end, enum wire_type type, uint64_t *out)
{
    size_t size = type == WIRE_FIXED32 ? 4 : 8;
    if (type == WIRE_VARINT)
        return read_varint(at, end, out);
    if ((size_t)(end - *at) < size)
        return false;
    *out = model_little_endian(*at, size);
    *at += size;
    return true;
}

static bool read_bytes(struct wire *wire)
{
    uint64_t length;
    if (!read_varint(&wire->at, wire->end, &length) || length > (uint64_t)(wire->end - wire->at))
        return false;
    wire->bytes = (struct slice){wire->at, (size_t)length};
    wire->at += length;
    return true;
}

static bool read_field(struct wire *wire)
{
    uint64_t tag;
    if (!read_varint(&wire->at, wire->end, &tag) || tag >> 3 == 0 || tag >> 32)
        return false;
    wire->number = (uint32_t)(tag >> 3);
    wire->type = (enum wire_type)(tag & 7);
    wire->value = 0;
    wire->bytes = (struct slice){0};
    switch (wire->type) {
    case WIRE_VARINT:
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        return read_scalar(&wire->at, wire->end, wire->type, &wire->value);
    case WIRE_BYTES:
        return read_bytes(wire);
    }
    return false; /* groups, which ONNX does not use */
}

bool wire_next(struct wire *wire)
{
    if (wire->at == wire->end || wire->is_damaged)
        return false;
    wire->is_damaged = !read_field(wire);
    return !wire->is_damaged;
}

bool wire_next_bytes(struct wire *wire, uint32_t number)
{
    while (wire_next(wire))
        if (wire->number == number && wire->type == WIRE_BYTES)
            return true;
    return false;
}

/* Takes the next scalar from a repeated field, packed or not; false if none is left.  `type` is that of one scalar.
 * Remaining bytes of a packed field are less than a scalar: it is corrupt. */
static bool wire_scalar(struct wire *field, enum wire_type type, uint64_t *out)
{
    if (field->type == type) {
        *out = field->value;
        field->type = WIRE_BYTES; /* consumed */
        field->bytes = (struct slice){"", 0};
        return true;
    }
    if (field->type != WIRE_BYTES || field->bytes.length == 0)
        return false;
    const char *at = field->bytes.start, *end = slice_end(field->bytes);
    if (!read_scalar(&at, end, type, out))
        return false;
    field->bytes = slice_between(at, end);
    return true;
}

struct slice wire_bytes(struct slice message, uint32_t number)
{
    struct wire wire = wire_of(message);
    struct slice found = {"", 0};
    while (wire_next_bytes(&wire, number))
        found = wire.bytes;
    return found;
}

/* ---- bits ---- */

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

/* ---- TensorProto ---- */

enum {
    TENSOR_DIMS = 1,
    TENSOR_DTYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    SPARSE_VALUES = 1,
    SPARSE_DIMS = 3,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
};

/* ---- dtypes ---- */

static const struct dtype {
    int32_t number;
    bool is_float, is_signed;
    uint8_t bytes;
    uint32_t field;
    enum wire_type type;
    enum graph_dtype in_graph;
    double stored_width;
} DTYPES[] = {
#define DTYPE(constant, number, is_float, is_signed, bytes, field, type, in_graph, stored_width)   \
    {number,         is_float,    is_signed,        bytes,                                         \
     TENSOR_##field, WIRE_##type, GRAPH_##in_graph, stored_width},
#include "graph/onnx/dtypes.def"
#undef DTYPE
};

static const struct dtype *dtype_of(int32_t number)
{
    static const struct dtype OTHER = {.field = TENSOR_INT32S, .in_graph = GRAPH_INT32};
    for (size_t i = 0; i < COUNT_OF(DTYPES); i++)
        if (DTYPES[i].number == number)
            return &DTYPES[i];
    return &OTHER;
}

bool onnx_dtype_is_float(int32_t dtype)
{
    return dtype_of(dtype)->is_float;
}

double onnx_dtype_stored_width(int32_t dtype)
{
    return dtype_of(dtype)->stored_width;
}

enum graph_dtype onnx_dtype_in_graph(int32_t dtype)
{
    return dtype ? dtype_of(dtype)->in_graph : GRAPH_FLOAT;
}

/* ---- tensors ---- */

/* Exact in a double, as are the bytes of any dtype. */
#define MAX_ELEMENTS (INT64_C(1) << 50)

static const char TOO_MANY_DIMS[] = "has more than 8 dimensions";

const char *onnx_check_shape(size_t rank, const int64_t *dims, int64_t *elements)
{
    if (rank > GRAPH_MAX_RANK)
        return TOO_MANY_DIMS;
    *elements = 1;
    int64_t product = 1; /* without dimensions of 0: the others must not overflow either */
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return "has a negative dimension";
        if (dims[i] > MAX_ELEMENTS || (dims[i] > 0 && product > MAX_ELEMENTS / dims[i]))
            return "has too many elements (limit 2^50)";
        product *= dims[i] ? dims[i] : 1;
        *elements *= dims[i];
    }
    return NULL;
}

static const char *add_dims(struct proto_tensor *tensor, struct wire field)
{
    uint64_t value;
    while (wire_scalar(&field, WIRE_VARINT, &value)) {
        if (tensor->rank == GRAPH_MAX_RANK)
            return TOO_MANY_DIMS;
        tensor->dims[tensor->rank++] = (int64_t)value;
    }
    return NULL;
}

/* One entry of external_data: the key "location" names a file. */
static void read_external(struct slice entry, struct proto_tensor *tensor)
{
    if (slice_is(wire_bytes(entry, ENTRY_KEY), "location"))
        tensor->external = wire_bytes(entry, ENTRY_VALUE);
}

static const char *read_tensor_field(const struct wire *field, struct proto_tensor *out)
{
    bool is_bytes = field->type == WIRE_BYTES;
    if (field->number == TENSOR_DIMS)
        return add_dims(out, *field);
    if (field->number == TENSOR_DTYPE)
        out->dtype = (int32_t)field->value;
    else if (field->number == TENSOR_NAME && is_bytes)
        out->name = field->bytes;
    else if (field->number == TENSOR_RAW && is_bytes)
        out->raw = field->bytes;
    else if (field->number == TENSOR_EXTERNAL && is_bytes)
        read_external(field->bytes, out);
    return NULL;
}

static const char *end_tensor(const struct wire *wire, const char *wrong, struct proto_tensor *out)
{
    if (wrong)
        return wrong;
    return wire->is_damaged ? "is truncated or damaged"
                            : onnx_check_shape(out->rank, out->dims, &out->elements);
}

const char *onnx_tensor_decode(struct slice message, struct proto_tensor *out)
{
    struct wire wire = wire_of(message);
    const char *wrong = NULL;
    *out = (struct proto_tensor){.message = message, .name = {"", 0}};
    while (!wrong && wire_next(&wire))
        wrong = read_tensor_field(&wire, out);
    return end_tensor(&wire, wrong, out);
}

/* The shape is that of the dense tensor. */
const char *onnx_tensor_decode_sparse(struct slice message, struct proto_tensor *out)
{
    struct wire wire = wire_of(message);
    struct proto_tensor values = {.name = {"", 0}};
    const char *wrong = NULL;
    *out = (struct proto_tensor){.name = {"", 0}};
    while (!wrong && wire_next(&wire)) {
        if (wire.number == SPARSE_VALUES && wire.type == WIRE_BYTES)
            wrong = onnx_tensor_decode(wire.bytes, &values);
        else if (wire.number == SPARSE_DIMS)
            wrong = add_dims(out, wire);
    }
    out->name = values.name;
    out->dtype = values.dtype;
    return end_tensor(&wire, wrong, out);
}

static double element_of(const struct dtype *dtype, uint64_t bits)
{
    int above = 64 - 8 * dtype->bytes;
    if (dtype->is_float)
        return dtype->bytes == 4 ? float_of(bits) : double_of(bits);
    return dtype->is_signed ? (double)((int64_t)(bits << above) >> above) : (double)bits;
}

bool onnx_tensor_data(const struct proto_tensor *tensor, double *out, size_t count)
{
    const struct dtype *dtype = dtype_of(tensor->dtype);
    size_t taken = 0, size = dtype->bytes;
    if (size == 0)
        return false;
    if (tensor->raw.length > 0) {
        for (; taken < count && taken < tensor->raw.length / size; taken++)
            out[taken] =
                element_of(dtype, model_little_endian(tensor->raw.start + taken * size, size));
        return taken == count;
    }
    uint64_t bits;
    struct wire wire = wire_of(tensor->message);
    while (taken < count && wire_next(&wire))
        if (wire.number == dtype->field)
            while (taken < count && wire_scalar(&wire, dtype->type, &bits))
                out[taken++] = element_of(dtype, bits);
    return tensor->message.start && taken == count;
}

/* ---- AttributeProto ---- */

enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_FLOAT = 2,
    ATTRIBUTE_INT = 3,
    ATTRIBUTE_STRING = 4,
    ATTRIBUTE_TENSOR = 5,
    ATTRIBUTE_GRAPH = 6,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
};

struct slice onnx_attribute_string(const struct onnx_attribute *attribute)
{
    return wire_bytes(attribute->message, ATTRIBUTE_STRING);
}

struct slice onnx_attribute_name(struct slice message)
{
    struct wire wire = wire_of(message);
    while (wire_next_bytes(&wire, ATTRIBUTE_NAME))
        return wire.bytes;
    return (struct slice){"", 0};
}

/* Counts the scalars of a repeated field; false if it is of another type, or corrupt. */
static bool count_scalars(struct wire field, enum wire_type type, uint32_t *count)
{
    uint64_t bits;
    while (*count < UINT32_MAX && wire_scalar(&field, type, &bits))
        ++*count;
    return field.type == WIRE_BYTES && field.bytes.length == 0;
}

static bool read_attribute_field(const struct wire *field, struct onnx_attribute *out,
                                 struct slice *graph)
{
    switch (field->number) {
    case ATTRIBUTE_FLOAT:
        out->has_float = true;
        out->float_value = (float)float_of(field->value);
        return field->type == WIRE_FIXED32;
    case ATTRIBUTE_INT:
        out->has_int = true;
        out->int_value = (int64_t)field->value;
        return field->type == WIRE_VARINT;
    case ATTRIBUTE_STRING:
        return field->type == WIRE_BYTES;
    case ATTRIBUTE_TENSOR:
        out->tensor = field->bytes;
        return field->type == WIRE_BYTES;
    case ATTRIBUTE_GRAPH:
        *graph = field->bytes;
        return field->type == WIRE_BYTES;
    case ATTRIBUTE_FLOATS:
        return count_scalars(*field, WIRE_FIXED32, &out->float_count);
    case ATTRIBUTE_INTS:
        return count_scalars(*field, WIRE_VARINT, &out->int_count);
    default:
        return true;
    }
}

bool onnx_attribute_decode(struct slice message, struct onnx_attribute *out, struct slice *graph)
{
    struct wire wire = wire_of(message);
    *out = (struct onnx_attribute){.message = message, .graph = ONNX_NONE};
    *graph = (struct slice){0};
    while (wire_next(&wire))
        if (!read_attribute_field(&wire, out, graph))
            return false;
    return !wire.is_damaged;
}

size_t onnx_attribute_ints(const struct onnx_attribute *attribute, int64_t *out, size_t capacity)
{
    size_t count = 0;
    uint64_t bits;
    struct wire wire = wire_of(attribute->message);
    while (count < capacity && wire_next(&wire))
        if (wire.number == ATTRIBUTE_INTS)
            while (count < capacity && wire_scalar(&wire, WIRE_VARINT, &bits))
                out[count++] = (int64_t)bits;
    return count;
}

size_t onnx_attribute_floats(const struct onnx_attribute *attribute, double *out, size_t capacity)
{
    size_t count = 0;
    uint64_t bits;
    struct wire wire = wire_of(attribute->message);
    while (count < capacity && wire_next(&wire))
        if (wire.number == ATTRIBUTE_FLOATS)
            while (count < capacity && wire_scalar(&wire, WIRE_FIXED32, &bits))
                out[count++] = float_of(bits);
    return count;
}

/* ---- ValueInfoProto ---- */

enum {
    INFO_TYPE = 2,
    TYPE_TENSOR = 1,
    TENSOR_TYPE_DTYPE = 1,
    TENSOR_TYPE_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2,
};

/* Some exporters name every dynamic dimension "?" or "-1": not a name, since it stands for several. */
static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.length; i++)
        if ((name.start[i] >= 'a' && name.start[i] <= 'z') ||
            (name.start[i] >= 'A' && name.start[i] <= 'Z'))
            return true;
    return false;
}

/* If both value and name are present, the last one counts. */
static bool decode_dim(struct slice message, struct onnx_dim *out)
{
    struct wire wire = wire_of(message);
    *out = (struct onnx_dim){-1, {"", 0}};
    while (wire_next(&wire)) {
        if (wire.number != DIM_VALUE && wire.number != DIM_PARAM)
            continue;
        bool is_value = wire.number == DIM_VALUE;
        if (wire.type != (is_value ? WIRE_VARINT : WIRE_BYTES))
            return false;
        *out = (struct onnx_dim){-1, {"", 0}};
        if (is_value)
            out->size = wire.value > INT64_MAX ? -1 : (int64_t)wire.value;
        else if (is_name(wire.bytes))
            out->name = wire.bytes;
    }
    return !wire.is_damaged;
}

static bool decode_shape(struct slice message, struct proto_type *out)
{
    struct wire wire = wire_of(message);
    struct onnx_dim dim;
    out->has_shape = true;
    while (wire_next(&wire)) {
        if (wire.number != SHAPE_DIM)
            continue;
        if (wire.type != WIRE_BYTES || !decode_dim(wire.bytes, &dim))
            return false;
        if (out->rank < GRAPH_MAX_RANK)
            out->dims[out->rank] = dim;
        out->rank++;
    }
    return !wire.is_damaged;
}

static bool decode_tensor_type(struct slice message, struct proto_type *out)
{
    struct wire wire = wire_of(message);
    bool is_valid = true;
    while (is_valid && wire_next(&wire)) {
        if (wire.number == TENSOR_TYPE_DTYPE) {
            out->dtype = (int32_t)wire.value;
            is_valid = wire.type == WIRE_VARINT;
        } else if (wire.number == TENSOR_TYPE_SHAPE) {
            is_valid = wire.type == WIRE_BYTES && decode_shape(wire.bytes, out);
        }
    }
    return is_valid && !wire.is_damaged;
}

static bool decode_value_type(struct slice message, struct proto_type *out)
{
    struct wire wire = wire_of(message);
    out->is_other = true;
    while (wire_next(&wire)) {
        if (wire.number != TYPE_TENSOR)
            continue;
        out->is_other = false;
        if (wire.type != WIRE_BYTES || !decode_tensor_type(wire.bytes, out))
            return false;
    }
    return !wire.is_damaged;
}

bool onnx_type_decode(struct slice message, struct proto_type *out)
{
    struct wire wire = wire_of(message);
    *out = (struct proto_type){0};
    while (wire_next(&wire))
        if (wire.number == INFO_TYPE &&
            (wire.type != WIRE_BYTES || !decode_value_type(wire.bytes, out)))
            return false;
    return !wire.is_damaged;
}
