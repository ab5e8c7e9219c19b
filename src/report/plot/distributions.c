/* Distributions over the queries of a run: density of output lengths, and a histogram of energy per query. */
#include <math.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/plot.h"
#include "report/text/format.h"
#include "stats/descriptive.h"

/* ---- completion_tokens_kde: density of output lengths, 512 points, as the Python IPW draws it ---- */

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
    struct figure_panel *panel = figure_panel(figure, axis_of("", RUN_OUTPUT_TOKENS).text,
                                              "density (% of the queries per token)");
    panel->y.from_zero = true;
    struct figure_series *band = figure_series(panel, FIGURE_BAND, FIGURE_BLUE, "");
    struct figure_series *line = figure_series(panel, FIGURE_LINE, FIGURE_BLUE, "density");
    for (int i = 0; i < POINTS; i++) {
        series_add3(band, at[i], 0, 100 * density[i]);
        series_add2(line, at[i], 100 * density[i]);
        top = fmax(top, 100 * density[i]);
    }
    double median = select_median(values, count);
    chars_format(name, "median %.4g tokens", median);
    draw_vertical(panel, FIGURE_VERMILION, median, top, name);
    return ERR_OK;
}

static enum err draw_lengths(const struct plot_source *source, struct figure *figure,
                             struct error *why)
{
    const struct run_table *table = source->table;
    double *values;
    size_t count;
    enum err err = ERR_OK;
    known_values(table, RUN_OUTPUT_TOKENS, RUN_NUMBERS, &values, &count);
    if (!count)
        err = no_data_error(table, "output tokens are", why);
    else if (!is_known(kde_bandwidth(values, count)))
        err = err_set(why, ERR_NO_DATA, "a density needs two outputs of different length");
    else {
        const char *what = axis_of("", RUN_OUTPUT_TOKENS).label;
        draw_heading(figure, table, what, count, what);
        figure_note(figure, "Gaussian kernels, %.3g tokens wide (0.9 σ n^-1/5)",
                    kde_bandwidth(values, count));
        err = put_density(figure, values, count);
    }
    free(values);
    return err;
}

const struct plot_driver plot_completion_tokens_kde = {
    .name = "completion_tokens_kde",
    .summary = "density of output lengths",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_OUTPUT_TOKENS), 0},
    .draw = draw_lengths,
};

/* ---- energy_distribution: histogram of energy per query ---- */

enum { BINS_MAX = 60, BINS_MIN = 8 };

/* Ratio of the largest to the smallest energy above which bins are logarithmic. */
#define LOG_FROM 30.0

struct bins {
    double from, step; /* of the logarithms, if `is_log` */
    size_t count, counts[BINS_MAX];
    bool is_log;
};

static double bin_edge(const struct bins *bins, size_t i)
{
    double at = bins->from + bins->step * (double)i;
    return bins->is_log ? exp(at) : at;
}

/* Freedman-Diaconis rule: by the interquartile range, which is robust to outliers. */
static void make_bins(struct bins *bins, const double *values, size_t count, double low,
                      double high, const double *quarters)
{
    bins->is_log = low > 0 && high / low > LOG_FROM;
    double from = bins->is_log ? log(low) : low;
    double to = bins->is_log ? log(high) : high;
    double middle = bins->is_log ? log(quarters[2] / quarters[0]) : quarters[2] - quarters[0];
    double width = 2 * middle / cbrt((double)count);
    double wanted = width > 0 ? ceil((to - from) / width) : BINS_MIN;
    bins->count = (size_t)fmin(fmax(wanted, BINS_MIN), BINS_MAX);
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
    char name[FIGURE_TEXT_MAX], figure_text[FORMAT_MAX];
    double marks[4], top = 0;
    for (size_t i = 0; i < count; i++)
        online_add(&all, values[i]);
    select_quantiles(values, count, PS, 4, marks);
    make_bins(&bins, values, count, all.min, all.max, marks);
    struct figure_panel *panel = figure_panel(figure, axis_of("", RUN_JOULES).text, "queries");
    panel->y.from_zero = true;
    panel->x.log_base = bins.is_log ? 10 : 0;
    struct figure_series *boxes = figure_series(panel, FIGURE_BOXES, FIGURE_BLUE, "");
    for (size_t i = 0; i < bins.count; i++) {
        double low = bin_edge(&bins, i);
        double gap = (bin_edge(&bins, i + 1) - low) * 0.04;
        series_add4(boxes, low + gap, bin_edge(&bins, i + 1) - gap, 0, (double)bins.counts[i]);
        top = fmax(top, (double)bins.counts[i]);
    }
    chars_format(name, "median %s", format_si(figure_text, marks[1], "J"));
    draw_vertical(panel, FIGURE_VERMILION, marks[1], top, name);
    chars_format(name, "mean %s", format_si(figure_text, online_mean(&all), "J"));
    draw_vertical(panel, FIGURE_GREEN, online_mean(&all), top, name);
    chars_format(name, "95 %% below %s", format_si(figure_text, marks[3], "J"));
    draw_vertical(panel, FIGURE_PURPLE, marks[3], top, name);
}

static enum err draw_energy(const struct plot_source *source, struct figure *figure,
                            struct error *why)
{
    double *values;
    size_t count;
    enum err err = ERR_OK;
    known_values(source->table, RUN_JOULES, RUN_NUMBERS, &values, &count);
    if (!count)
        err = no_data_error(source->table, "energy is", why);
    else if (count < 3)
        err = err_set(why, ERR_NO_DATA, "a distribution needs three queries of known energy");
    else {
        const char *what = axis_of("", RUN_JOULES).label;
        draw_heading(figure, source->table, what, count, what);
        figure_note_energy_of(figure, source->table);
        put_bins(figure, values, count);
    }
    free(values);
    return err;
}

const struct plot_driver plot_energy_distribution = {
    .name = "energy_distribution",
    .summary = "histogram of the energy per query; median, mean, 95 %",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_JOULES), RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_SOURCE)},
    .draw = draw_energy,
};
