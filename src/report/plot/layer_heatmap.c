/* Layer by component, prefill and decode beside each other: where in the model the joules go. */
#include <math.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/plot.h"
#include "report/plot/of_layers.h"

static void put_phase(struct figure *figure, const struct jv *layers,
                      const struct layer_parts *parts, const char *phase, double most)
{
    size_t index = 0;
    struct figure_panel *panel = figure_panel(figure, "", "layer");
    str_copy(panel->title, sizeof panel->title, phase);
    str_copy(panel->heat_label, sizeof panel->heat_label, "energy (J)");
    panel->weight = 1;
    panel->heat_high = most;
    panel->y.low = -0.5;
    panel->y.high = (double)jv_count(jv_get(layers, "layers")) - 0.5;
    panel->y.whole = true;
    for (size_t i = 0; i < parts->count; i++)
        figure_name(figure, &panel->x, parts->names[i]);
    struct figure_series *cells = figure_series(figure, panel, FIGURE_HEAT, FIGURE_INK, "");
    for (const struct jv *l = jv_first(jv_get(layers, "layers")); l; l = jv_next(l), index++)
        for (size_t i = 0; i < parts->count; i++)
            series_add5(cells, (double)i - 0.5, (double)i + 0.5, (double)index - 0.5,
                        (double)index + 0.5, layer_joules(l, parts->names[i], phase));
}

/* The joules of the dearest place; 0 of a phase that has none. */
static double most_of(const struct jv *layers, const char *phase, const struct layer_parts *parts)
{
    double most = 0;
    for (const struct jv *l = jv_first(jv_get(layers, "layers")); l; l = jv_next(l))
        for (size_t i = 0; i < parts->count; i++)
            most = fmax(most, layer_joules(l, parts->names[i], phase));
    return most;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    static const char *const PHASES[] = {"prefill", "decode"};
    struct layer_parts parts;
    enum err err = layers_check(source, why);
    if (err)
        return err;
    layer_parts_of(source->layers, true, &parts);
    if (!parts.count)
        return err_set(why, ERR_NO_DATA, "the layers were not divided into components");
    /* One scale: the same colour is the same energy in both. */
    double most = fmax(most_of(source->layers, PHASES[0], &parts),
                       most_of(source->layers, PHASES[1], &parts));
    for (int i = 0; i < 2; i++)
        if (most_of(source->layers, PHASES[i], &parts) > 0)
            put_phase(figure, source->layers, &parts, PHASES[i], most);
    if (!figure->panel_count)
        return err_set(why, ERR_NO_DATA, "no component of a layer has energy");
    layers_heading(figure, source, "Energy by layer and component");
    figure->beside = true;
    figure->height =
        fmax(500, fmin(1000, 220 + 14 * (double)jv_count(jv_get(source->layers, "layers"))));
    return ERR_OK;
}

const struct plot_driver plot_layer_heatmap = {
    .name = "layer_heatmap",
    .summary = "energy by layer and component, prefill and decode beside each other",
    .of = PLOT_OF_LAYERS,
    .draw = draw,
};
