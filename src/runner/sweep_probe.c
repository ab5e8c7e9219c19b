/* Mode probe: a few clocks that a model of power and time can be fitted to, then clocks near the optimum that it
 * predicts, until that is among those that were measured.  Where the sweep has other knobs, each of their settings has
 * a curve of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "power/freq_model.h"
#include "power/optimize.h"
#include "runner/sweep.h"

/* The lowest probe, as a share of the highest clock, and how near to a measured clock another one tells nothing new. */
static const double LOWEST_PROBE = 0.45, NEAR = 0.04;
enum { ADDED_MOST = 6 }; /* clocks that one curve gets beyond its probes */

static const char KNOB[] = "gpu-clock";

/* ---- the first clocks ---- */

static double nearest(const double *clocks, size_t count, double mhz)
{
    double best = clocks[0];
    for (size_t i = 1; i < count; i++)
        if (fabs(clocks[i] - mhz) < fabs(best - mhz))
            best = clocks[i];
    return best;
}

void sweep_probe_knob(const double *clocks, size_t count, unsigned probes, struct text *out)
{
    double high = clocks[0], low = fmax(clocks[count - 1], LOWEST_PROBE * high), last = UNKNOWN;
    text_addf(out, "%s=", KNOB);
    for (unsigned i = 0; i < probes; i++) {
        double mhz = nearest(clocks, count, high - (high - low) * i / fmax(probes - 1.0, 1));
        if (mhz != last) /* a short list */
            text_addf(out, "%s%.10g", i ? "," : "", mhz);
        last = mhz;
    }
}

/* ---- a curve ---- */

static size_t find_knob(const struct sweep *sweep)
{
    size_t knob = 0;
    while (knob < sweep->knob_count && strcmp(sweep->knobs[knob], KNOB) != 0)
        knob++;
    return knob;
}

static double clock_at(const struct sweep *sweep, size_t point, size_t knob)
{
    double mhz;
    return parse_double(sweep->values[point * sweep->knob_count + knob], &mhz) ? UNKNOWN : mhz;
}

/* Whether all but the clock is the same. */
static bool same_curve(const struct sweep *sweep, size_t knob, size_t a, size_t b)
{
    for (size_t k = 0; k < sweep->knob_count; k++)
        if (k != knob && strcmp(sweep->values[a * sweep->knob_count + k],
                                sweep->values[b * sweep->knob_count + k]) != 0)
            return false;
    return true;
}

/* What was measured of the curve that `first` is a point of. */
static enum err collect(const struct sweep *sweep, size_t knob, size_t first,
                        struct freq_points *out)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < sweep->count; i++) {
        const struct sweep_attempt *attempt = &sweep->attempts[i];
        struct freq_point point = freq_point_unknown();
        str_copy(point.gpu, sizeof point.gpu, "gpu");
        str_copy(point.application, sizeof point.application, "command");
        point.freq_mhz = clock_at(sweep, attempt->point, knob);
        point.time_s = attempt->seconds;
        point.energy_j = attempt->joules;
        point.power_w = ratio(attempt->joules, attempt->seconds);
        if (!attempt->exit_code && !sweep_is_spoiled(attempt) && is_known(point.freq_mhz) &&
            point.power_w > 0 && same_curve(sweep, knob, first, attempt->point))
            err = freq_points_add(out, &point);
    }
    return err;
}

/* The clock of the least E T^n that a model of the measurements predicts; UNKNOWN if it cannot be predicted. */
static enum err predict_best(const struct freq_curves *curves, double exponent,
                             const double *clocks, size_t count, double *best, struct error *why)
{
    struct optimize_goal goal = optimize_goal_edp();
    struct freq_model model;
    struct optimize_point *points = calloc(count, sizeof *points);
    struct freq_prediction *at = calloc(count, sizeof *at);
    const struct freq_target target = {.gpu = curves->items[0].gpu,
                                       .application = curves->items[0].application};
    goal.time_exponent = exponent;
    *best = UNKNOWN;
    enum err err = points && at ? freq_model_fit(&model, "roofline", curves,
                                                 &(struct freq_model_options){0}, why)
                                : err_no_memory(why);
    if (!err) {
        err = freq_model_predict(&model, &target, clocks, count, at, why);
        for (size_t i = 0; !err && i < count; i++) {
            points[i] = optimize_point_unknown();
            points[i].freq_mhz = clocks[i];
            memcpy(points[i].figures, at[i].figures, sizeof at[i].figures);
        }
        struct optimum optimum = {0};
        if (!err)
            optimum = optimize_pick(&goal, &points[0], points, count);
        if (optimum.is_found)
            *best = clocks[optimum.best];
        freq_model_release(&model);
    }
    free(points);
    free(at);
    return err;
}

