/* Both ends of a saving come from one fit, so that common errors cancel: its ± is that of the change of the energy
 * between the two clocks, which the fit of a sweep knows; without one, that of the fit at either end.  The clocks that
 * refits without every fifth clock select give the regret.
 *
 * Measurements that are not fitted have the scatter of their repeats (power/repeat_scatter.h). */
#include "power/clock_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "power/clock_list.h"
#include "power/curve_fit.h"
#include "power/freq_model.h"
#include "power/repeat_scatter.h"
#include "stats/descriptive.h"
#include "stats/distribution.h"
#include "stats/fit.h"

enum { REFITS = 5 };
/* With fewer clocks, a fit without a fifth of them would no longer be a fit of a sweep. */
enum { REFIT_MIN = POWER_SWEEP_MIN * REFITS / (REFITS - 1) };
#define SAME_MHZ 0.5 /* drivers round 7.5 MHz steps */
#define SLOWER   0.05

void clock_choice_flags(const struct clock_choice *choice,
                        void (*take)(void *context, const char *name), void *context)
{
    static const struct {
        enum choice_flag flag;
        const char *name;
    } NAMES[] = {{CHOICE_NO_OPTIMUM, "no_meaningful_optimum"},
                 {CHOICE_NO_SETTING, "no_setting_within_limits"},
                 {CHOICE_MEASURED, "measured_not_fitted"},
                 {CHOICE_NO_INTERVAL, "no_interval"},
                 {CHOICE_LOWEST, "lowest_clock"},
                 {CHOICE_FAR_BASELINE, "baseline_extrapolated"},
                 {CHOICE_SLOW_BASELINE, "slow_baseline"},
                 {CHOICE_UNCHECKED, "measurements_unavailable"},
                 {CHOICE_NO_REPEATS, "no_repeats"},
                 {CHOICE_BELOW_MAX, "highest_clock_not_measured"},
                 {CHOICE_NEAR_SLO, "slo_within_uncertainty"},
                 {CHOICE_PREDICTED, "clock_not_measured"}};
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (choice->flags & NAMES[i].flag)
            take(context, NAMES[i].name);
    if (choice->flags & CHOICE_STAY)
        take(context, choice->baseline.setting[0] ? "baseline_is_best" : "highest_clock_is_best");
    for (enum finding_code code = 0; code < FINDING_CODES; code++)
        if (choice->found[code])
            take(context, finding_row(code)->code);
}

void clock_choice_release(struct clock_choice *choice)
{
    free(choice->points);
    *choice = (struct clock_choice){0};
}

static void refuse(struct clock_choice *choice, unsigned flag, const char *reason)
{
    choice->flags |= flag;
    choice->is_recommended = false;
    choice->saving = choice->saving_error = choice->slowdown = UNKNOWN;
    choice->error_method = NULL;
    chars_copy(choice->reason, reason);
}

/* ---- candidates ---- */

/* The candidate clocks, ascending, including fmax; none below the measured range, which would be extrapolation. */
static double *candidate_clocks(const struct clock_question *q, size_t *count)
{
    const struct freq_curve *curve = q->curve;
    bool is_listed = q->clocks && clock_list_has(q->clocks, curve->gpu);
    size_t limit = is_listed ? q->clocks->count : curve->count;
    size_t kept = 0;
    double *mhz = xcalloc(limit + 1, sizeof *mhz);
    if (is_listed)
        limit = clock_list_usable(q->clocks, curve->gpu, q->lowest_mhz - SAME_MHZ, mhz, limit);
    for (size_t i = 0; i < limit; i++) {
        double clock = is_listed ? mhz[i] : curve->samples[i].freq_mhz;
        if (clock < curve->fmax_mhz - SAME_MHZ)
            mhz[kept++] = clock;
    }
    mhz[kept++] = curve->fmax_mhz;
    *count = kept;
    return mhz;
}

/* Uses all usable measurements of the GPU: the heat sink is the same for every application.  Theil-Sen, since a GPU
 * that was not warm yet is an outlier. */
