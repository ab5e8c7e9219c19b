/* The power of the windows in which `ipw layers` measured, over time: at rest, then phase by phase. */
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/plot.h"
#include "report/plot/of_layers.h"

/* "prefill", "decode", or "at rest" where a window belongs to no setting. */
static const char *what_ran(const struct jv *layers, const struct jv *window)
{
    int64_t index;
    if (!jv_integer(jv_get(window, "setting"), &index))
        return "at rest";
    for (const struct jv *s = jv_first(jv_get(layers, "settings")); s; s = jv_next(s))
        if (index-- == 0)
            return jv_text(jv_get(s, "phase"));
    return NULL;
}

/* Windows that were stopped for their times have no energy of their own. */
static size_t put_windows(struct figure *figure, struct figure_panel *panel,
                          const struct jv *layers, const char *what, enum figure_colour colour)
{
    struct figure_series *boxes = figure_series(figure, panel, FIGURE_BOXES, colour, what);
    struct figure_series *errors = figure_series(figure, panel, FIGURE_ERRORS_Y, FIGURE_INK, "");
    size_t count = 0;
    for (const struct jv *w = jv_first(jv_get(layers, "windows")); w; w = jv_next(w)) {
        const char *ran = what_ran(layers, w);
        double from = jv_number(jv_get(w, "start_s")), length = jv_number(jv_get(w, "time_s"));
        double watts = jv_number(jv_get(w, "power_w"));
        double error = jv_number(jv_get(w, "plus_minus")) / length;
        if (!ran || strcmp(ran, what) != 0 || !is_known(watts) || !(length > 0))
            continue;
        series_add4(boxes, from, from + length, 0, watts);
        series_add4(errors, from + length / 2, watts, fmax(watts - error, 0), watts + error);
        count++;
    }
    return count;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    struct figure_panel *panel = figure_panel(figure, "time since the start (s)", "power (W)");
    panel->y.from_zero = true;
    size_t count = put_windows(figure, panel, source->layers, "at rest", FIGURE_GREEN);
    count += put_windows(figure, panel, source->layers, "prefill", FIGURE_ORANGE);
    count += put_windows(figure, panel, source->layers, "decode", FIGURE_BLUE);
    if (count == 0)
        return err_set(why, ERR_NO_DATA, "the energy of no window is known");
    layers_heading(figure, source, "Power of the windows");
    size_t length = strlen(figure->note);
    str_copy(figure->note + length, sizeof figure->note - length, "; bars: ±");
    return ERR_OK;
}

const struct plot_driver plot_layer_power = {
    .name = "layer_power",
    .summary = "power over time while layers were measured",
    .of = PLOT_OF_LAYERS,
    .draw = draw,
};
