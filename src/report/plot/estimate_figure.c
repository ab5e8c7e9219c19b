/* Figures of an estimate: energy and time over batch sizes, context and prompt lengths, as `ipw estimate --plot`
 * draws them. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "estimate/serving.h"
#include "report/plot/plot.h"
#include "report/text/estimate_report.h"
#include "report/text/estimate_words.h"

/* ---- one estimate ---- */

enum { BARS_MAX = 12, TIMELINE_HEIGHT = 220 };

struct bars {
    struct figure_series *compute, *memory, *link, *idle;
};

static void put_bar(const struct bars *bars, double at, const struct estimate_joules *joules,
                    double unit)
{
    const struct {
        struct figure_series *series;
        double joules;
    } parts[] = {{bars->compute, joules->compute},
                 {bars->memory, joules->memory},
                 {bars->link, joules->link},
                 {bars->idle, joules->idle}};
    double from = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double to = from + parts[i].joules / unit;
        if (to > from)
            series_add4(parts[i].series, from, to, at - 0.35, at + 0.35);
        from = to;
    }
}

static void name_bar(struct figure *figure, struct figure_panel *panel,
                     const struct estimate_report *report, const struct estimate_consumer *row)
{
    char name[CONSUMER_NAME_MAX + 64];
    const char *phase = row->first->phase == GRAPH_DECODE ? "decode" : "prefill";
    bool phases = report->estimate->work->spec.is_request;
    str_format(name, sizeof name, "%s%s%s", row->name, phases ? ", " : "", phases ? phase : "");
    figure_name(figure, &panel->y, name);
}

static void put_heading(struct figure *figure, const struct workload_estimate *estimate)
{
    char words[WORDS_MAX], each[WORDS_MAX];
    str_format(figure->title, sizeof figure->title, "%s on %s", estimate->work->spec.model->name,
               estimate->hardware->name);
    str_format(figure->note, sizeof figure->note, "%.100s; %.100s, estimated, not measured",
               words_setting(words, estimate),
               words_energy(each, estimate, estimate->work->units, estimate->work->unit));
}

/* Activation memory, by subgraph. */
static void put_timeline(const struct workload_estimate *estimate, struct figure *figure)
{
    const struct partition *partition = workload_estimate_timeline_partition(estimate);
    if (!partition || partition->count < 2)
        return;
    double mib = 1024.0 * 1024, unit = estimate->memory.activations_peak < mib ? 1024 : mib;
    struct figure_panel *panel =
        figure_panel(figure, "subgraph, in the order in which they run",
                     unit < mib ? "activations (KiB)" : "activations (MiB)");
    struct figure_series *series = figure_series(figure, panel, FIGURE_STEPS, FIGURE_GREEN, "");
    str_copy(panel->title, sizeof panel->title, "memory in use besides weights and KV cache");
    panel->y.from_zero = panel->x.integer = true;
    for (size_t i = 0; i < partition->count; i++)
        series_add2(series, (double)i, estimate->memory.timeline[i] / unit);
    series_add2(series, (double)partition->count,
                estimate->memory.timeline[partition->count - 1] / unit);
    panel->weight = TIMELINE_HEIGHT;
}

enum err estimate_figure(const struct estimate_report *report, struct figure *figure,
                         struct error *why)
{
    size_t count;
    if (!is_known(report->estimate->total.joules.total)) /* a partial bar would look complete */
        return err_set(why, ERR_NO_DATA, "energy on %.60s is unknown: nothing to plot",
                       report->estimate->hardware->id);
    struct estimate_consumer *rows = estimate_consumers(report, &count);
    if (!rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    bool is_small = count && rows[0].joules.total < 1;
    struct figure_panel *panel =
        figure_panel(figure, is_small ? "energy (mJ, estimated)" : "energy (J, estimated)", "");
    struct bars bars = {
        .compute = figure_series(figure, panel, FIGURE_BOXES, FIGURE_ORANGE, "compute"),
        .memory = figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "memory"),
        .link = figure_series(figure, panel, FIGURE_BOXES, FIGURE_PURPLE,
                              report->estimate->total.joules.link > 0 ? "link" : ""),
        .idle = figure_series(figure, panel, FIGURE_BOXES, FIGURE_SKY_BLUE, "static"),
    };
    put_heading(figure, report->estimate);
    panel->x.from_zero = true;
    panel->y.down = true;
    if (count > BARS_MAX)
        count = BARS_MAX;
    for (size_t i = 0; i < count; i++) {
        name_bar(figure, panel, report, &rows[i]);
        put_bar(&bars, (double)i, &rows[i].joules, is_small ? 1e-3 : 1);
    }
    panel->weight = fmax(400, 170 + 34 * (double)count);
    put_timeline(report->estimate, figure);
    figure->height = 0;
    for (size_t i = 0; i < figure->panel_count; i++)
        figure->height += figure->panels[i].weight;
    free(rows);
    return ERR_OK;
}

