/* The checks run in this order: single values, groups of points, curves.  Points that one check excludes are not
 * seen by the next.  The curves are recomputed after cold rows have been excluded. */
#include "power/data_checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "catalog/device_peak.h"
#include "catalog/hardware.h"
#include "core/hash.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "power/curve_fit.h"
#include "power/smooth_fit.h"
#include "power/sweep_points.h"
#include "stats/descriptive.h"

#define CLOCK_TOLERANCE_MHZ 20.0 /* more than one step of any driver's list */
#define COLD_MIN            0.05 /* above the fit */
#define COLD_SPREADS        4.0  /* the same in standard deviations of the others */
#define NOISE_MAX           0.05
#define IDLE_RATIO          1.35 /* median power over idle power: below this the GPU mostly waits */
#define IDLE_ACTIVITY       0.15
#define COLD_SHARE_MAX      0.25 /* of the frequencies, from the first that was measured */

enum { VECTOR_MIN = 5, POINTS_MIN = 5 };

/* ---- findings ---- */

/* One group of points, and the destination of findings. */
struct checking {
    struct freq_points *points;
    const struct clock_list *clocks;
    struct findings *out;
    enum err err;
};

void data_findings_add(struct findings *findings, enum finding_code code, size_t rows,
                       const char *text)
{
    struct finding *finding = finding_raise(findings, code, "%s", text);
    finding->scope = FINDING_OF_DATA;
    finding->rows = rows;
}

