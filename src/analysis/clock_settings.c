/* Settings against the clock: the clocks of runs, integrated over the time with requests in flight, those of a sweep and
 * of imported measurements; and energy, time and their products at each, with errors. */
#include "analysis/across.h"

#include <math.h>
#include <stdlib.h>

#include "core/quantity.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "metrics/efficiency.h"
#include "power/freq_points.h"
#include "power/sweep_points.h"
#include "rundir/samples.h"
#include "rundir/spans.h"

/* ---- the clock of a run ---- */

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
    size_t low = 0;
    size_t high = busy->count; /* those before `low` start by t, those from `high` later */
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
        if (gauge->is_clock == is_clock && str_equal(gauge->device, sample->device) &&
            str_equal(gauge->sensor, sample->sensor))
            return gauge;
    }
    XGROW(all->items, all->count, all->capacity);
    struct gauge *gauge = &all->items[all->count++];
    *gauge = (struct gauge){.is_clock = is_clock, .t = UNKNOWN};
    chars_copy(gauge->sensor, sample->sensor);
    chars_copy(gauge->device, sample->device);
    return gauge;
}

static enum err take(void *context, const struct sample *sample)
{
    struct gauges *all = context;
    bool is_clock = str_equal(sample->quantity, quantity_name(QTY_CLOCK));
    bool is_one = is_clock || str_equal(sample->quantity, quantity_name(QTY_UTILIZATION));
    if (!is_one || !is_known(sample->sum))
        return ERR_OK;
    struct gauge *gauge = gauge_of(all, sample, is_clock);
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

static double gauge_mean(const struct gauge *gauge)
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
    return str_equal(gauge->device, "host") || str_starts(gauge->device, "cpu");
}

