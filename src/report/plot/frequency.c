/* Energy, time and their products (EDP, ED2P) against the clock frequency: of runs that differ in nothing else, or of
 * the settings of a sweep, or over measurements at clocks that were imported.  The clock of a run is that of its
 * busiest GPU, or of the CPU, while requests ran: from its samples.  That of a sweep is the setting, or another knob
 * that was swept. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "metrics/efficiency.h"
#include "power/freq_points.h"
#include "power/sweep_points.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/format.h"
#include "rundir/samples.h"
#include "rundir/spans.h"

struct busy_clock {
    double mhz; /* mean while requests were in flight */
    bool is_cpu;
};

/* ---- when requests ran ---- */

/* Disjoint intervals of one start, in order, with at least one request in flight. */
struct interval {
    double from, to, before; /* before: seconds of the preceding ones */
};

struct busy {
    struct interval *items;
    size_t count;
};

/* From sorted spans of one start. */
static void find_intervals(const struct span *spans, size_t count, struct busy *out)
{
    out->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct interval *last = out->count ? &out->items[out->count - 1] : NULL;
        if (spans[i].to <= spans[i].from)
            continue;
        if (last && spans[i].from <= last->to)
            last->to = fmax(last->to, spans[i].to);
        else
            out->items[out->count++] = (struct interval){
                spans[i].from, spans[i].to, last ? last->before + last->to - last->from : 0};
    }
}

/* Seconds with requests in flight, up to t. */
static double busy_until(const struct busy *busy, double t)
{
    size_t low = 0, high = busy->count; /* those before `low` start by t, those from `high` later */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (busy->items[middle].from <= t)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    const struct interval *at = &busy->items[low - 1];
    return at->before + fmin(t, at->to) - at->from;
}

/* ---- means ---- */

/* A clock or utilization, over the time with requests in flight. */
struct gauge {
    char sensor[64], device[128];
    bool is_clock;
    double t, sum;          /* of the previous sample; t is UNKNOWN at the start */
    double seconds, amount; /* with requests in flight: covered time, and value times time */
};

struct gauges {
    struct gauge *items;
    size_t count, capacity;
    struct busy busy; /* of the current start */
};

static struct gauge *gauge_of(struct gauges *all, const struct sample *sample, bool is_clock)
{
    for (size_t i = 0; i < all->count; i++) {
        struct gauge *gauge = &all->items[i];
        if (gauge->is_clock == is_clock && strcmp(gauge->device, sample->device) == 0 &&
            strcmp(gauge->sensor, sample->sensor) == 0)
            return gauge;
    }
    struct gauge *items = grow(all->items, &all->capacity, all->count, sizeof *items);
    if (!items)
        return NULL;
    all->items = items;
    struct gauge *gauge = &items[all->count++];
    *gauge = (struct gauge){.is_clock = is_clock, .t = UNKNOWN};
    str_copy(gauge->sensor, sizeof gauge->sensor, sample->sensor);
    str_copy(gauge->device, sizeof gauge->device, sample->device);
    return gauge;
}

static enum err take(void *context, const struct sample *sample)
{
    struct gauges *all = context;
    bool is_clock = strcmp(sample->quantity, quantity_name(QTY_CLOCK)) == 0;
    bool is_one = is_clock || strcmp(sample->quantity, quantity_name(QTY_UTILIZATION)) == 0;
    if (!is_one || !is_known(sample->sum))
        return ERR_OK;
    struct gauge *gauge = gauge_of(all, sample, is_clock);
    if (!gauge)
        return ERR_NO_MEMORY;
    double passed = sample->t_s - gauge->t; /* UNKNOWN for the first: comparisons are false */
    if (passed > 0 && sample->covered > 0) {
        double share =
            (busy_until(&all->busy, sample->t_s) - busy_until(&all->busy, gauge->t)) / passed;
        gauge->seconds += share * sample->covered * passed;
        gauge->amount += share * (sample->sum - gauge->sum);
    }
    gauge->t = sample->t_s;
    gauge->sum = sample->sum;
    return ERR_OK;
}

