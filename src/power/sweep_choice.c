/* The best setting of a sweep (power/clock_choice.h): clocks by a fit, other settings as measured; exclusions. */
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "power/clock_choice.h"
#include "power/repeat_scatter.h"
#include "power/sweep_points.h"
#include "rundir/run_table.h"

/* ---- latencies of the queries ---- */

/* Seconds; UNKNOWN if the record does not have it. */
static double query_latency(const struct run_table *table, enum optimize_latency latency, double p,
                            size_t row)
{
    double tokens = run_number(table, RUN_OUTPUT_TOKENS, row);
    double first = run_number(table, RUN_TTFT, row), whole = run_number(table, RUN_LATENCY, row);
    switch (latency) {
    case LATENCY_TTFT:
        return first;
    case LATENCY_ITL:
        return run_number(table,
                          p > 0.98   ? RUN_ITL_P99
                          : p > 0.94 ? RUN_ITL_P95
                                     : RUN_ITL_MEDIAN,
                          row) /
               1e3;
    case LATENCY_TPOT:
        return tokens > 1 ? (whole - first) / (tokens - 1) : UNKNOWN;
    default:
        return whole;
    }
}

static enum err load_latencies(const char *directory, const struct optimize_goal *goal,
                               struct sweep_measurement *out, struct error *why)
{
    static const struct run_wanted WANTED = {
        .numbers = RUN_WANT(RUN_TTFT) | RUN_WANT(RUN_LATENCY) | RUN_WANT(RUN_OUTPUT_TOKENS) |
                   RUN_WANT(RUN_ITL_MEDIAN) | RUN_WANT(RUN_ITL_P95) | RUN_WANT(RUN_ITL_P99)};
    struct run_table table;
    enum err err = run_table_load(directory, NULL, WANTED, &table, why);
    if (err)
        return err == ERR_NO_DATA ? ERR_OK : err; /* without records the latency is unknown */
    double *seconds = xcalloc(table.rows, sizeof *seconds);
    for (unsigned k = 0; k < OPTIMIZE_LATENCIES; k++) {
        size_t count = 0;
        if (!is_known(goal->limits[LIMIT_LATENCY + k]))
            continue;
        for (size_t row = 0; row < table.rows; row++) {
            double one = query_latency(&table, (enum optimize_latency)k, goal->slo_quantile, row);
            if (run_completed(&table, row) && is_known(one))
                seconds[count++] = one;
        }
        out->latency[k] = clock_choice_latency(seconds, count, goal->slo_quantile);
    }
    free(seconds);
    run_table_release(&table);
    return ERR_OK;
}

enum err sweep_choice_latencies(struct sweep_points *points, const char *directory,
                                const struct optimize_goal *goal, struct error *why)
{
    const struct sweep *sweep = &points->sweep;
    enum err err = ERR_OK;
    if (!sweep->profile)
        return err_set(why, ERR_USAGE,
                       "a latency SLO needs a sweep of profiles (`ipw sweep --profile`)");
    for (size_t i = 0; !err && i < sweep->count; i++) {
        if (points->items[i].exclusion || !sweep->attempts[i].path)
            continue;
        char *path = path_join(directory, sweep->attempts[i].path);
        err = load_latencies(path, goal, &points->items[i], why);
        free(path);
    }
    return err;
}

/* ---- excluded attempts ---- */

/* Adds findings for excluded attempts, as the checks of a file do. */
static void note_exclusions(const struct sweep_points *points, struct clock_choice *out,
                            struct findings *findings)
{
    static const enum finding_code CODES[SWEEP_EXCLUSIONS] = {
        [SWEEP_FAILED] = FINDING_FAILED_RUNS,
        [SWEEP_THROTTLED] = FINDING_THROTTLED_RUNS,
        [SWEEP_OFF_TARGET] = FINDING_CLOCK_MISMATCH,
        [SWEEP_UNMEASURED] = FINDING_INVALID_VALUE};
    for (enum sweep_exclusion e = SWEEP_USED + 1; e < SWEEP_EXCLUSIONS; e++) {
        char text[80];
        size_t rows = sweep_points_excluded(points, e);
        if (!rows)
            continue;
        chars_format(text, "%zu of %zu attempts: %s", rows, points->sweep.count,
                     sweep_exclusion_name(e));
        out->found[CODES[e]] = true;
        if (findings)
            data_findings_add(findings, CODES[e], rows, text);
    }
}

void sweep_choice_note(const struct sweep_points *points, struct clock_choice *out,
                       struct findings *findings)
{
    char text[200] = "the sweep has not ended: `ipw sweep --resume` continues it", example[100];
    size_t missing = sweep_points_missing(points, example, sizeof example);
    if (missing || !points->sweep.ended) {
        out->found[FINDING_INCOMPLETE_SWEEP] = true;
        if (missing)
            chars_format(text, "%zu of %zu settings were not measured, such as %s", missing,
                         points->sweep.point_count, example);
        if (findings)
            data_findings_add(findings, FINDING_INCOMPLETE_SWEEP, missing, text);
    }
    if (points->is_uneven) {
        out->found[FINDING_UNEVEN_QUERIES] = true;
        if (findings)
            data_findings_add(findings, FINDING_UNEVEN_QUERIES, points->sweep.count,
                              "settings have different numbers of queries");
    }
}

