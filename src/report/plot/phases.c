/* Prefill and decode: energy of each in every query, and per token. */
#include <stdlib.h>

#include "analysis/columns.h"
#include "core/text.h"
#include "core/units.h"
#include "report/plot/plot.h"
#include "report/text/format.h"
#include "stats/descriptive.h"

/* More bars could not be distinguished: neighbors are averaged. */
enum { BARS_MAX = 80 };

static size_t count_rows(const struct run_table *table)
{
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++)
        count += run_completed(table, i) && is_known(run_number(table, RUN_PREFILL_JOULES, i)) &&
                 is_known(run_number(table, RUN_DECODE_JOULES, i));
    return count;
}

struct bar {
    double prefill, decode;
    size_t queries;
};

static void put_bar(struct figure_series *prefill, struct figure_series *decode,
                    const struct bar *bar, double from, double to)
{
    double n = (double)bar->queries;
    double gap = 0.06 * (to - from);
    series_add4(prefill, from + gap, to - gap, 0, bar->prefill / n);
    series_add4(decode, from + gap, to - gap, bar->prefill / n, (bar->prefill + bar->decode) / n);
}

/* Where bar `i` of `bars` ends: all have the same number of queries, or one more, so that none is much smaller. */
static size_t end_of_bar(size_t i, size_t bars, size_t count)
{
    return (i + 1) * count / bars;
}

static void put_bars(struct figure *figure, const struct run_table *table, size_t count)
{
    size_t bars = count < BARS_MAX ? count : BARS_MAX;
    size_t seen = 0;
    size_t at = 0;
    struct bar bar = {0};
    struct figure_panel *panel =
        figure_panel(figure, "query, in the order of the run",
                     axis_of(bars < count ? "mean " : "", RUN_JOULES).text);
    panel->weight = 2.2;
    panel->x.integer = true;
    panel->y.from_zero = true;
    if (bars == count)
        chars_copy(panel->title, "every query");
    else if (count % bars)
        chars_format(panel->title, "a bar is the mean of %zu or %zu queries", count / bars,
                     count / bars + 1);
    else
        chars_format(panel->title, "a bar is the mean of %zu queries", count / bars);
    struct figure_series *prefill = figure_series(panel, FIGURE_BOXES, FIGURE_ORANGE, "prefill");
    struct figure_series *decode = figure_series(panel, FIGURE_BOXES, FIGURE_BLUE, "decode");
    for (size_t i = 0; i < table->rows; i++) {
        double p = run_number(table, RUN_PREFILL_JOULES, i);
        double d = run_number(table, RUN_DECODE_JOULES, i);
        if (!run_completed(table, i) || !is_known(p) || !is_known(d))
            continue;
        bar = (struct bar){bar.prefill + p, bar.decode + d, bar.queries + 1};
        if (++seen == end_of_bar(at, bars, count)) {
            put_bar(prefill, decode, &bar, (double)(seen - bar.queries) + 0.5, (double)seen + 0.5);
            bar = (struct bar){0};
            at++;
        }
    }
}

static void put_spread_of(struct figure_panel *panel, const struct run_table *table,
                          enum run_number joules, enum run_number tokens, double at,
                          enum figure_color color)
{
    static const double PS[] = {0.05, 0.5, 0.95};
    double *values, marks[3];
    size_t count;
    char text[FORMAT_MAX];
    known_values(table, joules, tokens, &values, &count);
    if (count) {
        select_quantiles(values, count, PS, 3, marks);
        struct figure_series *series = figure_series(panel, FIGURE_ERRORS_Y, color, "");
        series_add4(series, at, marks[1], marks[0], marks[2]);
        figure_label(panel, at, marks[1], false, format_si(text, marks[1], "J"));
    }
    free(values);
}

static void put_tokens(struct figure *figure, const struct run_table *table)
{
    struct figure_panel *panel = figure_panel(figure, "", "energy ({J} per token)");
    chars_copy(panel->title, "median, 5 to 95 %");
    panel->y.from_zero = true;
    figure_name(&panel->x, "prompt");
    figure_name(&panel->x, "output");
    put_spread_of(panel, table, RUN_PREFILL_JOULES, RUN_INPUT_TOKENS, 0, FIGURE_ORANGE);
    put_spread_of(panel, table, RUN_DECODE_JOULES, RUN_OUTPUT_TOKENS, 1, FIGURE_BLUE);
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    const struct run_table *table = source->table;
    size_t count = count_rows(table);
    if (!count)
        return no_data_error(table, "the energies of prefill and decode are", why);
    draw_heading(figure, table, "Prefill and decode", count, "separate phases");
    figure_note_energy_of(figure, table);
    figure->horizontal = true;
    put_bars(figure, table, count);
    put_tokens(figure, table);
    return ERR_OK;
}

const struct plot_driver plot_phases = {
    .name = "phases",
    .summary = "prefill and decode: energy per query and per token",
    .of = PLOT_OF_RUN,
    .needs = {RUN_WANT(RUN_PREFILL_JOULES) | RUN_WANT(RUN_DECODE_JOULES) |
                  RUN_WANT(RUN_INPUT_TOKENS) | RUN_WANT(RUN_OUTPUT_TOKENS),
              RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_SOURCE)},
    .draw = draw,
};
