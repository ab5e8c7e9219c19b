/* Threads that run one load side by side, each on memory of its own, and count their work.
 * team_start allocates a team that team_stop ends and frees; team_done may be called at any time
 * between. */
#ifndef IPW_RUNNER_MICROBENCH_TEAM_H
#define IPW_RUNNER_MICROBENCH_TEAM_H

#include <stddef.h>

#include "core/err.h"

enum team_load {
    TEAM_COMPUTE, /* multiply-adds in registers; no memory */
    TEAM_MIX,     /* `steps` of them for every float of an array larger than all caches */
    TEAM_TRIAD,   /* a = b + s c over three such arrays */
    TEAM_GEMM,    /* products of matrices that fit into caches */
    TEAM_BARRIER, /* barriers only, as at the end of every parallel loop */
};

struct team_order {
    enum team_load load;
    size_t steps;      /* of TEAM_MIX */
    unsigned threads;  /* at least 1 */
    size_t bytes_each; /* of memory for each thread */
};

struct team_work {
    double flops, bytes;
    double barriers;
};

struct team;

enum err team_start(const struct team_order *order, struct team **out, struct error *why) MUST_USE;
struct team_work team_done(const struct team *team);
void team_stop(struct team *team);

#endif
