#include "report/plots/drawing.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "report/format.h"
#include "stats/linear_fit.h"
#include "stats/online.h"
#include "rundir/record.h"

/* ---- headings ---- */

void draw_heading(struct figure *figure, const struct run_table *table, const char *what)
{
    const char *hardware = run_fact_text(table, "hardware_label");
    size_t completed = table->rows - table->failed;
    str_format(figure->title, sizeof figure->title, "%s: %.100s%s%.60s", what, table->model,
               hardware[0] ? " on " : "", hardware);
    str_format(figure->note, sizeof figure->note, "%zu completed quer%s", completed,
               completed == 1 ? "y" : "ies");
}

const char *short_name(const char *name)
{
    /* Letters beyond ASCII may stand in a path, too; quotes and brackets say that it is something else. */
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < 0x80 && !isalnum((unsigned char)*at) && !strchr("/._-+:@~ ", *at))
            return name;
    const char *slash = strrchr(name, '/');
    return slash && slash[1] ? slash + 1 : name;
}

void draw_upright(struct figure *figure, struct figure_panel *panel, enum figure_colour colour,
                  double x, double top, const char *name)
{
    struct figure_series *line = figure_series(figure, panel, FIGURE_DOTTED, colour, name);
    series_add2(line, x, 0);
    series_add2(line, x, top);
}

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
    size_t most = 1;
    for (size_t i = 0; i < (size_t)CELLS_X * CELLS_Y; i++)
        most = cells[i].count > most ? cells[i].count : most;
    for (size_t i = 0; i < (size_t)CELLS_X * CELLS_Y; i++)
        if (cells[i].count)
            series_add3(series, x[cells[i].first], y[cells[i].first],
                        0.2 + 0.8 * log((double)cells[i].count) / log((double)most + 1));
}

/* Of more than CLOUD_EXACT points, those that would lie upon each other are drawn once, and the more
 * there were the more solid: a million takes as long as some thousands. */
static enum err draw_cloud(struct figure_series *series, const double *x, const double *y,
                           size_t count)
{
    struct online all_x = {0}, all_y = {0};
    if (count <= CLOUD_EXACT) {
        for (size_t i = 0; i < count; i++)
            series_add3(series, x[i], y[i], count > 300 ? 0.5 : 0.75);
        return ERR_OK;
    }
    struct cell *cells = calloc((size_t)CELLS_X * CELLS_Y, sizeof *cells);
    if (!cells)
        return ERR_NO_MEMORY;
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
    return ERR_OK;
}

/* ---- pairs with their line ---- */

/* What lies under it is taken for no power at all, as the Python IPW does. */
#define POWER_LEAST 1e-12

enum { FIT_POINTS = 200 };

struct pairs {
    double *x, *y;
    size_t count;
    struct online x_all;
};

static enum err take_pairs(const struct run_table *table, const struct pair_plot *plot,
                           enum run_number y_column, struct pairs *out)
{
    out->x = malloc((table->rows + 1) * sizeof *out->x);
    out->y = malloc((table->rows + 1) * sizeof *out->y);
    if (!out->x || !out->y)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < table->rows; i++) {
        double x = run_number(table, plot->x, i), y = run_number(table, y_column, i);
        if (!run_completed(table, i) || !is_known(x) || !is_known(y) ||
            (plot->log_fit && fabs(y) < POWER_LEAST))
            continue;
        online_add(&out->x_all, x);
        out->x[out->count] = x;
        out->y[out->count++] = y;
    }
    return ERR_OK;
}

/* How far the line itself may be off at x, 95 %: by the fit's errors alone, which hold the spread of x. */
static double line_error(const struct linear_fit *fit, double x, double x_mean)
{
    double t = (fit->slope_high - fit->slope) / fit->slope_error;
    double at_mean = fit->residual / sqrt((double)fit->count);
    return t * hypot(at_mean, fit->slope_error * (x - x_mean));
}

