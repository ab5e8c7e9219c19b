/* Energy against all tokens, as the Python IPW draws it. */
#include "report/plot/plot.h"
#include "report/plot/drawing.h"

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    static const struct pair_plot PLOT = {
        .x = RUN_TOTAL_TOKENS,
        .y = RUN_BASIS_JOULES,
        .instead = RUN_JOULES,
        .what = "Energy",
        .x_label = "prompt and output (tokens)",
        .y_label = "energy (J per query)",
        .log_fit = false,
    };
    return draw_pairs(&PLOT, source->table, figure, why);
}

const struct plot_driver plot_energy = {
    .name = "energy",
    .summary = "energy against tokens, with the line",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_TOTAL_TOKENS) | RUN_WANT(RUN_BASIS_JOULES) | RUN_WANT(RUN_JOULES), 0},
    .draw = draw,
};
