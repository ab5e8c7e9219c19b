/* The sampler: reads every sensor that was added, each in a thread of its own, and answers questions
 * about any window of time since.
 *
 * Life: sampler_new, sampler_add..., sampler_start, (ready, settle, window...), sampler_stop,
 * sampler_free.  Windows may be read during and after the run, from any thread. */
#ifndef IPW_SAMPLER_SAMPLER_H
#define IPW_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"
#include "port/proc_tree.h"
#include "sampler/timeline.h"
#include "sampler/window.h"
#include "sensors/sensor.h"

struct sampler;

/* Allocates; sampler_free frees it.  period: between reads, 0 for each sensor's own default. */
struct sampler *sampler_new(nanos period);
void sampler_free(struct sampler *sampler);

/* Keeps the newest readings only, hundreds of each channel; before the first sampler_add. */
void sampler_keep_recent(struct sampler *sampler);

/* For a monitor that runs all the time; before the first sampler_add.  Sensors are read as seldom as energy allows:
 * when sampler_tick requests it and, in between, often enough that nothing is lost.  An expensive counter is read only
 * every so often and by sampler_settle; between its readings energy is the integral of power, tied to the counter
 * (anchored.h).  What a window was once answered is never revised: adjacent windows add up, and energy never
 * decreases. */
void sampler_set_cheap(struct sampler *sampler);

/* Between readings of an expensive counter, where the driver's power samples show what happens in between; the edges of
 * windows are read all the same.  For a session that asks for long windows only; before the first sampler_add. */
void sampler_set_counter_period(struct sampler *sampler, nanos period);

/* How long a driver may take to find or open its devices: loading a kernel module takes seconds. */
#define SENSOR_CALL_MOST (20 * NS_PER_S)

/* Opens the finding's sensor.  A failure leaves the sampler as it was; a driver that does not return is
 * ERR_TIMEOUT. */
enum err sampler_add(struct sampler *sampler, const struct sensor_finding *finding,
                     struct error *why) MUST_USE;
enum err sampler_start(struct sampler *sampler, struct error *why) MUST_USE;

void sampler_stop(struct sampler *sampler);

/* Waits until every sensor has a first reading and, where they come soon, its first two updates: what
 * is measured after this has a known beginning.  At most a third of a second, except on a machine so busy
 * that a sensor was not read in that time. */
void sampler_ready(struct sampler *sampler);

/* Requests a read now and waits, a few milliseconds at most, for the sensors that respond at once:
 * right before something begins, this gives it a sharp edge. */
void sampler_mark(struct sampler *sampler);

/* Requests a read now and waits until each sensor has readings up to `t`, or until it is clear that
 * one will not: what was measured before t has a known end. */
void sampler_settle(struct sampler *sampler, nanos t);

/* For a row of a monitor that ends at `t`: requests what is cheap to read, once, and waits until readings reach t: some
 * milliseconds, or up to half a second where a driver collects samples.  Does not wait where that takes longer than
 * `most`; sampler_channel says how far readings reach.  With 0 for `most` only joules are requested: gauges come at
 * their own, slower pace.  Never reads an expensive counter of a cheap session; in another
 * session it is sampler_settle. */
void sampler_tick(struct sampler *sampler, nanos t, nanos most);

/* ---- what there is ---- */

size_t sampler_count(const struct sampler *sampler);
size_t sampler_channel_count(const struct sampler *sampler); /* of all sources together */
const struct sensor *sampler_sensor(const struct sampler *sampler, size_t source);

struct channel_state {
    nanos period;          /* learned update period, or between updates of a tick; 0 unknown */
    unsigned long updates; /* new values so far */
    unsigned long missing, gaps, refused;
    unsigned long zeros; /* refused because the meter of a whole device reads 0 W */
    enum err last_error; /* of the newest missing one */
    bool has_value;
    double value; /* newest; for counters the mean power over the newest interval */
    nanos t;      /* of value */
    double
        blocked_s; /* how long the driver has not returned from a read; 0 unless that is too long */
    unsigned thinned; /* times that its history had to be thinned for lack of scratch space */
};
void sampler_channel(struct sampler *sampler, size_t source, size_t channel,
                     struct channel_state *out);

struct source_state {
    unsigned long reads, failed, late, lost, back, dropped;
    double read_s;  /* spent reading, in total */
    double read_us; /* the fastest read of group 0 */
    bool is_lost;   /* gone at the moment, or its driver does not return */
};
void sampler_source(struct sampler *sampler, size_t source, struct source_state *out);

/* ---- windows ---- */

enum err sampler_window(struct sampler *sampler, size_t source, size_t channel, nanos from,
                        nanos to, struct window *out) MUST_USE;
/* A counter's window with its edges placed by a power channel of the same source (shaped.h). */
enum err sampler_window_shaped(struct sampler *sampler, size_t source, size_t channel,
                               size_t power_channel, nanos from, nanos to, struct window *out)
    MUST_USE;
enum err sampler_extremes(struct sampler *sampler, size_t source, size_t channel, nanos from,
                          nanos to, double *low, double *high) MUST_USE;

/* The running sum and the covered time of a channel at each of `count` ascending instants, under one
 * lock: the differences are the windows between them.  power_channel shapes a counter's joules as in
 * sampler_window_shaped; -1 for none. */
enum err sampler_running(struct sampler *sampler, size_t source, size_t channel, long power_channel,
                         const nanos *times, size_t count, double *sums, nanos *covered) MUST_USE;

/* Mean, extremes and median of a channel's values in a window (window.h). */
enum err sampler_values(struct sampler *sampler, size_t source, size_t channel, nanos from,
                        nanos to, struct value_stats *out) MUST_USE;

/* Walks the points later than `after` that a channel has by now, oldest first, in chunks; stops when
 * the callback returns false.  The callback may block, and may call the sampler. */
enum err sampler_points(struct sampler *sampler, size_t source, size_t channel, nanos after,
                        bool (*take)(const struct timeline_point *points, size_t count,
                                     void *context),
                        void *context) MUST_USE;

/* ---- processes ---- */

/* A process that was seen on a device. */
struct process_use {
    int pid;
    char name[16];                   /* "" where it was never seen alive */
    int ancestry[PROC_ANCESTRY_MAX]; /* itself, its parent ... when it was last seen alive */
    size_t depth;                    /* of them; 0: never seen alive */
    bool was_open;                   /* it had the device open at a reading */
    double memory_bytes;             /* the most at any reading */
    double busy_s;                   /* utilization x time; UNKNOWN where that is not reported */
};

/* From now on: a reading of the processes on each device whose driver can tell, every few seconds, and a last one at
 * sampler_watch_end.  Both wait for theirs, some milliseconds. */
void sampler_watch_begin(struct sampler *sampler);
void sampler_watch_end(struct sampler *sampler);

/* Those of a source in the last such window, at most SENSOR_PROCESSES_MAX, and its length.  ERR_UNSUPPORTED: the driver
 * cannot tell; ERR_NO_DATA: there was no reading. */
enum err sampler_processes(struct sampler *sampler, size_t source,
                           struct process_use out[SENSOR_PROCESSES_MAX], size_t *count,
                           double *watched_s) MUST_USE;

/* Reads made by all sources together. */
unsigned long sampler_reads(struct sampler *sampler);

#endif
