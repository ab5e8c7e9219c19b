/* State of earlier starts from the journal: completed queries, settings, energy, and energies left unsettled by a kill.
 * resume_release frees what resume_read filled. */
#ifndef IPW_RUNNER_PROFILE_RESUME_H
#define IPW_RUNNER_PROFILE_RESUME_H

#include <stdint.h>

#include "core/energy.h"
#include "core/err.h"
#include "metrics/intelligence.h"
#include "runner/profile/profile.h"
#include "runner/profile/supply.h"

struct jv;

/* Energies of one start, or of all; UNKNOWN if not measured. */
struct run_energy {
    struct energy energy;       /* of the machine while queries ran, by the ledger */
    double accounted_joules;    /* of this start, by attribution: requests, idle and unattributed */
    double idle_joules;         /* while no request was in flight */
    double unattributed_joules; /* active energy during that time */
    double requests_joules; /* of earlier starts: every attempt, also of queries sent again since */
    double lost_joules;     /* of earlier starts: of requests whose records were lost */
    struct busy_energy busy; /* while at least one request was in flight, over covered time */
    double busy_s;           /* with at least one request in flight */
};

struct run_energy run_energy_unknown(const char *note);

struct resume {
    unsigned starts;
    unsigned ended;          /* starts that finished */
    unsigned unmeasured;     /* finished starts that sent requests but measured nothing */
    double started_at;       /* start time of the first, in s since 1970 */
    uint64_t next_index;     /* one more than the highest index of a query line */
    uint64_t unrecorded;     /* requests of finished starts without a record: proxied.c */
    uint64_t unknown;        /* likewise, inference at endpoints that are not recorded */
    double unknown_joules;   /* of these */
    char unknown_path[96];   /* of the first one; "" */
    struct run_energy spent; /* by all starts; for a killed one, by its requests */
    struct query_set done;   /* completed queries; failed ones are sent again */
    /* Of the last start: queries that ended, those with an energy, and those with a judge's grade.  Of any start:
     * queries with a judge's energy. */
    struct query_set ended_queries, settled_queries, graded, judge_settled;
};

/* State without an earlier start. */
struct resume resume_nothing(void);

/* The settings that must not change within a directory, as an object with secrets hidden, to be freed with jv_free;
 * NULL: out of memory. */
struct jv *resume_settings(const struct profile_options *options, const char *dataset_hash);

/* Parameters for storage, likewise: headers without their values, URLs without user name and password. */
struct jv *resume_params(const struct params *params);

/* ERR_USAGE names the setting that differs. */
enum err resume_read(const char *journal, const struct profile_options *options,
                     const char *dataset_hash, struct resume *out, struct error *why) MUST_USE;

/* The same for a journal whose settings are not compared. */
enum err resume_read_any(const char *journal, unsigned repeats, struct resume *out,
                         struct error *why) MUST_USE;

/* Writes an unknown energy with the reason for every query of the last start that ended without its energy, so that the
 * journal has exactly one; likewise for judges' energies.  *unsettled is the number of queries.  May be killed and
 * repeated. */
enum err resume_close_unsettled(const struct resume *resume, const char *journal,
                                uint64_t *unsettled, struct error *why) MUST_USE;
void resume_release(struct resume *resume);

#endif
