/* Scatter plots of one run: a point per query, and the least-squares line through them with its 95 % band. Up to
 * CLOUD_EXACT queries every point is drawn; of more, overlapping points are drawn once, with an opacity by their
 * number, so that a million queries take as long as some thousands. */
#include <math.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"
#include "report/text/format.h"
#include "stats/descriptive.h"
#include "stats/fit.h"

enum { CLOUD_EXACT = 3000 };

/* The two numbers drawn for each query, and the line through them. */
struct pair_plot {
    enum run_number x, y;
    enum run_number instead; /* names y; used if no query has y: the machine's; or y itself */
    bool of_energy;
    bool log_fit; /* also fit a line over the logarithm of x */
};

/* ---- clouds ---- */

enum { CELLS_X = 260, CELLS_Y = 160 };

struct cell {
    size_t first, count;
};

static size_t cell_index(double value, const struct online *all, size_t cells)
{
    double span = all->max - all->min;
    double place = span > 0 ? (value - all->min) / span * (double)cells : 0;
    return place < (double)cells ? (size_t)place : cells - 1;
}

static void put_cells(struct figure_series *series, const struct cell *cells, const double *x,
                      const double *y)
{
    size_t max = 1;
    for (size_t i = 0; i < (size_t)CELLS_X * CELLS_Y; i++)
        max = cells[i].count > max ? cells[i].count : max;
    for (size_t i = 0; i < (size_t)CELLS_X * CELLS_Y; i++)
        if (cells[i].count)
            series_add3(series, x[cells[i].first], y[cells[i].first],
                        0.2 + 0.8 * log((double)cells[i].count) / log((double)max + 1));
}

