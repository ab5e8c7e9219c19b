/* Settling: the energy of the machine is shared among the requests, and each one's share goes to the journal
 * as soon as it is known; at the end of a start its account does.  The sharing and the ledger that this
 * makes belong to struct profile. */
#ifndef IPW_RUNNER_PROFILE_SETTLE_H
#define IPW_RUNNER_PROFILE_SETTLE_H

#include "attribute/share.h"
#include "core/err.h"
#include "core/units.h"
#include "runner/profile/resume.h"

struct profile;

/* Requests share the machine's energy from `from` on; an earlier sharing is freed.  take gets the share of
 * each that is settled, with the profile as its context, and writes it to the journal. */
enum err settle_begin(struct profile *profile, nanos from, sharing_take *take, struct error *why)
    MUST_USE;

/* Settles what is left when all requests have ended. */
enum err settle_rest(struct profile *profile, struct error *why) MUST_USE;

/* The run line: a start begins with its queries at `from`. */
enum err settle_open_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* The end line, with what was spent since `from`. */
enum err settle_close_account(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* All starts. */
struct run_energy settle_totals(const struct profile *profile);

#endif
