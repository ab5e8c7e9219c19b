/* The contract of a sensor driver.
 *
 * A driver is one module that exports one `const struct sensor_driver`, and one line in
 * sensors.def.  `probe` reports what there is, `open` makes a struct sensor of one finding, `read`
 * appends observations, `close` frees everything.  Absence is normal and never an error.
 *
 * Ownership: the caller owns every struct here; a driver owns only what sensor->state points to,
 * from a successful open until close.  Drivers never call each other, never print, never exit,
 * and keep no mutable state outside sensor->state (libraries opened at run time excepted).
 * A sensor is used by one thread at a time; different sensors of one driver may be read
 * concurrently. */
#ifndef IPW_SENSORS_SENSOR_H
#define IPW_SENSORS_SENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/knob.h"
#include "core/quantity.h"
#include "core/units.h"

enum { SENSOR_CHANNELS_MAX = 44, SENSOR_GROUPS_MAX = 5, SENSOR_FACTS_MAX = 20 };

enum sensor_kind { SENSOR_CPU, SENSOR_GPU, SENSOR_BOARD, SENSOR_HOST, SENSOR_TEST };

enum sensor_status {
    SENSOR_OK,          /* measured */
    SENSOR_ESTIMATED,   /* works, but is a model: its joules are labeled estimated */
    SENSOR_DEAD,        /* opens, but its readings do not change under load */
    SENSOR_DENIED,      /* present, but this user may not read it: fix says how */
    SENSOR_UNSUPPORTED, /* present, but lacks required features */
    SENSOR_ABSENT,      /* not on this machine */
};

/* ---- probing ---- */

struct sensor_driver;

/* One result of a probe, also of absence. */
struct sensor_finding {
    const struct sensor_driver *driver; /* set by the registry */
    char id[48];                        /* "nvml:0", "rapl:psys"; the driver's name when absent */
    char name[96];                      /* for display: "NVIDIA H200"; may be "" */
    enum sensor_kind kind;
    enum sensor_status status; /* OK and ESTIMATED may be opened */
    char reason[200];          /* why not ok; "" when ok */
    char fix[240];             /* how to fix it: the exact command or file; "" when unknown */
    char measures[256];        /* comma-separated quantities: "energy,power,temperature" */
    char uuid[72];             /* of a GPU; "" when unknown */
    unsigned key;              /* the driver's own: index, socket ... passed back to open */
    char address[160];         /* of another host: where it is read; "" for this machine */
};

/* User options; all optional. */
struct sensor_config {
    const char *devices; /* --devices: GPU indices or UUIDs, comma-separated; NULL = visible ones */
    const char *arguments; /* of the driver: "A,B" of --sensors remote=A,remote=B; NULL: none */
};

/* A growing list of findings owned by the caller of probe. */
struct sensor_findings {
    struct sensor_finding *items;
    size_t count, capacity;
};

/* Appends a finding (zeroed but for id, kind and status) and returns it, or NULL when out of
 * memory.  The pointer is valid until the next call. */
struct sensor_finding *sensor_found(struct sensor_findings *findings, const char *id,
                                    enum sensor_kind kind, enum sensor_status status);

/* ---- an open sensor ---- */

/* One measured quantity.  Energy counters report raw counts; all other channels report values in the quantity's base
 * unit. */