static void fit_thermal(const struct clock_question *q, struct thermal_fit *out)
{
    enum { POINTS_MIN = 3 };
    const struct freq_points *points = &q->data->points;
    double *watts = xcalloc(2 * points->count, sizeof *watts);
    struct theil_sen line;
    double *celsius = watts + points->count;
    for (size_t i = 0; i < points->count; i++) {
        const struct freq_point *p = &points->items[i];
        if (!is_known(p->temperature_c) || !(p->power_w > 0) || p->flags & FREQ_UNUSABLE ||
            !str_equal(p->gpu, q->curve->gpu))
            continue;
        watts[out->count] = p->power_w;
        celsius[out->count++] = p->temperature_c;
    }
    theil_sen(watts, celsius, out->count, &line);
    if (out->count >= POINTS_MIN && line.slope > 0) {
        out->resistance_c_per_w = line.slope;
        out->ambient_c = line.intercept;
    }
    free(watts);
}

/* The median of the usable points at the nearest measured clock; elsewhere from the fit, if there is one.  UNKNOWN:
 * no temperatures. */
static double temperature_at(const struct clock_question *q, const struct thermal_fit *thermal,
                             const struct optimize_point *at, double *values)
{
    double mhz = at->freq_mhz, nearest = INFINITY;
    size_t count = 0;
    const struct freq_points *points = &q->data->points;
    for (size_t i = 0; i < points->count; i++) {
        const struct freq_point *p = &points->items[i];
        double distance = fabs(p->freq_mhz - mhz);
        if (!is_known(p->temperature_c) || p->flags & FREQ_UNUSABLE ||
            !str_equal(p->gpu, q->curve->gpu) ||
            !str_equal(p->application, q->curve->application) || distance > nearest)
            continue;
        if (distance < nearest)
            count = 0;
        nearest = distance;
        values[count++] = p->temperature_c;
    }
    double modeled =
        thermal->ambient_c + thermal->resistance_c_per_w * at->figures[FREQ_POWER_W].value;
    if (is_known(modeled) && !(nearest <= SAME_MHZ))
        return modeled;
    return count ? select_median(values, count) : UNKNOWN;
}

static void add_temperatures(const struct clock_question *q, struct clock_choice *out)
{
    bool any = false;
    for (size_t i = 0; q->data && !any && i < q->data->points.count; i++)
        any = is_known(q->data->points.items[i].temperature_c);
    if (!any)
        return;
    double *values = xcalloc(q->data->points.count, sizeof *values);
    fit_thermal(q, &out->thermal);
    for (size_t i = 0; i < out->count; i++)
        out->points[i].temperature_c = temperature_at(q, &out->thermal, &out->points[i], values);
    if (out->count) /* the last is fmax */
        out->baseline.temperature_c = out->points[out->count - 1].temperature_c;
    free(values);
}

static struct freq_target target_of(const struct freq_curve *curve)
{
    struct freq_target target = freq_target_of(curve, NULL, 0);
    target.gpu = curve->gpu;
    target.application = curve->application;
    return target;
}

/* points[count] at mhz[count], the last of them fmax. */
static enum err predict_points(const struct freq_model *model, const struct freq_curve *curve,
                               const double *mhz, size_t count, struct optimize_point *points,
                               struct error *why)
{
    struct freq_target target = target_of(curve);
    struct freq_prediction *rows = xcalloc(count, sizeof *rows);
    enum err err = freq_model_predict(model, &target, mhz, count, rows, why);
    for (size_t i = 0; !err && i < count; i++) {
        points[i] = optimize_point_unknown();
        points[i].freq_mhz = mhz[i];
        points[i].is_extrapolated = rows[i].is_extrapolated;
        points[i].has_change = rows[i].has_change;
        memcpy(points[i].change, rows[i].change, sizeof points[i].change);
        memcpy(points[i].figures, rows[i].figures, sizeof points[i].figures);
    }
    free(rows);
    return err;
}

static enum err fitted_points(const struct clock_question *q, struct clock_choice *out,
                              struct error *why)
{
    double *mhz = candidate_clocks(q, &out->count);
    out->points = xcalloc(out->count, sizeof *out->points);
    enum err err = predict_points(q->model, q->curve, mhz, out->count, out->points, why);
    free(mhz);
    if (!err)
        out->baseline = out->points[out->count - 1];
    out->model = q->model->kind->name;
    out->flags |= out->baseline.is_extrapolated ? CHOICE_FAR_BASELINE : 0;
    return err;
}

