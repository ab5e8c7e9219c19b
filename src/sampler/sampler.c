#define _GNU_SOURCE
#include "sampler/sampler.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "sampler/anchored.h"
#include "sampler/process_watch.h"
#include "sampler/series.h"
#include "sampler/shaped.h"
#include "sampler/source.h"

/* How often rings are drained; they hold several times the samples of the fastest source in that time. */
#define DRAIN_PERIOD      (100 * NS_PER_MS)
#define DRAIN_PERIOD_SLOW NS_PER_S /* no sensor is read a thousand times per second there */

/* How long to wait for the first two updates: of fast counters, which tick every millisecond, and of sensors whose
 * ticks are followed, which may take a tenth of a second each. */
#define READY_FAST    (40 * NS_PER_MS)
#define READY_FOLLOW  (330 * NS_PER_MS)
#define READY_TIMEOUT (3 * NS_PER_S)
/* The assumed period of a followed sensor until it is learned: the slowest common one. */
#define UPDATE_UNKNOWN (100 * NS_PER_MS)
#define SETTLE_MAX     (400 * NS_PER_MS)
#define SETTLE_MIN     (10 * NS_PER_MS)
/* A read that takes longer than this will not return: the slowest known take 15 ms. */
#define READ_TIMEOUT NS_PER_S
/* How many times longer than for a sensor to wait for a reader thread that a busy machine does not let run. */
#define BUSY_FACTOR 10
#define WATCH_MAX   (100 * NS_PER_MS)
#define MARK_MAX    (15 * NS_PER_MS)
/* Duration of the reads requested by a tick. */
#define TICK_READ   (3 * NS_PER_MS)
#define SLEEP_FIRST (500 * NS_PER_US)
#define SLEEP_LAST  (10 * NS_PER_MS)

struct sampler {
    struct source **sources;
    size_t count;
    struct source_pace pace;
    struct spill spill;
    pthread_mutex_t lock; /* guards every series, the spill and popping from the rings */
    struct deadline deadline;
    pthread_t drain_thread;
    bool running;
    atomic_bool stopping;
    bool spill_reported;
};

struct sampler *sampler_new(nanos period)
{
    struct sampler *sampler = memory_zeroed(1, sizeof *sampler);
    if (!sampler)
        return NULL;
    deadline_init(&sampler->deadline);
    sampler->pace.period = period;
    spill_init(&sampler->spill);
    pthread_mutex_init(&sampler->lock, NULL);
    return sampler;
}

void sampler_set_low_overhead(struct sampler *sampler, nanos tick_period)
{
    sampler->pace.low_overhead = true;
    sampler->pace.tick = tick_period;
}

void sampler_set_counter_period(struct sampler *sampler, nanos period)
{
    sampler->pace.counter = period;
}

void sampler_free(struct sampler *sampler)
{
    if (!sampler)
        return;
    sampler_stop(sampler);
    for (size_t i = 0; i < sampler->count; i++)
        source_free(sampler->sources[i]);
    free(sampler->sources);
    spill_release(&sampler->spill);
    pthread_mutex_destroy(&sampler->lock);
    free(sampler);
}

void sampler_keep_recent(struct sampler *sampler)
{
    sampler->spill.keeps_nothing = true;
}

static enum err check_identity(struct sampler *sampler, struct source *source, struct error *why)
{
    const struct sensor **others = memory_zeroed(sampler->count + 1, sizeof *others);
    if (!others)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < sampler->count; i++)
        others[i] = &sampler->sources[i]->described;
    enum err err = identity_check(others, sampler->count, &source->described, why);
    free(others);
    return err;
}

struct opening {
    struct source *source;
    struct sensor_finding finding;
    struct spill *spill;
    struct source_pace pace;
    enum err err;
    struct error why;
};

static void *open_main(void *argument)
{
    struct opening *work = argument;
    work->err = source_init(work->source, &work->finding, work->spill, &work->pace, &work->why);
    return NULL;
}