/* ---- the next clock ---- */

static bool is_measured(const struct sweep *sweep, size_t knob, size_t first, double mhz,
                        double near)
{
    for (size_t p = 0; p < sweep->point_count; p++)
        if (same_curve(sweep, knob, first, p) && fabs(clock_at(sweep, p, knob) - mhz) < near)
            return true;
    return false;
}

/* The best clock, then one on either side of it; UNKNOWN when all three are known well enough. */
static double next_clock(const struct sweep *sweep, size_t knob, size_t first, double best,
                         const double *clocks, size_t count)
{
    double apart = NEAR * clocks[0];
    const double wanted[] = {best, nearest(clocks, count, best + apart),
                             nearest(clocks, count, best - apart)};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!is_measured(sweep, knob, first, wanted[i], i ? apart / 2 : 0.5))
            return wanted[i];
    return UNKNOWN;
}

static enum err add_clock(struct sweep *sweep, struct run_writer *writer, size_t knob, size_t first,
                          double mhz, struct error *why)
{
    char number[32];
    char **values = calloc(sweep->knob_count, sizeof *values);
    if (!values)
        return err_no_memory(why);
    str_format(number, sizeof number, "%.10g", mhz);
    for (size_t k = 0; k < sweep->knob_count; k++)
        values[k] = k == knob ? number : sweep->values[first * sweep->knob_count + k];
    enum err err = sweep_extend(sweep, writer, values, why);
    free(values);
    return err;
}

static enum err refine_curve(struct sweep *sweep, struct run_writer *writer, size_t knob,
                             size_t first, bool *added, struct error *why)
{
    const double *clocks = sweep->clocks;
    size_t count = sweep->clock_count;
    struct freq_points points = {0};
    struct freq_curves curves = {0};
    double best = UNKNOWN;
    enum err err = err_explain(why, collect(sweep, knob, first, &points));
    if (!err && points.count)
        err = err_explain(why, freq_curves_of(&points, &curves));
    if (!err && curves.count && curves.items[0].count)
        err = predict_best(&curves, sweep->time_exponent, clocks, count, &best, why);
    if (err == ERR_NO_DATA) /* too few were measured: there is nothing to refine */
        err = ERR_OK;
    double mhz = is_known(best) ? next_clock(sweep, knob, first, best, clocks, count) : UNKNOWN;
    if (!err && is_known(mhz)) {
        err = add_clock(sweep, writer, knob, first, mhz, why);
        *added = !err;
    }
    freq_curves_release(&curves);
    freq_points_release(&points);
    return err;
}

enum err sweep_refine(struct sweep *sweep, struct run_writer *writer, bool *added,
                      struct error *why)
{
    size_t knob = find_knob(sweep), points = sweep->point_count;
    enum err err = ERR_OK;
    *added = false;
    /* Without control there are no other clocks. */
    bool is_probe = is_known(sweep->time_exponent) && sweep->clock_count && !sweep->uncontrolled;
    for (size_t p = 0; is_probe && !err && knob < sweep->knob_count && p < points; p++) {
        size_t first = 0, on_curve = 0;
        while (!same_curve(sweep, knob, first, p))
            first++;
        for (size_t q = 0; q < points; q++)
            on_curve += same_curve(sweep, knob, p, q);
        if (first == p && on_curve < SWEEP_PROBES_MOST + ADDED_MOST)
            err = refine_curve(sweep, writer, knob, p, added, why);
    }
    return err;
}
