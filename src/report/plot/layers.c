/* Plots of a result of `ipw layers`: the energy of every layer and of its components, a heat map of layers by
 * components, and the power of the measured windows over time. */
#include <math.h>

#include "core/text.h"
#include "core/units.h"
#include "report/plot/plot.h"
#include "rundir/layers_result.h"

/* ---- shared by the plots ---- */

/* Components in the order of the file, each once. */
enum { PARTS_MAX = 24 };
struct layer_parts {
    const char *names[PARTS_MAX];
    size_t count;
};

static bool is_same(const char *a, const char *b)
{
    return a && str_equal(a, b);
}

static void add_part(struct layer_parts *parts, const char *name)
{
    if (!str_is_listed(name, parts->names, parts->count) && parts->count < PARTS_MAX)
        parts->names[parts->count++] = name;
}

static void add_parts(struct layer_parts *parts, const struct result_components *components)
{
    for (size_t i = 0; i < components->count; i++)
        if (components->items[i].name)
            add_part(parts, components->items[i].name);
}

/* `inside`: only components of the layers. */
static void layer_parts_of(const struct layers_result *layers, bool inside, struct layer_parts *out)
{
    *out = (struct layer_parts){0};
    if (!inside)
        add_parts(out, &layers->components);
    for (size_t i = 0; inside && i < layers->layers_measured; i++)
        add_parts(out, &layers->layers[i].components);
}

/* The joules of a component in one list; phase NULL: both phases.  0 if it has none. */
static double layer_joules(const struct result_components *in, const char *component,
                           const char *phase)
{
    double sum = 0;
    for (size_t i = 0; i < in->count; i++) {
        const struct result_component *item = &in->items[i];
        if (is_known(item->energy_j) && is_same(item->name, component) &&
            (!phase || is_same(item->phase, phase)))
            sum += item->energy_j;
    }
    return sum;
}

static enum err layers_check(const struct plot_source *source, struct error *why)
{
    const struct layers_result *layers = source->layers;
    bool known = false, timed = false;
    if (!layers->layers_measured)
        return err_set(why, ERR_NO_DATA, "no layers in the file");
    for (size_t i = 0; i < layers->layers_measured; i++) {
        known = known || is_known(layers->layers[i].energy_j);
        timed = timed || layers->layers[i].time_s > 0;
    }
    if (!timed)
        return err_set(why, ERR_NO_DATA, "layers were not measured separately (granularity: %s)",
                       layers->granularity ? layers->granularity : "phase");
    return known ? ERR_OK : err_set(why, ERR_NO_DATA, "no layer has a known energy");
}

static enum figure_color part_color(size_t part)
{
    static const enum figure_color COLORS[] = {FIGURE_BLUE,   FIGURE_ORANGE,   FIGURE_GREEN,
                                               FIGURE_PURPLE, FIGURE_SKY_BLUE, FIGURE_VERMILION,
                                               FIGURE_YELLOW, FIGURE_INK};
    return COLORS[part % (COUNT_OF(COLORS))];
}

/* ---- layers: a stacked bar per layer ---- */

static void put_part(struct figure_series *boxes, const struct layers_result *layers,
                     const struct layer_parts *parts, size_t part)
{
    for (size_t l = 0; l < layers->layers_measured; l++) {
        const struct result_components *in = &layers->layers[l].components;
        double at = (double)l;
        double below = 0;
        double joules = layer_joules(in, parts->names[part], NULL);
        for (size_t i = 0; i < part; i++)
            below += layer_joules(in, parts->names[i], NULL);
        if (joules > 0)
            series_add4(boxes, at - 0.42, at + 0.42, below, below + joules);
    }
}

