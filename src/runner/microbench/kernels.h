/* Loops that are nothing but arithmetic, nothing but memory, or a known mixture: what a calibration runs.
 * Each comes for every width of vectors that a processor may have.
 * Numbers are floats; the caller owns all arrays.  Pure. */
#ifndef IPW_RUNNER_MICROBENCH_KERNELS_H
#define IPW_RUNNER_MICROBENCH_KERNELS_H

#include <stddef.h>

enum {
    KERNELS_STEP = 128,    /* arrays are multiples of so many floats, and begin at 64 bytes */
    KERNELS_COMPUTE = 160, /* floats that `compute` keeps in registers, at most */
    KERNELS_GEMM = 256,    /* rows and columns of the matrices of `gemm` */
};

struct kernels {
    const char *name; /* "avx2" */
    /* x = -x + b, `steps` times, over as many floats as registers hold: returns how many those are. */
    size_t (*compute)(float *x, float b, size_t steps);
    /* The same of every float of an array, `steps` times each while it is in a register. */
    void (*mix)(float *x, size_t count, float b, size_t steps);
    /* a = b + s c. */
    void (*triad)(float *a, const float *b, const float *c, float s, size_t count);
    /* c += a b, all square of KERNELS_GEMM. */
    void (*gemm)(float *c, const float *a, const float *b);
};

/* All that this processor can run, the best last; its end is NULL. */
const struct kernels *const *kernels_all(void);

#endif
