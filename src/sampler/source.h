/* A source: one sensor, the thread that reads it, and the ring that takes its samples.
 * Private to the sampler.  The thread owns everything in `struct reader`; the rest is set before
 * it starts, atomic, or guarded by the sampler's lock. */
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
    nanos learn_until;    /* polling fast to find the sensor's period until then; 0: not learning */
    nanos learn_again;    /* not before this */
    unsigned close_reads; /* reads made sooner than requested, to know the phase better */
    nanos lag;            /* reads show only what was this long before */
    nanos
        anchor_gap;  /* in a cheap session: to the next reading of a counter that power continues */
    nanos least;     /* in a cheap session: between reads that ticks request */
    bool is_awaited; /* it has what ticks wait for */
    int guide;       /* channel whose ticks are followed; -1 none */
    nanos best;      /* the fastest read so far; 0 none */
};

struct reader {
    struct sensor sensor;
    bool open;
    struct observation buffer[512];
    struct tick ticks[SENSOR_CHANNELS_MAX];
    uint64_t last_count[SENSOR_CHANNELS_MAX];
    double last_value[SENSOR_CHANNELS_MAX];
    bool has_last[SENSOR_CHANNELS_MAX];
    uint8_t held[SENSOR_CHANNELS_MAX]; /* doubtful readings held back in a row */
    uint8_t
        gap_owed[SENSOR_CHANNELS_MAX]; /* why there is a gap that did not fit into the full ring */
    struct schedule schedules[SENSOR_GROUPS_MAX];
    nanos suspended; /* clock_suspended() at the last read */
    nanos reopen_at; /* while lost: when to try next */
    nanos reopen_wait;
    bool changed; /* came back as another device, and that was reported */
};

struct source_counts {
    _Atomic unsigned long reads;
    _Atomic int64_t first_read;   /* when the first read began; 0 until its samples are pushed */
    _Atomic int64_t reading;      /* when the read that is being made began; 0 between reads */
    _Atomic unsigned long failed; /* reads that returned an error */
    _Atomic unsigned long late;   /* deadlines that passed before their read */
    _Atomic unsigned long lost;   /* times the device went away */
    _Atomic unsigned long back;   /* times it came back */
    _Atomic int64_t read_ns;      /* time spent reading, in total */
    _Atomic int64_t read_ns_best; /* the fastest read of group 0 */
    _Atomic int64_t last_read
        [SENSOR_GROUPS_MAX]; /* when the newest read of each began; its samples are pushed */
    _Atomic int64_t group_read[SENSOR_GROUPS_MAX]; /* when the newest read of each ended */
    atomic_bool silent[SENSOR_GROUPS_MAX];         /* its counter does not change any more */
};

struct source {
    struct sensor_finding finding;
    struct sensor described; /* what was opened; its state is NULL: never read through it */
    struct reader reader;
    struct ring ring;
    struct series series[SENSOR_CHANNELS_MAX]; /* under the sampler's lock */
    bool cheap;                                /* of a cheap session */
    int anchored_channel;                      /* the counter that power continues; -1 none */
    struct anchored anchored;                  /* under the sampler's lock */
    _Atomic int64_t periods[SENSOR_CHANNELS_MAX];
    _Atomic int64_t requested; /* a tick's time: what is cheap is read then */
    _Atomic int64_t
        every; /* from the tick before to that one: the next is expected as much later */
    atomic_bool requests_all; /* also what the tick does not wait for */
    _Atomic int64_t wakes;    /* when the thread does by itself; INT64_MAX while it is awake */
    atomic_bool edge;         /* a window's edge: everything is read now */
    struct source_counts counts;
    struct process_watch processes;
    struct deadline deadline;
    pthread_t thread;
    bool running;
    atomic_uint holders; /* its owner and its thread: the last one that lets go of it frees it */
    atomic_bool stopping;
};

/* How often a session wants readings. */
struct source_pace {
    nanos period; /* between reads; 0: each group's own default */
    nanos
        counter; /* at least, between reads of an expensive counter that power shapes; 0: its own */
    bool cheap;
};

/* Opens the sensor and prepares. */
enum err source_init(struct source *source, const struct sensor_finding *finding,
                     struct spill *spill, const struct source_pace *pace, struct error *why)
    MUST_USE;
enum err source_start(struct source *source) MUST_USE;
/* Tells the thread to end; source_join waits for that, until a monotonic time.  A thread that a driver
 * does not return from is left behind, with what it uses. */
void source_stop(struct source *source);
void source_join(struct source *source, nanos until);
/* Of a stopped source; frees the source too. */
void source_free(struct source *source);

/* Requests a read now rather than at the next deadline. */
void source_poke(struct source *source);

/* In a cheap session: requests a read that shows the time t, of the groups that are cheap enough: all of them, or those
 * whose joules a tick waits for. */
void source_request(struct source *source, nanos t, bool all);

/* When that read is made, of one group. */
nanos source_request_due(const struct source *source, unsigned group, nanos t);

/* One read of a group, as the thread does it: for the benchmark of its cost. */
void source_read_group(struct source *source, unsigned group);

/* ---- device identity (identity.c) ---- */

/* Drivers number their own cards from 0 and never see each other; here one card that
 * two drivers report is refused, two cards that are both called "gpu0" get names and locations of
 * their own, and a lost device is recognized when it comes back. */

/* Makes the names of `added` unique among the others (all of the sampler's sensors so far).
 * ERR_UNSUPPORTED when it is a card that one of them measures already. */
enum err identity_check(const struct sensor *const *others, size_t count, struct sensor *added,
                        struct error *why) MUST_USE;

/* Whether readings of `now` continue those of `before`.  An index may pass to a neighboring card when
 * a card falls off the bus: its joules must not be added to the lost one's. */
bool identity_continues(const struct sensor *before, const struct sensor *now);

#endif