static void measured_points(const struct clock_question *q, struct clock_choice *out)
{
    const struct freq_curve *curve = q->curve;
    out->points = xcalloc(curve->count, sizeof *out->points);
    for (size_t i = 0; i < curve->count; i++) {
        const struct freq_sample *sample = &curve->samples[i];
        struct optimize_point *point = &out->points[out->count++];
        *point = optimize_point_unknown();
        point->freq_mhz = sample->freq_mhz;
        point->figures[FREQ_POWER_W].value = sample->power_w;
        point->figures[FREQ_TIME_S].value = sample->time_s;
        point->figures[FREQ_ENERGY_J].value = sample->energy_j;
        point->runs = sample->runs;
        point->scatter[FREQ_ENERGY_J] = sample->energy_scatter;
        point->scatter[FREQ_TIME_S] = sample->time_scatter;
    }
    if (out->count)
        out->baseline = out->points[out->count - 1];
    out->flags |= CHOICE_MEASURED;
}

static double saving_of(const struct optimize_point *point, const struct optimize_point *baseline)
{
    return 1 - point->figures[FREQ_ENERGY_J].value / baseline->figures[FREQ_ENERGY_J].value;
}

/* ---- what was measured at the clocks of a fit ---- */

static const struct freq_sample *sample_at(const struct freq_curve *curve, double mhz)
{
    for (size_t i = 0; i < curve->count; i++)
        if (fabs(curve->samples[i].freq_mhz - mhz) <= SAME_MHZ)
            return &curve->samples[i];
    return NULL;
}

static double sample_figure(const struct freq_sample *sample, enum freq_figure figure)
{
    if (figure == FREQ_POWER_W)
        return sample->power_w;
    return figure == FREQ_TIME_S ? sample->time_s : sample->energy_j;
}

/* How far a sample may be from the fit: the FREQ_LEVEL interval of one sample, by the median of all of them. */
static void sample_tolerances(const struct freq_curve *curve, const struct clock_choice *choice,
                              double *tolerances)
{
    const double LEVEL_Z = 1.645;
    double *off = xcalloc(choice->count + 1, sizeof *off);
    for (enum freq_figure k = 0; k < FREQ_FIGURES; k++) {
        size_t known = 0;
        for (size_t i = 0; i < choice->count; i++) {
            const struct freq_sample *sample = sample_at(curve, choice->points[i].freq_mhz);
            double value = choice->points[i].figures[k].value;
            if (sample && is_known(log(sample_figure(sample, k) / value)))
                off[known++] = fabs(log(sample_figure(sample, k) / value));
        }
        tolerances[k] = known ? LEVEL_Z * 1.4826 * select_median(off, known) : 0;
    }
    free(off);
}

/* ln of measured over fitted energy at a point. */
static double energy_off(const struct optimize_point *point, const struct freq_sample *sample)
{
    return log(sample->energy_j / point->figures[FREQ_ENERGY_J].value);
}

/* Whether what was measured at a point exceeds a limit that the fit meets, or shows another change of the energy than
 * the fit, by more than its ±: at a step that the curve rounds off, or an outlier. */
static bool contradicts(const struct optimize_goal *goal, const struct optimize_point *baseline,
                        double baseline_off, const struct optimize_point *point,
                        const struct freq_sample *sample, const double *tolerances)
{
    struct optimize_point least = *point;
    double tolerance[FREQ_FIGURES];
    for (enum freq_figure k = 0; k < FREQ_FIGURES; k++) {
        tolerance[k] = point->has_change ? point->change[k] : tolerances[k];
        least.figures[k].value = sample_figure(sample, k) * exp(-tolerance[k]);
    }
    if (fabs(energy_off(point, sample) - baseline_off) > tolerance[FREQ_ENERGY_J])
        return true;
    return !optimize_violations(goal, baseline, point) &&
           optimize_violations(goal, baseline, &least);
}

/* Marks clocks that are no optimum since their own measurement contradicts it.  If that at fmax contradicts the fit,
 * every saving is that uncertain. */
