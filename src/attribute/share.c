/* Ended requests wait in the backlog until the sensors have been read past them.  sharing_advance takes the requests
 * that overlap the time to be settled, cuts that time into slices, reads each device's running sum at the edges of a
 * batch of slices, and attributes every slice's joules to the requests in flight in it.  A request that has ended by
 * the settled time is returned with the evidence of its devices (share_result.c). */
#include "attribute/share.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/share_parts.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "sampler/sampler.h"

/* Time is also cut on this grid, counted from the start of the run.  Sensors do not update more often, and cuts that
 * depend only on the requests are the same however the run is advanced. */
#define GRID NS_PER_MS

/* Slices are processed in batches of this many. */
enum { ROW_SLICES = 256 };

/* One device: the channel that measures it, its energy in each slice of a batch, and its accumulated sums. */
struct share_device {
    char id[DEVICE_NAME_SIZE];
    bool has_energy;
    double idle_w; /* UNKNOWN without a baseline */

    /* For the time being settled: */
    bool is_known, counted;
    bool is_cpu; /* processors and their memory */
    size_t source, channel;
    long shape;   /* channel that shapes a counter's joules; -1 none */
    unsigned key; /* share_key of source and channel; 0: none */

    /* The channel's running sum at the settled time. */
    unsigned settled_key; /* 0: nothing settled yet */
    double settled_joules;

    /* At the edges of the batch of slices. */
    double sums[ROW_SLICES + 1];
    nanos covered[ROW_SLICES + 1];
    struct resolution resolution[ROW_SLICES]; /* in the middle of each slice */

    /* Accumulated from the start, J. */
    double requests;
    double between;      /* in time without requests */
    double between_idle; /* baseline power x that time */
    double late;         /* known only after its time was settled */
    double covered_s;
    bool was_counted;

    /* While requests were in flight and the device was counted. */
    double busy_joules, busy_covered_s;
    double busy_s; /* with or without its own reading, while some counted device had one */
};

/* One device in one slice. */
struct slice_device {
    double joules, active, idle; /* J; active + idle = joules */
    double baseline;             /* J: idle before limiting it to joules; 0 without a baseline */
    double covered_s;            /* 0: unknown; joules is then 0 and attributed to no request */
    unsigned key;                /* the channel that measured it */
    bool counted, is_cpu;
    const struct resolution *resolution;
};

/* A request's fractions of a slice: of active energy (for tools of the processors only) and of idle energy. */
struct parts {
    double cpu, other, idle;
    double by_weight
        [2]; /* of active energy, relative to `other`: with a lower and a higher decode weight, minus it */
};

struct times {
    nanos *items;
    size_t count, capacity;
};

struct sharing {
    struct sampler *sampler;
    const struct baseline *idle;
    nanos from, settled;
    double busy_s;         /* at least one request in flight */
    double busy_covered_s; /* and a counted device covered it */
    double decode_weight, weight_factor;
    struct backlog backlog;
    struct sharers pending; /* begin in the time to be settled next, in that order */
    struct sharers in_flight;
    struct sharers done;         /* finished, to be returned */
    struct sharers kept;         /* returned, for sharing_set_idle */
    size_t kept_bytes, keep_max; /* 0: none are kept */
    void (*release)(void *context);
    struct times events; /* events of pending requests and those in flight, ascending */
    struct parts *parts; /* scratch, one per request that may be in flight */
    size_t part_capacity;
    bool has_changed;                 /* the set in flight, since it was counted */
    size_t inferences, tools, groups; /* in flight */
    struct share_device *devices;
    struct slice_device *slice; /* buffer, one per device */
    size_t device_count;
    struct share_result result;
};

/* ---- devices ---- */

/* Empty, as at the start. */
static void init_device(struct share_device *device, const char *id, bool has_energy,
                        const struct baseline *idle)
{
    *device = (struct share_device){.has_energy = has_energy, .idle_w = UNKNOWN};
    chars_copy(device->id, id);
    for (size_t i = 0; idle && i < idle->count; i++)
        if (str_equal(idle->rows[i].device, id))
            device->idle_w = fmax(0, idle->rows[i].watts);
}

