/* Names of runs that stand together, by what differs between them: model, hardware, dataset, concurrency; by their
 * setting where they are of one sweep, by their directory where nothing differs.  Tables, plots and pages all name runs by these. */
#ifndef IPW_ANALYSIS_RUN_NAMES_H
#define IPW_ANALYSIS_RUN_NAMES_H

#include <stddef.h>

#include "core/err.h"

struct run_point;

enum { RUN_NAME_MAX = 256 };

/* The caller's to release. */
struct run_names {
    char family[RUN_NAME_MAX];   /* how all models begin, which no name repeats: "ipw"; "" */
    char (*names)[RUN_NAME_MAX]; /* none twice */
    size_t count;
};

/* At most about `letters` each; 0: whole.  Of a longer name the middle of the model's is left out. */
enum err run_names_of(const struct run_point *const *points, size_t count, size_t letters,
                      struct run_names *out) MUST_USE;
void run_names_release(struct run_names *names);

#endif
