/* The full-screen view of `ipw energy`. */
#ifndef IPW_CLI_ENERGY_LIVE_H
#define IPW_CLI_ENERGY_LIVE_H

#include "core/units.h"

struct energy;
struct session;

/* Shows the session until the user quits; leaves the totals on the terminal and in *total.
 * Returns the exit code. */
int energy_live(struct session *session, nanos start, nanos interval, struct energy *total);

#endif