/* Opens in a separate thread, because a driver may hang: its memory is then left to that thread. */
static enum err open_source(struct sampler *sampler, const struct sensor_finding *finding,
                            struct source **out, struct error *why)
{
    struct opening *work = memory_zeroed(1, sizeof *work);
    struct source *source = work ? memory_resize(NULL, sizeof *source) : NULL;
    if (!source) {
        free(work);
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    }
    *work = (struct opening){
        .source = source, .finding = *finding, .spill = &sampler->spill, .pace = sampler->pace};
    if (!thread_run(open_main, work, SENSOR_CALL_TIMEOUT))
        return err_set(why, ERR_TIMEOUT, "the driver does not return from a call");
    enum err err = work->err;
    *why = work->why;
    free(work);
    if (err)
        free(source);
    else
        *out = source;
    return err;
}

enum err sampler_add(struct sampler *sampler, const struct sensor_finding *finding,
                     struct error *why)
{
    struct source **sources =
        memory_resize(sampler->sources, (sampler->count + 1) * sizeof *sampler->sources);
    struct source *source = NULL;
    if (!sources)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    sampler->sources = sources;
    enum err err = open_source(sampler, finding, &source, why);
    if (err)
        return err;
    err = check_identity(sampler, source, why);
    if (err) {
        source_free(source);
        return err;
    }
    sampler->sources[sampler->count++] = source;
    return ERR_OK;
}

/* ---- moving samples from the rings into the timelines ---- */

static void drain_source(struct source *source)
{
    struct channel_sample sample;
    while (ring_pop(&source->ring, &sample)) {
        struct series *series = &source->series[sample.channel];
        if (series_take(series, &sample) != ERR_OK)
            series->refused++;
    }
    bool wants_counter = false;
    if (source->anchored_channel >= 0 &&
        anchored_advance(&source->anchored, &wants_counter) != ERR_OK)
        source->series[source->anchored_channel].refused++;
    if (wants_counter)
        source_wake(source);
}

/* The timeline to use for a channel: for an anchored counter, the anchored energy. */
static const struct timeline *timeline_of(const struct source *source, size_t channel)
{
    return (int)channel == source->anchored_channel && anchored_is_usable(&source->anchored)
               ? &source->anchored.energy
               : &source->series[channel].timeline;
}

/* Call with the lock held. */
static void drain(struct sampler *sampler)
{
    for (size_t i = 0; i < sampler->count; i++)
        drain_source(sampler->sources[i]);
    if (sampler->spill.failed && !sampler->spill_reported) {
        log_warn("%s; older samples are downsampled instead, no energy is lost",
                 sampler->spill.why.text);
        sampler->spill_reported = true;
    }
}

static void *drain_main(void *argument)
{
    struct sampler *sampler = argument;
    thread_name("ipw-drain", -1);
    nanos next = clock_now();
    const struct source_pace *pace = &sampler->pace;
    bool is_slow = pace->low_overhead || (pace->counter > 0 && pace->period == 0);
    while (!atomic_load(&sampler->stopping)) {
        next += is_slow ? DRAIN_PERIOD_SLOW : DRAIN_PERIOD;
        deadline_wait(&sampler->deadline, next);
        pthread_mutex_lock(&sampler->lock);
        drain(sampler);
        pthread_mutex_unlock(&sampler->lock);
    }
    return NULL;
}

enum err sampler_start(struct sampler *sampler, struct error *why)
{
    atomic_store(&sampler->stopping, false);
    enum err err = thread_start(&sampler->drain_thread, drain_main, sampler);
    sampler->running = !err;
    for (size_t i = 0; i < sampler->count && !err; i++)
        err = source_start(sampler->sources[i]);
    if (!err)
        return ERR_OK;
    sampler_stop(sampler);
    return err_set(why, err, "cannot start a thread: %s", err_text(err));
}

void sampler_stop(struct sampler *sampler)
{
    if (!sampler->running)
        return;
    for (size_t i = 0; i < sampler->count; i++)
        source_stop(sampler->sources[i]);
    nanos until = clock_now() + READ_TIMEOUT;
    for (size_t i = 0; i < sampler->count; i++)
        source_join(sampler->sources[i], until, until + BUSY_FACTOR * READ_TIMEOUT);
    atomic_store(&sampler->stopping, true);
    deadline_wake(&sampler->deadline);
    pthread_join(sampler->drain_thread, NULL);
    sampler->running = false;
    pthread_mutex_lock(&sampler->lock);
    drain(sampler);
    pthread_mutex_unlock(&sampler->lock);
}

