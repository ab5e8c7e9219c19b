#include "graph/onnx/wire.h"

#include <string.h>

bool slice_is(struct slice slice, const char *string)
{
    return slice.length == strlen(string) &&
           (slice.length == 0 || memcmp(slice.bytes, string, slice.length) == 0);
}

struct wire wire_of(struct slice message)
{
    const char *bytes = message.bytes ? message.bytes : "";
    return (struct wire){.at = bytes, .end = bytes + message.length};
}

/* Seven bits a byte, the lowest first; ten bytes at most. */
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

static bool read_fixed(struct wire *wire, unsigned count, uint64_t *out)
{
    if ((size_t)(wire->end - wire->at) < count)
        return false;
    *out = 0;
    for (unsigned i = 0; i < count; i++)
        *out |= (uint64_t)(unsigned char)wire->at[i] << (8 * i);
    wire->at += count;
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
    case WIRE_NUMBER:
        return read_varint(&wire->at, wire->end, &out->value);
    case WIRE_8_BYTES:
        return read_fixed(wire, 8, &out->value);
    case WIRE_4_BYTES:
        return read_fixed(wire, 4, &out->value);
    case WIRE_BYTES:
        return read_bytes(wire, &out->bytes);
    }
    return false; /* groups, which ONNX has none of */
}

bool wire_next(struct wire *wire, struct wire_field *out)
{
    if (wire->at == wire->end || wire->is_damaged)
        return false;
    wire->is_damaged = !read_field(wire, out);
    return !wire->is_damaged;
}

bool wire_packed(struct slice *rest, uint64_t *out)
{
    if (rest->length == 0)
        return false;
    const char *at = rest->bytes, *end = rest->bytes + rest->length;
    if (!read_varint(&at, end, out))
        return false;
    *rest = (struct slice){at, (size_t)(end - at)};
    return true;
}
