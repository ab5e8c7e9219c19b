/* Settings of runs.  The interval of a mean is Student's over the runs, as in a comparison; for a single run, that over
 * its queries. */
#include "analysis/across.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare_set.h"
#include "analysis/quality_axis.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"
#include "stats/pareto.h"

/* Figures averaged over repeats, by their keys. */
static const struct {
    const char *key;
    size_t offset;
    const char *unit;
} FIGURES[] = {
    {"joules_per_query", offsetof(struct run_point, joules_per_query), "J"},
    {"joules_per_output_token", offsetof(struct run_point, joules_per_output_token), "J"},
    {"output_tokens_per_s", offsetof(struct run_point, output_tokens_per_s), "1/s"},
    {"watts", offsetof(struct run_point, watts), "W"},
    {"accuracy", offsetof(struct run_point, accuracy), "%"},
    {"ipj", offsetof(struct run_point, ipj), "1/J"},
};
enum { FIGURE_COUNT = COUNT_OF(FIGURES) };

static double get_figure(const struct run_point *point, size_t i)
{
    double value;
    memcpy(&value, (const char *)point + FIGURES[i].offset, sizeof value);
    return value;
}

static void set_figure(struct run_point *point, size_t i, double value)
{
    memcpy((char *)point + FIGURES[i].offset, &value, sizeof value);
}

/* Half-width of the 95 % CI of a mean; UNKNOWN for fewer than two runs. */
static double half_width(const struct online *runs)
{
    return runs->count < 2
               ? UNKNOWN
               : student_quantile(0.05, (double)runs->count - 1) * online_standard_error(runs);
}

/* If different sensors measured the runs, the error of a run includes that of its sensors, which repeats share. */
static void average(const struct run_figures *runs, const size_t *of, size_t count, bool mixed,
                    struct run_figures *out)
{
    struct online means[FIGURE_COUNT] = {0}, joules = {0}, accuracy = {0}, quality = {0};
    double error = 0;
    *out = runs[of[0]];
    if (count == 1)
        return;
    out->point.queries = 0;
    for (size_t k = 0; k < count; k++) {
        const struct run_figures *run = &runs[of[k]];
        for (size_t i = 0; i < FIGURE_COUNT; i++)
            online_add(&means[i], get_figure(&run->point, i));
        online_add(&joules, run->point.joules_per_query);
        online_add(&accuracy, run->point.accuracy);
        if (str_equal(run->point.quality.name, out->point.quality.name))
            online_add(&quality, run->point.quality.value);
        error = fmax(error, mixed ? run->joules_per_query_error : 0);
        out->point.queries += run->point.queries;
    }
    for (size_t i = 0; i < FIGURE_COUNT; i++)
        set_figure(&out->point, i, online_mean(&means[i]));
    double half = half_width(&joules);
    out->joules_per_query_error = is_known(half) ? fmax(half, error) : UNKNOWN;
    out->point.quality.value = online_mean(&quality);
    half = half_width(&accuracy);
    out->accuracy_low = is_known(half) ? fmax(0, out->point.accuracy - half) : UNKNOWN;
    out->accuracy_high = is_known(half) ? fmin(1, out->point.accuracy + half) : UNKNOWN;
}

static void put_interval(struct result *out, const char *key, double low, double high,
                         const char *unit)
{
    if (is_known(low) && is_known(high))
        result_numbers(out, key, (const double[]){low, high}, 2, unit);
    else
        result_null(out, key);
}

/* In place of an accuracy; absent with one. */
static void put_quality(struct result *out, const struct quality_axis *axis,
                        const struct run_figures *means)
{
    double low, high;
    if (!axis->name[0])
        return;
    quality_axis_interval(axis, means, &low, &high);
    result_number(out, "quality", quality_axis_value(axis, &means->point), "");
    put_interval(out, "quality_interval_95", low, high, "");
}