/* ---- waiting for readings ---- */

static bool follows_ticks(const struct source *source, size_t channel)
{
    return source->described.groups[source->described.channels[channel].group].follow_ticks;
}

/* How long a driver has been hanging in a read; 0 unless that is too long. */
static nanos blocked_for(const struct source *source)
{
    nanos began = atomic_load(&source->counts.reading);
    nanos took = began ? clock_now() - began : 0;
    return took > READ_TIMEOUT ? took : 0;
}

/* Sleeps, and returns how much of that counts as waiting: not the time for which a busy machine stopped the whole
 * program, when no reader thread could have read, either. */
static nanos pause_for(nanos pause)
{
    nanos began = clock_now();
    thread_sleep(pause);
    nanos took = clock_now() - began;
    return took < 2 * pause ? took : 2 * pause;
}

/* When the newest read that includes this channel began; 0 before the first.  Reads of the source's other groups do
 * not count: on a busy machine they may be done while this one is still due. */
static nanos last_read_of(const struct source *source, size_t channel)
{
    return atomic_load(&source->counts.last_read[source->described.channels[channel].group]);
}

/* Whether the time limit of a channel has passed.  On a busy machine it counts from when the reader thread ran, not
 * from when we began to wait: otherwise the next measurement would begin without a reading. */
static bool has_waited_enough(const struct source *source, size_t channel, nanos waited,
                              nanos limit)
{
    nanos began = clock_now() - waited, first = atomic_load(&source->counts.first_read);
    nanos since = first > began ? first : began;
    return waited > limit && ((first && last_read_of(source, channel) > since + limit) ||
                              waited > READY_TIMEOUT || blocked_for(source) > 0);
}

static bool has_begun(const struct source *source, size_t channel, nanos waited)
{
    const struct series *series = &source->series[channel];
    /* The first point of a counter is at a tick of known time: sufficient as a start. */
    if (timeline_count(&series->timeline) > 0)
        return true;
    if (series->channel->secondary)
        return true; /* only the primary channel is worth waiting for */
    if (series->channel->quantity != QTY_ENERGY)
        return series->missing > 0 || has_waited_enough(source, channel, waited, READY_FOLLOW);
    return has_waited_enough(source, channel, waited,
                             follows_ticks(source, channel) ? READY_FOLLOW : READY_FAST);
}

/* Maximum time to wait for readings up to an instant: those of another host arrive late. */
static nanos settle_limit(const struct source *source, size_t channel)
{
    return SETTLE_MAX + source->described.channels[channel].behind;
}

/* How long a channel may take to have readings up to an instant. */
static nanos response_limit(const struct source *source, size_t channel)
{
    nanos update = atomic_load(&source->periods[channel]);
    if (update == 0 && follows_ticks(source, channel))
        update = UPDATE_UNKNOWN; /* not learned yet */
    unsigned group = source->described.channels[channel].group;
    nanos reads = source->reader.schedules[group].period;
    nanos limit = 2 * update + (follows_ticks(source, channel) ? update : 0);
    limit += source->described.groups[group].period_min; /* a request may not cause a read sooner */
    if (source->series[channel].channel->quantity == QTY_POWER)
        limit += reads;
    limit += SETTLE_MIN + source->described.channels[channel].behind;
    nanos max = settle_limit(source, channel);
    return limit < max ? limit : max;
}

/* The first tick at or after t of a counter of this source; t while there is none.  Power samples must reach that
 * far to shape the joules of the interval that contains t. */
static nanos tick_after(const struct source *source, nanos t)
{
    for (size_t i = 0; i < source->described.channel_count; i++) {
        const struct timeline *timeline = &source->series[i].timeline;
        struct timeline_point point;
        size_t index;
        if (source->described.channels[i].quantity == QTY_ENERGY &&
            timeline_after(timeline, t - 1, &index) == ERR_OK &&
            timeline_read(timeline, index, 1, &point) == ERR_OK)
            return point.t;
    }
    return t;
}

