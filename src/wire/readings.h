/* Measurements of a monitor sent to another host: /api/v1/readings of `ipw monitor`, which the sensor driver `remote`
 * reads.  docs/remote.md describes the JSON; only this module writes and reads it.
 *
 * Energy is a list of points, each a time of the server's monotonic clock and the joules since the monitor started: a
 * reader that polls late or rarely misses nothing that is still in the list.
 *
 * Ownership: struct readings owns its lists and those of its domains, which readings_release frees. */
#ifndef IPW_WIRE_READINGS_H
#define IPW_WIRE_READINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/energy.h"
#include "core/err.h"
#include "core/quantity.h"
#include "core/units.h"

struct text;

#define READINGS_PATH "/api/v1/readings"

struct reading_point {
    nanos t; /* server's monotonic clock */
    nanos
        covered; /* time covered by the joules: less than the elapsed time where sensors could not be read */
    double joules; /* since the monitor started; never decreases */
};

/* The energy of one part of a machine. */
struct reading_domain {
    char device[DEVICE_NAME_SIZE]; /* "gpu0", "cpu0" */
    char name[96];                 /* "NVIDIA H200"; may be "" */
    char kind[16];                 /* of its sensor: "gpu", "cpu", "board" ... */
    char source[96];               /* "nvml:0 energy" */
    char channel[32];              /* "energy" */
    char uuid[72];                 /* of a GPU; "" when unknown */
    enum scope scope;
    int location;
    enum method method;
    double accuracy;  /* standard uncertainty of the calibration, relative */
    double watts;     /* current power; UNKNOWN unless it is up */
    double watts_max; /* maximum power of the device; UNKNOWN */
    double period_s;  /* between updates of the sensor; UNKNOWN */
    double age_s;     /* of the newest reading; UNKNOWN before the first */
    bool is_up;
    bool is_counted;                    /* a term of the machine's total */
    size_t number;                      /* index of the domain in the writer */
    const struct reading_point *points; /* oldest first */
    size_t point_count;
};

/* The newest value of another quantity. */
struct reading_gauge {
    char device[DEVICE_NAME_SIZE];
    char channel[32];
    enum quantity quantity;
    double value; /* in its base unit; UNKNOWN where it is stale */
    double age_s;
    bool is_absent; /* the server does not report it, now at least */
};

struct readings {
    char instance[40]; /* of this run of the monitor: counters are not continued by another one */
    char host[64];     /* name of the machine */
    nanos monotonic;   /* the server's clocks at the time of the response */
    nanos wall;
    nanos interval; /* between updates */
    struct reading_domain *domains;
    size_t domain_count;
    struct reading_gauge *gauges;
    size_t gauge_count;
};

void readings_write(const struct readings *readings, struct text *out);

/* ERR_BAD_VALUE, with the reason, for any other text. */
enum err readings_read(const char *text, size_t length, struct readings *out, struct error *why)
    MUST_USE;
void readings_release(struct readings *readings);

/* The same for one message of the Python ipw's gRPC service (energy_monitor/energy.proto), which covers all GPUs
 * together: telemetry.c.  Its only clock is the wall clock, used in place of the monotonic one.  Negative or missing
 * values are unknown. */
enum err readings_from_telemetry(const unsigned char *bytes, size_t length, struct readings *out,
                                 struct error *why) MUST_USE;

#endif