/* A layer that is not divided into components (coarse granularity) is one bar. */
static void put_whole(struct figure_panel *panel, const struct layers_result *layers, bool divided)
{
    struct figure_series *boxes = NULL, *errors;
    if (!divided)
        boxes = figure_series(panel, FIGURE_BOXES, FIGURE_BLUE, "layer");
    errors = figure_series(panel, FIGURE_ERRORS_Y, FIGURE_INK, "");
    for (size_t l = 0; l < layers->layers_measured; l++) {
        double at = (double)l;
        double joules = layers->layers[l].energy_j;
        double error = layers->layers[l].plus_minus;
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
    figure_note(figure, "bars: ±");
    layer_parts_of(source->layers, true, &parts);
    struct figure_panel *panel = figure_panel(figure, "layer", "energy ({J})");
    panel->y.from_zero = true;
    panel->x.integer = true;
    panel->x.low = -0.7;
    panel->x.high = (double)source->layers->layers_measured - 0.3;
    for (size_t i = 0; i < parts.count; i++)
        put_part(figure_series(panel, FIGURE_BOXES, part_color(i), parts.names[i]), source->layers,
                 &parts, i);
    put_whole(panel, source->layers, parts.count > 0);
    return ERR_OK;
}

const struct plot_driver plot_layers = {
    .name = "layers",
    .summary = "energy of every layer, divided into components",
    .of = PLOT_OF_LAYERS,
    .draw = draw_layers,
};

/* ---- components: prefill and decode apart ---- */

static void put_component_bars(struct figure_panel *panel, const struct layers_result *layers,
                               const struct layer_parts *parts, const char *phase, double shift,
                               enum figure_color color)
{
    struct figure_series *boxes = figure_series(panel, FIGURE_BOXES, color, phase);
    struct figure_series *errors = figure_series(panel, FIGURE_ERRORS_X, FIGURE_INK, "");
    for (size_t i = 0; i < parts->count; i++)
        for (size_t j = 0; j < layers->components.count; j++) {
            const struct result_component *item = &layers->components.items[j];
            double at = (double)i + shift;
            if (!is_same(item->name, parts->names[i]) || !is_same(item->phase, phase))
                continue;
            series_add4(boxes, 0, item->energy_j, at - 0.18, at + 0.18);
            series_add4(errors, item->energy_j, at, fmax(item->energy_j - item->plus_minus, 0),
                        item->energy_j + item->plus_minus);
        }
}

static enum err draw_components(const struct plot_source *source, struct figure *figure,
                                struct error *why)
{
    struct layer_parts parts;
    bool known = false;
    layer_parts_of(source->layers, false, &parts);
    for (size_t i = 0; i < parts.count; i++)
        known = known || layer_joules(&source->layers->components, parts.names[i], NULL) > 0;
    if (!known)
        return err_set(why, ERR_NO_DATA, "no component has a known energy");
    layers_heading(figure, source->layers, "Energy by component");
    figure_note(figure, "bars: ±");
    struct figure_panel *panel = figure_panel(figure, "energy ({J})", "");
    panel->x.from_zero = true;
    panel->y.down = true;
    for (size_t i = 0; i < parts.count; i++)
        figure_name(&panel->y, parts.names[i]);
    put_component_bars(panel, source->layers, &parts, "prefill", -0.2, FIGURE_ORANGE);
    put_component_bars(panel, source->layers, &parts, "decode", 0.2, FIGURE_BLUE);
    figure->height = fmax(400, 170 + 38 * (double)parts.count);
    return ERR_OK;
}

const struct plot_driver plot_components = {
    .name = "components",
    .summary = "energy of the components, for prefill and decode",
    .of = PLOT_OF_LAYERS,
    .draw = draw_components,
};

/* ---- layer_heatmap: layer by component ---- */

static void put_heat(struct figure *figure, const struct layers_result *layers,
                     const struct layer_parts *parts, const char *phase, double max)
{
    struct figure_panel *panel = figure_panel(figure, "", "layer");
    chars_copy(panel->title, phase);
    chars_copy(panel->heat_label, "energy ({J})");
    panel->weight = 1;
    panel->heat_high = max;
    panel->y.low = -0.5;
    panel->y.high = (double)layers->layers_measured - 0.5;
    panel->y.integer = true;
    for (size_t i = 0; i < parts->count; i++)
        figure_name(&panel->x, parts->names[i]);
    struct figure_series *cells = figure_series(panel, FIGURE_HEAT, FIGURE_INK, "");
    for (size_t l = 0; l < layers->layers_measured; l++)
        for (size_t i = 0; i < parts->count; i++)
            series_add5(cells, (double)i - 0.5, (double)i + 0.5, (double)l - 0.5, (double)l + 0.5,
                        layer_joules(&layers->layers[l].components, parts->names[i], phase));
}

/* The maximum joules of a cell; 0 for a phase without any. */
static double hottest(const struct layers_result *layers, const char *phase,
                      const struct layer_parts *parts)
{
    double max = 0;
    for (size_t l = 0; l < layers->layers_measured; l++)
        for (size_t i = 0; i < parts->count; i++)
            max = fmax(max, layer_joules(&layers->layers[l].components, parts->names[i], phase));
    return max;
}

static enum err draw_heatmap(const struct plot_source *source, struct figure *figure,
                             struct error *why)
{
    struct layer_parts parts;
    enum err err = layers_check(source, why);
    if (err)
        return err;
    layer_parts_of(source->layers, true, &parts);
    if (!parts.count)
        return err_set(why, ERR_NO_DATA, "the layers were not divided into components");
    /* One scale: the same color means the same energy in both. */
    double max = fmax(hottest(source->layers, RESULT_PHASE[0], &parts),
                      hottest(source->layers, RESULT_PHASE[1], &parts));
    for (int i = 0; i < 2; i++)
        if (hottest(source->layers, RESULT_PHASE[i], &parts) > 0)
            put_heat(figure, source->layers, &parts, RESULT_PHASE[i], max);
    if (!figure->panel_count)
        return err_set(why, ERR_NO_DATA, "no component of a layer has energy");
    layers_heading(figure, source->layers, "Energy by layer and component");
    figure->horizontal = true;
    figure->height = fmax(500, fmin(1000, 220 + 14 * (double)source->layers->layers_measured));
    return ERR_OK;
}

const struct plot_driver plot_layer_heatmap = {
    .name = "layer_heatmap",
    .summary = "energy by layer and component, prefill and decode side by side",
    .of = PLOT_OF_LAYERS,
    .draw = draw_heatmap,
};

/* ---- layer_power: power of the measured windows ---- */

/* "prefill", "decode", or "idle" for a window without a setting. */
static const char *window_phase(const struct layers_result *layers,
                                const struct result_window *window)
{
    const struct result_setting *setting = layers_result_setting(layers, window);
    if (!is_known(window->setting))
        return "idle";
    return setting ? setting->phase : NULL;
}

/* Instrumented windows have no energy of their own. */
static size_t put_windows(struct figure_panel *panel, const struct layers_result *layers,
                          const char *what, enum figure_color color)
{
    struct figure_series *boxes = figure_series(panel, FIGURE_BOXES, color, what);
    struct figure_series *errors = figure_series(panel, FIGURE_ERRORS_Y, FIGURE_INK, "");
    size_t count = 0;
    for (size_t i = 0; i < layers->window_count; i++) {
        const struct result_window *window = &layers->windows[i];
        double watts = window->power_w;
        double error = window->plus_minus / window->time_s;
        if (!is_same(window_phase(layers, window), what) || !is_known(watts) ||
            !(window->time_s > 0))
            continue;
        series_add4(boxes, window->start_s, window->start_s + window->time_s, 0, watts);
        series_add4(errors, window->start_s + window->time_s / 2, watts, fmax(watts - error, 0),
                    watts + error);
        count++;
    }
    return count;
}

static enum err draw_power(const struct plot_source *source, struct figure *figure,
                           struct error *why)
{
    struct figure_panel *panel = figure_panel(figure, "time since the start (s)", "power ({W})");
    panel->y.from_zero = true;
    size_t count = put_windows(panel, source->layers, "idle", FIGURE_GREEN);
    count += put_windows(panel, source->layers, "prefill", FIGURE_ORANGE);
    count += put_windows(panel, source->layers, "decode", FIGURE_BLUE);
    if (count == 0)
        return err_set(why, ERR_NO_DATA, "no window has a known energy");
    layers_heading(figure, source->layers, "Power of the measured windows");
    figure_note(figure, "bars: ±");
    return ERR_OK;
}

const struct plot_driver plot_layer_power = {
    .name = "layer_power",
    .summary = "power over time while layers were measured",
    .of = PLOT_OF_LAYERS,
    .draw = draw_power,
};
