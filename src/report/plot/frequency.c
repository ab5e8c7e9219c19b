/* Energy, time and their products (EDP, ED2P) against the clock frequency, or another knob of a sweep: a panel each, with
 * the minimum marked. */
#include <math.h>
#include <stdint.h>

#include "analysis/across.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/format.h"

/* lowest: label of the minimum; NULL: not marked.  weight: height of its panel. */
static const struct measure {
    const char *name, *unit, *lowest;
    enum figure_color color;
    double weight;
} MEASURES[CLOCK_MEASURES] = {
    [CLOCK_ENERGY] = {"energy", "J", "lowest energy", FIGURE_BLUE, 1.05},
    [CLOCK_TIME] = {"time", "s", NULL, FIGURE_ORANGE, 0.95},
    [CLOCK_EDP] = {"EDP", "J·s", "lowest EDP", FIGURE_PURPLE, 1.05},
    [CLOCK_ED2P] = {"ED²P", "J·s²", "lowest ED²P", FIGURE_VERMILION, 1.25},
};

static void put_mark(struct figure_series *marks, const struct clock_setting *setting,
                     enum clock_measure which)
{
    double value = setting->values[which];
    double error = setting->errors[which];
    error = known_or(error, 0);
    series_add4(marks, setting->x, value, fmax(value - error, 0), value + error);
}

/* Several runs at one setting: the line passes through their mean. */
static void put_line(struct figure_series *line, const struct clock_settings *settings,
                     enum clock_measure which)
{
    for (size_t from = 0; from < settings->count;) {
        double x, value;
        from = clock_settings_mean(settings, which, from, &x, &value);
        series_add2(line, x, value);
    }
}

/* Named in the legend, so that it covers no line. */
static void put_lowest(struct figure *figure, struct figure_panel *panel,
                       const struct clock_settings *settings, enum clock_measure which)
{
    const struct clock_setting *lowest = clock_settings_lowest(settings, which);
    char value[FORMAT_MAX], at[96], name[FIGURE_TEXT_MAX];
    format_with_error(value, lowest->values[which], lowest->errors[which], MEASURES[which].unit);
    if (settings->knob)
        chars_format(at, "%.60s = %g", settings->knob, lowest->x);
    else
        chars_format(at, "%.0f MHz", lowest->x);
    chars_format(name, "%s: %s at %s", MEASURES[which].lowest, value, at);
    put_mark(figure_series(figure, panel, FIGURE_ERRORS_Y, FIGURE_GREEN, name), lowest, which);
}

static void put_measure(struct figure *figure, const struct clock_settings *settings,
                        enum clock_measure which)
{
    const struct measure *measure = &MEASURES[which];
    char label[80];
    chars_format(label, "%s ({%s} per %s)", measure->name, measure->unit, settings->each);
    struct figure_panel *panel = figure_panel(figure, settings->label, label);
    panel->x.hidden = which < CLOCK_MEASURES - 1;
    if (panel->x.hidden)
        panel->x.label[0] = '\0';
    panel->y.from_zero = true;
    panel->weight = measure->weight;
    put_line(figure_series(figure, panel, FIGURE_LINE, measure->color, ""), settings, which);
    struct figure_series *marks = figure_series(figure, panel, FIGURE_ERRORS_Y, measure->color, "");
    for (size_t i = 0; i < settings->count; i++)
        put_mark(marks, &settings->items[i], which);
    if (measure->lowest)
        put_lowest(figure, panel, settings, which);
}

/* "20 queries each", or "10 to 20": runs with different numbers of queries are not exactly comparable. */
static void put_queries(const struct clock_settings *settings, char *to, size_t size)
{
    size_t min = SIZE_MAX, max = 0;
    for (size_t i = 0; i < settings->count; i++) {
        const struct run_point *point = &settings->items[i].run->point;
        size_t completed = point->queries - point->failed;
        min = completed < min ? completed : min;
        max = completed > max ? completed : max;
    }
    const char *units = settings->items[0].run->is_command ? "runs" : "queries";
    if (min == max)
        str_format(to, size, "%zu %s each", max, max == 1 ? settings->each : units);
    else
        str_format(to, size, "%zu to %zu %s each", min, max, units);
}

static void put_heading(struct figure *figure, const struct plot_source *source,
                        const struct clock_settings *settings)
{
    const struct run_point *point = &source->runs[0].point;
    size_t left_out = source->run_count - settings->count;
    char queries[64];
    put_queries(settings, queries, sizeof queries);
    chars_format(figure->title, "Energy, time, EDP and ED²P against the clock: %.100s",
                 point->model);
    figure_note(figure, "%zu runs%s%.30s%s%.30s, %s", settings->count,
                point->dataset[0] ? " of " : "", point->dataset, point->hardware[0] ? " on " : "",
                point->hardware, queries);
    if (left_out)
        figure_note(figure, "%zu without clock or energy excluded", left_out);
    figure_note_energy(figure, source->runs[0].method, source->common.common);
    figure_note_bars(figure, "bars and ±", source->runs, source->run_count, &source->common);
}

/* The knob, the number of attempts, and exclusions. */
static void put_sweep_heading(struct figure *figure, const struct clock_settings *settings)
{
    chars_format(figure->title, "Energy, time, EDP and ED²P against %s%.40s: %.80s",
                 settings->knob ? "" : "the clock", text_or_empty(settings->knob),
                 settings->application);
    figure_note(figure, "sweep of %zu settings%s%.40s, %zu attempts", settings->count,
                settings->device[0] ? " on " : "", settings->device, settings->measurements);
    if (settings->excluded[0])
        figure_note(figure, "excluded: %s", settings->excluded);
    figure_note_energy(figure, settings->method, UNKNOWN);
    figure_note(figure, "bars and ±: 95 %% CI of repeats");
}

static void put_curve_heading(struct figure *figure, const struct clock_settings *settings)
{
    chars_format(figure->title, "Energy, time, EDP and ED²P against the clock%s%.60s",
                 settings->application[0] ? ": " : "", settings->application);
    figure_note(figure, "%zu clocks%s%.40s, medians of %zu runs", settings->count,
                settings->device[0] ? " on " : "", settings->device, settings->measurements);
    figure_note(figure, "measured elsewhere; bars and ±: 95 %% CI of repeats");
}

static enum err find_settings(const struct plot_source *source, struct clock_settings *out,
                              struct error *why)
{
    if (source->sweep)
        return clock_settings_of_sweep(source->sweep, out, why);
    if (source->curve)
        return clock_settings_of_curve(source->curve, out, why);
    return clock_settings_of_runs(source->runs, source->run_count, out, why);
}

static enum err draw_frequency(const struct plot_source *source, struct figure *figure,
                               struct error *why)
{
    struct clock_settings settings = {0};
    enum err err = find_settings(source, &settings, why);
    if (!err) {
        if (source->sweep)
            put_sweep_heading(figure, &settings);
        else if (source->curve)
            put_curve_heading(figure, &settings);
        else
            put_heading(figure, source, &settings);
        figure->height = 960;
        for (enum clock_measure which = CLOCK_ENERGY; which < CLOCK_MEASURES; which++)
            put_measure(figure, &settings, which);
    }
    clock_settings_release(&settings);
    return err;
}

const struct plot_driver plot_frequency = {
    .name = "frequency",
    .summary = "runs, a sweep or --input: energy, time, EDP and ED2P against the clock",
    .of = PLOT_OF_RUNS | PLOT_OF_SWEEP | PLOT_OF_CURVE,
    .draw = draw_frequency,
};
