/* The queries of an agent with their spans, for the icicle view: those that cost most, as many as a page holds. */
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/units.h"
#include "report/html/sections.h"
#include "rundir/traces.h"

/* A span takes some 150 bytes of the page. */
enum { QUERIES_MOST = 100, SPANS_MOST = 10000, QUERY_SPANS_MOST = 2000 };

static double cost_of(const struct query_trace *trace)
{
    return is_known(trace->ipw.energy_joules) ? trace->ipw.energy_joules : -1;
}

static int by_cost(const void *a, const void *b)
{
    const struct query_trace *x = *(const struct query_trace *const *)a,
                             *y = *(const struct query_trace *const *)b;
    double left = cost_of(x), right = cost_of(y);
    return left != right ? (left < right) - (left > right) : (x > y) - (x < y);
}

static void put_number(struct json *json, const char *key, double value)
{
    if (is_known(value))
        json_number(json, key, value);
}

static void put_text(struct json *json, const char *key, const char *value)
{
    if (value)
        json_string(json, key, value);
}

static void put_span(struct json *json, const struct span_trace *span)
{
    json_object(json, NULL);
    json_string(json, "type", span->type);
    put_text(json, "name", span->name);
    put_number(json, "parent", span->parent);
    put_number(json, "turn", span->turn);
    json_number(json, "from_s", span->from_s);
    json_number(json, "to_s", span->to_s);
    put_number(json, "joules", span->joules);
    put_number(json, "plus_minus", span->plus_minus);
    put_number(json, "idle_joules", span->idle_joules);
    if (strcmp(span->type, "agent") == 0 || strcmp(span->type, "turn") == 0) { /* their gaps */
        put_number(json, "own_joules", span->own_joules);
        put_number(json, "own_plus_minus", span->own_plus_minus);
    }
    put_number(json, "gpu_joules", span->gpu_joules);
    put_number(json, "cpu_joules", span->cpu_joules);
    put_number(json, "input_tokens", span->input_tokens);
    put_number(json, "output_tokens", span->output_tokens);
    put_text(json, "error", span->error);
    json_object_end(json);
}

static void put_query(struct json *json, const struct query_trace *trace)
{
    size_t listed = trace->span_count < QUERY_SPANS_MOST ? trace->span_count : QUERY_SPANS_MOST;
    json_object(json, NULL);
    json_string(json, "key", trace->ipw.key ? trace->ipw.key : trace->query_id);
    put_number(json, "joules", trace->ipw.energy_joules);
    put_number(json, "plus_minus", trace->ipw.plus_minus);
    put_number(json, "seconds", trace->total_wall_clock_s);
    put_number(json, "turns", trace->num_turns);
    put_number(json, "tool_calls", trace->total_tool_calls);
    put_text(json, "problems", trace->ipw.event_problems);
    json_integer(json, "left_out", (int64_t)(trace->span_count - listed));
    json_array(json, "spans");
    for (size_t i = 0; i < listed; i++)
        put_span(json, &trace->spans[i]);
    json_array_end(json);
    json_object_end(json);
}

static enum err put_queries(struct json *json, const struct traces *traces)
{
    const struct query_trace **order = calloc(traces->count + 1, sizeof *order);
    size_t count = 0, spans = 0;
    if (!order)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < traces->count; i++)
        if (traces->items[i].span_count)
            order[count++] = &traces->items[i];
    if (count)
        qsort((void *)order, count, sizeof *order, by_cost);
    json_array(json, "queries");
    for (size_t i = 0; i < count && i < QUERIES_MOST && spans < SPANS_MOST; i++) {
        put_query(json, order[i]);
        spans += order[i]->span_count;
    }
    json_array_end(json);
    free((void *)order);
    return ERR_OK;
}

enum err agent_put(struct json *json, const char *directory, struct error *why)
{
    struct traces traces;
    if (!traces_exist(directory)) {
        json_null(json, "agent");
        return ERR_OK;
    }
    enum err err = traces_load(directory, &traces, why);
    if (err)
        return err;
    json_object(json, "agent");
    json_integer(json, "count", (int64_t)traces.count);
    err = err_explain(why, put_queries(json, &traces));
    json_object_end(json);
    traces_release(&traces);
    return err;
}
