/* The energy of every layer, a bar each, divided into components. */
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/plot.h"
#include "report/plot/of_layers.h"

static void put_part(struct figure_series *boxes, const struct jv *layers,
                     const struct layer_parts *parts, size_t part)
{
    size_t index = 0;
    for (const struct jv *l = jv_first(jv_get(layers, "layers")); l; l = jv_next(l), index++) {
        double at = (double)index, below = 0, joules = layer_joules(l, parts->names[part], NULL);
        for (size_t i = 0; i < part; i++)
            below += layer_joules(l, parts->names[i], NULL);
        if (joules > 0)
            series_add4(boxes, at - 0.42, at + 0.42, below, below + joules);
    }
}

/* What is not divided into components (the layers were looked at as a whole) is one bar. */
static void put_whole(struct figure *figure, struct figure_panel *panel, const struct jv *layers,
                      bool divided)
{
    size_t index = 0;
    struct figure_series *boxes = NULL, *errors;
    if (!divided)
        boxes = figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "layer");
    errors = figure_series(figure, panel, FIGURE_ERRORS_Y, FIGURE_INK, "");
    for (const struct jv *l = jv_first(jv_get(layers, "layers")); l; l = jv_next(l), index++) {
        double at = (double)index, joules = jv_number(jv_get(l, "energy_j"));
        double error = jv_number(jv_get(l, "plus_minus"));
        if (boxes)
            series_add4(boxes, at - 0.42, at + 0.42, 0, joules);
        series_add4(errors, at, joules, fmax(joules - error, 0), joules + error);
    }
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    struct layer_parts parts;
    enum err err = layers_check(source, why);
    if (err)
        return err;
    layers_heading(figure, source, "Energy of the layers");
    size_t length = strlen(figure->note);
    str_copy(figure->note + length, sizeof figure->note - length, "; bars: ±");
    layer_parts_of(source->layers, true, &parts);
    struct figure_panel *panel = figure_panel(figure, "layer", "energy (J)");
    panel->y.from_zero = true;
    panel->x.whole = true;
    panel->x.low = -0.7;
    panel->x.high = (double)jv_count(jv_get(source->layers, "layers")) - 0.3;
    for (size_t i = 0; i < parts.count; i++)
        put_part(figure_series(figure, panel, FIGURE_BOXES, part_colour(i), parts.names[i]),
                 source->layers, &parts, i);
    put_whole(figure, panel, source->layers, parts.count > 0);
    return ERR_OK;
}

const struct plot_driver plot_layers = {
    .name = "layers",
    .summary = "energy of every layer, divided into components",
    .of = PLOT_OF_LAYERS,
    .draw = draw,
};
