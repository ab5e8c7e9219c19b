/* The recorder: a list of events under a lock.  An event's strings are in one block that begins with the query's
 * key. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "sensors/system/host_info.h"
#include "trace/trace.h"

struct trace_recorder {
    pthread_mutex_t lock;
    struct trace_events events; /* query is "" if unknown yet */
};

/* ---- types ---- */

/* "tool_call_start", "retry_attempt"; TRACE_OTHER for anything else. */
static enum trace_type read_type(const char *name, enum trace_edge *edge)
{
    size_t length = strlen(name);
    for (int type = 0; type < TRACE_TYPES; type++) {
        const char *known = trace_type_name((enum trace_type)type);
        size_t own = strlen(known);
        bool is_span = trace_type_is_span((enum trace_type)type);
        if (length < own || memcmp(name, known, own) != 0)
            continue;
        *edge = str_equal(name + own, "_start") ? TRACE_START : TRACE_END;
        if (is_span && (*edge == TRACE_START || str_equal(name + own, "_end")))
            return (enum trace_type)type;
        *edge = TRACE_POINT;
        if (!is_span && length == own)
            return (enum trace_type)type;
    }
    *edge = TRACE_POINT;
    return TRACE_OTHER;
}

/* ---- recording ---- */

struct trace_recorder *trace_recorder_new(void)
{
    struct trace_recorder *recorder = XNEW(recorder);
    pthread_mutex_init(&recorder->lock, NULL);
    return recorder;
}

void trace_recorder_free(struct trace_recorder *recorder)
{
    if (!recorder)
        return;
    trace_events_release(&recorder->events);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
}

static size_t bytes_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *put(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t size = bytes_of(text);
    char *here = *at;
    memcpy(here, text, size);
    *at += size;
    return here;
}

static struct trace_event copy_event(const struct trace_event *event)
{
    const char *query = event->query ? event->query : "";
    char *block = xmalloc(bytes_of(query) + bytes_of(event->id) + bytes_of(event->parent) +
                          bytes_of(event->name) + bytes_of(event->facts.error) +
                          bytes_of(event->facts.metadata));
    struct trace_event copy = *event;
    copy.query = put(&block, query);
    copy.id = put(&block, event->id);
    copy.parent = put(&block, event->parent);
    copy.name = put(&block, event->name);
    copy.facts.error = put(&block, event->facts.error);
    copy.facts.metadata = put(&block, event->facts.metadata);
    return copy;
}

/* An event that arrives within this time is treated as current for reading the CPUs' busy time. */
#define ARRIVAL_MAX (50 * NS_PER_MS)

static bool is_current(nanos at)
{
    nanos late = at ? clock_now() - at : 0;
    return late < ARRIVAL_MAX && late > -ARRIVAL_MAX;
}

void trace_event(struct trace_recorder *recorder, const struct trace_event *event)
{
    struct trace_event now = *event;
    if (now.type == TRACE_TOOL && is_current(now.at) && !is_known(now.cpu_busy_s))
        now.cpu_busy_s = proc_stat_busy_s();
    struct trace_event copy = copy_event(&now);
    pthread_mutex_lock(&recorder->lock);
    struct trace_events *events = &recorder->events;
    XGROW(events->items, events->count, events->capacity);
    if (!copy.at)
        copy.at = clock_now(); /* under the lock, so that events are ordered by time */
    events->items[events->count++] = copy;
    pthread_mutex_unlock(&recorder->lock);
}

/* ---- lines ---- */

static const struct jv *first_of(const struct jv *line, const struct jv *metadata,
                                 const char *const *keys)
{
    for (; *keys; keys++) {
        const struct jv *value = jv_get(metadata, *keys);
        if (!value)
            value = jv_get(line, *keys);
        if (!jv_is_null(value))
            return value;
    }
    return NULL;
}

#define FIRST(...) first_of(line, metadata, (const char *const[]){__VA_ARGS__, NULL})

/* Larger values are wall-clock nanoseconds: no machine has been up for three years. */
#define WALL_NS 1e17

static nanos time_of(double at_s, double at_ns)
{
    nanos offset = -clock_wall_offset();
    if (is_known(at_ns) && at_ns > 0 && at_ns < 9e18)
        return (nanos)at_ns + (at_ns > WALL_NS ? offset : 0);
    return at_s > 0 && at_s < 9e9 ? from_seconds(at_s) + offset : 0;
}

