/* Timing of single operations of inference runtimes on this machine's CPU, for `ipw estimate calibrate`.  A timer is
 * used by one thread at a time. */
#ifndef IPW_ENGINE_TIMERS_H
#define IPW_ENGINE_TIMERS_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "core/err.h"
#include "core/units.h"

/* ---- common ---- */

/* Reads any clock, including CPU-time clocks; core/clock.h has the wall and monotonic ones. */
static inline double clock_s(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Interference only adds time: the lower quartile estimates the undisturbed time. */
static inline double lower_quartile(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, compare_doubles);
    return samples[count / 4];
}

/* ---- llama.cpp: op_timer.c ---- */

/* Operations: products with weights of each format, in the buffers that the library uses for a loaded model, attention,
 * and the operations between them. */
enum op_timer_op {
    OP_TIMER_NOTHING,   /* a graph with negligible work: thread start-up and one barrier */
    OP_TIMER_STEP,      /* one more operation with negligible work */
    OP_TIMER_PRODUCT,   /* rows x depth by depth x columns */
    OP_TIMER_ATTENTION, /* `rows` queries, the last of `context` tokens; depth is that of a head */
    OP_TIMER_NORM,      /* RMS norm of `rows` rows of `depth` elements, with its weight */
    OP_TIMER_ADD,
    OP_TIMER_ROTATION, /* rotary embedding, heads of 64 elements */
    OP_TIMER_GATE,     /* silu(a) x b */
};

struct op_timer_shape {
    enum op_timer_op op;
    uint32_t format; /* GGUF type number of the weights */
    int64_t rows, depth, columns;
    int64_t heads, context;
    int64_t
        matrices; /* used in rotation, so that weights come from the memory that holds them all; 0: 1 */
    int64_t graphs; /* graphs that the matrices are divided into, each timed separately; 0: 1 */
};
enum { OP_TIMER_GRAPHS_MAX = 64 };

struct op_timer;

/* ERR_UNSUPPORTED without the library, or where it lacks a function. */
enum err op_timer_open(int threads, struct op_timer **out, struct error *why) MUST_USE;
void op_timer_close(struct op_timer *timer);

struct op_time {
    double seconds; /* per operation */
    double ran; /* share of the time in which its threads had a CPU; below 0.9 it was disturbed */
};

/* The lower quartile of samples over about `budget_s`, of samples during which all threads ran if there are any.
 * ERR_UNSUPPORTED if the library does not support the operation. */
enum err op_timer_measure(struct op_timer *timer, const struct op_timer_shape *shape,
                          double budget_s, struct op_time *out, struct error *why) MUST_USE;

/* ---- ONNX Runtime: ort_timer.c ---- */

/* Through its C library, which ort_library.h opens. */
struct ort_timer;

/* Operators in fp32. */
enum ort_op {
    ORT_RUN,       /* a model of one such operator: */
    ORT_NOTHING,   /* an operator with negligible work */
    ORT_CONV,      /* `channels` to `outputs`, window x window, side x side positions, padded */
    ORT_DEPTHWISE, /* the same with a group for each channel */
    ORT_IMAGE,     /* the same with stride 2, on the model's input */
    ORT_LINE,      /* a convolution over one dimension of `side` positions */
    ORT_SCALED,    /* a convolution and the multiplication of its result by a constant */
    ORT_PRODUCT,   /* `rows` x `channels` by a matrix of channels x channels */
    ORT_LSTM,      /* `rows` steps, `channels` wide */
    ORT_ADD,       /* two tensors of `elements` */
    ORT_SCALE,     /* a tensor of `elements` by a constant */
    ORT_SIGMOID,
    ORT_LRN, /* local response norm over 5 of 64 channels */
};

struct ort_shape {
    enum ort_op op;
    int64_t rows, side, channels, outputs, window, elements;
};

/* ERR_UNSUPPORTED, with the reason, without the library. */
enum err ort_timer_open(unsigned threads, struct ort_timer **out, struct error *why) MUST_USE;
void ort_timer_close(struct ort_timer *timer);
const char *ort_timer_version(const struct ort_timer *timer);

/* Time per operator in a chain of equal ones, which excludes the overhead of a run; otherwise as op_timer_measure. */
enum err ort_timer_measure(struct ort_timer *timer, const struct ort_shape *shape, double budget_s,
                           struct op_time *out, struct error *why) MUST_USE;

#endif