/* Uses the channel that the ledger chose for the time to be settled. */
static void choose_channel(struct share_device *device, struct sampler *sampler,
                           const struct ledger_device *row)
{
    device->is_known = row->has_energy && row->energy.method != METHOD_NONE;
    device->counted = row->counted;
    if (!device->is_known)
        return;
    device->was_counted = row->counted;
    device->source = row->source;
    device->channel = row->channel;
    const struct sensor *sensor = sampler_sensor(sampler, row->source);
    enum scope scope = sensor->channels[row->channel].scope;
    device->is_cpu = scope_contains(SCOPE_PLATFORM, scope) || scope_contains(SCOPE_GRACE, scope);
    device->shape = sensor_shape_channel(sensor, row->channel);
    device->key = share_key(row->source, row->channel);
}

/* Reads the running sums at the edges of a batch of slices, of which the first is the settled time.  Joules that
 * became known only after their time was settled are unattributed; `begin` is the start of accounting. */
static enum err load_row(struct share_device *device, struct sampler *sampler, nanos begin,
                         const nanos *edges, size_t count)
{
    if (!device->is_known)
        return ERR_OK;
    nanos middles[ROW_SLICES];
    for (size_t k = 0; k + 1 < count; k++)
        middles[k] = edges[k] + (edges[k + 1] - edges[k]) / 2;
    enum err err = sampler_running(sampler, device->source, device->channel, device->shape, edges,
                                   count, device->sums, device->covered);
    if (!err)
        err = sampler_resolution(sampler, device->source, device->channel, device->shape, middles,
                                 count - 1, device->resolution);
    if (err)
        return err;
    /* When another channel measured the time before, the sums of the two are not comparable. */
    double before = device->sums[0];
    nanos covered;
    if (device->settled_key == device->key)
        before = device->settled_joules;
    else if (device->settled_key == 0)
        err = sampler_running(sampler, device->source, device->channel, device->shape, &begin, 1,
                              &before, &covered);
    if (err)
        return err;
    device->late += device->sums[0] - before;
    device->settled_key = device->key;
    device->settled_joules = device->sums[0];
    return ERR_OK;
}

/* The energy of a device in slice k. */
static struct slice_device slice_of(const struct share_device *device, size_t k)
{
    struct slice_device out = {.key = device->key,
                               .counted = device->counted,
                               .is_cpu = device->is_cpu,
                               .resolution = &device->resolution[k]};
    if (!device->is_known || device->covered[k + 1] <= device->covered[k])
        return out;
    out.covered_s = seconds(device->covered[k + 1] - device->covered[k]);
    out.joules = fmax(0, device->sums[k + 1] - device->sums[k]);
    if (is_known(device->idle_w))
        out.baseline = device->idle_w * out.covered_s;
    out.idle = fmin(out.joules, out.baseline);
    out.active = out.joules - out.idle;
    /* Running sums are rounded, more so in a long run: a tiny difference is not active energy.  It counts as idle,
     * so that nothing is lost. */
    if (is_known(device->idle_w) &&
        out.active <=
            fmax(SHARE_ROUNDING * out.joules, 8 * DBL_EPSILON * fabs(device->sums[k + 1]))) {
        out.idle = out.joules;
        out.active = 0;
    }
    return out;
}

/* Accounts for slice k.  `attributed`: sum of all requests' fractions, 1 except for rounding; NULL where none was in
 * flight. */
static void settle_device(struct share_device *device, size_t k, const struct slice_device *slice,
                          const struct parts *attributed)
{
    if (!device->is_known)
        return;
    device->settled_joules = device->sums[k + 1];
    device->covered_s += slice->covered_s;
    if (attributed && slice->counted) {
        device->busy_joules += slice->joules;
        device->busy_covered_s += slice->covered_s;
    }
    if (attributed) {
        double active = slice->is_cpu ? attributed->cpu : attributed->other;
        device->requests += active * slice->active + attributed->idle * slice->idle;
    } else {
        device->between += slice->joules;
        device->between_idle += slice->baseline;
    }
}

/* ---- one slice and the requests in flight in it ---- */

/* Tokens that an inference processed in a slice.  A slice is rarely longer than a few of the requests in flight, so
 * rates are kept as long as they hold. */