/* `of`: a point of the curve that it is about, NULL for all of the data. */
PRINTF_LIKE(5, 6)
static void add_finding(struct checking *c, enum finding_code code, const struct freq_point *of,
                        size_t rows, const char *format, ...)
{
    char text[sizeof((struct finding *)0)->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct finding *finding = finding_raise(c->out, code, "%s", text);
    finding->rows = rows;
    finding->scope = FINDING_OF_DATA;
    if (of) {
        finding->scope = code == FINDING_UNKNOWN_GPU ? FINDING_OF_GPU : FINDING_OF_CURVE;
        chars_copy(finding->gpu, of->gpu);
        chars_copy(finding->application, of->application);
    }
}

static bool is_about(const struct finding *finding, const struct freq_curve *curve)
{
    bool is_gpu = finding->scope == FINDING_OF_DATA || str_equal(finding->gpu, curve->gpu);
    return is_gpu && (finding->scope != FINDING_OF_CURVE ||
                      str_equal(finding->application, curve->application));
}

bool data_findings_has(const struct findings *findings, enum finding_code code,
                       const struct freq_curve *curve)
{
    for (size_t i = 0; i < findings->count; i++)
        if (finding_is(&findings->items[i], code) && is_about(&findings->items[i], curve))
            return true;
    return false;
}

const struct finding *data_findings_invalid(const struct findings *findings,
                                            const struct freq_curve *curve)
{
    for (size_t i = 0; findings && i < findings->count; i++)
        if (findings->items[i].severity == FINDING_INVALID && is_about(&findings->items[i], curve))
            return &findings->items[i];
    return NULL;
}

/* ---- single values ---- */

static bool is_negative(double value)
{
    return is_known(value) && value <= 0;
}

static bool is_invalid(const struct freq_point *p)
{
    return !(p->freq_mhz > 0) || is_negative(p->power_w) || is_negative(p->energy_j) ||
           is_negative(p->time_s) || (!is_known(p->power_w) && !is_known(p->energy_j)) ||
           (!is_known(p->power_w) && !is_known(p->time_s));
}

static void check_values(struct checking *c, size_t first, size_t end)
{
    struct freq_point *items = c->points->items;
    size_t invalid = 0, illegal = 0, off = 0, failed = 0, throttled = 0, missed = 0, example = 0;
    bool is_listed = c->clocks && clock_list_has(c->clocks, items[first].gpu);
    for (size_t i = first; i < end; i++) {
        struct freq_point *p = &items[i];
        failed += (p->flags & FREQ_FAILED) != 0;
        throttled += (p->flags & FREQ_THROTTLED) != 0;
        missed += (p->flags & FREQ_OFF_CLOCK) != 0;
        if (p->flags & (FREQ_FAILED | FREQ_THROTTLED | FREQ_OFF_CLOCK) && p->freq_mhz > 0)
            continue; /* excluded already, possibly without figures */
        if (is_invalid(p)) {
            p->flags |= FREQ_INVALID;
            invalid++;
        } else if (is_listed && !clock_list_is_legal(c->clocks, p->gpu, p->freq_mhz)) {
            p->flags |= FREQ_ILLEGAL;
            example = illegal++ ? example : i;
        } else if (fabs(p->achieved_mhz - p->freq_mhz) > CLOCK_TOLERANCE_MHZ) {
            p->flags |= FREQ_OFF_CLOCK;
            example = off++ ? example : i;
        }
    }
    if (invalid)
        add_finding(c, FINDING_INVALID_VALUE, &items[first], invalid,
                    "%zu rows with a frequency, time, power or energy that is not above 0",
                    invalid);
    if (illegal)
        add_finding(c, FINDING_ILLEGAL_CLOCK, &items[first], illegal,
                    "%zu rows at unsupported clocks, for example %g MHz", illegal,
                    items[example].freq_mhz);
    if (off)
        add_finding(c, FINDING_CLOCK_MISMATCH, &items[first], off,
                    "%zu rows ran at another clock, for example %g MHz instead of %g", off,
                    items[example].achieved_mhz, items[example].freq_mhz);
    if (missed)
        add_finding(c, FINDING_CLOCK_MISMATCH, &items[first], missed,
                    "%zu runs did not reach their clock", missed);
    if (throttled)
        add_finding(c, FINDING_THROTTLED_RUNS, &items[first], throttled, "%zu runs were throttled",
                    throttled);
    if (failed)
        add_finding(c, FINDING_FAILED_RUNS, &items[first], failed, "%zu runs failed", failed);
}

static bool is_in_catalog(const char *gpu)
{
    struct hardware found;
    if (hardware_find_device(gpu, &found))
        return true;
    for (size_t i = 0; i < hardware_count(); i++)
        if (str_contains_nocase(hardware_at(i)->name, gpu) ||
            str_contains_nocase(gpu, hardware_id(i)))
            return true;
    return false;
}

/* Problems detected by the log reader. */
static void check_logs(struct checking *c, size_t first, size_t end)
{
    static const struct {
        unsigned flag;
        enum finding_code code;
        const char *text;
    } FLAG_CHECKS[] = {
        {FREQ_LOG_DAMAGED, FINDING_DAMAGED_LOG, "logs with rows that cannot be read"},
        {FREQ_LOG_UNORDERED, FINDING_UNORDERED_TIMESTAMPS, "logs whose clock was set"},
        {FREQ_LOG_PAUSES, FINDING_LOG_PAUSES, "logs with gaps of more than 10 sampling intervals"},
        {FREQ_LOG_IDLE_PARTS, FINDING_IDLE_PARTS, "logs that begin or end with an idle GPU"},
        {FREQ_GPU_MISMATCH, FINDING_GPU_MISMATCH, "logs whose GPU differs from their file name"},
    };
    for (size_t k = 0; k < COUNT_OF(FLAG_CHECKS); k++) {
        size_t logs = 0;
        for (size_t i = first; i < end; i++)
            logs += (c->points->items[i].flags & FLAG_CHECKS[k].flag) != 0;
        if (logs)
            add_finding(c, FLAG_CHECKS[k].code, &c->points->items[first], logs, "%s: %zu",
                        FLAG_CHECKS[k].text, logs);
    }
}

static void check_gpus(struct checking *c)
{
    const struct freq_points *points = c->points;
    for (size_t i = 0, next; i < points->count; i = next) {
        const char *gpu = points->items[i].gpu;
        for (next = i + 1; next < points->count && str_equal(points->items[next].gpu, gpu);)
            next++;
        struct freq_point all = {0};
        chars_copy(all.gpu, gpu);
        if (gpu[0] && !is_in_catalog(gpu))
            add_finding(c, FINDING_UNKNOWN_GPU, &all, next - i, "'%s' is not in the catalog", gpu);
    }
}

/* ---- groups of points ---- */

static void check_duplicates(struct checking *c, size_t first, size_t end)
{
    const struct freq_point *items = c->points->items;
    size_t duplicates = 0;
    for (size_t i = first + 1; i < end; i++)
        duplicates +=
            items[i].freq_mhz == items[i - 1].freq_mhz && items[i].run == items[i - 1].run;
    if (duplicates)
        add_finding(c, FINDING_DUPLICATE_POINTS, &items[first], duplicates,
                    "%zu rows repeat a frequency%s", duplicates,
                    items[first].run ? " and run" : "");
}

static int by_seq(const void *a, const void *b)
{
    const struct freq_point *p = *(const struct freq_point *const *)a;
    const struct freq_point *q = *(const struct freq_point *const *)b;
    double first = is_known(p->seq) ? p->seq : (double)p->line;
    double second = is_known(q->seq) ? q->seq : (double)q->line;
    return (first > second) - (first < second);
}

/* Timestamps must not decrease in the recorded order of measurement. */
static void check_timestamps(struct checking *c, size_t first, size_t end)
{
    const struct freq_point **order = xcalloc(end - first + 1, sizeof *order);
    const struct freq_point *last = NULL;
    size_t falls = 0;
    for (size_t i = first; i < end; i++)
        order[i - first] = &c->points->items[i];
    qsort(order, end - first, sizeof *order, by_seq);
    for (size_t i = 0; i < end - first; i++) {
        if (!is_known(order[i]->timestamp_s))
            continue;
        falls += last && order[i]->timestamp_s < last->timestamp_s;
        last = order[i];
    }
    if (falls)
        add_finding(c, FINDING_UNORDERED_TIMESTAMPS, &c->points->items[first], falls,
                    "%zu timestamps are earlier than those before them", falls);
    free(order);
}

/* The first run at a frequency includes start-up costs: cold caches and loading. */
static void check_first_runs(struct checking *c, size_t first, size_t end)
{
    struct freq_point *items = c->points->items;
    size_t cold = 0;
    for (size_t i = first, next; i < end; i = next) {
        size_t later = 0;
        for (next = i + 1; next < end && items[next].freq_mhz == items[i].freq_mhz;)
            next++; /* an unknown frequency equals no other */
        for (size_t k = i; k < next; k++)
            later += items[k].run > 1 && !(items[k].flags & FREQ_UNUSABLE);
        for (size_t k = i; k < next; k++)
            if (later >= 2 && items[k].run == 1) {
                items[k].flags |= FREQ_COLD;
                cold++;
            }
    }
    if (cold)
        add_finding(c, FINDING_COLD_RUNS, &items[first], cold, "%zu first runs at a clock", cold);
}

/* ---- identical vectors ---- */

enum vector { VECTOR_TIME, VECTOR_RAW_TIME, VECTOR_POWER };

static double vector_value(const struct freq_point *p, enum vector which)
{
    return which == VECTOR_TIME ? p->time_s : which == VECTOR_POWER ? p->power_w : p->raw_time_s;
}

/* 0 for a vector that is too short or constant to be a copy. */
static uint64_t vector_hash(const struct freq_points *points, size_t first, size_t end,
                            enum vector which)
{
    uint64_t hash = HASH_START;
    double low = INFINITY, high = -INFINITY;
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        double pair[2] = {points->items[i].freq_mhz, vector_value(&points->items[i], which)};
        if (!is_known(pair[1]))
            continue;
        hash = hash_bytes(hash, pair, sizeof pair);
        low = fmin(low, pair[1]);
        high = fmax(high, pair[1]);
        count++;
    }
    return count < VECTOR_MIN || low == high ? 0 : hash ? hash : 1;
}

