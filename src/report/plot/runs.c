/* Plots of several runs: energy per output token against concurrency and prompt length, the runs side by
 * side as bars, and accuracy against energy with the Pareto frontier. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/compare.h"
#include "analysis/quality_axis.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/plot/plot.h"
#include "stats/pareto.h"

#define METRIC_AXIS(metric)                                                                        \
    axis_label("", COMPARE_METRIC_INFO[COMPARE_##metric].label,                                    \
               COMPARE_METRIC_INFO[COMPARE_##metric].unit)

enum { LINE_COLORS = FIGURE_INK }; /* colors of lines: without that of the text */

/* ---- notes ---- */

/* "6 runs of ipw on H100; energies estimated, ±60 % common; bars: 95 % CI of queries". */
static void note_runs(struct figure *figure, const struct plot_source *source, size_t drawn)
{
    const struct run_figures *first = &source->runs[0];
    const char *family = source->names->family;
    const char *machine = first->point.hardware;
    bool one_method = true;
    for (size_t i = 1; i < source->run_count; i++) {
        machine = str_equal(source->runs[i].point.hardware, machine) ? machine : "";
        one_method = one_method && str_equal(source->runs[i].method, first->method);
    }
    if (drawn < source->run_count)
        figure_note(figure, "%zu of %zu runs, the others without grades or energy", drawn,
                    source->run_count);
    else
        figure_note(figure, "%zu runs%s%.40s%s%.40s", drawn, family[0] ? " of " : "", family,
                    machine[0] ? " on " : "", machine);
    figure_note_energy(figure, one_method ? first->method : "several", source->common.common);
    figure_note_bars(figure, "bars", source->runs, source->run_count, &source->common);
}

/* ---- J per token ---- */

static bool same_line(const struct run_point *a, const struct run_point *b)
{
    return str_equal(a->model, b->model) && str_equal(a->hardware, b->hardware);
}

static bool has_token_energy(const struct run_figures *run, double x)
{
    return x > 0 && run->point.joules_per_output_token > 0;
}

/* The runs on the same line as the first. */
static void put_token_line(const struct plot_source *source, size_t first,
                           double (*of)(const struct run_figures *run), struct figure_series *line,
                           struct figure_series *marks)
{
    struct figure_point *points = xcalloc(source->run_count, sizeof *points);
    size_t count = 0;
    for (size_t i = first; i < source->run_count; i++) {
        const struct run_figures *run = &source->runs[i];
        if (same_line(&run->point, &source->runs[first].point) && has_token_energy(run, of(run)))
            points[count++] = (struct figure_point){of(run), run->point.joules_per_output_token,
                                                    run->joules_per_output_token_error};
    }
    figure_points(line, marks, points, count);
    free(points);
}

static enum err check_per_token(const struct plot_source *source,
                                double (*of)(const struct run_figures *run), const char *what,
                                struct error *why)
{
    double min = INFINITY, max = -INFINITY;
    size_t known = 0;
    for (size_t i = 0; i < source->run_count; i++) {
        double x = of(&source->runs[i]);
        if (!has_token_energy(&source->runs[i], x))
            continue;
        known++;
        min = fmin(min, x);
        max = fmax(max, x);
    }
    if (known < 2)
        return err_set(why, ERR_NO_DATA, "%zu of %zu runs have both %s and joules per output token",
                       known, source->run_count, what);
    if (min == max)
        return err_set(why, ERR_NO_DATA, "all runs have the same %s, %g", what, min);
    return ERR_OK;
}

/* One line per model and machine: its name, and its first run. */
struct lines {
    size_t *first, count;
    struct run_names names;
};

static void lines_release(struct lines *lines)
{
    free(lines->first);
    run_names_release(&lines->names);
}