static void check_against_samples(const struct clock_question *q, struct clock_choice *out)
{
    double tolerances[FREQ_FIGURES], off = 0;
    const struct freq_sample *top = sample_at(q->curve, out->baseline.freq_mhz);
    if (!q->data)
        return;
    sample_tolerances(q->curve, out, tolerances);
    if (top)
        off = known_or(energy_off(&out->baseline, top), 0);
    for (size_t i = 0; i + 1 < out->count; i++) { /* the last is the baseline */
        struct optimize_point *point = &out->points[i];
        const struct freq_sample *sample = sample_at(q->curve, point->freq_mhz);
        if (fabs(off) > tolerances[FREQ_ENERGY_J])
            point->change[FREQ_ENERGY_J] = hypot(point->change[FREQ_ENERGY_J], off);
        point->is_predicted = !sample;
        point->is_contradicted =
            sample && contradicts(&q->goal, &out->baseline, off, point, sample, tolerances);
    }
}

/* ---- uncertainty ---- */

/* Refits without the samples fold, fold + REFITS ... and predicts points[] at the clocks of the choice's points. */
static enum err refit(const struct clock_question *q, const struct clock_choice *choice,
                      size_t fold, struct freq_sample *samples, struct optimize_point *points,
                      struct error *why)
{
    struct freq_curve curve = *q->curve;
    struct freq_curves one = {&curve, 1};
    struct freq_model model = {0};
    double *mhz = xcalloc(choice->count, sizeof *mhz);
    curve.samples = samples;
    curve.count = 0;
    for (size_t i = 0; i < q->curve->count; i++)
        if (i % REFITS != fold)
            samples[curve.count++] = q->curve->samples[i];
    for (size_t i = 0; i < choice->count; i++)
        mhz[i] = choice->points[i].freq_mhz;
    enum err err = freq_model_fit(&model, q->model->kind->name, &one,
                                  &(struct freq_model_options){.without_interval = true}, why);
    if (!err)
        err = predict_points(&model, &curve, mhz, choice->count, points, why);
    freq_model_release(&model);
    free(mhz);
    return err;
}

/* The objective at the clocks that refits would have chosen. */
static enum err regret_by_refits(const struct clock_question *q, struct clock_choice *out,
                                 struct error *why)
{
    struct freq_sample *samples = xcalloc(q->curve->count, sizeof *samples);
    struct optimize_point *points = xcalloc(out->count, sizeof *points);
    struct online regrets = {0};
    enum err err = ERR_OK;
    for (size_t fold = 0; !err && fold < REFITS; fold++) {
        err = refit(q, out, fold, samples, points, why);
        if (err)
            break;
        struct optimum at = optimize_pick(&q->goal, &points[out->count - 1], points, out->count);
        if (!at.is_found)
            continue;
        double excess =
            optimize_objective(&q->goal, &out->points[at.best]) / out->optimum.objective - 1;
        online_add(&regrets, fmax(0, excess)); /* a pick outside the limits may be lower */
    }
    if (!err) {
        out->refits = REFITS;
        out->regret_mean = online_mean(&regrets);
        out->regret_max = online_max(&regrets);
    }
    free(samples);
    free(points);
    return err;
}

/* Of a sweep: the change of the energy between both ends of one fit. */
static void errors_by_changes(struct clock_choice *out)
{
    for (size_t i = 0; i < out->count; i++)
        if (out->points[i].has_change)
            out->points[i].saving_error = (1 - saving_of(&out->points[i], &out->baseline)) *
                                          out->points[i].change[FREQ_ENERGY_J];
    if (is_known(out->points[out->optimum.best].saving_error))
        out->error_method = "smooth curves through the sweep, with their lack of fit";
}

/* Without a fit of a sweep: its interval at both ends. */
static void errors_by_intervals(struct clock_choice *out)
{
    const struct freq_value *base = &out->baseline.figures[FREQ_ENERGY_J];
    for (size_t i = 0; i < out->count; i++) {
        const struct freq_value *at = &out->points[i].figures[FREQ_ENERGY_J];
        out->points[i].saving_error = (1 - saving_of(&out->points[i], &out->baseline)) *
                                      hypot(at->high / at->value - 1, base->high / base->value - 1);
    }
    if (is_known(out->points[out->optimum.best].saving_error))
        out->error_method = "interval of the fit at both ends";
    else
        out->flags |= CHOICE_NO_INTERVAL;
}

static unsigned repeats_flag(const struct clock_choice *choice)
{
    return repeat_scatter_of(choice->points, choice->count, choice->count).freedom > 0
               ? 0
               : CHOICE_NO_REPEATS;
}

