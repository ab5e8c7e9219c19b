/* Tables bind members to keys, so that writing and reading cannot diverge; the lists of traces.def generate both the
 * tables and the structs. */
#include "rundir/traces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/json_bind.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/journal.h"
#include "rundir/run_path.h"

#define ROW(of, type_, member_, path_, flags_)                                                     \
    {.path = path_,                                                                                \
     .type = FIELD_##type_,                                                                        \
     .offset = offsetof(struct of, member_),                                                       \
     .flags = (flags_)},
#define TURN(type, member)  ROW(turn_trace, type, member, #member, 0)
#define QUERY(type, member) ROW(query_trace, type, member, #member, 0)
#define OURS(type, member)  ROW(query_trace, type, ipw.member, "ipw." #member, 0)
#define SPAN(type, member)  ROW(span_trace, type, member, #member, FIELD_OMIT)

static void clear_turn(const struct json_field *field, void *object)
{
    (void)field;
    turn_trace_init(object);
}

static const struct json_custom TURN_DEFAULTS = {.clear = clear_turn};

typedef const struct json_field fields[];

/* Unknown values of a span are omitted: there are many. */
/* clang-format off */
static fields TURN_FIELDS = {TRACE_TURN_FIELDS(TURN){0}};
static fields SPAN_FIELDS = {TRACE_SPAN_FIELDS(SPAN){0}};
static fields TRACE_FIELDS = {
    TRACE_QUERY_HEAD(QUERY)
    BIND_LIST(query_trace, turns, turn_count, TURN_FIELDS, "turns", .custom = &TURN_DEFAULTS),
    TRACE_QUERY_FIELDS(QUERY)
    TRACE_OURS(OURS)
    BIND_LIST(query_trace, spans, span_count, SPAN_FIELDS, "ipw.spans"),
    {0}};
/* clang-format on */

const struct json_field *query_trace_field(const char *key)
{
    const struct json_field *field = TRACE_FIELDS;
    while (field->path && !str_equal(field->path, key))
        field++;
    return field->path ? field : NULL;
}

void turn_trace_init(struct turn_trace *turn)
{
    json_fields_clear(TURN_FIELDS, turn);
    turn->tool_result_tokens = 0;
    turn->tools_called.text = "[]";
    turn->tool_count = 0;
    turn->tool_latencies_s.text = "{}";
    turn->has_parallel_tools = turn->shared_device_warning = 0;
}

void query_trace_init(struct query_trace *trace)
{
    *trace = (struct query_trace){0};
    json_fields_clear(TRACE_FIELDS, trace);
    trace->workload_type = "agentic";
    trace->query_text = trace->response_text = "";
    trace->completed = trace->timed_out = 0;
    trace->score_metadata.text = trace->accuracy_metadata.text = "{}";
    trace->lm_energy_measurable = 1;
    trace->shared_device_warning = 0;
    trace->n_retries = 0;
}

void query_trace_release(struct query_trace *trace)
{
    json_fields_release(TRACE_FIELDS, trace);
    jv_free(trace->tree);
    query_trace_init(trace);
}

void query_trace_put_score_metadata(struct query_trace *trace, const char *evaluation)
{
    if (evaluation && jv_put_text(trace->tree, "evaluation", evaluation) == ERR_OK)
        trace->score_metadata = (struct json_any){.text = jv_get_text(trace->tree, "evaluation")};
}

/* ---- sums ---- */

static double figure_at(const struct turn_trace *turn, size_t offset)
{
    const void *figure = (const char *)turn + offset;
    return *(const double *)figure;
}

/* Sum over the turns; UNKNOWN if unknown for a turn, or over those with a known value. */
static double sum_turns(const struct query_trace *trace, size_t offset, bool all)
{
    double sum = trace->turn_count && all ? 0 : UNKNOWN;
    for (size_t i = 0; i < trace->turn_count; i++) {
        double value = figure_at(&trace->turns[i], offset);
        if (all)
            sum += value;
        else
            add_known(&sum, value);
    }
    return sum;
}