struct sensor_channel {
    char name[32];                 /* unique in the sensor: "package", "power.instant" */
    char device[DEVICE_NAME_SIZE]; /* device in reports: "gpu0", "cpu0", "psys" */
    enum quantity quantity;
    enum scope scope;        /* energy and power only; SCOPE_NONE keeps it out of every sum */
    int location;            /* which socket, GPU ...; -1 for the whole machine */
    unsigned host;           /* which machine: 0 for this one; others contain nothing of it */
    unsigned group;          /* which read group fills it */
    double joules_per_count; /* energy counters: resolution of a raw count */
    uint64_t wraps_at;       /* energy counters: modulus of the raw count; 0 for 64 bits */
    double watts_max;        /* no such device draws more: a jump above it is a reset or an error */
    double watts_idle;       /* of a model: its power without load; 0 for whatever is measured */
    double relative_accuracy; /* standard uncertainty of the calibration, e.g. 0.03 */
    nanos period;             /* update period if known for certain, else 0: it is learned */
    bool estimated;           /* from a model */
    bool integrated;          /* an energy counter that is an integral of sampled power */
    nanos lag;                /* a read shows only values at least this old */
    nanos behind;             /* for another host: its readings lag by up to this */
    nanos averaging;          /* of a power meter; 0: the time between its updates */
    bool interval_mean;       /* a mean since the previous value; ERR_NO_DATA begins the next */
    double share; /* of a MIG instance's activity: its slices of the GPU's; both attribute energy */
    bool secondary; /* a cross-check of another channel of the same device and scope */
};

/* Channels that one call reads together, at one cadence. */
struct sensor_group {
    nanos period_default; /* between reads when the user requests none */
    nanos period_min;     /* never read faster than this, whatever is requested; only finding a
                             counter's ticks takes a short burst of denser reads */
    bool fixed_period; /* period_default holds whatever is requested; period_min is for windows */
    /* In a low-overhead session (sampler.h): period of reads, and minimum time between reads requested by ticks, unless
     * each needs its energy.  0: derived from the above.  A counter whose call uses milliseconds of CPU is read every
     * slow_period and at window edges only: its slow_period_min is equally long. */
    nanos slow_period, slow_period_min;
    bool follow_ticks; /* phase-lock reads to the first energy or power channel's updates */
};

/* A fixed fact for reports: {"uuid", "GPU-..."}. */
struct sensor_fact {
    char key[24], text[72];
};

struct sensor {
    const struct sensor_driver *driver;
    char id[48];
    char name[96];
    enum sensor_kind kind;
    int pin_cpu; /* read from this CPU to spare the kernel a cross-call; -1 anywhere */
    struct sensor_channel channels[SENSOR_CHANNELS_MAX];
    size_t channel_count;
    struct sensor_group groups[SENSOR_GROUPS_MAX];
    size_t group_count;
    struct sensor_fact facts[SENSOR_FACTS_MAX];
    size_t fact_count;
    char lost_why[200]; /* of a read that returned ERR_LOST; "" unknown */
    void *state;        /* the driver's */
};

/* ---- reading ---- */

struct observation {
    nanos t; /* monotonic time of the reading */
    union {
        uint64_t count; /* energy counters */
        double value;   /* everything else */
    };
    uint16_t channel, missing; /* missing: an enum err, why there is no reading at t; or 0 */
    uint32_t sigma_us; /* of observe_timed: standard uncertainty of t; 0: t is set by the sampler */
};

/* Preallocated by the sampler; a driver appends through the four calls below, which drop and
 * count what does not fit rather than allocate. */
struct observations {
    struct observation *items;
    size_t count, capacity, dropped;
};

void observe_count(struct observations *to, unsigned channel, nanos t, uint64_t count);
/* A count at time t, known to +- sigma, however long before the read. */
void observe_timed(struct observations *to, unsigned channel, nanos t, nanos sigma, uint64_t count);
void observe_value(struct observations *to, unsigned channel, nanos t, double value);
/* ERR_LOST for a counter: its increment since the last reading is unknown. */
void observe_missing(struct observations *to, unsigned channel, nanos t, enum err why);

/* ---- processes on a device ---- */

enum { SENSOR_PROCESSES_MAX = 64 };

struct sensor_process {
    int pid;             /* in the host's PID namespace, as the kernel driver reports it */
    bool is_open;        /* has the device open now; otherwise it was busy since the last call */
    double memory_bytes; /* of the device; UNKNOWN where it is not reported */
    double busy_pct; /* mean utilization since the last call, UNKNOWN where it is not reported */
};

/* ---- clock and power-limit control ---- */

