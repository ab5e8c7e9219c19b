/* When each start of a run began, on the wall clock: second 0 of its spans and samples.  A struct starts owns
 * its array: starts_read, starts_release. */
#ifndef IPW_RUNDIR_STARTS_H
#define IPW_RUNDIR_STARTS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct starts {
    int64_t *zero_ns; /* of start i + 1; 0 where it is not known */
    size_t count, capacity;
};

/* None, and no error, where there is no journal. */
enum err starts_read(const char *directory, struct starts *out, struct error *why) MUST_USE;
void starts_release(struct starts *starts);

#endif