/* ---- many estimates against a length ---- */

enum { LINES_MAX = 14 };

/* Above this ratio the axis is logarithmic. */
#define WIDE_X 8
#define WIDE_Y 10

static bool is_drawn(const struct grid_point *point)
{
    return !point->missing[0] && workload_estimate_fits(&point->estimate);
}

static double length_of(const struct grid_point *point, bool of_context)
{
    struct workload_demand demand = workload_demand(&point->work->spec);
    return (double)(of_context ? demand.context : demand.prompt);
}

/* ---- lines ---- */

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

/* Number of leading keys: device, precision, whether as stored, batch, prompt, context. */
enum { UP_TO_BATCH = 4, UP_TO_PROMPT, UP_TO_CONTEXT };

static int compare_points(const struct grid_point *a, const struct grid_point *b, size_t count)
{
    const struct estimate_config *x = &a->estimate.config, *y = &b->estimate.config;
    const double keys[UP_TO_CONTEXT][2] = {
        {(double)a->device, (double)b->device},     {(double)x->precision, (double)y->precision},
        {x->keeps_stored, y->keeps_stored},         {a->work->batch, b->work->batch},
        {length_of(a, false), length_of(b, false)}, {length_of(a, true), length_of(b, true)},
    };
    int order = 0;
    for (size_t i = 0; !order && i < count; i++)
        order = compare(keys[i][0], keys[i][1]);
    return order;
}

static int by_setting(const void *left, const void *right)
{
    const struct grid_point *const *a = left, *const *b = right;
    return compare_points(*a, *b, UP_TO_CONTEXT);
}

/* Points of one line are contiguous, starting at `first`. */
struct line {
    const struct grid_point **first;
    size_t count;
    double joules; /* per unit, at its longest */
};

struct lines {
    const struct points_report *report;
    const struct grid_point **points;
    struct line *items;
    size_t point_count, count;
    bool of_context;                        /* against the context; else against the prompt */
    bool too_large;                         /* some do not fit, and are omitted */
    double unit;                            /* of the axis, in joules */
    bool devices, formats, batches, others; /* differ, and are therefore named */
};

static void compare_all(struct lines *lines)
{
    const struct grid_point *first = lines->points[0];
    for (size_t i = 1; i < lines->point_count; i++) {
        const struct grid_point *point = lines->points[i];
        const struct estimate_config *a = &point->estimate.config, *b = &first->estimate.config;
        lines->devices |= point->device != first->device;
        lines->formats |= a->precision != b->precision || a->keeps_stored != b->keeps_stored;
        lines->batches |= point->work->batch != first->work->batch;
        lines->others |= lines->of_context && length_of(point, false) != length_of(first, false);
    }
}

static int by_joules(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    return compare(b->joules, a->joules);
}

static enum err find_lines(const struct points_report *report, struct lines *out)
{
    const struct estimate_grid *points = report->points;
    out->report = report;
    out->points = calloc(points->count, sizeof *out->points);
    out->items = calloc(points->count, sizeof *out->items);
    if (!out->points || !out->items)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < points->count; i++)
        if (is_drawn(&points->items[i]))
            out->points[out->point_count++] = &points->items[i];
        else
            out->too_large |= !points->items[i].missing[0];
    if (!out->point_count)
        return ERR_OK;
    qsort(out->points, out->point_count, sizeof *out->points, by_setting);
    for (size_t i = 0; i < out->point_count; i++) {
        const struct grid_point **at = &out->points[i];
        if (i == 0 || compare_points(at[-1], at[0], out->of_context ? UP_TO_PROMPT : UP_TO_BATCH))
            out->items[out->count++] = (struct line){.first = at};
        struct line *line = &out->items[out->count - 1];
        line->count++;
        line->joules = workload_estimate_joules_per_unit(&at[0]->estimate);
    }
    compare_all(out);
    out->unit = 1;
    for (size_t i = 0; i < out->point_count; i++)
        if (workload_estimate_joules_per_unit(&out->points[i]->estimate) < 1)
            out->unit = 1e-3;
    /* The legend is then in the order of the lines. */
    qsort(out->items, out->count, sizeof *out->items, by_joules);
    return ERR_OK;
}

