/* Exports of traces: the figures of the Python IPW's exporter for summary.json, and its dataset. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/run_path.h"
#include "rundir/store.h"
#include "rundir/traces.h"
#include "stats/descriptive.h"

/* ---- figures of a query ---- */

/* In the order of the exporter's statistics. */
enum {
    WALL_CLOCK,
    GPU_JOULES,
    CPU_JOULES,
    GPU_WATTS,
    CPU_WATTS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    TOTAL_TOKENS,
    THROUGHPUT,
    JOULES_PER_TOKEN,
    COST,
    TURNS,
    TOOL_CALLS,
    MBU,
    FIGURE_COUNT
};

/* A member of the trace, or a function. */
static const struct figure {
    const char *key;
    size_t offset;
    double (*of)(const struct query_trace *trace); /* NULL: the member */
    bool is_count; /* a sum without the unknown ones is not a total */
} FIGURES[] = {
#define MEMBER(member) .offset = offsetof(struct query_trace, member)
    [WALL_CLOCK] = {"wall_clock_s", MEMBER(total_wall_clock_s)},
    [GPU_JOULES] = {"gpu_energy_joules", .of = query_trace_gpu_joules},
    [CPU_JOULES] = {"cpu_energy_joules", .of = query_trace_cpu_joules},
    [GPU_WATTS] = {"gpu_power_watts", .of = query_trace_gpu_watts},
    [CPU_WATTS] = {"cpu_power_watts", .of = query_trace_cpu_watts},
    [INPUT_TOKENS] = {"input_tokens", MEMBER(total_input_tokens), .is_count = true},
    [OUTPUT_TOKENS] = {"output_tokens", MEMBER(total_output_tokens), .is_count = true},
    [TOTAL_TOKENS] = {"total_tokens", MEMBER(total_tokens), .is_count = true},
    [THROUGHPUT] = {"throughput_tokens_per_sec", MEMBER(throughput_tokens_per_sec)},
    [JOULES_PER_TOKEN] = {"energy_per_token_joules", MEMBER(energy_per_output_token_joules)},
    [COST] = {"cost_usd", MEMBER(total_cost_usd)},
    [TURNS] = {"turns", MEMBER(num_turns), .is_count = true},
    [TOOL_CALLS] = {"tool_calls", MEMBER(total_tool_calls), .is_count = true},
    [MBU] = {"mbu_avg_pct", MEMBER(query_mbu_avg_pct)},
};

static double value_of(const struct query_trace *trace, const struct figure *figure)
{
    const void *member = (const char *)trace + figure->offset;
    return figure->of ? figure->of(trace) : *(const double *)member;
}

/* A selection of traces, by pointer: all, or those that are not outliers. */
struct selection {
    const struct query_trace **items;
    size_t count;
};

/* Sum of the known values, UNKNOWN if there are none; of a count, UNKNOWN if one is unknown. */
static double sum_of(const struct selection *some, int figure)
{
    bool is_count = FIGURES[figure].is_count;
    double sum = is_count && some->count ? 0 : UNKNOWN;
    for (size_t i = 0; i < some->count; i++) {
        double value = value_of(some->items[i], &FIGURES[figure]);
        if (is_count)
            sum += value;
        else
            add_known(&sum, value);
    }
    return sum;
}

static double figure_mean(const struct selection *some, int figure)
{
    struct online stats = {0};
    for (size_t i = 0; i < some->count; i++)
        online_add(&stats, value_of(some->items[i], &FIGURES[figure]));
    return online_mean(&stats);
}

/* ---- summary.json ---- */

struct tally {
    int64_t completed, resolved, unresolved;
    double accuracy;
};

static struct tally tally_of(const struct selection *some)
{
    struct tally tally = {0};
    for (size_t i = 0; i < some->count; i++) {
        tally.completed += some->items[i]->completed == 1;
        tally.resolved += some->items[i]->is_resolved == 1;
        tally.unresolved += some->items[i]->is_resolved == 0;
    }
    tally.accuracy = ratio((double)tally.resolved, (double)(tally.resolved + tally.unresolved));
    return tally;
}

