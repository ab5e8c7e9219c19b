/* API functions about runs.  Those that need the rows of the table run in the worker that owns it, those that read the
 * files of a run in the other (routes.def). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/across.h"
#include "analysis/analysis.h"
#include "analysis/compare_set.h"
#include "core/arena.h"
#include "core/json.h"
#include "core/result.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/print/print.h"
#include "report/export/export.h"
#include "report/html/html.h"
#include "report/text/compare_report.h"
#include "rundir/journal.h"
#include "rundir/run_dir.h"
#include "rundir/summary.h"
#include "rundir/sweep.h"
#include "serve/api.h"

enum {
    RECORDS_DEFAULT = 100,
    RECORDS_MAX = 1000,
    COMPARED_MAX = 8,
    SWEEPS_MAX = 100,
    CONCLUDED_MAX = 20
};
#define DOWNLOAD_MAX ((size_t)256 << 20)

#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "   \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts "          \
    "allow-downloads allow-popups"

/* ---- lists ---- */

enum err api_runs(const struct api *api, const struct request *request, struct api_response *answer,
                  struct error *why)
{
    struct json json;
    enum err err = runs_refresh(api->runs, why);
    response_object(answer, &json);
    if (!err)
        err = runs_page(api->runs, request, &json, why);
    json_object_end(&json);
    return err;
}

/* ---- the Pareto frontier ---- */

/* A figure of the table that can be better or worse. */
struct axis {
    enum run_column column;
    const struct summary_field *figure;
};

static enum err find_axis(const struct request *request, const char *name, const char *usual,
                          struct axis *out, struct error *why)
{
    const char *given = request_param(request, name);
    for (size_t i = 0; i < ROW_COLUMNS; i++) {
        const struct summary_field *figure = run_row_figure((enum run_column)i);
        if (figure && figure->better != BETTER_NEITHER &&
            str_equal(ROW_COLUMN[i].name, given ? given : usual)) {
            *out = (struct axis){(enum run_column)i, figure};
            return ERR_OK;
        }
    }
    return err_set(why, ERR_USAGE, "%s: unknown figure '%.60s'", name, given);
}

static enum err find_group(const struct request *request, enum run_column *out, struct error *why)
{
    static const enum run_column GROUPS[] = {ROW_HARDWARE, ROW_MODEL,  ROW_PRECISION,
                                             ROW_DATASET,  ROW_CLIENT, ROW_KIND};
    const char *given = request_param(request, "group");
    *out = ROW_HARDWARE;
    for (size_t i = 0; i < COUNT_OF(GROUPS); i++)
        if (!given || str_equal(ROW_COLUMN[GROUPS[i]].name, given)) {
            *out = GROUPS[i];
            return ERR_OK;
        }
    return err_set(why, ERR_USAGE, "group: hardware, model, precision, dataset, client or kind");
}

static struct front_axis front_axis_of(const struct axis *axis)
{
    return (struct front_axis){.key = ROW_COLUMN[axis->column].name,
                               .label = axis->figure->label,
                               .unit = axis->figure->unit,
                               .is_low_better = axis->figure->better == BETTER_LOWER};
}

static double value_on(const struct axis *axis, const struct run_row *row)
{
    return run_row_number(row, axis->column);
}

/* The relative error of an energy is that of the run's. */
static double error_on(const struct axis *axis, const struct run_row *row)
{
    bool is_energy = str_equal(axis->figure->unit, "J");
    double energy = run_row_number(row, ROW_ENERGY), error = run_row_number(row, ROW_PLUS_MINUS);
    return is_energy && energy > 0 ? value_on(axis, row) * error / energy : UNKNOWN;
}

struct front {
    struct axis x, y;
    enum run_column group;
    struct front_point *points;
    size_t count, capacity;
    struct arena texts; /* of the points */
    int64_t left_out;
};

static const char *keep_text(struct front *front, const char *text)
{
    return text ? arena_string(&front->texts, text, strlen(text)) : NULL;
}

static void take_point(void *context, const struct run_row *row)
{
    struct front *front = context;
    double x = value_on(&front->x, row), y = value_on(&front->y, row);
    if (!is_known(x) || !is_known(y)) {
        front->left_out++;
        return;
    }
    *XADD(front->points, front->count, front->capacity) =
        (struct front_point){.id = keep_text(front, row->id),
                             .name = keep_text(front, run_row_text(row, ROW_NAME)),
                             .group = keep_text(front, run_row_text(row, front->group)),
                             .method = keep_text(front, run_row_text(row, ROW_METHOD)),
                             .x = x,
                             .x_error = error_on(&front->x, row),
                             .y = y,
                             .y_error = error_on(&front->y, row)};
}