#define SUM(member)       sum_turns(trace, offsetof(struct turn_trace, member), true)
#define SUM_KNOWN(member) sum_turns(trace, offsetof(struct turn_trace, member), false)

double query_trace_gpu_joules(const struct query_trace *trace)
{
    return is_known(trace->query_gpu_energy_joules) ? trace->query_gpu_energy_joules
                                                    : SUM_KNOWN(gpu_energy_joules);
}

double query_trace_cpu_joules(const struct query_trace *trace)
{
    return is_known(trace->query_cpu_energy_joules) ? trace->query_cpu_energy_joules
                                                    : SUM_KNOWN(cpu_energy_joules);
}

static double mean_watts(const struct query_trace *trace, size_t offset, double otherwise)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < trace->turn_count; i++) {
        double value = figure_at(&trace->turns[i], offset);
        sum += is_known(value) ? value : 0;
        count += is_known(value);
    }
    return count ? sum / (double)count : otherwise;
}

double query_trace_gpu_watts(const struct query_trace *trace)
{
    return mean_watts(trace, offsetof(struct turn_trace, gpu_power_avg_watts),
                      trace->query_gpu_power_avg_watts);
}

double query_trace_cpu_watts(const struct query_trace *trace)
{
    return mean_watts(trace, offsetof(struct turn_trace, cpu_power_avg_watts),
                      trace->query_cpu_power_avg_watts);
}

/* Fallback: divides the query's energy among the turns by their time. */
static void split_by_time(struct query_trace *trace)
{
    double all_s = SUM(wall_clock_s);
    bool by_gpu = is_known(trace->query_gpu_energy_joules) && isnan(SUM_KNOWN(gpu_energy_joules));
    bool by_cpu = is_known(trace->query_cpu_energy_joules) && isnan(SUM_KNOWN(cpu_energy_joules));
    if (!(all_s > 0) || (!by_gpu && !by_cpu))
        return;
    trace->ipw.energy_split = "wall_clock_share";
    for (size_t i = 0; i < trace->turn_count; i++) {
        struct turn_trace *turn = &trace->turns[i];
        double part = turn->wall_clock_s / all_s;
        if (by_gpu)
            turn->gpu_energy_joules = part * trace->query_gpu_energy_joules;
        if (by_cpu)
            turn->cpu_energy_joules = part * trace->query_cpu_energy_joules;
    }
}

static double sum_known(double a, double b)
{
    double sum = a;
    add_known(&sum, b);
    return sum;
}

void query_trace_compute(struct query_trace *trace)
{
    double tools = 0, gpu = query_trace_gpu_joules(trace);
    for (size_t i = 0; i < trace->turn_count; i++)
        tools += (double)trace->turns[i].tool_count;
    trace->num_turns = (double)trace->turn_count;
    trace->total_input_tokens = SUM(input_tokens);
    trace->total_output_tokens = SUM(output_tokens);
    trace->total_tokens = trace->total_input_tokens + trace->total_output_tokens;
    trace->tool_call_count = trace->total_tool_calls = tools;
    double output = trace->total_output_tokens, wall = trace->total_wall_clock_s;
    trace->throughput_tokens_per_sec = output > 0 && wall > 0 ? output / wall : UNKNOWN;
    trace->energy_per_output_token_joules = output > 0 && gpu > 0 ? gpu / output : UNKNOWN;
    trace->total_task_gpu_energy_joules = sum_known(gpu, trace->judge_gpu_energy_joules);
    trace->total_task_cpu_energy_joules =
        sum_known(query_trace_cpu_joules(trace), trace->judge_cpu_energy_joules);
    if (trace->turn_count)
        trace->total_cost_usd = SUM_KNOWN(cost_usd);
    split_by_time(trace);
}

/* ---- writing and reading ---- */

void query_trace_to_json(const struct query_trace *trace, struct text *line)
{
    struct json json;
    text_clear(line);
    json_init(&json, line, false);
    json_fields_write_object(&json, NULL, TRACE_FIELDS, trace);
}