static struct token_rates slice_tokens(struct sharer *sharer, nanos from, nanos to)
{
    const struct request_trace *trace = &sharer->trace;
    double length = (double)(to - from);
    if (from >= sharer->rates_until)
        sharer->rates_until = request_rates(trace, from, &sharer->rates);
    if (to <= sharer->rates_until)
        return (struct token_rates){sharer->rates.prefill * length, sharer->rates.decode * length};
    return (struct token_rates){request_prefill_tokens(trace, from, to),
                                request_decode_tokens(trace, from, to)};
}

static double weighted(const struct token_rates *tokens, double decode_weight)
{
    return tokens->prefill + decode_weight * tokens->decode;
}

/* What other decode weights would change, where a slice has tokens of both kinds. */
static void compare_weights(struct sharing *sharing, const struct token_rates *sum)
{
    const struct sharers *requests = &sharing->in_flight;
    double weight = sharing->decode_weight, all = weighted(sum, weight);
    bool has_both = sum->prefill > 0 && sum->decode > 0;
    if (!has_both || !(sharing->weight_factor > 1))
        return;
    for (size_t k = 0; k < 2; k++) {
        double other = k ? weight * sharing->weight_factor : weight / sharing->weight_factor;
        double all_other = weighted(sum, other);
        for (size_t i = 0; i < requests->count; i++) {
            const struct token_rates *tokens = &requests->items[i]->tokens;
            if (requests->items[i]->trace.kind == REQUEST_INFERENCE)
                sharing->parts[i].by_weight[k] =
                    weighted(tokens, other) / all_other - weighted(tokens, weight) / all;
        }
    }
}

/* Fractions of the inferences in flight, by the tokens that they processed; they add up to `all`. */
static void compute_inference_fractions(struct sharing *sharing, nanos from, nanos to,
                                        struct parts all)
{
    const struct sharers *requests = &sharing->in_flight;
    struct token_rates both = {0};
    for (size_t i = 0; i < requests->count; i++) {
        struct sharer *sharer = requests->items[i];
        if (sharer->trace.kind != REQUEST_INFERENCE)
            continue;
        sharer->tokens = slice_tokens(sharer, from, to);
        sharing->parts[i].other = weighted(&sharer->tokens, sharing->decode_weight);
        both.prefill += sharer->tokens.prefill;
        both.decode += sharer->tokens.decode;
    }
    double sum = weighted(&both, sharing->decode_weight);
    compare_weights(sharing, &both);
    /* Token counts unknown or 0: equal shares. */
    bool equal = !is_known(sum) || sum <= 0;
    double unit = equal ? 1 / (double)sharing->inferences : 1 / sum;
    for (size_t i = 0; i < requests->count; i++) {
        if (requests->items[i]->trace.kind != REQUEST_INFERENCE)
            continue;
        double part = equal ? unit : sharing->parts[i].other * unit;
        sharing->parts[i].cpu = all.cpu * part;
        sharing->parts[i].other = all.other * part;
    }
}

/* Of the processors' energy, tools whose CPU time is known get their fraction of it; the others share the remainder
 * with the inferences.  Tools get a fraction of other devices only where there is no inference. */
static struct parts compute_tool_fractions(struct sharing *sharing)
{
    size_t inferences = sharing->inferences, tools = sharing->tools;
    const struct sharers *requests = &sharing->in_flight;
    double known = 0;
    size_t unknown = 0;
    for (size_t i = 0; i < requests->count; i++) {
        const struct request_trace *trace = &requests->items[i]->trace;
        if (trace->kind == REQUEST_TOOL && is_known(trace->cpu_share))
            known += trace->cpu_share;
        else if (trace->kind == REQUEST_TOOL)
            unknown++;
    }
    bool others = inferences + unknown > 0;
    double scale = known > 1 || (!others && known > 0) ? 1 / known : 1;
    double rest = others ? fmax(0, 1 - known * scale) : known > 0 ? 0 : 1;
    double each = rest / (double)(others ? inferences + unknown : tools);
    for (size_t i = 0; i < requests->count; i++) {
        const struct request_trace *trace = &requests->items[i]->trace;
        if (trace->kind != REQUEST_TOOL)
            continue;
        bool has_share = is_known(trace->cpu_share) && (others || known > 0);
        sharing->parts[i].cpu = has_share ? trace->cpu_share * scale : each;
        sharing->parts[i].other = inferences ? 0 : 1 / (double)tools;
    }
    return (struct parts){.cpu = each * (double)inferences, .other = 1};
}