static double mean_of(const struct gauge *gauge)
{
    return gauge->seconds > 0 ? gauge->amount / gauge->seconds : UNKNOWN;
}

/* All starts in sequence; a start without samples is skipped. */
static enum err read_gauges(const char *directory, const struct spans *spans, struct gauges *all,
                            struct error *why)
{
    const struct samples_query query = {.kind = SAMPLES_GAUGES};
    struct samples_found found;
    bool any = false;
    for (size_t from = 0, to; from < spans->count; from = to) {
        unsigned start = spans->items[from].start;
        struct error missing = {0};
        for (to = from; to < spans->count && spans->items[to].start == start;)
            to++;
        for (size_t i = 0; i < all->count; i++)
            all->items[i].t = UNKNOWN;
        find_intervals(spans->items + from, to - from, &all->busy);
        enum err err = samples_read(directory, start, &query, take, all, &found, &missing);
        if (err && err != ERR_NOT_FOUND)
            return err_set(why, err, "%s", missing.text);
        if (err && from == 0)
            err_set(why, ERR_NO_DATA, "the run has no samples");
        any = any || !err;
    }
    return any ? ERR_OK : ERR_NO_DATA;
}

/* ---- device of the clock ---- */

static bool is_cpu(const struct gauge *gauge)
{
    return strcmp(gauge->device, "host") == 0 || str_starts(gauge->device, "cpu");
}

/* UNKNOWN if no sensor reports it. */
static double utilization_of(const struct gauges *all, const char *device)
{
    double max = UNKNOWN;
    for (size_t i = 0; i < all->count; i++)
        if (!all->items[i].is_clock && strcmp(all->items[i].device, device) == 0)
            max = fmax(max, mean_of(&all->items[i]));
    return max;
}

static enum err choose(const struct gauges *all, struct busy_clock *out, struct error *why)
{
    double busiest = -1; /* below unknown (-0.5), which is below any known utilization */
    size_t clocks = 0, idle = 0;
    *out = (struct busy_clock){.mhz = UNKNOWN};
    for (size_t i = 0; i < all->count; i++) {
        const struct gauge *gauge = &all->items[i];
        double busy = utilization_of(all, gauge->device);
        clocks += gauge->is_clock;
        if (!gauge->is_clock || !(mean_of(gauge) > 0))
            continue;
        if (is_cpu(gauge)) {
            if (!is_known(out->mhz))
                *out = (struct busy_clock){mean_of(gauge), true};
            continue;
        }
        idle += busy == 0;
        busy = is_known(busy) ? busy : -0.5;
        if (busy == 0 || busy <= busiest)
            continue;
        busiest = busy;
        *out = (struct busy_clock){mean_of(gauge), false};
    }
    if (is_known(out->mhz))
        return ERR_OK;
    if (!clocks)
        return err_set(why, ERR_NO_DATA, "no device's clock is among the samples");
    if (!idle)
        return err_set(why, ERR_NO_DATA, "no clock was read while requests ran");
    return err_set(why, ERR_NO_DATA,
                   "no GPU was active while requests ran, and the CPU's clock is unknown");
}

static enum err busy_clock_read(const char *directory, struct busy_clock *out, struct error *why)
{
    struct spans spans;
    struct gauges all = {0};
    enum err err = spans_load_requests(directory, &spans, why);
    if (!err) {
        all.busy.items = malloc(spans.count * sizeof *all.busy.items);
        err = all.busy.items ? read_gauges(directory, &spans, &all, why) : err_no_memory(why);
    }
    if (!err)
        err = choose(&all, out, why);
    free(all.busy.items);
    free(all.items);
    spans_release(&spans);
    return err;
}

/* Clocks within this relative difference are the same setting: means of samples are never equal. */
#define SAME_CLOCK 0.01

enum { ENERGY, TIME, EDP, ED2P, MEASURE_COUNT };

/* A run at its clock, or a setting of a sweep. */
struct setting {
    const struct run_figures *run; /* NULL: of a sweep */
    double x;                      /* the clock in MHz, or another knob of a sweep */
    bool is_cpu;
    double values[MEASURE_COUNT], errors[MEASURE_COUNT]; /* errors: 95 % */
};