static void put_line(struct figure *figure, struct figure_panel *panel, const struct pairs *pairs,
                     const struct linear_fit *fit, const char *unit)
{
    char name[FIGURE_TEXT_MAX];
    double step = (pairs->x_all.max - pairs->x_all.min) / (FIT_POINTS - 1);
    struct figure_series *band = figure_series(figure, panel, FIGURE_BAND, FIGURE_VERMILION, "");
    str_format(name, sizeof name, "%.3g %s/token · x %c %.3g %s, R² %.3f", fit->slope, unit,
               fit->intercept < 0 ? '-' : '+', fabs(fit->intercept), unit, fit->r2);
    struct figure_series *line = figure_series(figure, panel, FIGURE_LINE, FIGURE_VERMILION, name);
    for (int i = 0; i < FIT_POINTS; i++) {
        double x = pairs->x_all.min + step * i, y = fit->intercept + fit->slope * x;
        double error = line_error(fit, x, online_mean(&pairs->x_all));
        series_add3(band, x, y - error, y + error);
        series_add2(line, x, y);
    }
}

static void put_log_line(struct figure *figure, struct figure_panel *panel,
                         const struct pairs *pairs, const char *unit)
{
    char name[FIGURE_TEXT_MAX];
    struct linear_fit fit;
    double least = INFINITY;
    if (!linear_fit_logs(pairs->x, pairs->y, pairs->count, LINEAR_LOG_X, &fit))
        return;
    for (size_t i = 0; i < pairs->count; i++)
        least = pairs->x[i] > 0 ? fmin(least, pairs->x[i]) : least;
    str_format(name, sizeof name, "%.3g %s · ln x %c %.3g %s, R² %.3f", fit.slope, unit,
               fit.intercept < 0 ? '-' : '+', fabs(fit.intercept), unit, fit.r2);
    struct figure_series *line = figure_series(figure, panel, FIGURE_DOTTED, FIGURE_GREEN, name);
    for (int i = 0; i < FIT_POINTS; i++) {
        double x = least + (pairs->x_all.max - least) / (FIT_POINTS - 1) * i;
        series_add2(line, x, fit.intercept + fit.slope * log(x));
    }
}

static void add_note(struct figure *figure, const char *more)
{
    size_t length = strlen(figure->note);
    if (more[0])
        str_format(figure->note + length, sizeof figure->note - length, "; %s", more);
}

static enum err put_pairs(const struct pair_plot *plot, enum run_number y,
                          const struct pairs *pairs, struct figure *figure)
{
    struct linear_fit fit;
    const char *unit = record_column(COLUMN_NUMBER, y)->unit;
    struct figure_panel *panel = figure_panel(figure, plot->x_label, plot->y_label);
    panel->y.from_zero = true;
    struct figure_series *cloud =
        figure_series(figure, panel, FIGURE_POINTS, FIGURE_BLUE, "a query");
    enum err err = draw_cloud(cloud, pairs->x, pairs->y, pairs->count);
    if (linear_fit(pairs->x, pairs->y, pairs->count, &fit)) {
        add_note(figure,
                 fit.count > 2 ? "least squares; shaded: 95 % of the line" : "least squares");
        put_line(figure, panel, pairs, &fit, unit);
    }
    if (plot->log_fit)
        put_log_line(figure, panel, pairs, unit);
    return err;
}

/* Records may tell the GPUs' joules and not their watts. */
static const char *whose(const struct pair_plot *plot, const struct run_table *table,
                         enum run_number y)
{
    if (y == plot->y)
        return y == RUN_BASIS_JOULES || y == RUN_BASIS_WATTS ? "of the GPUs, or the board" : "";
    return y == RUN_WATTS && table->numbers[RUN_BASIS_JOULES]
               ? "of the machine: the records do not tell the GPUs' power"
               : "of the machine: no GPU or board was measured";
}

enum err draw_pairs(const struct pair_plot *plot, const struct run_table *table,
                    struct figure *figure, struct error *why)
{
    struct pairs pairs = {0};
    char words[160];
    enum run_number y = table->numbers[plot->y] ? plot->y : plot->instead;
    enum err err = take_pairs(table, plot, y, &pairs);
    str_format(words, sizeof words, "%s and %s together are",
               record_column(COLUMN_NUMBER, plot->x)->label,
               record_column(COLUMN_NUMBER, y)->label);
    if (!err && !pairs.count)
        err = lacks(table, words, why);
    if (!err) {
        draw_heading(figure, table, plot->what);
        add_note(figure, whose(plot, table, y));
        err = put_pairs(plot, y, &pairs, figure);
    }
    free(pairs.x);
    free(pairs.y);
    return err;
}
