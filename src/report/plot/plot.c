/* The list of plots, and what their pictures share: titles and short names. */
#include "report/plot/plot.h"

#include <ctype.h>
#include <string.h>

#include "analysis/unmeasured.h"
#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/figure.h"

#define PLOT(name) extern const struct plot_driver plot_##name;
#include "report/plot/plots.def"
#undef PLOT

const struct plot_driver *const PLOT_DRIVERS[] = {
#define PLOT(name) &plot_##name,
#include "report/plot/plots.def"
#undef PLOT
    NULL,
};

enum { DRIVER_COUNT = sizeof PLOT_DRIVERS / sizeof *PLOT_DRIVERS - 1 };

const struct plot_driver *plot_driver_find(const char *name, struct error *why)
{
    const char *names[DRIVER_COUNT];
    for (size_t i = 0; i < DRIVER_COUNT; i++) {
        names[i] = PLOT_DRIVERS[i]->name;
        if (strcmp(names[i], name) == 0)
            return PLOT_DRIVERS[i];
    }
    /* No command makes a sweep of clocks, but runs at several clocks can be drawn. */
    bool is_sweep = strstr(name, "sweep") != NULL;
    const char *near = is_sweep ? plot_frequency.name : nearest_name(name, names, DRIVER_COUNT);
    const char *unmeasured = is_sweep ? NULL : unmeasured_kind(name);
    if (unmeasured)
        err_set(why, ERR_USAGE, "unknown plot '%s': %s", name, unmeasured);
    else if (near)
        err_set(why, ERR_USAGE, "unknown plot '%s': did you mean '%s'?", name, near);
    else
        err_set(why, ERR_USAGE, "unknown plot '%s': see ipw list plots", name);
    return NULL;
}

enum err plot_draw(const struct plot_driver *driver, const struct plot_source *source,
                   struct figure *figure, struct error *why)
{
    enum err err = driver->draw(source, figure, why);
    if (err)
        return err;
    if (figure->failed)
        return err_set(why, ERR_NO_MEMORY, "%s", err_text(ERR_NO_MEMORY));
    return figure_drop_empty(figure)
               ? ERR_OK
               : err_set(why, ERR_NO_DATA, "no figure that could be drawn is known");
}

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

void draw_vertical(struct figure *figure, struct figure_panel *panel, enum figure_colour colour,
                   double x, double top, const char *name)
{
    struct figure_series *line = figure_series(figure, panel, FIGURE_DOTTED, colour, name);
    series_add2(line, x, 0);
    series_add2(line, x, top);
}

static const char *text_or(const struct jv *value, const char *otherwise)
{
    const char *text = jv_text(value);
    return text ? text : otherwise;
}

void layers_heading(struct figure *figure, const struct plot_source *source, const char *what)
{
    const char *model = text_or(jv_get(source->layers, "model"), "a model");
    double joules = jv_number(jv_path(source->layers, "energy.joules"));
    double plus_minus = jv_number(jv_path(source->layers, "energy.plus_minus"));
    str_format(figure->title, sizeof figure->title, "%s: %.160s", what, short_name(model));
    if (is_known(joules))
        str_format(
            figure->note, sizeof figure->note,
            "one pass of the workload, %.4g ± %.2g J in total%s; attributed by %s", joules,
            plus_minus,
            strcmp(text_or(jv_get(source->layers, "method"), ""), "estimated") ? "" : ", estimated",
            text_or(jv_get(source->layers, "attribution"), "an unknown method"));
}