/* Sets the saving's ±; returns that of the objective relative to the baseline's, UNKNOWN without repeats. */
static double errors_by_repeats(const struct optimize_goal *goal, struct clock_choice *out)
{
    const struct optimize_goal energy = {.time_exponent = 0};
    const struct repeat_scatter scatter =
        repeat_scatter_of(out->points, out->count, out->optimum.usable);
    unsigned runs = out->points[out->optimum.best].runs, base_runs = out->baseline.runs;
    double apart = repeat_scatter_apart(&scatter, goal, runs, base_runs);
    if (!is_known(apart))
        return UNKNOWN;
    for (size_t i = 0; i < out->count; i++)
        if (out->points[i].runs)
            out->points[i].saving_error =
                (1 - saving_of(&out->points[i], &out->baseline)) *
                repeat_scatter_apart(&scatter, &energy, out->points[i].runs, base_runs);
    out->error_method = "repeats, for all settings at once";
    out->flags &= ~(unsigned)CHOICE_NO_INTERVAL;
    return apart;
}

/* Pauses of the logs at both ends, which the curves do not show. */
static void widen_by_pauses(const struct freq_curve *curve, struct clock_choice *out)
{
    double error = freq_samples_pause_error(curve->samples, curve->count) * sqrt(2);
    for (size_t i = 0; error > 0 && i < out->count; i++)
        out->points[i].saving_error = hypot(
            out->points[i].saving_error, (1 - saving_of(&out->points[i], &out->baseline)) * error);
}

struct freq_value clock_choice_latency(double *seconds, size_t count, double p)
{
    struct freq_value out = {UNKNOWN, UNKNOWN, UNKNOWN};
    double mean = 0, squares = 0, n = (double)count;
    if (p > 0) {
        sort_ascending(seconds, count);
        quantile_interval(seconds, count, p, FREQ_LEVEL, &out.low, &out.high);
        if (is_known(out.high))
            out.value = quantile_sorted(seconds, count, p);
        return out;
    }
    if (count < 2)
        return out;
    for (size_t i = 0; i < count; i++)
        mean += seconds[i] / n;
    for (size_t i = 0; i < count; i++)
        squares += (seconds[i] - mean) * (seconds[i] - mean);
    double error = student_quantile(1 - FREQ_LEVEL, n - 1) * sqrt(squares / (n - 1) / n);
    return (struct freq_value){mean, mean - error, mean + error};
}

/* ---- the result ---- */

/* Whether the figure that a limit applies to is unknown at every point, or of no use as a reference: an accuracy of 0. */
static bool is_limit_unknown(const struct clock_choice *choice, const struct optimize_goal *goal,
                             enum optimize_limit limit)
{
    const struct optimize_point *baseline = &choice->baseline;
    size_t known = 0;
    for (size_t i = 0; i < choice->count; i++)
        known += is_known(limit == LIMIT_QUALITY ? choice->points[i].quality
                                                 : choice->points[i].temperature_c);
    if (limit == LIMIT_QUALITY &&
        (!is_known(baseline->quality) || (baseline->quality == 0 && !goal->is_quality_falling)))
        return true;
    return (limit == LIMIT_QUALITY || limit == LIMIT_TEMPERATURE) && !known;
}

/* " (p99 needs 299 queries in each run, the runs have 100)" */
static void explain_latency(const struct clock_choice *choice, const struct optimize_goal *goal,
                            unsigned limit, struct text *out)
{
    size_t known = 0;
    size_t min = goal->slo_quantile > 0 ? quantile_min_count(goal->slo_quantile, FREQ_LEVEL) : 2;
    double max = 0;
    for (size_t i = 0; i < choice->count; i++) {
        known += is_known(choice->points[i].latency[limit - LIMIT_LATENCY].value);
        max = fmax(max, choice->points[i].queries);
    }
    if (known)
        return;
    if (max >= (double)min)
        text_add(out, " (not recorded)");
    else if (goal->slo_quantile > 0)
        text_addf(out, " (p%.0f needs %zu queries in each run, the runs have %.0f)",
                  100 * goal->slo_quantile, min, max);
    else
        text_addf(out, " (%zu queries are needed in each run)", min);
}