static void draw_cloud(struct figure_series *series, const double *x, const double *y, size_t count)
{
    struct online all_x = {0}, all_y = {0};
    if (count <= CLOUD_EXACT) {
        for (size_t i = 0; i < count; i++)
            series_add3(series, x[i], y[i], count > 300 ? 0.5 : 0.75);
        return;
    }
    struct cell *cells = xcalloc((size_t)CELLS_X * CELLS_Y, sizeof *cells);
    for (size_t i = 0; i < count; i++) {
        online_add(&all_x, x[i]);
        online_add(&all_y, y[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_known(x[i]) || !is_known(y[i]))
            continue;
        struct cell *cell =
            &cells[cell_index(x[i], &all_x, CELLS_X) * CELLS_Y + cell_index(y[i], &all_y, CELLS_Y)];
        cell->first = cell->count++ ? cell->first : i;
    }
    put_cells(series, cells, x, y);
    free(cells);
}

/* ---- pairs with their line ---- */

/* Smaller values count as no power, as in the Python IPW. */
#define POWER_MIN 1e-12

enum { FIT_POINTS = 200 };

struct pairs {
    double *x, *y;
    size_t count;
    struct online x_all;
};

static void take_pairs(const struct run_table *table, const struct pair_plot *plot,
                       enum run_number y_column, struct pairs *out)
{
    out->x = xmalloc((table->rows + 1) * sizeof *out->x);
    out->y = xmalloc((table->rows + 1) * sizeof *out->y);
    for (size_t i = 0; i < table->rows; i++) {
        double x = run_number(table, plot->x, i);
        double y = run_number(table, y_column, i);
        if (!run_completed(table, i) || !is_known(x) || !is_known(y) ||
            (plot->log_fit && fabs(y) < POWER_MIN))
            continue;
        online_add(&out->x_all, x);
        out->x[out->count] = x;
        out->y[out->count++] = y;
    }
}

static void put_line(struct figure_panel *panel, const struct pairs *pairs,
                     const struct linear_fit *fit, const char *unit)
{
    char name[FIGURE_TEXT_MAX], slope[FORMAT_MAX], intercept[FORMAT_MAX];
    double step = (pairs->x_all.max - pairs->x_all.min) / (FIT_POINTS - 1);
    struct figure_series *band = figure_series(panel, FIGURE_BAND, FIGURE_VERMILION, "");
    chars_format(name, "%s/token · x %c %s, R² %.3f", format_si(slope, fit->slope, unit),
                 fit->intercept < 0 ? '-' : '+', format_si(intercept, fabs(fit->intercept), unit),
                 fit->r2);
    struct figure_series *line = figure_series(panel, FIGURE_LINE, FIGURE_VERMILION, name);
    for (int i = 0; i < FIT_POINTS; i++) {
        double x = pairs->x_all.min + step * i;
        double y = fit->intercept + fit->slope * x;
        double error = linear_fit_band(fit, x, online_mean(&pairs->x_all));
        series_add3(band, x, y - error, y + error);
        series_add2(line, x, y);
    }
}

static void put_log_line(struct figure_panel *panel, const struct pairs *pairs, const char *unit)
{
    char name[FIGURE_TEXT_MAX], slope[FORMAT_MAX], intercept[FORMAT_MAX];
    struct linear_fit fit;
    double min = INFINITY;
    if (!linear_fit_logs(pairs->x, pairs->y, pairs->count, LINEAR_LOG_X, &fit))
        return;
    for (size_t i = 0; i < pairs->count; i++)
        min = pairs->x[i] > 0 ? fmin(min, pairs->x[i]) : min;
    chars_format(name, "%s · ln x %c %s, R² %.3f", format_si(slope, fit.slope, unit),
                 fit.intercept < 0 ? '-' : '+', format_si(intercept, fabs(fit.intercept), unit),
                 fit.r2);
    struct figure_series *line = figure_series(panel, FIGURE_DOTTED, FIGURE_GREEN, name);
    for (int i = 0; i < FIT_POINTS; i++) {
        double x = min + (pairs->x_all.max - min) / (FIT_POINTS - 1) * i;
        series_add2(line, x, fit.intercept + fit.slope * log(x));
    }
}

static void put_pairs(const struct pair_plot *plot, enum run_number y, const struct pairs *pairs,
                      struct figure *figure)
{
    struct linear_fit fit;
    const char *unit = axis_of("", y).unit;
    struct figure_panel *panel =
        figure_panel(figure, axis_of("", plot->x).text, axis_of("", plot->instead).text);
    panel->y.from_zero = true;
    struct figure_series *cloud = figure_series(panel, FIGURE_POINTS, FIGURE_BLUE, "query");
    draw_cloud(cloud, pairs->x, pairs->y, pairs->count);
    if (linear_fit(pairs->x, pairs->y, pairs->count, &fit)) {
        figure_note(figure, "%s",
                    fit.count > 2 ? "line: least squares, 95 % CI" : "line: least squares");
        put_line(panel, pairs, &fit, unit);
    }
    if (plot->log_fit)
        put_log_line(panel, pairs, unit);
}

/* Records may have the joules of GPUs without their watts. */
static const char *devices_note(const struct pair_plot *plot, const struct run_table *table,
                                enum run_number y)
{
    if (y == plot->y)
        return y == RUN_BASIS_JOULES || y == RUN_BASIS_WATTS ? "of the GPUs, or the board" : "";
    return y == RUN_WATTS && table->numbers[RUN_BASIS_JOULES]
               ? "of the machine: GPU power was not recorded"
               : "of the machine: no GPU or board was measured";
}

static enum err draw_pairs(const struct plot_source *source, struct figure *figure,
                           struct error *why)
{
    const struct pair_plot *plot = source->driver->row;
    const struct run_table *table = source->table;
    struct pairs pairs = {0};
    char words[160];
    enum run_number y = table->numbers[plot->y] ? plot->y : plot->instead;
    take_pairs(table, plot, y, &pairs);
    enum err err = ERR_OK;
    const char *x_label = axis_of("", plot->x).label;
    const char *what = axis_of("", plot->instead).label;
    chars_format(words, "%s and %s together are", x_label, axis_of("", y).label);
    if (!pairs.count)
        err = no_data_error(table, words, why);
    if (!err) {
        chars_format(words, "%s or %s", x_label, what);
        draw_heading(figure, table, what, pairs.count, words);
        if (devices_note(plot, table, y)[0])
            figure_note(figure, "%s", devices_note(plot, table, y));
        if (plot->of_energy)
            figure_note_energy_of(figure, table);
        put_pairs(plot, y, &pairs, figure);
    }
    free(pairs.x);
    free(pairs.y);
    return err;
}

/* ---- the plots, as the Python IPW draws them ---- */

#define PAIR_PLOT(name_, summary_, wanted, ...)                                                    \
    const struct plot_driver plot_##name_ = {                                                      \
        .name = #name_,                                                                            \
        .summary = summary_,                                                                       \
        .of = PLOT_OF_RUN,                                                                         \
        .needs = {wanted, RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_SOURCE)},                            \
        .row = &(const struct pair_plot){__VA_ARGS__},                                             \
        .draw = draw_pairs,                                                                        \
    }

PAIR_PLOT(ttft, "time to first token against prompt tokens, with the fitted line",
          RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_TTFT), .x = RUN_INPUT_TOKENS, .y = RUN_TTFT,
          .instead = RUN_TTFT);

PAIR_PLOT(latency, "latency against tokens, with the fitted line",
          RUN_WANT(RUN_TOTAL_TOKENS) | RUN_WANT(RUN_LATENCY), .x = RUN_TOTAL_TOKENS,
          .y = RUN_LATENCY, .instead = RUN_LATENCY);

PAIR_PLOT(energy, "energy against tokens, with the fitted line",
          RUN_WANT(RUN_TOTAL_TOKENS) | RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_JOULES),
          .x = RUN_TOTAL_TOKENS, .y = RUN_BASIS_JOULES, .instead = RUN_JOULES, .of_energy = true);

PAIR_PLOT(power, "power against tokens, with a line over tokens and one over their logarithm",
          RUN_WANT(RUN_TOTAL_TOKENS) | RUN_WANT(RUN_BASIS_WATTS) | RUN_WANT(RUN_WATTS) |
              RUN_WANT(RUN_BASIS_JOULES),
          .x = RUN_TOTAL_TOKENS, .y = RUN_BASIS_WATTS, .instead = RUN_WATTS, .of_energy = true,
          .log_fit = true);
