/* Each reading but the first gives the utilization since the previous one; utilization x time is summed per process.  A process's
 * ancestry can only be read while it lives, so it is recorded at every reading for later use. */
#include "sampler/process_watch.h"

#include <string.h>

#include "core/clock.h"

/* Time between readings, each of which costs the driver milliseconds: at first, and in a long watch. */
#define WATCH_PERIOD      (5 * NS_PER_S)
#define WATCH_PERIOD_LATE (15 * NS_PER_S)
#define WATCH_LATE        (20 * NS_PER_S)

void process_watch_init(struct process_watch *watch)
{
    *watch = (struct process_watch){.err = ERR_NO_DATA};
    pthread_mutex_init(&watch->lock, NULL);
}

void process_watch_release(struct process_watch *watch)
{
    pthread_mutex_destroy(&watch->lock);
}

void process_watch_begin(struct process_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->is_fresh = true;
    watch->count = 0;
    watch->err = ERR_NO_DATA;
    watch->began = watch->newest = clock_now();
    pthread_mutex_unlock(&watch->lock);
    atomic_store(&watch->is_on, true);
    atomic_fetch_add(&watch->wanted, 1);
}

void process_watch_end(struct process_watch *watch)
{
    atomic_store(&watch->is_on, false);
    atomic_fetch_add(&watch->wanted, 1);
}

bool process_watch_is_current(const struct process_watch *watch)
{
    return atomic_load(&watch->made) == atomic_load(&watch->wanted);
}

bool process_watch_due(struct process_watch *watch, const struct sensor *sensor)
{
    if (!sensor->driver->processes)
        return false;
    if (!process_watch_is_current(watch))
        return true;
    if (!atomic_load(&watch->is_on))
        return false;
    pthread_mutex_lock(&watch->lock);
    bool is_late = watch->newest - watch->began >= WATCH_LATE;
    bool due = clock_now() >= watch->newest + (is_late ? WATCH_PERIOD_LATE : WATCH_PERIOD);
    pthread_mutex_unlock(&watch->lock);
    return due;
}

static struct process_use *row_of(struct process_watch *watch, int pid)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->rows[i].pid == pid)
            return &watch->rows[i];
    if (watch->count == SENSOR_PROCESSES_MAX)
        return NULL;
    struct process_use *row = &watch->rows[watch->count++];
    *row = (struct process_use){.pid = pid, .memory_bytes = UNKNOWN};
    return row;
}

static void take(struct process_watch *watch, const struct sensor_process *seen, double length_s)
{
    struct process_use *row = row_of(watch, seen->pid);
    int ancestry[PROC_ANCESTRY_MAX];
    size_t depth = proc_ancestry(seen->pid, ancestry);
    if (!row)
        return;
    if (depth > 0) {
        memcpy(row->ancestry, ancestry, sizeof row->ancestry);
        row->depth = depth;
        proc_name(seen->pid, row->name, sizeof row->name);
    }
    row->was_open |= seen->is_open;
    if (is_known(seen->memory_bytes) && !(row->memory_bytes > seen->memory_bytes))
        row->memory_bytes = seen->memory_bytes;
    if (length_s > 0)
        row->busy_s += seen->busy_pct / 100 * length_s;
}

void process_watch_read(struct process_watch *watch, struct sensor *sensor)
{
    struct sensor_process seen[SENSOR_PROCESSES_MAX];
    size_t count = 0;
    unsigned number = atomic_load(&watch->wanted);
    pthread_mutex_lock(&watch->lock);
    nanos since = watch->is_fresh ? 0 : watch->newest;
    pthread_mutex_unlock(&watch->lock);
    enum err err = sensor->driver->processes(sensor, since, seen, &count);
    nanos now = clock_now();
    pthread_mutex_lock(&watch->lock);
    if (watch->is_fresh)
        watch->began = watch->newest = now;
    watch->is_fresh = false;
    for (size_t i = 0; !err && i < count; i++)
        take(watch, &seen[i], seconds(now - watch->newest));
    watch->newest = now;
    watch->err = err;
    pthread_mutex_unlock(&watch->lock);
    atomic_store(&watch->made, number);
}

enum err process_watch_copy(struct process_watch *watch, struct process_use *out, size_t *count,
                            double *watched_s)
{
    pthread_mutex_lock(&watch->lock);
    enum err err = watch->err;
    *count = watch->count;
    *watched_s = seconds(watch->newest - watch->began);
    memcpy(out, watch->rows, watch->count * sizeof *out);
    pthread_mutex_unlock(&watch->lock);
    return err;
}