/* UNKNOWN if no sensor reports it. */
static double utilization_of(const struct gauges *all, const char *device)
{
    double max = UNKNOWN;
    for (size_t i = 0; i < all->count; i++)
        if (!all->items[i].is_clock && str_equal(all->items[i].device, device))
            max = fmax(max, gauge_mean(&all->items[i]));
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
        if (!gauge->is_clock || !(gauge_mean(gauge) > 0))
            continue;
        if (is_cpu(gauge)) {
            if (!is_known(out->mhz))
                *out = (struct busy_clock){gauge_mean(gauge), true};
            continue;
        }
        idle += busy == 0;
        busy = known_or(busy, -0.5);
        if (busy == 0 || busy <= busiest)
            continue;
        busiest = busy;
        *out = (struct busy_clock){gauge_mean(gauge), false};
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
        all.busy.items = xmalloc(spans.count * sizeof *all.busy.items);
        err = read_gauges(directory, &spans, &all, why);
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

/* While runs are read: the first that cannot be used, and why. */
struct left_out {
    const char *directory;
    struct error why;
};

/* ---- comparability ---- */

static enum err differing(const char *what, const char *one, const char *other, struct error *why)
{
    return err_set(why, ERR_NO_DATA, "the runs differ in more than the clock: %s %.60s and %.60s",
                   what, one[0] ? one : "unknown", other[0] ? other : "unknown");
}

static enum err check_same(const struct run_figures *runs, size_t count, struct error *why)
{
    const struct run_point *first = &runs[0].point;
    for (size_t i = 1; i < count; i++) {
        const struct run_point *point = &runs[i].point;
        char one[32], other[32];
        if (!str_equal(point->model, first->model))
            return differing("models", first->model, point->model, why);
        if (!str_equal(point->dataset, first->dataset))
            return differing("datasets", first->dataset, point->dataset, why);
        if (!str_equal(point->hardware, first->hardware))
            return differing("machines", first->hardware, point->hardware, why);
        if (point->concurrency == first->concurrency ||
            (!is_known(point->concurrency) && !is_known(first->concurrency)))
            continue;
        chars_format(one, "%g", first->concurrency);
        chars_format(other, "%g", point->concurrency);
        return differing("concurrency", is_known(first->concurrency) ? one : "",
                         is_known(point->concurrency) ? other : "", why);
    }
    return ERR_OK;
}

static int by_clock(const void *a, const void *b)
{
    return compare_numbers(((const struct clock_setting *)a)->x,
                           ((const struct clock_setting *)b)->x);
}

static enum err read_setting(const struct run_figures *run, struct clock_settings *out,
                             struct error *why)
{
    struct busy_clock clock;
    if (!(run->point.joules_per_query > 0) || !(run->seconds_per_query > 0))
        return err_set(why, ERR_NO_DATA, "energy or time per query is unknown");
    enum err err = busy_clock_read(run->point.directory, &clock, why);
    if (!err)
        out->items[out->count++] = (struct clock_setting){
            run,
            clock.mhz,
            clock.is_cpu,
            {run->point.joules_per_query, run->seconds_per_query, run->edp, run->ed2p},
            {run->joules_per_query_error, run->seconds_per_query_error, run->edp_error,
             run->ed2p_error}};
    return err;
}

/* Runs without clock, energy or time are left out. */
static enum err read_runs(const struct run_figures *runs, size_t count, struct clock_settings *out,
                          struct error *why)
{
    struct left_out missing = {0};
    for (size_t i = 0; i < count; i++) {
        struct error reason = {0};
        enum err err = read_setting(&runs[i], out, &reason);
        if (err && err != ERR_NO_DATA)
            return err_set(why, err, "%s", reason.text);
        if (err && !missing.directory)
            missing = (struct left_out){runs[i].point.directory, reason};
    }
    if (out->count < 2)
        return err_set(why, ERR_NO_DATA,
                       "%zu of %zu runs have a clock, and energy and time per query; %s: %s",
                       out->count, count, missing.why.text, missing.directory);
    qsort(out->items, out->count, sizeof *out->items, by_clock);
    out->same = SAME_CLOCK;
    out->each = runs[0].is_command ? "run" : "query";
    chars_format(out->label, "mean %s clock while %s ran (MHz)",
                 out->items[0].is_cpu ? "CPU" : "GPU",
                 runs[0].is_command ? "the command" : "requests");
    return ERR_OK;
}

static enum err check_clocks(const struct clock_settings *settings, struct error *why)
{
    double min = settings->items[0].x;
    double max = settings->items[settings->count - 1].x;
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

static void allocate(struct clock_settings *out, size_t max)
{
    *out = (struct clock_settings){.items = xmalloc((max + 1) * sizeof *out->items)};
}

enum err clock_settings_of_runs(const struct run_figures *runs, size_t count,
                                struct clock_settings *out, struct error *why)
{
    allocate(out, count);
    enum err err = check_same(runs, count, why);
    if (!err)
        err = read_runs(runs, count, out, why);
    return err ? err : check_clocks(out, why);
}

void clock_settings_release(struct clock_settings *settings)
{
    free(settings->items);
    *settings = (struct clock_settings){0};
}

/* ---- of a sweep ---- */

/* The knob for the x axis: the clock, else the first with numeric values that differ.  If another knob differs, too,
 * the plot would mix settings. */
static enum err choose_knob(const struct sweep_points *points, size_t *out, struct error *why)
{
    const struct sweep *sweep = &points->sweep;
    size_t chosen = points->clock >= 0 ? (size_t)points->clock : sweep->knob_count;
    for (size_t k = 0; k < sweep->knob_count; k++) {
        bool differs = false, numbers = true;
        for (size_t p = 0; p < sweep->point_count; p++) {
            const struct setting *setting = &sweep_point(sweep, p)[k];
            differs |= !setting_same(setting, &sweep->settings[k]);
            numbers &= setting->kind == SETTING_NUMBER;
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
static struct clock_setting setting_of(const struct sweep_figures *figures, double x)
{
    static const size_t FIGURES[] = {CLOCK_ENERGY, CLOCK_EDP, CLOCK_ED2P}; /* by n of E T^n */
    struct clock_setting setting = {.x = x};
    double energy = ratio(figures->independent, figures->joules);
    double time = ratio(figures->seconds_error, figures->seconds);
    for (int n = 0; n < 3; n++) {
        size_t at = FIGURES[n];
        setting.values[at] = energy_delay_product(figures->joules, figures->seconds, n);
        setting.errors[at] = NORMAL_95 * setting.values[at] * hypot(energy, n ? n * time : 0);
    }
    setting.values[CLOCK_TIME] = figures->seconds;
    setting.errors[CLOCK_TIME] = NORMAL_95 * figures->seconds_error;
    return setting;
}

/* What was measured, how, and what was excluded. */
static void describe_sweep(const struct sweep_points *points, struct clock_settings *out)
{
    const struct sweep_measurement *first = &points->items[0];
    for (size_t i = 0; i < points->sweep.count && first->exclusion; i++)
        first = &points->items[i];
    out->application = first->application;
    out->device = first->gpu;
    out->method = sweep_points_is_estimated(points) ? "estimated" : first->method;
    out->measurements = sweep_points_excluded(points, SWEEP_USED);
    sweep_points_exclusions(points, out->excluded, sizeof out->excluded);
}

enum err clock_settings_of_sweep(const struct sweep_points *points, struct clock_settings *out,
                                 struct error *why)
{
    const struct sweep *sweep = &points->sweep;
    size_t knob = 0;
    allocate(out, sweep->point_count);
    enum err err = choose_knob(points, &knob, why);
    if (err)
        return err;
    for (size_t p = 0; p < sweep->point_count; p++) {
        struct sweep_figures figures = sweep_points_figures(points, p, NULL);
        double x = sweep_point(sweep, p)[knob].number; /* a clock at its default is unknown */
        if (figures.measured && is_known(x))
            out->items[out->count++] = setting_of(&figures, x);
    }
    if (out->count < 2)
        return err_set(why, ERR_NO_DATA, "%zu of %zu settings of the sweep were measured",
                       out->count, sweep->point_count);
    qsort(out->items, out->count, sizeof *out->items, by_clock);
    out->each = points->is_per_query ? "query" : "run";
    out->knob = (long)knob == points->clock ? NULL : sweep->knobs[knob];
    chars_format(out->label, "%.80s", out->knob ? out->knob : "GPU clock, as set (MHz)");
    describe_sweep(points, out);
    return ERR_OK;
}

/* ---- of imported measurements ---- */

/* Medians of the runs at a clock. */
enum err clock_settings_of_curve(const struct freq_curve *curve, struct clock_settings *out,
                                 struct error *why)
{
    allocate(out, curve->count);
    for (size_t i = 0; i < curve->count; i++) {
        const struct freq_sample *sample = &curve->samples[i];
        double runs = sqrt((double)sample->runs);
        out->measurements += sample->runs;
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
    out->application = curve->application;
    out->device = curve->gpu;
    out->method = "";
    chars_format(out->label, "GPU clock (MHz)");
    return ERR_OK;
}

/* ---- figures of several ---- */

size_t clock_settings_mean(const struct clock_settings *settings, enum clock_measure measure,
                           size_t from, double *x, double *value)
{
    double sum_x = 0;
    double sum = 0;
    double limit = (1 + settings->same) * settings->items[from].x;
    size_t to = from;
    for (; to < settings->count && (to == from || settings->items[to].x <= limit); to++) {
        sum_x += settings->items[to].x;
        sum += settings->items[to].values[measure];
    }
    *x = sum_x / (double)(to - from);
    *value = sum / (double)(to - from);
    return to;
}

const struct clock_setting *clock_settings_lowest(const struct clock_settings *settings,
                                                  enum clock_measure measure)
{
    const struct clock_setting *lowest = &settings->items[0];
    for (size_t i = 1; i < settings->count; i++)
        if (settings->items[i].values[measure] < lowest->values[measure])
            lowest = &settings->items[i];
    return lowest;
}
