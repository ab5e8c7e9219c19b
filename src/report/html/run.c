#include "report/html/run.h"

#include <math.h>

#include "analysis/across.h"
#include "analysis/columns.h"
#include "rundir/run_table.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/html/excerpts.h"
#include "report/html/files.h"
#include "report/html/headline.h"
#include "report/html/histogram.h"
#include "report/html/predicted.h"
#include "report/html/queries.h"
#include "report/html/reproduce.h"
#include "report/html/results.h"
#include "report/html/shares.h"
#include "report/html/spans.h"
#include "report/html/timeline.h"
#include "analysis/run_figures.h"

/* Of 100000 queries that a page lists, 250 at least have their texts: some 400 kB. */
enum { LISTED_BY_TEXT = 400 };

static void put_notes(struct json *json, const struct run_table *table, const struct spans *spans)
{
    char text[160];
    json_array(json, "notes");
    for (size_t i = 0; i < table->note_count; i++)
        json_string(json, NULL, table->notes[i].text);
    if (!table->summary && !table->damaged_summary)
        json_string(json, NULL,
                    "there is no summary.json: the run was not finished, or is still going on");
    if (spans->damaged) {
        str_format(text, sizeof text, "%llu lines of spans.jsonl are damaged and left out",
                   (unsigned long long)spans->damaged);
        json_string(json, NULL, text);
    }
    json_array_end(json);
}

static enum err put_summary(struct json *json, const struct run_table *table)
{
    struct text summary = {0};
    enum err err = ERR_OK;
    if (table->summary)
        err = jv_print(table->summary, &summary);
    json_raw(json, "summary", table->summary && !err ? text_get(&summary) : "null");
    text_release(&summary);
    return err;
}

static enum err put_facts(struct json *json, const struct run_table *table, const char *page,
                          const struct spans *spans)
{
    json_string(json, "directory", table->directory);
    json_string(json, "model", table->model);
    json_string(json, "hardware", run_fact_text(table, "hardware_label"));
    json_string(json, "dataset", run_fact_text(table, "dataset_name"));
    json_integer(json, "rows", (int64_t)table->rows);
    json_integer(json, "failed", (int64_t)table->failed);
    json_bool(json, "ours", table->ours);
    put_notes(json, table, spans);
    command_put(json, table->summary);
    files_put(json, table->directory, page);
    return put_summary(json, table);
}

/* Of 95 %, as `ipw plot` draws them where runs stand together. */
static enum err put_intervals(struct json *json, const struct run_table *table)
{
    struct run_figures run;
    enum err err = run_figures_of(table, &run);
    if (err)
        return err;
    json_object(json, "intervals");
    put_interval(json, "accuracy", run.accuracy_low, run.accuracy_high);
    put_interval(json, "joules_per_query",
                 fmax(0, run.point.joules_per_query - run.joules_per_query_error),
                 run.point.joules_per_query + run.joules_per_query_error);
    json_object_end(json);
    return ERR_OK;
}

static enum err put_all(struct json *json, const struct run_table *table, const char *page,
                        size_t most_listed, const struct results *results,
                        const struct spans *spans, struct error *why)
{
    json_object(json, NULL);
    enum err err = put_facts(json, table, page, spans);
    headline_put(json, table, results);
    if (!err)
        err = put_intervals(json, table);
    predicted_put(json, table->directory);
    shares_put(json, table);
    if (!err)
        err = results_put(json, results);
    if (err)
        err_set(why, err, "%s", err_text(err));
    if (!err)
        err = histograms_put(json, table, why);
    if (!err)
        err = timeline_put(json, table, spans, why);
    if (!err)
        err = queries_put(json, table, spans, most_listed, why);
    excerpts_put(json, table, most_listed);
    json_object_end(json);
    return err;
}

enum err run_put(struct json *json, const char *directory, const char *model, const char *page,
                 size_t most_listed, struct run_point *point, struct error *why)
{
    struct run_wanted wanted = results_need();
    struct run_table table;
    struct results results = {0};
    struct spans spans = {0};
    char path[1200];
    wanted.numbers |= RUN_FIGURES_NEEDS;
    wanted.numbers |= QUERIES_NEED;
    wanted.numbers |= HISTOGRAMS_NEED;
    wanted.words |= RUN_WANT(RUN_SUBJECT);
    enum err err =
        run_table_load_texts(directory, model, wanted, most_listed / LISTED_BY_TEXT, &table, why);
    if (err)
        return err;
    str_format(path, sizeof path, "%s/spans.jsonl", directory);
    err = spans_read(path, &table, &spans, why);
    if (err == ERR_NOT_FOUND)
        err = ERR_OK; /* a run of the Python IPW has none */
    if (!err)
        err = results_of(&table, &results, why);
    if (!err)
        err = put_all(json, &table, page, most_listed, &results, &spans, why);
    run_point_of(&table, point);
    results_release(&results);
    spans_release(&spans);
    run_table_release(&table);
    return err;
}
