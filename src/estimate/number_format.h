/* What a runtime makes of a precision: how wide the numbers are that its kernels move, and in which precision they compute
 * (docs/estimate.md, "What quantized formats compute in").  Pure functions over a table. */
#ifndef IPW_ESTIMATE_NUMBER_FORMAT_H
#define IPW_ESTIMATE_NUMBER_FORMAT_H

#include "catalog/precision.h"
#include "estimate/runtime.h"

struct number_format {
    struct precision_widths widths;
    double head; /* bytes of a weight of the last matrix, which is quantized less or not at all */
    enum precision products;  /* of matrices */
    enum precision attention; /* of queries, keys and values */
    double weight_ops; /* of the vector units to dequantize a weight; 0: computed as stored */
};

/* RUNTIME_IDEAL: the precision as it is. */
struct number_format number_format(enum precision precision, enum runtime_id runtime);

#endif