static void put_totals(struct json *json, const struct selection *all)
{
    static const int TOTALS[] = {TURNS,      TOOL_CALLS, INPUT_TOKENS, OUTPUT_TOKENS, TOTAL_TOKENS,
                                 WALL_CLOCK, GPU_JOULES, CPU_JOULES,   COST};
    struct tally tally = tally_of(all);
    json_object(json, "totals");
    json_integer(json, "queries", (int64_t)all->count);
    json_integer(json, "completed", tally.completed);
    json_integer(json, "resolved", tally.resolved);
    json_integer(json, "unresolved", tally.unresolved);
    for (size_t i = 0; i < COUNT_OF(TOTALS); i++)
        json_number(json, FIGURES[TOTALS[i]].key, sum_of(all, TOTALS[i]));
    json_number(json, "accuracy", tally.accuracy);
    json_object_end(json);
}

/* ipj and ipw as defined by the exporter, which differ from ours: docs/metrics.md. */
static void put_efficiency(struct json *json, const struct selection *some)
{
    double accuracy = tally_of(some).accuracy;
    double joules = sum_of(some, GPU_JOULES);
    double watts = figure_mean(some, GPU_WATTS);
    json_number(json, "accuracy", accuracy);
    json_number(json, "total_gpu_energy_joules", joules);
    json_number(json, "total_cpu_energy_joules", sum_of(some, CPU_JOULES));
    json_number(json, "avg_gpu_power_watts", watts);
    json_number(json, "avg_cpu_power_watts", figure_mean(some, CPU_WATTS));
    json_number(json, "ipj", ratio(accuracy, joules));
    json_number(json, "ipw", ratio(accuracy, watts));
}

static void put_averages(struct json *json, const struct selection *all)
{
    json_object(json, "averages");
    json_number(json, "turns_per_query", figure_mean(all, TURNS));
    json_number(json, "wall_clock_per_query_s", figure_mean(all, WALL_CLOCK));
    json_number(json, "gpu_energy_per_query_joules", figure_mean(all, GPU_JOULES));
    json_object_end(json);
}

/* The standard deviation of one value is 0 there. */
static void put_statistic(struct json *json, const struct figure *figure,
                          const struct selection *some, double *values)
{
    struct online stats = {0};
    for (size_t i = 0; i < some->count; i++) {
        values[i] = value_of(some->items[i], figure);
        online_add(&stats, values[i]);
    }
    json_object(json, figure->key);
    json_number(json, "avg", online_mean(&stats));
    json_number(json, "median", quantile(values, some->count, 0.5));
    json_number(json, "min", online_min(&stats));
    json_number(json, "max", online_max(&stats));
    json_number(json, "std", stats.count == 1 ? 0 : online_stddev(&stats));
    json_object_end(json);
}

static void put_statistics(struct json *json, const struct selection *some)
{
    double *values = xcalloc(some->count + 1, sizeof *values);
    for (size_t i = 0; i < FIGURE_COUNT; i++)
        put_statistic(json, &FIGURES[i], some, values);
    free(values);
}

static int by_wall_clock(const void *a, const void *b)
{
    double x = (*(const struct query_trace *const *)a)->total_wall_clock_s;
    double y = (*(const struct query_trace *const *)b)->total_wall_clock_s;
    return (x > y) - (x < y);
}

/* Drops 5 % at each end by wall clock, at least one query; everything if there are fewer than four. */
static size_t drop_outliers(struct selection *some)
{
    size_t before = some->count, drop = before / 20 > 1 ? before / 20 : 1;
    if (before < 4)
        return 0;
    qsort(some->items, some->count, sizeof *some->items, by_wall_clock);
    memmove(some->items, some->items + drop, (before - 2 * drop) * sizeof *some->items);
    some->count = before - 2 * drop;
    return before;
}

static void put_outliers(struct json *json, size_t before, size_t after)
{
    json_string(json, "_description",
                "without the slowest and the fastest 5 % of the queries by wall-clock time");
    json_object(json, "_outliers_removed");
    json_integer(json, "top_pct", 5);
    json_integer(json, "bottom_pct", 5);
    json_integer(json, "queries_before", (int64_t)before);
    json_integer(json, "queries_after", (int64_t)after);
    json_object_end(json);
}

