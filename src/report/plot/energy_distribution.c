/* What a query costs: how many queries cost how much. */
#include <math.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/plot.h"
#include "report/plot/drawing.h"
#include "stats/online.h"
#include "stats/select.h"

enum { BINS_MOST = 60, BINS_LEAST = 8 };

/* Where one query costs many times another, bins are equal in proportion. */
#define LOG_FROM 30.0

struct bins {
    double from, step; /* of the logarithms, where `is_log` */
    size_t count, counts[BINS_MOST];
    bool is_log;
};

static double edge(const struct bins *bins, size_t i)
{
    double at = bins->from + bins->step * (double)i;
    return bins->is_log ? exp(at) : at;
}

/* As wide as Freedman and Diaconis advise: by the middle half, so that a few outliers do not matter. */
static void lay_bins(struct bins *bins, const double *values, size_t count, double low, double high,
                     const double *quarters)
{
    bins->is_log = low > 0 && high / low > LOG_FROM;
    double from = bins->is_log ? log(low) : low, to = bins->is_log ? log(high) : high;
    double middle = bins->is_log ? log(quarters[2] / quarters[0]) : quarters[2] - quarters[0];
    double width = 2 * middle / cbrt((double)count);
    double wanted = width > 0 ? ceil((to - from) / width) : BINS_LEAST;
    bins->count = wanted < BINS_LEAST  ? BINS_LEAST
                  : wanted > BINS_MOST ? BINS_MOST
                                       : (size_t)wanted;
    if (to <= from) {
        to = from + fmax(fabs(from) * 0.05, 1e-6);
        from -= to - from;
    }
    bins->from = from;
    bins->step = (to - from) / (double)bins->count;
    for (size_t i = 0; i < count; i++) {
        double place = ((bins->is_log ? log(values[i]) : values[i]) - from) / bins->step;
        size_t at = place < (double)bins->count ? (size_t)place : bins->count - 1;
        bins->counts[at]++;
    }
}

static void put_bins(struct figure *figure, double *values, size_t count)
{
    static const double PS[] = {0.25, 0.5, 0.75, 0.95};
    struct bins bins = {0};
    struct online all = {0};
    char name[FIGURE_TEXT_MAX];
    double marks[4], top = 0;
    for (size_t i = 0; i < count; i++)
        online_add(&all, values[i]);
    select_quantiles(values, count, PS, 4, marks);
    lay_bins(&bins, values, count, all.min, all.max, marks);
    struct figure_panel *panel = figure_panel(figure, "energy (J per query)", "queries");
    panel->y.from_zero = true;
    panel->x.log_base = bins.is_log ? 10 : 0;
    struct figure_series *boxes = figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "");
    for (size_t i = 0; i < bins.count; i++) {
        double low = edge(&bins, i), gap = (edge(&bins, i + 1) - low) * 0.04;
        series_add4(boxes, low + gap, edge(&bins, i + 1) - gap, 0, (double)bins.counts[i]);
        top = fmax(top, (double)bins.counts[i]);
    }
    str_format(name, sizeof name, "median %.4g J", marks[1]);
    draw_upright(figure, panel, FIGURE_VERMILION, marks[1], top, name);
    str_format(name, sizeof name, "mean %.4g J", online_mean(&all));
    draw_upright(figure, panel, FIGURE_GREEN, online_mean(&all), top, name);
    str_format(name, sizeof name, "95 %% below %.4g J", marks[3]);
    draw_upright(figure, panel, FIGURE_PURPLE, marks[3], top, name);
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    double *values;
    size_t count;
    enum err err = known_values(source->table, RUN_JOULES, &values, &count);
    if (err)
        return err_set(why, err, "%s", err_text(err));
    if (!count)
        err = lacks(source->table, "energy is", why);
    else if (count < 3)
        err = err_set(why, ERR_NO_DATA, "a distribution needs three queries of known energy");
    else {
        draw_heading(figure, source->table, "Energy of a query");
        put_bins(figure, values, count);
    }
    free(values);
    return err;
}

const struct plot_driver plot_energy_distribution = {
    .name = "energy_distribution",
    .summary = "how many queries cost how much; median, mean, 95 %",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_JOULES), 0},
    .draw = draw,
};