static bool reaches(const struct source *source, size_t channel, nanos t, nanos waited)
{
    const struct series *series = &source->series[channel];
    const struct timeline_point *last = timeline_last(&series->timeline);
    if (series->channel->secondary)
        t = tick_after(source, t);
    if (last && last->t >= t)
        return true;
    /* A lost device or a hanging driver returns no more readings. */
    if (atomic_load(&source->counts.lost) > atomic_load(&source->counts.back) ||
        blocked_for(source) > 0)
        return true;
    nanos max = settle_limit(source, channel);
    if (waited > (max + READ_TIMEOUT) * (source_is_due(source) ? BUSY_FACTOR : 1))
        return true;
    /* On a busy machine the reader thread may not have run yet: not the sensor's fault. */
    if (last_read_of(source, channel) < t)
        return false;
    if (!last)
        return true;
    /* A read in progress either returns or is soon known to be blocked, which is then the reason for the missing
     * reading. */
    if (waited > max)
        return atomic_load(&source->counts.reading) == 0;
    return waited > response_limit(source, channel);
}

/* Whether this channel responds to a request immediately.  Followed ticks come at their own time, and an instantaneous
 * power reading needs no sharp edge. */
static bool responds_at_once(const struct source *source, size_t channel)
{
    const struct sensor_channel *row = &source->described.channels[channel];
    return !follows_ticks(source, channel) && !row->secondary &&
           (row->quantity == QTY_ENERGY || row->interval_mean);
}

enum wait_kind { WAIT_BEGIN, WAIT_MARK, WAIT_SETTLE };

static bool is_done(const struct source *source, size_t channel, enum wait_kind kind, nanos t,
                    nanos waited)
{
    switch (kind) {
    case WAIT_BEGIN:
        return has_begun(source, channel, waited);
    case WAIT_MARK:
        return !responds_at_once(source, channel) || waited > MARK_MAX ||
               reaches(source, channel, t, waited);
    default:
        return reaches(source, channel, t, waited);
    }
}

/* Sleeps until every energy channel is done, poking sources that are not. */
static void wait_for(struct sampler *sampler, enum wait_kind kind, nanos t)
{
    nanos waited = 0, pause = SLEEP_FIRST;
    for (;;) {
        bool all = true;
        pthread_mutex_lock(&sampler->lock);
        drain(sampler);
        for (size_t i = 0; i < sampler->count; i++) {
            struct source *source = sampler->sources[i];
            bool done = true;
            for (size_t c = 0; c < source->described.channel_count; c++)
                if (quantity_gives_joules(source->described.channels[c].quantity))
                    done = done && is_done(source, c, kind, t, waited);
            all = all && done;
            if (!done && (kind != WAIT_BEGIN || waited > READY_FAST))
                source_wake(source);
        }
        if (all)
            drain(sampler); /* including reads that ended since */
        pthread_mutex_unlock(&sampler->lock);
        if (all) {
            static const char *const WHAT[] = {"begun", "marked", "settled"};
            log_debug("%s after %.1f ms", WHAT[kind], 1e3 * seconds(waited));
            return;
        }
        /* Millisecond counters respond within the first pauses; for slow ones a read at every pause would cost CPU
         * and return nothing new. */
        waited += pause_for(pause);
        pause = pause < SLEEP_LAST ? pause + pause / 2 : pause;
    }
}

void sampler_ready(struct sampler *sampler)
{
    wait_for(sampler, WAIT_BEGIN, 0);
}

void sampler_mark(struct sampler *sampler)
{
    wait_for(sampler, WAIT_MARK, clock_now());
}

void sampler_settle(struct sampler *sampler, nanos t)
{
    wait_for(sampler, WAIT_SETTLE, t);
}

/* ---- ticks of a monitor ---- */

