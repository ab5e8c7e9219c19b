/* How long single operations of llama.cpp take on the CPU of this machine: products with weights of each format, in the
 * buffers that the library chooses for them when it loads a model, attention, and what is between them.
 *
 * Ownership: op_timer_open allocates what op_timer_close frees; one thread uses it at a time. */
#ifndef IPW_ENGINE_OP_TIMER_H
#define IPW_ENGINE_OP_TIMER_H

#include <stdint.h>

#include "core/err.h"

enum op_timer_op {
    OP_TIMER_NOTHING,   /* a graph whose work is negligible: threads start, and meet once */
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
    uint32_t format; /* of the weights, as numbered in GGUF files */
    int64_t rows, depth, columns;
    int64_t heads, context;
    int64_t
        matrices; /* used in turn, so that weights come from the memory that holds them all; 0: 1 */
};

struct op_timer;

/* ERR_UNSUPPORTED without the library, or where it lacks a function. */
enum err op_timer_open(int threads, struct op_timer **out, struct error *why) MUST_USE;
void op_timer_close(struct op_timer *timer);

/* Seconds of one operation: the lower quartile of what was measured for about `budget_s`.  ERR_UNSUPPORTED where the
 * library does not compute it. */
enum err op_timer_measure(struct op_timer *timer, const struct op_timer_shape *shape,
                          double budget_s, double *out, struct error *why) MUST_USE;

#endif
