/* Single operations of a runtime, timed on a CPU by `ipw estimate calibrate`: the estimate of a model on that CPU is
 * composed of these.  Part of a hardware file (docs/formats.md, "timings"), whose struct hardware owns them: one
 * table per runtime. */
#ifndef IPW_CATALOG_TIMINGS_H
#define IPW_CATALOG_TIMINGS_H

#include <stddef.h>

enum timing_op {
    TIMING_PASS, /* of one graph: fork and join of the threads */
    TIMING_STEP, /* an operation without work: a barrier */
    TIMING_PRODUCT,
    TIMING_CONV,       /* of at least 16 channels */
    TIMING_POINT_CONV, /* with a window of 1 x 1 */
    TIMING_IMAGE_CONV, /* of fewer channels */
    TIMING_LINE_CONV,  /* over one dimension */
    TIMING_DEPTHWISE_CONV,
    TIMING_LSTM,
    TIMING_ATTENTION,
    TIMING_NORM,
    TIMING_ADD,   /* ONNX Runtime: `rows` elements */
    TIMING_SCALE, /* by a constant */
    TIMING_SIGMOID,
    TIMING_LRN,
    TIMING_REORDER, /* of `rows` elements from or to the blocked layout of convolutions */
    TIMING_ROTATION,
    TIMING_GATE, /* silu(a) x b */
    TIMING_OP_COUNT
};
const char *timing_op_name(enum timing_op op);

struct hardware_timing {
    enum timing_op op;
    const char *format;          /* of the weights of a product, "Q4_K"; NULL */
    double rows, depth, columns; /* attention: queries, of a head, heads; convolutions: positions */
    double context;              /* of attention; of convolutions: elements of the window */
    double held;                 /* working set: bytes of all weights used in rotation */
    double seconds;              /* of one operation */
};
enum { TIMINGS_RUNTIMES = 2 };
struct hardware_timings {
    const char *runtime, *source; /* NULL: there are none */
    unsigned threads;
    const struct hardware_timing *items;
    size_t count;
};

#endif