static size_t group_size(const struct sharers *requests, uint64_t group)
{
    size_t size = 0;
    for (size_t i = 0; i < requests->count; i++)
        size += requests->items[i]->trace.group == group;
    return size;
}

/* The requests in flight by kind and group.  Each group gets an equal share of idle energy, divided equally among its
 * requests; a request without one is a group of its own. */
static void count_in_flight(struct sharing *sharing)
{
    const struct sharers *requests = &sharing->in_flight;
    double groups = 0;
    sharing->inferences = sharing->tools = 0;
    for (size_t i = 0; i < requests->count; i++) {
        struct sharer *sharer = requests->items[i];
        uint64_t group = sharer->trace.group;
        sharer->group_part = group ? 1 / (double)group_size(requests, group) : 1;
        groups += sharer->group_part;
        sharing->inferences += sharer->trace.kind == REQUEST_INFERENCE;
        sharing->tools += sharer->trace.kind == REQUEST_TOOL;
    }
    sharing->groups = (size_t)lround(groups);
    for (size_t i = 0; i < requests->count; i++)
        requests->items[i]->idle_part = requests->items[i]->group_part / (double)sharing->groups;
    sharing->has_changed = false;
}

/* Fractions of all requests in flight. */
static void compute_fractions(struct sharing *sharing, nanos from, nanos to)
{
    const struct sharers *requests = &sharing->in_flight;
    struct parts rest = {.cpu = 1, .other = 1, .idle = 1};
    if (sharing->has_changed)
        count_in_flight(sharing);
    for (size_t i = 0; i < requests->count; i++) {
        double idle = requests->items[i]->idle_part;
        sharing->parts[i] = (struct parts){.idle = idle};
    }
    if (sharing->tools)
        rest = compute_tool_fractions(sharing);
    if (sharing->inferences)
        compute_inference_fractions(sharing, from, to, rest);
    if (sharing->tools || sharing->inferences)
        return;
    for (size_t i = 0; i < requests->count; i++)
        sharing->parts[i].cpu = sharing->parts[i].other = sharing->parts[i].idle;
}

static void note_channel(struct portion *portion, const struct slice_device *device)
{
    portion->counted = portion->counted || device->counted;
    if (portion->key == device->key)
        return;
    portion->earlier_key = portion->key;
    portion->key = device->key;
}

static void add_portion(const struct sharing *sharing, struct sharer *sharer, nanos from,
                        double length_s, const struct parts *parts)
{
    double idle = parts->idle;
    double inference = parts->other > 0 ? parts->cpu / parts->other : 0; /* of the processors */
    nanos change = request_phase_change(&sharer->trace);
    enum phase phase = from < change ? PHASE_PREFILL : PHASE_DECODE;
    for (size_t d = 0; d < sharing->device_count; d++) {
        const struct slice_device *device = &sharing->slice[d];
        struct portion *portion = &sharer->portions[d];
        if (device->covered_s <= 0)
            continue;
        double active = device->is_cpu ? parts->cpu : parts->other;
        double joules = active * device->active + idle * device->idle;
        /* What is above idle power varies, and is split as such. */
        split_error_add(&portion->error, device->resolution, phase,
                        device->active > 0 ? active : idle, length_s);
        for (size_t k = 0; k < 2; k++)
            portion->by_weight[phase][k] +=
                parts->by_weight[k] * (device->is_cpu ? inference : 1) * device->active;
        portion->joules[phase] += joules;
        portion->baseline[phase] += idle * device->baseline;
        portion->covered_s[phase] += device->covered_s;
        portion->window_joules += device->joules;
        portion->group_joules += sharer->group_part * device->joules;
        note_channel(portion, device);
        if (!device->counted)
            continue;
        sharer->counted_joules[phase] += joules;
        sharer->counted_baseline[phase] += idle * device->baseline;
    }
}

