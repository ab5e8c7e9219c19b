/* Curves are made by sorting the usable points by GPU, application and frequency and taking medians of equal ones: the
 * median of three runs is robust to one that was delayed by a download or another process. */
#include "power/freq_points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "stats/descriptive.h"

static int by_place(const void *a, const void *b)
{
    const struct freq_point *p = a, *q = b;
    int order = strcmp(p->gpu, q->gpu);
    if (!order)
        order = strcmp(p->application, q->application);
    if (!order) /* unknown ones first: NaN cannot be ordered */
        order = is_known(p->freq_mhz) && is_known(q->freq_mhz)
                    ? (p->freq_mhz > q->freq_mhz) - (p->freq_mhz < q->freq_mhz)
                    : is_known(p->freq_mhz) - is_known(q->freq_mhz);
    if (!order)
        order = (p->run > q->run) - (p->run < q->run);
    return order ? order : (p->line > q->line) - (p->line < q->line);
}

void freq_points_sort(struct freq_points *points)
{
    if (points->count)
        qsort(points->items, points->count, sizeof *points->items, by_place);
}

size_t freq_points_group(const struct freq_points *points, size_t first)
{
    const struct freq_point *items = points->items;
    size_t end = first + 1;
    while (end < points->count && str_equal(items[first].gpu, items[end].gpu) &&
           str_equal(items[first].application, items[end].application))
        end++;
    return end;
}

/* The window of the mean power: runs record energy over a different time than that of the workload. */
static double window_of(const struct freq_point *p)
{
    double window = ratio(p->energy_j, p->power_w);
    return is_known(window) && window > 0 ? window : p->time_s;
}

static double power_of(const struct freq_point *p)
{
    return is_known(p->power_w) ? p->power_w : ratio(p->energy_j, p->time_s);
}

/* One figure of each of the points, as doubles for the median. */
static double figure_of(const struct freq_point *p, size_t which)
{
    switch (which) {
    case 0:
        return power_of(p);
    case 1:
        return p->flags & FREQ_TIME_COPIED ? UNKNOWN : p->time_s;
    case 2:
        return p->flags & FREQ_TIME_COPIED ? UNKNOWN : window_of(p);
    default:
        return p->activity[which - 3];
    }
}

static bool is_usable(const struct freq_point *p)
{
    return !(p->flags & FREQ_UNUSABLE) && p->freq_mhz > 0;
}

static double median_of(const struct freq_point *points, size_t count, size_t which,
                        double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        double value = is_usable(&points[i]) ? figure_of(&points[i], which) : UNKNOWN;
        if (is_known(value))
            scratch[known++] = value;
    }
    return known ? select_median(scratch, known) : UNKNOWN;
}

static double scatter_of(const struct freq_point *points, size_t count, bool is_energy,
                         double *scratch)
{
    for (size_t i = 0; i < count; i++) {
        double time = figure_of(&points[i], 1);
        double energy = power_of(&points[i]) * figure_of(&points[i], 2);
        scratch[i] = !is_usable(&points[i]) ? UNKNOWN : is_energy ? energy : time;
    }
    return relative_scatter(scratch, count);
}

static struct freq_sample sample_of(const struct freq_point *points, size_t count, double *scratch)
{
    struct freq_sample sample = {.freq_mhz = points[0].freq_mhz};
    for (size_t i = 0; i < count; i++)
        if (is_usable(&points[i])) {
            sample.runs++;
            sample.pause_error += points[i].pause_error;
        }
    sample.pause_error /= sample.runs ? sample.runs : 1;
    sample.power_w = median_of(points, count, 0, scratch);
    sample.time_s = median_of(points, count, 1, scratch);
    sample.window_s = median_of(points, count, 2, scratch);
    sample.energy_j = sample.power_w * sample.window_s;
    sample.energy_scatter = scatter_of(points, count, true, scratch);
    sample.time_scatter = scatter_of(points, count, false, scratch);
    for (size_t i = 0; i < FREQ_ACTIVITIES; i++)
        sample.activity[i] = median_of(points, count, 3 + i, scratch);
    return sample;
}

/* Idle power: runs start idle, and a warm start shows a higher value. */
static double idle_of(const struct freq_point *points, size_t count, double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (points[i].idle_w > 0)
            scratch[known++] = points[i].idle_w;
    return known ? quantile(scratch, known, 0.25) : UNKNOWN;
}