/* Current operating state and adjustable range of a device; UNKNOWN where it is not reported. */
struct sensor_limits {
    double graphics_mhz, memory_mhz;         /* current clocks; of graphics, the SM clock */
    double graphics_max_mhz, memory_max_mhz; /* highest clocks of the device */
    double limit_w, limit_default_w;         /* power limit as set, and the default */
    double limit_min_w, limit_max_w;         /* adjustable range */
    double limit_enforced_w;                 /* the lowest limit in force */
    double throttle;                         /* enum throttle_bit */
    double temperature_c;
    bool idle;        /* clocks are low for lack of work */
    bool partitioned; /* MIG: settings would affect several tenants */
};

/* Controls an open sensor's device.  Queries need no privilege; set and reset do (ERR_DENIED, with the requirement
 * in why).  Success means that the driver accepted the request, not that the clock was reached: limits shows that,
 * under load.  A setting outlives the process that made it. */
struct sensor_control {
    /* Supported clocks in MHz, highest first: of memory, or of graphics at a memory clock.  The caller frees *out. */
    enum err (*clocks)(struct sensor *sensor, enum gpu_knob knob, double memory_mhz, double **out,
                       size_t *count, struct error *why);
    enum err (*limits)(struct sensor *sensor, struct sensor_limits *out, struct error *why);
    /* Locks a clock to `value` MHz, or sets the power limit to `value` W. */
    enum err (*set)(struct sensor *sensor, enum gpu_knob knob, double value, struct error *why);
    /* Unlocks a clock, or sets the default power limit. */
    enum err (*reset)(struct sensor *sensor, enum gpu_knob knob, struct error *why);
};

/* ---- the driver ---- */

struct sensor_driver {
    const char *name;
    const char *summary;  /* one line for `ipw doctor` and `ipw list` */
    const char *argument; /* argument of --sensors NAME=: "HOST[:PORT]"; NULL: takes none */

    /* Appends at least one finding: devices found, or why there is none.  Takes milliseconds and causes no load.  A
     * failed probe is a finding too (denied, unsupported ...). */
    void (*probe)(const struct sensor_config *config, struct sensor_findings *out);

    /* Makes an open sensor of a finding whose status is OK or ESTIMATED.  *out is zeroed with
     * driver, id, name, kind and pin_cpu = -1 set.  On failure nothing is left open. */
    enum err (*open)(const struct sensor_finding *finding, struct sensor *out, struct error *why);

    /* Reads one group.  A channel without a reading is observed missing and the others are read;
     * ERR_LOST means the device is gone (the sampler closes it and tries to open it again);
     * any other error is a failed tick.  No allocation, no formatting, but in a driver that reads over a network. */
    enum err (*read)(struct sensor *sensor, unsigned group, struct observations *out);

    void (*close)(struct sensor *sensor);

    /* Optional: the processes that use the device, and their utilization since a time (0: not needed).  May take
     * milliseconds: it is called every few seconds, never per tick. */
    enum err (*processes)(struct sensor *sensor, nanos since,
                          struct sensor_process out[SENSOR_PROCESSES_MAX], size_t *count);

    /* Optional: clock and power-limit control. */
    const struct sensor_control *control;
};

/* Adds a channel with the usual defaults (location -1); NULL when full. */
struct sensor_channel *sensor_add_channel(struct sensor *sensor, const char *name,
                                          const char *device, enum quantity quantity);
void sensor_add_fact(struct sensor *sensor, const char *key, const char *text);
const char *sensor_fact(const struct sensor *sensor, const char *key); /* "": none */

/* The finest power channel of the same device as an energy counter, for distributing the counter's joules in time.
 * -1: none.  Drivers list their channels in order of preference. */
long sensor_shape_channel(const struct sensor *sensor, size_t counter);

/* The quantities of a sensor's channels, each once, in the form of a finding's `measures`. */
void sensor_measures(const struct sensor *sensor, char *to, size_t size);

const char *sensor_kind_name(enum sensor_kind kind);
const char *sensor_status_name(enum sensor_status status);
/* Of a device that was opened and read with this result; `otherwise`: not a matter of permissions. */
enum sensor_status sensor_status_of(enum err err, enum sensor_status otherwise);

#endif
