/* The loops that a calibration runs: arithmetic only, memory only, or a known mixture, each for every
 * vector width that a processor may have.  Elements are floats; the caller owns all arrays.  Pure. */
#ifndef IPW_RUNNER_MICROBENCH_KERNELS_H
#define IPW_RUNNER_MICROBENCH_KERNELS_H

#include <stddef.h>

enum {
    KERNELS_STEP = 128,    /* arrays are multiples of so many floats, aligned to 64 bytes */
    KERNELS_COMPUTE = 160, /* floats that `compute` keeps in registers, at most */
    KERNELS_GEMM = 256,    /* rows and columns of the matrices of `gemm` */
};

struct kernels {
    const char *name; /* "avx2" */
    /* x = -x + b, `steps` times, over as many floats as fit into registers; returns how many. */
    size_t (*compute)(float *x, float b, size_t steps);
    /* The same for every float of an array, `steps` times each while it is in a register. */
    void (*mix)(float *x, size_t count, float b, size_t steps);
    /* a = b + s c. */
    void (*triad)(float *a, const float *b, const float *c, float s, size_t count);
    /* c += a b, all square of KERNELS_GEMM. */
    void (*gemm)(float *c, const float *a, const float *b);
};

/* All that this processor can run, the best last, NULL-terminated. */
const struct kernels *const *kernels_all(void);

#endif
