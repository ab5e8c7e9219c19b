/* Energy, time and their product (EDP) per query against the clock frequency, over runs that differ in nothing
 * else.  The clock of a run is that of its busiest GPU, or of the CPU, while requests ran: out of its samples. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/format.h"
#include "rundir/samples.h"
#include "rundir/spans.h"

struct busy_clock {
    double mhz; /* mean over the time in which requests ran */
    bool is_cpu;
};

/* ---- when requests ran ---- */

/* Stretches of one start in which at least one request ran, in order and apart from each other. */
struct stretch {
    double from, to, before; /* before: seconds of those before it */
};

struct busy {
    struct stretch *items;
    size_t count;
};

/* Of sorted spans, all of one start. */
static void find_stretches(const struct span *spans, size_t count, struct busy *out)
{
    out->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct stretch *last = out->count ? &out->items[out->count - 1] : NULL;
        if (spans[i].to <= spans[i].from)
            continue;
        if (last && spans[i].from <= last->to)
            last->to = fmax(last->to, spans[i].to);
        else
            out->items[out->count++] = (struct stretch){
                spans[i].from, spans[i].to, last ? last->before + last->to - last->from : 0};
    }
}

/* Seconds with requests, up to t. */
static double busy_until(const struct busy *busy, double t)
{
    size_t low = 0, high = busy->count; /* those before `low` begin by t, those from `high` later */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (busy->items[middle].from <= t)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low)
        return 0;
    const struct stretch *at = &busy->items[low - 1];
    return at->before + fmin(t, at->to) - at->from;
}

/* ---- means ---- */

/* A clock or how busy a device was, over the time with requests. */
struct gauge {
    char sensor[64], device[128];
    bool is_clock;
    double t, sum;          /* of the sample before; t is UNKNOWN at the begin of a start */
    double seconds, amount; /* with requests: time that is covered, and value times time */
};

struct gauges {
    struct gauge *items;
    size_t count, capacity;
    struct busy busy; /* of the start that is read */
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
    bool is_one = is_clock || strcmp(sample->quantity, quantity_name(QTY_UTILISATION)) == 0;
    if (!is_one || !is_known(sample->sum))
        return ERR_OK;
    struct gauge *gauge = gauge_of(all, sample, is_clock);
    if (!gauge)
        return ERR_NO_MEMORY;
    double passed = sample->t_s - gauge->t; /* UNKNOWN for the first: no comparison holds */
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

/* All starts, one after the other; one without samples leaves the others theirs. */
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
        find_stretches(spans->items + from, to - from, &all->busy);
        enum err err = samples_read(directory, start, &query, take, all, &found, &missing);
        if (err && err != ERR_NOT_FOUND)
            return err_set(why, err, "%s", missing.text);
        if (err && from == 0)
            err_set(why, ERR_NO_DATA, "the run has no samples");
        any = any || !err;
    }
    return any ? ERR_OK : ERR_NO_DATA;
}

/* ---- whose ---- */

static bool is_cpu(const struct gauge *gauge)
{
    return strcmp(gauge->device, "host") == 0 || str_starts(gauge->device, "cpu");
}

/* UNKNOWN where no sensor reports it. */
static double utilisation(const struct gauges *all, const char *device)
{
    double most = UNKNOWN;
    for (size_t i = 0; i < all->count; i++)
        if (!all->items[i].is_clock && strcmp(all->items[i].device, device) == 0)
            most = fmax(most, mean_of(&all->items[i]));
    return most;
}

static enum err choose(const struct gauges *all, struct busy_clock *out, struct error *why)
{
    double busiest = -1; /* below unknown (-0.5), which is below any known utilization */
    size_t clocks = 0, idle = 0;
    *out = (struct busy_clock){.mhz = UNKNOWN};
    for (size_t i = 0; i < all->count; i++) {
        const struct gauge *gauge = &all->items[i];
        double busy = utilisation(all, gauge->device);
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
                   "no GPU worked while requests ran, and the CPU's clock is not known");
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

/* Clocks that are no farther apart are the same setting: a mean of samples is never twice the same. */
#define SAME_CLOCK 0.01

/* A run at its clock. */
struct setting {
    const struct run_figures *run;
    double mhz;
    bool is_cpu;
};

/* Those that can be drawn, and of the others the first with its reason. */
struct settings {
    struct setting *items;
    size_t count;
    const char *missing;
    struct error why;
};

/* ---- may they be compared ---- */

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
    double x = ((const struct setting *)a)->mhz, y = ((const struct setting *)b)->mhz;
    return (x > y) - (x < y);
}