/* ---- drawing ---- */

/* Describes a point by the device, precision and batch that differ between lines, or by those that do not. */
static void add_setting(const struct lines *lines, const struct grid_point *point, bool differs,
                        char *name)
{
    const struct estimate_config *config = &point->estimate.config;
    name[0] = '\0';
    if (lines->devices == differs)
        words_add(name, "%.60s", point->estimate.hardware->id);
    if (lines->formats == differs)
        words_add(name, "%s", words_precision(config));
    if (lines->batches == differs)
        words_add(name, "batch %.0f", point->work->batch);
}

static const char *name_line(const struct lines *lines, const struct line *line, char *name)
{
    const struct grid_point *point = line->first[0];
    add_setting(lines, point, true, name);
    if (lines->others)
        words_add(name, "prompt %.0f", length_of(point, false));
    return name;
}

/* Only a single line has its ± as a band. */
static void put_band(const struct lines *lines, struct figure *figure, struct figure_panel *panel)
{
    const struct line *line = &lines->items[0];
    struct figure_series *band =
        figure_series(figure, panel, FIGURE_BAND, FIGURE_BLUE, "one standard deviation");
    for (size_t i = 0; i < line->count; i++) {
        const struct workload_estimate *estimate = &line->first[i]->estimate;
        double joules = workload_estimate_joules_per_unit(estimate);
        struct estimate_interval interval = workload_estimate_interval(
            estimate, joules, estimate->total.joules_plus_minus / estimate->work->units);
        series_add3(band, length_of(line->first[i], lines->of_context), interval.low / lines->unit,
                    interval.high / lines->unit);
    }
}

static void put_line(const struct lines *lines, size_t index, size_t number, struct figure *figure,
                     struct figure_panel *panel)
{
    const struct line *line = &lines->items[index];
    char name[WORDS_MAX];
    struct figure_series *series =
        figure_series(figure, panel, FIGURE_MARKED, (enum figure_color)(number % FIGURE_INK),
                      name_line(lines, line, name));
    series->round = (unsigned)(number / FIGURE_INK);
    for (size_t i = 0; i < line->count; i++)
        series_add2(series, length_of(line->first[i], lines->of_context),
                    workload_estimate_joules_per_unit(&line->first[i]->estimate) / lines->unit);
}

static void set_axes(const struct lines *lines, struct figure_panel *panel)
{
    double low = INFINITY, high = 0, min = INFINITY, max = 0;
    for (size_t i = 0; i < lines->point_count; i++) {
        double x = length_of(lines->points[i], lines->of_context);
        double y = workload_estimate_joules_per_unit(&lines->points[i]->estimate);
        low = fmin(low, x);
        high = fmax(high, x);
        min = fmin(min, y);
        max = fmax(max, y);
    }
    if (high >= WIDE_X * low)
        panel->x.log_base = 2;
    else
        panel->x.integer = true;
    if (max >= WIDE_Y * min)
        panel->y.log_base = 10;
    else
        panel->y.from_zero = true;
}

/* Setting common to all lines: "h200, fp16, batch 8; ". */
static void put_common(const struct lines *lines, char *to, size_t size)
{
    const struct workload_spec *question = &lines->points[0]->work->spec;
    char name[WORDS_MAX];
    add_setting(lines, lines->points[0], false, name);
    if (question->model->has_phases)
        words_add(name, "%s", words_phase(question));
    if (lines->count > LINES_MAX)
        words_add(name, "%d of %zu lines", LINES_MAX, lines->count);
    str_format(to, size, "%s%s; estimated, not measured: %s", name,
               lines->too_large ? "; without configurations that do not fit" : "",
               words_kernels(question));
}