/* When the readings of a channel will reach t; 0 if they already do, or never will. */
static nanos tick_due(const struct source *source, size_t channel, nanos t)
{
    const struct sensor_channel *row = &source->described.channels[channel];
    const struct series *series = &source->series[channel];
    unsigned group = row->group;
    if (!quantity_gives_joules(row->quantity) || row->secondary)
        return 0;
    if ((int)channel == source->anchored_channel) { /* energy follows the power channel */
        long power = sensor_shape_channel(&source->described, channel);
        series = &source->series[power];
        group = source->described.channels[power].group;
    }
    const struct timeline_point *last = timeline_last(&series->timeline);
    if (!last || last->t >= t || blocked_for(source) > 0 ||
        atomic_load(&source->counts.lost) > atomic_load(&source->counts.back))
        return 0;
    nanos due = source_request_due(source, group, t);
    if (source->described.groups[group].follow_ticks)
        due += source->reader.schedules[group].period;
    return due;
}

/* When all readings that will reach t before `until` do, or only wait for their thread to run; 0 if none is missing. */
static nanos ticks_due(struct sampler *sampler, nanos t, nanos until)
{
    nanos due = 0;
    pthread_mutex_lock(&sampler->lock);
    drain(sampler);
    for (size_t i = 0; i < sampler->count; i++)
        for (size_t c = 0; c < sampler->sources[i]->described.channel_count; c++) {
            nanos at = tick_due(sampler->sources[i], c, t);
            bool is_awaited = at <= until || source_is_due(sampler->sources[i]);
            due = at > due && is_awaited ? at : due;
        }
    pthread_mutex_unlock(&sampler->lock);
    return due;
}

/* Sleeps until the reads are due instead of polling, which would cost more than the reads. */
void sampler_tick(struct sampler *sampler, nanos t, nanos max)
{
    if (!sampler->pace.low_overhead) {
        sampler_settle(sampler, t);
        return;
    }
    nanos waited = 0, due = ticks_due(sampler, t, INT64_MAX);
    for (size_t i = 0; i < sampler->count && due > 0; i++)
        source_request(sampler->sources[i], t, max > 0);
    while (waited < BUSY_FACTOR * max &&
           (due = ticks_due(sampler, t, clock_now() + max - waited - TICK_READ)) > 0) {
        nanos left = due + TICK_READ - clock_now();
        waited += pause_for(left > TICK_READ ? left : TICK_READ);
    }
}

/* ---- queries ---- */

/* Takes the lock after draining the source's samples into its timelines; the caller unlocks. */
static struct source *lock_drained(struct sampler *sampler, size_t source)
{
    pthread_mutex_lock(&sampler->lock);
    drain_source(sampler->sources[source]);
    return sampler->sources[source];
}

size_t sampler_count(const struct sampler *sampler)
{
    return sampler->count;
}

size_t sampler_channel_count(const struct sampler *sampler)
{
    size_t count = 0;
    for (size_t i = 0; i < sampler->count; i++)
        count += sampler->sources[i]->described.channel_count;
    return count;
}

const struct sensor *sampler_sensor(const struct sampler *sampler, size_t source)
{
    return &sampler->sources[source]->described;
}

static nanos period_of(const struct source *source, size_t channel)
{
    if ((int)channel != source->anchored_channel)
        return atomic_load(&source->periods[channel]);
    long power = sensor_shape_channel(&source->described, channel);
    return source->reader.schedules[source->described.channels[power].group].min;
}

void sampler_channel(struct sampler *sampler, size_t source, size_t channel,
                     struct channel_state *out)
{
    struct source *locked = lock_drained(sampler, source);
    const struct series *series = &locked->series[channel];
    const struct timeline_point *last = timeline_last(timeline_of(locked, channel));
    *out = (struct channel_state){
        .period = period_of(locked, channel),
        .updates = series->updates,
        .missing = series->missing,
        .gaps = series->gaps,
        .refused = series->refused,
        .zeros = series->zeros,
        .last_error = series->last_error,
        .has_value = last && is_known(last->value),
        .value = last ? last->value : UNKNOWN,
        .t = last ? last->t : 0,
        .blocked_s = seconds(blocked_for(locked)),
        .thinned = series->timeline.thinned,
    };
    pthread_mutex_unlock(&sampler->lock);
}