/* Settings that can be drawn; for the others, the first with its reason. */
struct settings {
    struct setting *items;
    size_t count;
    const char *missing;
    struct error why;
    const char *each; /* "query", "run" */
    const char *knob; /* knob of a sweep other than the clock; NULL: the clock */
    char label[120];  /* of the x axis */
    double same;      /* settings within this relative difference are one */
};

/* ---- comparability ---- */

static enum err differing(const char *what, const char *one, const char *other, struct error *why)
{
    return err_set(why, ERR_NO_DATA, "the runs differ in more than the clock: %s %.60s and %.60s",
                   what, one[0] ? one : "unknown", other[0] ? other : "unknown");
}

static enum err check_same(const struct plot_source *source, struct error *why)
{
    const struct run_point *first = &source->runs[0].point;
    for (size_t i = 1; i < source->run_count; i++) {
        const struct run_point *point = &source->runs[i].point;
        char one[FORMAT_MAX], other[FORMAT_MAX];
        if (strcmp(point->model, first->model) != 0)
            return differing("models", first->model, point->model, why);
        if (strcmp(point->dataset, first->dataset) != 0)
            return differing("datasets", first->dataset, point->dataset, why);
        if (strcmp(point->hardware, first->hardware) != 0)
            return differing("machines", first->hardware, point->hardware, why);
        if (point->concurrency == first->concurrency ||
            (!is_known(point->concurrency) && !is_known(first->concurrency)))
            continue;
        str_format(one, sizeof one, "%g", first->concurrency);
        str_format(other, sizeof other, "%g", point->concurrency);
        return differing("concurrency", is_known(first->concurrency) ? one : "",
                         is_known(point->concurrency) ? other : "", why);
    }
    return ERR_OK;
}

static int by_clock(const void *a, const void *b)
{
    double x = ((const struct setting *)a)->x, y = ((const struct setting *)b)->x;
    return (x > y) - (x < y);
}

static enum err read_setting(const struct run_figures *run, struct settings *out, struct error *why)
{
    struct busy_clock clock;
    if (!(run->point.joules_per_query > 0) || !(run->seconds_per_query > 0))
        return err_set(why, ERR_NO_DATA, "energy or time per query is unknown");
    enum err err = busy_clock_read(run->point.directory, &clock, why);
    if (!err)
        out->items[out->count++] = (struct setting){
            run,
            clock.mhz,
            clock.is_cpu,
            {run->point.joules_per_query, run->seconds_per_query, run->edp, run->ed2p},
            {run->joules_per_query_error, run->seconds_per_query_error, run->edp_error,
             run->ed2p_error}};
    return err;
}

static enum err read_settings(const struct plot_source *source, struct settings *out,
                              struct error *why)
{
    for (size_t i = 0; i < source->run_count; i++) {
        struct error reason = {0};
        enum err err = read_setting(&source->runs[i], out, &reason);
        if (err && err != ERR_NO_DATA)
            return err_set(why, err, "%s", reason.text);
        if (err && !out->missing) {
            out->missing = source->runs[i].point.directory;
            out->why = reason;
        }
    }
    if (out->count < 2)
        return err_set(why, ERR_NO_DATA,
                       "%zu of %zu runs have a clock, and energy and time per query; %s: %s",
                       out->count, source->run_count, out->why.text, out->missing);
    qsort(out->items, out->count, sizeof *out->items, by_clock);
    out->same = SAME_CLOCK;
    out->each = source->runs[0].is_command ? "run" : "query";
    str_format(out->label, sizeof out->label, "mean %s clock while %s ran (MHz)",
               out->items[0].is_cpu ? "CPU" : "GPU",
               source->runs[0].is_command ? "the command" : "requests");
    return ERR_OK;
}

