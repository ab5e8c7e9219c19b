/* The settings of a sweep: the saving of the best one, in a sentence; the best by each objective, with the number of
 * settings not significantly different from it, both by power/sweep_choice.c; and energy, time and their products for
 * each, in order of energy. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "analysis/analysis.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "metrics/efficiency.h"
#include "power/clock_choice.h"
#include "power/optimize_result.h"
#include "power/sweep_points.h"
#include "stats/pareto.h"

static const struct objective {
    const char *name, *unit;
    double exponent; /* n of E T^n */
    bool is_time_only;
} OBJECTIVES[] = {
    {"least energy", "J", 0, false},
    {"least EDP", "J·s", 1, false},
    {"least ED2P", "J·s²", 2, false},
    {"least time", "s", 0, true},
};
enum { ENERGY, OBJECTIVE_COUNT = COUNT_OF(OBJECTIVES) };

static struct optimize_goal goal_of(const struct objective *objective)
{
    struct optimize_goal goal = optimize_goal_edp();
    goal.time_exponent = objective->exponent;
    goal.is_time_only = objective->is_time_only;
    return goal;
}

/* The value at a point, and its standard uncertainty from repeats, without what is common to all points.  UNKNOWN
 * without repeats: the sensor's error does not include the variation between runs. */
static double value_of(const struct objective *objective, const struct sweep_figures *figures,
                       double *error)
{
    double time = figures->seconds_error / figures->seconds;
    if (objective->is_time_only) {
        *error = figures->seconds_error;
        return figures->seconds;
    }
    double value = objective->exponent > 0 ? energy_delay_product(figures->joules, figures->seconds,
                                                                  objective->exponent)
                                           : figures->joules;
    *error = value * hypot(figures->error_pct / 100,
                           objective->exponent > 0 ? objective->exponent * time : 0);
    return value;
}

static void put_setting(struct result *result, const struct sweep *sweep, size_t point)
{
    struct text setting = {0};
    sweep_setting(sweep, point, &setting);
    result_text(result, "setting", text_get(&setting));
    text_release(&setting);
}

/* Node and GPUs of its first attempt; repeats of one process run on the same. */
static void put_node(struct result *result, const struct sweep *sweep, size_t point)
{
    const struct sweep_attempt *found = NULL;
    for (size_t i = 0; !found && i < sweep->count; i++)
        if (sweep->attempts[i].point == point && !sweep->attempts[i].exit_code)
            found = &sweep->attempts[i];
    result_text(result, "node", found ? found->node : NULL);
    result_text(result, "gpu_uuids", found ? found->gpus : NULL);
}

/* How the energies of a point, or of all (ALL_POINTS), were measured, over the used attempts. */
struct evidence {
    char method[64], source[160]; /* more than one joined by " + "; "": not known */
    double coverage;              /* the lowest */
};

enum { ALL_POINTS = -1 };

static void add_once(char *list, size_t size, const char *word)
{
    size_t length = strlen(list);
    if (!strstr(list, word))
        str_format(list + length, size - length, "%s%s", length ? " + " : "", word);
}

static struct evidence evidence_of(const struct sweep_points *points, long point)
{
    struct evidence found = {.coverage = UNKNOWN};
    for (size_t i = 0; i < points->sweep.count; i++) {
        const struct sweep_measurement *item = &points->items[i];
        bool is_its = point == ALL_POINTS || points->sweep.attempts[i].point == (size_t)point;
        if (!is_its || item->exclusion || !item->method[0])
            continue;
        add_once(found.method, sizeof found.method, item->method);
        add_once(found.source, sizeof found.source, item->source);
        if (!(found.coverage <= item->coverage))
            found.coverage = item->coverage;
    }
    return found;
}

/* Figures of the points, by index. */
struct settings {
    struct sweep_points points;
    struct sweep_figures *figures;
    double (*qualities)[SWEEP_QUALITIES_MAX];
    double *cost, *worth; /* cost and worth: energy and minus time, for pareto_mark */
    bool *optimal;
    size_t *order;              /* by energy, unknown ones last */
    struct clock_choice choice; /* of `ipw optimize` for the least energy */
    struct best_setting best[OBJECTIVE_COUNT];
};

static enum err choose(struct settings *all, const char *directory, struct error *why)
{
    struct optimize_goal goals[OBJECTIVE_COUNT];
    for (size_t i = 0; i < OBJECTIVE_COUNT; i++)
        goals[i] = goal_of(&OBJECTIVES[i]);
    enum err err = sweep_choice_of(&all->points, directory, &goals[ENERGY], &all->choice, why);
    if (!err)
        err = sweep_choice_best(&all->points, &all->choice, goals, OBJECTIVE_COUNT, all->best, why);
    return err;
}