static void read_facts(const struct jv *line, const struct jv *metadata, struct trace_facts *out)
{
    double first_s = jv_number(FIRST("first_token")), first_ns = jv_number(FIRST("first_token_ns"));
    out->input_tokens = jv_number(FIRST("input_tokens", "prompt_tokens"));
    out->output_tokens = jv_number(FIRST("output_tokens", "completion_tokens"));
    out->reasoning_tokens = jv_number(FIRST("reasoning_tokens"));
    out->cached_tokens = jv_number(FIRST("cached_tokens"));
    out->result_tokens = jv_number(FIRST("tool_result_tokens", "result_tokens"));
    out->cost_usd = jv_number(FIRST("cost_usd", "cost"));
    out->cpu_s = jv_number(FIRST("cpu_s"));
    out->first_token = time_of(first_s, first_ns);
    out->error = jv_text(FIRST("error"));
}

/* An id may be a number. */
static const char *id_of(const struct jv *value, char *to, size_t size)
{
    int64_t number;
    if (!jv_integer(value, &number))
        return jv_text(value);
    str_format(to, size, "%lld", (long long)number);
    return to;
}

static enum err record_line(struct trace_recorder *recorder, const char *query,
                            const struct jv *line, struct error *why)
{
    const struct jv *metadata = jv_get(line, "metadata");
    const char *type = jv_text(FIRST("type", "event_type", "event"));
    struct text kept = {0};
    char ids[3][32];
    if (!type)
        return err_set(why, ERR_BAD_VALUE, "an event needs a \"type\", such as tool_call_start");
    struct trace_event event = trace_event_new(TRACE_OTHER, TRACE_POINT, query, NULL);
    event.type = read_type(type, &event.edge);
    const char *own = id_of(FIRST("query_id"), ids[0], sizeof ids[0]);
    event.query = query ? query : own;
    event.id = id_of(FIRST("correlation_id", "id"), ids[1], sizeof ids[1]);
    event.parent = id_of(FIRST("parent_id"), ids[2], sizeof ids[2]);
    event.name = jv_text(FIRST("name", "tool_name", "tool", "model", "agent"));
    event.at = time_of(jv_number(FIRST("timestamp")), jv_number(FIRST("timestamp_ns")));
    read_facts(line, metadata, &event.facts);
    if (jv_is_object(metadata)) {
        jv_print(metadata, &kept);
        event.facts.metadata = text_get(&kept);
    }
    trace_event(recorder, &event);
    text_release(&kept);
    return ERR_OK;
}

enum err trace_event_line(struct trace_recorder *recorder, const char *query, const char *line,
                          size_t length, struct error *why)
{
    struct jv *tree;
    enum err err = jv_parse(line, length, &tree, why);
    if (err)
        return err;
    err = jv_is_object(tree) ? record_line(recorder, query, tree, why)
                             : err_set(why, ERR_BAD_VALUE, "an event is a JSON object");
    jv_free(tree);
    return err;
}

/* ---- taking ---- */

static bool is_text(const char *a, const char *b)
{
    return a && b && str_equal(a, b);
}

/* Whether an event without a query belongs to this one: another event with its id does, or there is no other query. */
static bool belongs(const struct trace_events *events, const struct trace_event *event,
                    const char *query)
{
    bool alone = true;
    for (size_t i = 0; i < events->count; i++) {
        const struct trace_event *other = &events->items[i];
        bool is_own = str_equal(other->query, query);
        alone = alone && (is_own || !other->query[0]);
        if (is_own && other != event &&
            (is_text(other->id, event->id) || is_text(other->id, event->parent)))
            return true;
    }
    return alone;
}

static size_t mark_own(const struct trace_events *events, const char *query, bool *own)
{
    size_t count = 0;
    for (size_t i = 0; i < events->count; i++) {
        const struct trace_event *event = &events->items[i];
        own[i] = event->query[0] ? str_equal(event->query, query) : belongs(events, event, query);
        count += own[i];
    }
    return count;
}

static void move_own(struct trace_events *events, const char *query, struct trace_events *out)
{
    bool *own = xcalloc(events->count, sizeof *own);
    size_t kept = 0, count = mark_own(events, query, own);
    *out = (struct trace_events){.items = xcalloc(count, sizeof *out->items), .capacity = count};
    for (size_t i = 0; i < events->count; i++)
        if (own[i])
            out->items[out->count++] = events->items[i];
        else
            events->items[kept++] = events->items[i];
    events->count = kept;
    free(own);
}

void trace_recorder_take(struct trace_recorder *recorder, const char *query,
                         struct trace_events *out)
{
    pthread_mutex_lock(&recorder->lock);
    move_own(&recorder->events, query, out);
    pthread_mutex_unlock(&recorder->lock);
}

void trace_recorder_revise(struct trace_recorder *recorder, const char *query, trace_revise *revise,
                           void *context)
{
    struct trace_events events;
    trace_recorder_take(recorder, query, &events);
    revise(context, &events);
    trace_events_release(&events);
}
