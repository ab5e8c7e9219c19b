/* Plots of a result of `ipw layers`: the energy of every layer and of its components, a heat map of layers by
 * components, and the power of the measured windows over time.  They read the JSON that `ipw layers` writes;
 * everything points into that tree. */
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/plot/plot.h"

/* ---- what the plots share ---- */

/* Components in the order of the file, each once. */
enum { PARTS_MOST = 24 };
struct layer_parts {
    const char *names[PARTS_MOST];
    size_t count;
};

static const char *text_or(const struct jv *value, const char *otherwise)
{
    const char *text = jv_text(value);
    return text ? text : otherwise;
}

static void add_part(struct layer_parts *parts, const char *name)
{
    for (size_t i = 0; i < parts->count; i++)
        if (strcmp(parts->names[i], name) == 0)
            return;
    if (parts->count < PARTS_MOST)
        parts->names[parts->count++] = name;
}

static void add_parts(struct layer_parts *parts, const struct jv *entry)
{
    for (const struct jv *c = jv_first(jv_get(entry, "components")); c; c = jv_next(c))
        if (jv_text(jv_get(c, "name")))
            add_part(parts, jv_text(jv_get(c, "name")));
}

/* `inside`: components of the layers alone. */
static void layer_parts_of(const struct jv *layers, bool inside, struct layer_parts *out)
{
    *out = (struct layer_parts){0};
    if (!inside) {
        add_parts(out, layers);
        return;
    }
    for (const struct jv *l = jv_first(jv_get(layers, "layers")); l; l = jv_next(l))
        add_parts(out, l);
}

/* The joules of a component in one entry; phase NULL is both phases.  0 when it has none. */
static double layer_joules(const struct jv *entry, const char *component, const char *phase)
{
    double sum = 0;
    for (const struct jv *c = jv_first(jv_get(entry, "components")); c; c = jv_next(c)) {
        double joules = jv_number(jv_get(c, "energy_j"));
        if (is_known(joules) && strcmp(text_or(jv_get(c, "name"), ""), component) == 0 &&
            (!phase || strcmp(text_or(jv_get(c, "phase"), ""), phase) == 0))
            sum += joules;
    }
    return sum;
}

static enum err layers_check(const struct plot_source *source, struct error *why)
{
    const struct jv *layers = jv_get(source->layers, "layers");
    bool known = false, timed = false;
    if (!jv_count(layers))
        return err_set(why, ERR_NO_DATA, "no layers in the file");
    for (const struct jv *l = jv_first(layers); l; l = jv_next(l)) {
        known = known || is_known(jv_number(jv_get(l, "energy_j")));
        timed = timed || jv_number(jv_get(l, "time_s")) > 0;
    }
    if (!timed)
        return err_set(why, ERR_NO_DATA, "layers were not measured separately (granularity: %s)",
                       text_or(jv_get(source->layers, "granularity"), "phase"));
    return known ? ERR_OK : err_set(why, ERR_NO_DATA, "no layer has a known energy");
}

static enum figure_color part_color(size_t part)
{
    static const enum figure_color COLORS[] = {FIGURE_BLUE,   FIGURE_ORANGE, FIGURE_GREEN,
                                               FIGURE_PURPLE, FIGURE_SKY,    FIGURE_VERMILION,
                                               FIGURE_YELLOW, FIGURE_INK};
    return COLORS[part % (sizeof COLORS / sizeof *COLORS)];
}

/* ---- layers: a stacked bar per layer ---- */

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

static enum err draw_layers(const struct plot_source *source, struct figure *figure,
                            struct error *why)
{
    struct layer_parts parts;
    enum err err = layers_check(source, why);
    if (err)
        return err;
    layers_heading(figure, source->layers, "Energy by layer");
    size_t length = strlen(figure->note);
    str_copy(figure->note + length, sizeof figure->note - length, "; bars: ±");
    layer_parts_of(source->layers, true, &parts);
    struct figure_panel *panel = figure_panel(figure, "layer", "energy (J)");
    panel->y.from_zero = true;
    panel->x.whole = true;
    panel->x.low = -0.7;
    panel->x.high = (double)jv_count(jv_get(source->layers, "layers")) - 0.3;
    for (size_t i = 0; i < parts.count; i++)
        put_part(figure_series(figure, panel, FIGURE_BOXES, part_color(i), parts.names[i]),
                 source->layers, &parts, i);
    put_whole(figure, panel, source->layers, parts.count > 0);
    return ERR_OK;
}

const struct plot_driver plot_layers = {
    .name = "layers",
    .summary = "energy of every layer, divided into components",
    .of = PLOT_OF_LAYERS,
    .draw = draw_layers,
};

/* ---- components: prefill and decode apart ---- */

static const struct jv *find_component(const struct jv *layers, const char *name, const char *phase)
{
    for (const struct jv *c = jv_first(jv_get(layers, "components")); c; c = jv_next(c)) {
        const char *its = jv_text(jv_get(c, "name")), *in = jv_text(jv_get(c, "phase"));
        if (its && in && strcmp(its, name) == 0 && strcmp(in, phase) == 0)
            return c;
    }
    return NULL;
}

