/* Accuracy against energy over several runs, and the ones that no other beats. */
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "report/plot/plot.h"
#include "report/plot/across.h"
#include "stats/pareto.h"

struct choice {
    double joules, accuracy;
};

static int by_joules(const void *a, const void *b)
{
    double x = ((const struct choice *)a)->joules, y = ((const struct choice *)b)->joules;
    return (x > y) - (x < y);
}

static bool is_drawn(const struct run_figures *run)
{
    return run->point.joules_per_query > 0 && is_known(run->point.accuracy);
}

static void put_run(struct figure *figure, struct figure_panel *panel,
                    const struct plot_source *source, size_t i, bool on, double farthest,
                    struct figure_series *const series[2][2])
{
    const struct run_figures *run = &source->runs[i];
    double x = run->point.joules_per_query, y = 100 * run->point.accuracy;
    double error = is_known(run->joules_per_query_error) ? run->joules_per_query_error : 0;
    char name[FIGURE_TEXT_MAX];
    series_add4(series[on][0], x, y, 100 * run->accuracy_low, 100 * run->accuracy_high);
    series_add4(series[on][1], x, y, x - error > 0 ? x - error : x / 100, x + error);
    run_title(source, i, name, sizeof name);
    figure_label(figure, panel, x, y, x > farthest, name);
}

/* From choice to choice: what is cheaper than the next is worth no more than the one before. */
static void put_frontier(struct figure *figure, struct figure_panel *panel, struct choice *best,
                         size_t count)
{
    struct figure_series *line =
        figure_series(figure, panel, FIGURE_LINE, FIGURE_GREEN, "Pareto frontier");
    qsort(best, count, sizeof *best, by_joules);
    for (size_t i = 0; i < count; i++) {
        if (i)
            series_add2(line, best[i].joules, best[i - 1].accuracy);
        series_add2(line, best[i].joules, best[i].accuracy);
    }
}

/* Names of points in the right half stand to their left, so that none is cut off. */
static double middle_of(const struct plot_source *source, bool *is_wide)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < source->run_count; i++)
        if (is_drawn(&source->runs[i])) {
            least = fmin(least, source->runs[i].point.joules_per_query);
            most = fmax(most, source->runs[i].point.joules_per_query);
        }
    *is_wide = most / least > 20;
    return *is_wide ? sqrt(least * most) : (least + most) / 2;
}

static enum err put_runs(const struct plot_source *source, const bool *on, struct choice *best,
                         struct figure *figure)
{
    size_t count = 0;
    struct figure_panel *panel =
        figure_panel(figure, "energy (J per query)", "accuracy (% of the graded answers)");
    bool is_wide;
    double farthest = middle_of(source, &is_wide);
    panel->x.log_base = is_wide ? 10 : 0;
    struct figure_series *series[2][2];
    for (int i = 0; i < 2; i++) {
        enum figure_colour colour = i ? FIGURE_GREEN : FIGURE_BLUE;
        series[i][0] = figure_series(figure, panel, FIGURE_ERRORS_Y, colour,
                                     i ? "no other run beats it" : "another is better");
        series[i][1] = figure_series(figure, panel, FIGURE_ERRORS_X, colour, "");
    }
    for (size_t i = 0; i < source->run_count; i++) {
        const struct run_point *point = &source->runs[i].point;
        if (!is_drawn(&source->runs[i]))
            continue;
        put_run(figure, panel, source, i, on[i], farthest, series);
        if (on[i])
            best[count++] = (struct choice){point->joules_per_query, 100 * point->accuracy};
    }
    put_frontier(figure, panel, best, count);
    return ERR_OK;
}

static enum err draw_known(const struct plot_source *source, double *cost, double *worth, bool *on,
                           struct choice *best, struct figure *figure, struct error *why)
{
    size_t known = 0;
    for (size_t i = 0; i < source->run_count; i++) {
        bool drawn = is_drawn(&source->runs[i]);
        cost[i] = drawn ? source->runs[i].point.joules_per_query : UNKNOWN;
        worth[i] = drawn ? source->runs[i].point.accuracy : UNKNOWN;
        known += drawn;
    }
    if (known < 2)
        return err_set(why, ERR_NO_DATA, "%zu of %zu runs have graded answers of known energy",
                       known, source->run_count);
    enum err err = pareto_mark(cost, worth, source->run_count, on);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    str_copy(figure->title, sizeof figure->title, "Accuracy against energy");
    str_format(figure->note, sizeof figure->note,
               "%zu runs; bars: ±1.96 σ of energy, queries and sensors; 95 %% of accuracy%s", known,
               known < source->run_count ? "; runs without grades or energy are left out" : "");
    return put_runs(source, on, best, figure);
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    size_t n = source->run_count;
    double *cost = malloc(n * sizeof *cost), *worth = malloc(n * sizeof *worth);
    bool *on = calloc(n, sizeof *on);
    struct choice *best = malloc(n * sizeof *best);
    enum err err = cost && worth && on && best
                       ? draw_known(source, cost, worth, on, best, figure, why)
                       : err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    free(cost);
    free(worth);
    free(on);
    free(best);
    return err;
}

const struct plot_driver plot_pareto = {
    .name = "pareto",
    .summary = "several runs: accuracy against energy, and those that no other beats",
    .of = PLOT_OF_RUNS,
    .draw = draw,
};
