/* Exports of traces: the figures of the Python IPW's exporter for summary.json, and its dataset. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "port/json_read.h"
#include "rundir/run_dir.h"
#include "rundir/store.h"
#include "rundir/traces.h"
#include "stats/descriptive.h"

/* ---- figures of a query ---- */

#define MEMBER(name, member)                                                                       \
    static double name(const struct query_trace *trace)                                            \
    {                                                                                              \
        return trace->member;                                                                      \
    }
MEMBER(wall_clock_of, total_wall_clock_s)
MEMBER(input_of, total_input_tokens)
MEMBER(output_of, total_output_tokens)
MEMBER(total_of, total_tokens)
MEMBER(throughput_of, throughput_tokens_per_sec)
MEMBER(per_token_of, energy_per_output_token_joules)
MEMBER(cost_of, total_cost_usd)
MEMBER(turns_of, num_turns)
MEMBER(tools_of, total_tool_calls)
MEMBER(mbu_of, query_mbu_avg_pct)

typedef double figure(const struct query_trace *trace);

static const struct statistic {
    const char *key;
    figure *of;
} STATISTICS[] = {
    {"wall_clock_s", wall_clock_of},
    {"gpu_energy_joules", query_trace_gpu_joules},
    {"cpu_energy_joules", query_trace_cpu_joules},
    {"gpu_power_watts", query_trace_gpu_watts},
    {"cpu_power_watts", query_trace_cpu_watts},
    {"input_tokens", input_of},
    {"output_tokens", output_of},
    {"total_tokens", total_of},
    {"throughput_tokens_per_sec", throughput_of},
    {"energy_per_token_joules", per_token_of},
    {"cost_usd", cost_of},
    {"turns", turns_of},
    {"tool_calls", tools_of},
    {"mbu_avg_pct", mbu_of},
};

enum { STATISTIC_COUNT = sizeof STATISTICS / sizeof *STATISTICS };

/* A selection of traces, by pointer: all, or those that are not outliers. */
struct selection {
    const struct query_trace **items;
    size_t count;
};

/* Sum of the known values; UNKNOWN if there are none. */
static double sum_of(const struct selection *some, figure *of)
{
    double sum = UNKNOWN;
    for (size_t i = 0; i < some->count; i++)
        add_known(&sum, of(some->items[i]));
    return sum;
}

/* UNKNOWN if one value is: a partial sum is not a total. */
static double total_of_all(const struct selection *some, figure *of)
{
    double sum = some->count ? 0 : UNKNOWN;
    for (size_t i = 0; i < some->count; i++)
        sum += of(some->items[i]);
    return sum;
}

static double mean_of(const struct selection *some, figure *of)
{
    struct online stats = {0};
    for (size_t i = 0; i < some->count; i++)
        online_add(&stats, of(some->items[i]));
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
    struct tally tally = tally_of(all);
    json_object(json, "totals");
    json_integer(json, "queries", (int64_t)all->count);
    json_integer(json, "completed", tally.completed);
    json_integer(json, "resolved", tally.resolved);
    json_integer(json, "unresolved", tally.unresolved);
    json_number(json, "turns", total_of_all(all, turns_of));
    json_number(json, "tool_calls", total_of_all(all, tools_of));
    json_number(json, "input_tokens", total_of_all(all, input_of));
    json_number(json, "output_tokens", total_of_all(all, output_of));
    json_number(json, "total_tokens", total_of_all(all, total_of));
    json_number(json, "wall_clock_s", sum_of(all, wall_clock_of));
    json_number(json, "gpu_energy_joules", sum_of(all, query_trace_gpu_joules));
    json_number(json, "cpu_energy_joules", sum_of(all, query_trace_cpu_joules));
    json_number(json, "cost_usd", sum_of(all, cost_of));
    json_number(json, "accuracy", tally.accuracy);
    json_object_end(json);
}

/* ipj and ipw as defined by the exporter, which differ from ours: docs/metrics.md. */
static void put_efficiency(struct json *json, const struct selection *some)
{
    double accuracy = tally_of(some).accuracy, joules = sum_of(some, query_trace_gpu_joules),
           watts = mean_of(some, query_trace_gpu_watts);
    json_number(json, "accuracy", accuracy);
    json_number(json, "total_gpu_energy_joules", joules);
    json_number(json, "total_cpu_energy_joules", sum_of(some, query_trace_cpu_joules));
    json_number(json, "avg_gpu_power_watts", watts);
    json_number(json, "avg_cpu_power_watts", mean_of(some, query_trace_cpu_watts));
    json_number(json, "ipj", ratio(accuracy, joules));
    json_number(json, "ipw", ratio(accuracy, watts));
}

