/* Roofline: whether components of a model, or queries of a run, are compute-bound or memory-bound.  The roof is drawn
 * if the device's peaks are known. */
#include <math.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "catalog/device_peak.h"
#include "report/plot/plot.h"
#include "rundir/layers_result.h"

/* Of more queries every n-th is drawn. */
enum { POINTS_MAX = 3000 };

static struct figure_panel *begin(struct figure *figure)
{
    struct figure_panel *panel =
        figure_panel(figure, "arithmetic intensity (FLOP per byte)", "performance (GFLOP/s)");
    panel->x.log_base = panel->y.log_base = 10;
    return panel;
}

/* The memory roof up to the ridge, then the compute roof, slightly beyond the data. */
static void put_roof(struct figure_panel *panel, const struct device_peak *peak, double low,
                     double high)
{
    char name[FIGURE_TEXT_MAX];
    double ridge = 1000 * peak->tflops / peak->gb_per_s;
    chars_format(name, "%s: %g GB/s, %g TFLOP/s %s", peak->name, peak->gb_per_s, peak->tflops,
                 peak->precision);
    struct figure_series *roof = figure_series(panel, FIGURE_LINE, FIGURE_INK, name);
    low = fmin(low, ridge) / 2;
    series_add2(roof, low, low * peak->gb_per_s);
    series_add2(roof, ridge, 1000 * peak->tflops);
    series_add2(roof, fmax(high, ridge) * 2, 1000 * peak->tflops);
}

/* ---- components of a model ---- */

static size_t put_component(struct figure_panel *panel, struct figure_series *series,
                            const struct result_component *component, double *low, double *high)
{
    double intensity = component->flops / component->bytes;
    double gflops = component->flops / component->time_s * 1e-9;
    if (!(component->flops > 0) || !(component->bytes > 0) || !(component->time_s > 0))
        return 0;
    series_add3(series, intensity, gflops, 0.9);
    figure_label(panel, intensity, gflops, false, text_or_empty(component->name));
    *low = fmin(*low, intensity);
    *high = fmax(*high, intensity);
    return 1;
}

static enum err draw_layers(const struct plot_source *source, struct figure *figure,
                            struct error *why)
{
    double low = INFINITY, high = 0;
    size_t known = 0;
    struct device_peak peak;
    const struct layers_result *layers = source->layers;
    bool on_gpu = layers->gpu && is_known(layers->gpu_layers) && layers->gpu_layers != 0;
    struct figure_panel *panel = begin(figure);
    struct figure_series *series[2] = {
        figure_series(panel, FIGURE_POINTS, FIGURE_ORANGE, "prefill"),
        figure_series(panel, FIGURE_POINTS, FIGURE_BLUE, "decode")};
    for (size_t i = 0; i < layers->components.count; i++) {
        const struct result_component *component = &layers->components.items[i];
        bool decode = str_equal(text_or_empty(component->phase), "decode");
        known += put_component(panel, series[decode], component, &low, &high);
    }
    if (!known)
        return err_set(why, ERR_NO_DATA, "operations and bytes of no component are known");
    layers_heading(figure, layers, "Roofline of the components");
    if (on_gpu && device_peak_find(layers->gpu, &peak) && is_known(peak.gb_per_s) &&
        is_known(peak.tflops))
        put_roof(panel, &peak, low, high);
    else
        chars_copy(
            figure->note,
            "operations and bytes counted from the model's shape; no roof: device peaks unknown");
    return ERR_OK;
}

/* ---- a run ---- */

/* The decode phase of every query: bytes per second are the bandwidth used, and FLOPs are counted for the same
 * phase; the bytes of a whole query are unknown. */
static enum err draw_run(const struct run_table *table, struct figure *figure, struct error *why)
{
    struct device_peak peak;
    const char *gpu = text_or_empty(table->summary.gpu_name);
    double low = INFINITY, high = 0;
    size_t known = 0;
    if (!device_peak_find(gpu, &peak) || !is_known(peak.tflops) || !is_known(peak.gb_per_s))
        return err_set(why, ERR_NO_DATA, "peak figures of %s are unknown",
                       gpu[0] ? gpu : "the device");
    if (!table->numbers[RUN_INTENSITY] || !table->numbers[RUN_MBU])
        return no_data_error(table, "operations and bytes are", why);
    struct figure_panel *panel = begin(figure);
    struct figure_series *series =
        figure_series(panel, FIGURE_POINTS, FIGURE_BLUE, "decode of one query");
    size_t step = table->rows / POINTS_MAX + 1;
    for (size_t i = 0; i < table->rows; i++) {
        double intensity = run_number(table, RUN_INTENSITY, i);
        double gflops = intensity * peak.gb_per_s * run_number(table, RUN_MBU, i);
        if (!run_completed(table, i) || !(intensity > 0) || !(gflops > 0))
            continue;
        low = fmin(low, intensity);
        high = fmax(high, intensity);
        if (known++ % step == 0)
            series_add3(series, intensity, gflops, 0.6);
    }
    if (!known)
        return no_data_error(table, "operations and bytes together are", why);
    put_roof(panel, &peak, low, high);
    draw_heading(figure, table, "Roofline", known, "operations and bytes");
    if (step > 1)
        figure_note(figure, "one in %zu is drawn", step);
    return ERR_OK;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    return source->layers ? draw_layers(source, figure, why) : draw_run(source->table, figure, why);
}

const struct plot_driver plot_roofline = {
    .name = "roofline",
    .summary = "roofline: FLOP per byte of components or queries against the device's peaks",
    .of = PLOT_OF_RUN | PLOT_OF_LAYERS,
    .needs = {RUN_WANT(RUN_INTENSITY) | RUN_WANT(RUN_MBU), 0},
    .draw = draw,
};
