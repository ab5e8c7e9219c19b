/* The precisions (dtypes) that a model is computed in.  Pure over a table (precisions.def). */
#ifndef IPW_CATALOG_PRECISION_H
#define IPW_CATALOG_PRECISION_H

#include <stdbool.h>

#include "core/err.h"

enum precision {
#define PRECISION(constant, name, weight, activation, cache) PRECISION_##constant,
#include "catalog/precisions.def"
#undef PRECISION
    PRECISION_COUNT
};

extern const char *const PRECISION_NAMES[PRECISION_COUNT];
static inline const char *precision_name(enum precision precision) /* "fp16" */
{
    return PRECISION_NAMES[precision];
}
enum err precision_find(const char *name, enum precision *out, struct error *why) MUST_USE;

/* Bytes of one number. */
struct precision_widths {
    double weight, activation, cache;
    bool keeps_stored; /* parameters with a precision of their own (a quantized file) keep it */
};
extern const struct precision_widths PRECISION_WIDTHS[PRECISION_COUNT];
static inline struct precision_widths precision_widths(enum precision precision)
{
    return PRECISION_WIDTHS[precision];
}

/* Precisions in which its numbers may be computed: itself, then those that can represent them, the nearest first;
 * never a narrower one.  Ends in PRECISION_COUNT.  fp16 and bf16 are interchangeable: models are run as either. */
const enum precision *precision_holders(enum precision precision);
/* Whether only weights are this narrow (int4, fp4); activations between kernels have 16 bits. */
static inline bool precision_is_weight_only(enum precision precision)
{
    return PRECISION_WIDTHS[precision].weight < PRECISION_WIDTHS[precision].activation;
}

/* Bits per weight from a model's name: 16 for "fp16", 4 for "q4_K_M" or "awq"; UNKNOWN. */
double bits_in_name(const char *model);

#endif
