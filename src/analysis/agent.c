/* Energy of an agent by kind of span, by tool and by turn, from the traces of its queries. */
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "core/grow.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/traces.h"

enum { QUERIES_MAX = 10 };

/* Joules with their ±, and the part that is idle energy. */
struct usage {
    double joules, plus_minus, idle_joules;
};

static const struct usage NOTHING_KNOWN = {UNKNOWN, UNKNOWN, UNKNOWN};

/* Errors add linearly: the sensors are the same. */
static void add_usage(struct usage *sum, struct usage part)
{
    add_known(&sum->joules, part.joules);
    add_known(&sum->plus_minus, part.plus_minus);
    add_known(&sum->idle_joules, part.idle_joules);
}

/* An item that occurs in many queries: a kind of span, a tool, a turn. */
struct row {
    const char *name; /* NULL for a turn, which is identified by its position */
    size_t count, errors;
    double seconds, input, output;
    struct usage usage;
};

struct rows {
    struct row *items;
    size_t count, capacity;
};

static struct row *new_row(struct rows *rows, const char *name)
{
    XGROW(rows->items, rows->count, rows->capacity);
    rows->items[rows->count] = (struct row){name, 0, 0, UNKNOWN, UNKNOWN, UNKNOWN, NOTHING_KNOWN};
    return &rows->items[rows->count++];
}

static struct row *find_row(struct rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->count; i++)
        if (str_equal(rows->items[i].name, name))
            return &rows->items[i];
    return new_row(rows, name);
}

static void add_to(struct rows *rows, const char *name, double seconds, struct usage usage,
                   bool failed)
{
    struct row *row = find_row(rows, name);
    row->count++;
    row->errors += failed;
    add_known(&row->seconds, seconds);
    add_usage(&row->usage, usage);
}

/* Sorts by energy, or by time if energies are unknown. */
static double cost_of(const struct row *row)
{
    if (is_known(row->usage.joules))
        return row->usage.joules;
    return is_known(row->seconds) ? row->seconds * 1e-9 : 0;
}

static int by_joules(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    double left = cost_of(x), right = cost_of(y);
    return left != right ? (left < right) - (left > right) : strcmp(x->name, y->name);
}

/* ---- collecting ---- */

struct collected {
    struct rows types, tools, turns;
    double joules, plus_minus, seconds; /* sums over all queries */
    struct usage resolved, unresolved;
    size_t known, estimated, completed, right, wrong, shared, split_by_time, problems;
    double turn_sum, tool_sum;
};

/* All counted devices; in a trace of the Python IPW those that it has. */
static double joules_of(const struct query_trace *trace)
{
    double sum = UNKNOWN;
    if (is_known(trace->ipw.energy_joules))
        return trace->ipw.energy_joules;
    add_known(&sum, query_trace_gpu_joules(trace));
    add_known(&sum, query_trace_cpu_joules(trace));
    return sum;
}

static const char *kind_of(const struct span_trace *span)
{
    return str_equal(span->type, "agent") || str_equal(span->type, "turn") ? "gap" : span->type;
}

static struct usage all_of(const struct span_trace *span)
{
    return (struct usage){span->joules, span->plus_minus, span->idle_joules};
}

static struct usage own_of(const struct span_trace *span)
{
    return (struct usage){span->own_joules, span->own_plus_minus, span->own_idle_joules};
}

static void add_spans(struct collected *all, const struct query_trace *trace)
{
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span_trace *span = &trace->spans[i];
        bool is_gap = str_equal(kind_of(span), "gap");
        bool is_tool = str_equal(span->type, "tool_call");
        /* A request's own energy is that of its phases. */
        add_to(&all->types, kind_of(span), is_gap ? UNKNOWN : span->to_s - span->from_s,
               is_gap || is_tool ? own_of(span) : all_of(span), span->error);
        if (is_tool)
            add_to(&all->tools, span->name ? span->name : "unknown", span->to_s - span->from_s,
                   all_of(span), span->error);
    }
}