static enum err read_setting(const struct run_figures *run, struct settings *out, struct error *why)
{
    struct busy_clock clock;
    if (!(run->point.joules_per_query > 0) || !(run->seconds_per_query > 0))
        return err_set(why, ERR_NO_DATA, "energy or time per query is unknown");
    enum err err = busy_clock_read(run->point.directory, &clock, why);
    if (!err)
        out->items[out->count++] = (struct setting){run, clock.mhz, clock.is_cpu};
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
    return ERR_OK;
}

static enum err check_clocks(const struct settings *settings, struct error *why)
{
    double least = settings->items[0].mhz, most = settings->items[settings->count - 1].mhz;
    for (size_t i = 1; i < settings->count; i++)
        if (settings->items[i].is_cpu != settings->items[0].is_cpu)
            return err_set(
                why, ERR_NO_DATA, "some runs have a GPU's clock, others the CPU's: %s and %s",
                settings->items[0].run->point.directory, settings->items[i].run->point.directory);
    if (most - least <= SAME_CLOCK * most)
        return err_set(
            why, ERR_NO_DATA,
            "the clocks of the runs do not differ: %.0f to %.0f MHz, which is within %g %%", least,
            most, 100 * SAME_CLOCK);
    return ERR_OK;
}

/* ---- drawing ---- */

struct measure {
    const char *label, *unit, *lowest; /* lowest: how the least of it is called; NULL: not marked */
    enum figure_color color;
    double weight;       /* of its panel: legend and numbers of the axis take room */
    size_t value, error; /* in a struct run_figures */
};

#define AT(field) offsetof(struct run_figures, field)
static const struct measure MEASURES[] = {
    {"energy ({J} per query)", "J", "lowest energy", FIGURE_BLUE, 1.05, AT(point.joules_per_query),
     AT(joules_per_query_error)},
    {"time ({s} per query)", "s", NULL, FIGURE_ORANGE, 0.95, AT(seconds_per_query),
     AT(seconds_per_query_error)},
    {"EDP ({J·s} per query)", "J·s", "lowest EDP", FIGURE_PURPLE, 1.25, AT(edp), AT(edp_error)},
};
#undef AT
enum { MEASURE_COUNT = sizeof MEASURES / sizeof *MEASURES };

static double field(const struct setting *setting, size_t at)
{
    double value;
    memcpy(&value, (const char *)setting->run + at, sizeof value);
    return value;
}

static void put_mark(struct figure_series *marks, const struct setting *setting,
                     const struct measure *measure)
{
    double value = field(setting, measure->value), error = field(setting, measure->error);
    error = is_known(error) ? error : 0;
    series_add4(marks, setting->mhz, value, fmax(value - error, 0), value + error);
}

/* Several runs at one setting: the line goes through their mean. */
static void put_line(struct figure_series *line, const struct settings *settings,
                     const struct measure *measure)
{
    for (size_t from = 0, to; from < settings->count; from = to) {
        double mhz = 0, value = 0;
        for (to = from; to < settings->count &&
                        settings->items[to].mhz <= (1 + SAME_CLOCK) * settings->items[from].mhz;
             to++) {
            mhz += settings->items[to].mhz;
            value += field(&settings->items[to], measure->value);
        }
        series_add2(line, mhz / (double)(to - from), value / (double)(to - from));
    }
}