struct vector_group {
    size_t first, end;
    uint64_t hash;
};

static void mark_identical(struct checking *c, const struct vector_group *group, enum vector which)
{
    for (size_t i = group->first; i < group->end; i++)
        if (which == VECTOR_TIME)
            c->points->items[i].flags |= FREQ_TIME_COPIED;
        else if (which == VECTOR_POWER)
            c->points->items[i].flags |= FREQ_INVALID;
}

static const char *column_of(const struct freq_points *points, enum vector which)
{
    if (which == VECTOR_POWER)
        return "power";
    return which == VECTOR_RAW_TIME ? points->raw_time_column : points->time_column;
}

/* One finding per set of applications of a GPU that share a vector: the original cannot be determined. */
static void check_vectors(struct checking *c, struct vector_group *groups, size_t count,
                          enum vector which)
{
    static const enum finding_code CODES[] = {FINDING_IDENTICAL_TIMES, FINDING_IDENTICAL_RAW_TIMES,
                                              FINDING_IDENTICAL_POWER};
    const struct freq_point *items = c->points->items;
    const char *column = column_of(c->points, which);
    for (size_t i = 0; i < count; i++)
        groups[i].hash = vector_hash(c->points, groups[i].first, groups[i].end, which);
    for (size_t i = 0; i < count; i++) {
        size_t same = 1, rows = groups[i].end - groups[i].first;
        for (size_t k = i + 1; groups[i].hash && k < count; k++)
            if (groups[k].hash == groups[i].hash &&
                str_equal(items[groups[k].first].gpu, items[groups[i].first].gpu)) {
                mark_identical(c, &groups[k], which);
                groups[k].hash = 0;
                same++;
                rows += groups[k].end - groups[k].first;
                if (which == VECTOR_TIME) /* one finding each: a command may query one of them */
                    add_finding(c, CODES[which], &items[groups[k].first], 0,
                                "%s: the same vector as '%s'", column,
                                items[groups[i].first].application);
            }
        if (same == 1)
            continue;
        mark_identical(c, &groups[i], which);
        add_finding(c, CODES[which], which == VECTOR_TIME ? &items[groups[i].first] : NULL, rows,
                    "%s: identical vector in %zu applications", column, same);
    }
}

