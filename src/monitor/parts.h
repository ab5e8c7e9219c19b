/* Inside the monitor: the readings of all sensors as counters and gauges (state.c), and what of them is attributed to
 * processes (processes.c).  Private to this folder. */
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
/* Begins it in the scrape. */
void family_begin(struct exposition *to, enum family family);

/* ---- state.c ---- */

enum domain_kind { DOMAIN_CPU, DOMAIN_GPU, DOMAIN_PLATFORM };

/* Points of energy that another host can still ask for. */
enum { DOMAIN_POINTS = 128 };

/* The joules of one thing that a sensor measures. */
struct domain {
    enum domain_kind kind;
    enum scope scope;
    int location;
    char device[DEVICE_NAME_SIZE];
    struct text labels; /* they identify it, over reloads too */
    struct text brief;  /* of a GPU: which it is; else "" */
    double accuracy;

    /* In the session of now. */
    bool is_present;
    size_t source;
    size_t channel; /* of the source */
    nanos t;        /* up to where it was taken */
    double gained;  /* J, in the last update */

    double joules;                              /* since the start */
    nanos covered;                              /* time that they are of */
    struct reading_point points[DOMAIN_POINTS]; /* of former updates, oldest first */
    size_t point_count;
    double watts; /* UNKNOWN unless up */
    enum method method;
    bool is_up, is_counted;
    bool is_awaited; /* not up, in a session that has just begun: what estimates it waits for it */

    double attributed;  /* of joules, so far, to processes and idle time */
    double utilization; /* 0..1 of a GPU; UNKNOWN */
};

struct state;

struct state *state_new(void);
void state_free(struct state *state);

/* Continues with the sensors of another session, which must stay until the next call; NULL: of none.  What the former
 * one has by then is taken. */
enum err state_attach(struct state *state, struct session *session, nanos period) MUST_USE;

/* Takes what the sampler has by now. */
void state_update(struct state *state, nanos now);
/* Requests the readings of the update after this one.  Where the times of updates are evenly spaced, threads that read
 * sensors expect the next request and need not be woken for it. */
void state_request(const struct state *state, nanos next);

/* Whether any sensor gives readings. */
bool state_is_up(const struct state *state);

struct domain *state_domains(struct state *state, size_t *count);

/* The sampler of now; NULL without a session. */
struct sampler *state_sampler(const struct state *state);
/* The gauges: which channel each is of.  False past the last. */
bool state_gauge(const struct state *state, size_t index, size_t *source, size_t *channel,
                 bool *known);

/* The values of a family now, summed over devices, and how many there are: UNKNOWN and 0 where none is known. */
double state_sum(const struct state *state, enum family family, size_t *count);

/* The newest value of a gauge of a sensor; UNKNOWN where it has none.  And how the sensor is. */
double state_gauge_of(const struct state *state, size_t source, enum family family);
void state_health(const struct state *state, size_t source, bool *is_lost, double *age_s);

/* The processes on the device of a domain since state_watch (sampler_processes). */
struct process_use;
enum err state_processes(struct state *state, const struct domain *domain, struct process_use *out,
                         size_t *count, double *watched_s) MUST_USE;
void state_watch(struct state *state);

/* The first families, and those of sensors. */
void state_render(const struct state *state, struct exposition *to);
void state_render_sensors(const struct state *state, struct exposition *to);

/* ---- view.c ---- */

/* What the state has for another host: of energy, the points after `since`.  readings_release frees it. */
enum err readings_page(struct state *state, nanos since, struct readings *out) MUST_USE;

/* A session as monitors have it, which monitor_session_close closes and frees. */
enum err monitor_session_open(const char *drivers, const char *devices, nanos interval,
                              struct session **out, struct error *why) MUST_USE;
void monitor_session_close(struct session *session);

/* ---- processes.c ---- */

struct processes;

/* most: series of each kind. */
struct processes *processes_new(size_t most);
void processes_free(struct processes *processes);

/* Begins anew with the devices of another session; what was attributed stays. */
void processes_attach(struct processes *processes, struct state *state);

/* Where their time has come, attributes what devices spent since the last time. */
void processes_update(struct processes *processes, struct state *state, nanos now);

void processes_render(const struct processes *processes, struct exposition *to);

/* ---- otlp_push.c ---- */

struct otlp_push;

struct otlp_counts {
    unsigned long pushes, failures, dropped;
};

/* Metrics go to the receiver at `url` every `interval`, from a thread of its own. */
enum err otlp_push_open(const char *url, nanos interval, const char *instance, const char *host,
                        struct otlp_push **out, struct error *why) MUST_USE;
/* Once per update; never waits. */
void otlp_push_update(struct otlp_push *push, struct state *state, nanos now);
void otlp_push_count(struct otlp_push *push, struct otlp_counts *out);
/* Sends what is left, if that takes no more than some seconds. */
void otlp_push_close(struct otlp_push *push);

/* ---- instances.c ---- */

struct instances;

struct instances *instances_new(void);
void instances_free(struct instances *instances);

/* Begins anew with the devices of another session; what was attributed stays. */
void instances_attach(struct instances *instances, struct state *state);
void instances_update(struct instances *instances, struct state *state, nanos now);
void instances_render(const struct instances *instances, struct exposition *to);

/* GPU_I_ID and GPU_I_PROFILE, as dcgm-exporter has them, of a device "gpu0:gi1"; nothing of another (state.c). */
void add_instance_labels(struct text *labels, const struct sensor *sensor, const char *device);

/* ---- telemetry_feed.c ---- */

struct telemetry_feed;

/* Readings go to the descriptor `fd`, or with an address to energy-monitor, which is started to listen there. */
enum err telemetry_feed_open(int fd, const char *address, unsigned port,
                             struct telemetry_feed **out, struct error *why) MUST_USE;
/* Once per update.  ERR_LOST: who read from the descriptor has gone. */
enum err telemetry_feed_write(struct telemetry_feed *feed, struct state *state,
                              const struct session *session, nanos now) MUST_USE;
void telemetry_feed_close(struct telemetry_feed *feed);

#endif
