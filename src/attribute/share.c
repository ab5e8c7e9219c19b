#include "attribute/share.h"

#include <stdlib.h>

#include "attribute/backlog.h"
#include "attribute/handover.h"
#include "attribute/share_device.h"
#include "attribute/slice.h"
#include "core/grow.h"
#include "core/text.h"
#include "sampler/sampler.h"

/* Beside the requests' own events time is cut this often, counted from the beginning of the run.  The
 * sensors' updates are no finer than this, and cuts that depend on nothing but the requests come out
 * the same however the run is advanced. */
#define GRID NS_PER_MS

struct times {
    nanos *items;
    size_t count, capacity;
};

struct sharing {
    struct sampler *sampler;
    const struct baseline *idle;
    nanos from, settled;
    double busy_s;         /* with at least one request alive */
    double busy_covered_s; /* and some counted device covered */
    double decode_weight;
    struct backlog backlog;
    struct sharers coming; /* begin in the stretch to be settled next, in that order */
    struct sharers alive;
    struct sharers done; /* to be handed over */
    struct times events; /* of those coming and alive, ascending */
    double *weights;     /* room, one for each that may be alive */
    size_t weight_room;
    struct share_device *devices;
    struct slice_device *slice; /* room, one a device */
    size_t device_count;
    struct handover handover;
};

/* ---- life ---- */

static enum err find_devices(struct sharing *sharing)
{
    struct ledger ledger;
    enum err err = ledger_take(sharing->sampler, sharing->from, sharing->from + 1, NULL, &ledger);
    if (err)
        return err;
    sharing->device_count = ledger.count;
    sharing->devices = calloc(ledger.count + 1, sizeof *sharing->devices);
    sharing->slice = calloc(ledger.count + 1, sizeof *sharing->slice);
    if (!sharing->devices || !sharing->slice)
        err = ERR_NO_MEMORY;
    for (size_t i = 0; i < ledger.count && !err; i++)
        share_device_init(&sharing->devices[i], &ledger.devices[i], sharing->idle);
    if (!err)
        err = handover_init(&sharing->handover, sharing->sampler, &ledger, sharing->devices);
    ledger_release(&ledger);
    return err;
}

struct sharing *sharing_new(struct sampler *sampler, const struct sharing_options *options)
{
    struct sharing *sharing = calloc(1, sizeof *sharing);
    if (!sharing)
        return NULL;
    sharing->sampler = sampler;
    sharing->idle = options->idle;
    sharing->from = sharing->settled = options->from;
    sharing->decode_weight = options->decode_weight > 0 ? options->decode_weight : 1;
    backlog_init(&sharing->backlog);
    if (find_devices(sharing) != ERR_OK) {
        sharing_free(sharing);
        return NULL;
    }
    return sharing;
}

void sharing_free(struct sharing *sharing)
{
    if (!sharing)
        return;
    backlog_release(&sharing->backlog);
    sharers_release(&sharing->coming);
    sharers_release(&sharing->alive);
    sharers_release(&sharing->done);
    handover_release(&sharing->handover);
    free(sharing->events.items);
    free(sharing->weights);
    free(sharing->devices);
    free(sharing->slice);
    free(sharing);
}

/* ---- requests come and go ---- */

enum err sharing_begin(struct sharing *sharing, uint64_t id, nanos from)
{
    return backlog_begin(&sharing->backlog, id, from);
}

void sharing_forget(struct sharing *sharing, uint64_t id)
{
    backlog_forget(&sharing->backlog, id);
}

size_t sharing_ended(struct sharing *sharing)
{
    return backlog_ended(&sharing->backlog);
}

bool sharing_has_room(struct sharing *sharing, size_t most, nanos patience)
{
    return backlog_has_room(&sharing->backlog, most, patience);
}

/* Clocks of clients may be careless at the edges: nothing arrives after the end or out of order. */
static void tidy(struct request_trace *trace)
{
    if (trace->to < trace->from)
        trace->to = trace->from;
    nanos last = trace->from;
    for (size_t i = 0; i < trace->arrival_count; i++) {
        nanos *t = &trace->arrivals[i];
        *t = *t < last ? last : *t > trace->to ? trace->to : *t;
        last = *t;
    }
}

enum err sharing_end(struct sharing *sharing, struct request_trace *trace)
{
    struct sharer *sharer = sharer_new(sharing->device_count);
    if (!sharer)
        return ERR_NO_MEMORY;
    tidy(trace);
    sharer->trace = *trace;
    enum err err = backlog_end(&sharing->backlog, sharer);
    if (err) {
        sharer->trace.arrivals = NULL; /* still the caller's */
        sharer_free(sharer);
        return err;
    }
    trace->arrivals = NULL;
    trace->arrival_count = 0;
    return ERR_OK;
}

/* ---- cuts ---- */

static int by_time(const void *a, const void *b)
{
    nanos x = *(const nanos *)a, y = *(const nanos *)b;
    return (x > y) - (x < y);
}