/* Traces of the Python IPW have no spans: calls by name, with their time if recorded. */
static void add_named_tools(struct collected *all, const struct turn_trace *turn)
{
    for (const struct jv *tool = jv_first(turn->tools_called.value); tool; tool = jv_next(tool)) {
        const char *name = jv_text(tool);
        const struct jv *first = jv_first(turn->tools_called.value);
        while (first != tool && !(jv_text(first) && name && str_equal(jv_text(first), name)))
            first = jv_next(first);
        double seconds =
            first == tool && name ? jv_get_number(turn->tool_latencies_s.value, name) : UNKNOWN;
        add_to(&all->tools, name ? name : "unknown", seconds, NOTHING_KNOWN, false);
    }
}

/* The span of the query's next turn from index *at on; NULL if there is none. */
static const struct span_trace *next_turn(const struct query_trace *trace, size_t *at)
{
    while (*at < trace->span_count) {
        const struct span_trace *span = &trace->spans[(*at)++];
        if (str_equal(span->type, "turn") && span->parent == 0)
            return span;
    }
    return NULL;
}

/* A turn's span has the energy of all counted devices; without spans only GPU and CPU are known. */
static struct usage spent_by(const struct turn_trace *turn, const struct span_trace *span)
{
    struct usage usage = NOTHING_KNOWN;
    if (span)
        return all_of(span);
    add_known(&usage.joules, turn->gpu_energy_joules);
    add_known(&usage.joules, turn->cpu_energy_joules);
    return usage;
}

static void add_turns(struct collected *all, const struct query_trace *trace)
{
    size_t at = 0;
    for (size_t i = 0; i < trace->turn_count; i++) {
        const struct turn_trace *turn = &trace->turns[i];
        if (i >= all->turns.count)
            new_row(&all->turns, NULL);
        struct row *row = &all->turns.items[i];
        row->count++;
        row->errors += turn->error != NULL;
        add_known(&row->seconds, turn->wall_clock_s);
        add_usage(&row->usage, spent_by(turn, next_turn(trace, &at)));
        add_known(&row->input, turn->input_tokens);
        add_known(&row->output, turn->output_tokens);
    }
}

static void collect(const struct traces *traces, struct collected *all)
{
    *all = (struct collected){.resolved = NOTHING_KNOWN,
                              .unresolved = NOTHING_KNOWN,
                              .joules = UNKNOWN,
                              .plus_minus = UNKNOWN};
    for (size_t i = 0; i < traces->count; i++) {
        const struct query_trace *trace = &traces->items[i];
        double joules = joules_of(trace);
        add_known(&all->joules, joules);
        add_known(&all->plus_minus, trace->ipw.plus_minus); /* same sensors: errors add */
        all->estimated += trace->ipw.method && str_equal(trace->ipw.method, "estimated");
        add_known(&all->seconds, trace->total_wall_clock_s);
        if (trace->is_resolved >= 0)
            add_usage(trace->is_resolved ? &all->resolved : &all->unresolved,
                      (struct usage){joules, trace->ipw.plus_minus, trace->ipw.idle_joules});
        all->known += is_known(joules);
        all->completed += trace->completed == 1;
        all->right += trace->is_resolved == 1;
        all->wrong += trace->is_resolved == 0;
        all->shared += trace->shared_device_warning == 1;
        all->problems += trace->ipw.event_problems != NULL;
        all->split_by_time +=
            trace->ipw.energy_split && str_equal(trace->ipw.energy_split, "wall_clock_share");
        all->turn_sum += trace->num_turns;
        all->tool_sum += trace->total_tool_calls;
        add_turns(all, trace);
        add_spans(all, trace);
        for (size_t k = 0; k < trace->turn_count && !trace->span_count; k++)
            add_named_tools(all, &trace->turns[k]);
    }
}

/* ---- the result ---- */

