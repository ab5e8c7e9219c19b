/* Built-in loads, measured by the sensors of a session: idle, arithmetic, memory, mixtures of both and matrix products,
 * on all cores of this machine.  The result is rows for calibration, owned by the caller. */
#ifndef IPW_RUNNER_MICROBENCH_MICROBENCH_H
#define IPW_RUNNER_MICROBENCH_MICROBENCH_H

#include <stdbool.h>

#include "core/err.h"
#include "estimate/calibrate_rows.h"

struct session;

struct microbench_options {
    double seconds;       /* total of all windows; each is longer if a sensor needs it */
    unsigned threads;     /* 0: one per CPU */
    const char *device;   /* device of the ledger, "cpu0"; NULL: all processors and their memory */
    bool allow_estimated; /* accept joules estimated by a model */
    bool only_rates;      /* skip the windows that measure energy, which one call covers */
    bool requires_energy; /* fail without an energy meter instead of measuring rates only */
    void (*progress)(const char *load, unsigned done, unsigned all); /* may be NULL */
};

struct microbench_meter {
    char devices[96];     /* devices whose joules are used: "cpu0 + dram0" */
    char source[192];     /* names of the sensors */
    double window_s;      /* of each row */
    double min_cpu_share; /* of a window in which its threads had a CPU, over all rows */
    unsigned threads;
    char host[96];       /* the CPU, as this machine names it */
    char no_energy[240]; /* why rows have no joules; or "" */
    int signal;          /* that ended the measurement; or 0 */
};

/* Appends rows.  With `requires_energy`, ERR_NO_DATA if nothing measures the processor (naming what is measured), and
 * ERR_BAD_VALUE if only a model does.  ERR_INTERRUPTED with meter->signal. */
unsigned microbench_threads(const struct microbench_options *options); /* that will be used */
enum err microbench_measure(struct session *session, const struct microbench_options *options,
                            struct calibrate_rows *rows, struct microbench_meter *meter,
                            struct error *why) MUST_USE;

#endif
