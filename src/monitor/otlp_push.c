/* Metrics pushed to an OpenTelemetry receiver, as OTLP over HTTP in JSON.
 *
 * The loop queues one batch per interval; a thread sends them in order.  If the receiver does not respond, a batch is
 * retried with increasing delays, and a full queue drops its oldest batch: sampling never waits.  Energy is cumulative,
 * so a dropped batch loses resolution but no joules.
 *
 * Timestamps are the wall-clock start plus the monotonic time since then.  When the wall clock steps, streams restart,
 * with a later start time and from the values sent last. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/json.h"
#include "core/log.h"
#include "core/xalloc.h"
#include "monitor/parts.h"
#include "port/proc.h"
#include "port/thread.h"
#include "wire/otlp.h"

#define PAUSE_FIRST NS_PER_S
#define PAUSE_MAX   (60 * NS_PER_S)
#define CLOSE_MAX   (3 * NS_PER_S)
/* A larger offset means that the wall clock was set. */
#define CLOCK_STEP_MIN NS_PER_S

enum { QUEUE_MAX = 64 };

struct otlp_push {
    char instance[40], host[64];
    struct otlp_receiver receiver; /* used by the sending thread only */
    nanos interval, next;
    /* Streams: joules since `start`, that is, minus the base of each domain. */
    nanos start, start_wall, last;
    double *bases, *sent; /* by domain */
    size_t domain_count;

    pthread_t thread;
    bool is_running;
    struct deadline deadline;
    atomic_bool stopping, canceled, has_ended;
    pthread_mutex_t lock;
    struct text queue[QUEUE_MAX]; /* guarded by the lock, as are the following fields */
    size_t count;
    struct otlp_counts counts;
};

/* ---- a batch ---- */

static nanos wall_time(const struct otlp_push *push, nanos t)
{
    return push->start_wall + (t - push->start);
}

/* The energy of a whole host has its own metric, so that a sum over components counts no joule twice. */
static bool is_host(const struct reading_domain *domain)
{
    return domain->scope == SCOPE_NODE || domain->scope == SCOPE_BOARD;
}

/* hw.type of the OpenTelemetry semantic conventions. */
static const char *type_of(const struct reading_domain *domain)
{
    if (domain->scope == SCOPE_DRAM || domain->scope == SCOPE_GPU_MEMORY)
        return "memory";
    if (domain->scope == SCOPE_GPU)
        return "gpu";
    return domain->scope == SCOPE_GRACE_CPU || (domain->scope != SCOPE_PLATFORM &&
                                                scope_contains(SCOPE_PLATFORM, domain->scope))
               ? "cpu"
               : "enclosure";
}

/* The domain of the same device that contains this one; NULL: none. */
static const struct reading_domain *parent_of(const struct readings *readings,
                                              const struct reading_domain *domain)
{
    for (size_t i = 0; i < readings->domain_count; i++) {
        const struct reading_domain *other = &readings->domains[i];
        if (other->scope != domain->scope && str_equal(other->device, domain->device) &&
            scope_contains(other->scope, domain->scope))
            return other;
    }
    return NULL;
}

static void put_attributes(struct json *json, const struct readings *readings,
                           const struct reading_domain *domain)
{
    const struct reading_domain *parent = parent_of(readings, domain);
    char id[DEVICE_NAME_SIZE + 32];
    chars_format(id, "%s%s%s", domain->device, parent ? "/" : "",
                 parent ? scope_name(domain->scope) : "");
    json_array(json, "attributes");
    otlp_text(json, "hw.id", id);
    otlp_text(json, "hw.name", domain->name);
    otlp_text(json, "hw.type", type_of(domain));
    otlp_text(json, "hw.parent", parent ? domain->device : NULL);
    otlp_text(json, "ipw.scope", scope_name(domain->scope));
    otlp_text(json, "ipw.source", domain->source);
    otlp_text(json, "ipw.method", method_name(domain->method));
    otlp_bool(json, "ipw.counted", domain->is_counted);
    json_array_end(json);
}