static void put_normalized(struct json *json, struct selection *some)
{
    size_t before = drop_outliers(some);
    if (!before) {
        json_null(json, "normalized_statistics");
        json_null(json, "normalized_efficiency");
        return;
    }
    json_object(json, "normalized_statistics");
    put_statistics(json, some);
    put_outliers(json, before, some->count);
    json_object_end(json);
    json_object(json, "normalized_efficiency");
    put_efficiency(json, some);
    put_outliers(json, before, some->count);
    json_object_end(json);
}

/* Ours: problems of the events of all queries. */
static void put_events(struct json *json, const struct selection *all, uint64_t missing)
{
    static const struct {
        const char *key;
        size_t offset;
    } COUNTS[] = {
#define COUNT(type, member) {#member, offsetof(struct query_trace_ours, member)},
        TRACE_EVENT_COUNTS(COUNT)};
    json_object(json, "trace_events");
    for (size_t k = 0; k < COUNT_OF(COUNTS); k++) {
        double sum = UNKNOWN;
        for (size_t i = 0; i < all->count; i++) {
            const void *count = (const char *)&all->items[i]->ipw + COUNTS[k].offset;
            add_known(&sum, *(const double *)count);
        }
        json_number(json, COUNTS[k].key, sum);
    }
    json_integer(json, "queries_without_trace", (int64_t)missing);
    json_object_end(json);
}

void traces_summary_to_json(const struct traces *traces, struct json *json)
{
    struct selection all = {xcalloc(traces->count + 1, sizeof *all.items), traces->count};
    for (size_t i = 0; i < traces->count; i++)
        all.items[i] = &traces->items[i];
    if (!traces->config)
        json_raw(json, "config", "{}");
    else
        jv_to_json(traces->config, "config", json);
    put_totals(json, &all);
    json_object(json, "efficiency");
    put_efficiency(json, &all);
    json_object_end(json);
    put_averages(json, &all);
    json_object(json, "statistics");
    put_statistics(json, &all);
    json_object_end(json);
    put_events(json, &all, traces->missing);
    put_normalized(json, &all); /* drops some of them */
    free((void *)all.items);
}

/* ---- hf_dataset/ ---- */

enum { NO_FIGURE = -1 };

/* In the order of the Python IPW: a key of the trace, or another name of a figure. */
static const struct column {
    const char *name;
    int figure; /* NO_FIGURE: a key of the trace */
} COLUMNS[] = {
#define KEY(member)                                                                                \
    {#member, sizeof(((struct query_trace *)0)->member) ? NO_FIGURE : 0} /* exists */
    KEY(query_id),
    KEY(workload_type),
    KEY(query_text),
    KEY(response_text),
    KEY(num_turns),
    KEY(total_input_tokens),
    KEY(total_output_tokens),
    KEY(total_tool_calls),
    KEY(total_wall_clock_s),
    {"total_gpu_energy_joules", GPU_JOULES},
    {"total_cpu_energy_joules", CPU_JOULES},
    KEY(judge_gpu_energy_joules),
    KEY(judge_cpu_energy_joules),
    KEY(judge_wall_clock_s),
    KEY(total_task_gpu_energy_joules),
    KEY(total_task_cpu_energy_joules),
    KEY(total_tokens),
    KEY(total_cost_usd),
    {"avg_gpu_power_watts", GPU_WATTS},
    {"avg_cpu_power_watts", CPU_WATTS},
    KEY(throughput_tokens_per_sec),
    {"energy_per_token_joules", JOULES_PER_TOKEN},
    KEY(query_mbu_avg_pct),
    KEY(query_mbu_max_pct),
    KEY(completed),
    KEY(timed_out),
    KEY(is_resolved),
    KEY(unscorable_reason),
};
enum { COLUMN_COUNT = COUNT_OF(COLUMNS) };

/* After these columns: JSON as text. */
static const char SCORE_COLUMN[] = "score_metadata_json", TRACE_COLUMN[] = "trace_json";

static enum arrow_type type_of(const struct column *column)
{
    if (column->figure != NO_FIGURE)
        return ARROW_DOUBLE;
    switch (query_trace_field(column->name)->type) {
    case FIELD_NUMBER:
        return ARROW_DOUBLE;
    case FIELD_INTEGRAL:
        return ARROW_INT64;
    case FIELD_BOOL:
        return ARROW_BOOL;
    default:
        return ARROW_TEXT;
    }
}

static struct arrow_field *make_fields(void)
{
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        arrow_field_add(root, COLUMNS[i].name, type_of(&COLUMNS[i]));
    arrow_field_add(root, SCORE_COLUMN, ARROW_TEXT);
    arrow_field_add(root, TRACE_COLUMN, ARROW_TEXT);
    return root;
}

static void put_texts(const struct query_trace *trace, struct jv *row)
{
    struct text line = {0}, score = {0};
    const struct json_any *metadata = &trace->score_metadata;
    query_trace_to_json(trace, &line);
    if (!metadata->value)
        text_add(&score, metadata->text ? metadata->text : "{}");
    else
        jv_print(metadata->value, &score);
    jv_put_text(row, SCORE_COLUMN, text_get(&score));
    jv_put_text(row, TRACE_COLUMN, text_get(&line));
    text_release(&line);
    text_release(&score);
}

static struct jv *make_row(const struct query_trace *trace)
{
    struct jv *row = jv_new_object();
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const struct column *column = &COLUMNS[i];
        if (column->figure != NO_FIGURE)
            jv_put_number(row, column->name, value_of(trace, &FIGURES[column->figure]));
        else
            json_field_put(query_trace_field(column->name), (struct json_base){0}, trace, row);
    }
    put_texts(trace, row);
    return row;
}