static int by_start(const void *a, const void *b)
{
    return backlog_by_start(*(struct sharer *const *)a, *(struct sharer *const *)b);
}

static int by_end(const void *a, const void *b)
{
    return backlog_by_end(*(struct sharer *const *)a, *(struct sharer *const *)b);
}

static enum err add_event(struct sharing *sharing, nanos t, nanos limit)
{
    struct times *events = &sharing->events;
    if (t <= sharing->settled || t > limit)
        return ERR_OK;
    nanos *items = grow(events->items, &events->capacity, events->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    events->items = items;
    items[events->count++] = t;
    return ERR_OK;
}

static enum err add_events(struct sharing *sharing, const struct sharers *list, nanos limit)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < list->count && !err; i++) {
        const struct request_trace *trace = &list->items[i]->trace;
        err = add_event(sharing, trace->from, limit);
        if (!err)
            err = add_event(sharing, request_phase_change(trace), limit);
        if (!err)
            err = add_event(sharing, trace->to, limit);
    }
    return err;
}

/* Brings in the requests that reach into the time up to `limit`, with the room they will need. */
static enum err gather(struct sharing *sharing, nanos limit)
{
    struct sharer *next;
    enum err err = sharers_reserve(&sharing->coming, sharing->backlog.waiting.count);
    if (err)
        return err;
    while ((next = backlog_pop(&sharing->backlog, limit)))
        sharers_add(&sharing->coming, next);
    if (sharing->coming.count)
        qsort(sharing->coming.items, sharing->coming.count, sizeof *sharing->coming.items,
              by_start);
    sharing->events.count = 0;
    err = add_events(sharing, &sharing->coming, limit);
    if (!err)
        err = add_events(sharing, &sharing->alive, limit);
    if (!err)
        err = sharers_reserve(&sharing->alive, sharing->coming.count);
    if (!err)
        err = sharers_reserve(&sharing->done, sharing->coming.count + sharing->alive.count);
    while (!err && sharing->weight_room < sharing->alive.capacity) {
        double *weights =
            grow(sharing->weights, &sharing->weight_room, sharing->weight_room, sizeof *weights);
        if (!weights)
            return ERR_NO_MEMORY;
        sharing->weights = weights;
    }
    if (!err && sharing->events.count)
        qsort(sharing->events.items, sharing->events.count, sizeof(nanos), by_time);
    return err;
}

/* The last cut that is not later than `limit`: only whole slices are settled, so that they are the
 * same ones however often the run is advanced. */
static nanos last_cut(const struct sharing *sharing, nanos limit)
{
    nanos grid = limit - (limit - sharing->from) % GRID;
    const struct times *events = &sharing->events;
    nanos event = events->count ? events->items[events->count - 1] : grid;
    return event > grid ? event : grid;
}

/* The edges of the next slices up to the frontier, the first being where they begin. */
static size_t next_row(const struct sharing *sharing, nanos frontier, size_t *event, nanos *edges)
{
    const struct times *events = &sharing->events;
    size_t count = 0;
    edges[count++] = sharing->settled;
    while (count <= SHARE_ROW && edges[count - 1] < frontier) {
        nanos last = edges[count - 1];
        nanos next = last + GRID - (last - sharing->from) % GRID;
        while (*event < events->count && events->items[*event] <= last)
            (*event)++;
        if (*event < events->count && events->items[*event] < next)
            next = events->items[*event];
        edges[count++] = next < frontier ? next : frontier;
    }
    return count;
}

/* ---- settling ---- */

/* Those that have ended by t leave, those that have begun by it enter. */
static void change_guard(struct sharing *sharing, nanos t, size_t *started)
{
    struct sharers *alive = &sharing->alive;
    for (size_t i = 0; i < alive->count;) {
        if (alive->items[i]->trace.to > t) {
            i++;
            continue;
        }
        sharers_add(&sharing->done, alive->items[i]);
        alive->items[i] = alive->items[--alive->count];
    }
    for (; *started < sharing->coming.count; (*started)++) {
        struct sharer *next = sharing->coming.items[*started];
        if (next->trace.from > t)
            return;
        sharers_add(next->trace.to > t ? alive : &sharing->done, next);
    }
}

/* Time that no device covers has no power. */
static void add_busy(struct sharing *sharing, double length)
{
    bool covered = false;
    sharing->busy_s += length;
    for (size_t d = 0; d < sharing->device_count && !covered; d++)
        covered = sharing->slice[d].counted && sharing->slice[d].covered_s > 0;
    if (!covered)
        return;
    sharing->busy_covered_s += length;
    for (size_t d = 0; d < sharing->device_count; d++)
        if (sharing->slice[d].counted)
            sharing->devices[d].busy_s += length;
}