/* Named in the legend, where its figure covers no line. */
static void put_lowest(struct figure *figure, struct figure_panel *panel,
                       const struct settings *settings, const struct measure *measure)
{
    const struct setting *lowest = &settings->items[0];
    char value[FORMAT_MAX], name[FIGURE_TEXT_MAX];
    for (size_t i = 1; i < settings->count; i++)
        if (field(&settings->items[i], measure->value) < field(lowest, measure->value))
            lowest = &settings->items[i];
    format_with_error(value, field(lowest, measure->value), field(lowest, measure->error),
                      measure->unit);
    str_format(name, sizeof name, "%s: %s at %.0f MHz", measure->lowest, value, lowest->mhz);
    put_mark(figure_series(figure, panel, FIGURE_ERRORS_Y, FIGURE_GREEN, name), lowest, measure);
}

static void put_measure(struct figure *figure, const struct settings *settings, size_t which)
{
    const struct measure *measure = &MEASURES[which];
    struct figure_panel *panel =
        figure_panel(figure,
                     settings->items[0].is_cpu ? "mean CPU clock while requests ran (MHz)"
                                               : "mean GPU clock while requests ran (MHz)",
                     measure->label);
    panel->x.hidden = which < MEASURE_COUNT - 1;
    if (panel->x.hidden)
        panel->x.label[0] = '\0';
    panel->y.from_zero = true;
    panel->weight = measure->weight;
    put_line(figure_series(figure, panel, FIGURE_LINE, measure->color, ""), settings, measure);
    struct figure_series *marks = figure_series(figure, panel, FIGURE_ERRORS_Y, measure->color, "");
    for (size_t i = 0; i < settings->count; i++)
        put_mark(marks, &settings->items[i], measure);
    if (measure->lowest)
        put_lowest(figure, panel, settings, measure);
}

/* "20 queries each", or "10 to 20": runs of more questions than others had are not quite the same. */
static void put_queries(const struct settings *settings, char *to, size_t size)
{
    size_t least = SIZE_MAX, most = 0;
    for (size_t i = 0; i < settings->count; i++) {
        const struct run_point *point = &settings->items[i].run->point;
        size_t completed = point->queries - point->failed;
        least = completed < least ? completed : least;
        most = completed > most ? completed : most;
    }
    if (least == most)
        str_format(to, size, "%zu quer%s each", most, most == 1 ? "y" : "ies");
    else
        str_format(to, size, "%zu to %zu queries each", least, most);
}

static void put_heading(struct figure *figure, const struct plot_source *source,
                        const struct settings *settings)
{
    const struct run_point *point = &source->runs[0].point;
    size_t left_out = source->run_count - settings->count;
    char queries[64];
    put_queries(settings, queries, sizeof queries);
    str_format(figure->title, sizeof figure->title,
               "Energy, time and EDP against the clock: %.100s", point->model);
    figure_note(figure, "%zu runs%s%.30s%s%.30s, %s", settings->count,
                point->dataset[0] ? " of " : "", point->dataset, point->hardware[0] ? " on " : "",
                point->hardware, queries);
    if (left_out)
        figure_note(figure, "%zu without clock or energy left out", left_out);
    figure_note_energy(figure, source->runs[0].method, source->common.common);
    figure_note(figure, "bars and ±: 95 %% CI%s",
                source->common.sensors == UNCERTAINTY_MIXED ? ", sensors included" : "");
}

static enum err draw_frequency(const struct plot_source *source, struct figure *figure,
                               struct error *why)
{
    struct settings settings = {.items = malloc(source->run_count * sizeof *settings.items)};
    if (!settings.items)
        return err_no_memory(why);
    enum err err = check_same(source, why);
    if (!err)
        err = read_settings(source, &settings, why);
    if (!err)
        err = check_clocks(&settings, why);
    if (!err) {
        put_heading(figure, source, &settings);
        figure->height = 760;
        for (size_t which = 0; which < MEASURE_COUNT; which++)
            put_measure(figure, &settings, which);
    }
    free(settings.items);
    return err;
}

const struct plot_driver plot_frequency = {
    .name = "frequency",
    .summary = "several runs: energy, time and EDP per query against the clock",
    .of = PLOT_OF_RUNS,
    .draw = draw_frequency,
};