static enum err check_clocks(const struct settings *settings, struct error *why)
{
    double min = settings->items[0].x, max = settings->items[settings->count - 1].x;
    for (size_t i = 1; i < settings->count; i++)
        if (settings->items[i].is_cpu != settings->items[0].is_cpu)
            return err_set(
                why, ERR_NO_DATA, "some runs have a GPU's clock, others the CPU's: %s and %s",
                settings->items[0].run->point.directory, settings->items[i].run->point.directory);
    if (max - min <= SAME_CLOCK * max)
        return err_set(why, ERR_NO_DATA,
                       "the clocks of the runs do not differ: %.0f to %.0f MHz, within %g %%", min,
                       max, 100 * SAME_CLOCK);
    return ERR_OK;
}

/* ---- of a sweep ---- */

/* The knob for the x axis: the clock, else the first with numeric values that differ.  If another knob differs, too,
 * the plot would mix settings. */
static enum err choose_knob(const struct sweep_points *points, size_t *out, struct error *why)
{
    const struct sweep *sweep = &points->sweep;
    size_t chosen = points->clock >= 0 ? (size_t)points->clock : sweep->knob_count;
    for (size_t k = 0; k < sweep->knob_count; k++) {
        double value;
        bool differs = false, numbers = true;
        for (size_t p = 0; p < sweep->point_count; p++) {
            const char *text = sweep->values[p * sweep->knob_count + k];
            differs |= strcmp(text, sweep->values[k]) != 0;
            numbers &= parse_double(text, &value) == ERR_OK;
        }
        if (!differs || k == chosen)
            continue;
        if (chosen < sweep->knob_count)
            return err_set(why, ERR_NO_DATA,
                           "the sweep has two knobs, %.40s and %.40s: `ipw report` shows it",
                           sweep->knobs[chosen], sweep->knobs[k]);
        if (!numbers)
            return err_set(why, ERR_NO_DATA,
                           "the values of knob %.40s are not numbers: `ipw report` shows it",
                           sweep->knobs[k]);
        chosen = k;
    }
    *out = chosen;
    return chosen < sweep->knob_count
               ? ERR_OK
               : err_set(why, ERR_NO_DATA, "no knob of the sweep has values that differ");
}

/* From the repeats; sensor error is common to all settings, and not included. */
static struct setting setting_of(const struct sweep_figures *figures, double x)
{
    struct setting setting = {.x = x};
    double energy = ratio(figures->independent, figures->joules),
           time = ratio(figures->seconds_error, figures->seconds);
    for (int n = 0; n < 3; n++) {
        size_t at = n == 0 ? ENERGY : n == 1 ? EDP : ED2P;
        setting.values[at] = energy_delay_product(figures->joules, figures->seconds, n);
        setting.errors[at] = NORMAL_95 * setting.values[at] * hypot(energy, n ? n * time : 0);
    }
    setting.values[TIME] = figures->seconds;
    setting.errors[TIME] = NORMAL_95 * figures->seconds_error;
    return setting;
}

static enum err read_sweep(const struct sweep_points *points, struct settings *out,
                           struct error *why)
{
    const struct sweep *sweep = &points->sweep;
    size_t knob = 0;
    enum err err = choose_knob(points, &knob, why);
    if (err)
        return err;
    for (size_t p = 0; p < sweep->point_count; p++) {
        struct sweep_figures figures = sweep_points_figures(points, p, NULL);
        double x; /* a clock at its default is unknown */
        if (!figures.measured || parse_double(sweep->values[p * sweep->knob_count + knob], &x))
            continue;
        out->items[out->count++] = setting_of(&figures, x);
    }
    if (out->count < 2)
        return err_set(why, ERR_NO_DATA, "%zu of %zu settings of the sweep were measured",
                       out->count, sweep->point_count);
    qsort(out->items, out->count, sizeof *out->items, by_clock);
    out->each = points->is_per_query ? "query" : "run";
    out->knob = (long)knob == points->clock ? NULL : sweep->knobs[knob];
    str_format(out->label, sizeof out->label, "%.80s",
               out->knob ? out->knob : "GPU clock, as set (MHz)");
    return ERR_OK;
}

/* ---- of imported measurements ---- */

