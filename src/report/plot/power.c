/* Power against all tokens with both lines, as the Python IPW draws it. */
#include "report/plot/plot.h"
#include "report/plot/drawing.h"

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    static const struct pair_plot PLOT = {
        .x = RUN_TOTAL_TOKENS,
        .y = RUN_BASIS_WATTS,
        .instead = RUN_WATTS,
        .what = "Power",
        .x_label = "prompt and output (tokens)",
        .y_label = "mean power (W)",
        .log_fit = true,
    };
    return draw_pairs(&PLOT, source->table, figure, why);
}

const struct plot_driver plot_power = {
    .name = "power",
    .summary = "power against tokens, with a line over tokens and one over their logarithm",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_TOTAL_TOKENS) | RUN_WANT(RUN_BASIS_WATTS) | RUN_WANT(RUN_WATTS) |
                  RUN_WANT(RUN_BASIS_JOULES),
              0},
    .draw = draw,
};
