/* The number formats that an estimate may be asked for.  Pure over a table (precisions.def). */
#ifndef IPW_ESTIMATE_PRECISION_H
#define IPW_ESTIMATE_PRECISION_H

#include "core/err.h"
#include "graph/count.h"

enum precision {
#define PRECISION(constant, name, weight, activation, cache) PRECISION_##constant,
#include "estimate/precisions.def"
#undef PRECISION
    PRECISION_COUNT
};

const char *precision_name(enum precision precision); /* "fp16" */
enum err precision_find(const char *name, enum precision *out, struct error *why) MUST_USE;

/* Bytes of numbers in this format, for counting. */
struct graph_widths precision_widths(enum precision precision);

/* In which format products are computed: fp16 for formats of weights alone (int4, fp4). */
enum precision precision_of_products(enum precision precision);

#endif
