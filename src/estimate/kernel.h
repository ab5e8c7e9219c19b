/* How long the kernels of one subgraph take as a runtime calls them, and what busy units draw: the share of the roof
 * that a class of kernel attains at its size (docs/estimate.md, "Kernels").  Bounded by the roof.  Pure functions. */
#ifndef IPW_ESTIMATE_KERNEL_H
#define IPW_ESTIMATE_KERNEL_H

#include "estimate/roofline.h"

const char *kernel_class_name(enum kernel_class class);

struct kernel_estimate {
    enum kernel_class class;
    double kernels;             /* launched */
    double compute_s, memory_s; /* of the units and of the memory, at what the class attains */
    double latency_s;           /* of all of them, with what a launch takes */
    double active_j;            /* of busy units, beside those of operations and bytes */
    double padding;             /* MACs done over those needed: channels of images are padded */
    double more_bytes;          /* moved by kernels that the runtime adds */
};

/* On one device; the time that a power limit adds is not in it. */
struct kernel_estimate kernel_estimate(const struct subgraph *subgraph,
                                       const struct roofline_work *work, const struct rates *rates);

#endif