/* The choice of `ipw optimize` for this objective; and how many other settings do not differ significantly. */
static void put_best(struct result *result, const struct settings *all, size_t index)
{
    const struct sweep *sweep = &all->points.sweep;
    const struct objective *objective = &OBJECTIVES[index];
    const struct best_setting best = all->best[index];
    double value = UNKNOWN, error = UNKNOWN;
    bool found = best.point < sweep->point_count;
    result_group(result, NULL);
    result_text(result, "objective", objective->name);
    if (found)
        put_setting(result, sweep, best.point);
    else
        result_text(result, "setting", NULL);
    if (found)
        value = value_of(objective, &all->figures[best.point], &error);
    result_figure(result, "value", value, error, objective->unit);
    result_number(result, "not_distinguishable", best.is_tested ? (double)best.alike : UNKNOWN, "");
    result_end(result);
}

/* The one that decides, and the other metrics of all answers. */
static void put_qualities(const struct settings *all, size_t point, struct result *result)
{
    const struct sweep_points *points = &all->points;
    const double *values = all->qualities[point];
    result_number(result, points->qualities[points->quality].name, values[points->quality], "");
    for (size_t q = QUALITIES_NAMED; q < points->quality_count; q++)
        if (q != points->quality)
            result_number(result, points->qualities[q].name, values[q], "");
}

static void put_point(struct result *result, const struct settings *all, size_t point)
{
    const struct sweep *sweep = &all->points.sweep;
    const struct sweep_figures *figures = &all->figures[point];
    result_group(result, NULL);
    put_setting(result, sweep, point);
    result_group(result, "values");
    for (size_t k = 0; k < sweep->knob_count; k++)
        result_text(result, sweep->knobs[k], sweep_point(sweep, point)[k].text);
    result_end(result);
    result_figure(result, "joules", figures->joules, figures->plus_minus, "J");
    result_figure(result, "seconds", figures->seconds, figures->seconds_error, "s");
    result_number(result, "watts", ratio(figures->joules, figures->seconds), "W");
    result_number(result, "edp", energy_delay_product(figures->joules, figures->seconds, 1), "J·s");
    result_number(result, "ed2p", energy_delay_product(figures->joules, figures->seconds, 2),
                  "J·s²");
    put_qualities(all, point, result);
    struct evidence evidence = evidence_of(&all->points, (long)point);
    result_text(result, "method", str_or_null(evidence.method));
    result_text(result, "source", str_or_null(evidence.source));
    result_number(result, "coverage", evidence.coverage, "");
    result_flag(result, "pareto_optimal", all->optimal[point]);
    result_count(result, "repeats", figures->measured);
    result_count(result, "failed", figures->failed);
    put_node(result, sweep, point);
    result_end(result);
}

/* ---- the finding ---- */

/* Limitations of the result. */
static void add_limits(const struct settings *all, struct text *out)
{
    size_t missing = sweep_points_missing(&all->points, NULL, 0);
    if (missing)
        text_addf(out, " %zu of %zu settings were not measured.", missing,
                  all->points.sweep.point_count);
    if (all->points.is_uneven)
        text_add(out, " Settings have different numbers of queries: figures are of whole runs.");
    struct evidence evidence = evidence_of(&all->points, ALL_POINTS);
    if (strchr(evidence.method, '+'))
        text_addf(out, " Energies were measured by different methods (%s).", evidence.method);
    else if (sweep_points_is_estimated(&all->points))
        text_add(out, " Energies are estimated, not measured.");
}

/* Of the best quality, which a setting must have to be proposed instead. */
#define QUALITY_KEPT 0.95

static double quality_of(const struct settings *all, size_t point)
{
    return all->qualities[point][all->points.quality];
}

static bool is_better_quality(const struct settings *all, double a, double b)
{
    return all->points.qualities[all->points.quality].is_lower_better ? a < b : a > b;
}

/* The setting of the best quality, the cheaper of equals; -1: fewer than two have one, or all have the same. */
static long best_quality(const struct settings *all)
{
    long best = -1;
    bool differs = false;
    for (size_t i = 0; i < all->points.sweep.point_count; i++) {
        size_t p = all->order[i]; /* by energy */
        double quality = quality_of(all, p);
        if (!is_known(quality) || !is_known(all->figures[p].joules))
            continue;
        differs |= best >= 0 && quality != quality_of(all, (size_t)best);
        if (best < 0 || is_better_quality(all, quality, quality_of(all, (size_t)best)))
            best = (long)p;
    }
    return differs ? best : -1;
}

