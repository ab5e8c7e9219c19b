/* What one start comes to: the energy of the machine while its queries were asked, and what attribution
 * made of it.  Plain data, nothing to own. */
#ifndef IPW_RUNNER_PROFILE_START_SUMS_H
#define IPW_RUNNER_PROFILE_START_SUMS_H

#include "attribute/ledger.h"
#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"
#include "metrics/intelligence.h"

struct sampler;
struct sharing;
struct text;

struct start_sums {
    struct energy energy;                                      /* by the ledger */
    double accounted_joules, idle_joules, unattributed_joules; /* UNKNOWN for none */
    struct busy_energy
        busy;      /* while at least one request was alive; its seconds are covered ones */
    double busy_s; /* with at least one request alive */
};

/* Nothing was asked: what the machine did meanwhile is no query's. */
struct start_sums start_sums_nothing(void);

/* Adds up what was settled since `from`.  *ledger is the caller's to release, after success only. */
enum err start_sums_take(struct sampler *sampler, const struct sharing *sharing, nanos from,
                         const struct baseline *idle, struct start_sums *out, struct ledger *ledger,
                         struct error *why) MUST_USE;

/* An unknown sum becomes its first known part. */
void joules_add_known(double *sum, double part);

/* The journal's end line. */
void start_sums_line(const struct start_sums *sums, unsigned start, double ended_at,
                     struct text *line);

#endif