/* Attributes a slice to the requests in flight, at least one: each is in flight throughout it and in one phase. */
static struct parts share_slice(struct sharing *sharing, nanos from, nanos to)
{
    struct parts attributed = {0};
    double length = seconds(to - from);
    compute_fractions(sharing, from, to);
    for (size_t i = 0; i < sharing->in_flight.count; i++) {
        struct sharer *sharer = sharing->in_flight.items[i];
        const struct parts *parts = &sharing->parts[i];
        add_portion(sharing, sharer, from, length, parts);
        attributed.cpu += parts->cpu;
        attributed.other += parts->other;
        attributed.idle += parts->idle;
        sharer->shared_s += length;
        sharer->concurrent_s += length * (double)sharing->groups;
        if (sharing->groups == 1)
            sharer->alone_s += length;
    }
    return attributed;
}

/* ---- setup ---- */

static void find_devices(struct sharing *sharing)
{
    struct ledger ledger;
    ledger_take(sharing->sampler, sharing->from, sharing->from + 1, NULL, &ledger);
    sharing->device_count = ledger.count;
    sharing->devices = xcalloc(ledger.count + 1, sizeof *sharing->devices);
    sharing->slice = xcalloc(ledger.count + 1, sizeof *sharing->slice);
    for (size_t i = 0; i < ledger.count; i++)
        init_device(&sharing->devices[i], ledger.devices[i].id, ledger.devices[i].has_energy,
                    sharing->idle);
    share_result_init(&sharing->result, sharing->sampler, &ledger, sharing->idle);
    ledger_release(&ledger);
}

struct sharing *sharing_new(struct sampler *sampler, const struct sharing_options *options)
{
    struct sharing *sharing = XNEW(sharing);
    sharing->sampler = sampler;
    sharing->idle = options->idle;
    sharing->from = sharing->settled = options->from;
    sharing->decode_weight = options->decode_weight > 0 ? options->decode_weight : 1;
    sharing->weight_factor = options->weight_factor;
    sharing->keep_max = options->idle ? 0 : options->keep_max;
    sharing->release = options->release;
    backlog_init(&sharing->backlog);
    find_devices(sharing);
    return sharing;
}

/* No further baseline is expected, or it would hold for later time only. */
static void stop_keeping(struct sharing *sharing)
{
    for (size_t i = 0; i < sharing->kept.count && sharing->release; i++)
        sharing->release(sharing->kept.items[i]->trace.context);
    sharers_release(&sharing->kept);
    sharing->keep_max = 0;
}

void sharing_free(struct sharing *sharing)
{
    if (!sharing)
        return;
    stop_keeping(sharing);
    backlog_release(&sharing->backlog);
    sharers_release(&sharing->pending);
    sharers_release(&sharing->in_flight);
    sharers_release(&sharing->done);
    share_result_release(&sharing->result);
    free(sharing->events.items);
    free(sharing->parts);
    free(sharing->devices);
    free(sharing->slice);
    free(sharing);
}

/* ---- requests begin and end ---- */

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

bool sharing_has_capacity(struct sharing *sharing, size_t max, nanos timeout)
{
    return backlog_has_capacity(&sharing->backlog, max, timeout);
}

/* Clients' timestamps may be imprecise: makes arrivals non-decreasing and within the request. */
static void clamp_trace(struct request_trace *trace)
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
    clamp_trace(trace);
    sharer->trace = *trace;
    enum err err = backlog_end(&sharing->backlog, sharer);
    if (err) {
        sharer->trace.arrivals = NULL; /* still owned by the caller */
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

static void add_event(struct sharing *sharing, nanos t, nanos limit)
{
    struct times *events = &sharing->events;
    if (t <= sharing->settled || t > limit)
        return;
    XGROW(events->items, events->count, events->capacity);
    events->items[events->count++] = t;
}

static void add_events(struct sharing *sharing, const struct sharers *list, nanos limit)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct request_trace *trace = &list->items[i]->trace;
        add_event(sharing, trace->from, limit);
        add_event(sharing, request_phase_change(trace), limit);
        add_event(sharing, trace->to, limit);
    }
}