/* Why it is not known whether a setting meets the limit; "" if it is. */
static const char *unknown_because(const struct clock_choice *choice,
                                   const struct optimize_goal *goal, enum optimize_limit limit)
{
    if (!is_limit_unknown(choice, goal, limit))
        return "";
    return limit == LIMIT_TEMPERATURE ? " (no temperature was measured)"
                                      : " (the baseline has no quality above 0)";
}

static void name_limits(const struct optimize_goal *goal, struct clock_choice *out)
{
    struct text reason = {0};
    text_add(&reason, "no setting meets the limits:");
    for (unsigned i = 0; i < OPTIMIZE_LIMITS; i++) {
        if (!(out->optimum.limits & 1u << i))
            continue;
        text_addf(&reason, " %s%s", optimize_limit_name((enum optimize_limit)i),
                  unknown_because(out, goal, (enum optimize_limit)i));
        if (optimize_limit_is_latency(i))
            explain_latency(out, goal, i, &reason);
    }
    refuse(out, CHOICE_NO_SETTING, text_get(&reason));
    text_release(&reason);
}

static const char *invalid_finding(const struct clock_question *q, struct clock_choice *out)
{
    const char *text = q->void_because;
    for (enum finding_code code = 0; q->data && code < FINDING_CODES; code++)
        out->found[code] |= data_findings_has(&q->data->findings, code, q->curve);
    for (size_t i = 0; q->data && i < q->data->findings.count; i++) {
        const struct finding *f = &q->data->findings.items[i];
        if (f->severity == FINDING_INVALID && str_equal(f->gpu, q->curve->gpu) &&
            str_equal(f->application, q->curve->application))
            text = f->text;
    }
    return text;
}

static bool is_baseline(const struct clock_choice *choice, const struct optimize_point *point)
{
    return str_equal(point->setting, choice->baseline.setting) &&
           (point->setting[0] || point->freq_mhz == choice->baseline.freq_mhz);
}

static bool is_lowest(const struct clock_choice *choice, const struct optimize_point *point)
{
    bool is_clock = false; /* one of several */
    for (size_t i = 0; i < choice->count; i++) {
        if (choice->points[i].freq_mhz < point->freq_mhz)
            return false;
        is_clock |= choice->points[i].freq_mhz > point->freq_mhz;
    }
    return is_clock;
}

/* Sets the result of the chosen point; the ± of the saving is still unknown. */
static void set_result(const struct optimize_goal *goal, struct clock_choice *out)
{
    out->optimum = optimize_pick(goal, &out->baseline, out->points, out->count);
    (void)optimize_front(goal, out->points, out->count);
    if (out->optimum.usable == 0) {
        refuse(out, CHOICE_NO_OPTIMUM, "energy and time are not known at any setting");
        return;
    }
    if (!out->optimum.is_found) {
        name_limits(goal, out);
        return;
    }
    if (out->optimum.usable == 1) {
        refuse(out, CHOICE_NO_OPTIMUM,
               out->baseline.setting[0] ? "only one setting was measured"
                                        : "only one clock was measured");
        return;
    }
    const struct optimize_point *best = &out->points[out->optimum.best];
    out->is_recommended = true;
    for (unsigned i = 0; i < OPTIMIZE_LATENCIES; i++)
        if (best->latency[i].high > goal->limits[LIMIT_LATENCY + i])
            out->flags |= CHOICE_NEAR_SLO;
    out->saving = saving_of(best, &out->baseline);
    out->slowdown = best->figures[FREQ_TIME_S].value / out->baseline.figures[FREQ_TIME_S].value - 1;
    out->flags |= best->is_predicted ? CHOICE_PREDICTED : 0;
    if (is_baseline(out, best))
        out->flags |= CHOICE_STAY;
    else if (is_lowest(out, best))
        out->flags |= CHOICE_LOWEST;
}

static void start(struct clock_choice *out)
{
    *out = (struct clock_choice){.thermal = {UNKNOWN, UNKNOWN, 0},
                                 .baseline = optimize_point_unknown(),
                                 .saving = UNKNOWN,
                                 .saving_error = UNKNOWN,
                                 .slowdown = UNKNOWN,
                                 .regret_mean = UNKNOWN,
                                 .regret_max = UNKNOWN};
}

/* Withdraws a recommendation if the saving is not significant, or due to a cold baseline; but not if the highest
 * clock violates a limit. */
