/* The end of a profile: sums over the journal, summary.json, and the stores made of it. */
#ifndef IPW_RUNNER_PROFILE_FINISH_H
#define IPW_RUNNER_PROFILE_FINISH_H

#include <stdbool.h>

#include "attribute/ledger.h"
#include "core/energy.h"
#include "core/err.h"
#include "metrics/intelligence.h"
#include "port/proc.h"
#include "runner/profile.h"

struct profile_context;
struct sums;

struct finish_facts {
    const char *directory;
    const char *dataset_name;
    const char *client_info;     /* one JSON object; may be NULL */
    const char *base_url;        /* as used */
    const struct ledger *ledger; /* of this start, while the queries ran; NULL when there is none */
    const struct baseline *idle; /* NULL without */
    struct energy energy;        /* of all starts */
    struct busy_energy busy;     /* while at least one query was under way, all starts */
    double busy_s;               /* how long that was; UNKNOWN when a start cannot tell */
    double requests_joules; /* every attempt of all starts, also of queries asked again since */
    unsigned starts;
    double started_at; /* the first of them, in s since 1970 */
    double conservation_error;
    double idle_joules; /* in time without requests, all starts; so is the next */
    double unattributed_joules;
    uint64_t bad_rows;
    const char *first_bad;
    bool interrupted;
    struct own_cost own;
    unsigned long reads;
};

/* Fills the result's counts, summary and report, and writes everything into the directory. */
enum err finish_run(const struct profile_context *context, const struct finish_facts *facts,
                    struct profile_result *result, struct error *why) MUST_USE;

#endif