static void front_response(const struct front *front, struct api_response *answer)
{
    struct front_axis x = front_axis_of(&front->x), y = front_axis_of(&front->y);
    struct result result = {0};
    result_begin(&result, "pareto");
    front_to_result(&x, &y, front->points, front->count, &result);
    result_integer(&result, "left_out", front->left_out);
    result_end(&result);
    response_result(answer, &result);
}

enum err api_pareto(const struct api *api, const struct request *request,
                    struct api_response *answer, struct error *why)
{
    struct front front = {0};
    struct run_query query = {.sort = ROW_CREATED, .is_descending = true};
    enum err err = find_axis(request, "x", "j_per_query", &front.x, why);
    if (!err)
        err = find_axis(request, "y", "accuracy", &front.y, why);
    if (!err)
        err = find_group(request, &front.group, why);
    if (!err)
        err = runs_refresh(api->runs, why);
    const enum run_column columns[] = {ROW_NAME,       ROW_METHOD,     ROW_ENERGY, ROW_PLUS_MINUS,
                                       front.x.column, front.y.column, front.group};
    query.columns = columns;
    query.column_count = COUNT_OF(columns);
    runs_filter(request, &query);
    if (!err)
        err = runs_select(api->runs, &query, take_point, &front, why);
    if (!err)
        front_response(&front, answer);
    free(front.points);
    arena_release(&front.texts);
    return err;
}

/* ---- one run ---- */

/* The caller frees the directory; NULL after an error. */
static enum err find_run(const struct api *api, const struct request *request, char **directory,
                         struct error *why)
{
    return runs_directory(api->runs, request->ids[0], directory, why);
}

static void put_summary(const char *directory, struct json *json)
{
    struct summary summary;
    bool is_there = summary_load(directory, &summary, NULL) == ERR_OK;
    jv_to_json(is_there ? summary.tree : NULL, "summary", json);
    if (is_there)
        summary_release(&summary);
}

static void put_url(struct json *json, const char *id, const char *name)
{
    struct text url = {0};
    text_add(&url, "/api/v1/runs/");
    request_encode(&url, id);
    text_add(&url, "/files/");
    request_encode(&url, name);
    json_string(json, "url", text_get(&url));
    text_release(&url);
}

struct listed_files {
    struct json *json;
    const char *id;
};

static void put_file(void *context, const char *name, int64_t bytes)
{
    const struct listed_files *files = context;
    json_object(files->json, NULL);
    json_string(files->json, "name", name);
    json_integer(files->json, "bytes", bytes);
    put_url(files->json, files->id, name);
    json_object_end(files->json);
}

static void put_files(struct json *json, const char *directory, const char *id)
{
    json_array(json, "files");
    run_dir_list(directory, RUN_DIR_MEASURED, put_file, &(struct listed_files){json, id});
    json_array_end(json);
}

enum err api_run(const struct api *api, const struct request *request, struct api_response *answer,
                 struct error *why)
{
    struct json json;
    char *directory;
    enum err err = runs_refresh(api->runs, why);
    if (!err)
        err = find_run(api, request, &directory, why);
    if (err)
        return err;
    response_object(answer, &json);
    err = runs_put(api->runs, request->ids[0], directory, &json, why);
    if (!err)
        put_summary(directory, &json);
    put_files(&json, directory, request->ids[0]);
    json_object_end(&json);
    free(directory);
    return err;
}

/* The HTML report of a run; its links are omitted, since they would be dead here. */
static enum err report_of(const struct api *api, const struct request *request, bool is_page,
                          struct api_response *answer, struct error *why)
{
    char title[HTML_TITLE_MAX], *directory;
    enum err err = find_run(api, request, &directory, why);
    if (err)
        return err;
    const char *input = directory;
    char *page = path_join(directory, RUN_REPORT);
    const struct html_report report = {.inputs = &input, .count = 1, .page = page};
    err = is_page ? html_write(&report, &answer->body, why)
                  : html_data(&report, title, sizeof title, &answer->body, why);
    free(page);
    free(directory);
    return err;
}

enum err api_report(const struct api *api, const struct request *request,
                    struct api_response *answer, struct error *why)
{
    answer->type = "application/json";
    return report_of(api, request, false, answer, why);
}

enum err api_page(const struct api *api, const struct request *request, struct api_response *answer,
                  struct error *why)
{
    answer->type = "text/html; charset=utf-8";
    answer->policy = PAGE_POLICY;
    return report_of(api, request, true, answer, why);
}

/* ---- records ---- */

struct records_page {
    struct json *json;
    uint64_t from, at;
    unsigned limit;
    bool has_more;
};