static void check_significance(const struct optimize_goal *goal, struct clock_choice *out)
{
    char reason[sizeof out->reason];
    if (!out->is_recommended || out->flags & CHOICE_STAY ||
        optimize_violations(goal, &out->baseline, &out->baseline))
        return;
    if (out->slowdown < -SLOWER) {
        chars_format(reason,
                     "the highest clock was measured %.0f %% slower than a lower one: not "
                     "warmed up, or a different workload",
                     100 / (1 + out->slowdown) - 100);
        refuse(out, CHOICE_NO_OPTIMUM | CHOICE_SLOW_BASELINE, reason);
    } else if (out->saving - out->saving_error <= 0 ||
               (!is_known(out->saving_error) && out->saving <= 0)) {
        char error[40] = "";
        if (is_known(out->saving_error))
            chars_format(error, " ± %.1f", 100 * out->saving_error);
        chars_format(reason, "%.0f MHz would save %.1f%s %%: not significant",
                     out->points[out->optimum.best].freq_mhz, 100 * out->saving, error);
        refuse(out, CHOICE_NO_OPTIMUM, reason);
    }
}

/* Whether the supported clocks include a higher one than was measured, which savings should be relative to. */
static bool is_below_max(const struct clock_question *q)
{
    for (size_t i = 0; q->clocks && i < q->clocks->count; i++)
        if (q->clocks->items[i].mhz > q->curve->fmax_mhz + SAME_MHZ &&
            clock_list_is_legal(q->clocks, q->curve->gpu, q->clocks->items[i].mhz))
            return true;
    return false;
}

enum err clock_choice_of(const struct clock_question *q, struct clock_choice *out,
                         struct error *why)
{
    start(out);
    chars_copy(out->gpu, q->curve->gpu);
    chars_copy(out->application, q->curve->application);
    out->measured = q->curve->count;
    out->flags = (q->data ? 0 : CHOICE_UNCHECKED) | (is_below_max(q) ? CHOICE_BELOW_MAX : 0);
    const char *invalid = invalid_finding(q, out);
    /* With a few clocks the fit is dominated by the prior from other applications: only on request. */
    bool is_fitted =
        !q->data || q->curve->count >= POWER_SWEEP_MIN || (q->is_always_fitted && q->curve->count);
    enum err err = ERR_OK;
    if (is_fitted)
        err = fitted_points(q, out, why);
    else
        measured_points(q, out);
    if (err)
        return err;
    add_temperatures(q, out);
    if (is_fitted)
        check_against_samples(q, out);
    set_result(&q->goal, out);
    if (invalid)
        refuse(out, CHOICE_NO_OPTIMUM, invalid);
    if (!out->is_recommended)
        return ERR_OK;
    bool is_refitted =
        q->curve->count >= REFIT_MIN && q->model->kind->has_probes && !q->model->kind->is_slow;
    if (is_refitted)
        err = regret_by_refits(q, out, why);
    if (is_fitted) {
        errors_by_changes(out);
    } else {
        out->flags |= repeats_flag(out);
        (void)errors_by_repeats(&q->goal, out);
    }
    if (is_known(out->points[out->optimum.best].saving_error))
        widen_by_pauses(q->curve, out);
    else
        errors_by_intervals(out); /* which include pauses already */
    out->saving_error = out->points[out->optimum.best].saving_error;
    check_significance(&q->goal, out);
    return err;
}

/* A setting may be worth its energy by being faster: significance is that of the objective. */
static void check_setting(const struct optimize_goal *goal, double error, struct clock_choice *out)
{
    char reason[sizeof out->reason];
    double left = out->optimum.objective / optimize_objective(goal, &out->baseline);
    if (!is_known(error) || optimize_violations(goal, &out->baseline, &out->baseline) ||
        1 - left > left * error)
        return;
    chars_format(reason, "%.100s would lower the objective by %.1f ± %.1f %%: not significant",
                 out->points[out->optimum.best].setting, 100 * (1 - left), 100 * left * error);
    refuse(out, CHOICE_NO_OPTIMUM, reason);
}