static void check_identical(struct checking *c)
{
    size_t count = 0;
    struct vector_group *groups = xcalloc(c->points->count + 1, sizeof *groups);
    for (size_t i = 0; i < c->points->count; i = groups[count++].end)
        groups[count] = (struct vector_group){i, freq_points_group(c->points, i), 0};
    check_vectors(c, groups, count, VECTOR_TIME);
    check_vectors(c, groups, count, VECTOR_RAW_TIME);
    check_vectors(c, groups, count, VECTOR_POWER);
    free(groups);
}

/* ---- curves ---- */

/* The times of a curve about their robust fit. */
struct time_residuals {
    struct time_fit fit, window;
    double *relative; /* one per sample; UNKNOWN without a time */
    double spread;    /* standard deviation, by the median of absolute values */
};

static enum err residuals_of(const struct freq_curve *curve, struct time_residuals *out)
{
    size_t n = curve->count, known = 0;
    double *u = xcalloc(n + 1, sizeof *u), *t = xcalloc(n + 1, sizeof *t);
    double *w = xcalloc(n + 1, sizeof *w);
    out->relative = xcalloc(n + 1, sizeof *out->relative);
    for (size_t i = 0; i < n; i++)
        if (curve->samples[i].time_s > 0 && curve->samples[i].window_s > 0) {
            u[known] = curve->fmax_mhz / curve->samples[i].freq_mhz;
            w[known] = curve->samples[i].window_s;
            t[known++] = curve->samples[i].time_s;
        }
    enum err err = time_fit(u, t, known, &out->fit);
    if (!err)
        err = time_fit(u, w, known, &out->window);
    for (size_t i = 0, at = 0; !err && i < n; i++) {
        const struct freq_sample *s = &curve->samples[i];
        out->relative[i] = s->time_s / time_fit_at(&out->fit, curve->fmax_mhz / s->freq_mhz) - 1;
        if (is_known(out->relative[i]))
            t[at++] = fabs(out->relative[i]);
    }
    out->spread = err || !known ? UNKNOWN : 1.4826 * select_median(t, known);
    free(u);
    free(t);
    free(w);
    return err;
}

/* The scatter of the times: about a smooth curve if the clocks determine one, else about the knee. */
static double time_noise(const struct freq_curve *curve, double about_knee)
{
    double *mhz = xcalloc(2 * curve->count, sizeof *mhz), *seconds = mhz + curve->count;
    size_t known = 0;
    for (size_t i = 0; i < curve->count; i++)
        if (curve->samples[i].time_s > 0) {
            mhz[known] = curve->samples[i].freq_mhz;
            seconds[known++] = curve->samples[i].time_s;
        }
    double noise = about_knee;
    if (known >= SMOOTH_MIN) {
        struct smooth_curve smooth;
        smooth_fit(&(struct smooth_question){.mhz = mhz,
                                             .figure = seconds,
                                             .count = known,
                                             .at_mhz = mhz,
                                             .at_count = known,
                                             .is_falling = true,
                                             .has_steps = true},
                   &smooth);
        noise = smooth.noise;
        smooth_curve_release(&smooth);
    }
    free(mhz);
    return noise;
}

