/* What an earlier start has left in a journal: which queries are done, with which settings, and what
 * the machine spent.  resume_release gives the memory back. */
#ifndef IPW_RUNNER_PROFILE_RESUME_H
#define IPW_RUNNER_PROFILE_RESUME_H

#include "core/energy.h"
#include "core/err.h"
#include "estimate/intelligence.h"
#include "runner/profile.h"
#include "runner/profile/supply.h"

struct resume {
    struct done_set done; /* completed queries; failed ones are asked again */
    unsigned starts;
    double started_at;       /* of the first, in s since 1970 */
    unsigned ended;          /* starts that came to an end */
    bool unsettled;          /* the last one was killed before all of its energy was attributed */
    unsigned unmeasured;     /* of those, the ones that asked something and measured nothing */
    struct energy energy;    /* of all; of a start that was killed, what its requests spent */
    struct busy_energy busy; /* of those that came to an end and measured something */
    double busy_s;           /* of those that came to an end */
    double accounted_joules, idle_joules, unattributed_joules; /* of all; UNKNOWN for none */
    double requests_joules; /* of every attempt in the journal, also of queries asked again since */
};

/* No earlier start. */
struct resume resume_nothing(void);

/* The settings that must not change within one directory, as one JSON object. */
void resume_settings(const struct profile_options *options, struct text *out);

/* ERR_USAGE names the setting that differs. */
enum err resume_read(const char *journal, const struct profile_options *options, struct resume *out,
                     struct error *why) MUST_USE;
void resume_release(struct resume *resume);

#endif
