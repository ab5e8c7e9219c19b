#include "report/plot/estimate_figure.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "report/text/estimate_consumers.h"
#include "report/text/estimate_words.h"
#include "report/plot/figure.h"

/* ---- one ---- */

enum { BARS_MOST = 12, TIMELINE_HEIGHT = 220 };

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
                     const struct estimate_report *report, const struct consumer *row)
{
    char name[CONSUMER_NAME_MOST + 64];
    const char *phase = row->first->phase == GRAPH_DECODE ? "decode" : "prefill";
    bool phases = report->outcome->work->spec.is_request;
    str_format(name, sizeof name, "%s%s%s", row->name, phases ? ", " : "", phases ? phase : "");
    figure_name(figure, &panel->y, name);
}

static void put_heading(struct figure *figure, const struct workload_estimate *outcome)
{
    char words[WORDS_MAX], each[WORDS_MAX], unit[WORDS_MAX];
    double units = outcome->work->units;
    str_format(figure->title, sizeof figure->title, "%s on %s", outcome->work->spec.model->name,
               outcome->hardware->name);
    words_joules(each, outcome->all.joules.total / units, outcome->all.joules_plus_minus / units);
    str_format(figure->note, sizeof figure->note, "%.100s; %.60s %.40s, estimated, not measured",
               words_setting(words, outcome), each, words_each(unit, outcome->work->unit));
}

/* What lies in memory beside weights and cache, from subgraph to subgraph. */
static void put_timeline(const struct workload_estimate *outcome, struct figure *figure)
{
    const struct partition *partition = workload_estimate_timeline_partition(outcome);
    if (!partition || partition->count < 2)
        return;
    double mib = 1024.0 * 1024, unit = outcome->memory.activations_peak < mib ? 1024 : mib;
    struct figure_panel *panel =
        figure_panel(figure, "subgraph, in the order in which they run",
                     unit < mib ? "activations (KiB)" : "activations (MiB)");
    struct figure_series *series = figure_series(figure, panel, FIGURE_STEPS, FIGURE_GREEN, "");
    str_copy(panel->title, sizeof panel->title, "memory in use beside weights and cache");
    panel->y.from_zero = panel->x.whole = true;
    for (size_t i = 0; i < partition->count; i++)
        series_add2(series, (double)i, outcome->memory.timeline[i] / unit);
    series_add2(series, (double)partition->count,
                outcome->memory.timeline[partition->count - 1] / unit);
    panel->weight = TIMELINE_HEIGHT;
}

enum err estimate_figure(const struct estimate_report *report, struct figure *figure,
                         struct error *why)
{
    size_t count;
    if (!is_known(report->outcome->all.joules.total)) /* bars of a part would look like all */
        return err_set(why, ERR_NO_DATA, "joules on %.60s are not known: there is nothing to draw",
                       report->outcome->hardware->id);
    struct consumer *rows = consumers_of(report, &count);
    if (!rows)
        return err_set(why, ERR_NO_MEMORY, "out of memory");
    bool is_small = count && rows[0].joules.total < 1;
    struct figure_panel *panel =
        figure_panel(figure, is_small ? "energy (mJ, estimated)" : "energy (J, estimated)", "");
    struct bars bars = {
        .compute = figure_series(figure, panel, FIGURE_BOXES, FIGURE_ORANGE, "compute"),
        .memory = figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "memory"),
        .link = figure_series(figure, panel, FIGURE_BOXES, FIGURE_PURPLE,
                              report->outcome->all.joules.link > 0 ? "link" : ""),
        .idle = figure_series(figure, panel, FIGURE_BOXES, FIGURE_SKY, "static"),
    };
    put_heading(figure, report->outcome);
    panel->x.from_zero = true;
    panel->y.down = true;
    if (count > BARS_MOST)
        count = BARS_MOST;
    for (size_t i = 0; i < count; i++) {
        name_bar(figure, panel, report, &rows[i]);
        put_bar(&bars, (double)i, &rows[i].joules, is_small ? 1e-3 : 1);
    }
    panel->weight = fmax(400, 170 + 34 * (double)count);
    put_timeline(report->outcome, figure);
    figure->height = 0;
    for (size_t i = 0; i < figure->panel_count; i++)
        figure->height += figure->panels[i].weight;
    free(rows);
    return ERR_OK;
}

