/* The API's functions over runs.  Those that need the rows of the table run in the worker that owns it, those that read
 * a run's files in the other (routes.def). */
#include <stdlib.h>
#include <string.h>

#include "port/json_read.h"
#include "report/html/html.h"
#include "rundir/run_list.h"
#include "rundir/summary.h"
#include "serve/parts.h"

#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "   \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts "          \
    "allow-downloads allow-popups"

static void begin_object(struct json *json, struct api_answer *answer)
{
    answer->type = "application/json";
    json_init(json, &answer->body, false);
    json_object(json, NULL);
}

/* ---- lists ---- */

enum err api_runs(const struct api *api, const struct request *request, struct api_answer *answer,
                  struct error *why)
{
    struct json json;
    enum err err = runs_refresh(api->runs, why);
    begin_object(&json, answer);
    if (!err)
        err = runs_page(api->runs, request, &json, why);
    json_object_end(&json);
    return err;
}

/* ---- one run ---- */

static enum err find_run(const struct api *api, const struct request *request,
                         char directory[static FILE_PATH_MAX], struct error *why)
{
    return runs_directory(api->runs, request->ids[0], directory, why);
}

static enum err put_summary(const char *directory, struct json *json)
{
    struct summary summary;
    bool is_there = summary_load(directory, &summary, NULL) == ERR_OK;
    enum err err = jv_to_json(is_there ? summary.tree : NULL, "summary", json);
    if (is_there)
        summary_release(&summary);
    return err;
}

enum err api_run(const struct api *api, const struct request *request, struct api_answer *answer,
                 struct error *why)
{
    char directory[FILE_PATH_MAX];
    struct json json;
    enum err err = runs_refresh(api->runs, why);
    if (!err)
        err = find_run(api, request, directory, why);
    if (err)
        return err;
    const struct run_row *row = runs_find(api->runs, request->ids[0]);
    begin_object(&json, answer);
    if (row)
        run_row_to_json(row, &json);
    else
        json_string(&json, "id", request->ids[0]);
    err = err_explain(why, put_summary(directory, &json));
    json_object_end(&json);
    return err;
}

enum err api_report(const struct api *api, const struct request *request, struct api_answer *answer,
                    struct error *why)
{
    char directory[FILE_PATH_MAX], title[HTML_TITLE_MAX], page[FILE_PATH_MAX + 16];
    const char *input = directory;
    struct html_report report = {.inputs = &input, .count = 1, .page = page};
    enum err err = find_run(api, request, directory, why);
    if (err)
        return err;
    str_format(page, sizeof page, "%s/report.html", directory);
    answer->type = "application/json";
    return html_data(&report, title, sizeof title, &answer->body, why);
}

enum err api_page(const struct api *api, const struct request *request, struct api_answer *answer,
                  struct error *why)
{
    char directory[FILE_PATH_MAX], page[FILE_PATH_MAX + 16];
    const char *input = directory;
    struct html_report report = {.inputs = &input, .count = 1, .page = page};
    enum err err = find_run(api, request, directory, why);
    if (err)
        return err;
    str_format(page, sizeof page, "%s/report.html", directory);
    answer->type = "text/html; charset=utf-8";
    answer->policy = PAGE_POLICY;
    return html_write(&report, &answer->body, why);
}