static double share_of(struct collected *all, const char *type)
{
    for (size_t i = 0; i < all->types.count; i++)
        if (str_equal(all->types.items[i].name, type))
            return ratio(all->types.items[i].usage.joules, all->joules);
    return UNKNOWN;
}

static void put_summary(struct result *result, struct collected *all, size_t queries)
{
    double inference = UNKNOWN, known = (double)all->known;
    add_known(&inference, share_of(all, "lm_inference"));
    add_known(&inference, share_of(all, "submodel_call"));
    result_group(result, "summary");
    result_count(result, "queries", queries);
    result_count(result, "completed", all->completed);
    result_count(result, "overlapping_queries", all->shared);
    result_number(result, "accuracy", ratio((double)all->right, (double)(all->right + all->wrong)),
                  "%");
    result_number(result, "turns_per_query", all->turn_sum / (double)queries, "");
    result_number(result, "tool_calls_per_query", all->tool_sum / (double)queries, "");
    result_number(result, "seconds_per_query", all->seconds / (double)queries, "s");
    result_figure(result, "joules", all->joules, all->plus_minus, "J");
    result_figure(result, "joules_per_query", ratio(all->joules, known),
                  ratio(all->plus_minus, known), "J");
    result_figure(result, "joules_per_turn", ratio(all->joules, all->turn_sum),
                  ratio(all->plus_minus, all->turn_sum), "J");
    result_figure(result, "joules_per_resolved_query", ratio(all->joules, (double)all->right),
                  ratio(all->plus_minus, (double)all->right), "J");
    result_number(result, "inference_share", inference, "%");
    result_number(result, "prefill_share", share_of(all, "prefill"), "%");
    result_number(result, "decode_share", share_of(all, "decode"), "%");
    result_number(result, "tool_share", share_of(all, "tool_call"), "%");
    result_number(result, "gap_share", share_of(all, "gap"), "%");
    result_figure(result, "joules_of_resolved", all->resolved.joules, all->resolved.plus_minus,
                  "J");
    result_figure(result, "joules_of_unresolved", all->unresolved.joules,
                  all->unresolved.plus_minus, "J");
    result_end(result);
}

static void put_row(struct result *result, const struct row *row, double all_joules)
{
    double count = (double)row->count;
    result_count(result, "count", row->count);
    result_number(result, "seconds", row->seconds, "s");
    result_number(result, "seconds_each", row->seconds / count, "s");
    result_figure(result, "joules", row->usage.joules, row->usage.plus_minus, "J");
    result_number(result, "idle_joules", row->usage.idle_joules, "J");
    result_number(result, "active_joules", row->usage.joules - row->usage.idle_joules, "J");
    result_figure(result, "joules_each", row->usage.joules / count, row->usage.plus_minus / count,
                  "J");
    result_number(result, "share", ratio(row->usage.joules, all_joules), "%");
    result_count(result, "errors", row->errors);
}

static void put_rows(struct result *result, const char *key, const char *name, struct rows *rows,
                     double all_joules)
{
    if (rows->count)
        qsort(rows->items, rows->count, sizeof *rows->items, by_joules);
    result_list(result, key);
    for (size_t i = 0; i < rows->count; i++) {
        result_group(result, NULL);
        result_text(result, name, rows->items[i].name);
        put_row(result, &rows->items[i], all_joules);
        result_end(result);
    }
    result_end(result);
}

static void put_turns(struct result *result, const struct collected *all)
{
    result_list(result, "turns");
    for (size_t i = 0; i < all->turns.count; i++) {
        const struct row *row = &all->turns.items[i];
        result_group(result, NULL);
        result_count(result, "turn", i);
        put_row(result, row, all->joules);
        result_number(result, "input_tokens_each", row->input / (double)row->count, "");
        result_number(result, "output_tokens_each", row->output / (double)row->count, "");
        result_end(result);
    }
    result_end(result);
}

