/* The settings of a sweep: energy, time and their products at each, which of them are Pareto-optimal, and the best by
 * each objective.  A setting is best only against others: those that the repeats cannot tell from it are counted. */
#include <math.h>
#include <stdlib.h>

#include "analysis/across.h"
#include "analysis/analysis.h"
#include "core/text.h"
#include "metrics/edp.h"
#include "rundir/sweep.h"
#include "stats/pareto.h"

/* What is minimized: E T^n, or the time alone. */
static const struct objective {
    const char *name, *unit;
    double energy, time; /* exponents */
} OBJECTIVES[] = {
    {"least energy", "J", 1, 0},
    {"least EDP", "J·s", 1, 1},
    {"least ED2P", "J·s²", 1, 2},
    {"least time", "s", 0, 1},
};

/* The value at a point, and its standard uncertainty without what is common to all points. */
static double value_of(const struct objective *objective, const struct sweep_figures *figures,
                       double *error)
{
    double value = objective->energy > 0
                       ? energy_delay_product(figures->joules, figures->seconds, objective->time)
                       : figures->seconds;
    if (objective->energy > 0 && objective->time == 0)
        value = figures->joules;
    double energy = objective->energy * figures->independent / figures->joules;
    double time = objective->time * figures->seconds_error / figures->seconds;
    *error = value * hypot(objective->energy > 0 ? energy : 0, objective->time > 0 ? time : 0);
    return value;
}

static void put_setting(struct result *result, const struct sweep *sweep, size_t point)
{
    struct text setting = {0};
    sweep_setting(sweep, point, &setting);
    result_text(result, "setting", text_get(&setting));
    text_release(&setting);
}

/* Of the points whose value is known, the least one; how many others are no worse for all that is known. */
static void put_best(struct result *result, const struct sweep *sweep,
                     const struct sweep_figures *figures, const struct objective *objective)
{
    size_t best = sweep->point_count, like = 0;
    double least = INFINITY, least_error = UNKNOWN, error;
    for (size_t p = 0; p < sweep->point_count; p++) {
        double value = value_of(objective, &figures[p], &error);
        if (value < least) {
            best = p;
            least = value;
            least_error = error;
        }
    }
    bool found = best < sweep->point_count;
    for (size_t p = 0; found && p < sweep->point_count; p++) {
        double value = value_of(objective, &figures[p], &error);
        double apart = NORMAL_95 * hypot(error, least_error);
        like += p != best && is_known(value) && !(value - least > apart);
    }
    result_group(result, NULL);
    result_text(result, "objective", objective->name);
    if (found)
        put_setting(result, sweep, best);
    else
        result_text(result, "setting", NULL);
    result_figure(result, "value", found ? least : UNKNOWN, least_error, objective->unit);
    result_count(result, "not_distinguishable", like);
    result_end(result);
}

static void put_point(struct result *result, const struct sweep *sweep, size_t point,
                      const struct sweep_figures *figures, bool optimal)
{
    result_group(result, NULL);
    put_setting(result, sweep, point);
    result_group(result, "values");
    for (size_t k = 0; k < sweep->knob_count; k++)
        result_text(result, sweep->knobs[k], sweep->values[point * sweep->knob_count + k]);
    result_end(result);
    result_figure(result, "joules", figures->joules, figures->plus_minus, "J");
    result_figure(result, "seconds", figures->seconds, figures->seconds_error, "s");
    result_number(result, "watts", ratio(figures->joules, figures->seconds), "W");
    result_number(result, "edp", energy_delay_product(figures->joules, figures->seconds, 1), "J·s");
    result_number(result, "ed2p", energy_delay_product(figures->joules, figures->seconds, 2),
                  "J·s²");
    result_flag(result, "pareto_optimal", optimal);
    result_count(result, "repeats", figures->measured);
    result_count(result, "failed", figures->failed);
    result_end(result);
}

static void put_summary(struct result *result, const struct sweep *sweep,
                        const struct sweep_figures *figures)
{
    size_t failed = 0, settings = 0;
    for (size_t p = 0; p < sweep->point_count; p++) {
        failed += figures[p].failed;
        settings += figures[p].measured > 0;
    }
    result_group(result, "summary");
    result_count(result, "settings", settings);
    result_count(result, "attempts", sweep->count);
    result_count(result, "failed", failed);
    result_number(result, "seed", sweep->seed, "");
    result_flag(result, "complete", sweep->ended);
    result_end(result);
    if (failed)
        result_warn(result, "%zu of %zu attempts failed: their energy is not counted", failed,
                    sweep->count);
    if (!sweep->ended)
        result_warn(result, "the sweep is not complete: `ipw sweep --resume` continues it");
}

static void warn_of_flags(struct result *result, const struct sweep *sweep)
{
    size_t flagged = 0;
    for (size_t i = 0; i < sweep->count; i++)
        flagged += !sweep->attempts[i].exit_code && sweep->attempts[i].flags[0];
    if (flagged)
        result_warn(result, "%zu of %zu attempts have warnings of their conditions: see their runs",
                    flagged, sweep->count);
}

static enum err put_all(struct result *result, const struct sweep *sweep,
                        const struct sweep_figures *figures, double *cost, double *worth,
                        bool *optimal)
{
    for (size_t p = 0; p < sweep->point_count; p++) {
        cost[p] = figures[p].joules;
        worth[p] = -figures[p].seconds;
    }
    enum err err = pareto_mark(cost, worth, sweep->point_count, optimal);
    if (err)
        return err;
    put_summary(result, sweep, figures);
    result_group(result, "data");
    result_list(result, "best");
    for (size_t i = 0; i < sizeof OBJECTIVES / sizeof *OBJECTIVES; i++)
        put_best(result, sweep, figures, &OBJECTIVES[i]);
    result_end(result);
    result_list(result, "settings");
    for (size_t p = 0; p < sweep->point_count; p++)
        put_point(result, sweep, p, &figures[p], optimal[p]);
    result_end(result);
    result_end(result);
    warn_of_flags(result, sweep);
    return ERR_OK;
}

static enum err sweep_run(struct analysis *analysis, struct error *why)
{
    const struct sweep *sweep = analysis->sweep;
    size_t count = sweep->point_count, measured = 0;
    struct sweep_figures *figures = calloc(count, sizeof *figures);
    double *cost = calloc(count, sizeof *cost), *worth = calloc(count, sizeof *worth);
    bool *optimal = calloc(count, sizeof *optimal);
    enum err err = figures && cost && worth && optimal ? ERR_OK : ERR_NO_MEMORY;
    for (size_t p = 0; !err && p < count; p++) {
        figures[p] = sweep_figures(sweep, p);
        measured += figures[p].measured > 0;
    }
    if (!err && !measured)
        err =
            err_set(why, ERR_NO_DATA, "no setting was measured: %zu attempts failed", sweep->count);
    if (!err)
        err = put_all(analysis->result, sweep, figures, cost, worth, optimal);
    free(figures);
    free(cost);
    free(worth);
    free(optimal);
    return err;
}

static const struct result_phrase FINDING[] = {
    {"least energy ", "data.best.0.value", ""},
    {" at ", "data.best.0.setting", ""},
    {", ", "summary.failed", " attempts failed"},
    {0},
};

const struct analysis_driver analysis_sweep = {
    .name = "sweep",
    .summary = "settings of a sweep: energy, time, EDP, Pareto-optimal ones, the best by each",
    .of_sweep = true,
    .finding = FINDING,
    .run = sweep_run,
};