static enum err add_row(struct hf_dataset *dataset, const struct query_trace *trace,
                        struct error *why)
{
    struct jv *row = make_row(trace);
    enum err err = hf_dataset_add(dataset, row, why);
    jv_free(row);
    return err;
}

enum err traces_save_dataset(const char *directory, const struct traces *traces, struct error *why)
{
    struct hf_dataset *dataset = NULL;
    char *path = path_join(directory, RUN_TRACE_DATASET);
    enum err err = run_dir_make(path, why);
    if (!err)
        err = hf_dataset_open(path, make_fields(), &dataset, why);
    free(path);
    for (size_t i = 0; !err && i < traces->count; i++)
        err = add_row(dataset, &traces->items[i], why);
    if (!err)
        err = hf_dataset_finish(dataset, why);
    hf_dataset_close(dataset);
    return err;
}

/* ---- the file, at the end of a run ---- */

/* Lines that are not traces would be lost: renames the file that contains them.  False if that fails. */
static bool keep_damaged(const char *directory, uint64_t damaged)
{
    enum { NAMES_MAX = 100 };
    char *path = run_path_file(directory, RUN_FILE_TRACES), *kept = NULL;
    bool is_kept = false, is_taken = true; /* is_taken: the name exists already */
    for (int i = 1; i < NAMES_MAX && is_taken; i++) {
        free(kept);
        kept = i > 1 ? xformat("%s.damaged.%d", path, i) : xformat("%s.damaged", path);
        is_kept = link(path, kept) == 0;
        is_taken = !is_kept && errno == EEXIST;
    }
    log_warn("%llu lines of %s are not traces: %s%s", (unsigned long long)damaged, path,
             is_kept ? "the file with them is now " : "it is unchanged", is_kept ? kept : "");
    free(kept);
    free(path);
    return is_kept;
}

enum err traces_save(const char *directory, const struct traces *traces, struct error *why)
{
    struct text lines = {0}, line = {0};
    if (traces->damaged && !keep_damaged(directory, traces->damaged))
        return ERR_OK;
    for (size_t i = 0; i < traces->count; i++) {
        query_trace_to_json(&traces->items[i], &line);
        text_add(&lines, text_get(&line));
        text_add(&lines, "\n");
    }
    enum err err = run_dir_put(directory, "traces.jsonl", &lines, why);
    text_release(&line);
    text_release(&lines);
    return err;
}