void sampler_source(struct sampler *sampler, size_t source, struct source_state *out)
{
    struct source *from = sampler->sources[source];
    struct source_counts *counts = &from->counts;
    *out = (struct source_state){
        .reads = atomic_load(&counts->reads),
        .failed = atomic_load(&counts->failed),
        .late = atomic_load(&counts->late),
        .lost = atomic_load(&counts->lost),
        .back = atomic_load(&counts->back),
        .dropped = atomic_load(&from->ring.dropped),
        .read_s = seconds(atomic_load(&counts->read_ns)),
        .read_us = (double)atomic_load(&counts->read_ns_best) * 1e-3,
    };
    out->is_lost = out->lost > out->back || blocked_for(from) > 0;
}

static enum err read_window(const struct source *source, size_t channel, long power_channel,
                            nanos from, nanos to, struct window *out)
{
    const struct timeline *timeline = timeline_of(source, channel);
    if (timeline != &source->series[channel].timeline)
        return anchored_window(&source->anchored, from, to, out);
    return power_channel < 0
               ? window_read(timeline, from, to, out)
               : shaped_window(timeline, &source->series[power_channel].timeline, from, to, out);
}

enum err sampler_window(struct sampler *sampler, size_t source, size_t channel, nanos from,
                        nanos to, struct window *out)
{
    struct source *locked = lock_drained(sampler, source);
    enum err err = read_window(locked, channel, -1, from, to, out);
    pthread_mutex_unlock(&sampler->lock);
    return err;
}

enum err sampler_window_shaped(struct sampler *sampler, size_t source, size_t channel,
                               size_t power_channel, nanos from, nanos to, struct window *out)
{
    struct source *locked = lock_drained(sampler, source);
    enum err err = read_window(locked, channel, (long)power_channel, from, to, out);
    pthread_mutex_unlock(&sampler->lock);
    return err;
}

enum err sampler_extremes(struct sampler *sampler, size_t source, size_t channel, nanos from,
                          nanos to, double *low, double *high)
{
    struct source *locked = lock_drained(sampler, source);
    enum err err = window_extremes(timeline_of(locked, channel), from, to, low, high);
    pthread_mutex_unlock(&sampler->lock);
    return err;
}

enum err sampler_running(struct sampler *sampler, size_t source, size_t channel, long power_channel,
                         const nanos *times, size_t count, double *sums, nanos *covered)
{
    struct source *locked = lock_drained(sampler, source);
    const struct timeline *timeline = timeline_of(locked, channel);
    struct shaped_cursor cursor = {0};
    enum err err = ERR_OK;
    if (timeline != &locked->series[channel].timeline)
        power_channel = -1; /* already shaped by power */
    for (size_t i = 0; i < count && !err; i++)
        err = power_channel < 0
                  ? window_running(timeline, &cursor.counter, times[i], &sums[i], &covered[i])
                  : shaped_running(timeline, &locked->series[power_channel].timeline, &cursor,
                                   times[i], &sums[i], &covered[i]);
    pthread_mutex_unlock(&sampler->lock);
    return err;
}

/* Whether that is also the resolution at t; between readings, the power changes. */
static bool still_holds(const struct resolution *at, const struct timeline *timeline, nanos t)
{
    const struct unresolved *finest = at->sample.to > 0 ? &at->sample : &at->interval;
    return timeline->shape == SHAPE_MEANS && t >= finest->from && t < finest->to &&
           t < at->interval.to;
}

enum err sampler_resolution(struct sampler *sampler, size_t source, size_t channel,
                            long power_channel, const nanos *times, size_t count,
                            struct resolution *out)
{
    struct source *locked = lock_drained(sampler, source);
    const struct timeline *timeline = timeline_of(locked, channel);
    struct shaped_cursor cursor = {0};
    enum err err = ERR_OK;
    if (timeline != &locked->series[channel].timeline)
        power_channel = -1; /* already shaped by power */
    for (size_t i = 0; i < count && !err; i++)
        if (i > 0 && still_holds(&out[i - 1], timeline, times[i]))
            out[i] = out[i - 1];
        else if (power_channel < 0)
            err = window_resolution(timeline, times[i], &out[i]);
        else
            err = shaped_resolution(timeline, &locked->series[power_channel].timeline, &cursor,
                                    times[i], &out[i]);
    pthread_mutex_unlock(&sampler->lock);
    return err;
}