static void put_setting(struct result *out, const char *name, const struct run_figures *means,
                        const struct quality_axis *axis, const size_t *runs, size_t count,
                        bool on_frontier)
{
    const struct run_point *point = &means->point;
    double joules = point->joules_per_query, error = means->joules_per_query_error;
    double low = is_known(error) ? fmax(0, joules - error) : UNKNOWN, high = joules + error;
    result_group(out, NULL);
    result_text(out, "name", name);
    result_list(out, "runs");
    for (size_t i = 0; i < count; i++)
        result_count(out, NULL, runs[i]);
    result_end(out);
    result_text(out, "hardware", point->hardware);
    result_count(out, "queries", point->queries);
    result_number(out, "concurrency", point->concurrency, "");
    for (size_t i = 0; i < FIGURE_COUNT; i++)
        result_number(out, FIGURES[i].key, get_figure(point, i), FIGURES[i].unit);
    put_quality(out, axis, means);
    result_between(out, "accuracy", means->accuracy_low, means->accuracy_high);
    result_between(out, "joules_per_query", low, high);
    result_group(out, "intervals");
    put_interval(out, "accuracy", means->accuracy_low, means->accuracy_high, "%");
    put_interval(out, "joules_per_query", low, high, "J");
    result_end(out);
    result_flag(out, "pareto_optimal", on_frontier);
    result_end(out);
}

/* Assigns runs to settings, in the order of the groups. */
static void assign(const struct compare_groups *groups, const struct run_figures *runs,
                   size_t count, struct run_settings *out)
{
    size_t at = 0;
    out->count = groups->count;
    for (size_t s = 0; s < groups->count; s++) {
        out->sizes[s] = groups->runs[s];
        for (size_t k = 0; k < out->sizes[s]; k++, at++) {
            out->order[at] = 0;
            while (out->order[at] + 1 < count &&
                   runs[out->order[at]].point.directory != groups->directories[at])
                out->order[at]++;
        }
    }
}

void run_settings_of(const struct compare_groups *groups, struct run_figures *runs, size_t count,
                     struct run_settings *out)
{
    *out = (struct run_settings){.means = xcalloc(count + 1, sizeof *out->means),
                                 .order = xcalloc(count + 1, sizeof *out->order),
                                 .sizes = xcalloc(count + 1, sizeof *out->sizes),
                                 .common = run_figures_settle(runs, count)};
    assign(groups, runs, count, out);
    size_t at = 0;
    for (size_t s = 0; s < out->count; at += out->sizes[s++])
        average(runs, out->order + at, out->sizes[s], out->common.sensors == UNCERTAINTY_MIXED,
                &out->means[s]);
}

void run_settings_release(struct run_settings *settings)
{
    free(settings->means);
    free(settings->order);
    free(settings->sizes);
    *settings = (struct run_settings){0};
}

/* ---- the result ---- */

static void put_all(struct result *out, const struct run_settings *settings)
{
    size_t count = settings->count;
    struct run_names names;
    struct quality_axis axis;
    const struct run_point **points = xcalloc(count + 1, sizeof *points);
    quality_axis_of(settings->means, count, &axis);
    bool *on_frontier = xcalloc(count + 1, sizeof *on_frontier);
    for (size_t s = 0; s < count; s++)
        points[s] = &settings->means[s].point;
    run_names_of(points, count, 0, &names);
    run_points_mark(&axis, points, count, on_frontier);
    if (axis.name[0]) {
        result_group(out, "quality");
        result_text(out, "name", axis.name);
        result_text(out, "better", better_name(axis.is_low_better ? BETTER_LOWER : BETTER_HIGHER));
        result_end(out);
    }
    result_list(out, "settings");
    const size_t *runs = settings->order;
    for (size_t s = 0; s < count; runs += settings->sizes[s++]) /* alone: nothing differs */
        put_setting(out, count == 1 ? points[s]->model : names.names[s], &settings->means[s], &axis,
                    runs, settings->sizes[s], on_frontier[s]);
    result_end(out);
    run_names_release(&names);
    free((void *)points);
    free(on_frontier);
}

/* Names of the runs, by what differs between them. */
static void put_names(struct result *out, const struct run_figures *runs, size_t count)
{
    const struct run_point **points = xmalloc((count + 1) * sizeof *points);
    struct run_names names;
    for (size_t i = 0; i < count; i++)
        points[i] = &runs[i].point;
    run_names_of(points, count, 0, &names);
    free((void *)points);
    result_text(out, "family", names.family);
    result_list(out, "names");
    for (size_t i = 0; i < names.count; i++)
        result_text(out, NULL, names.names[i]);
    result_end(out);
    run_names_release(&names);
}

void run_settings_result(const struct run_settings *settings, const struct run_figures *runs,
                         size_t count, struct result *out)
{
    result_begin(out, "settings");
    put_names(out, runs, count);
    result_number(out, "common", settings->common.common, "%");
    result_flag(out, "mixed", settings->common.sensors == UNCERTAINTY_MIXED);
    put_all(out, settings);
    result_end(out);
}
