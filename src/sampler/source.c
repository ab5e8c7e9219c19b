#include "sampler/source.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/text.h"
#include "sensors/registry.h"

/* Learning a sensor's period: sensors with fast reads are first read this often for this long (RAPL updates every
 * millisecond); a group that follows ticks then continues more slowly (NVIDIA: 100 ms). */
#define LEARN_FINE_STEP   (250 * NS_PER_US)
#define LEARN_FINE_TIME   (15 * NS_PER_MS)
#define LEARN_COARSE_STEP (4 * NS_PER_MS)
#define LEARN_ANCHOR_STEP (20 * NS_PER_MS)
#define LEARN_COARSE_TIME (1000 * NS_PER_MS)
#define LEARN_LATE        (50 * NS_PER_MS)
#define LEARN_AGAIN       (30 * NS_PER_S)
#define LEARN_AGAIN_SLOW  (300 * NS_PER_S)
/* An anchored counter whose period is not known yet, because it changed with every read: a few reads close together
 * at each anchor determine its time. */
#define LEARN_ANCHOR_AGAIN (500 * NS_PER_MS)
#define LEARN_ANCHOR_TIME  (100 * NS_PER_MS)
#define CLOSE_READS        16
#define FAST_READ          (100 * NS_PER_US)

/* Period in a low-overhead session of groups that lose no data between reads. */
#define SLOW_PERIOD (2 * NS_PER_S)

/* The first anchors of a counter come sooner: they give the ratio of counter to power. */
#define ANCHOR_FIRST NS_PER_S

/* A read due within an eighth of its minimum period is made together with others: one wake-up for all. */
#define EARLY_SHARE 8

/* A tick that no thread waits for may be shifted by this fraction of the tick interval, to its expected time. */
#define EXPECTED_SHARE 16

/* A counter whose driver requests more frequent reads has only coarse power samples. */
#define SHAPED_MIN NS_PER_S

/* A counter that updates faster than this is timestamped with its last update when it is read. */
#define UPDATES_FAST (20 * NS_PER_MS)

/* Maximum number of consecutive ambiguous readings that are held back. */
#define HELD_MAX      3

#define SILENT_AFTER  (5 * NS_PER_S)
#define SILENT_PERIOD NS_PER_S

#define REOPEN_FIRST  (500 * NS_PER_MS)
#define REOPEN_MAX    (5 * NS_PER_S)

/* A suspend shorter than this is indistinguishable from the skew of two clock reads. */
#define SUSPEND_MIN (100 * NS_PER_MS)

/* ---- setup ---- */

/* The channel whose updates determine when to read: a counter, or where ticks are followed and there is none, power. */
static int find_guide(const struct sensor *sensor, unsigned group)
{
    int power = -1;
    for (size_t i = 0; i < sensor->channel_count; i++) {
        const struct sensor_channel *channel = &sensor->channels[i];
        if (channel->group != group)
            continue;
        if (channel->quantity == QTY_ENERGY)
            return (int)i;
        if (channel->quantity == QTY_POWER && power < 0)
            power = (int)i;
    }
    return sensor->groups[group].follow_ticks ? power : -1;
}

static nanos group_period(const struct sensor_group *group, nanos wanted)
{
    nanos period = wanted > 0 && !group->fixed_period ? wanted : group->period_default;
    return period < group->period_min ? group->period_min : period;
}

/* Whether the read frequency of a group does not matter for energy: counters and means lose nothing. */
static bool is_lossless(const struct sensor *sensor, unsigned group)
{
    for (size_t i = 0; i < sensor->channel_count; i++) {
        const struct sensor_channel *channel = &sensor->channels[i];
        if (channel->group == group && channel->quantity == QTY_POWER && !channel->interval_mean)
            return false;
    }
    return true;
}

/* The anchored counter of a group with reads that far apart; -1 for none. */
static int anchored_in(const struct sensor *sensor, unsigned group)
{
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (sensor->channels[i].group == group && sensor->groups[group].slow_period > 0 &&
            sensor_shape_channel(sensor, i) >= 0)
            return (int)i;
    return -1;
}

