#include "report/plot/figure.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"
#include "rundir/layers_result.h"
#include "rundir/run_table.h"

/* Nothing that is measured is larger; and spans of what is smaller stay finite. */
#define FIGURE_LARGEST 1e100

const char *const FIGURE_SUFFIXES[FIGURE_FORMATS] = {"png", "svg", "pdf"};

struct figure_panel *figure_panel(struct figure *figure, const char *x_label, const char *y_label)
{
    struct figure_panel *panel = &figure->panels[figure->panel_count];
    if (figure->panel_count < FIGURE_PANELS_MOST - 1)
        figure->panel_count++;
    panel->x.low = panel->x.high = panel->y.low = panel->y.high = UNKNOWN;
    str_copy(panel->x.label, sizeof panel->x.label, x_label);
    str_copy(panel->y.label, sizeof panel->y.label, y_label);
    return panel;
}

struct figure_series *figure_series(struct figure *figure, struct figure_panel *panel,
                                    enum figure_style style, enum figure_color color,
                                    const char *name)
{
    static struct figure_series nothing; /* its figure is NULL: rows go nowhere */
    struct figure_series **all =
        grow((void *)panel->series, &panel->series_capacity, panel->series_count, sizeof *all);
    if (all)
        panel->series = all;
    struct figure_series *series = all ? calloc(1, sizeof *series) : NULL;
    if (!series) {
        figure->failed = true;
        return &nothing;
    }
    *series = (struct figure_series){.style = style, .color = color, .figure = figure};
    str_copy(series->name, sizeof series->name, name);
    panel->series[panel->series_count++] = series;
    return series;
}

void series_add(struct figure_series *series, const double *values, unsigned count)
{
    if (!series->figure)
        return;
    for (unsigned i = 0; i < count; i++)
        if (!is_known(values[i]) || fabs(values[i]) > FIGURE_LARGEST)
            return;
    double(*rows)[FIGURE_ROW] =
        grow(series->rows, &series->capacity, series->count, sizeof *series->rows);
    if (!rows) {
        series->figure->failed = true;
        return;
    }
    series->rows = rows;
    for (unsigned i = 0; i < FIGURE_ROW; i++)
        rows[series->count][i] = i < count ? values[i] : 0;
    series->count++;
}

static int by_x(const void *a, const void *b)
{
    double x = ((const struct figure_point *)a)->x, y = ((const struct figure_point *)b)->x;
    return (x > y) - (x < y);
}

void figure_points(struct figure_series *line, struct figure_series *marks,
                   struct figure_point *points, size_t count)
{
    if (count)
        qsort(points, count, sizeof *points, by_x);
    for (size_t i = 0; i < count;) {
        double sum = 0, x = points[i].x;
        size_t first = i;
        for (; i < count && points[i].x == x; i++) {
            double y = points[i].y, error = points[i].plus_minus;
            error = is_known(error) ? error : 0;
            series_add4(marks, x, y, y - error > 0 ? y - error : y / 100, y + error);
            sum += y;
        }
        if (line)
            series_add2(line, x, sum / (double)(i - first));
    }
}

void figure_name(struct figure *figure, struct figure_axis *axis, const char *name)
{
    char(*names)[FIGURE_TEXT_MAX] =
        grow(axis->names, &axis->name_capacity, axis->name_count, sizeof *names);
    if (!names) {
        figure->failed = true;
        return;
    }
    axis->names = names;
    str_copy(names[axis->name_count++], FIGURE_TEXT_MAX, name);
}

void figure_label(struct figure *figure, struct figure_panel *panel, double x, double y, bool left,
                  const char *text)
{
    struct figure_label *labels =
        grow(panel->labels, &panel->label_capacity, panel->label_count, sizeof *labels);
    if (!labels) {
        figure->failed = true;
        return;
    }
    panel->labels = labels;
    if (!is_known(x) || !is_known(y))
        return;
    labels[panel->label_count] = (struct figure_label){.x = x, .y = y, .left = left};
    str_copy(labels[panel->label_count++].text, FIGURE_TEXT_MAX, text);
}

static void release_panel(struct figure_panel *panel)
{
    for (size_t i = 0; i < panel->series_count; i++) {
        free(panel->series[i]->rows);
        free(panel->series[i]);
    }
    free((void *)panel->series);
    free(panel->labels);
    free(panel->x.names);
    free(panel->y.names);
    *panel = (struct figure_panel){0};
}

static bool is_empty(const struct figure_panel *panel)
{
    for (size_t i = 0; i < panel->series_count; i++)
        if (panel->series[i]->count)
            return false;
    return true;
}

bool figure_drop_empty(struct figure *figure)
{
    size_t kept = 0;
    for (size_t i = 0; i < figure->panel_count; i++) {
        if (is_empty(&figure->panels[i])) {
            release_panel(&figure->panels[i]);
            continue;
        }
        if (kept != i) {
            figure->panels[kept] = figure->panels[i];
            figure->panels[i] = (struct figure_panel){0};
        }
        kept++;
    }
    figure->panel_count = kept;
    return kept > 0;
}

void figure_release(struct figure *figure)
{
    for (size_t i = 0; i < FIGURE_PANELS_MOST; i++)
        release_panel(&figure->panels[i]);
    *figure = (struct figure){0};
}

/* ---- headings ---- */

void draw_heading(struct figure *figure, const struct run_table *table, const char *what)
{
    const char *hardware = run_hardware(table);
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

void draw_vertical(struct figure *figure, struct figure_panel *panel, enum figure_color color,
                   double x, double top, const char *name)
{
    struct figure_series *line = figure_series(figure, panel, FIGURE_DOTTED, color, name);
    series_add2(line, x, 0);
    series_add2(line, x, top);
}

void layers_heading(struct figure *figure, const struct layers_result *layers, const char *what)
{
    const struct record_energy *energy = &layers->energy;
    str_format(figure->title, sizeof figure->title, "%s: %.160s", what,
               short_name(layers->model ? layers->model : "a model"));
    char total[FORMAT_MAX];
    if (is_known(energy->joules))
        str_format(figure->note, sizeof figure->note,
                   "one pass of the workload, %s in total%s; attributed by %s",
                   format_with_error(total, energy->joules, energy->plus_minus, "J"),
                   layers_result_is_estimated(layers) ? ", estimated" : "",
                   layers->attribution ? layers->attribution : "an unknown method");
}
