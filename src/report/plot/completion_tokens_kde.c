/* How long the answers are: their density by Gaussian kernels, 512 points from the shortest to the
 * longest, as the Python IPW draws it. */
#include <stdlib.h>
#include <string.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/plot.h"
#include "report/plot/drawing.h"
#include "stats/kde.h"
#include "stats/online.h"
#include "stats/select.h"

enum { POINTS = 512 };

static enum err put_density(struct figure *figure, double *values, size_t count)
{
    double at[POINTS], density[POINTS], top = 0;
    char name[FIGURE_TEXT_MAX];
    struct online all = {0};
    for (size_t i = 0; i < count; i++)
        online_add(&all, values[i]);
    for (int i = 0; i < POINTS; i++)
        at[i] = all.min + (all.max - all.min) * i / (POINTS - 1);
    enum err err = kde(values, count, at, POINTS, density);
    if (err)
        return err;
    struct figure_panel *panel =
        figure_panel(figure, "output (tokens)", "density (% of the queries per token)");
    panel->y.from_zero = true;
    struct figure_series *band = figure_series(figure, panel, FIGURE_BAND, FIGURE_BLUE, "");
    struct figure_series *line = figure_series(figure, panel, FIGURE_LINE, FIGURE_BLUE, "density");
    for (int i = 0; i < POINTS; i++) {
        series_add3(band, at[i], 0, 100 * density[i]);
        series_add2(line, at[i], 100 * density[i]);
        top = fmax(top, 100 * density[i]);
    }
    double median = select_median(values, count);
    str_format(name, sizeof name, "median %.4g tokens", median);
    draw_upright(figure, panel, FIGURE_VERMILION, median, top, name);
    return ERR_OK;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    const struct run_table *table = source->table;
    double *values;
    size_t count;
    enum err err = known_values(table, RUN_OUTPUT_TOKENS, &values, &count);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    if (!count)
        err = lacks(table, "output tokens are", why);
    else if (!is_known(kde_bandwidth(values, count)))
        err = err_set(why, ERR_NO_DATA, "a density needs two answers of different length");
    else {
        draw_heading(figure, table, "Output tokens");
        size_t length = strlen(figure->note);
        str_format(figure->note + length, sizeof figure->note - length,
                   "; Gaussian kernels, %.3g tokens wide (0.9 σ n^-1/5)",
                   kde_bandwidth(values, count));
        err = put_density(figure, values, count);
    }
    free(values);
    return err;
}

const struct plot_driver plot_completion_tokens_kde = {
    .name = "completion_tokens_kde",
    .summary = "density of the answers' lengths",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_OUTPUT_TOKENS), 0},
    .draw = draw,
};
