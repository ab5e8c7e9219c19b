/* The energy of the components over all layers, prefill and decode apart. */
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/plot.h"
#include "report/plot/of_layers.h"

static const struct jv *find(const struct jv *layers, const char *name, const char *phase)
{
    for (const struct jv *c = jv_first(jv_get(layers, "components")); c; c = jv_next(c)) {
        const char *its = jv_text(jv_get(c, "name")), *in = jv_text(jv_get(c, "phase"));
        if (its && in && strcmp(its, name) == 0 && strcmp(in, phase) == 0)
            return c;
    }
    return NULL;
}

static void put_phase(struct figure *figure, struct figure_panel *panel, const struct jv *layers,
                      const struct layer_parts *parts, const char *phase, double shift,
                      enum figure_colour colour)
{
    struct figure_series *boxes = figure_series(figure, panel, FIGURE_BOXES, colour, phase);
    struct figure_series *errors = figure_series(figure, panel, FIGURE_ERRORS_X, FIGURE_INK, "");
    for (size_t i = 0; i < parts->count; i++) {
        const struct jv *c = find(layers, parts->names[i], phase);
        double joules = jv_number(jv_get(c, "energy_j")), at = (double)i + shift;
        double error = jv_number(jv_get(c, "plus_minus"));
        series_add4(boxes, 0, joules, at - 0.18, at + 0.18);
        series_add4(errors, joules, at, fmax(joules - error, 0), joules + error);
    }
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    struct layer_parts parts;
    bool known = false;
    layer_parts_of(source->layers, false, &parts);
    for (size_t i = 0; i < parts.count; i++)
        known = known || layer_joules(source->layers, parts.names[i], NULL) > 0;
    if (!known)
        return err_set(why, ERR_NO_DATA, "the energy of no component is known");
    layers_heading(figure, source, "Energy of the components");
    size_t length = strlen(figure->note);
    str_copy(figure->note + length, sizeof figure->note - length, "; bars: ±");
    struct figure_panel *panel = figure_panel(figure, "energy (J)", "");
    panel->x.from_zero = true;
    panel->y.down = true;
    for (size_t i = 0; i < parts.count; i++)
        figure_name(figure, &panel->y, parts.names[i]);
    put_phase(figure, panel, source->layers, &parts, "prefill", -0.2, FIGURE_ORANGE);
    put_phase(figure, panel, source->layers, &parts, "decode", 0.2, FIGURE_BLUE);
    figure->height = fmax(400, 170 + 38 * (double)parts.count);
    return ERR_OK;
}

const struct plot_driver plot_components = {
    .name = "components",
    .summary = "energy of the components, prefill and decode apart",
    .of = PLOT_OF_LAYERS,
    .draw = draw,
};