/* Whether a tick waits for a group: others are read along with it. */
static bool is_awaited(const struct sensor *sensor, unsigned group)
{
    for (size_t i = 0; i < sensor->channel_count; i++) {
        const struct sensor_channel *channel = &sensor->channels[i];
        if (!quantity_gives_joules(channel->quantity) || channel->secondary)
            continue;
        long power = sensor_shape_channel(sensor, i); /* in place of an anchored counter */
        if (channel->group == group || (power >= 0 && sensor->channels[power].group == group))
            return true;
    }
    return false;
}

static nanos longest_lag(const struct sensor *sensor)
{
    nanos longest = 0;
    for (size_t i = 0; i < sensor->channel_count; i++)
        longest = sensor->channels[i].lag > longest ? sensor->channels[i].lag : longest;
    return longest;
}

/* Minimum time between reads that ticks request in a low-overhead session. */
static nanos slow_min(const struct sensor_group *group, nanos tick, bool is_energy)
{
    bool is_each = is_energy && tick > 0 && tick < group->slow_period_min;
    return is_each ? max_nanos(tick, group->period_min) : group->slow_period_min;
}

static struct schedule make_schedule(const struct sensor *sensor, unsigned g,
                                     const struct source_pace *pace)
{
    const struct sensor_group *group = &sensor->groups[g];
    struct schedule schedule = {
        .period = group_period(group, pace->period),
        .min = group->period_min,
        .guide = find_guide(sensor, g),
    };
    for (size_t i = 0; i < sensor->channel_count; i++)
        if (sensor->channels[i].group == g && sensor->channels[i].lag > schedule.lag)
            schedule.lag = sensor->channels[i].lag;
    bool is_collected = schedule.lag > 0; /* buffered by the driver until read */
    schedule.is_awaited = is_awaited(sensor, g);
    if (pace->low_overhead)
        schedule.lag = longest_lag(sensor); /* one wake-up for all groups of a tick */
    bool is_shaped = anchored_in(sensor, g) >= 0;
    bool is_counter =
        schedule.guide >= 0 && sensor->channels[schedule.guide].quantity == QTY_ENERGY;
    if (pace->low_overhead && group->slow_period > 0 && (!is_counter || is_shaped)) {
        schedule.period = group->slow_period;
        schedule.min = slow_min(group, pace->tick, schedule.is_awaited && !is_counter);
        schedule.anchor_gap = is_counter ? ANCHOR_FIRST : 0;
    } else if (pace->low_overhead && pace->period == 0 && schedule.period < SLOW_PERIOD &&
               is_lossless(sensor, g) && !group->follow_ticks) {
        schedule.period = SLOW_PERIOD;
    } else if (is_shaped && pace->period == 0 && schedule.period < pace->counter &&
               schedule.period >= SHAPED_MIN) {
        schedule.period = pace->counter;
    } else if (pace->counter > 0 && pace->period == 0 && !is_counter && !group->follow_ticks) {
        nanos slow = is_collected ? group->slow_period : group->slow_period_min;
        schedule.period = schedule.period > slow ? schedule.period : slow;
    }
    return schedule;
}

/* Maximum distance of two readings of a channel that are joined by a line.  Mean power since the previous read
 * covers all the time in between, however late the read is; a driver's buffer may have overflowed. */
static nanos gap_limit(const struct schedule *schedule, const struct sensor_group *group,
                       const struct sensor_channel *channel)
{
    if (channel->quantity == QTY_POWER && channel->interval_mean && channel->lag == 0)
        return INT64_MAX;
    nanos period = group->slow_period > 0 && schedule->period > group->period_default
                       ? group->period_default
                       : schedule->period;
    return max_nanos(500 * NS_PER_MS, max_nanos(5 * period, 2 * schedule->period));
}

