/* A sweep on Slurm: each point is an element of a job array, which measures it as `ipw sweep --resume SWEEP --point K`
 * and keeps the result in the point's folder; whoever follows the array collects the results into the sweep.
 *
 * The caller owns the sweep and its writer. */
#ifndef IPW_RUNNER_SWEEP_ARRAY_H
#define IPW_RUNNER_SWEEP_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct run_writer;
struct slurm_follow;
struct slurm_options;
struct sweep;

/* Writes a script for the points that are left and in no queue, or several where they are many, and submits them
 * unless told not to.  *count: points.  `wrote`: is told of each script, with the job's number or NULL. */
enum err sweep_array_submit(struct sweep *sweep, struct run_writer *writer,
                            const struct slurm_options *options, bool submit,
                            void (*wrote)(const char *script, const char *job), size_t *count,
                            struct error *why) MUST_USE;

/* Collects results until all points are measured or no element is queued; *left is how many points are not.  collect
 * and context of `view` are not used. */
enum err sweep_array_follow(struct sweep *sweep, struct run_writer *writer,
                            const struct slurm_follow *view, size_t *left, int *signal,
                            struct error *why) MUST_USE;

/* sweep_open_point for an element: one that was requeued waits for its predecessor to end. */
enum err sweep_array_open_point(struct sweep *sweep, const char *directory, size_t point,
                                struct run_writer *writer, struct error *why) MUST_USE;

#endif