/* The cheapest setting with at least QUALITY_KEPT of that quality, which may be its own. */
static size_t cheapest_of_quality(const struct settings *all, size_t best)
{
    double limit = all->points.qualities[all->points.quality].is_lower_better
                       ? quality_of(all, best) / QUALITY_KEPT
                       : quality_of(all, best) * QUALITY_KEPT;
    for (size_t i = 0; i < all->points.sweep.point_count; i++) {
        size_t p = all->order[i];
        double quality = quality_of(all, p);
        if (is_known(quality) && !is_better_quality(all, limit, quality) &&
            is_known(all->figures[p].joules))
            return p;
    }
    return best;
}

/* " In these runs A has the best map_50, 0.9; B comes within 5 % of it with the least energy, 39 % less." */
static void add_quality(const struct settings *all, struct text *out)
{
    long best = best_quality(all);
    if (best < 0)
        return;
    size_t cheapest = cheapest_of_quality(all, (size_t)best);
    const char *name = all->points.qualities[all->points.quality].name;
    text_add(out, " In these runs ");
    sweep_setting(&all->points.sweep, (size_t)best, out);
    text_addf(out, " has the best %s, %.3g", name, quality_of(all, (size_t)best));
    if (cheapest == (size_t)best) {
        text_addf(out, ", and nothing cheaper comes within %.0f %% of it.",
                  100 * (1 - QUALITY_KEPT));
        return;
    }
    text_add(out, "; ");
    sweep_setting(&all->points.sweep, cheapest, out);
    text_addf(out, " comes within %.0f %% of it with the least energy, %.0f %% less.",
              100 * (1 - QUALITY_KEPT),
              100 * (1 - all->figures[cheapest].joules / all->figures[best].joules));
}

static void put_conclusion(struct result *result, const struct settings *all)
{
    const struct clock_choice *choice = &all->choice;
    struct text answer = {0};
    if (choice->is_recommended)
        optimize_saving_sentence(choice, all->points.is_per_query ? "query" : "run", &answer);
    else
        text_addf(&answer, "No setting is shown to save energy: %s.", choice->reason);
    add_limits(all, &answer);
    add_quality(all, &answer);
    result_text(result, "conclusion", text_get(&answer));
    result_number(result, "saving_pct",
                  choice->flags & CHOICE_NO_REPEATS ? UNKNOWN : 100 * choice->saving, "");
    result_number(result, "saving_plus_minus_pct", 100 * choice->saving_error, "");
    result_text(result, "baseline", str_or_null(choice->baseline.setting));
    text_release(&answer);
}

/* Names of the metrics of all answers, which settings have under these keys; absent without any. */
static void put_names(struct result *result, const struct sweep_points *points)
{
    if (points->quality_count == QUALITIES_NAMED)
        return;
    result_list(result, "qualities");
    for (size_t q = QUALITIES_NAMED; q < points->quality_count; q++)
        result_text(result, NULL, points->qualities[q].name);
    result_end(result);
}

static void put_summary(struct result *result, const struct settings *all)
{
    const struct sweep *sweep = &all->points.sweep;
    size_t settings = 0;
    char left_out[160];
    for (size_t p = 0; p < sweep->point_count; p++)
        settings += all->figures[p].measured > 0;
    result_group(result, "summary");
    put_conclusion(result, all);
    result_count(result, "settings", settings);
    result_count(result, "attempts", sweep->count);
    result_count(result, "failed", sweep_points_excluded(&all->points, SWEEP_FAILED));
    result_count(result, "left_out",
                 sweep->count - sweep_points_excluded(&all->points, SWEEP_USED));
    result_text(result, "per", all->points.is_per_query ? "query" : "run");
    result_flag(result, "estimated", sweep_points_is_estimated(&all->points));
    result_number(result, "seed", sweep->seed, "");
    result_flag(result, "complete", sweep->ended);
    put_names(result, &all->points);
    result_end(result);
    sweep_points_exclusions(&all->points, left_out, sizeof left_out);
    if (left_out[0])
        result_warn(result, "attempts excluded: %s", left_out);
    if (!sweep->ended)
        result_warn(result, "the sweep is not complete: `ipw sweep --resume` continues it");
}

static void warn_of_flags(struct result *result, const struct sweep_points *points)
{
    size_t flagged = 0;
    for (size_t i = 0; i < points->sweep.count; i++)
        flagged += !points->items[i].exclusion && points->sweep.attempts[i].flags[0];
    if (flagged)
        result_warn(result,
                    "%zu of %zu attempts have warnings about their conditions: see their runs",
                    flagged, points->sweep.count);
}

