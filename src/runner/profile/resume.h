/* What earlier starts left in a journal: which queries are done, with which settings, what the machine
 * spent, and which energies a kill left unsettled.  resume_release frees what resume_read filled. */
#ifndef IPW_RUNNER_PROFILE_RESUME_H
#define IPW_RUNNER_PROFILE_RESUME_H

#include "core/energy.h"
#include "core/err.h"
#include "metrics/intelligence.h"
#include "runner/profile.h"
#include "runner/profile/supply.h"

struct resume {
    struct query_set done; /* completed queries; failed ones are asked again */
    unsigned starts;
    double started_at;       /* of the first, in s since 1970 */
    unsigned ended;          /* starts that came to an end */
    unsigned unmeasured;     /* of those, the ones that asked something and measured nothing */
    struct energy energy;    /* of all; of a start that was killed, what its requests spent */
    struct busy_energy busy; /* of those that came to an end and measured something */
    double busy_s;           /* of those that came to an end */
    double accounted_joules, idle_joules, unattributed_joules; /* of all; UNKNOWN for none */
    double requests_joules; /* of every attempt in the journal, also of queries asked again since */
    struct query_set ended_queries, settled_queries; /* of the last start */
    struct query_set graded;                         /* by a judge, in the last start */
    struct query_set judge_settled;                  /* the judge's energy is there, any start */
};

/* No earlier start. */
struct resume resume_nothing(void);

/* The settings that must not change within one directory, as one JSON object. */
void resume_settings(const struct profile_options *options, struct text *out);

/* ERR_USAGE names the setting that differs. */
enum err resume_read(const char *journal, const struct profile_options *options, struct resume *out,
                     struct error *why) MUST_USE;

/* Gives every query of the last start that ended without its energy an unknown one with the reason, in
 * the journal, so that it is there once; likewise the energies of a judge.  *unsettled is how many
 * queries that were.  May be killed and repeated. */
enum err resume_close_unsettled(const struct resume *resume, const char *journal,
                                uint64_t *unsettled, struct error *why) MUST_USE;
void resume_release(struct resume *resume);

#endif