static void init_anchored(struct source *source, struct spill *spill)
{
    const struct sensor *sensor = &source->described;
    source->anchored_channel = -1;
    for (unsigned g = 0; g < sensor->group_count && source->low_overhead; g++) {
        int counter = anchored_in(sensor, g);
        if (counter < 0)
            continue;
        long power = sensor_shape_channel(sensor, (size_t)counter);
        source->anchored_channel = counter;
        anchored_init(&source->anchored, &source->series[counter].timeline,
                      &source->series[power].timeline, spill, source->reader.schedules[g].period);
        return;
    }
}

enum err source_init(struct source *source, const struct sensor_finding *finding,
                     struct spill *spill, const struct source_pace *pace, struct error *why)
{
    *source = (struct source){.finding = *finding, .holders = 1, .wake_at = INT64_MAX};
    source->low_overhead = pace->low_overhead;
    struct reader *reader = &source->reader;
    enum err err = sensor_open(finding, &reader->sensor, why);
    if (err)
        return err;
    reader->open = true;
    err = ring_init(&source->ring, 8192);
    deadline_init(&source->deadline);
    process_watch_init(&source->processes);
    if (err) {
        sensor_close(&reader->sensor);
        return err_set(why, err, "%s: %s", finding->id, err_text(err));
    }
    source->described = reader->sensor;
    source->described.state = NULL;
    const struct sensor *sensor = &source->described;
    for (unsigned g = 0; g < sensor->group_count; g++)
        reader->schedules[g] = make_schedule(sensor, g, pace);
    for (size_t i = 0; i < sensor->channel_count; i++) {
        tick_init(&reader->ticks[i]);
        reader->ticks[i].period = sensor->channels[i].period;
        atomic_init(&source->periods[i], sensor->channels[i].period);
        unsigned group = sensor->channels[i].group;
        series_init(
            &source->series[i], &sensor->channels[i], spill,
            gap_limit(&reader->schedules[group], &sensor->groups[group], &sensor->channels[i]));
    }
    init_anchored(source, spill);
    return ERR_OK;
}

/* The series belong to the owner; the thread's data is freed by the last of the two. */
static void source_unref(struct source *source)
{
    if (atomic_fetch_sub(&source->holders, 1) > 1)
        return;
    if (source->reader.open)
        sensor_close(&source->reader.sensor);
    ring_release(&source->ring);
    process_watch_release(&source->processes);
    free(source);
}

void source_free(struct source *source)
{
    for (size_t i = 0; i < source->described.channel_count; i++)
        series_release(&source->series[i]);
    if (source->anchored_channel >= 0)
        anchored_release(&source->anchored);
    source_unref(source);
}

/* ---- reading ---- */

/* A sample that does not fit into a full ring costs resolution; a lost gap would falsify the result, so it is pushed
 * before the channel's next sample. */
static void push(struct source *source, struct channel_sample sample)
{
    uint8_t *pending = &source->reader.pending_gap[sample.channel];
    if (sample.kind == SAMPLE_GAP)
        *pending = sample.why;
    if (*pending) {
        struct channel_sample gap = {
            .t = sample.t, .channel = sample.channel, .kind = SAMPLE_GAP, .why = *pending};
        if (!ring_push(&source->ring, &gap))
            return;
        *pending = 0;
    }
    if (sample.kind != SAMPLE_GAP)
        ring_push(&source->ring, &sample);
}

/* The time between the last sample of every channel and the next is unknown. */
static void push_gaps(struct source *source, enum err why)
{
    nanos now = clock_now();
    for (size_t i = 0; i < source->described.channel_count; i++) {
        push(source,
             (struct channel_sample){
                 .t = now, .channel = (uint16_t)i, .kind = SAMPLE_GAP, .why = (uint8_t)why});
        tick_unlock(&source->reader.ticks[i]);
        source->reader.has_last[i] = false;
    }
    for (unsigned g = 0; g < source->described.group_count; g++) {
        struct schedule *schedule = &source->reader.schedules[g];
        schedule->learn_until = schedule->learn_again = 0;
        schedule->anchor_gap = schedule->anchor_gap > 0 ? ANCHOR_FIRST : 0;
    }
}

/* A counter's first reading may be as old as its period: joined to the first update it would put a whole tick's
 * joules into less than a tick.  It is used as a start only where that age is known to be small compared with the
 * distance between reads. */
