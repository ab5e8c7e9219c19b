/* The sampler: reads every added sensor in its own thread, and answers queries about any window of time since.
 *
 * Lifecycle: sampler_new, sampler_add..., sampler_start, (ready, settle, window...), sampler_stop, sampler_free.
 * Windows may be read during and after the run, from any thread. */
#ifndef IPW_SAMPLER_SAMPLER_H
#define IPW_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/units.h"
#include "port/proc_tree.h"
#include "sampler/resolution.h"
#include "sampler/timeline.h"
#include "sampler/window.h"
#include "sensors/sensor.h"

struct sampler;

/* Allocates; sampler_free frees it.  period: between reads, 0 for each sensor's own default. */
struct sampler *sampler_new(nanos period);
void sampler_free(struct sampler *sampler);

/* Keeps only the newest readings, hundreds per channel; before the first sampler_add. */
void sampler_keep_recent(struct sampler *sampler);

/* For a continuously running monitor; before the first sampler_add.  Sensors are read as rarely as accurate energy
 * allows: when sampler_tick requests it and, in between, often enough that no data is lost.  An expensive counter is
 * read only periodically and by sampler_settle; between its readings energy is the integral of power, corrected by
 * the counter (anchored.h).  The result of a window is never revised: adjacent windows add up, and energy never
 * decreases.  tick_period: where each tick needs its own energy, however close they are, the time between them; a tick
 * then reads all but expensive counters.  0: a driver's buffer may be read less often. */
void sampler_set_low_overhead(struct sampler *sampler, nanos tick_period);

/* Period of reads of an expensive counter whose intervals are shaped by power samples; it is also read at window
 * edges.  For a session that uses long windows only; before the first sampler_add. */
void sampler_set_counter_period(struct sampler *sampler, nanos period);

/* How long a driver may take to find or open its devices: loading a kernel module takes seconds. */
#define SENSOR_CALL_TIMEOUT (20 * NS_PER_S)

/* Opens the finding's sensor.  A failure leaves the sampler as it was; a driver that does not return is ERR_TIMEOUT. */
enum err sampler_add(struct sampler *sampler, const struct sensor_finding *finding,
                     struct error *why) MUST_USE;
enum err sampler_start(struct sampler *sampler, struct error *why) MUST_USE;

void sampler_stop(struct sampler *sampler);

/* Waits until every sensor has a first reading and, where they come soon, its first two updates: measurements after
 * this have a known start.  At most a third of a second, except on a machine so busy that a sensor was not read in
 * that time. */
void sampler_ready(struct sampler *sampler);

/* Requests a read now and waits, a few milliseconds at most, for the sensors that respond immediately: called right
 * before a measurement begins, this gives it a sharp edge. */
void sampler_mark(struct sampler *sampler);

/* Requests a read now and waits until each sensor has readings up to `t`, or until it is clear that one will not:
 * measurements before t have a known end. */
void sampler_settle(struct sampler *sampler, nanos t);

/* For a row of a monitor that ends at `t`: requests the inexpensive reads once and waits until readings reach t: a few
 * milliseconds, or up to half a second where a driver buffers samples.  Does not wait longer than `max` for a sensor,
 * but up to ten times that for a reader thread that a busy machine does not let run: without its readings the rows
 * would not add up to the total.  sampler_channel reports how far readings reach.  With `max` 0 only energy is
 * requested: gauges are read at their own, slower rate.  Never reads an expensive counter of a low-overhead session; in
 * other sessions it is sampler_settle. */
void sampler_tick(struct sampler *sampler, nanos t, nanos max);

/* ---- sources and channels ---- */

size_t sampler_count(const struct sampler *sampler);
size_t sampler_channel_count(const struct sampler *sampler); /* of all sources together */
const struct sensor *sampler_sensor(const struct sampler *sampler, size_t source);

struct channel_state {
    nanos period; /* learned update period, or time between updates requested by ticks; 0 unknown */
    unsigned long updates; /* new values so far */
    unsigned long missing, gaps, refused;
    unsigned long zeros; /* rejected because the meter of a whole device reads 0 W */
    enum err last_error; /* of the newest missing one */
    bool has_value;
    double value;     /* newest; for counters the mean power over the newest interval */
    nanos t;          /* of value */
    double blocked_s; /* how long a driver has been hanging in a read; 0 unless that is too long */
    unsigned thinned; /* how often its history was thinned for lack of scratch space */
};
void sampler_channel(struct sampler *sampler, size_t source, size_t channel,
                     struct channel_state *out);

struct source_state {
    unsigned long reads, failed, late, lost, back, dropped;
    double read_s;  /* spent reading, in total */
    double read_us; /* the fastest read of group 0 */
    bool is_lost;   /* currently lost, or its driver hangs */
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

/* What the channel does not resolve at each of `count` ascending instants (resolution.h). */
enum err sampler_resolution(struct sampler *sampler, size_t source, size_t channel,
                            long power_channel, const nanos *times, size_t count,
                            struct resolution *out) MUST_USE;

/* Mean, extremes and median of a channel's values in a window (window.h). */
enum err sampler_values(struct sampler *sampler, size_t source, size_t channel, nanos from,
                        nanos to, struct value_stats *out) MUST_USE;

/* Iterates over the points of a channel later than `after`, oldest first, in chunks; stops when the callback returns
 * false.  The callback may block, and may call the sampler. */
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
    bool was_open;                   /* had the device open at a reading */
    double memory_bytes;             /* maximum over all readings */
    double busy_s;                   /* utilization x time; UNKNOWN where that is not reported */
};

/* Starts recording the processes on each device whose driver reports them: a reading now, every few seconds, and at
 * sampler_watch_end.  A reading takes milliseconds; the first is awaited here, the last by sampler_processes. */
void sampler_watch_begin(struct sampler *sampler);
void sampler_watch_end(struct sampler *sampler);

/* The processes of a source in the last such window, at most SENSOR_PROCESSES_MAX, and its length.  ERR_UNSUPPORTED:
 * the driver does not report processes; ERR_NO_DATA: there was no reading. */
enum err sampler_processes(struct sampler *sampler, size_t source,
                           struct process_use out[SENSOR_PROCESSES_MAX], size_t *count,
                           double *watched_s) MUST_USE;

/* Number of reads by all sources. */
unsigned long sampler_reads(struct sampler *sampler);

#endif
