/* Built-in loads, measured by the sensors of a session: idle, arithmetic, memory, mixtures of both and
 * matrix products, on all cores of this machine.  The result is rows to calibrate by, which the caller
 * owns. */
#ifndef IPW_RUNNER_MICROBENCH_MICROBENCH_H
#define IPW_RUNNER_MICROBENCH_MICROBENCH_H

#include <stdbool.h>

#include "core/err.h"
#include "estimate/calibrate_rows.h"

struct session;

struct microbench_options {
    double seconds;       /* of all windows together; each is longer where a sensor needs it */
    unsigned threads;     /* 0: one per CPU */
    const char *device;   /* of the ledger, "cpu0"; NULL: all processors and their memory */
    bool allow_estimated; /* accept joules estimated by a model */
    bool only_rates;      /* nothing where energy is measured: then one call measures all of it */
    bool requires_energy; /* else without a meter rates are measured all the same */
    void (*progress)(const char *load, unsigned done, unsigned all); /* may be NULL */
};

struct microbench_meter {
    char devices[96]; /* whose joules they are: "cpu0 + dram0" */
    char source[192]; /* of the sensors */
    double window_s;  /* of each row */
    double ran_least; /* share of a window that its threads had a CPU, the least of all rows */
    unsigned threads;
    char host[96];       /* the CPU, as this machine names it */
    char no_energy[240]; /* why rows have no joules; "" */
    int signal;          /* that ended it; 0 */
};

/* Adds rows.  With `requires_energy`, ERR_NO_DATA when nothing measures the processor, naming what is measured, and
 * ERR_BAD_VALUE when only a model does.  ERR_INTERRUPTED with meter->signal. */
unsigned microbench_threads(const struct microbench_options *options); /* that it will use */
enum err microbench_measure(struct session *session, const struct microbench_options *options,
                            struct calibrate_rows *rows, struct microbench_meter *meter,
                            struct error *why) MUST_USE;

#endif
