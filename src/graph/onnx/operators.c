#include "graph/onnx/operators.h"

#include <stdlib.h>
#include <string.h>

static const struct onnx_operator ROWS[] = {
#define OPERATOR(name, rule, fold, op, shape_inputs, buffers, quantized)                           \
    {name, rule_##rule, fold_##fold, GRAPH_##op, shape_inputs, buffers, quantized},
#include "graph/onnx/operators.def"
#undef OPERATOR
};

static int compare(const void *key, const void *row)
{
    const struct slice *name = key;
    const char *other = ((const struct onnx_operator *)row)->name;
    size_t length = strlen(other);
    int order = memcmp(name->start, other, name->length < length ? name->length : length);
    return order ? order : name->length < length ? -1 : name->length > length;
}

const struct onnx_operator *operator_find(struct slice domain, struct slice op)
{
    bool is_microsoft = slice_is(domain, "com.microsoft");
    if (domain.length && !is_microsoft && !slice_is(domain, "ai.onnx"))
        return NULL;
    /* The only name that both domains define. */
    if (is_microsoft && slice_is(op, "Attention"))
        op = slice_of("com.microsoft.Attention");
    return bsearch(&op, ROWS, sizeof ROWS / sizeof ROWS[0], sizeof ROWS[0], compare);
}
