/* Device identity.  Drivers number their own cards from 0 and never see each other; here one card that
 * two drivers report is refused, two cards that are both called "gpu0" get names and locations of
 * their own, and a lost device is recognized when it comes back.  Owns nothing. */
#ifndef IPW_SAMPLER_IDENTITY_H
#define IPW_SAMPLER_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "sensors/sensor.h"

/* Makes the names of `added` unique among the others (all of the sampler's sensors so far).
 * ERR_UNSUPPORTED when it is a card that one of them measures already. */
enum err identity_check(const struct sensor *const *others, size_t count, struct sensor *added,
                        struct error *why) MUST_USE;

/* Whether readings of `now` continue those of `before`.  An index may pass to a neighboring card when
 * a card falls off the bus: its joules must not be added to the lost one's. */
bool identity_continues(const struct sensor *before, const struct sensor *now);

#endif