static void lines_of(const struct plot_source *source, struct lines *out)
{
    enum { LETTERS = 44 };
    size_t n = source->run_count;
    struct run_point *points = xmalloc(n * sizeof *points);
    const struct run_point **each = xmalloc(n * sizeof *each);
    *out = (struct lines){.first = xmalloc(n * sizeof *out->first)};
    for (size_t i = 0; i < n; i++) {
        bool before = false;
        for (size_t j = 0; j < i && !before; j++)
            before = same_line(&source->runs[j].point, &source->runs[i].point);
        if (before)
            continue;
        points[out->count] = source->runs[i].point;
        points[out->count].concurrency = UNKNOWN; /* not on any line */
        points[out->count].dataset[0] = '\0';
        each[out->count] = &points[out->count];
        out->first[out->count++] = i;
    }
    run_names_of(each, out->count, LETTERS, &out->names);
    if (out->count == 1)
        str_copy(out->names.names[0], RUN_NAME_MAX, str_last_part(points[0].model));
    free(points);
    free((void *)each);
}

struct per_token_plot {
    double (*of)(const struct run_figures *run);
    const char *what, *x_label; /* x_label NULL: mean prompt tokens */
};

static enum err draw_per_token(const struct plot_source *source, struct figure *figure,
                               struct error *why)
{
    const struct per_token_plot *plot = source->driver->row;
    struct lines lines;
    enum err err = check_per_token(source, plot->of, plot->what, why);
    if (err)
        return err;
    struct axis_label label = METRIC_AXIS(ENERGY_PER_OUTPUT_TOKEN);
    chars_format(figure->title, "%s against %s", label.label, plot->what);
    note_runs(figure, source, source->run_count);
    struct figure_panel *panel = figure_panel(
        figure, plot->x_label ? plot->x_label : axis_of("mean ", RUN_INPUT_TOKENS).text,
        label.text);
    panel->x.log_base = 2;
    panel->y.from_zero = true;
    lines_of(source, &lines);
    for (size_t i = 0; i < lines.count; i++) {
        enum figure_color color = (enum figure_color)(i % LINE_COLORS);
        struct figure_series *line = figure_series(panel, FIGURE_LINE, color, "");
        struct figure_series *errors =
            figure_series(panel, FIGURE_ERRORS_Y, color, lines.names.names[i]);
        line->round = errors->round = (unsigned)(i / LINE_COLORS);
        put_token_line(source, lines.first[i], plot->of, line, errors);
    }
    lines_release(&lines);
    return ERR_OK;
}

static double concurrency(const struct run_figures *run)
{
    return run->point.concurrency;
}

const struct plot_driver plot_concurrency = {
    .name = "concurrency",
    .summary = "several runs: energy per output token against concurrency",
    .of = PLOT_OF_RUNS,
    .row = &(const struct per_token_plot){concurrency, "concurrency", "concurrent requests"},
    .draw = draw_per_token,
};

static double mean_prompt(const struct run_figures *run)
{
    return run->prompt_tokens;
}

const struct plot_driver plot_context = {
    .name = "context",
    .summary = "several runs: energy per output token against prompt length",
    .of = PLOT_OF_RUNS,
    .row = &(const struct per_token_plot){mean_prompt, "prompt length", NULL},
    .draw = draw_per_token,
};

/* ---- models: bars side by side ---- */

/* More would be lines, not bars. */
enum { RUNS_MAX = 40 };

struct measure {
    struct axis_label label;
    double value, low, high; /* UNKNOWN: no interval */
};

enum { MEASURES = 4 };

static struct measure measure_of(const struct run_figures *run, unsigned which)
{
    const struct run_point *point = &run->point;
    double query = point->joules_per_query;
    double query_error = run->joules_per_query_error;
    double token = point->joules_per_output_token;
    double token_error = run->joules_per_output_token_error;
    const struct measure all[MEASURES] = {
        {METRIC_AXIS(ENERGY_PER_QUERY), query, query - query_error, query + query_error},
        {METRIC_AXIS(ENERGY_PER_OUTPUT_TOKEN), token, token - token_error, token + token_error},
        {axis_of("median ", RUN_LATENCY), run->latency_s, UNKNOWN, UNKNOWN},
        {METRIC_AXIS(ACCURACY), 100 * point->accuracy, 100 * run->accuracy_low,
         100 * run->accuracy_high},
    };
    return all[which];
}

static size_t count_known(const struct plot_source *source, unsigned which)
{
    size_t known = 0;
    for (size_t i = 0; i < source->run_count; i++)
        known += is_known(measure_of(&source->runs[i], which).value);
    return known;
}