static bool accepts_first(const struct source *source, unsigned channel)
{
    nanos period = source->reader.ticks[channel].period;
    unsigned group = source->described.channels[channel].group;
    return period > 0 && period <= source->reader.schedules[group].period / 4;
}

/* A value found so close to a tick that it may belong to that tick or to the previous one is known to a period only.
 * The next read resolves it: the value is unchanged, or a newer one that includes these joules.  So this one is held
 * back, a limited number of times. */
static bool is_ambiguous(struct reader *reader, unsigned channel, const struct tick_time *when)
{
    const struct tick *tick = &reader->ticks[channel];
    if (!tick->locked || when->sigma <= tick->period / 8 || reader->held[channel] >= HELD_MAX) {
        reader->held[channel] = 0;
        return false;
    }
    reader->held[channel]++;
    return true;
}

static void push_count(struct source *source, const struct observation *o, nanos t,
                       uint32_t sigma_us)
{
    push(source, (struct channel_sample){
                     .t = t,
                     .count = o->count,
                     .sigma_us = sigma_us,
                     .channel = o->channel,
                     .kind = SAMPLE_GOOD,
                 });
}

static void pass_count(struct source *source, const struct observation *o, nanos within)
{
    struct reader *reader = &source->reader;
    struct tick *tick = &reader->ticks[o->channel];
    bool is_new = !reader->has_last[o->channel] || reader->last_count[o->channel] != o->count;
    struct tick_time when;
    bool is_dated = tick_observe(tick, o->t, within, is_new, &when);
    if (!is_dated || (!is_new && !reader->held[o->channel]))
        return;
    bool is_first = !reader->has_last[o->channel];
    reader->has_last[o->channel] = true;
    reader->last_count[o->channel] = o->count;
    if (is_first && !accepts_first(source, o->channel))
        return;
    if (is_ambiguous(reader, o->channel, &when))
        return;
    push_count(source, o, when.t, (uint32_t)(when.sigma / NS_PER_US));
}

static void pass_value(struct source *source, const struct observation *o, nanos within)
{
    struct reader *reader = &source->reader;
    const struct sensor_channel *row = &source->described.channels[o->channel];
    /* A mean since the last read changes with every read, whatever the sensor does. */
    if (row->quantity == QTY_POWER && !row->interval_mean) {
        bool is_new = !reader->has_last[o->channel] || reader->last_value[o->channel] != o->value;
        struct tick_time when;
        tick_observe(&reader->ticks[o->channel], o->t, within, is_new, &when);
    }
    reader->has_last[o->channel] = true;
    reader->last_value[o->channel] = o->value;
    push(source, (struct channel_sample){
                     .t = o->t, .value = o->value, .channel = o->channel, .kind = SAMPLE_GOOD});
}

static void pass_on(struct source *source, const struct observation *o, nanos within)
{
    if (o->channel >= source->described.channel_count)
        return;
    bool is_count = source->described.channels[o->channel].quantity == QTY_ENERGY;
    if (o->missing)
        push(source, (struct channel_sample){
                         .t = o->t,
                         .channel = o->channel,
                         .kind = is_count && o->missing == ERR_LOST ? SAMPLE_GAP : SAMPLE_MISSING,
                         .why = (uint8_t)o->missing});
    else if (is_count && o->sigma_us)
        push_count(source, o, o->t, o->sigma_us);
    else if (is_count)
        pass_count(source, o, within);
    else
        pass_value(source, o, within);
    nanos learned = source->reader.ticks[o->channel].period;
    if (learned > 0)
        atomic_store_explicit(&source->periods[o->channel], learned, memory_order_relaxed);
}

static void handle_loss(struct source *source)
{
    struct reader *reader = &source->reader;
    const char *reason = reader->sensor.lost_why;
    log_warn("%s: device lost%s%s%s; trying to reopen it", source->finding.id,
             reason[0] ? " (" : "", reason, reason[0] ? ")" : "");
    atomic_fetch_add(&source->counts.lost, 1);
    push_gaps(source, ERR_LOST);
    sensor_close(&reader->sensor);
    reader->open = false;
    reader->reopen_wait = REOPEN_FIRST;
    reader->reopen_at = clock_now() + REOPEN_FIRST;
}

