/* Which processes used one device during a window, and how much of it.  The source's thread reads
 * (process_watch_due, process_watch_read); any thread may begin a window, request its last reading and copy the
 * result. */
#ifndef IPW_SAMPLER_PROCESS_WATCH_H
#define IPW_SAMPLER_PROCESS_WATCH_H

#include <pthread.h>
#include <stdatomic.h>

#include "sampler/sampler.h"

struct process_watch {
    atomic_uint wanted, made; /* readings: the number requested last, the newest that was made */
    atomic_bool is_on;        /* between the first reading and the last */
    pthread_mutex_t lock;     /* guards the rest */
    bool is_fresh;            /* the next reading is the first */
    nanos began, newest;
    enum err err;
    struct process_use rows[SENSOR_PROCESSES_MAX];
    size_t count;
};

void process_watch_init(struct process_watch *watch);
void process_watch_release(struct process_watch *watch);

/* Each requests a reading; process_watch_is_current once it has been made. */
void process_watch_begin(struct process_watch *watch);
void process_watch_end(struct process_watch *watch);
bool process_watch_is_current(const struct process_watch *watch);

/* Called by the thread that owns the sensor. */
bool process_watch_due(struct process_watch *watch, const struct sensor *sensor);
void process_watch_read(struct process_watch *watch, struct sensor *sensor);

/* Copies the result; returns the error of the newest reading if it failed. */
enum err process_watch_copy(struct process_watch *watch, struct process_use *out, size_t *count,
                            double *watched_s) MUST_USE;

#endif