static void put_averages(struct json *json, const struct selection *all)
{
    json_object(json, "averages");
    json_number(json, "turns_per_query", mean_of(all, turns_of));
    json_number(json, "wall_clock_per_query_s", mean_of(all, wall_clock_of));
    json_number(json, "gpu_energy_per_query_joules", mean_of(all, query_trace_gpu_joules));
    json_object_end(json);
}

/* The standard deviation of one value is 0 there. */
static void put_statistic(struct json *json, const struct statistic *row,
                          const struct selection *some, double *values)
{
    struct online stats = {0};
    for (size_t i = 0; i < some->count; i++) {
        values[i] = row->of(some->items[i]);
        online_add(&stats, values[i]);
    }
    json_object(json, row->key);
    json_number(json, "avg", online_mean(&stats));
    json_number(json, "median", quantile(values, some->count, 0.5));
    json_number(json, "min", online_min(&stats));
    json_number(json, "max", online_max(&stats));
    json_number(json, "std", stats.count == 1 ? 0 : online_stddev(&stats));
    json_object_end(json);
}

static void put_statistics(struct json *json, const struct selection *some)
{
    double *values = calloc(some->count + 1, sizeof *values);
    for (size_t i = 0; values && i < STATISTIC_COUNT; i++)
        put_statistic(json, &STATISTICS[i], some, values);
    json->out->failed = json->out->failed || !values;
    free(values);
}