static void note_cost(struct source *source, unsigned group, nanos cost)
{
    struct source_counts *counts = &source->counts;
    atomic_fetch_add_explicit(&counts->reads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counts->read_ns, cost, memory_order_relaxed);
    struct schedule *schedule = &source->reader.schedules[group];
    if (schedule->best > 0 && cost >= schedule->best)
        return;
    schedule->best = cost;
    if (group == 0)
        atomic_store_explicit(&counts->read_ns_best, cost, memory_order_relaxed);
}

void source_read_group(struct source *source, unsigned group)
{
    struct reader *reader = &source->reader;
    struct observations seen = {
        .items = reader->buffer,
        .capacity = COUNT_OF(reader->buffer),
    };
    nanos before = clock_now();
    atomic_store(&source->counts.reading, before);
    enum err err = reader->sensor.driver->read(&reader->sensor, group, &seen);
    nanos after = clock_now();
    note_cost(source, group, after - before);
    reader->schedules[group].last = after;
    atomic_store_explicit(&source->counts.group_read[group], after, memory_order_relaxed);
    for (size_t i = 0; i < seen.count; i++)
        pass_on(source, &seen.items[i], (after - before) / 2);
    /* Waiters for a read expect its samples to be pushed. */
    if (!atomic_load(&source->counts.first_read))
        atomic_store(&source->counts.first_read, before);
    atomic_store(&source->counts.last_read[group], before);
    atomic_store(&source->counts.reading, 0);
    if (seen.dropped)
        atomic_fetch_add(&source->ring.dropped, seen.dropped);
    if (err)
        atomic_fetch_add(&source->counts.failed, 1);
    if (err == ERR_LOST)
        handle_loss(source);
}

/* ---- scheduling ---- */

/* An anchored counter is read too rarely for that: its period bounds the age of a reading. */
static bool follows_ticks(const struct source *source, unsigned group)
{
    return source->described.groups[group].follow_ticks &&
           source->reader.schedules[group].anchor_gap == 0;
}

static void begin_learning(struct source *source, struct schedule *schedule, unsigned group,
                           nanos now)
{
    bool follows = source->described.groups[group].follow_ticks;
    bool is_fast = schedule->best < FAST_READ;
    bool is_rare =
        source->low_overhead || schedule->period > SHAPED_MIN; /* learning costs additional reads */
    bool is_anchor = schedule->anchor_gap > 0, has_tried = schedule->learn_again > 0;
    schedule->learn_again = now + (is_anchor ? LEARN_ANCHOR_AGAIN
                                   : is_rare ? LEARN_AGAIN_SLOW
                                             : LEARN_AGAIN);
    schedule->close_reads = 0;
    if (follows)
        schedule->learn_until =
            now + (is_anchor && has_tried ? LEARN_ANCHOR_TIME : LEARN_COARSE_TIME);
    else if (is_fast)
        schedule->learn_until = now + LEARN_FINE_TIME;
}

/* The next read while learning, or 0 when that is over. */
static nanos next_while_learning(struct source *source, struct schedule *schedule, unsigned group,
                                 nanos now)
{
    const struct tick *tick = &source->reader.ticks[schedule->guide];
    bool follows = source->described.groups[group].follow_ticks;
    bool is_anchor = schedule->anchor_gap > 0;
    bool learned = follows && !is_anchor
                       ? tick->locked
                       : tick->period > 0 && (is_anchor || tick->interval_count >= 4);
    if (learned || now >= schedule->learn_until) {
        schedule->learn_until = 0;
        return 0;
    }
    /* An expensive read (an NVIDIA counter takes 5 ms of CPU) is made less often: the phase is then less precise at
     * first, and later reads narrow it. */
    nanos coarse = is_anchor ? LEARN_ANCHOR_STEP : 4 * schedule->best;
    return now + (follows ? max_nanos(coarse, LEARN_COARSE_STEP) : LEARN_FINE_STEP);
}

