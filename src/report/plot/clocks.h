/* The clock at which a run was done, out of its samples.  Nothing here keeps state. */
#ifndef IPW_REPORT_PLOTS_CLOCKS_H
#define IPW_REPORT_PLOTS_CLOCKS_H

#include <stdbool.h>

#include "core/err.h"

struct busy_clock {
    double mhz; /* mean over the time in which requests ran */
    bool is_cpu;
};

/* Of the GPU that was busiest; of the CPU where no GPU has a clock or none did anything.  ERR_NO_DATA
 * without samples, spans, or such a clock. */
enum err busy_clock_read(const char *directory, struct busy_clock *out, struct error *why) MUST_USE;

#endif
