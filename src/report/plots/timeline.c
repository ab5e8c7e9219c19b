/* Power over time with the requests below it: samples.csv and spans.jsonl of a run's first start. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/plot.h"
#include "report/plots/drawing.h"
#include "report/plots/samples.h"

/* More requests than this are counted rather than drawn one by one. */
enum { REQUESTS_DRAWN = 300, LANES_MOST = 64, COLUMNS = 1200 };

static int by_start(const void *a, const void *b)
{
    double x = ((const struct request_span *)a)->from, y = ((const struct request_span *)b)->from;
    return (x > y) - (x < y);
}

/* ---- power ---- */

/* A channel's watts; where there are more than the page has columns, means by its running sum. */
static void put_channel(struct figure_series *line, const struct power_channel *channel,
                        double from, double to)
{
    double step = channel->count > COLUMNS ? (to - from) / COLUMNS : 0;
    const struct power_sample *last = NULL;
    for (size_t i = 0; i < channel->count; i++) {
        const struct power_sample *sample = &channel->samples[i];
        if (sample->t < from || sample->t > to)
            continue;
        if (step <= 0 && is_known(sample->watts)) {
            series_add2(line, sample->t, sample->watts);
        } else if (!last) {
            last = sample;
        } else if (sample->t - last->t >= step) {
            series_add2(line, sample->t, (sample->sum - last->sum) / (sample->t - last->t));
            last = sample;
        }
    }
}

static void put_power(struct figure *figure, const struct power_samples *samples, double from,
                      double to)
{
    char name[FIGURE_TEXT_MAX];
    struct figure_panel *panel = figure_panel(figure, "", "power (W)");
    panel->weight = 1.5;
    panel->x.hidden = true;
    panel->x.low = from;
    panel->x.high = to;
    panel->y.from_zero = true;
    for (size_t i = 0; i < samples->count; i++) {
        const struct power_channel *channel = &samples->channels[i];
        str_format(name, sizeof name, "%.100s %.60s", channel->device, channel->scope);
        put_channel(
            figure_series(figure, panel, FIGURE_LINE, (enum figure_colour)(i % FIGURE_INK), name),
            channel, from, to);
    }
}

/* ---- requests ---- */

/* Each in the first lane that is free: as many lanes as there are requests at once. */
static size_t put_requests(struct figure *figure, struct figure_panel *panel,
                           const struct request_spans *spans)
{
    double free_from[LANES_MOST];
    size_t lanes = 0;
    struct figure_series *prefill =
        figure_series(figure, panel, FIGURE_BOXES, FIGURE_ORANGE, "to the first token");
    struct figure_series *decode =
        figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "answering");
    for (size_t i = 0; i < spans->count; i++) {
        const struct request_span *span = &spans->items[i];
        size_t lane = 0;
        while (lane < lanes && free_from[lane] > span->from)
            lane++;
        if (lane == LANES_MOST)
            lane = LANES_MOST - 1;
        lanes = lane == lanes ? lanes + 1 : lanes;
        free_from[lane] = span->to;
        double low = (double)lane + 0.62, high = (double)lane + 1.38;
        double first = is_known(span->first_token) ? span->first_token : span->from;
        series_add4(prefill, span->from, first, low, high);
        series_add4(decode, first, span->to, low, high);
    }
    return lanes;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many are under way, as it changes; over the page's columns the most of each. */
static enum err put_alive(struct figure *figure, struct figure_panel *panel,
                          const struct request_spans *spans, double from, double to)
{
    size_t count = spans->count, sent = 0, ended = 0;
    double *starts = malloc(count * sizeof *starts), *ends = malloc(count * sizeof *ends);
    double most[COLUMNS] = {0};
    if (!starts || !ends) {
        free(starts);
        free(ends);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        starts[i] = spans->items[i].from;
        ends[i] = spans->items[i].to;
    }
    qsort(starts, count, sizeof *starts, by_value);
    qsort(ends, count, sizeof *ends, by_value);
    for (int c = 0; c < COLUMNS; c++) {
        double end = from + (to - from) * (c + 1) / COLUMNS;
        most[c] = (double)(sent - ended);
        for (; sent < count && starts[sent] < end; sent++) {
            while (ended < count && ends[ended] <= starts[sent])
                ended++;
            most[c] = fmax(most[c], (double)(sent + 1 - ended));
        }
        while (ended < count && ends[ended] < end)
            ended++;
    }
    struct figure_series *boxes =
        figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "requests under way");
    for (int c = 0; c < COLUMNS; c++)
        if (most[c] > 0)
            series_add4(boxes, from + (to - from) * c / COLUMNS,
                        from + (to - from) * (c + 1) / COLUMNS, 0, most[c]);
    free(starts);
    free(ends);
    return ERR_OK;
}

static enum err put_spans(struct figure *figure, struct request_spans *spans, double from,
                          double to)
{
    bool one_by_one = spans->count <= REQUESTS_DRAWN;
    struct figure_panel *panel = figure_panel(figure, "time since the start (s)", "requests");
    panel->x.low = from;
    panel->x.high = to;
    if (!one_by_one) {
        panel->y.from_zero = true;
        return put_alive(figure, panel, spans, from, to);
    }
    qsort(spans->items, spans->count, sizeof *spans->items, by_start);
    size_t lanes = put_requests(figure, panel, spans);
    panel->y.low = 0.4;
    panel->y.high = (double)lanes + 0.6;
    panel->y.whole = true;
    return ERR_OK;
}

/* ---- both ---- */

static enum err draw_both(const struct run_table *table, const struct power_samples *samples,
                          struct request_spans *spans, struct figure *figure)
{
    double from = INFINITY, to = -INFINITY, starts = run_fact(table, "ipw.starts");
    for (size_t i = 0; i < spans->count; i++) {
        from = fmin(from, spans->items[i].from);
        to = fmax(to, spans->items[i].to);
    }
    double air = fmax(0.03 * (to - from), 0.05);
    draw_heading(figure, table, "Power over time");
    size_t length = strlen(figure->note);
    if (starts > 1)
        str_format(figure->note + length, sizeof figure->note - length,
                   "; the first of %g starts is shown", starts);
    figure->height = 560;
    put_power(figure, samples, from - air, to + air);
    return put_spans(figure, spans, from - air, to + air);
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    struct power_samples samples = {0};
    struct request_spans spans = {0};
    enum err err = power_samples_read(source->table->directory, &samples, why);
    if (!err)
        err = request_spans_read(source->table->directory, &spans, why);
    if (!err)
        err = draw_both(source->table, &samples, &spans, figure);
    power_samples_release(&samples);
    request_spans_release(&spans);
    return err;
}

const struct plot_driver plot_timeline = {
    .name = "timeline",
    .summary = "power over time, and the requests below it",
    .of = PLOT_OF_RUN,
    .draw = draw,
};
