#include "graph/onnx/operators.h"

#include <stdlib.h>
#include <string.h>

static const struct operator_row ROWS[] = {
#define OPERATOR(name, rule, fold, op, settings, buffers, quantised)                               \
    {name, rule_##rule, fold_##fold, GRAPH_##op, settings, buffers, quantised},
#include "graph/onnx/operators.def"
#undef OPERATOR
};

static int compare(const void *key, const void *row)
{
    const struct slice *name = key;
    const char *other = ((const struct operator_row *)row)->name;
    size_t length = strlen(other);
    int order = memcmp(name->bytes, other, name->length < length ? name->length : length);
    return order ? order : name->length < length ? -1 : name->length > length;
}

const struct operator_row *operator_find(struct slice domain, struct slice op)
{
    bool is_microsoft = slice_is(domain, "com.microsoft");
    if (domain.length && !is_microsoft && !slice_is(domain, "ai.onnx"))
        return NULL;
    /* The one name that means two things. */
    if (is_microsoft && slice_is(op, "Attention"))
        op = (struct slice){"com.microsoft.Attention", strlen("com.microsoft.Attention")};
    return bsearch(&op, ROWS, sizeof ROWS / sizeof ROWS[0], sizeof ROWS[0], compare);
}
