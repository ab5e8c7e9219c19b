/* What earlier starts left in a journal: which queries are done, with which settings, what was spent, and
 * which energies a kill left unsettled.  resume_release frees what resume_read filled. */
#ifndef IPW_RUNNER_PROFILE_RESUME_H
#define IPW_RUNNER_PROFILE_RESUME_H

#include <stdint.h>

#include "core/energy.h"
#include "core/err.h"
#include "metrics/intelligence.h"
#include "runner/profile/profile.h"
#include "runner/profile/supply.h"

struct json;

/* Energies of one start, or of all; UNKNOWN where nothing was measured. */
struct run_energy {
    struct energy energy;       /* of the machine while the queries ran, by the ledger */
    double accounted_joules;    /* of this start, by attribution: requests, idle and unattributed */
    double idle_joules;         /* while no request was in flight */
    double unattributed_joules; /* above idle then */
    double
        requests_joules; /* of earlier starts: every attempt, also of queries asked again since */
    double lost_joules;  /* of earlier starts: of requests whose records were lost */
    struct busy_energy busy; /* while at least one request was in flight, over covered time */
    double busy_s;           /* with at least one request in flight */
};

struct run_energy run_energy_unknown(const char *note);

struct resume {
    unsigned starts;
    unsigned ended;          /* starts that finished */
    unsigned unmeasured;     /* of those, the ones that sent requests and measured nothing */
    double started_at;       /* the first start, in s since 1970 */
    uint64_t next_index;     /* one more than that of any query with a line */
    uint64_t unrecorded;     /* requests of starts that finished: proxied.c */
    struct run_energy spent; /* by all starts; of a killed one, what its requests spent */
    struct query_set done;   /* completed queries; failed ones are asked again */
    /* Of the last start: queries that ended, and those whose energy is there; judge's grades.  Of any
     * start: queries whose judge energy is there. */
    struct query_set ended_queries, settled_queries, graded, judge_settled;
};

/* No earlier start. */
struct resume resume_nothing(void);

/* The settings that must not change within one directory, as one JSON object. */
void resume_settings(const struct profile_options *options, const char *dataset_hash,
                     struct text *out);

/* Parameters as they may be kept: headers without their values, addresses without user name and password. */
void resume_put_params(struct json *json, const char *key, const struct params *params);

/* ERR_USAGE names the setting that differs. */
enum err resume_read(const char *journal, const struct profile_options *options,
                     const char *dataset_hash, struct resume *out, struct error *why) MUST_USE;

/* The same of a journal whose settings are not known. */
enum err resume_read_any(const char *journal, unsigned repeats, struct resume *out,
                         struct error *why) MUST_USE;

/* Writes an unknown energy with the reason for every query of the last start that ended without its energy,
 * so that the journal has it once; likewise for a judge's energies.  *unsettled is how many queries that
 * were.  May be killed and repeated. */
enum err resume_close_unsettled(const struct resume *resume, const char *journal,
                                uint64_t *unsettled, struct error *why) MUST_USE;
void resume_release(struct resume *resume);

#endif