static void put_component_bars(struct figure *figure, struct figure_panel *panel,
                               const struct jv *layers, const struct layer_parts *parts,
                               const char *phase, double shift, enum figure_color color)
{
    struct figure_series *boxes = figure_series(figure, panel, FIGURE_BOXES, color, phase);
    struct figure_series *errors = figure_series(figure, panel, FIGURE_ERRORS_X, FIGURE_INK, "");
    for (size_t i = 0; i < parts->count; i++) {
        const struct jv *c = find_component(layers, parts->names[i], phase);
        double joules = jv_number(jv_get(c, "energy_j")), at = (double)i + shift;
        double error = jv_number(jv_get(c, "plus_minus"));
        series_add4(boxes, 0, joules, at - 0.18, at + 0.18);
        series_add4(errors, joules, at, fmax(joules - error, 0), joules + error);
    }
}

static enum err draw_components(const struct plot_source *source, struct figure *figure,
                                struct error *why)
{
    struct layer_parts parts;
    bool known = false;
    layer_parts_of(source->layers, false, &parts);
    for (size_t i = 0; i < parts.count; i++)
        known = known || layer_joules(source->layers, parts.names[i], NULL) > 0;
    if (!known)
        return err_set(why, ERR_NO_DATA, "no component has a known energy");
    layers_heading(figure, source->layers, "Energy by component");
    size_t length = strlen(figure->note);
    str_copy(figure->note + length, sizeof figure->note - length, "; bars: ±");
    struct figure_panel *panel = figure_panel(figure, "energy (J)", "");
    panel->x.from_zero = true;
    panel->y.down = true;
    for (size_t i = 0; i < parts.count; i++)
        figure_name(figure, &panel->y, parts.names[i]);
    put_component_bars(figure, panel, source->layers, &parts, "prefill", -0.2, FIGURE_ORANGE);
    put_component_bars(figure, panel, source->layers, &parts, "decode", 0.2, FIGURE_BLUE);
    figure->height = fmax(400, 170 + 38 * (double)parts.count);
    return ERR_OK;
}

const struct plot_driver plot_components = {
    .name = "components",
    .summary = "energy of the components, prefill and decode apart",
    .of = PLOT_OF_LAYERS,
    .draw = draw_components,
};

/* ---- layer_heatmap: layer by component ---- */

static void put_heat(struct figure *figure, const struct jv *layers,
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
static double hottest(const struct jv *layers, const char *phase, const struct layer_parts *parts)
{
    double most = 0;
    for (const struct jv *l = jv_first(jv_get(layers, "layers")); l; l = jv_next(l))
        for (size_t i = 0; i < parts->count; i++)
            most = fmax(most, layer_joules(l, parts->names[i], phase));
    return most;
}

static enum err draw_heatmap(const struct plot_source *source, struct figure *figure,
                             struct error *why)
{
    static const char *const PHASES[] = {"prefill", "decode"};
    struct layer_parts parts;
    enum err err = layers_check(source, why);
    if (err)
        return err;
    layer_parts_of(source->layers, true, &parts);
    if (!parts.count)
        return err_set(why, ERR_NO_DATA, "the layers were not divided into components");
    /* One scale: the same color is the same energy in both. */
    double most = fmax(hottest(source->layers, PHASES[0], &parts),
                       hottest(source->layers, PHASES[1], &parts));
    for (int i = 0; i < 2; i++)
        if (hottest(source->layers, PHASES[i], &parts) > 0)
            put_heat(figure, source->layers, &parts, PHASES[i], most);
    if (!figure->panel_count)
        return err_set(why, ERR_NO_DATA, "no component of a layer has energy");
    layers_heading(figure, source->layers, "Energy by layer and component");
    figure->beside = true;
    figure->height =
        fmax(500, fmin(1000, 220 + 14 * (double)jv_count(jv_get(source->layers, "layers"))));
    return ERR_OK;
}

const struct plot_driver plot_layer_heatmap = {
    .name = "layer_heatmap",
    .summary = "energy by layer and component, prefill and decode beside each other",
    .of = PLOT_OF_LAYERS,
    .draw = draw_heatmap,
};

/* ---- layer_power: power of the measured windows ---- */

/* "prefill", "decode", or "idle" where a window belongs to no setting. */
static const char *what_ran(const struct jv *layers, const struct jv *window)
{
    int64_t index;
    if (!jv_integer(jv_get(window, "setting"), &index))
        return "idle";
    for (const struct jv *s = jv_first(jv_get(layers, "settings")); s; s = jv_next(s))
        if (index-- == 0)
            return jv_text(jv_get(s, "phase"));
    return NULL;
}

/* Windows that were stopped for their times have no energy of their own. */
static size_t put_windows(struct figure *figure, struct figure_panel *panel,
                          const struct jv *layers, const char *what, enum figure_color color)
{
    struct figure_series *boxes = figure_series(figure, panel, FIGURE_BOXES, color, what);
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

static enum err draw_power(const struct plot_source *source, struct figure *figure,
                           struct error *why)
{
    struct figure_panel *panel = figure_panel(figure, "time since the start (s)", "power (W)");
    panel->y.from_zero = true;
    size_t count = put_windows(figure, panel, source->layers, "idle", FIGURE_GREEN);
    count += put_windows(figure, panel, source->layers, "prefill", FIGURE_ORANGE);
    count += put_windows(figure, panel, source->layers, "decode", FIGURE_BLUE);
    if (count == 0)
        return err_set(why, ERR_NO_DATA, "no window has a known energy");
    layers_heading(figure, source->layers, "Power of the measured windows");
    size_t length = strlen(figure->note);
    str_copy(figure->note + length, sizeof figure->note - length, "; bars: ±");
    return ERR_OK;
}

const struct plot_driver plot_layer_power = {
    .name = "layer_power",
    .summary = "power over time while layers were measured",
    .of = PLOT_OF_LAYERS,
    .draw = draw_power,
};
