/* Everything before the first query: facts, dataset, service, directory, idle, warm-up, files. */
#ifndef IPW_RUNNER_PROFILE_BEGINNING_H
#define IPW_RUNNER_PROFILE_BEGINNING_H

#include "core/err.h"

struct profile;
struct profile_result;

/* After an error the profile holds what had been opened, for its release. */
enum err profile_begin(struct profile *profile, struct profile_result *out, struct error *why)
    MUST_USE;

#endif
