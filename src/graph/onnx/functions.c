#include "graph/onnx/functions.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 1, DOMAIN = 10, DEFAULT = 11, OVERLOAD = 13, ATTRIBUTE_NAME = 1 };

struct onnx_function function_of(struct slice body)
{
    struct onnx_function function = {{"", 0}, {"", 0}, {"", 0}, body};
    struct wire wire = wire_of(body);
    struct wire_field field;
    while (wire_next(&wire, &field)) {
        if (field.type != WIRE_BYTES)
            continue;
        if (field.number == NAME)
            function.name = field.bytes;
        else if (field.number == DOMAIN)
            function.domain = field.bytes;
        else if (field.number == OVERLOAD)
            function.overload = field.bytes;
    }
    return function;
}

static int compare_slices(struct slice a, struct slice b)
{
    if (a.length != b.length)
        return a.length < b.length ? -1 : 1;
    return a.length ? memcmp(a.bytes, b.bytes, a.length) : 0;
}

static int compare(const void *left, const void *right)
{
    const struct onnx_function *a = left, *b = right;
    int order = compare_slices(a->name, b->name);
    if (order == 0)
        order = compare_slices(a->domain, b->domain);
    return order ? order : compare_slices(a->overload, b->overload);
}

void functions_sort(struct onnx_function *functions, size_t count)
{
    if (count > 1)
        qsort(functions, count, sizeof *functions, compare);
}

int32_t functions_find(const struct onnx_function *functions, size_t count,
                       const struct onnx_function *wanted)
{
    const struct onnx_function *found =
        count ? bsearch(wanted, functions, count, sizeof *functions, compare) : NULL;
    return found ? (int32_t)(found - functions) : -1;
}

struct slice attribute_name(struct slice body)
{
    struct wire wire = wire_of(body);
    struct wire_field field;
    while (wire_next(&wire, &field))
        if (field.number == ATTRIBUTE_NAME && field.type == WIRE_BYTES)
            return field.bytes;
    return (struct slice){"", 0};
}

struct slice function_default(struct slice body, struct slice name)
{
    struct wire wire = wire_of(body);
    struct wire_field field;
    while (wire_next(&wire, &field))
        if (field.number == DEFAULT && field.type == WIRE_BYTES &&
            compare_slices(attribute_name(field.bytes), name) == 0)
            return field.bytes;
    return (struct slice){0};
}
