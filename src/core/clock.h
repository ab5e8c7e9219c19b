/* The clocks, behind a replaceable table so that tests can move time.  Monotonic time orders everything, boot time
 * reveals a suspend, wall time is for timestamps that people read. */
#ifndef IPW_CORE_CLOCK_H
#define IPW_CORE_CLOCK_H

#include "core/units.h"

struct clock_source {
    nanos (*monotonic)(void);
    nanos (*boot)(void); /* monotonic plus the time spent suspended */
    nanos (*wall)(void); /* since the epoch; may step */
};

nanos clock_now(void);
nanos clock_wall(void);

/* Time spent suspended since boot; grows by the length of each suspend. */
nanos clock_suspended(void);

/* Installs another source for the whole process; NULL restores the kernel's.
 * For tests, before any thread reads a clock. */
void clock_replace(const struct clock_source *source);

#endif