static void put_figure(const struct lines *lines, struct figure *figure)
{
    const struct workload *work = &lines->report->points->works[0];
    const char *length = lines->of_context              ? "context"
                         : work->spec.model->has_phases ? "prompt"
                                                        : "input length";
    char each[WORDS_MAX], x_label[WORDS_MAX], y_label[WORDS_MAX + 48];
    str_format(y_label, sizeof y_label, "energy %s (%s, estimated)", words_each(each, work->unit),
               lines->unit < 1 ? "mJ" : "J");
    str_format(x_label, sizeof x_label, "%s (tokens)", length);
    struct figure_panel *panel = figure_panel(figure, x_label, y_label);
    size_t shown = lines->count < LINES_MAX ? lines->count : LINES_MAX;
    str_format(figure->title, sizeof figure->title, "%s: energy %s against the %s",
               work->spec.model->name, each, length);
    put_common(lines, figure->note, sizeof figure->note);
    set_axes(lines, panel);
    if (lines->count == 1)
        put_band(lines, figure, panel);
    for (size_t i = 0; i < shown; i++) /* a subset, evenly from the most to the least expensive */
        put_line(lines, shown > 1 ? i * (lines->count - 1) / (shown - 1) : 0, i, figure, panel);
    figure->height = 600;
}

/* A line per device, precision and batch; of_context: against the context, else against the prompt. */
static enum err points_length_figure(const struct points_report *report, bool of_context,
                                     struct figure *figure, struct error *why)
{
    struct lines lines = {.of_context = of_context};
    enum err err = find_lines(report, &lines);
    if (err)
        err_set(why, err, "out of memory");
    else if (!lines.count)
        err = err_set(why, ERR_NO_DATA,
                      "nothing fits on a device with known energy: nothing to plot");
    else
        put_figure(&lines, figure);
    free(lines.points);
    free(lines.items);
    return err;
}

/* ---- many estimates: energy against latency ---- */

enum { DEVICES_NAMED = 14 };

/* Devices in the order of their best point; further ones share a faint series. */
static size_t rank_devices(const struct estimate_grid *points, const struct hardware **order,
                           size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < points->count && count < max; i++) {
        bool is_new = is_drawn(&points->items[i]);
        for (size_t k = 0; is_new && k < count; k++)
            is_new = order[k] != points->items[i].estimate.hardware;
        if (is_new)
            order[count++] = points->items[i].estimate.hardware;
    }
    return count;
}

static void put_devices(const struct points_report *report, struct figure *figure,
                        struct figure_panel *panel)
{
    const struct estimate_grid *points = report->points;
    const struct hardware *order[DEVICES_NAMED];
    size_t named = rank_devices(points, order, DEVICES_NAMED);
    struct figure_series *series[DEVICES_NAMED + 1] = {NULL};
    for (size_t k = 0; k < named; k++) {
        series[k] = figure_series(figure, panel, FIGURE_POINTS, (enum figure_color)(k % FIGURE_INK),
                                  order[k]->id);
        series[k]->round = (unsigned)(k / FIGURE_INK);
    }
    series[named] = figure_series(figure, panel, FIGURE_POINTS, FIGURE_INK,
                                  named == DEVICES_NAMED ? "others" : "");
    for (size_t i = 0; i < points->count; i++) {
        const struct grid_point *point = &points->items[i];
        size_t k = 0;
        while (k < named && order[k] != point->estimate.hardware)
            k++;
        if (is_drawn(point))
            series_add3(series[k], 1e3 * point->estimate.total.latency_s,
                        1e3 * workload_estimate_joules_per_unit(&point->estimate),
                        k < named ? 1 : 0);
    }
}

/* Points are sorted by joules, so latency decreases along the frontier. */
static void put_frontier(const struct estimate_grid *points, struct figure *figure,
                         struct figure_panel *panel)
{
    struct figure_series *line =
        figure_series(figure, panel, FIGURE_LINE, FIGURE_INK, "Pareto frontier");
    double before = UNKNOWN;
    for (size_t i = 0; i < points->count; i++) {
        const struct grid_point *point = &points->items[i];
        if (!point->on_frontier)
            continue;
        double x = 1e3 * point->estimate.total.latency_s;
        double y = 1e3 * workload_estimate_joules_per_unit(&point->estimate);
        if (is_known(before)) /* step shape: nothing dominates between two of them */
            series_add2(line, before, y);
        series_add2(line, x, y);
        before = x;
    }
}