/* Medians of the runs at a clock. */
static enum err read_curve(const struct freq_curve *curve, struct settings *out, struct error *why)
{
    for (size_t i = 0; i < curve->count; i++) {
        const struct freq_sample *sample = &curve->samples[i];
        double runs = sqrt((double)sample->runs);
        struct sweep_figures figures = {
            .joules = sample->energy_j,
            .seconds = sample->time_s,
            .independent = sample->energy_j * sample->energy_scatter / runs,
            .seconds_error = sample->time_s * sample->time_scatter / runs};
        if (sample->energy_j > 0 && sample->time_s > 0)
            out->items[out->count++] = setting_of(&figures, sample->freq_mhz);
    }
    if (out->count < 2)
        return err_set(why, ERR_NO_DATA, "%zu usable clocks with energy and time", out->count);
    out->each = "run";
    str_format(out->label, sizeof out->label, "GPU clock (MHz)");
    return ERR_OK;
}

/* ---- drawing ---- */

/* lowest: label of the minimum; NULL: not marked.  weight: height of its panel. */
static const struct measure {
    const char *name, *unit, *lowest;
    enum figure_color color;
    double weight;
} MEASURES[MEASURE_COUNT] = {
    [ENERGY] = {"energy", "J", "lowest energy", FIGURE_BLUE, 1.05},
    [TIME] = {"time", "s", NULL, FIGURE_ORANGE, 0.95},
    [EDP] = {"EDP", "J·s", "lowest EDP", FIGURE_PURPLE, 1.05},
    [ED2P] = {"ED²P", "J·s²", "lowest ED²P", FIGURE_VERMILION, 1.25},
};

static void put_mark(struct figure_series *marks, const struct setting *setting, size_t which)
{
    double value = setting->values[which], error = setting->errors[which];
    error = is_known(error) ? error : 0;
    series_add4(marks, setting->x, value, fmax(value - error, 0), value + error);
}

/* Several runs at one setting: the line passes through their mean. */
static void put_line(struct figure_series *line, const struct settings *settings, size_t which)
{
    for (size_t from = 0, to; from < settings->count; from = to) {
        double x = 0, value = 0;
        for (to = from; to < settings->count &&
                        (to == from ||
                         settings->items[to].x <= (1 + settings->same) * settings->items[from].x);
             to++) {
            x += settings->items[to].x;
            value += settings->items[to].values[which];
        }
        series_add2(line, x / (double)(to - from), value / (double)(to - from));
    }
}

/* Named in the legend, so that it covers no line. */
static void put_lowest(struct figure *figure, struct figure_panel *panel,
                       const struct settings *settings, size_t which)
{
    const struct setting *lowest = &settings->items[0];
    char value[FORMAT_MAX], at[96], name[FIGURE_TEXT_MAX];
    for (size_t i = 1; i < settings->count; i++)
        if (settings->items[i].values[which] < lowest->values[which])
            lowest = &settings->items[i];
    format_with_error(value, lowest->values[which], lowest->errors[which], MEASURES[which].unit);
    if (settings->knob)
        str_format(at, sizeof at, "%.60s = %g", settings->knob, lowest->x);
    else
        str_format(at, sizeof at, "%.0f MHz", lowest->x);
    str_format(name, sizeof name, "%s: %s at %s", MEASURES[which].lowest, value, at);
    put_mark(figure_series(figure, panel, FIGURE_ERRORS_Y, FIGURE_GREEN, name), lowest, which);
}

static void put_measure(struct figure *figure, const struct settings *settings, size_t which)
{
    const struct measure *measure = &MEASURES[which];
    char label[80];
    str_format(label, sizeof label, "%s ({%s} per %s)", measure->name, measure->unit,
               settings->each);
    struct figure_panel *panel = figure_panel(figure, settings->label, label);
    panel->x.hidden = which < MEASURE_COUNT - 1;
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
static void put_queries(const struct settings *settings, char *to, size_t size)
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
                        const struct settings *settings)
{
    const struct run_point *point = &source->runs[0].point;
    size_t left_out = source->run_count - settings->count;
    char queries[64];
    put_queries(settings, queries, sizeof queries);
    str_format(figure->title, sizeof figure->title,
               "Energy, time, EDP and ED²P against the clock: %.100s", point->model);
    figure_note(figure, "%zu runs%s%.30s%s%.30s, %s", settings->count,
                point->dataset[0] ? " of " : "", point->dataset, point->hardware[0] ? " on " : "",
                point->hardware, queries);
    if (left_out)
        figure_note(figure, "%zu without clock or energy excluded", left_out);
    figure_note_energy(figure, source->runs[0].method, source->common.common);
    figure_note(figure, "bars and ±: 95 %% CI%s",
                source->common.sensors == UNCERTAINTY_MIXED ? ", sensors included" : "");
}

