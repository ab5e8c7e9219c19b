/* What a token costs as more requests are under way at once. */
#include "report/plot/plot.h"
#include "report/plot/across.h"

static double concurrency(const struct run_figures *run)
{
    return run->point.concurrency;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    return draw_per_token(source, concurrency, "concurrency", "requests at once", figure, why);
}

const struct plot_driver plot_concurrency = {
    .name = "concurrency",
    .summary = "several runs: energy of an output token against concurrency",
    .of = PLOT_OF_RUNS,
    .draw = draw,
};
