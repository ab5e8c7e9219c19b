/* What a token costs as prompts grow. */
#include "report/plot/plot.h"
#include "report/plot/across.h"

static double mean_prompt(const struct run_figures *run)
{
    return run->prompt_tokens;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    return draw_per_token(source, mean_prompt, "the prompt's length", "mean prompt (tokens)",
                          figure, why);
}

const struct plot_driver plot_context = {
    .name = "context",
    .summary = "several runs: energy of an output token against the prompt's length",
    .of = PLOT_OF_RUNS,
    .draw = draw,
};