static enum err latency_figure(const struct points_report *report, struct figure *figure,
                               struct error *why)
{
    const struct workload *work = &report->points->works[0];
    char each[WORDS_MAX], label[WORDS_MAX + 48];
    str_format(label, sizeof label, "energy %s (mJ, estimated)", words_each(each, work->unit));
    struct figure_panel *panel = figure_panel(figure, "latency (ms, estimated)", label);
    panel->x.log_base = panel->y.log_base = 10;
    str_format(figure->title, sizeof figure->title, "%s: energy and latency of %zu settings",
               work->spec.model->name, report->points->able);
    str_format(figure->note, sizeof figure->note,
               "every device, precision and batch that fits; estimated, not measured: %s",
               words_kernels(&work->spec));
    put_devices(report, figure, panel);
    put_frontier(report->points, figure, panel);
    figure->height = 600;
    if (!figure_finish(figure))
        return err_set(why, ERR_NO_DATA,
                       "nothing fits on a device with known energy: nothing to plot");
    return ERR_OK;
}

/* If prompts or contexts differ, plots against their length. */
enum err points_figure(const struct points_report *report, struct figure *figure, struct error *why)
{
    struct grid_differences differ = estimate_grid_differences(report->points);
    if (differ.prompts || differ.contexts)
        return points_length_figure(report, differ.contexts, figure, why);
    return latency_figure(report, figure, why);
}

/* ---- serving ---- */

static void put_energy(const struct serving_report *report, struct figure *figure)
{
    const struct serving_curve *curve = report->curve;
    struct figure_panel *panel =
        figure_panel(figure, "load (requests/s)", "energy ({J} per output token, estimated)");
    struct figure_series *band =
        figure_series(figure, panel, FIGURE_BAND, FIGURE_SKY_BLUE, "one standard deviation");
    struct figure_series *line =
        figure_series(figure, panel, FIGURE_MARKED, FIGURE_BLUE, "energy per token");
    panel->y.from_zero = panel->x.from_zero = true;
    for (size_t i = 0; i < curve->count; i++) {
        double rate = curve->points[i].rate, each = curve->points[i].mid.joules_per_token;
        series_add3(band, rate, each * fmax(0, 1 - report->relative_j),
                    each * (1 + report->relative_j));
        series_add2(line, rate, each);
    }
    if (curve->largest.rate > 0)
        draw_vertical(figure, panel, FIGURE_GREEN, curve->largest.rate,
                      curve->points[0].mid.joules_per_token, "largest load that meets the SLO");
}

static void put_latencies(const struct serving_curve *curve, struct figure *figure)
{
    struct figure_panel *panel = figure_panel(figure, "load (requests/s)", "latency ({s})");
    struct figure_series *lines[] = {
        figure_series(figure, panel, FIGURE_LINE, FIGURE_ORANGE, "TTFT p50"),
        figure_series(figure, panel, FIGURE_DOTTED, FIGURE_ORANGE, "TTFT p95"),
        figure_series(figure, panel, FIGURE_LINE, FIGURE_PURPLE, "ITL p50"),
        figure_series(figure, panel, FIGURE_DOTTED, FIGURE_PURPLE, "ITL p95"),
    };
    panel->y.log_base = 10;
    panel->x.from_zero = true;
    for (size_t i = 0; i < curve->count; i++) {
        const struct serving_result *mid = &curve->points[i].mid;
        for (size_t k = 0; k < 2; k++) {
            series_add2(lines[k], curve->points[i].rate, mid->ttft_s.at[k]);
            series_add2(lines[2 + k], curve->points[i].rate, mid->itl_s.at[k]);
        }
    }
}

enum err serving_figure(const struct serving_report *report, struct figure *figure,
                        struct error *why)
{
    const struct serving_curve *curve = report->curve;
    if (!is_known(curve->points[0].mid.joules_per_token))
        return err_set(why, ERR_NO_DATA, "energy on %.60s is unknown: nothing to plot",
                       report->hardware->id);
    str_format(figure->title, sizeof figure->title, "%.100s on %.100s: energy per token by load",
               report->spec->model->name, report->hardware->name);
    str_format(figure->note, sizeof figure->note,
               "%zu requests of %.0f prompt and %.0f output tokens on average; simulated, not "
               "measured",
               report->load->count, report->load->mean_input, report->load->mean_output);
    put_energy(report, figure);
    put_latencies(curve, figure);
    figure->height = 700;
    if (!figure_finish(figure))
        return err_set(why, ERR_NO_DATA, "nothing to plot");
    return ERR_OK;
}