/* The knob, the number of attempts, and exclusions. */
static void put_sweep_heading(struct figure *figure, const struct sweep_points *points,
                              const struct settings *settings)
{
    const struct sweep_measurement *first = &points->items[0];
    size_t used = sweep_points_excluded(points, SWEEP_USED);
    char left_out[160];
    for (size_t i = 0; i < points->sweep.count && first->exclusion; i++)
        first = &points->items[i];
    sweep_points_exclusions(points, left_out, sizeof left_out);
    str_format(figure->title, sizeof figure->title,
               "Energy, time, EDP and ED²P against %s%.40s: %.80s",
               settings->knob ? "" : "the clock", settings->knob ? settings->knob : "",
               first->application);
    figure_note(figure, "sweep of %zu settings%s%.40s, %zu attempts", settings->count,
                first->gpu[0] ? " on " : "", first->gpu, used);
    if (left_out[0])
        figure_note(figure, "excluded: %s", left_out);
    figure_note_energy(figure, sweep_points_is_estimated(points) ? "estimated" : first->method,
                       UNKNOWN);
    figure_note(figure, "bars and ±: 95 %% CI of repeats");
}

static void put_curve_heading(struct figure *figure, const struct freq_curve *curve,
                              const struct settings *settings)
{
    size_t runs = 0;
    for (size_t i = 0; i < curve->count; i++)
        runs += curve->samples[i].runs;
    str_format(figure->title, sizeof figure->title,
               "Energy, time, EDP and ED²P against the clock%s%.60s",
               curve->application[0] ? ": " : "", curve->application);
    figure_note(figure, "%zu clocks%s%.40s, medians of %zu runs", settings->count,
                curve->gpu[0] ? " on " : "", curve->gpu, runs);
    figure_note(figure, "measured elsewhere; bars and ±: 95 %% CI of repeats");
}

/* By the kind of source. */
static enum err read_any(const struct plot_source *source, struct settings *out, struct error *why)
{
    if (source->sweep)
        return read_sweep(source->sweep, out, why);
    if (source->curve)
        return read_curve(source->curve, out, why);
    enum err err = check_same(source, why);
    if (!err)
        err = read_settings(source, out, why);
    return err ? err : check_clocks(out, why);
}

static enum err draw_frequency(const struct plot_source *source, struct figure *figure,
                               struct error *why)
{
    size_t max = source->sweep   ? source->sweep->sweep.point_count
                 : source->curve ? source->curve->count
                                 : source->run_count;
    struct settings settings = {.items = malloc((max + 1) * sizeof *settings.items)};
    if (!settings.items)
        return err_no_memory(why);
    enum err err = read_any(source, &settings, why);
    if (!err) {
        if (source->sweep)
            put_sweep_heading(figure, source->sweep, &settings);
        else if (source->curve)
            put_curve_heading(figure, source->curve, &settings);
        else
            put_heading(figure, source, &settings);
        figure->height = 960;
        for (size_t which = 0; which < MEASURE_COUNT; which++)
            put_measure(figure, &settings, which);
    }
    free(settings.items);
    return err;
}

const struct plot_driver plot_frequency = {
    .name = "frequency",
    .summary = "runs, a sweep or --input: energy, time, EDP and ED2P against the clock",
    .of = PLOT_OF_RUNS | PLOT_OF_SWEEP | PLOT_OF_CURVE,
    .draw = draw_frequency,
};
