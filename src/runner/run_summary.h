/* What every kind of measurement says of its machine: in the summary of a run, and in the records of its stores.
 * The texts stay those of the host, the baseline and the ledger, which must outlive the summary. */
#ifndef IPW_RUNNER_RUN_SUMMARY_H
#define IPW_RUNNER_RUN_SUMMARY_H

#include "core/err.h"

struct baseline;
struct host_report;
struct ledger;
struct record;
struct summary;

void run_summary_host(const struct host_report *host, struct summary *out);
void run_record_host(const struct host_report *host, struct record *out);

/* Idle power and the energy of each device; either may be NULL.  ERR_NO_MEMORY is the only error. */
enum err run_summary_devices(const struct baseline *idle, const struct ledger *ledger,
                             struct summary *out) MUST_USE;

#endif