/* ---- the choice ---- */

enum err sweep_choice_of_settings(const struct sweep_question *q, struct clock_choice *out,
                                  struct findings *findings, struct error *why)
{
    struct setting_points settings;
    *out = (struct clock_choice){0};
    enum err err = sweep_points_settings(q->points, q->where, &settings, why);
    if (err)
        return err;
    if (q->quality_file) {
        err = setting_points_add_quality(q->quality_file, &settings, why);
        if (err) {
            free(settings.items);
            return err;
        }
    }
    size_t baseline = q->baseline ? setting_points_find(&settings, q->baseline)
                                  : sweep_points_baseline(q->points, &settings);
    if (baseline == settings.count) {
        err = err_set(why, ERR_USAGE, "--baseline: no setting '%.60s' was measured: '%.100s' was",
                      q->baseline, settings.items[0].setting);
        free(settings.items);
        return err;
    }
    err = clock_choice_of_settings(settings.items, settings.count, baseline, q->goal,
                                   sweep_points_void(q->points), out, why);
    for (size_t i = 0; i < q->points->sweep.count && !out->gpu[0]; i++) {
        chars_copy(out->gpu, q->points->items[i].gpu);
        chars_copy(out->application, q->points->items[i].application);
    }
    if (!err) {
        note_exclusions(q->points, out, findings);
        sweep_choice_note(q->points, out, findings);
    }
    return err;
}

static enum err choose_clock(const struct sweep_points *points, const struct freq_data *data,
                             const struct optimize_goal *goal, struct clock_choice *out,
                             struct error *why)
{
    struct freq_model model = {0};
    const struct freq_curve *curve = &data->curves.items[0];
    for (size_t i = 1; i < data->curves.count; i++)
        if (data->curves.items[i].count > curve->count)
            curve = &data->curves.items[i];
    enum err err = freq_model_fit(&model, "roofline", &data->curves,
                                  &(struct freq_model_options){.seed = 1}, why);
    const struct clock_question question = {.curve = curve,
                                            .model = &model,
                                            .data = data,
                                            .lowest_mhz =
                                                curve->count ? curve->samples[0].freq_mhz : UNKNOWN,
                                            .void_because = sweep_points_void(points),
                                            .goal = *goal};
    if (!err)
        err = clock_choice_of(&question, out, why);
    freq_model_release(&model);
    return err;
}

enum err sweep_choice_of(const struct sweep_points *points, const char *directory,
                         const struct optimize_goal *goal, struct clock_choice *out,
                         struct error *why)
{
    struct freq_data data = {0};
    *out = (struct clock_choice){0};
    if (!sweep_points_is_fitted(points))
        return sweep_choice_of_settings(&(struct sweep_question){.points = points, .goal = goal},
                                        out, NULL, why);
    enum err err =
        sweep_points_add(points, &(struct freq_source){.path = directory}, &data.points, why);
    if (!err)
        err = freq_data_check(&data, why);
    if (!err)
        err = choose_clock(points, &data, goal, out, why);
    if (!err)
        sweep_choice_note(points, out, NULL);
    freq_data_release(&data);
    return err;
}

/* ---- the best of all ---- */

/* The point of a candidate: a clock that was fitted is that of one point. */
static size_t point_of(const struct sweep_points *points, const struct optimize_point *best)
{
    const struct sweep *sweep = &points->sweep;
    size_t point = 0;
    if (best->setting[0])
        return best->point;
    while (point < sweep->point_count &&
           sweep_point(sweep, point)[points->clock].number != best->freq_mhz)
        point++;
    return point;
}

static size_t count_alike(const struct setting_points *settings,
                          const struct repeat_scatter *scatter, const struct optimize_goal *goal,
                          size_t point)
{
    const struct optimize_point *best = NULL;
    size_t alike = 0;
    for (size_t i = 0; i < settings->count; i++)
        if (settings->items[i].point == point)
            best = &settings->items[i];
    for (size_t i = 0; best && i < settings->count; i++) {
        const struct optimize_point *other = &settings->items[i];
        double min = optimize_objective(goal, best), value = optimize_objective(goal, other);
        double apart = repeat_scatter_apart(scatter, goal, best->runs, other->runs);
        alike += other != best && is_known(value) && !(value - min > min * apart);
    }
    return alike;
}

enum err sweep_choice_best(const struct sweep_points *points, const struct clock_choice *choice,
                           const struct optimize_goal *goals, size_t count,
                           struct best_setting *out, struct error *why)
{
    struct setting_points settings;
    enum err err = sweep_points_settings(points, NULL, &settings, why);
    if (err)
        return err;
    const struct repeat_scatter scatter =
        repeat_scatter_of(settings.items, settings.count, settings.count);
    for (size_t i = 0; i < count; i++) {
        const struct optimum optimum =
            optimize_pick(&goals[i], &choice->baseline, choice->points, choice->count);
        out[i] = (struct best_setting){.point = points->sweep.point_count};
        if (!optimum.is_found)
            continue;
        out[i].point = point_of(points, &choice->points[optimum.best]);
        out[i].is_tested = scatter.freedom > 0;
        out[i].alike = count_alike(&settings, &scatter, &goals[i], out[i].point);
    }
    free(settings.items);
    return ERR_OK;
}
