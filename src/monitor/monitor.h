/* The monitor: samples a machine for as long as it runs and serves what it draws as metrics over HTTP.
 *
 * A scrape is answered from the last update and never calls a sensor.  Counters only grow, whatever happens to a
 * sensor and over a reload; a sensor that gives no readings has no samples but those of its health. */
#ifndef IPW_MONITOR_MONITOR_H
#define IPW_MONITOR_MONITOR_H

#include <stdbool.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"
#include "sensors/sensor.h"

struct monitor_options {
    const char *address; /* to listen on; NULL: no metrics over HTTP */
    unsigned port;       /* 0: any that is free */
    const char *token;   /* required of every scrape; NULL: none, for loopback addresses only ... */
    bool is_open;        /* ... unless this is set */
    const char *drivers; /* comma-separated names; NULL for all */
    const char *devices; /* GPUs; NULL for the visible ones */
    nanos interval;      /* between updates, and between reads of a sensor */
    unsigned processes;  /* that have series of their own, and as many cgroups; 0: no attribution */
    const char *grpc_address; /* of energy-monitor, which is started; NULL: none */
    unsigned grpc_port;
    const char *otlp_url; /* of a receiver that gets metrics; NULL: none */
    nanos otlp_interval;
    int telemetry_fd; /* readings for an energy-monitor that started us; -1: none */
    void (*listening)(unsigned port);
};

/* Runs until SIGINT or SIGTERM, whose number is *signal; SIGHUP opens all sensors anew.  Blocks these signals: call
 * before any thread starts. */
enum err monitor_run(const struct monitor_options *options, int *signal, struct error *why)
    MUST_USE;

/* ---- the same readings, for a program that shows them itself ---- */

/* What one sensor measures of one thing.  UNKNOWN where it is not known. */
struct monitor_device {
    char id[96];        /* "gpu0/gpu", "cpu0/package" */
    char name[96];      /* of the device */
    const char *kind;   /* "cpu", "gpu", "platform" */
    const char *source; /* id of the sensor */
    const char *health; /* "ok", "stale", "lost" */
    enum method method;
    double power_w, energy_j; /* the energy since the view was opened */
    double relative_accuracy;
    double utilization; /* 0..1 */
    double memory_used, temperature_c, clock_hz;
    double age_s;    /* of the newest reading */
    bool is_counted; /* a term of the machine's total: no other one contains it */
};

enum monitor_gauge { MONITOR_HOST_UTILIZATION, MONITOR_HOST_MEMORY };

struct monitor_view;

/* As monitor_options have them.  A machine without sensors has a view without devices. */
enum err monitor_view_open(const char *drivers, const char *devices, nanos interval,
                           struct monitor_view **out, struct error *why) MUST_USE;
void monitor_view_close(struct monitor_view *view);
/* Takes what the sampler has by now; once per interval. */
void monitor_view_update(struct monitor_view *view, nanos now);
/* At most `most` of them, valid until the next update; returns how many. */
size_t monitor_view_devices(const struct monitor_view *view, struct monitor_device *out,
                            size_t most);
double monitor_view_gauge(const struct monitor_view *view, enum monitor_gauge gauge);
const struct sensor_findings *monitor_view_findings(const struct monitor_view *view);

#endif
