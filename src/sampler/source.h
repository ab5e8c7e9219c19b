/* A source: one sensor, the thread that reads it, and the ring for its samples.  Private to the sampler.  The thread
 * owns everything in `struct reader`; the rest is set before it starts, atomic, or guarded by the sampler's lock. */
#ifndef IPW_SAMPLER_SOURCE_H
#define IPW_SAMPLER_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "port/thread.h"
#include "sampler/anchored.h"
#include "sampler/process_watch.h"
#include "sampler/ring.h"
#include "sampler/series.h"
#include "sampler/tick.h"
#include "sensors/sensor.h"

/* When one read group is due. */
struct schedule {
    nanos period; /* between reads, when not following ticks */
    nanos next;
    nanos last;
    nanos learn_until; /* until then polling fast to learn the sensor's period; 0: not learning */
    nanos learn_again; /* earliest time to learn again */
    unsigned close_reads; /* reads made sooner than requested, for a more precise phase */
    nanos lag;            /* reads show only values at least this old */
    nanos anchor_gap;     /* low-overhead session: time to the next anchor of an anchored counter */
    nanos min;            /* low-overhead session: minimum time between reads requested by ticks */
    bool is_awaited;      /* ticks wait for this group */
    int guide;            /* channel whose ticks are followed; -1 none */
    nanos best;           /* the fastest read so far; 0 none */
};

struct reader {
    struct sensor sensor;
    bool open;
    struct observation buffer[512];
    struct tick ticks[SENSOR_CHANNELS_MAX];
    uint64_t last_count[SENSOR_CHANNELS_MAX];
    double last_value[SENSOR_CHANNELS_MAX];
    bool has_last[SENSOR_CHANNELS_MAX];
    uint8_t held[SENSOR_CHANNELS_MAX];        /* consecutive ambiguous readings held back */
    uint8_t pending_gap[SENSOR_CHANNELS_MAX]; /* reason of a gap that did not fit into the ring */
    struct schedule schedules[SENSOR_GROUPS_MAX];
    nanos suspended; /* clock_suspended() at the last read */
    nanos reopen_at; /* while lost: when to try next */
    nanos reopen_wait;
    bool changed; /* reopened as another device, and reported */
};

struct source_counts {
    _Atomic unsigned long reads;
    _Atomic int64_t first_read;   /* when the first read began; 0 until its samples are pushed */
    _Atomic int64_t reading;      /* start of the current read; 0 between reads */
    _Atomic unsigned long failed; /* reads that returned an error */
    _Atomic unsigned long late;   /* deadlines that passed before their read */
    _Atomic unsigned long lost;   /* times the device went away */
    _Atomic unsigned long back;   /* times it came back */
    _Atomic int64_t read_ns;      /* time spent reading, in total */
    _Atomic int64_t read_ns_best; /* the fastest read of group 0 */
    _Atomic int64_t last_read
        [SENSOR_GROUPS_MAX]; /* start of the newest read of each group, whose samples are pushed */
    _Atomic int64_t group_read[SENSOR_GROUPS_MAX]; /* end of the newest read of each group */
    atomic_bool silent[SENSOR_GROUPS_MAX];         /* its counter no longer changes */
};

struct source {
    struct sensor_finding finding;
    struct sensor described; /* the sensor as opened; its state is NULL: never read through it */
    struct reader reader;
    struct ring ring;
    struct series series[SENSOR_CHANNELS_MAX]; /* under the sampler's lock */
    bool low_overhead;                         /* of a low-overhead session */
    int anchored_channel;                      /* the anchored counter; -1 none */
    struct anchored anchored;                  /* under the sampler's lock */
    _Atomic int64_t periods[SENSOR_CHANNELS_MAX];
    _Atomic int64_t requested; /* time of a tick: inexpensive groups are read then */
    _Atomic int64_t
        every; /* time since the previous tick: the next is expected after the same time */
    atomic_bool requests_all; /* also groups that the tick does not wait for */
    _Atomic int64_t wake_at;  /* when the thread wakes by itself; INT64_MAX while it is awake */
    atomic_bool edge;         /* a window edge: all groups are read now */
    struct source_counts counts;
    struct process_watch processes;
    struct deadline deadline;
    pthread_t thread;
    bool running;
    atomic_uint holders; /* reference count: its owner and its thread */
    atomic_bool stopping;
};

/* Read periods requested by a session. */
struct source_pace {
    nanos period;  /* between reads; 0: each group's own default */
    nanos counter; /* minimum for an expensive counter shaped by power; 0: its own */
    bool low_overhead;
    nanos tick; /* low overhead: between ticks that each read energy; 0: not each does */
};

/* Opens the sensor and initializes the source. */
enum err source_init(struct source *source, const struct sensor_finding *finding,
                     struct spill *spill, const struct source_pace *pace, struct error *why)
    MUST_USE;
enum err source_start(struct source *source) MUST_USE;
/* Asks the thread to end; source_join waits for it, until a monotonic time: the first for a thread that is in a read,
 * the second for one that only has to run.  A thread that hangs in a driver is abandoned, with the memory it uses. */
void source_stop(struct source *source);
void source_join(struct source *source, nanos until, nanos until_idle);
/* Frees a stopped source. */
void source_free(struct source *source);

/* Requests a read now instead of at the next deadline. */
void source_wake(struct source *source);

/* In a low-overhead session: requests a read that shows time t, of the inexpensive groups: all of them, or those
 * whose energy a tick waits for. */
void source_request(struct source *source, nanos t, bool all);

/* When that read of one group will be made. */
nanos source_request_due(const struct source *source, unsigned group, nanos t);

/* Whether the thread is awake or should be: missing readings may be read as soon as the machine lets it run. */
bool source_is_due(const struct source *source);

/* One read of a group, as the thread makes it: for benchmarks. */
void source_read_group(struct source *source, unsigned group);

/* ---- device identity (identity.c) ---- */

/* Drivers number their own cards from 0 and do not know each other: a card that two drivers report is rejected here,
 * two cards that are both called "gpu0" get distinct names and locations, and a lost device is recognized when it
 * reappears. */

/* Makes the names of `added` unique among the others (all sensors of the sampler so far).  ERR_UNSUPPORTED when one
 * of them already measures this card. */
enum err identity_check(const struct sensor *const *others, size_t count, struct sensor *added,
                        struct error *why) MUST_USE;

/* Whether readings of `now` continue those of `before`.  An index may pass to another card when a card falls off the
 * bus: its joules must not be added to those of the lost one. */
bool identity_continues(const struct sensor *before, const struct sensor *now);

#endif