/* Requires only a name, a workload type, and the number of each turn. */
static enum err check_trace(struct query_trace *trace)
{
    if (!trace->query_id || !trace->workload_type)
        return ERR_BAD_VALUE;
    for (size_t i = 0; i < trace->turn_count; i++) {
        struct turn_trace *turn = &trace->turns[i];
        turn->tool_count = jv_count(turn->tools_called.value);
        if (!is_known(turn->turn_index))
            return ERR_BAD_VALUE;
    }
    for (size_t i = 0; i < trace->span_count; i++) {
        const struct span_trace *span = &trace->spans[i];
        bool is_root = i == 0 && !is_known(span->parent);
        if (!span->type || !(span->to_s >= span->from_s) ||
            !(is_root || (span->parent >= 0 && span->parent < (double)i)))
            return ERR_BAD_VALUE;
    }
    return ERR_OK;
}

static enum err read_trace(const struct jv *value, struct query_trace *out)
{
    query_trace_init(out);
    out->workload_type = NULL;
    json_fields_read(value, TRACE_FIELDS, out);
    return check_trace(out);
}

/* ---- by key ---- */

/* The slot of a key, or the free slot for it. */
static size_t *find_slot(const struct traces *traces, const char *key)
{
    size_t mask = traces->slot_count - 1, at = hash_mix(hash_string(HASH_START, key)) & mask;
    while (traces->slots[at] && !str_equal(traces->items[traces->slots[at] - 1].ipw.key, key))
        at = (at + 1) & mask;
    return &traces->slots[at];
}

struct query_trace *traces_find(const struct traces *traces, const char *key)
{
    size_t place = key && traces->slot_count ? *find_slot(traces, key) : 0;
    return place ? &traces->items[place - 1] : NULL;
}

/* Keeps the table at most half full. */
static void reserve_slot(struct traces *traces)
{
    if (2 * (traces->count + 1) <= traces->slot_count)
        return;
    size_t wanted = traces->slot_count ? 2 * traces->slot_count : 64;
    size_t *slots = xcalloc(wanted, sizeof *slots);
    free(traces->slots);
    traces->slots = slots;
    traces->slot_count = wanted;
    for (size_t i = 0; i < traces->count; i++)
        if (traces->items[i].ipw.key)
            *find_slot(traces, traces->items[i].ipw.key) = i + 1;
}

/* Replaces one with the same key. */
static void add_trace(struct traces *traces, const struct query_trace *trace)
{
    struct query_trace *known = traces_find(traces, trace->ipw.key);
    if (known) {
        query_trace_release(known);
        *known = *trace;
        return;
    }
    reserve_slot(traces);
    *XADD(traces->items, traces->count, traces->capacity) = *trace;
    if (trace->ipw.key)
        *find_slot(traces, trace->ipw.key) = traces->count;
}

static enum err take_line(void *context, const struct jv *line)
{
    struct traces *traces = context;
    struct query_trace trace = {0};
    struct jv *tree = jv_copy(line); /* its strings point into the tree */
    enum err err = read_trace(tree, &trace);
    trace.tree = tree;
    if (err) {
        query_trace_release(&trace);
        traces->damaged++;
        return ERR_OK;
    }
    query_trace_compute(&trace);
    add_trace(traces, &trace);
    return ERR_OK;
}

bool traces_exist(const char *directory)
{
    char *path = run_path_file(directory, RUN_FILE_TRACES);
    bool found = run_has_file(path);
    free(path);
    return found;
}

enum err traces_load(const char *directory, struct traces *out, struct error *why)
{
    char *path = run_path_file(directory, RUN_FILE_TRACES);
    uint64_t damaged = 0;
    *out = (struct traces){0};
    enum err err = journal_read(path, take_line, out, &damaged, why);
    free(path);
    out->damaged += damaged;
    if (err)
        traces_release(out);
    return err;
}

void traces_release(struct traces *traces)
{
    for (size_t i = 0; i < traces->count; i++)
        query_trace_release(&traces->items[i]);
    free(traces->items);
    free(traces->slots);
    *traces = (struct traces){0};
}
