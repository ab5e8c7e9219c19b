/* The monitor: samples a machine for as long as it runs and serves what it draws as metrics over HTTP.
 *
 * A scrape is answered from the last update and never calls a sensor.  Counters only grow, whatever happens to a
 * sensor and over a reload; a sensor that gives no readings has no samples but those of its health. */
#ifndef IPW_MONITOR_MONITOR_H
#define IPW_MONITOR_MONITOR_H

#include <stdbool.h>

#include "core/err.h"
#include "core/units.h"
#include "sensors/sensor.h"

struct monitor_options {
    const char *address; /* to listen on; NULL: no metrics over HTTP */
    unsigned port;       /* 0: any that is free */
    const char *token;   /* asked of every scrape; NULL: none, for loopback addresses only ... */
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

#endif