/* Whether an earlier attempt has the same text. */
static bool is_repeated(const struct sweep *sweep, size_t i, bool gpus)
{
    const char *mine = gpus ? sweep->attempts[i].gpus : sweep->attempts[i].node;
    for (size_t j = 0; mine && j < i; j++) {
        const char *other = gpus ? sweep->attempts[j].gpus : sweep->attempts[j].node;
        if (!sweep->attempts[j].exit_code && other && str_equal(mine, other))
            return true;
    }
    return !mine;
}

static size_t count_distinct(const struct sweep *sweep, bool gpus)
{
    size_t places = 0;
    for (size_t i = 0; i < sweep->count; i++)
        places += !sweep->attempts[i].exit_code && !is_repeated(sweep, i, gpus);
    return places;
}

/* Two GPUs of one model differ by some percent in power at the same clock, more than many settings do. */
static void warn_of_nodes(struct result *result, const struct sweep *sweep)
{
    size_t gpus = count_distinct(sweep, true);
    size_t nodes = count_distinct(sweep, false);
    if (gpus > 1)
        result_warn(result,
                    "the settings were measured on %zu sets of GPUs, so differences between "
                    "settings include differences between GPUs: see gpu_uuids of the settings",
                    gpus);
    else if (nodes > 1)
        result_warn(result,
                    "the settings were measured on %zu nodes, so differences between settings "
                    "include differences between nodes: see node of the settings",
                    nodes);
}

/* ---- the complete analysis ---- */

static void put_all(struct result *result, const struct settings *all)
{
    const struct sweep *sweep = &all->points.sweep;
    pareto_mark(all->cost, all->worth, sweep->point_count, all->optimal);
    put_summary(result, all);
    result_group(result, "data");
    result_list(result, "best");
    for (size_t i = 0; i < OBJECTIVE_COUNT; i++)
        put_best(result, all, i);
    result_end(result);
    result_list(result, "settings");
    for (size_t i = 0; i < sweep->point_count; i++)
        put_point(result, all, all->order[i]);
    result_end(result);
    result_end(result);
    result_table(result, "data.settings", NULL);
    warn_of_flags(result, &all->points);
    warn_of_nodes(result, sweep);
}

/* Insertion sort is stable; a sweep has hundreds of settings at most. */
static void order_by_energy(struct settings *all)
{
    for (size_t p = 0; p < all->points.sweep.point_count; p++) {
        size_t at = p;
        for (; at && !(all->cost[all->order[at - 1]] <= all->cost[p]) && is_known(all->cost[p]);
             at--)
            all->order[at] = all->order[at - 1];
        all->order[at] = p;
    }
}

static enum err fill(struct settings *all, struct error *why)
{
    size_t count = all->points.sweep.point_count;
    size_t measured = 0;
    all->figures = xcalloc(count, sizeof *all->figures);
    all->qualities = xcalloc(count, sizeof *all->qualities);
    all->cost = xcalloc(count, sizeof *all->cost);
    all->worth = xcalloc(count, sizeof *all->worth);
    all->optimal = xcalloc(count, sizeof *all->optimal);
    all->order = xcalloc(count, sizeof *all->order);
    for (size_t p = 0; p < count; p++) {
        all->figures[p] = sweep_points_figures(&all->points, p, all->qualities[p]);
        all->cost[p] = all->figures[p].joules;
        all->worth[p] = -all->figures[p].seconds;
        measured += all->figures[p].measured > 0;
    }
    order_by_energy(all);
    char reasons[160];
    sweep_points_exclusions(&all->points, reasons, sizeof reasons);
    return measured ? ERR_OK
                    : err_set(why, ERR_NO_DATA, "no setting was measured: %s",
                              reasons[0] ? reasons : "no attempt has ended yet");
}

static enum err sweep_run(struct analysis *analysis, struct error *why)
{
    struct settings all = {0};
    enum err err = sweep_points_load(analysis->sweep, &all.points, why);
    if (err)
        return err;
    err = fill(&all, why);
    if (!err)
        err = choose(&all, analysis->sweep, why);
    if (!err)
        put_all(analysis->result, &all);
    clock_choice_release(&all.choice);
    free(all.figures);
    free(all.qualities);
    free(all.cost);
    free(all.worth);
    free(all.optimal);
    free(all.order);
    sweep_points_release(&all.points);
    return err;
}

static const struct result_phrase FINDING[] = {
    {"", "summary.conclusion", ""},
    {0},
};

const struct analysis_driver analysis_sweep = {
    .name = "sweep",
    .summary = "settings of a sweep: energy, time, EDP, Pareto-optimal ones, the best by each",
    .reads_sweep = true,
    .finding = FINDING,
    .run = sweep_run,
};