static bool is_selected(const struct reading_domain *domain, bool of_host)
{
    return domain->is_up && domain->point_count && is_host(domain) == of_host &&
           (domain->method != METHOD_ESTIMATED || domain->is_counted);
}

static void put_energy(struct otlp_push *push, const struct readings *readings, struct json *json,
                       bool of_host)
{
    otlp_open_metric(json, of_host ? "hw.host.energy" : "hw.energy", NULL, "J", "sum");
    for (size_t i = 0; i < readings->domain_count; i++) {
        const struct reading_domain *domain = &readings->domains[i];
        if (!is_selected(domain, of_host))
            continue;
        const struct reading_point *point = &domain->points[domain->point_count - 1];
        json_object(json, NULL);
        put_attributes(json, readings, domain);
        otlp_digits(json, "startTimeUnixNano", push->start_wall);
        otlp_digits(json, "timeUnixNano",
                    wall_time(push, point->t > push->start ? point->t : push->start));
        json_number(json, "asDouble", fmax(0, point->joules - push->bases[domain->number]));
        json_object_end(json);
        push->sent[domain->number] = point->joules;
    }
    otlp_close_metric(json);
}

static void put_power(const struct otlp_push *push, const struct readings *readings,
                      struct json *json, bool of_host, nanos now)
{
    otlp_open_metric(json, of_host ? "hw.host.power" : "hw.power", NULL, "W", "gauge");
    for (size_t i = 0; i < readings->domain_count; i++) {
        const struct reading_domain *domain = &readings->domains[i];
        if (!is_selected(domain, of_host) || !is_known(domain->watts))
            continue;
        json_object(json, NULL);
        put_attributes(json, readings, domain);
        otlp_digits(json, "timeUnixNano", wall_time(push, now));
        json_number(json, "asDouble", domain->watts);
        json_object_end(json);
    }
    otlp_close_metric(json);
}

/* The gauges for which the semantic conventions define a name. */
static const struct gauge_name {
    enum quantity quantity;
    bool of_gpu;
    const char *name, *unit, *type;
    double scale;
} GAUGES[] = {
    {QTY_UTILIZATION, true, "hw.gpu.utilization", "1", "gpu", 0.01},
    {QTY_MEMORY_USED, true, "hw.gpu.memory.usage", "By", "gpu", 1},
    {QTY_MEMORY_TOTAL, true, "hw.gpu.memory.limit", "By", "gpu", 1},
    {QTY_TEMPERATURE, true, "hw.temperature", "Cel", "gpu", 1},
    {QTY_TEMPERATURE, false, "hw.temperature", "Cel", "cpu", 1},
    {QTY_CLOCK, false, "hw.cpu.speed", "Hz", "cpu", 1e6},
};

static void put_gauges(const struct otlp_push *push, const struct readings *readings,
                       struct json *json, nanos now)
{
    const char *open = NULL;
    for (size_t k = 0; k < COUNT_OF(GAUGES); k++) {
        if (open != GAUGES[k].name && open)
            otlp_close_metric(json);
        if (open != GAUGES[k].name)
            otlp_open_metric(json, open = GAUGES[k].name, NULL, GAUGES[k].unit, "gauge");
        for (size_t i = 0; i < readings->gauge_count; i++) {
            const struct reading_gauge *gauge = &readings->gauges[i];
            if (gauge->quantity != GAUGES[k].quantity || !is_known(gauge->value) ||
                str_starts(gauge->device, "gpu") != GAUGES[k].of_gpu)
                continue;
            nanos age = is_known(gauge->age_s) ? from_seconds(gauge->age_s) : 0;
            json_object(json, NULL);
            json_array(json, "attributes");
            otlp_text(json, "hw.id", gauge->device);
            otlp_text(json, "hw.type", GAUGES[k].type);
            otlp_text(json, "ipw.channel", gauge->channel);
            json_array_end(json);
            otlp_digits(json, "timeUnixNano", wall_time(push, now - age));
            json_number(json, "asDouble", gauge->value * GAUGES[k].scale);
            json_object_end(json);
        }
    }
    otlp_close_metric(json);
}

