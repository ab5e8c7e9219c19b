#include "report/html/html.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/across.h"
#include "rundir/measured_layers.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/text/format.h"
#include "report/html/assets.h"
#include "report/html/comparison.h"
#include "report/html/page.h"
#include "report/html/run.h"
#include "stats/pareto.h"

/* A file of 5 MB holds the queries of this many, ECharts included; of more, some are listed. */
enum { LISTED_MOST = 100000 };

enum err html_available(struct error *why)
{
    enum err err = jv_available(why);
    return err ? err : assets_available(why);
}

/* ---- inputs ---- */

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

const char *html_first_run(const struct html_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        if (is_directory(report->inputs[i]))
            return report->inputs[i];
    return NULL;
}

/* ---- runs ---- */

/* What the report is made of, while it is. */
struct making {
    const struct html_report *report;
    struct json json;
    struct run_point *points;
    size_t runs;
};

static enum err put_runs(struct making *making, struct error *why)
{
    const struct html_report *report = making->report;
    size_t count = 0;
    enum err err = ERR_OK;
    for (size_t i = 0; i < report->count; i++)
        count += !is_file(report->inputs[i]);
    size_t listed = count ? LISTED_MOST / count : 0; /* of each */
    json_array(&making->json, "runs");
    for (size_t i = 0; !err && i < report->count; i++)
        if (!is_file(report->inputs[i]))
            err = run_put(&making->json, report->inputs[i], report->model, report->page, listed,
                          &making->points[making->runs++], why);
    json_array_end(&making->json);
    return err;
}

/* "frontier": of each run whether no other is as accurate for as little energy and better in one. */
static enum err put_frontier(struct making *making)
{
    size_t count = making->runs;
    double *figures = malloc((2 * count + 1) * sizeof *figures);
    bool *on = calloc(count + 1, sizeof *on);
    enum err err = figures && on ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < count; i++) {
        figures[i] = making->points[i].joules_per_query;
        figures[count + i] = making->points[i].accuracy;
    }
    if (!err)
        err = pareto_mark(figures, figures + count, count, on);
    json_array(&making->json, "frontier");
    for (size_t i = 0; !err && i < count; i++)
        json_bool(&making->json, NULL, on[i]);
    json_array_end(&making->json);
    free(figures);
    free(on);
    return err;
}

static enum err put_comparison(struct making *making, struct error *why)
{
    const struct html_report *report = making->report;
    const char **directories = malloc((report->count + 1) * sizeof *directories);
    size_t count = 0;
    for (size_t i = 0; directories && i < report->count; i++)
        if (!is_file(report->inputs[i]))
            directories[count++] = report->inputs[i];
    enum err err = directories ? comparison_put(&making->json, directories, count, report->model)
                               : ERR_NO_MEMORY;
    free((void *)directories);
    return err ? err_set(why, err, "%s", err_text(err)) : ERR_OK;
}

static enum err put_across(struct making *making, struct error *why)
{
    struct text across = {0};
    if (making->runs < 2) {
        json_null(&making->json, "across");
        json_null(&making->json, "comparison");
        return ERR_OK;
    }
    enum err err = put_frontier(making);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    err = across_write(making->points, making->runs, &across, why);
    json_raw(&making->json, "across", err ? "null" : text_get(&across));
    text_release(&across);
    return err ? err : put_comparison(making, why);
}

/* ---- layers ---- */

/* One model; windows are raw data that the page does not show. */
static enum err put_model(struct json *json, const struct jv *model)
{
    enum err err = ERR_OK;
    json_object(json, NULL);
    for (const struct jv *child = jv_first(model); child && !err; child = jv_next(child)) {
        struct text value = {0};
        if (strcmp(jv_key(child), "windows") != 0) {
            err = jv_print(child, &value);
            json_raw(json, jv_key(child), err ? "null" : text_get(&value));
        }
        text_release(&value);
    }
    json_object_end(json);
    return err;
}

/* Of files, and of runs that have layers*.json beside their records. */
static enum err put_all_layers(struct making *making, struct error *why)
{
    struct measured_layers layers = {0};
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < making->report->count; i++)
        err = measured_layers_load(making->report->inputs[i], &layers, why);
    json_array(&making->json, "layers");
    for (size_t i = 0; !err && i < layers.count; i++)
        if ((err = put_model(&making->json, layers.models[i].figures)))
            err_set(why, err, "%s", err_text(err));
    json_array_end(&making->json);
    measured_layers_release(&layers);
    return err;
}

/* ---- all of it ---- */

static void title_of(const struct making *making, char *to, size_t size)
{
    const struct run_point *first = making->points;
    if (making->runs == 0)
        str_copy(to, size, "Energy of layers");
    else if (making->runs == 1)
        str_format(to, size, "%s on %s", first->model,
                   first->hardware[0] ? first->hardware : "an unknown machine");
    else
        str_format(to, size, "%zu runs side by side", making->runs);
}

enum err html_write(const struct html_report *report, struct text *out, struct error *why)
{
    struct making making = {.report = report};
    struct text data = {0};
    char title[400], when[FORMAT_MAX];
    enum err err = html_available(why);
    if (err)
        return err;
    making.points = calloc(report->count + 1, sizeof *making.points);
    if (!making.points)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    json_init(&making.json, &data, false);
    json_object(&making.json, NULL);
    json_string(&making.json, "version", IPW_VERSION);
    json_string(&making.json, "made_at", format_time(when, clock_wall()));
    err = put_runs(&making, why);
    if (!err)
        err = put_across(&making, why);
    if (!err)
        err = put_all_layers(&making, why);
    title_of(&making, title, sizeof title);
    json_string(&making.json, "title", title);
    json_object_end(&making.json);
    if (!err)
        err = page_make(title, &data, out, why);
    text_release(&data);
    free(making.points);
    return err;
}
