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

/* A wall time as people and programs read it, "2026-01-31T23:59:59.123Z", into the caller's buffer, which is returned. */
enum { CLOCK_TEXT_MAX = 48 };
char *clock_text(char *to, nanos wall);

/* Time spent suspended since boot, to a millisecond; grows by the length of each suspend. */
nanos clock_suspended(void);

/* Installs another source for the whole process; NULL restores the kernel's.
 * For tests, before any thread reads a clock. */
void clock_replace(const struct clock_source *source);

/* ---- the clock of another host ---- */

/* The monotonic clock of another host, in terms of ours.  The server reads its clock between our request and its answer,
 * so each exchange bounds the difference of the clocks to an interval as long as the round trip.  Later exchanges are
 * intersected with what earlier ones leave, which widens as clocks drift: the quickest answer of the last seconds counts,
 * and a path that is slow one way only cannot put the truth outside.  An exchange that contradicts the earlier ones shows
 * that a clock has stopped or stepped (a suspended host): it counts alone then.  Plain data owned by the caller. */
struct clock_offset {
    bool is_known;
    nanos low, high; /* server's less ours was in between ... */
    nanos t;         /* ... at this time of ours */
};

/* An exchange: sent and answered by our clock, `server` by the other one.  False: it contradicts the earlier ones. */
bool clock_offset_take(struct clock_offset *clock, nanos sent, nanos answered, nanos server);

/* Our time of a time of the server, and the uncertainty of that at `now`: half of the interval. */
nanos clock_offset_here(const struct clock_offset *clock, nanos server);
nanos clock_offset_error(const struct clock_offset *clock, nanos now);

#endif