static void put_process_metrics(const struct otlp_push *push, struct json *json, nanos now)
{
    struct own_cost cost;
    proc_own_cost(&cost);
    otlp_open_metric(json, "process.cpu.time", NULL, "s", "sum");
    json_object(json, NULL);
    otlp_digits(json, "startTimeUnixNano", push->start_wall);
    otlp_digits(json, "timeUnixNano", wall_time(push, now));
    json_number(json, "asDouble", cost.cpu_s);
    json_object_end(json);
    otlp_close_metric(json);
}

/* Adds the bases of new domains; domains are never removed. */
static void grow_bases(struct otlp_push *push, size_t count)
{
    if (count <= push->domain_count)
        return;
    push->bases = xreallocarray(push->bases, count, sizeof *push->bases);
    push->sent = xreallocarray(push->sent, count, sizeof *push->sent);
    for (; push->domain_count < count; push->domain_count++)
        push->bases[push->domain_count] = push->sent[push->domain_count] = 0;
}

/* If the wall clock was set, starts a new stream, whose base is the energy sent so far. */
static void handle_clock_step(struct otlp_push *push, nanos now)
{
    nanos wall = clock_wall(), off = wall - wall_time(push, now);
    if (off < CLOCK_STEP_MIN && off > -CLOCK_STEP_MIN)
        return;
    push->start = push->last;
    push->start_wall = wall - (now - push->last);
    if (push->domain_count)
        memcpy(push->bases, push->sent, push->domain_count * sizeof *push->bases);
}

static void write_batch(struct otlp_push *push, const struct readings *readings, nanos now,
                        struct text *out)
{
    struct json json;
    json_init(&json, out, false);
    otlp_open(&json, "resourceMetrics", push->instance, push->host);
    otlp_scope(&json, "scopeMetrics");
    json_array(&json, "metrics");
    for (int of_host = 0; of_host < 2; of_host++) {
        put_energy(push, readings, &json, of_host);
        put_power(push, readings, &json, of_host, now);
    }
    put_gauges(push, readings, &json, now);
    put_process_metrics(push, &json, now);
    json_array_end(&json);
    otlp_close(&json);
}

/* ---- the queue ---- */

static void drop_oldest(struct otlp_push *push)
{
    text_release(&push->queue[0]);
    memmove(push->queue, push->queue + 1, --push->count * sizeof *push->queue);
}

static void enqueue(struct otlp_push *push, struct text *batch)
{
    pthread_mutex_lock(&push->lock);
    if (push->count == QUEUE_MAX) {
        drop_oldest(push);
        push->counts.dropped++;
    }
    push->queue[push->count++] = *batch;
    pthread_mutex_unlock(&push->lock);
    deadline_wake(&push->deadline);
}

void otlp_push_update(struct otlp_push *push, struct state *state, nanos now)
{
    struct readings readings;
    struct text batch = {0};
    size_t count;
    if (now < push->next)
        return;
    push->next =
        push->next + push->interval > now ? push->next + push->interval : now + push->interval;
    state_domains(state, &count);
    grow_bases(push, count);
    readings_page(state, 0, &readings);
    handle_clock_step(push, now);
    write_batch(push, &readings, now, &batch);
    push->last = now;
    readings_release(&readings);
    enqueue(push, &batch);
}

/* ---- sending ---- */

static enum otlp_outcome send_batch(struct otlp_push *push, const struct text *batch, nanos *pause)
{
    struct otlp_reply reply;
    enum otlp_outcome outcome = otlp_receiver_send(&push->receiver, text_get(batch), batch->length,
                                                   &push->canceled, &reply);
    if (outcome == OTLP_REFUSED || reply.rejected)
        log_warn("%s", reply.why.text);
    if (is_known(reply.retry_after_s) && from_seconds(reply.retry_after_s) > *pause)
        *pause = from_seconds(reply.retry_after_s);
    return outcome;
}

/* Removes the oldest batch: while it is being sent, the queue may drop others. */
static bool dequeue(struct otlp_push *push, struct text *out)
{
    pthread_mutex_lock(&push->lock);
    bool any = push->count > 0;
    if (any) {
        *out = push->queue[0];
        memmove(push->queue, push->queue + 1, --push->count * sizeof *push->queue);
    }
    pthread_mutex_unlock(&push->lock);
    return any;
}