static enum err take_record(void *context, const struct jv *value)
{
    struct records_page *page = context;
    if (page->at++ < page->from)
        return ERR_OK;
    if (page->at > page->from + page->limit) {
        page->has_more = true;
        return ERR_INTERRUPTED; /* the page is full */
    }
    jv_to_json(value, NULL, page->json);
    return ERR_OK;
}

enum err api_records(const struct api *api, const struct request *request,
                     struct api_response *answer, struct error *why)
{
    char next[24], *directory = NULL;
    const char *cursor = request_param(request, "cursor");
    struct json json;
    struct records_page page = {.json = &json, .limit = RECORDS_DEFAULT};
    struct run_records records;
    enum err err = request_count(request, "limit", 1, RECORDS_MAX, &page.limit, why);
    if (!err && cursor && parse_u64(cursor, &page.from))
        err = err_set(why, ERR_USAGE, "cursor: not from a previous page");
    if (!err)
        err = find_run(api, request, &directory, why);
    if (!err)
        err = run_records_open(directory, &records, why);
    free(directory);
    if (err)
        return err;
    response_object(answer, &json);
    json_array(&json, "records");
    err = run_records_read(&records, take_record, &page, why);
    run_records_close(&records);
    json_array_end(&json);
    chars_format(next, "%llu", (unsigned long long)page.from + page.limit);
    json_string(&json, "next_cursor", page.has_more ? next : NULL);
    json_object_end(&json);
    return err == ERR_INTERRUPTED ? ERR_OK : err;
}

