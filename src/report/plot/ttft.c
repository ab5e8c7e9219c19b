/* Time to the first token against the prompt, as the Python IPW draws it. */
#include "report/plot/plot.h"
#include "report/plot/drawing.h"

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    static const struct pair_plot PLOT = {
        .x = RUN_INPUT_TOKENS,
        .y = RUN_TTFT,
        .instead = RUN_TTFT,
        .what = "Time to the first token",
        .x_label = "prompt (tokens)",
        .y_label = "time to the first token (s)",
        .log_fit = false,
    };
    return draw_pairs(&PLOT, source->table, figure, why);
}

const struct plot_driver plot_ttft = {
    .name = "ttft",
    .summary = "time to the first token against prompt tokens, with the line",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_TTFT), 0},
    .draw = draw,
};
