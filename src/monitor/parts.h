/* Internal to the monitor: the readings of all sensors as counters and gauges (state.c), and their attribution to
 * processes (processes.c). */
#ifndef IPW_MONITOR_PARTS_H
#define IPW_MONITOR_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/energy.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "monitor/monitor.h"
#include "wire/prometheus.h"
#include "wire/readings.h"

struct sampler;
struct session;

enum family {
#define FAMILY(constant, type, name, unit, help) FAMILY_##constant,
#include "monitor/families.def"
#undef FAMILY
    FAMILY_COUNT
};
/* Starts a family in the scrape. */
void family_begin(struct exposition *to, enum family family);

/* ---- state.c ---- */

enum domain_kind { DOMAIN_CPU, DOMAIN_GPU, DOMAIN_PLATFORM };

/* Points of energy kept for other hosts to fetch. */
enum { DOMAIN_POINTS_MAX = 128 };

/* The energy of one domain of a sensor. */
struct domain {
    enum domain_kind kind;
    enum scope scope;
    int location;
    char device[DEVICE_NAME_SIZE];
    struct text labels; /* identify the domain, also after a reload */
    struct text brief;  /* label of the GPU; "" for other domains */
    double accuracy;

    /* Valid in the current session. */
    bool is_present;
    size_t source;
    size_t channel;  /* channel of the source */
    nanos t;         /* end of the accounted time */
    double gained_j; /* J, in the last update */

    double joules;                                  /* since the start */
    nanos covered;                                  /* time that they cover */
    struct reading_point points[DOMAIN_POINTS_MAX]; /* of earlier updates, oldest first */
    size_t point_count;
    double watts;    /* UNKNOWN unless up */
    double newest_w; /* power of the newest reading; UNKNOWN unless up */
    nanos reach;     /* how long it is taken to continue after t */
    enum method method;
    bool is_up, is_counted;
    bool is_pending; /* not up yet, in a new session: estimators wait for it */

    double attributed;  /* joules attributed so far to processes and idle time */
    double utilization; /* utilization of a GPU, 0..1; or UNKNOWN */
};

struct state;

struct state *state_new(void);
void state_free(struct state *state);

/* Continues with the sensors of another session, which must stay open until the next call; NULL: none.  Takes the
 * remaining readings of the previous session first. */
void state_attach(struct state *state, struct session *session, nanos period);

/* Processes the samples collected so far. */
void state_update(struct state *state, nanos now);
/* Requests readings for the update after this one.  If updates are evenly spaced, the reading threads anticipate the
 * next request and need not be woken for it. */
void state_request(const struct state *state, nanos next);

/* Whether any sensor delivers readings. */
bool state_is_up(const struct state *state);

struct domain *state_domains(struct state *state, size_t *count);

/* The energy from the domain's newest reading to `t`, if its power continues: not measured yet, and not in `joules`. */
double domain_ahead(const struct domain *domain, nanos t);

/* The sampler of the current session; NULL if there is none. */
struct sampler *state_sampler(const struct state *state);
/* The gauges and their channels.  False past the last. */
bool state_gauge(const struct state *state, size_t index, size_t *source, size_t *channel,
                 bool *known);

/* Sum of the current values of a family over all devices, and their number: UNKNOWN and 0 if none is known. */
double state_sum(const struct state *state, enum family family, size_t *count);

/* The newest value of a gauge of a sensor; UNKNOWN if it has none.  And the health of the sensor. */
double state_gauge_of(const struct state *state, size_t source, enum family family);
void state_health(const struct state *state, size_t source, bool *is_lost, double *age_s);

/* Renders the first families, and those of sensors. */
void state_render(const struct state *state, struct exposition *to);
void state_render_sensors(const struct state *state, struct exposition *to);

/* ---- view.c ---- */

/* The state for another host: the energy points after `since`.  readings_release frees it. */
void readings_page(struct state *state, nanos since, struct readings *out);

/* A session with the monitor's options; monitor_session_close closes and frees it.  is_fine: each update has the energy
 * up to it, which costs CPU for updates less than half a second apart. */
enum err monitor_session_open(const char *drivers, const char *devices, nanos interval,
                              bool is_fine, struct session **out, struct error *why) MUST_USE;
void monitor_session_close(struct session *session);

/* ---- processes.c ---- */

struct processes;

/* most: maximum number of series of each kind. */
struct processes *processes_new(size_t max);
void processes_free(struct processes *processes);

/* Continues with the devices of another session; attributed energy is kept. */
void processes_attach(struct processes *processes, struct state *state);

/* If a round is due, attributes the energy of the devices since the last round. */
void processes_update(struct processes *processes, struct state *state, nanos now);

void processes_render(const struct processes *processes, struct exposition *to);

/* ---- otlp_push.c ---- */

struct otlp_push;

struct otlp_counts {
    unsigned long pushes, failures, dropped;
};

/* Pushes metrics to the receiver at `url` every `interval`, from its own thread. */
enum err otlp_push_open(const char *url, nanos interval, const char *instance, const char *host,
                        struct otlp_push **out, struct error *why) MUST_USE;
/* Call once per update; never blocks. */
void otlp_push_update(struct otlp_push *push, struct state *state, nanos now);
void otlp_push_count(struct otlp_push *push, struct otlp_counts *out);
/* Flushes the queue, for a few seconds at most. */
void otlp_push_close(struct otlp_push *push);

/* ---- instances.c ---- */

struct instances;

struct instances *instances_new(void);
void instances_free(struct instances *instances);

/* Continues with the devices of another session; attributed energy is kept. */
void instances_attach(struct instances *instances, struct state *state);
void instances_update(struct instances *instances, struct state *state, nanos now);
void instances_render(const struct instances *instances, struct exposition *to);

/* GPU_I_ID and GPU_I_PROFILE, as in dcgm-exporter, for a device "gpu0:gi1"; adds nothing for others (state.c). */
void add_instance_labels(struct text *labels, const struct sensor *sensor, const char *device);

/* ---- telemetry_feed.c ---- */

struct telemetry_feed;

/* Writes readings to the descriptor `fd` or, with an address, to energy-monitor, which is started to listen there. */
enum err telemetry_feed_open(int fd, const char *address, unsigned port,
                             struct telemetry_feed **out, struct error *why) MUST_USE;
/* Call once per update.  ERR_LOST: the reader has closed the descriptor. */
enum err telemetry_feed_write(struct telemetry_feed *feed, struct state *state,
                              const struct session *session, nanos now) MUST_USE;
void telemetry_feed_close(struct telemetry_feed *feed);

#endif