enum err clock_choice_of_settings(struct optimize_point *points, size_t count, size_t baseline,
                                  const struct optimize_goal *goal, const char *void_because,
                                  struct clock_choice *out, struct error *why)
{
    start(out);
    out->points = points;
    out->count = out->measured = count;
    if (baseline >= count)
        return err_set(why, ERR_NO_DATA, "no settings");
    out->baseline = points[baseline];
    out->flags = CHOICE_MEASURED | CHOICE_NO_INTERVAL | repeats_flag(out);
    set_result(goal, out);
    if (void_because)
        refuse(out, CHOICE_NO_OPTIMUM, void_because);
    if (out->is_recommended && !(out->flags & CHOICE_STAY)) {
        double error = errors_by_repeats(goal, out);
        out->saving_error = out->points[out->optimum.best].saving_error;
        check_setting(goal, error, out);
    }
    return ERR_OK;
}

/* ---- one clock for several applications ---- */

struct clock_effect clock_choice_at(const struct clock_choice *choice,
                                    const struct optimize_goal *goal, double mhz)
{
    struct clock_effect effect = {false, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    for (size_t i = 0; choice->optimum.is_found && i < choice->count; i++) {
        const struct optimize_point *point = &choice->points[i];
        if (!(fabs(point->freq_mhz - mhz) <= SAME_MHZ) || point->is_contradicted ||
            optimize_violations(goal, &choice->baseline, point) ||
            !is_known(optimize_objective(goal, point)))
            continue;
        effect.is_known = true;
        effect.regret = optimize_objective(goal, point) / choice->optimum.objective - 1;
        effect.saving = saving_of(point, &choice->baseline);
        effect.saving_error = point->saving_error;
        effect.slowdown =
            point->figures[FREQ_TIME_S].value / choice->baseline.figures[FREQ_TIME_S].value - 1;
        break;
    }
    return effect;
}

/* The effects of a clock on the recommended choices of its GPU; false if it violates a limit of one of them. */
static bool policy_at(const struct clock_choice *choices, size_t count,
                      const struct optimize_goal *goal, double mhz, struct clock_policy *policy)
{
    policy->freq_mhz = mhz;
    policy->applications = 0;
    policy->regret_mean = policy->regret_max = policy->saving_mean = policy->saving_error = 0;
    for (size_t i = 0; i < count; i++) {
        if (!choices[i].is_recommended || !str_equal(choices[i].gpu, policy->gpu))
            continue;
        struct clock_effect effect = clock_choice_at(&choices[i], goal, mhz);
        if (!effect.is_known)
            return false;
        policy->applications++;
        policy->regret_mean += effect.regret;
        policy->regret_max = fmax(policy->regret_max, effect.regret);
        policy->saving_mean += effect.saving;
        policy->saving_error = hypot(policy->saving_error, effect.saving_error);
    }
    policy->regret_mean /= (double)policy->applications;
    policy->saving_mean /= (double)policy->applications;
    policy->saving_error /= (double)policy->applications;
    return true;
}

static struct clock_policy policy_of(const struct clock_choice *choices, size_t count,
                                     const struct clock_choice *first,
                                     const struct optimize_goal *goal, enum policy_rule rule,
                                     size_t applications)
{
    struct clock_policy best = {.freq_mhz = UNKNOWN,
                                .applications = applications,
                                .regret_mean = UNKNOWN,
                                .regret_max = UNKNOWN,
                                .saving_mean = UNKNOWN,
                                .saving_error = UNKNOWN};
    chars_copy(best.gpu, first->gpu);
    for (size_t i = 0; i < first->count; i++) {
        struct clock_policy at = best;
        if (!policy_at(choices, count, goal, first->points[i].freq_mhz, &at))
            continue;
        if (!(rule == POLICY_MINIMAX ? at.regret_max >= best.regret_max
                                     : at.regret_mean >= best.regret_mean))
            best = at;
    }
    return best;
}

size_t clock_policies_of(const struct clock_choice *choices, size_t count,
                         const struct optimize_goal *goal, enum policy_rule rule,
                         struct clock_policy *out)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t same = 0;
        bool is_first = choices[i].is_recommended;
        for (size_t j = 0; j < count; j++) {
            bool is_same = choices[j].is_recommended && str_equal(choices[j].gpu, choices[i].gpu);
            is_first &= !(is_same && j < i);
            same += is_same;
        }
        if (is_first && same > 1)
            out[found++] = policy_of(choices, count, &choices[i], goal, rule, same);
    }
    return found;
}