static void count_outcome(struct otlp_push *push, enum otlp_outcome outcome)
{
    pthread_mutex_lock(&push->lock);
    push->counts.pushes += outcome == OTLP_SENT;
    push->counts.failures += outcome != OTLP_SENT;
    push->counts.dropped += outcome == OTLP_REFUSED;
    pthread_mutex_unlock(&push->lock);
}

static bool is_full(struct otlp_push *push)
{
    pthread_mutex_lock(&push->lock);
    bool full = push->count == QUEUE_MAX;
    pthread_mutex_unlock(&push->lock);
    return full;
}

static void wait_until(struct otlp_push *push, nanos until)
{
    while (!atomic_load(&push->stopping) && clock_now() < until)
        deadline_wait(&push->deadline, until);
}

static void *push_main(void *argument)
{
    struct otlp_push *push = argument;
    struct text batch = {0};
    nanos pause = PAUSE_FIRST;
    bool has_batch = false;
    thread_name("ipw-otlp", -1);
    for (;;) {
        if (!has_batch && !(has_batch = dequeue(push, &batch))) {
            if (atomic_load(&push->stopping))
                break;
            deadline_wait(&push->deadline, clock_now() + 60 * NS_PER_S);
            continue;
        }
        nanos wait = pause;
        enum otlp_outcome outcome = send_batch(push, &batch, &wait);
        count_outcome(push, outcome);
        if (outcome != OTLP_REPEAT) {
            text_release(&batch);
            has_batch = false;
            pause = PAUSE_FIRST;
            continue;
        }
        if (atomic_load(&push->stopping))
            break;
        wait_until(push, clock_now() + (wait < PAUSE_MAX ? wait : PAUSE_MAX));
        pause = 2 * pause < PAUSE_MAX ? 2 * pause : PAUSE_MAX;
        if (is_full(push)) { /* give up on this batch: newer ones contain its energy */
            text_release(&batch);
            has_batch = false;
            count_outcome(push, OTLP_REFUSED);
        }
    }
    text_release(&batch);
    atomic_store(&push->has_ended, true);
    return NULL;
}

/* ---- opening and closing ---- */

enum err otlp_push_open(const char *url, nanos interval, const char *instance, const char *host,
                        struct otlp_push **out, struct error *why)
{
    struct otlp_push *push = *out = XNEW(push);
    push->interval = interval;
    push->start = push->last = clock_now();
    push->start_wall = clock_wall();
    chars_copy(push->instance, instance);
    chars_copy(push->host, host);
    deadline_init(&push->deadline);
    pthread_mutex_init(&push->lock, NULL);
    enum err err = otlp_receiver_open(&push->receiver, OTLP_METRICS, url, why);
    if (!err) {
        err = err_explain(why, thread_start(&push->thread, push_main, push));
        push->is_running = !err;
    }
    if (err) {
        otlp_push_close(push);
        *out = NULL;
    }
    return err;
}

void otlp_push_count(struct otlp_push *push, struct otlp_counts *out)
{
    pthread_mutex_lock(&push->lock);
    *out = push->counts;
    pthread_mutex_unlock(&push->lock);
}

void otlp_push_close(struct otlp_push *push)
{
    if (!push)
        return;
    atomic_store(&push->stopping, true);
    deadline_wake(&push->deadline);
    for (nanos until = clock_now() + CLOSE_MAX;
         push->is_running && !atomic_load(&push->has_ended) && clock_now() < until;)
        thread_sleep(5 * NS_PER_MS);
    atomic_store(&push->canceled, true);
    if (push->is_running && !thread_join(push->thread, clock_now() + CLOSE_MAX))
        return; /* the thread still uses these */
    while (push->count)
        drop_oldest(push);
    otlp_receiver_release(&push->receiver);
    pthread_mutex_destroy(&push->lock);
    free(push->bases);
    free(push->sent);
    free(push);
}