enum err sampler_values(struct sampler *sampler, size_t source, size_t channel, nanos from,
                        nanos to, struct value_stats *out)
{
    struct source *locked = lock_drained(sampler, source);
    const struct series *series = &locked->series[channel];
    enum err err = window_values(timeline_of(locked, channel), from, to, series->gap_limit, out);
    pthread_mutex_unlock(&sampler->lock);
    return err;
}

/* The points in (after, until], as many as fit. */
static enum err next_points(struct sampler *sampler, const struct timeline *timeline, nanos after,
                            nanos until, struct timeline_point *out, size_t *count)
{
    size_t first = 0, end = 0, capacity = *count;
    *count = 0;
    pthread_mutex_lock(&sampler->lock);
    enum err err = timeline_after(timeline, after, &first);
    if (!err)
        err = timeline_after(timeline, until, &end);
    if (!err && first < end) {
        *count = end - first < capacity ? end - first : capacity;
        err = timeline_read(timeline, first, *count, out);
    }
    pthread_mutex_unlock(&sampler->lock);
    return err;
}

enum err sampler_points(struct sampler *sampler, size_t source, size_t channel, nanos after,
                        bool (*take)(const struct timeline_point *points, size_t count,
                                     void *context),
                        void *context)
{
    enum { CHUNK = 256 };
    struct timeline_point chunk[CHUNK];
    struct channel_state newest;
    sampler_channel(sampler, source, channel, &newest);
    const struct timeline *timeline = timeline_of(sampler->sources[source], channel);
    /* By time, not by index: the history may be thinned during the callback. */
    for (;;) {
        size_t count = CHUNK;
        enum err err = next_points(sampler, timeline, after, newest.t, chunk, &count);
        if (err || count == 0 || !take(chunk, count, context))
            return err;
        after = chunk[count - 1].t;
    }
}

/* ---- processes ---- */

/* Requests a reading of every source whose driver reports processes. */
static void request_watch(struct sampler *sampler, void (*request)(struct process_watch *))
{
    for (size_t i = 0; i < sampler->count; i++) {
        if (!sampler->sources[i]->described.driver->processes)
            continue;
        request(&sampler->sources[i]->processes);
        source_wake(sampler->sources[i]);
    }
}

static void await_watch(const struct process_watch *watch, nanos until)
{
    while (!process_watch_is_current(watch) && clock_now() < until)
        thread_sleep(SLEEP_FIRST);
}

void sampler_watch_begin(struct sampler *sampler)
{
    nanos until = clock_now() + WATCH_MAX;
    request_watch(sampler, process_watch_begin);
    for (size_t i = 0; i < sampler->count; i++)
        await_watch(&sampler->sources[i]->processes, until);
}

void sampler_watch_end(struct sampler *sampler)
{
    request_watch(sampler, process_watch_end);
}

enum err sampler_processes(struct sampler *sampler, size_t source,
                           struct process_use out[SENSOR_PROCESSES_MAX], size_t *count,
                           double *watched_s)
{
    struct source *from = sampler->sources[source];
    *count = 0;
    *watched_s = 0;
    if (!from->described.driver->processes)
        return ERR_UNSUPPORTED;
    if (!atomic_load(&from->processes.is_on)) /* after sampler_watch_end */
        await_watch(&from->processes, clock_now() + WATCH_MAX);
    return process_watch_copy(&from->processes, out, count, watched_s);
}

unsigned long sampler_reads(struct sampler *sampler)
{
    unsigned long reads = 0;
    for (size_t i = 0; i < sampler->count; i++)
        reads += atomic_load(&sampler->sources[i]->counts.reads);
    return reads;
}
