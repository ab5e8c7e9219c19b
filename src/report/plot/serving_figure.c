/* The figure of a model under load, as `ipw estimate --serve --plot` draws it: energy per token and latencies against
 * the load. */
#include <math.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/figure.h"
#include "report/plot/plot.h"

static void put_energy(const struct result *result, struct figure *figure)
{
    struct figure_panel *panel =
        figure_panel(figure, "load (requests/s)", "energy ({J} per output token, estimated)");
    struct figure_series *band =
        figure_series(panel, FIGURE_BAND, FIGURE_SKY_BLUE, "one standard deviation");
    struct figure_series *line =
        figure_series(panel, FIGURE_MARKED, FIGURE_BLUE, "energy per token");
    double relative = result_number_at(result->items, "step_times.energy_relative_plus_minus");
    double largest = result_number_at(result->items, "slo.largest_load.request_rate");
    panel->y.from_zero = panel->x.from_zero = true;
    RESULT_EACH (point, result_find(result, "points")) {
        double rate = result_number_at(point, "request_rate");
        double each = result_number_at(point, "energy_per_token_j");
        series_add3(band, rate, each * fmax(0, 1 - relative), each * (1 + relative));
        series_add2(line, rate, each);
    }
    if (largest > 0)
        draw_vertical(panel, FIGURE_GREEN, largest,
                      result_number_at(result->items, "points.0.energy_per_token_j"),
                      "largest load that meets the SLO");
}

static void put_latencies(const struct result *result, struct figure *figure)
{
    struct figure_panel *panel = figure_panel(figure, "load (requests/s)", "latency ({s})");
    const struct {
        struct figure_series *line;
        const char *path;
    } lines[] = {
        {figure_series(panel, FIGURE_LINE, FIGURE_ORANGE, "TTFT p50"), "ttft_s.p50"},
        {figure_series(panel, FIGURE_DOTTED, FIGURE_ORANGE, "TTFT p95"), "ttft_s.p95"},
        {figure_series(panel, FIGURE_LINE, FIGURE_PURPLE, "ITL p50"), "itl_s.p50"},
        {figure_series(panel, FIGURE_DOTTED, FIGURE_PURPLE, "ITL p95"), "itl_s.p95"},
    };
    panel->y.log_base = 10;
    panel->x.from_zero = true;
    RESULT_EACH (point, result_find(result, "points"))
        for (size_t i = 0; i < COUNT_OF(lines); i++)
            series_add2(lines[i].line, result_number_at(point, "request_rate"),
                        result_number_at(point, lines[i].path));
}

enum err serving_figure(const struct result *result, struct figure *figure, struct error *why)
{
    if (!is_known(result_number_at(result->items, "points.0.energy_per_token_j")))
        return err_set(why, ERR_NO_DATA, "energy on %.60s is unknown: nothing to plot",
                       result_text_at(result->items, "hardware"));
    chars_format(figure->title, "%.100s on %.100s: energy per token by load",
                 result_text_at(result->items, "model"),
                 result_text_at(result->items, "view.device_name"));
    chars_format(figure->note,
                 "%.0f requests of %.0f prompt and %.0f output tokens on average; simulated, not "
                 "measured",
                 result_number_at(result->items, "load.requests"),
                 result_number_at(result->items, "load.mean_prompt_tokens"),
                 result_number_at(result->items, "load.mean_output_tokens"));
    put_energy(result, figure);
    put_latencies(result, figure);
    figure->height = 700;
    if (!figure_finish(figure))
        return err_set(why, ERR_NO_DATA, "nothing to plot");
    return ERR_OK;
}
