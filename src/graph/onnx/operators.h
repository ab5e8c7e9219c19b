/* The operators that are known: one row each, from operators.def.  The table is constant. */
#ifndef IPW_GRAPH_ONNX_OPERATORS_H
#define IPW_GRAPH_ONNX_OPERATORS_H

#include "graph/onnx/fold.h"
#include "graph/onnx/rules.h"

struct operator_row {
    const char *name;
    rule_function *rule;
    fold_function *fold;
    enum graph_op op;
    uint16_t settings, buffers, quantised; /* masks of inputs */
};

/* NULL: not known. */
const struct operator_row *operator_find(struct slice domain, struct slice op);

#endif