/* Takes the requests that overlap the time up to `limit`, and reserves memory for the parts of all in flight. */
static void take_overlapping(struct sharing *sharing, nanos limit)
{
    struct sharer *next;
    while ((next = backlog_pop(&sharing->backlog, limit)))
        sharers_add(&sharing->pending, next);
    if (sharing->pending.count)
        qsort(sharing->pending.items, sharing->pending.count, sizeof *sharing->pending.items,
              backlog_by_start);
    sharing->events.count = 0;
    add_events(sharing, &sharing->pending, limit);
    add_events(sharing, &sharing->in_flight, limit);
    while (sharing->part_capacity < sharing->in_flight.count + sharing->pending.count)
        XGROW(sharing->parts, sharing->part_capacity, sharing->part_capacity);
    if (sharing->events.count)
        qsort(sharing->events.items, sharing->events.count, sizeof(nanos), by_time);
}

/* The last cut not later than `limit`: only whole slices are settled, so that they do not depend on how often the
 * run is advanced. */
static nanos last_cut(const struct sharing *sharing, nanos limit)
{
    nanos grid = limit - (limit - sharing->from) % GRID;
    const struct times *events = &sharing->events;
    nanos event = events->count ? events->items[events->count - 1] : grid;
    return event > grid ? event : grid;
}