/* Whether a counter has not changed for so long that it is considered dead: reading it only costs CPU. */
static bool is_silent(const struct source *source, const struct schedule *schedule)
{
    return schedule->guide >= 0 &&
           source->described.channels[schedule->guide].quantity == QTY_ENERGY &&
           (nanos)source->reader.ticks[schedule->guide].unchanged * schedule->period > SILENT_AFTER;
}

static nanos next_by_period(struct source *source, struct schedule *schedule, nanos now)
{
    nanos next = schedule->next + schedule->period;
    if (next > now)
        return next;
    nanos behind = (now - next) / schedule->period + 1;
    if (schedule->next > 0)
        atomic_fetch_add_explicit(&source->counts.late, (unsigned long)behind,
                                  memory_order_relaxed);
    return next + behind * schedule->period;
}

/* As rarely as requested, but at first not so far ahead that the tick cannot be predicted: each read makes the
 * period more precise, and the next one may be farther away.  Limited, because reads cost CPU and a slow read may
 * never make the phase precise. */
static nanos follow_gap(const struct tick *tick, struct schedule *schedule)
{
    nanos wanted = schedule->period * 3 / 4, reach = tick_reach(tick);
    if (reach >= wanted || schedule->close_reads >= CLOSE_READS)
        return wanted;
    schedule->close_reads++;
    return reach;
}

/* The next reading of an anchored counter: soon at first, then as rarely as requested. */
static nanos next_anchor(struct schedule *schedule, const struct tick *tick, nanos now)
{
    nanos gap = schedule->anchor_gap < schedule->period ? schedule->anchor_gap : schedule->period;
    schedule->anchor_gap = 2 * gap;
    nanos next = schedule->next + gap + tick_to_mid_period(tick);
    return next > now ? next : now + gap;
}

static void plan(struct source *source, unsigned group)
{
    struct reader *reader = &source->reader;
    struct schedule *schedule = &reader->schedules[group];
    nanos now = clock_now(), next = 0;
    bool silent = is_silent(source, schedule);
    atomic_store_explicit(&source->counts.silent[group], silent, memory_order_relaxed);
    if (schedule->guide >= 0) {
        struct tick *tick = &reader->ticks[schedule->guide];
        bool follows = follows_ticks(source, group);
        bool needs = follows ? !tick->locked : tick->period == 0;
        if (schedule->learn_until && now - schedule->next > LEARN_LATE)
            schedule->learn_until += now - schedule->next; /* nothing was learned meanwhile */
        if (needs && !schedule->learn_until && now >= schedule->learn_again)
            begin_learning(source, schedule, group, now);
        if (schedule->learn_until)
            next = next_while_learning(source, schedule, group, now);
        if (!next && follows && tick->locked)
            next = tick_next_read(tick, now, follow_gap(tick, schedule));
        if (!next && schedule->anchor_gap > 0)
            next = next_anchor(schedule, tick, now);
        if (next) {
            schedule->next = next;
            return;
        }
    }
    schedule->next = next_by_period(source, schedule, now);
    if (silent && schedule->next < now + SILENT_PERIOD)
        schedule->next = now + SILENT_PERIOD;
}

static nanos earliest_deadline(const struct source *source)
{
    const struct reader *reader = &source->reader;
    nanos earliest = INT64_MAX;
    for (unsigned g = 0; g < source->described.group_count; g++)
        earliest = min_nanos(earliest, reader->schedules[g].next);
    return earliest;
}

static void bring_forward(struct tick *tick, struct schedule *schedule, nanos now)
{
    if (schedule->next - now <= tick->period)
        return;
    nanos next = tick_next_read(tick, now, 0);
    if (next && next < schedule->next)
        schedule->next = next;
}