/* When a frequency was first measured: a sweep without order is assumed to start at fmax. */
static double first_seq(const struct freq_points *points, size_t first, size_t end, double mhz)
{
    double seq = UNKNOWN;
    for (size_t i = first; i < end; i++)
        if (points->items[i].freq_mhz == mhz && is_known(points->items[i].seq))
            seq = fmin(seq, points->items[i].seq);
    return known_or(seq, -mhz);
}

struct sequenced {
    size_t sample;
    double seq;
};

static int by_first_seq(const void *a, const void *b)
{
    return compare_numbers(((const struct sequenced *)a)->seq, ((const struct sequenced *)b)->seq);
}

static size_t mark_cold(struct checking *c, size_t first, size_t end, double mhz)
{
    size_t rows = 0;
    for (size_t i = first; i < end; i++)
        if (c->points->items[i].freq_mhz == mhz && !(c->points->items[i].flags & FREQ_UNUSABLE)) {
            c->points->items[i].flags |= FREQ_COLD;
            rows++;
        }
    return rows;
}

/* Iterates over the clocks in the order of measurement while their times are far above the fit of all. */
static void check_baseline(struct checking *c, const struct freq_curve *curve,
                           const struct time_residuals *r, size_t first, size_t end)
{
    struct sequenced *order = xcalloc(curve->count + 1, sizeof *order);
    double limit = fmax(COLD_MIN, COLD_SPREADS * r->spread), worst = 0, excess = 0;
    size_t rows = 0, clocks = 0;
    for (size_t i = 0; i < curve->count; i++)
        order[i] =
            (struct sequenced){i, first_seq(c->points, first, end, curve->samples[i].freq_mhz)};
    qsort(order, curve->count, sizeof *order, by_first_seq);
    for (size_t i = 0; i < curve->count && (double)i < COLD_SHARE_MAX * (double)curve->count; i++) {
        const struct freq_sample *s = &curve->samples[order[i].sample];
        if (!(r->relative[order[i].sample] > limit))
            break;
        double fitted = time_fit_at(&r->window, curve->fmax_mhz / s->freq_mhz);
        worst = fmax(worst, r->relative[order[i].sample]);
        excess = fmax(excess, 1 - fitted / s->window_s);
        rows += mark_cold(c, first, end, s->freq_mhz);
        clocks++;
    }
    if (rows)
        add_finding(
            c, FINDING_COLD_BASELINE, &c->points->items[first], rows,
            "the first clock%s measured took %.0f %% longer than the fit of the sweep: a saving of "
            "%.0f %% against them would be spurious",
            str_plural(clocks), 100 * worst, 100 * excess);
    free(order);
}

static double median_power(const struct freq_curve *curve)
{
    double *watts = xcalloc(curve->count + 1, sizeof *watts);
    for (size_t i = 0; i < curve->count; i++)
        watts[i] = curve->samples[i].power_w;
    double median = curve->count ? select_median(watts, curve->count) : UNKNOWN;
    free(watts);
    return median;
}

/* From the data, else from the catalog if it was measured on that device. */
static double idle_power(const struct freq_curve *curve)
{
    struct hardware found;
    if (is_known(curve->idle_w))
        return curve->idle_w;
    return curve->gpu[0] && hardware_find_device(curve->gpu, &found) &&
                   found.idle_w.evidence == EVIDENCE_MEASURED
               ? found.idle_w.value
               : UNKNOWN;
}

static void check_idle(struct checking *c, const struct freq_curve *curve,
                       const struct freq_point *of)
{
    double watts = median_power(curve), idle = idle_power(curve);
    double active = freq_curve_activity(curve, FREQ_SM);
    if (watts < IDLE_RATIO * idle)
        add_finding(c, FINDING_IDLE_GPU, of, 0,
                    "median power is %.1f W, idle power %.1f W: the GPU is mostly idle", watts,
                    idle);
    else if (active < IDLE_ACTIVITY)
        add_finding(c, FINDING_IDLE_GPU, of, 0,
                    "the GPU is active %.0f %% of the time: mostly idle", 100 * active);
}

