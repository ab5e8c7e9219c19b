#include "graph/onnx/message.h"

#include <string.h>

#include <onnx.pb-c.h>

/* Longer than any setting or type; what is unpacked takes a multiple of it. */
enum { MOST_BYTES = 1 << 22 };

enum err message_available(struct error *why)
{
    (void)why;
    return ERR_OK;
}

static void *take(void *data, size_t size)
{
    return arena_take(data, size);
}

static void keep(void *data, void *pointer)
{
    (void)data, (void)pointer; /* the arena goes as a whole */
}

static const ProtobufCMessage *unpack(struct arena *arena, const ProtobufCMessageDescriptor *kind,
                                      struct slice body)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = keep, .allocator_data = arena};
    if (body.length > MOST_BYTES)
        return NULL;
    return protobuf_c_message_unpack(kind, &allocator, body.length, (const uint8_t *)body.bytes);
}

enum err message_setting(struct arena *arena, struct slice body, struct message_setting *out)
{
    const Ipw__Onnx__Attribute *from =
        (const void *)unpack(arena, &ipw__onnx__attribute__descriptor, body);
    *out = (struct message_setting){0};
    if (!from)
        return ERR_BAD_VALUE;
    *out = (struct message_setting){
        .has_integer = from->has_i,
        .has_real = from->has_f,
        .integer = from->i,
        .real = (double)from->f,
        .text = {(const char *)from->s.data, from->has_s ? from->s.len : 0},
        .integers = from->ints,
        .integer_count = from->n_ints,
        .reals = from->floats,
        .real_count = from->n_floats,
    };
    return ERR_OK;
}

/* Some exporters call all that is open "?" or "-1": that is no name, since it stands for several sizes. */
static bool is_name(const char *name)
{
    for (; *name; name++)
        if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z'))
            return true;
    return false;
}

static struct message_dim dim_of(const Ipw__Onnx__Dimension *from)
{
    struct message_dim dim = {.size = -1};
    if (from->value_case == IPW__ONNX__DIMENSION__VALUE_SIZE)
        dim.size = from->size < 0 ? -1 : from->size;
    else if (from->value_case == IPW__ONNX__DIMENSION__VALUE_NAME && is_name(from->name))
        dim.name = from->name;
    return dim;
}

enum err message_type(struct arena *arena, struct slice body, struct message_type *out)
{
    const Ipw__Onnx__ValueInfo *from =
        (const void *)unpack(arena, &ipw__onnx__value_info__descriptor, body);
    *out = (struct message_type){0};
    if (!from)
        return ERR_BAD_VALUE;
    const Ipw__Onnx__TensorType *tensor = from->type ? from->type->tensor : NULL;
    out->is_other = from->type && !tensor;
    if (!tensor)
        return ERR_OK;
    out->element = tensor->element;
    if (!tensor->shape)
        return ERR_OK;
    struct message_dim *dims = arena_take(arena, (tensor->shape->n_dim + 1) * sizeof *dims);
    if (!dims)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < tensor->shape->n_dim; i++)
        dims[i] = dim_of(tensor->shape->dim[i]);
    out->has_shape = true;
    out->rank = tensor->shape->n_dim;
    out->dims = dims;
    return ERR_OK;
}