static void add_curve(struct freq_curves *curves, const struct freq_point *points, size_t count,
                      double *scratch)
{
    struct freq_curve *curve = &curves->items[curves->count];
    *curve = (struct freq_curve){.idle_w = idle_of(points, count, scratch)};
    curve->samples = xcalloc(count, sizeof *curve->samples);
    curves->count++;
    chars_copy(curve->gpu, points[0].gpu);
    chars_copy(curve->application, points[0].application);
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && points[next].freq_mhz == points[i].freq_mhz;)
            next++;
        struct freq_sample sample = sample_of(points + i, next - i, scratch);
        if (is_known(sample.power_w))
            curve->samples[curve->count++] = sample;
        /* A clock counts even if its points are not usable. */
        for (size_t k = i; k < next; k++)
            if (!(points[k].flags & (FREQ_ILLEGAL | FREQ_OFF_CLOCK | FREQ_INVALID)))
                curve->fmax_mhz = fmax(curve->fmax_mhz, points[k].freq_mhz);
    }
}

/* The clock that all curves of a GPU are normalized by. */
static void set_fmax(struct freq_curves *curves)
{
    for (size_t i = 0, next; i < curves->count; i = next) {
        double highest = 0;
        for (next = i;
             next < curves->count && str_equal(curves->items[next].gpu, curves->items[i].gpu);
             next++)
            highest = fmax(highest, curves->items[next].fmax_mhz);
        for (size_t k = i; k < next; k++)
            curves->items[k].fmax_mhz = highest;
    }
}

void freq_curves_of(struct freq_points *points, struct freq_curves *out)
{
    double *scratch = xcalloc(points->count + 1, sizeof *scratch);
    size_t groups = 0;
    freq_points_sort(points);
    for (size_t i = 0; i < points->count; i = freq_points_group(points, i))
        groups++;
    *out = (struct freq_curves){.items = xcalloc(groups + 1, sizeof *out->items)};
    for (size_t i = 0, next; i < points->count; i = next) {
        next = freq_points_group(points, i);
        add_curve(out, points->items + i, next - i, scratch);
    }
    free(scratch);
    set_fmax(out);
}

void freq_curves_release(struct freq_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++)
        free(curves->items[i].samples);
    free(curves->items);
    *curves = (struct freq_curves){0};
}

enum { NEAR_FMAX = 5 };

double freq_curve_activity(const struct freq_curve *curve, enum freq_activity activity)
{
    double sum = 0;
    size_t known = 0;
    bool any = false;
    for (size_t i = 1; i <= NEAR_FMAX && i <= curve->count; i++) {
        double value = curve->samples[curve->count - i].activity[activity];
        any |= is_known(value);
        if (is_known(value) && value > 0) {
            sum += value;
            known++;
        }
    }
    return known ? sum / (double)known : any ? 0 : UNKNOWN;
}

/* ---- probes ---- */

#define PROBE_LOWEST 0.45 /* of fmax: few applications have their optimum below it */

static double sample_figure(const struct freq_sample *s, size_t which)
{
    return which == 0 ? s->power_w : which == 1 ? s->time_s : s->window_s;
}

/* The median of the samples nearest to a frequency. */
static struct freq_sample probe_at(const struct freq_curve *curve, double mhz, size_t near)
{
    enum { NEAR_MAX = 15 };
    const struct freq_sample *s = curve->samples;
    double values[NEAR_MAX];
    size_t first = 0, end;
    near = near < 1 ? 1 : near > NEAR_MAX ? NEAR_MAX : near;
    end = near = near < curve->count ? near : curve->count;
    while (end < curve->count && fabs(s[end].freq_mhz - mhz) < fabs(s[first].freq_mhz - mhz))
        first++, end++;
    struct freq_sample probe = s[first + near / 2];
    double *const targets[] = {&probe.power_w, &probe.time_s, &probe.window_s};
    for (size_t which = 0; which < 3; which++) {
        size_t known = 0;
        for (size_t i = first; i < end; i++)
            if (is_known(sample_figure(&s[i], which)))
                values[known++] = sample_figure(&s[i], which);
        *targets[which] = known ? select_median(values, known) : UNKNOWN;
    }
    probe.energy_j = probe.power_w * probe.window_s;
    probe.runs = (unsigned)near;
    return probe;
}

size_t freq_curve_probes(const struct freq_curve *curve, size_t wanted, size_t near,
                         struct freq_sample *out)
{
    size_t count = 0;
    double lowest =
        curve->count ? fmax(PROBE_LOWEST * curve->fmax_mhz, curve->samples[0].freq_mhz) : UNKNOWN;
    for (size_t i = 0; curve->count && i < wanted; i++) {
        double share = wanted > 1 ? (double)i / (double)(wanted - 1) : 0;
        double mhz = curve->fmax_mhz - share * (curve->fmax_mhz - lowest);
        struct freq_sample probe = probe_at(curve, mhz, near);
        if (count == 0 || probe.freq_mhz < out[count - 1].freq_mhz)
            out[count++] = probe;
    }
    return count;
}
