/* Latency against all tokens, as the Python IPW draws it. */
#include "report/plot/plot.h"
#include "report/plot/drawing.h"

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    static const struct pair_plot PLOT = {
        .x = RUN_TOTAL_TOKENS,
        .y = RUN_LATENCY,
        .instead = RUN_LATENCY,
        .what = "Latency",
        .x_label = "prompt and output (tokens)",
        .y_label = "latency (s)",
        .log_fit = false,
    };
    return draw_pairs(&PLOT, source->table, figure, why);
}

const struct plot_driver plot_latency = {
    .name = "latency",
    .summary = "latency against tokens, with the line",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_TOTAL_TOKENS) | RUN_WANT(RUN_LATENCY), 0},
    .draw = draw,
};