/* The edges of the next slices up to the frontier, the first being their start. */
static size_t next_row(const struct sharing *sharing, nanos frontier, size_t *event, nanos *edges)
{
    const struct times *events = &sharing->events;
    size_t count = 0;
    edges[count++] = sharing->settled;
    while (count <= ROW_SLICES && edges[count - 1] < frontier) {
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

/* Removes the requests that have ended by t and adds those that have begun. */
static void update_in_flight(struct sharing *sharing, nanos t, size_t *started)
{
    struct sharers *in_flight = &sharing->in_flight;
    for (size_t i = 0; i < in_flight->count;) {
        if (in_flight->items[i]->trace.to > t) {
            i++;
            continue;
        }
        sharers_add(&sharing->done, in_flight->items[i]);
        in_flight->items[i] = in_flight->items[--in_flight->count];
        sharing->has_changed = true;
    }
    for (; *started < sharing->pending.count; (*started)++) {
        struct sharer *next = sharing->pending.items[*started];
        if (next->trace.from > t)
            return;
        sharers_add(next->trace.to > t ? in_flight : &sharing->done, next);
        sharing->has_changed = true;
    }
}

/* Time that no device covers does not count. */
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
    struct parts attributed;
    bool shared = sharing->in_flight.count > 0;
    for (size_t d = 0; d < sharing->device_count; d++)
        sharing->slice[d] = slice_of(&sharing->devices[d], k);
    if (shared)
        attributed = share_slice(sharing, edges[k], edges[k + 1]);
    for (size_t d = 0; d < sharing->device_count; d++)
        settle_device(&sharing->devices[d], k, &sharing->slice[d], shared ? &attributed : NULL);
    if (shared)
        add_busy(sharing, seconds(edges[k + 1] - edges[k]));
    sharing->settled = edges[k + 1];
}

static enum err settle_until(struct sharing *sharing, nanos frontier)
{
    nanos edges[ROW_SLICES + 1];
    size_t event = 0, started = 0;
    enum err err = ERR_OK;
    while (sharing->settled < frontier && !err) {
        size_t count = next_row(sharing, frontier, &event, edges);
        for (size_t d = 0; d < sharing->device_count && !err; d++)
            err = load_row(&sharing->devices[d], sharing->sampler, sharing->from, edges, count);
        for (size_t k = 0; k + 1 < count && !err; k++) {
            update_in_flight(sharing, edges[k], &started);
            settle_slice(sharing, edges, k);
        }
    }
    if (!err)
        update_in_flight(sharing, sharing->settled, &started);
    struct sharers *pending = &sharing->pending;
    for (size_t i = started; i < pending->count; i++)
        pending->items[i - started] = pending->items[i];
    pending->count -= started;
    return err;
}

/* Whether the finished requests can be kept; otherwise none is from now on. */
static bool can_keep(struct sharing *sharing)
{
    const struct sharers *done = &sharing->done;
    if (!sharing->keep_max)
        return false;
    for (size_t i = 0; i < done->count; i++)
        sharing->kept_bytes += sharer_bytes(done->items[i], sharing->device_count);
    if (sharing->kept_bytes <= sharing->keep_max)
        return true;
    stop_keeping(sharing);
    return false;
}

static void return_finished(struct sharing *sharing, const struct ledger *ledger,
                            sharing_take *take, void *context)
{
    struct sharers *done = &sharing->done;
    bool keeps = sharing->result.is_provisional = can_keep(sharing);
    if (done->count)
        qsort(done->items, done->count, sizeof *done->items, backlog_by_end);
    for (size_t i = 0; i < done->count; i++) {
        share_result_make(&sharing->result, ledger, done->items[i], take, context);
        if (keeps)
            sharers_add(&sharing->kept, done->items[i]);
        else
            sharer_free(done->items[i]);
    }
    done->count = 0;
}

enum err sharing_advance(struct sharing *sharing, nanos until, sharing_take *take, void *context)
{
    nanos earliest;
    struct ledger ledger;
    backlog_collect(&sharing->backlog, &earliest);
    nanos limit = until < earliest ? until : earliest;
    if (limit < sharing->settled)
        limit = sharing->settled;
    take_overlapping(sharing, limit);
    nanos frontier = limit == earliest ? limit : last_cut(sharing, limit);
    bool moves = frontier > sharing->settled;
    if (!moves && !sharing->pending.count && !sharing->done.count)
        return ERR_OK;
    ledger_take(sharing->sampler, sharing->settled, moves ? frontier : sharing->settled + 1, NULL,
                &ledger);
    for (size_t d = 0; d < sharing->device_count && d < ledger.count; d++)
        choose_channel(&sharing->devices[d], sharing->sampler, &ledger.devices[d]);
    enum err err = settle_until(sharing, frontier);
    if (!err)
        return_finished(sharing, &ledger, take, context);
    ledger_release(&ledger);
    return err;
}

/* ---- a baseline that comes later ---- */

static void rewind_requests(struct sharing *sharing)
{
    struct sharers *const lists[] = {&sharing->kept, &sharing->pending, &sharing->in_flight,
                                     &sharing->done};
    for (size_t k = 0; k < COUNT_OF(lists); k++) {
        for (size_t i = 0; i < lists[k]->count; i++)
            sharer_reset(lists[k]->items[i], sharing->device_count);
        backlog_return(&sharing->backlog, lists[k]);
    }
    sharing->settled = sharing->from;
    sharing->busy_s = sharing->busy_covered_s = 0;
    sharing->has_changed = true;
}

void sharing_set_idle(struct sharing *sharing, const struct baseline *idle)
{
    bool rewinds = sharing->keep_max > 0;
    sharing->idle = idle;
    for (size_t d = 0; d < sharing->device_count; d++) {
        struct share_device *device = &sharing->devices[d], fresh;
        init_device(&fresh, device->id, device->has_energy, idle);
        if (rewinds)
            *device = fresh;
        device->idle_w = fresh.idle_w;
        sharing->result.has_idle[d] = is_known(fresh.idle_w);
    }
    sharing->keep_max = 0;
    if (rewinds)
        rewind_requests(sharing);
}

/* ---- totals ---- */

size_t sharing_sums(const struct sharing *sharing, struct sharing_device_sum *out, size_t max)
{
    size_t count = 0;
    for (size_t d = 0; d < sharing->device_count && count < max; d++) {
        const struct share_device *device = &sharing->devices[d];
        if (!device->has_energy)
            continue;
        struct sharing_device_sum *sum = &out[count++];
        bool known = device->covered_s > 0, split = is_known(device->idle_w);
        double idle = share_idle_part(device->between, device->between_idle);
        *sum = (struct sharing_device_sum){
            .counted = device->was_counted,
            .requests_joules = known ? device->requests : UNKNOWN,
            .idle_joules = known && split ? idle : UNKNOWN,
            .unattributed_joules = known ? device->between - idle + device->late : UNKNOWN,
            .settled_joules = known ? device->requests + device->between + device->late : UNKNOWN,
        };
        chars_copy(sum->id, device->id);
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
        if (device->busy_covered_s > 0) /* gaps are filled with its own mean power */
            joules = (is_known(joules) ? joules : 0) +
                     device->busy_joules / device->busy_covered_s * device->busy_s;
    }
    return joules / sharing->busy_covered_s;
}