/* ---- many ---- */

enum { DEVICES_NAMED = 14 };

static bool is_drawn(const struct grid_point *point)
{
    return !point->missing[0] && workload_estimate_fits(&point->outcome);
}

/* Devices in the order of their best; those beyond the first ones share a faint series. */
static size_t rank_devices(const struct estimate_grid *points, size_t *order, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < points->count && count < most; i++) {
        bool is_new = is_drawn(&points->items[i]);
        for (size_t k = 0; is_new && k < count; k++)
            is_new = order[k] != points->items[i].device;
        if (is_new)
            order[count++] = points->items[i].device;
    }
    return count;
}

static void put_devices(const struct points_report *report, struct figure *figure,
                        struct figure_panel *panel)
{
    const struct estimate_grid *points = report->points;
    size_t order[DEVICES_NAMED];
    size_t named = rank_devices(points, order, DEVICES_NAMED);
    struct figure_series *series[DEVICES_NAMED + 1] = {NULL};
    for (size_t k = 0; k < named; k++) {
        series[k] =
            figure_series(figure, panel, FIGURE_POINTS, (enum figure_colour)(k % FIGURE_INK),
                          report->hardware[order[k]].id);
        series[k]->round = (unsigned)(k / FIGURE_INK);
    }
    series[named] = figure_series(figure, panel, FIGURE_POINTS, FIGURE_INK,
                                  named == DEVICES_NAMED ? "others" : "");
    for (size_t i = 0; i < points->count; i++) {
        const struct grid_point *point = &points->items[i];
        size_t k = 0;
        while (k < named && order[k] != point->device)
            k++;
        if (is_drawn(point))
            series_add3(series[k], 1e3 * point->outcome.all.latency_s,
                        1e3 * workload_estimate_joules_per_unit(&point->outcome),
                        k < named ? 1 : 0);
    }
}

/* The points stand in the order of joules, so those on the frontier get faster the more they cost. */
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
        double x = 1e3 * point->outcome.all.latency_s;
        double y = 1e3 * workload_estimate_joules_per_unit(&point->outcome);
        if (is_known(before)) /* between two of them nothing is as cheap and as fast */
            series_add2(line, before, y);
        series_add2(line, x, y);
        before = x;
    }
}

/* Do prompts or contexts differ?  Then what they cost is the question. */
static bool differ(const struct estimate_grid *points, bool in_context)
{
    struct workload_demand first = workload_demand(&points->works[0].spec);
    for (size_t i = 1; i < points->work_count; i++) {
        struct workload_demand demand = workload_demand(&points->works[i].spec);
        if (in_context ? demand.context != first.context : demand.prompt != first.prompt)
            return true;
    }
    return false;
}

/* Do answers differ in length?  If not, a longer prompt is all that a longer context is. */
static bool answers_differ(const struct estimate_grid *points)
{
    for (size_t i = 1; i < points->work_count; i++)
        if (points->works[i].spec.output_tokens != points->works[0].spec.output_tokens)
            return true;
    return false;
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
    str_copy(figure->note, sizeof figure->note,
             "every device, format and batch that fits; estimated, not measured");
    put_devices(report, figure, panel);
    put_frontier(report->points, figure, panel);
    figure->height = 600;
    if (!figure_drop_empty(figure))
        return err_set(why, ERR_NO_DATA,
                       "nothing fits on a device with known joules: there is nothing to draw");
    return ERR_OK;
}

enum err points_figure(const struct points_report *report, struct figure *figure, struct error *why)
{
    const struct estimate_grid *points = report->points;
    bool prompts = differ(points, false), contexts = differ(points, true);
    if (prompts || contexts)
        return points_length_figure(report, contexts && (!prompts || answers_differ(points)),
                                    figure, why);
    return latency_figure(report, figure, why);
}
