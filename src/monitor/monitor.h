/* The monitor: samples a machine continuously and serves its energy and power as metrics over HTTP.
 *
 * A scrape is answered from the last update and never calls a sensor.  Counters are monotonic, across sensor failures
 * and reloads; a sensor without readings has only health samples. */
#ifndef IPW_MONITOR_MONITOR_H
#define IPW_MONITOR_MONITOR_H

#include <stdbool.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"
#include "port/http_server.h"
#include "sensors/sensor.h"

struct result;

struct monitor_options {
    struct http_access_options access; /* address NULL: no metrics over HTTP */
    bool is_open;                      /* other addresses than loopback need no token */
    const char *drivers;               /* comma-separated names; NULL for all */
    const char *devices;               /* GPUs; NULL for the visible ones */
    nanos interval;                    /* between updates, and between reads of a sensor */
    unsigned processes; /* number of processes, and of cgroups, with series; 0: no attribution */
    const char *grpc_address; /* of energy-monitor, which is then started; NULL: none */
    unsigned grpc_port;
    const char *otlp_url; /* URL of an OTLP receiver; NULL: none */
    nanos otlp_interval;
    int telemetry_fd; /* file descriptor for telemetry, if energy-monitor started us; -1: none */
    void (*listening)(unsigned port);
};

/* Runs until SIGINT or SIGTERM, and stores the number in *signal; SIGHUP reopens all sensors.  Blocks them: call before
 * starting threads. */
enum err monitor_run(const struct monitor_options *options, int *signal, struct error *why)
    MUST_USE;

/* ---- the same readings for a program that displays them itself ---- */

/* One quantity of one sensor.  UNKNOWN values are not known. */
struct monitor_device {
    char id[96];        /* "gpu0/gpu", "cpu0/package" */
    char name[96];      /* of the device */
    const char *kind;   /* "cpu", "gpu", "platform" */
    const char *source; /* id of the sensor */
    const char *health; /* "ok", "stale", "lost" */
    enum method method;
    double power_w, energy_j; /* energy since the view was opened */
    double relative_accuracy;
    double utilization; /* 0..1 */
    double memory_used, temperature_c, clock_hz;
    double age_s;    /* age of the newest reading */
    bool is_counted; /* part of the machine's total: no other entry contains it */
};

enum monitor_gauge { MONITOR_HOST_UTILIZATION, MONITOR_HOST_MEMORY };

struct monitor_view;

/* Options as in monitor_options.  A machine without sensors has a view without devices. */
enum err monitor_view_open(const char *drivers, const char *devices, nanos interval,
                           struct monitor_view **out, struct error *why) MUST_USE;
void monitor_view_close(struct monitor_view *view);
/* Processes the samples collected so far; call once per interval. */
void monitor_view_update(struct monitor_view *view, nanos now);
/* At most `max` entries, valid until the next update; returns their number. */
size_t monitor_view_devices(const struct monitor_view *view, struct monitor_device *out,
                            size_t max);
double monitor_view_gauge(const struct monitor_view *view, enum monitor_gauge gauge);
const struct sensor_findings *monitor_view_findings(const struct monitor_view *view);

/* The lists and groups "devices", "totals" and "host" (view_result.c).  view: NULL without sensors, and then without
 * devices. */
void monitor_view_to_result(const struct monitor_view *view, const struct monitor_device *devices,
                            size_t count, struct result *result);

#endif
