/* Threads that run one load concurrently, each on its own memory, and count their work. team_start allocates a team
 * that team_stop ends and frees; team_done may be called at any time in between. */
#ifndef IPW_RUNNER_MICROBENCH_TEAM_H
#define IPW_RUNNER_MICROBENCH_TEAM_H

#include <stddef.h>

#include "core/err.h"

enum team_load {
    TEAM_COMPUTE, /* multiply-adds in registers; no memory */
    TEAM_MIX,     /* `steps` multiply-adds for every float of an array larger than all caches */
    TEAM_TRIAD,   /* a = b + s c over three such arrays */
    TEAM_GEMM,    /* products of matrices that fit into the caches */
    TEAM_BARRIER, /* barriers only, as at the end of every parallel loop */
};

struct team_order {
    enum team_load load;
    size_t steps;      /* for TEAM_MIX */
    unsigned threads;  /* at least 1 */
    size_t bytes_each; /* memory of each thread */
};

struct team_work {
    double flops, bytes;
    double barriers;
    double ran_s;     /* CPU time of all threads */
    double barrier_s; /* minimum time of one barrier; 0: none yet */
};

/* ---- the loops: arithmetic only, memory only, or a known mixture, each for every vector width that a processor may
 * have.  Elements are floats; the caller owns all arrays ---- */

enum {
    KERNELS_STEP = 128,    /* arrays are multiples of this many floats, aligned to 64 bytes */
    KERNELS_COMPUTE = 160, /* maximum number of floats that `compute` keeps in registers */
    KERNELS_GEMM = 256,    /* rows and columns of the matrices of `gemm` */
};

struct kernels {
    /* x = -x + b, `steps` times, over as many floats as fit into registers; returns how many. */
    size_t (*compute)(float *x, float b, size_t steps);
    /* The same for every float of an array, `steps` times each while it is in a register. */
    void (*mix)(float *x, size_t count, float b, size_t steps);
    /* a = b + s c. */
    void (*triad)(float *a, const float *b, const float *c, float s, size_t count);
    /* c += a b, all square of KERNELS_GEMM. */
    void (*gemm)(float *c, const float *a, const float *b);
};

/* All variants that this processor supports, the best last, NULL-terminated. */
const struct kernels *const *kernels_all(void);

/* ---- the team ---- */

struct team;

enum err team_start(const struct team_order *order, struct team **out, struct error *why) MUST_USE;
struct team_work team_done(const struct team *team);
unsigned team_size(const struct team *team);
void team_stop(struct team *team);

#endif
