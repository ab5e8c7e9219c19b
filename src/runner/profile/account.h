/* The account of one start: its first and last line in the journal, what the machine spent while the
 * queries ran, and what attribution made of it, with that of earlier starts. */
#ifndef IPW_RUNNER_PROFILE_ACCOUNT_H
#define IPW_RUNNER_PROFILE_ACCOUNT_H

#include "core/err.h"
#include "core/units.h"

struct finish_facts;
struct profile;

/* Writes the run line: the account of the queries begins at `from`. */
enum err account_open(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* Energy is shared among requests from here on; an earlier sharing is given back. */
enum err account_share(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* Adds up what was settled since `from` and writes the end line. */
enum err account_close(struct profile *profile, nanos from, struct error *why) MUST_USE;

/* Fills the energies of all starts. */
void account_totals(const struct profile *profile, struct finish_facts *out);

#endif