static void settle_slice(struct sharing *sharing, const nanos *edges, size_t k)
{
    const struct slice slice = {edges[k], edges[k + 1], sharing->slice, sharing->device_count,
                                sharing->decode_weight};
    struct slice_given given;
    bool shared = sharing->alive.count > 0;
    for (size_t d = 0; d < sharing->device_count; d++)
        share_device_slice(&sharing->devices[d], k, &sharing->slice[d]);
    if (shared)
        given = slice_share(&slice, sharing->alive.items, sharing->alive.count, sharing->weights);
    for (size_t d = 0; d < sharing->device_count; d++)
        share_device_settle(&sharing->devices[d], k, &sharing->slice[d], shared ? &given : NULL);
    if (shared)
        add_busy(sharing, seconds(edges[k + 1] - edges[k]));
    sharing->settled = edges[k + 1];
}

static enum err settle_until(struct sharing *sharing, nanos frontier)
{
    nanos edges[SHARE_ROW + 1];
    size_t event = 0, started = 0;
    enum err err = ERR_OK;
    while (sharing->settled < frontier && !err) {
        size_t count = next_row(sharing, frontier, &event, edges);
        for (size_t d = 0; d < sharing->device_count && !err; d++)
            err = share_device_load(&sharing->devices[d], sharing->sampler, sharing->from, edges,
                                    count);
        for (size_t k = 0; k + 1 < count && !err; k++) {
            change_guard(sharing, edges[k], &started);
            settle_slice(sharing, edges, k);
        }
    }
    if (!err)
        change_guard(sharing, sharing->settled, &started);
    struct sharers *coming = &sharing->coming;
    for (size_t i = started; i < coming->count; i++)
        coming->items[i - started] = coming->items[i];
    coming->count -= started;
    return err;
}

static void hand_over(struct sharing *sharing, const struct ledger *ledger, sharing_take *take,
                      void *context)
{
    struct sharers *done = &sharing->done;
    if (done->count)
        qsort(done->items, done->count, sizeof *done->items, by_end);
    for (size_t i = 0; i < done->count; i++) {
        handover_give(&sharing->handover, ledger, done->items[i], take, context);
        sharer_free(done->items[i]);
    }
    done->count = 0;
}

enum err sharing_advance(struct sharing *sharing, nanos until, sharing_take *take, void *context)
{
    nanos earliest;
    struct ledger ledger;
    enum err err = backlog_collect(&sharing->backlog, &earliest);
    if (err)
        return err;
    nanos limit = until < earliest ? until : earliest;
    if (limit < sharing->settled)
        limit = sharing->settled;
    err = gather(sharing, limit);
    if (err)
        return err;
    nanos frontier = limit == earliest ? limit : last_cut(sharing, limit);
    bool moves = frontier > sharing->settled;
    if (!moves && !sharing->coming.count && !sharing->done.count)
        return ERR_OK;
    err = ledger_take(sharing->sampler, sharing->settled, moves ? frontier : sharing->settled + 1,
                      NULL, &ledger);
    if (err)
        return err;
    for (size_t d = 0; d < sharing->device_count && d < ledger.count; d++)
        share_device_choose(&sharing->devices[d], sharing->sampler, &ledger.devices[d]);
    err = settle_until(sharing, frontier);
    if (!err)
        hand_over(sharing, &ledger, take, context);
    ledger_release(&ledger);
    return err;
}

/* ---- what became of it all ---- */

size_t sharing_sums(const struct sharing *sharing, struct sharing_device_sum *out, size_t most)
{
    size_t count = 0;
    for (size_t d = 0; d < sharing->device_count && count < most; d++) {
        const struct share_device *device = &sharing->devices[d];
        if (!device->has_energy)
            continue;
        struct sharing_device_sum *sum = &out[count++];
        bool known = device->covered_s > 0, split = is_known(device->idle_w);
        *sum = (struct sharing_device_sum){
            .counted = device->was_counted,
            .requests_joules = known ? device->requests : UNKNOWN,
            .idle_joules = known && split ? device->idle : UNKNOWN,
            .unattributed_joules = known ? device->unattributed : UNKNOWN,
            .settled_joules =
                known ? device->requests + device->idle + device->unattributed : UNKNOWN,
        };
        str_copy(sum->id, sizeof sum->id, device->id);
    }
    return count;
}

nanos sharing_settled(const struct sharing *sharing)
{
    return sharing->settled;
}

double sharing_busy_s(const struct sharing *sharing)
{
    return sharing->busy_s;
}

double sharing_busy_w(const struct sharing *sharing)
{
    double joules = UNKNOWN;
    for (size_t d = 0; d < sharing->device_count; d++) {
        const struct share_device *device = &sharing->devices[d];
        if (device->busy_covered_s > 0) /* its gaps at its own mean power */
            joules = (is_known(joules) ? joules : 0) +
                     device->busy_joules / device->busy_covered_s * device->busy_s;
    }
    return joules / sharing->busy_covered_s;
}
