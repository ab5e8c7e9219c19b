#include "graph/onnx/wire.h"

struct wire wire_of(struct slice message)
{
    const char *start = message.start ? message.start : "";
    return (struct wire){.at = start, .end = start + message.length};
}

uint64_t wire_little_endian(const char *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return value;
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
    *out = wire_little_endian(*at, size);
    *at += size;
    return true;
}

static bool read_bytes(struct wire *wire, struct slice *out)
{
    uint64_t length;
    if (!read_varint(&wire->at, wire->end, &length) || length > (uint64_t)(wire->end - wire->at))
        return false;
    *out = (struct slice){wire->at, (size_t)length};
    wire->at += length;
    return true;
}

static bool read_field(struct wire *wire, struct wire_field *out)
{
    uint64_t tag;
    if (!read_varint(&wire->at, wire->end, &tag) || tag >> 3 == 0 || tag >> 32)
        return false;
    *out = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = (enum wire_type)(tag & 7)};
    switch (out->type) {
    case WIRE_VARINT:
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        return read_scalar(&wire->at, wire->end, out->type, &out->value);
    case WIRE_BYTES:
        return read_bytes(wire, &out->bytes);
    }
    return false; /* groups, which ONNX does not use */
}

bool wire_next(struct wire *wire, struct wire_field *out)
{
    if (wire->at == wire->end || wire->is_damaged)
        return false;
    wire->is_damaged = !read_field(wire, out);
    return !wire->is_damaged;
}

bool wire_scalar(struct wire_field *field, enum wire_type type, uint64_t *out)
{
    if (field->type == type) {
        *out = field->value;
        field->type = WIRE_BYTES; /* taken: nothing is left */
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
    struct wire_field field;
    struct slice found = {"", 0};
    while (wire_next(&wire, &field))
        if (field.number == number && field.type == WIRE_BYTES)
            found = field.bytes;
    return found;
}
