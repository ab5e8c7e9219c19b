/* All that one profile owns, so that one release gives it back.  Owned by profile.c. */
#ifndef IPW_RUNNER_PROFILE_WHOLE_H
#define IPW_RUNNER_PROFILE_WHOLE_H

#include <stdbool.h>
#include <stdint.h>

#include "attribute/ledger.h"
#include "runner/profile/keeping.h"
#include "runner/profile/place.h"
#include "runner/profile/run.h"
#include "runner/profile/service.h"
#include "runner/profile/start_sums.h"
#include "runner/samples_csv.h"

struct prices;

struct profile {
    struct profile_run run;
    struct place place;
    struct service_facts service;
    struct baseline idle;
    bool has_idle, has_supply, has_files;
    struct prices *prices;
    struct samples_log samples;
    int samples_fd;
    enum err samples_err;
    struct ledger ledger; /* while the queries ran */
    bool has_ledger;
    struct start_sums sums;
    struct keeping keeping;
    double cpu_s_before;
    bool abandoned; /* an impatient user left workers behind that still use all of this */
};

void profile_warn(const struct profile *profile, const char *line);

/* From here on the progress is that of another phase; total is -1 when it is not known. */
void profile_phase(struct profile *profile, const char *phase, int64_t total);

#endif