static void check_curve(struct checking *c, const struct freq_curve *curve, size_t first,
                        size_t end, bool is_final)
{
    struct time_residuals r = {0};
    bool has_time = false;
    for (size_t i = 0; i < curve->count; i++)
        has_time |= curve->samples[i].time_s > 0 && curve->samples[i].window_s > 0;
    if (has_time && curve->count >= POINTS_MIN) {
        c->err = residuals_of(curve, &r);
        if (!c->err && !is_final)
            check_baseline(c, curve, &r, first, end);
        double noise = !c->err && is_final ? time_noise(curve, r.spread) : 0;
        if (noise > NOISE_MAX)
            add_finding(c, FINDING_NOISY_TIME, &c->points->items[first], 0,
                        "times scatter by %.1f %% around their fit", 100 * noise);
        free(r.relative);
    }
    if (c->err || !is_final)
        return;
    if (curve->count < POINTS_MIN)
        add_finding(c, FINDING_TOO_FEW_POINTS, &c->points->items[first], curve->count,
                    "%zu usable clock%s", curve->count, str_plural(curve->count));
    if (curve->count)
        check_idle(c, curve, &c->points->items[first]);
}

/* Curves and groups of points are in the same order. */
static void check_curves(struct checking *c, const struct freq_curves *curves, bool is_final)
{
    for (size_t i = 0, first = 0; !c->err && i < curves->count; i++) {
        size_t end = freq_points_group(c->points, first);
        check_curve(c, &curves->items[i], first, end, is_final);
        first = end;
    }
}

enum err data_checks_run(struct freq_points *points, const struct clock_list *clocks,
                         struct freq_curves *curves, struct findings *out, struct error *why)
{
    struct checking c = {points, clocks, out, ERR_OK};
    *curves = (struct freq_curves){0};
    freq_points_sort(points);
    check_gpus(&c);
    for (size_t i = 0, end; !c.err && i < points->count; i = end) {
        end = freq_points_group(points, i);
        check_values(&c, i, end);
        check_logs(&c, i, end);
        check_duplicates(&c, i, end);
        check_timestamps(&c, i, end);
        if (!c.err)
            check_first_runs(&c, i, end);
    }
    if (!c.err)
        check_identical(&c);
    if (!c.err)
        freq_curves_of(points, curves);
    if (!c.err)
        check_curves(&c, curves, false);
    freq_curves_release(curves);
    if (!c.err)
        freq_curves_of(points, curves);
    if (!c.err)
        check_curves(&c, curves, true);
    return err_explain(why, c.err);
}

/* ---- reading and checking measurements ---- */

size_t freq_data_usable(const struct freq_data *data)
{
    size_t usable = 0;
    for (size_t i = 0; i < data->points.count; i++)
        usable += !(data->points.items[i].flags & FREQ_UNUSABLE);
    return usable;
}

enum err freq_data_check(struct freq_data *data, struct error *why)
{
    enum err err = data_checks_run(&data->points, data->clocks.count ? &data->clocks : NULL,
                                   &data->curves, &data->findings, why);
    if (!err && freq_data_usable(data) == 0)
        err = err_set(why, ERR_NO_DATA, "none of %zu rows is usable: %s", data->points.count,
                      data->findings.count ? data->findings.items[0].text : "no values");
    return err;
}

static enum err read_source(struct freq_points *points, const struct freq_source *source,
                            struct error *why)
{
    if (source->sweep || sweep_points_is(source->path))
        return sweep_points_read(points, source, why);
    if (freq_points_is_log(source->path))
        return freq_points_import(points, source, why);
    return freq_points_read(points, source, why);
}

enum err freq_data_read(struct freq_data *data, const struct freq_source *sources, size_t count,
                        const char *clocks_path, struct error *why)
{
    enum err err = clocks_path ? clock_list_read(&data->clocks, clocks_path, why) : ERR_OK;
    for (size_t i = 0; !err && i < count; i++)
        err = read_source(&data->points, &sources[i], why);
    return err ? err : freq_data_check(data, why);
}

void freq_data_release(struct freq_data *data)
{
    freq_points_release(&data->points);
    clock_list_release(&data->clocks);
    freq_curves_release(&data->curves);
    findings_release(&data->findings);
}