nanos source_request_due(const struct source *source, unsigned group, nanos t)
{
    const struct schedule *schedule = &source->reader.schedules[group];
    nanos update = schedule->guide < 0 ? 0 : atomic_load(&source->periods[schedule->guide]);
    nanos at = t + schedule->lag + (update < UPDATES_FAST ? 2 * update : 0);
    nanos last = atomic_load_explicit(&source->counts.group_read[group], memory_order_relaxed);
    bool silent = atomic_load_explicit(&source->counts.silent[group], memory_order_relaxed);
    nanos min = silent && schedule->min < SILENT_PERIOD ? SILENT_PERIOD : schedule->min;
    return at > last + min ? at : last + min;
}

/* Whether a tick's request is still pending.  Followed ticks come at their own time. */
static bool is_requested(const struct source *source, unsigned group, nanos t)
{
    const struct schedule *schedule = &source->reader.schedules[group];
    nanos last = atomic_load_explicit(&source->counts.group_read[group], memory_order_relaxed);
    return t > 0 && !source->described.groups[group].follow_ticks && last < t + schedule->lag &&
           (schedule->is_awaited || atomic_load(&source->requests_all));
}

/* Plans the reads requested by a tick or, when these are done, those of the next expected tick: a thread that
 * already sleeps until then need not be woken for the request, which costs as much as the read. */
static void plan_requested(struct source *source)
{
    nanos t = atomic_load(&source->requested), expected = t + atomic_load(&source->every);
    for (unsigned g = 0; g < source->described.group_count; g++) {
        struct schedule *schedule = &source->reader.schedules[g];
        nanos wanted = is_requested(source, g, t) ? t : expected;
        nanos due = source_request_due(source, g, wanted);
        if (is_requested(source, g, wanted) && due < schedule->next)
            schedule->next = due;
    }
}

/* Whether a read at `now` would serve the tick that the next one is planned for: the last one or the expected one. */
static bool can_be_early(const struct source *source, unsigned group, nanos now)
{
    const struct schedule *schedule = &source->reader.schedules[group];
    nanos t = atomic_load(&source->requested), expected = t + atomic_load(&source->every);
    if (schedule->next >= expected + schedule->lag && is_requested(source, group, expected))
        t = expected;
    return schedule->guide < 0 && now >= t + schedule->lag;
}

static void read_due(struct source *source, bool requested)
{
    struct reader *reader = &source->reader;
    bool is_edge = atomic_exchange(&source->edge, false);
    if (source->low_overhead) {
        requested = is_edge;
        plan_requested(source);
    }
    bool is_any = source->low_overhead && earliest_deadline(source) <= clock_now();
    for (unsigned g = 0; g < source->described.group_count && reader->open; g++) {
        struct schedule *schedule = &reader->schedules[g];
        nanos now = clock_now();
        bool follows = schedule->guide >= 0 && reader->ticks[schedule->guide].locked &&
                       follows_ticks(source, g);
        /* On request, a followed counter is read at its next tick, not at the next planned one. */
        if (requested && follows)
            bring_forward(&reader->ticks[schedule->guide], schedule, now);
        bool on_demand =
            requested && !follows && now >= schedule->last + source->described.groups[g].period_min;
        nanos early = is_any && can_be_early(source, g, now) ? schedule->min / EARLY_SHARE : 0;
        if (now + early < schedule->next && !on_demand)
            continue;
        bool was_due = now + early >= schedule->next;
        source_read_group(source, g);
        if (was_due)
            plan(source, g);
    }
    if (source->low_overhead)
        plan_requested(source);
}

static void watch_processes(struct source *source)
{
    if (!source->reader.open || !process_watch_due(&source->processes, &source->reader.sensor))
        return;
    atomic_store(&source->counts.reading, clock_now());
    process_watch_read(&source->processes, &source->reader.sensor);
    atomic_store(&source->counts.reading, 0);
}