static int by_cost(const void *a, const void *b)
{
    double x = joules_of(*(const struct query_trace *const *)a);
    double y = joules_of(*(const struct query_trace *const *)b);
    x = known_or(x, -1);
    y = known_or(y, -1);
    return (x < y) - (x > y);
}

/* The most expensive queries. */
static void put_queries(struct result *result, const struct traces *traces)
{
    const struct query_trace **order = xcalloc(traces->count + 1, sizeof *order);
    for (size_t i = 0; i < traces->count; i++)
        order[i] = &traces->items[i];
    qsort((void *)order, traces->count, sizeof *order, by_cost);
    result_list(result, "queries");
    for (size_t i = 0; i < traces->count && i < QUERIES_MAX; i++) {
        const struct query_trace *trace = order[i];
        result_group(result, NULL);
        result_text(result, "query", trace->ipw.key ? trace->ipw.key : trace->query_id);
        result_figure(result, "joules", joules_of(trace), trace->ipw.plus_minus, "J");
        result_number(result, "seconds", trace->total_wall_clock_s, "s");
        result_number(result, "turns", trace->num_turns, "");
        result_number(result, "tool_calls", trace->total_tool_calls, "");
        result_number(result, "output_tokens", trace->total_output_tokens, "");
        result_end(result);
    }
    result_end(result);
    free((void *)order);
}

/* `rows`: number of queries of the run, 0 if unknown. */
static void warn(struct result *result, const struct collected *all, const struct traces *traces,
                 size_t rows)
{
    if (rows > traces->count)
        result_warn(result, "%zu of %zu queries have no trace: the figures are of the others",
                    rows - traces->count, rows);
    if (all->known < traces->count)
        result_warn(result, "energy is unknown for %zu of %zu queries", traces->count - all->known,
                    traces->count);
    if (all->estimated)
        result_warn(result, "energies of %zu of %zu queries are estimated, not measured",
                    all->estimated, traces->count);
    if (all->split_by_time)
        result_warn(result,
                    "in %zu of %zu queries only the energy of the query is known: the energy of "
                    "turns is by their share of its wall-clock time",
                    all->split_by_time, traces->count);
    if (all->problems)
        result_warn(
            result,
            "events of %zu of %zu queries were incomplete or out of order: event_problems in "
            "traces.jsonl lists the repairs",
            all->problems, traces->count);
    if (traces->damaged)
        result_warn(result, "%llu lines of traces.jsonl are not traces and were skipped",
                    (unsigned long long)traces->damaged);
}

static enum err agent_run(struct analysis *analysis, struct error *why)
{
    struct traces traces;
    struct collected all = {0};
    struct result *result = analysis->result;
    enum err err = traces_load(analysis->traces, &traces, why);
    if (err)
        return err;
    if (!traces.count)
        err = err_set(why, ERR_NO_DATA, "traces.jsonl has no queries");
    if (!err) {
        collect(&traces, &all);
        put_summary(result, &all, traces.count);
        result_group(result, "data");
        put_rows(result, "kinds", "kind", &all.types, all.joules);
        put_rows(result, "tools", "tool", &all.tools, all.joules);
        put_turns(result, &all);
        put_queries(result, &traces);
        result_end(result);
        warn(result, &all, &traces, analysis->table ? analysis->table->rows : 0);
    }
    free(all.types.items);
    free(all.tools.items);
    free(all.turns.items);
    traces_release(&traces);
    return err;
}

static const struct result_phrase FINDING[] = {
    {"", "summary.joules_per_query", " per query"},
    {", ", "summary.turns_per_query", " turns"},
    {", ", "summary.tool_calls_per_query", " tool calls"},
    {"; inferences ", "summary.inference_share", ""},
    {", tools ", "summary.tool_share", ""},
    {", gaps ", "summary.gap_share", ""},
    {0},
};

const struct analysis_driver analysis_agent = {
    .name = "agent",
    .summary = "energy and time of an agent's turns, inferences, tools and the gaps between them",
    .reads_traces = true,
    .finding = FINDING,
    .run = agent_run,
};
