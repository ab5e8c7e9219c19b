/* Telling devices apart.  Drivers number their own cards from 0 and never look at each other; here
 * one card seen twice is refused, two cards that both came as "gpu0" get names and places of their
 * own, and a device that was lost is known again when it comes back. */
#ifndef IPW_SAMPLER_IDENTITY_H
#define IPW_SAMPLER_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "sensors/sensor.h"

/* Fits `added` in beside the others (all of the sampler's sensors so far).  ERR_UNSUPPORTED when it
 * is a card that one of them measures already. */
enum err identity_settle(const struct sensor *const *others, size_t count, struct sensor *added,
                         struct error *why) MUST_USE;

/* Do readings of `now` continue those of `before`?  A number may pass to a neighbour when a card
 * falls off the bus: its joules must not be added to the lost one's. */
bool identity_continues(const struct sensor *before, const struct sensor *now);

#endif
