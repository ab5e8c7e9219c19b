/* Holding an SLO with the least energy: a loop that reads a server's latency and a GPU's power, evaluates the control
 * law (power/governor.h) and sets the clock or the power limit (runner/gpu_control.h).
 *
 *     struct govern_options options = {...};
 *     err = govern_execute(&options, &watch, &result, &why);
 *
 * However it ends, the GPU is restored to its initial state. */
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
    const char *devices;           /* "": the only GPU */
    enum gpu_knob knob;            /* KNOB_GRAPHICS_CLOCK or KNOB_POWER_LIMIT */
    double slo_ms[GOVERN_METRICS]; /* UNKNOWN: none */
    double max_power_w;            /* UNKNOWN: none */
    double lowest;           /* MHz or W; UNKNOWN: half of the highest clock, the lowest limit */
    const char *metrics_url; /* Prometheus endpoint; NULL without a latency SLO */
    const char *model, *application; /* of `ipw power fit`; NULL: none; NULL: the only one */
    nanos interval, duration;        /* duration 0: until a signal */
    bool dry_run;                    /* change nothing */
};

/* Readings and decision of one interval; UNKNOWN values were not read. */
struct govern_step {
    double t_s;                       /* since the start */
    double latency_s[GOVERN_METRICS]; /* 95th percentile, or a mean */
    bool is_mean[GOVERN_METRICS];     /* the server reports no distribution */
    double observations;              /* of the metric with the fewest */
    double power_w, clock_mhz, utilization, tokens_per_s;
    double setting;                    /* now set; UNKNOWN: the default */
    struct governor_decision decision; /* in a dry run: the setting that would be made */
    double decided;                    /* setting of the decision; UNKNOWN: the default */
    bool is_violated;                  /* an SLO or the power cap is violated */
    const char *problem;               /* why there is no latency; NULL: there is one */
};

struct govern_result {
    char device[48], name[96];               /* of the GPU */
    const char *metric_name[GOVERN_METRICS]; /* the server's name for it; NULL: not read */
    double bounds_s[GOVERN_METRICS]
                   [2]; /* bounds of the SLO's bucket, the last up to INFINITY; UNKNOWN: none */
    double seconds;
    size_t steps, readings, violations, changes;
    double default_w, governed_w; /* mean power at the default, and below it */
    struct energy energy;         /* of the GPU, over the whole time */
    int signal;                   /* that ended the loop; 0: duration reached */
    bool was_set;                 /* a setting was changed and has been restored */
};

/* Callbacks at the start and after each interval; an error ends the loop. */
struct govern_watch {
    void (*begin)(void *context, const struct govern_result *result);
    enum err (*step)(void *context, const struct govern_step *step, struct error *why);
    void *context;
};

/* Signals must be blocked (proc_block_signals).  ERR_DENIED, ERR_UNSUPPORTED and ERR_ABSENT: control is not possible,
 * but a dry run is.  ERR_NOT_FOUND: the server has no such metric. */
enum err govern_execute(const struct govern_options *options, const struct govern_watch *watch,
                        struct govern_result *out, struct error *why) MUST_USE;

#endif