/* The share of the page that the longest name takes. */
static double names_share(const struct plot_source *source)
{
    size_t longest = 0;
    for (size_t i = 0; i < source->run_count; i++) {
        size_t length = strlen(source->names->names[i]);
        longest = length > longest ? length : longest;
    }
    return 0.0095 * fmin((double)longest, 34) + 0.01;
}

static void put_measure(struct figure *figure, const struct plot_source *source, unsigned which,
                        bool with_names)
{
    static const enum figure_color BARS[MEASURES] = {FIGURE_BLUE, FIGURE_SKY_BLUE, FIGURE_ORANGE,
                                                     FIGURE_GREEN};
    struct measure m = measure_of(&source->runs[0], which);
    struct figure_panel *panel = figure_panel(figure, m.label.text, "");
    panel->x.from_zero = true;
    panel->y.down = true;
    struct figure_series *bars = figure_series(panel, FIGURE_BOXES, BARS[which], "");
    struct figure_series *errors = figure_series(panel, FIGURE_ERRORS_X, FIGURE_INK, "");
    for (size_t i = 0; i < source->run_count; i++) {
        m = measure_of(&source->runs[i], which);
        figure_name(&panel->y, with_names ? source->names->names[i] : "");
        series_add4(bars, 0, m.value, (double)i - 0.36, (double)i + 0.36);
        series_add4(errors, m.value, (double)i, fmax(m.low, 0), m.high);
    }
}

static enum err draw_models(const struct plot_source *source, struct figure *figure,
                            struct error *why)
{
    bool with_names = true;
    double share;
    if (source->run_count > RUNS_MAX)
        return err_set(why, ERR_NO_DATA, "%zu runs; a bar chart shows at most %d",
                       source->run_count, RUNS_MAX);
    for (unsigned which = 0; which < MEASURES; which++) {
        if (count_known(source, which) < 2)
            continue;
        put_measure(figure, source, which, with_names);
        with_names = false;
    }
    if (with_names)
        return err_set(why, ERR_NO_DATA, "no metric is known for two runs");
    chars_format(figure->title, "%zu runs side by side", source->run_count);
    note_runs(figure, source, source->run_count);
    figure->horizontal = true;
    share = names_share(source);
    for (size_t i = 0; i < figure->panel_count; i++)
        figure->panels[i].weight = (1 - share) / (double)figure->panel_count + (i ? 0 : share);
    figure->height = fmax(400, 150 + 34 * (double)source->run_count);
    return ERR_OK;
}

const struct plot_driver plot_models = {
    .name = "models",
    .summary = "several runs side by side: energy, latency, accuracy",
    .of = PLOT_OF_RUNS,
    .draw = draw_models,
};

/* ---- pareto: accuracy against energy ---- */

struct choice {
    double joules, quality;
};

static int by_joules(const void *a, const void *b)
{
    return compare_numbers(((const struct choice *)a)->joules, ((const struct choice *)b)->joules);
}

/* Accuracy, in percent, or another metric (quality_axis.c). */
struct frontier {
    const struct plot_source *source;
    struct quality_axis axis;
    double scale;
};

static bool is_graded(const struct frontier *of, size_t i)
{
    const struct run_point *point = &of->source->runs[i].point;
    return point->joules_per_query > 0 && is_known(quality_axis_value(&of->axis, point));
}

static void put_run(struct figure_panel *panel, const struct frontier *of, size_t i, bool on,
                    double farthest, struct figure_series *const series[2][2])
{
    const struct plot_source *source = of->source;
    const struct run_figures *run = &source->runs[i];
    double x = run->point.joules_per_query, low, high;
    double y = of->scale * quality_axis_value(&of->axis, &run->point);
    double error = known_or(run->joules_per_query_error, 0);
    quality_axis_interval(&of->axis, run, &low, &high);
    series_add4(series[on][0], x, y, of->scale * low, of->scale * high);
    series_add4(series[on][1], x, y, x - error > 0 ? x - error : x / 100, x + error);
    figure_label(panel, x, y, x > farthest, source->names->names[i]);
}

/* Step shape: between two points the best available is the cheaper one. */
static void put_frontier(struct figure_panel *panel, struct choice *best, size_t count)
{
    struct figure_series *line = figure_series(panel, FIGURE_LINE, FIGURE_GREEN, "Pareto frontier");
    qsort(best, count, sizeof *best, by_joules);
    for (size_t i = 0; i < count; i++) {
        if (i)
            series_add2(line, best[i].joules, best[i - 1].quality);
        series_add2(line, best[i].joules, best[i].quality);
    }
}