static int by_wall_clock(const void *a, const void *b)
{
    double x = (*(const struct query_trace *const *)a)->total_wall_clock_s,
           y = (*(const struct query_trace *const *)b)->total_wall_clock_s;
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
    for (size_t k = 0; k < sizeof COUNTS / sizeof *COUNTS; k++) {
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
    struct selection all = {calloc(traces->count + 1, sizeof *all.items), traces->count};
    if (!all.items) {
        json->out->failed = true;
        return;
    }
    for (size_t i = 0; i < traces->count; i++)
        all.items[i] = &traces->items[i];
    if (!traces->config)
        json_raw(json, "config", "{}");
    else if (jv_to_json(traces->config, "config", json))
        json->out->failed = true;
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

static const struct {
    const char *name;
    enum arrow_type type;
} COLUMNS[] = {
    {"query_id", ARROW_TEXT},
    {"workload_type", ARROW_TEXT},
    {"query_text", ARROW_TEXT},
    {"response_text", ARROW_TEXT},
    {"num_turns", ARROW_INT64},
    {"total_input_tokens", ARROW_INT64},
    {"total_output_tokens", ARROW_INT64},
    {"total_tool_calls", ARROW_INT64},
    {"total_wall_clock_s", ARROW_DOUBLE},
    {"total_gpu_energy_joules", ARROW_DOUBLE},
    {"total_cpu_energy_joules", ARROW_DOUBLE},
    {"judge_gpu_energy_joules", ARROW_DOUBLE},
    {"judge_cpu_energy_joules", ARROW_DOUBLE},
    {"judge_wall_clock_s", ARROW_DOUBLE},
    {"total_task_gpu_energy_joules", ARROW_DOUBLE},
    {"total_task_cpu_energy_joules", ARROW_DOUBLE},
    {"total_tokens", ARROW_INT64},
    {"total_cost_usd", ARROW_DOUBLE},
    {"avg_gpu_power_watts", ARROW_DOUBLE},
    {"avg_cpu_power_watts", ARROW_DOUBLE},
    {"throughput_tokens_per_sec", ARROW_DOUBLE},
    {"energy_per_token_joules", ARROW_DOUBLE},
    {"query_mbu_avg_pct", ARROW_DOUBLE},
    {"query_mbu_max_pct", ARROW_DOUBLE},
    {"completed", ARROW_BOOL},
    {"timed_out", ARROW_BOOL},
    {"is_resolved", ARROW_BOOL},
    {"unscorable_reason", ARROW_TEXT},
    {"score_metadata_json", ARROW_TEXT},
    {"trace_json", ARROW_TEXT},
};

static struct arrow_field *make_fields(void)
{
    struct arrow_field *root = arrow_field_add(NULL, "", ARROW_STRUCT);
    bool fine = root;
    for (size_t i = 0; fine && i < sizeof COLUMNS / sizeof *COLUMNS; i++)
        fine = arrow_field_add(root, COLUMNS[i].name, COLUMNS[i].type);
    if (fine)
        return root;
    arrow_field_free(root);
    return NULL;
}

static enum err put_texts(const struct query_trace *trace, struct jv *row)
{
    struct text line = {0}, score = {0};
    const struct json_any *metadata = &trace->score_metadata;
    query_trace_to_json(trace, &line);
    if (!metadata->value)
        text_add(&score, metadata->text ? metadata->text : "{}");
    else if (jv_print(metadata->value, &score))
        score.failed = true;
    enum err err = line.failed || score.failed ? ERR_NO_MEMORY : ERR_OK;
    if (!err)
        err = jv_put_text(row, "score_metadata_json", text_get(&score));
    if (!err)
        err = jv_put_text(row, "trace_json", text_get(&line));
    text_release(&line);
    text_release(&score);
    return err;
}

/* The trace has most of the columns under the same names; the others are added. */
static enum err make_row(const struct query_trace *trace, struct jv **row)
{
    const struct {
        const char *column;
        double value;
    } FIGURES[] = {
        {"total_gpu_energy_joules", query_trace_gpu_joules(trace)},
        {"total_cpu_energy_joules", query_trace_cpu_joules(trace)},
        {"avg_gpu_power_watts", query_trace_gpu_watts(trace)},
        {"avg_cpu_power_watts", query_trace_cpu_watts(trace)},
        {"energy_per_token_joules", trace->energy_per_output_token_joules},
    };
    *row = jv_new_object();
    enum err err = *row ? ERR_OK : ERR_NO_MEMORY;
    if (!err)
        err = query_trace_to_tree(trace, *row);
    for (size_t i = 0; !err && i < sizeof FIGURES / sizeof *FIGURES; i++)
        err = jv_put_number(*row, FIGURES[i].column, FIGURES[i].value);
    return err ? err : put_texts(trace, *row);
}

static enum err add_row(struct hf_dataset *dataset, const struct query_trace *trace,
                        struct error *why)
{
    struct jv *row = NULL;
    enum err err = make_row(trace, &row) ? err_no_memory(why) : hf_dataset_add(dataset, row, why);
    jv_free(row);
    return err;
}

enum err traces_save_dataset(const char *directory, const struct traces *traces, struct error *why)
{
    struct hf_dataset *dataset = NULL;
    char path[600];
    enum err err = hf_dataset_available(why);
    if (!err && !str_format(path, sizeof path, "%s/" RUN_TRACE_DATASET, directory))
        err = err_set(why, ERR_BAD_VALUE, "path too long: %.100s...", directory);
    if (!err)
        err = run_dir_make(path, why);
    if (!err)
        err = hf_dataset_open(path, make_fields(), &dataset, why);
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
    char path[600], kept[640];
    bool is_kept = false, is_taken = true; /* is_taken: the name exists already */
    if (!str_format(path, sizeof path, "%s/traces.jsonl", directory))
        return false;
    for (int i = 1; i < NAMES_MAX && is_taken; i++) {
        str_format(kept, sizeof kept, "%s.damaged", path);
        if (i > 1)
            str_format(kept, sizeof kept, "%s.damaged.%d", path, i);
        is_kept = link(path, kept) == 0;
        is_taken = !is_kept && errno == EEXIST;
    }
    log_warn("%llu lines of %s are not traces: %s%s", (unsigned long long)damaged, path,
             is_kept ? "the file with them is now " : "it is unchanged", is_kept ? kept : "");
    return is_kept;
}

enum err traces_save(const char *directory, const struct traces *traces, struct error *why)
{
    struct text lines = {0}, line = {0};
    if (traces->damaged && !keep_damaged(directory, traces->damaged))
        return ERR_OK;
    for (size_t i = 0; i < traces->count; i++) {
        query_trace_to_json(&traces->items[i], &line);
        lines.failed = lines.failed || line.failed;
        text_add(&lines, text_get(&line));
        text_add(&lines, "\n");
    }
    enum err err = run_dir_put(directory, "traces.jsonl", &lines, why);
    text_release(&line);
    text_release(&lines);
    return err;
}