static void name_download(struct api_response *answer, const struct request *request,
                          const char *suffix)
{
    chars_format(answer->file, "%.200s%s", str_last_part(request->ids[0]), suffix);
    for (char *at = answer->file; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~' || *at == '"' || *at == '\\')
            *at = '_';
}

static enum err export_csv(const char *directory, struct text *out, struct error *why)
{
    char *folder;
    struct export_done done;
    const struct export_driver *driver = export_driver_find("csv", why);
    if (sweep_is(directory))
        return export_sweep(directory, "csv", false, out, why);
    if (!driver)
        return ERR_NOT_FOUND;
    enum err err = scratch_folder(&folder, why);
    if (err)
        return err;
    char *path = path_join(folder, "csv");
    err = export_run(driver, &(struct export_request){.directory = directory, .output = path},
                     &done, why);
    if (!err)
        err = file_read(path, DOWNLOAD_MAX, out, why);
    unlink(path);
    rmdir(folder);
    free(path);
    free(folder);
    return err;
}

enum err api_csv(const struct api *api, const struct request *request, struct api_response *answer,
                 struct error *why)
{
    char *directory;
    enum err err = find_run(api, request, &directory, why);
    answer->type = "text/csv; charset=utf-8";
    name_download(answer, request, ".csv");
    if (!err)
        err = export_csv(directory, &answer->body, why);
    free(directory);
    return err;
}

enum err api_arrow(const struct api *api, const struct request *request,
                   struct api_response *answer, struct error *why)
{
    char *directory;
    enum err err = find_run(api, request, &directory, why);
    answer->type = "application/vnd.apache.arrow.stream";
    name_download(answer, request, ".arrow");
    if (!err)
        err = run_records_arrow(directory, DOWNLOAD_MAX, &answer->body, why);
    free(directory);
    return err;
}

enum err api_file(const struct api *api, const struct request *request, struct api_response *answer,
                  struct error *why)
{
    char *directory;
    enum err err = find_run(api, request, &directory, why);
    if (!err)
        err = run_dir_read(directory, request->ids[1], DOWNLOAD_MAX, &answer->body, why);
    free(directory);
    answer->type = "application/octet-stream";
    chars_copy(answer->file, err ? "" : request->ids[1]);
    return err;
}

/* ---- comparisons ---- */

static enum err compare(const char *const *directories, size_t count, struct text *out,
                        struct error *why)
{
    struct compare_groups groups;
    struct compare_set set;
    const struct compare_options options = {0};
    enum err err = ERR_OK;
    compare_groups_find(directories, count, &groups);
    if (groups.count < 2)
        err = err_set(why, ERR_USAGE, "compare takes at least two runs");
    if (!err && !(err = compare_set_load(&groups, &options, &set, why))) {
        struct result result = {0};
        compare_result(&(struct compare_report){.groups = &groups, .set = &set}, &result);
        result_print(&result, PRINT_JSON, &COMPARE_VIEWS, false, out);
        result_release(&result);
        compare_set_release(&set);
    }
    compare_groups_release(&groups);
    return err;
}

enum err api_compare(const struct api *api, const struct request *request,
                     struct api_response *answer, struct error *why)
{
    char *directories[COMPARED_MAX];
    size_t count = 0;
    enum err err = ERR_OK;
    if (request->param_count > COMPARED_MAX)
        return err_set(why, ERR_USAGE, "more than %d runs", COMPARED_MAX);
    for (size_t i = 0; !err && i < request->param_count; i++)
        err = runs_directory(api->runs, request->params[i].value, &directories[count++], why);
    if (!err && count < 2)
        err = err_set(why, ERR_USAGE, "missing run: compare?run=BASELINE&run=OTHER");
    answer->type = "application/json";
    if (!err)
        err = compare((const char *const *)directories, count, &answer->body, why);
    for (size_t i = 0; i < count; i++)
        free(directories[i]);
    return err;
}

/* ---- sweeps ---- */

static enum err put_sweep(struct json *json, const char *id, const char *directory,
                          struct error *why)
{
    struct result result;
    enum err err = analysis_run_sweep(directory, &result);
    if (err)
        err_set(why, err, "%s", result.why.text);
    json_string(json, "id", id);
    json_string(json, "name", str_last_part(directory));
    if (!err)
        result_to_json(&result, "result", json);
    else
        json_null(json, "result");
    result_release(&result);
    return err == ERR_NO_DATA ? ERR_OK : err;
}

enum err api_sweep(const struct api *api, const struct request *request,
                   struct api_response *answer, struct error *why)
{
    struct json json;
    char *directory;
    enum err err = find_run(api, request, &directory, why);
    if (!err && !sweep_is(directory))
        err = err_set(why, ERR_NOT_FOUND, "the run is not a sweep");
    response_object(answer, &json);
    if (!err)
        err = put_sweep(&json, request->ids[0], directory, why);
    json_object_end(&json);
    free(directory);
    return err;
}

static char *copy_of(const struct result *result, const char *path)
{
    const struct result_item *item = result_find(result, path);
    const char *text = result_is_known(item) ? result_string(item) : NULL;
    return text ? xstrdup(text) : NULL;
}

/* Reads every attempt. */
static void compute_conclusion(struct sweep_best *best, const char *directory)
{
    struct result result;
    enum err err = analysis_run_sweep(directory, &result);
    best->is_computed = true;
    best->saving_pct = result_value(result_find(&result, "summary.saving_pct"));
    best->plus_minus_pct = result_value(result_find(&result, "summary.saving_plus_minus_pct"));
    best->setting = copy_of(&result, "data.best.0.setting");
    best->conclusion = err ? xstrdup(result.why.text) : copy_of(&result, "summary.conclusion");
    result_release(&result);
}

static void put_sweep_row(struct json *json, const struct run_row *row, const struct sweep *sweep,
                          const struct sweep_best *best)
{
    bool is_known = best->is_computed;
    json_object(json, NULL);
    run_row_to_json(row, json);
    json_number(json, "settings", sweep ? (double)sweep->point_count : UNKNOWN);
    json_number(json, "attempts", sweep ? (double)sweep->count : UNKNOWN);
    json_string(json, "conclusion", is_known ? best->conclusion : NULL);
    json_string(json, "optimum", is_known ? best->setting : NULL);
    json_number(json, "saving_pct", is_known ? best->saving_pct : UNKNOWN);
    json_number(json, "saving_plus_minus_pct", is_known ? best->plus_minus_pct : UNKNOWN);
    json_object_end(json);
}

static void put_listed_sweep(const struct api *api, const struct run_row *row, size_t *concluded,
                             struct json *json)
{
    struct sweep sweep;
    struct sweep_best *best = runs_sweep_best(api->runs, row);
    char *directory;
    bool is_there = !runs_directory(api->runs, row->id, &directory, NULL) &&
                    !sweep_load(directory, &sweep, NULL);
    if (is_there && !best->is_computed && (*concluded)++ < CONCLUDED_MAX)
        compute_conclusion(best, directory);
    free(directory);
    put_sweep_row(json, row, is_there ? &sweep : NULL, best);
    if (is_there)
        sweep_release(&sweep);
}

/* The newest sweeps with their conclusions.  Only a few conclusions are computed per request, since other requests wait
 * for the rows. */
enum err api_sweeps(const struct api *api, const struct request *request,
                    struct api_response *answer, struct error *why)
{
    struct run_query query = {.sort = ROW_CREATED, .is_descending = true, .limit = SWEEPS_MAX};
    struct rows found = {0};
    struct json json;
    size_t concluded = 0;
    (void)request;
    query.equal[ROW_KIND] = "sweep";
    enum err err = runs_refresh(api->runs, why);
    if (!err)
        err = runs_copy(api->runs, &query, &found, why);
    response_object(answer, &json);
    json_array(&json, "sweeps");
    for (size_t i = 0; !err && i < found.count; i++)
        put_listed_sweep(api, found.rows[i], &concluded, &json);
    json_array_end(&json);
    json_object_end(&json);
    rows_release(&found);
    return err;
}
