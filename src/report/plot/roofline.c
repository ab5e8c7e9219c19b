/* Work over bytes: which components of a model, or which queries of a run, are held up by arithmetic and
 * which by memory.  The roof stands where the device's peaks are known. */
#include <math.h>
#include <string.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "catalog/device_peak.h"
#include "port/json_read.h"
#include "report/plot/plot.h"

/* Of more queries every n-th is drawn. */
enum { POINTS_MOST = 3000 };

static struct figure_panel *begin(struct figure *figure)
{
    struct figure_panel *panel =
        figure_panel(figure, "arithmetic intensity (FLOP per byte)", "performance (GFLOP/s)");
    panel->x.log_base = panel->y.log_base = 10;
    return panel;
}

/* Up with the bandwidth to the ridge, then level.  Over what is drawn, and a little more. */
static void put_roof(struct figure *figure, struct figure_panel *panel,
                     const struct device_peak *peak, double low, double high)
{
    char name[FIGURE_TEXT_MAX];
    double ridge = 1000 * peak->tflops / peak->gb_per_s;
    str_format(name, sizeof name, "%s: %g GB/s, %g TFLOP/s %s", peak->name, peak->gb_per_s,
               peak->tflops, peak->precision);
    struct figure_series *roof = figure_series(figure, panel, FIGURE_LINE, FIGURE_INK, name);
    low = fmin(low, ridge) / 2;
    series_add2(roof, low, low * peak->gb_per_s);
    series_add2(roof, ridge, 1000 * peak->tflops);
    series_add2(roof, fmax(high, ridge) * 2, 1000 * peak->tflops);
}

/* ---- components of a model ---- */

static size_t put_component(struct figure *figure, struct figure_panel *panel,
                            struct figure_series *series, const struct jv *c, double *low,
                            double *high)
{
    double flops = jv_number(jv_get(c, "flops")), bytes = jv_number(jv_get(c, "bytes"));
    double seconds = jv_number(jv_get(c, "time_s"));
    const char *name = jv_text(jv_get(c, "name"));
    if (!(flops > 0) || !(bytes > 0) || !(seconds > 0))
        return 0;
    series_add3(series, flops / bytes, flops / seconds * 1e-9, 0.9);
    figure_label(figure, panel, flops / bytes, flops / seconds * 1e-9, false, name ? name : "");
    *low = fmin(*low, flops / bytes);
    *high = fmax(*high, flops / bytes);
    return 1;
}

static enum err draw_layers(const struct plot_source *source, struct figure *figure,
                            struct error *why)
{
    double low = INFINITY, high = 0;
    size_t known = 0;
    struct device_peak peak;
    const char *gpu = jv_text(jv_get(source->host, "gpu"));
    int64_t on_gpu = 0;
    jv_integer(jv_path(source->layers, "workload.gpu_layers"), &on_gpu);
    struct figure_panel *panel = begin(figure);
    struct figure_series *series[2] = {
        figure_series(figure, panel, FIGURE_POINTS, FIGURE_ORANGE, "prefill"),
        figure_series(figure, panel, FIGURE_POINTS, FIGURE_BLUE, "decode")};
    for (const struct jv *c = jv_first(jv_get(source->layers, "components")); c; c = jv_next(c)) {
        const char *phase = jv_text(jv_get(c, "phase"));
        known += put_component(figure, panel, series[phase && strcmp(phase, "decode") == 0], c,
                               &low, &high);
    }
    if (!known)
        return err_set(why, ERR_NO_DATA, "operations and bytes of no component are known");
    layers_heading(figure, source->layers, "Roofline of the components");
    if (on_gpu != 0 && gpu && device_peak_find(gpu, &peak) && is_known(peak.gb_per_s) &&
        is_known(peak.tflops))
        put_roof(figure, panel, &peak, low, high);
    else
        str_copy(
            figure->note, sizeof figure->note,
            "operations and bytes counted from the model's shape; no roof: device peaks unknown");
    return ERR_OK;
}

/* ---- a run ---- */

/* The decode of every query: bytes a second are the use of the bandwidth, and operations go with them.
 * Of the whole query the operations would be known, but not the bytes. */
static enum err draw_run(const struct run_table *table, struct figure *figure, struct error *why)
{
    struct device_peak peak;
    const char *gpu = text_or_empty(table->summary.gpu_name);
    double low = INFINITY, high = 0;
    size_t known = 0;
    if (!device_peak_find(gpu, &peak) || !is_known(peak.tflops) || !is_known(peak.gb_per_s))
        return err_set(why, ERR_NO_DATA, "peak figures of %s are unknown",
                       gpu[0] ? gpu : "what it ran on");
    if (!table->numbers[RUN_INTENSITY] || !table->numbers[RUN_MBU])
        return lacks(table, "operations and bytes are", why);
    struct figure_panel *panel = begin(figure);
    struct figure_series *series =
        figure_series(figure, panel, FIGURE_POINTS, FIGURE_BLUE, "decode of one query");
    size_t step = table->rows / POINTS_MOST + 1;
    for (size_t i = 0; i < table->rows; i += step) {
        double intensity = run_number(table, RUN_INTENSITY, i);
        double gflops = intensity * peak.gb_per_s * run_number(table, RUN_MBU, i);
        if (!run_completed(table, i) || !(intensity > 0) || !(gflops > 0))
            continue;
        series_add3(series, intensity, gflops, 0.6);
        low = fmin(low, intensity);
        high = fmax(high, intensity);
        known++;
    }
    if (!known)
        return lacks(table, "operations and bytes together are", why);
    put_roof(figure, panel, &peak, low, high);
    draw_heading(figure, table, "Roofline");
    return ERR_OK;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    return source->layers ? draw_layers(source, figure, why) : draw_run(source->table, figure, why);
}

const struct plot_driver plot_roofline = {
    .name = "roofline",
    .summary = "work over bytes of components or queries, below the device's roof",
    .of = PLOT_OF_RUN | PLOT_OF_LAYERS,
    .needs = {RUN_WANT(RUN_INTENSITY) | RUN_WANT(RUN_MBU), 0},
    .draw = draw,
};
