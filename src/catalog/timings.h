/* Single operations of a runtime, timed on a CPU by `ipw estimate calibrate`: what the estimate of a model on that CPU is
 * put together from.  Part of a hardware file (docs/formats.md, "timings"), whose struct hardware owns them. */
#ifndef IPW_CATALOG_TIMINGS_H
#define IPW_CATALOG_TIMINGS_H

#include <stddef.h>

enum timing_op {
    TIMING_PASS, /* of one graph: threads start and end */
    TIMING_STEP, /* an operation without work: threads meet */
    TIMING_PRODUCT,
    TIMING_ATTENTION,
    TIMING_NORM,
    TIMING_ADD,
    TIMING_ROTATION,
    TIMING_GATE, /* silu(a) x b */
    TIMING_OP_COUNT
};
const char *timing_op_name(enum timing_op op);

struct hardware_timing {
    enum timing_op op;
    const char *format;          /* of the weights of a product, "Q4_K"; NULL */
    double rows, depth, columns; /* attention: queries, of a head, heads */
    double context;              /* of attention */
    double held;                 /* bytes of all weights that are used in turn */
    double seconds;              /* of one operation */
};
struct hardware_timings {
    const char *runtime, *source; /* NULL: there are none */
    unsigned threads;
    const struct hardware_timing *items;
    size_t count;
};

#endif
