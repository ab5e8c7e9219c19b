/* Reads events line by line, as the runtime writes them.  Events of nodes nest where a node runs a graph of its own. */
#include "runner/layers/node_trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "stats/descriptive.h"

enum { TRACE_LIMIT = 512 << 20 };

struct event {
    double from, to; /* microseconds */
    size_t node;
    double inside; /* of events in it */
};

struct reading {
    struct node_trace *trace;
    struct event *events;
    size_t count, capacity;
    double *runs; /* their starts */
    size_t run_count, run_capacity;
};

/* A node is known by its name, its operator and its place among the nodes of its graph; calls repeat in the same order, so
 * that it is likely the one after the last. */
static size_t find_node(struct node_trace *trace, size_t expected, const char *name, const char *op)
{
    for (size_t k = 0; k < trace->count; k++) {
        size_t i = (expected + k) % trace->count;
        if (str_equal(trace->nodes[i].name, name) && str_equal(trace->nodes[i].op, op))
            return i;
    }
    *XADD(trace->nodes, trace->count, trace->capacity) =
        (struct trace_node){.name = xstrdup(name), .op = xstrdup(op)};
    return trace->count - 1;
}

static void add_node(struct reading *reading, const struct jv *event, const char *name, double from,
                     double to)
{
    static const char KERNEL[] = "_kernel_time";
    const char *op = jv_get_text(jv_get(event, "args"), "op_name");
    if (!str_ends(name, KERNEL) || !op)
        return;
    char *own = xstrndup(name, strlen(name) - strlen(KERNEL));
    size_t expected = reading->count ? reading->events[reading->count - 1].node + 1 : 0;
    size_t node = find_node(reading->trace, expected, own, op);
    free(own);
    *XADD(reading->events, reading->count, reading->capacity) =
        (struct event){.from = from, .to = to, .node = node};
}

static enum err add_event(struct reading *reading, const struct jv *event)
{
    const char *kind = jv_get_text(event, "cat"), *name = jv_get_text(event, "name");
    double from = jv_number(jv_get(event, "ts")), length = jv_number(jv_get(event, "dur"));
    if (!kind || !name || !isfinite(from) || !isfinite(length))
        return ERR_BAD_VALUE;
    if (str_equal(kind, "Node"))
        add_node(reading, event, name, from, from + length);
    else if (str_equal(name, "model_run"))
        *XADD(reading->runs, reading->run_count, reading->run_capacity) = from;
    return ERR_OK;
}

/* A line is "[", "]", or an event, after which a comma may follow. */
static enum err add_line(struct reading *reading, const char *line, size_t length)
{
    struct jv *event;
    while (length && strchr(", \r[]", line[length - 1]))
        length--;
    while (length && strchr("[ ", *line)) {
        line++;
        length--;
    }
    if (!length)
        return ERR_OK;
    if (jv_parse(line, length, &event, NULL))
        return ERR_BAD_VALUE;
    enum err err = add_event(reading, event);
    jv_free(event);
    return err;
}

static int by_start(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (a->to < b->to) - (a->to > b->to); /* the one around the other first */
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Adds the length of each event to `inside` of the one around it. */
static void find_insides(struct event *events, size_t count)
{
    size_t *open = xcalloc(count + 1, sizeof *open), depth = 0;
    for (size_t i = 0; i < count; i++) {
        while (depth && events[open[depth - 1]].to < events[i].to)
            depth--;
        if (depth && events[open[depth - 1]].to > events[i].from)
            events[open[depth - 1]].inside += events[i].to - events[i].from;
        open[depth++] = i;
    }
    free(open);
}

static enum err sum_up(struct reading *reading, unsigned long skip, const char *path,
                       struct error *why)
{
    if (reading->run_count <= skip)
        return err_set(why, ERR_BAD_VALUE, "%s: a profile of %zu runs", path, reading->run_count);
    struct node_trace *trace = reading->trace;
    size_t run = 0;
    trace->runs = reading->run_count - skip;
    qsort(reading->runs, reading->run_count, sizeof *reading->runs, by_value);
    if (reading->count)
        qsort(reading->events, reading->count, sizeof *reading->events, by_start);
    find_insides(reading->events, reading->count);
    for (size_t i = 0; i < trace->count; i++)
        trace->nodes[i].seconds = xcalloc(trace->runs, sizeof *trace->nodes[i].seconds);
    for (size_t i = 0; i < reading->count; i++) {
        const struct event *event = &reading->events[i];
        struct trace_node *node = &trace->nodes[event->node];
        while (run + 1 < reading->run_count && event->from >= reading->runs[run + 1])
            run++;
        if (run < skip || event->from < reading->runs[run])
            continue;
        node->calls++;
        node->seconds[run - skip] += 1e-6 * fmax(0, event->to - event->from - event->inside);
    }
    return ERR_OK;
}

enum err node_trace_read(const char *path, unsigned long skip, struct node_trace *out,
                         struct error *why)
{
    struct reading reading = {.trace = out};
    struct text text = {0};
    *out = (struct node_trace){0};
    enum err err = file_read(path, TRACE_LIMIT, &text, why);
    size_t number = 1;
    for (const char *at = text_get(&text); !err && *at; number++) {
        size_t length = strcspn(at, "\n");
        if (add_line(&reading, at, length))
            err = err_set(why, ERR_BAD_VALUE, "%s, line %zu: no event of a profile", path, number);
        at += length + (at[length] == '\n');
    }
    text_release(&text);
    if (!err)
        err = sum_up(&reading, skip, path, why);
    free(reading.events);
    free(reading.runs);
    if (err)
        node_trace_release(out);
    return err;
}

void node_trace_release(struct node_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        free(trace->nodes[i].name);
        free(trace->nodes[i].op);
        free(trace->nodes[i].seconds);
    }
    free(trace->nodes);
    *trace = (struct node_trace){0};
}

double trace_node_seconds(const struct node_trace *trace, const struct trace_node *node,
                          double *sigma)
{
    /* Of normal errors: 1.349 standard deviations between the quartiles, and the median has 1.253 times the error of the
     * mean. */
    static const double OF_QUARTILES = 1.253 / 1.349;
    static const double RESOLUTION_S = 0.29e-6; /* of whole microseconds */
    double spread =
        quantile(node->seconds, trace->runs, 0.75) - quantile(node->seconds, trace->runs, 0.25);
    double calls = (double)node->calls / (double)trace->runs;
    *sigma = hypot(OF_QUARTILES * spread / sqrt((double)trace->runs), RESOLUTION_S * calls);
    return quantile(node->seconds, trace->runs, 0.5);
}