/* Labels of points in the right half are placed to their left, so that none is clipped. */
static double middle_of(const struct frontier *of, bool *is_wide)
{
    const struct plot_source *source = of->source;
    double min = INFINITY, max = 0;
    for (size_t i = 0; i < source->run_count; i++)
        if (is_graded(of, i)) {
            min = fmin(min, source->runs[i].point.joules_per_query);
            max = fmax(max, source->runs[i].point.joules_per_query);
        }
    *is_wide = max / min > 20;
    return *is_wide ? sqrt(min * max) : (min + max) / 2;
}

/* Points of several datasets have a frontier each, which one line would join. */
static bool has_one_dataset(const struct plot_source *source)
{
    for (size_t i = 1; i < source->run_count; i++)
        if (!str_equal(source->runs[i].point.dataset, source->runs[0].point.dataset))
            return false;
    return true;
}

static void put_runs(const struct frontier *of, const bool *on, struct choice *best,
                     struct figure *figure)
{
    size_t count = 0;
    const char *name = of->axis.name;
    struct figure_panel *panel = figure_panel(figure, METRIC_AXIS(ENERGY_PER_QUERY).text,
                                              name[0] ? name : METRIC_AXIS(ACCURACY).text);
    bool is_wide;
    double farthest = middle_of(of, &is_wide);
    panel->x.log_base = is_wide ? 10 : 0;
    struct figure_series *series[2][2];
    for (int i = 0; i < 2; i++) {
        enum figure_color color = i ? FIGURE_GREEN : FIGURE_BLUE;
        series[i][0] =
            figure_series(panel, FIGURE_ERRORS_Y, color, i ? "Pareto-optimal" : "dominated");
        series[i][1] = figure_series(panel, FIGURE_ERRORS_X, color, "");
    }
    for (size_t i = 0; i < of->source->run_count; i++) {
        const struct run_point *point = &of->source->runs[i].point;
        if (!is_graded(of, i))
            continue;
        put_run(panel, of, i, on[i], farthest, series);
        if (on[i])
            best[count++] = (struct choice){point->joules_per_query,
                                            of->scale * quality_axis_value(&of->axis, point)};
    }
    if (has_one_dataset(of->source))
        put_frontier(panel, best, count);
}

static enum err draw_known(const struct plot_source *source, const struct run_point **points,
                           bool *on, struct choice *best, struct figure *figure, struct error *why)
{
    static const struct run_point NOT_DRAWN = {.joules_per_query = UNKNOWN, .accuracy = UNKNOWN};
    size_t known = 0;
    struct frontier of = {.source = source};
    quality_axis_of(source->runs, source->run_count, &of.axis);
    of.scale = of.axis.name[0] ? 1 : 100;
    for (size_t i = 0; i < source->run_count; i++) {
        bool drawn = is_graded(&of, i);
        points[i] = drawn ? &source->runs[i].point : &NOT_DRAWN;
        known += drawn;
    }
    if (known < 2)
        return err_set(why, ERR_NO_DATA, "%zu of %zu runs have graded answers of known energy",
                       known, source->run_count);
    run_points_mark(&of.axis, points, source->run_count, on);
    chars_format(figure->title, "%s against energy", of.axis.name[0] ? of.axis.name : "Accuracy");
    note_runs(figure, source, known);
    put_runs(&of, on, best, figure);
    return ERR_OK;
}

static enum err draw_pareto(const struct plot_source *source, struct figure *figure,
                            struct error *why)
{
    size_t n = source->run_count;
    const struct run_point **points = xmalloc(n * sizeof *points);
    bool *on = xcalloc(n, sizeof *on);
    struct choice *best = xmalloc(n * sizeof *best);
    enum err err = draw_known(source, points, on, best, figure, why);
    free((void *)points);
    free(on);
    free(best);
    return err;
}

const struct plot_driver plot_pareto = {
    .name = "pareto",
    .summary = "several runs: accuracy against energy, with the Pareto frontier",
    .of = PLOT_OF_RUNS,
    .draw = draw_pareto,
};
