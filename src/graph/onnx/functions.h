/* The functions that an ONNX file brings along, which its nodes may call: finding them, and what they say of
 * themselves.  Slices point into the bytes of the file; the list is the file's. */
#ifndef IPW_GRAPH_ONNX_FUNCTIONS_H
#define IPW_GRAPH_ONNX_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "graph/onnx/wire.h"

struct onnx_function {
    struct slice domain, name, overload, body;
};

enum { /* fields of a function: names where a graph has messages */
       FUNCTION_IN = 4,
       FUNCTION_OUT = 5,
       FUNCTION_NODE = 7,
};

struct onnx_function function_of(struct slice body);
void functions_sort(struct onnx_function *functions, size_t count);
/* Its place among sorted ones; -1: none of them. */
int32_t functions_find(const struct onnx_function *functions, size_t count,
                       const struct onnx_function *wanted);
/* The setting of that name which it has for calls that do not give it; no bytes: none. */
struct slice function_default(struct slice body, struct slice name);
struct slice attribute_name(struct slice body);

#endif
