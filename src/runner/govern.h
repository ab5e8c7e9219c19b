/* Holding an SLO with the least energy: a loop that reads a server's latency and a GPU's power, asks the control law
 * (power/governor.h) and sets the clock or the power limit (runner/gpu_control.h).
 *
 *     struct govern_options options = {...};
 *     err = govern_execute(&options, &watch, &result, &why);
 *
 * Whatever ends it, the GPU goes back to the state that it was found in. */
#ifndef IPW_RUNNER_GOVERN_H
#define IPW_RUNNER_GOVERN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"
#include "power/governor.h"
#include "sensors/sensor.h"

enum govern_metric { GOVERN_TTFT, GOVERN_ITL, GOVERN_METRICS };

struct govern_options {
    const char *devices;          /* "": the only GPU */
    enum sensor_knob knob;        /* KNOB_GRAPHICS_CLOCK or KNOB_POWER_LIMIT */
    double slo_s[GOVERN_METRICS]; /* UNKNOWN: none */
    double max_power_w;           /* UNKNOWN: none */
    double lowest;           /* MHz or W; UNKNOWN: half of the highest clock, the lowest limit */
    const char *metrics_url; /* of a Prometheus endpoint; NULL without an SLO of latency */
    const char *model, *application; /* a file of `ipw power fit`; NULL: none; the only one */
    nanos interval, duration;        /* duration 0: until a signal */
    bool dry_run;                    /* sets nothing */
};

/* What was read in one interval, and what was decided; UNKNOWN where there is no reading. */
struct govern_step {
    double t_s;                       /* since the start */
    double latency_s[GOVERN_METRICS]; /* 95th percentile, or a mean */
    bool is_mean[GOVERN_METRICS];     /* the server reports no distribution */
    double observations;              /* of the metric with the fewest */
    double power_w, clock_mhz, utilization, tokens_per_s;
    double setting;                    /* in force from now on; UNKNOWN: the default */
    struct governor_decision decision; /* in a dry run: what would be set */
    double decided;                    /* its setting; UNKNOWN: the default */
    bool is_violated;                  /* an SLO or the power cap */
    const char *problem;               /* why there is no latency; NULL: there is */
};

struct govern_result {
    char device[48], name[96];               /* of the GPU */
    const char *metric_name[GOVERN_METRICS]; /* as the server calls it; NULL: not read */
    double
        bounds_s[GOVERN_METRICS]
                [2]; /* of its bucket that has the SLO, the last to INFINITY; UNKNOWN: no buckets */
    double seconds;
    size_t steps, readings, violations, changes;
    double default_w, governed_w; /* mean power with readings at the default, and below it */
    struct energy energy;         /* of the GPU, the whole time */
    int signal;                   /* that ended it; 0: duration */
    bool was_set;                 /* something was, and has been restored */
};

/* Calls back at the start and after each interval; an error ends it. */
struct govern_watch {
    void (*begin)(void *context, const struct govern_result *result);
    enum err (*step)(void *context, const struct govern_step *step, struct error *why);
    void *context;
};

/* Signals must be blocked (proc_block_signals).  ERR_DENIED, ERR_UNSUPPORTED and ERR_ABSENT: control is refused, and a
 * dry run is possible.  ERR_NOT_FOUND: the server has no such metric. */
enum err govern_execute(const struct govern_options *options, const struct govern_watch *watch,
                        struct govern_result *out, struct error *why) MUST_USE;

#endif
