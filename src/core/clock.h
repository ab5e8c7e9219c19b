/* The clocks, behind a replaceable table so that tests can move time.  Monotonic time orders everything, boot time
 * reveals a suspend, wall time is for timestamps that people read. */
#ifndef IPW_CORE_CLOCK_H
#define IPW_CORE_CLOCK_H

#include <stdbool.h>

#include "core/units.h"

struct clock_source {
    nanos (*monotonic)(void);
    nanos (*boot)(void); /* monotonic plus the time spent suspended */
    nanos (*wall)(void); /* since the epoch; may step */
};

nanos clock_now(void);
nanos clock_wall(void);

/* Wall time minus monotonic time, to a millisecond also when the thread is preempted between the two reads. */
nanos clock_wall_offset(void);

/* Formats a wall time as "2026-01-31T23:59:59.123Z" into the caller's buffer, and returns that buffer. */
enum { CLOCK_TEXT_MAX = 48 };
char *clock_text(char *to, nanos wall);

/* Time spent suspended since boot, to a millisecond; grows by the length of each suspend. */
nanos clock_suspended(void);

/* Installs another source for the whole process; NULL restores the kernel's.
 * For tests, before any thread reads a clock. */
void clock_replace(const struct clock_source *source);

/* ---- the clock of another host ---- */

/* The monotonic clock of another host, relative to ours.  The server reads its clock between our request and its
 * answer, so each exchange bounds the clock offset to an interval as long as the round trip.  The interval widens
 * as clocks drift and is intersected with that of each later exchange: the fastest answer of the last seconds
 * dominates, and an asymmetric path cannot exclude the true offset.  An exchange that contradicts the earlier ones
 * means that a clock stopped or stepped (a suspended host): the estimate restarts from it.  Plain data owned by the
 * caller. */
struct clock_offset {
    bool is_known;
    nanos low, high; /* bounds of (server's clock - ours) ... */
    nanos t;         /* ... at this time of ours */
};

/* Adds an exchange: sent and answered by our clock, `server` by the other one.  False: it contradicts the earlier
 * ones. */
bool clock_offset_add(struct clock_offset *clock, nanos sent, nanos answered, nanos server);

/* Converts a time of the server to our clock; and the uncertainty of the conversion at `now`, half of the interval. */
nanos clock_offset_to_local(const struct clock_offset *clock, nanos server);
nanos clock_offset_error(const struct clock_offset *clock, nanos now);

#endif