static void try_reopen(struct source *source)
{
    struct reader *reader = &source->reader;
    struct error why;
    if (deadline_wait(&source->deadline, reader->reopen_at) || clock_now() < reader->reopen_at)
        return; /* woken, possibly to stop */
    reader->reopen_wait = min_nanos(2 * reader->reopen_wait, REOPEN_MAX);
    reader->reopen_at = clock_now() + reader->reopen_wait;
    if (sensor_open(&source->finding, &reader->sensor, &why) != ERR_OK)
        return;
    if (!identity_continues(&source->described, &reader->sensor)) {
        if (!reader->changed)
            log_warn("%s: reopened as a different device; not used", source->finding.id);
        reader->changed = true;
        sensor_close(&reader->sensor);
        return;
    }
    log_warn("%s: device available again", source->finding.id);
    reader->open = true;
    reader->changed = false;
    atomic_fetch_add(&source->counts.back, 1);
    for (unsigned g = 0; g < source->described.group_count; g++)
        reader->schedules[g].next = clock_now();
}

static void notice_suspend(struct source *source)
{
    nanos suspended = clock_suspended();
    if (suspended - source->reader.suspended > SUSPEND_MIN) {
        log_warn("%s: the machine was suspended for %.1f s; that time is not measured",
                 source->finding.id, seconds(suspended - source->reader.suspended));
        push_gaps(source, ERR_LOST);
    }
    source->reader.suspended = suspended;
}

/* Slow reads must not take priority over the measured work. */
static bool has_fast_reads(const struct source *source)
{
    bool is_fast = true;
    for (unsigned g = 0; g < source->described.group_count; g++) {
        nanos best = source->reader.schedules[g].best;
        is_fast = is_fast && best > 0 && best < FAST_READ;
    }
    return is_fast;
}

static void *source_main(void *argument)
{
    struct source *source = argument;
    char name[16];
    chars_format(name, "ipw-%s", source->finding.id);
    thread_name(name, source->described.pin_cpu);
    source->reader.suspended = clock_suspended();
    bool requested = false, has_priority = false;
    while (!atomic_load(&source->stopping)) {
        if (!source->reader.open) {
            try_reopen(source);
            continue;
        }
        notice_suspend(source);
        read_due(source, requested);
        watch_processes(source);
        if (!has_priority && (has_priority = has_fast_reads(source)))
            thread_set_realtime();
        nanos next = earliest_deadline(source);
        atomic_store(&source->wake_at, next);
        requested = deadline_wait(&source->deadline, next);
        atomic_store(&source->wake_at, INT64_MAX);
    }
    source_unref(source);
    return NULL;
}

enum err source_start(struct source *source)
{
    atomic_store(&source->stopping, false);
    atomic_fetch_add(&source->holders, 1);
    enum err err = thread_start(&source->thread, source_main, source);
    source->running = !err;
    if (err)
        atomic_fetch_sub(&source->holders, 1);
    return err;
}

void source_stop(struct source *source)
{
    if (!source->running)
        return;
    atomic_store(&source->stopping, true);
    deadline_wake(&source->deadline);
}

void source_join(struct source *source, nanos until, nanos until_idle)
{
    if (!source->running)
        return;
    source->running = false;
    if (!thread_join(source->thread, atomic_load(&source->counts.reading) ? until : until_idle))
        log_warn("%s: the driver has not returned from a call; ending without it",
                 source->finding.id);
}

void source_request(struct source *source, nanos t, bool all)
{
    nanos before = atomic_load(&source->requested), every = atomic_load(&source->every);
    nanos off = t - before - every;
    if (!all && every > 0 && off < every / EXPECTED_SHARE && off > -every / EXPECTED_SHARE)
        t -= off; /* shift to the expected time */
    atomic_store(&source->requests_all, all);
    atomic_store(&source->requested, t);
    atomic_store(&source->every, before > 0 && t > before ? t - before : 0);
    nanos wake_at = atomic_load(&source->wake_at);
    for (unsigned g = 0; g < source->described.group_count; g++)
        if (is_requested(source, g, t) && source_request_due(source, g, t) < wake_at) {
            deadline_wake(&source->deadline);
            return;
        }
}

void source_wake(struct source *source)
{
    atomic_store(&source->edge, true);
    deadline_wake(&source->deadline);
}

bool source_is_due(const struct source *source)
{
    nanos wake_at = atomic_load(&source->wake_at);
    return wake_at == INT64_MAX || wake_at <= clock_now() || atomic_load(&source->edge);
}
