/* Power over time with the requests below it: samples*.csv and spans.jsonl of a run.  Of a run that was
 * continued the starts follow each other, without the time between them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"
#include "report/plot/plot.h"
#include "rundir/samples.h"
#include "rundir/spans.h"
#include "rundir/journal.h"
#include "stats/descriptive.h"

/* More requests than this are counted rather than drawn one by one. */
enum { REQUESTS_DRAWN = 300, LANES_MOST = 64, COLUMNS = 1200 };

/* Starts that are drawn, the first ones; and of how many each is named. */
enum { STARTS_DRAWN = 32, STARTS_NAMED = 6 };

/* A start on the page: its own seconds, and their offset on the page. */
struct lap {
    unsigned start;
    double from, to, shift;
    struct power power;
};

struct laps {
    struct lap items[STARTS_DRAWN];
    size_t count;
    double from, to; /* on the page */
};

/* ---- power ---- */

static void put_channel(struct figure_series *line, const struct power_channel *channel,
                        const struct lap *lap)
{
    const struct time_grid *grid = &lap->power.grid;
    for (size_t i = 0; i < grid->count; i++) {
        double t = grid->from + ((double)i + 0.5) * grid->step;
        if (t >= lap->from && t <= lap->to)
            series_add2(line, t + lap->shift, power_mean(channel, i));
    }
}

/* The same device and part has the same color in every start, and one name in the legend. */
struct lines {
    char names[FIGURE_INK * 4][FIGURE_TEXT_MAX];
    size_t count;
};

static size_t line_of(struct lines *lines, const char *name, bool *is_new)
{
    size_t i = 0;
    while (i < lines->count && strcmp(lines->names[i], name) != 0)
        i++;
    *is_new = i == lines->count && i < sizeof lines->names / sizeof *lines->names;
    if (*is_new)
        str_copy(lines->names[lines->count++], sizeof *lines->names, name);
    return i;
}

static void put_lap(struct figure *figure, struct figure_panel *panel, const struct lap *lap,
                    struct lines *lines)
{
    char name[FIGURE_TEXT_MAX];
    for (size_t i = 0; i < lap->power.count; i++) {
        const struct power_channel *channel = &lap->power.channels[i];
        bool is_new;
        if (!channel->shown)
            continue;
        str_format(name, sizeof name, "%.100s %.60s", channel->device, channel->scope);
        size_t line = line_of(lines, name, &is_new);
        put_channel(figure_series(figure, panel, FIGURE_LINE,
                                  (enum figure_color)(line % FIGURE_INK), is_new ? name : ""),
                    channel, lap);
    }
}

static void put_power(struct figure *figure, const struct laps *laps)
{
    struct lines lines = {.count = 0};
    struct figure_panel *panel = figure_panel(figure, "", "power ({W})");
    panel->weight = 1.5;
    panel->x.hidden = true;
    panel->x.low = laps->from;
    panel->x.high = laps->to;
    panel->y.from_zero = true;
    for (size_t i = 0; i < laps->count; i++)
        put_lap(figure, panel, &laps->items[i], &lines);
}

/* ---- requests ---- */

/* As many lanes as there are requests in flight. */
static size_t put_requests(struct figure *figure, struct figure_panel *panel, struct spans *spans)
{
    size_t lanes = spans_lay_lanes(spans, LANES_MOST);
    struct figure_series *prefill =
        figure_series(figure, panel, FIGURE_BOXES, FIGURE_ORANGE, "to the first token");
    struct figure_series *decode =
        figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "answering");
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        double low = (double)span->lane + 0.62, high = (double)span->lane + 1.38;
        double first = is_known(span->first_token) ? span->first_token : span->from;
        series_add4(prefill, span->from, first, low, high);
        series_add4(decode, first, span->to, low, high);
    }
    return lanes;
}

/* Requests in flight over time: the maximum in each column of the page. */
static enum err put_in_flight(struct figure *figure, struct figure_panel *panel,
                              const struct spans *spans, double from, double to)
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
    sort_ascending(starts, count);
    sort_ascending(ends, count);
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
        figure_series(figure, panel, FIGURE_BOXES, FIGURE_BLUE, "requests in flight");
    for (int c = 0; c < COLUMNS; c++)
        if (most[c] > 0)
            series_add4(boxes, from + (to - from) * c / COLUMNS,
                        from + (to - from) * (c + 1) / COLUMNS, 0, most[c]);
    free(starts);
    free(ends);
    return ERR_OK;
}

static enum err put_spans(struct figure *figure, struct spans *spans, double from, double to,
                          const char *label)
{
    bool one_by_one = spans->count <= REQUESTS_DRAWN;
    struct figure_panel *panel = figure_panel(figure, label, "requests");
    panel->x.low = from;
    panel->x.high = to;
    if (!one_by_one) {
        panel->y.from_zero = true;
        return put_in_flight(figure, panel, spans, from, to);
    }
    size_t lanes = put_requests(figure, panel, spans);
    panel->y.low = 0.4;
    panel->y.high = (double)lanes + 0.6;
    panel->y.whole = true;
    return ERR_OK;
}

/* ---- starts ---- */

static struct lap *lap_of(struct laps *laps, unsigned start)
{
    for (size_t i = 0; i < laps->count; i++)
        if (laps->items[i].start == start)
            return &laps->items[i];
    if (laps->count == STARTS_DRAWN)
        return NULL;
    struct lap *lap = &laps->items[laps->count++];
    *lap = (struct lap){.start = start, .from = INFINITY, .to = -INFINITY};
    return lap;
}

static int by_number(const void *a, const void *b)
{
    unsigned x = ((const struct lap *)a)->start, y = ((const struct lap *)b)->start;
    return (x > y) - (x < y);
}

/* The extent of every start that has a request, in their order. */
static void find_laps(const struct spans *spans, struct laps *laps)
{
    for (size_t i = 0; i < spans->count; i++) {
        struct lap *lap = lap_of(laps, spans->items[i].start);
        if (!lap)
            continue;
        lap->from = fmin(lap->from, spans->items[i].from);
        lap->to = fmax(lap->to, spans->items[i].to);
    }
    qsort(laps->items, laps->count, sizeof *laps->items, by_number);
}

/* One after the other, with air around each; the first keeps its own seconds. */
static void lay_out(struct laps *laps)
{
    double length = 0;
    for (size_t i = 0; i < laps->count; i++)
        length += laps->items[i].to - laps->items[i].from;
    double air = fmax(0.03 * length / sqrt((double)laps->count), 0.05);
    for (size_t i = 0; i < laps->count; i++) {
        struct lap *lap = &laps->items[i];
        lap->from -= air;
        lap->to += air;
        lap->shift = i ? laps->to - lap->from : 0;
        laps->to = lap->to + lap->shift;
    }
    laps->from = laps->items[0].from;
}

static void shift_spans(struct spans *spans, const struct laps *laps)
{
    size_t kept = 0;
    for (size_t i = 0; i < spans->count; i++)
        for (size_t k = 0; k < laps->count; k++)
            if (laps->items[k].start == spans->items[i].start) {
                struct span span = spans->items[i];
                span.from += laps->items[k].shift;
                span.first_token += laps->items[k].shift;
                span.to += laps->items[k].shift;
                spans->items[kept++] = span;
            }
    spans->count = kept;
}

/* Wall-clock time between the requests of successive starts; UNKNOWN where the journal lacks it. */
static double time_between(const char *directory, const struct laps *laps)
{
    struct journal_starts starts;
    double sum = 0;
    if (journal_starts_read(directory, &starts, NULL))
        return UNKNOWN;
    for (size_t i = 1; i < laps->count; i++) {
        const struct lap *before = &laps->items[i - 1], *after = &laps->items[i];
        bool known = after->start <= starts.count && starts.zero_ns[before->start - 1] > 0 &&
                     starts.zero_ns[after->start - 1] > 0;
        double apart = known ? 1e-9 * (double)(starts.zero_ns[after->start - 1] -
                                               starts.zero_ns[before->start - 1])
                             : UNKNOWN;
        sum += apart + after->from - before->to;
    }
    journal_starts_release(&starts);
    return sum;
}

/* Where one ends and the next begins, over the height of both panels. */
static void mark_starts(struct figure *figure, const struct laps *laps)
{
    char name[32];
    for (size_t p = 0; p < figure->panel_count; p++) {
        struct figure_panel *panel = &figure->panels[p];
        double top = 0;
        for (size_t s = 0; s < panel->series_count; s++)
            for (size_t r = 0; r < panel->series[s]->count; r++)
                top = fmax(
                    top,
                    panel->series[s]->rows[r][panel->series[s]->style == FIGURE_BOXES ? 3 : 1]);
        for (size_t i = 1; i < laps->count; i++) {
            double x = laps->items[i].from + laps->items[i].shift;
            draw_vertical(figure, panel, FIGURE_INK, x, top,
                          p == 0 && i == 1 ? "another start" : "");
            str_format(name, sizeof name, "start %u", laps->items[i].start);
            if (p == 0 && laps->count <= STARTS_NAMED)
                figure_label(figure, panel, x, top, false, name);
        }
    }
}

static void note_starts(struct figure *figure, const char *directory, const struct laps *laps)
{
    char length[FORMAT_MAX];
    double between = time_between(directory, laps);
    if (is_known(between))
        figure_note(figure, "%zu starts, %s between them left out", laps->count,
                    format_duration(length, fmax(between, 0)));
    else
        figure_note(figure, "%zu starts, the time between them left out", laps->count);
}

/* ---- both ---- */

/* A start without samples leaves the others theirs. */
static enum err read_power(const struct run_table *table, struct laps *laps, struct error *why)
{
    bool any = false;
    struct error first = {0};
    for (size_t i = 0; i < laps->count; i++) {
        struct lap *lap = &laps->items[i];
        enum err err = power_read(table->directory, lap->start, &table->summary, COLUMNS,
                                  &lap->power, i ? NULL : &first);
        if (err && err != ERR_NO_DATA && err != ERR_NOT_FOUND)
            return err_set(why, err, "%s", first.text[0] ? first.text : err_text(err));
        any = any || !err;
    }
    return any ? ERR_OK : err_set(why, ERR_NO_DATA, "%s", first.text);
}

static enum err draw_both(const struct run_table *table, const struct laps *laps,
                          struct spans *spans, struct figure *figure)
{
    bool several = laps->count > 1;
    draw_heading(figure, table, "Power over time", table->rows - table->failed, "");
    figure_note_energy_of(figure, table);
    if (several)
        note_starts(figure, table->directory, laps);
    figure->height = 560;
    put_power(figure, laps);
    shift_spans(spans, laps);
    enum err err = put_spans(figure, spans, laps->from, laps->to,
                             several ? "time without the gaps (s)" : "time since the start (s)");
    if (!err && several)
        mark_starts(figure, laps);
    return err;
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    const char *directory = source->table->directory;
    struct laps laps = {.count = 0};
    struct spans spans = {0};
    /* A run of the Python IPW has no samples: that is the first thing to say of it. */
    enum err err = samples_starts(directory) ? spans_load_requests(directory, &spans, why)
                                             : err_set(why, ERR_NO_DATA, "the run has no samples");
    if (!err) {
        find_laps(&spans, &laps);
        lay_out(&laps);
        err = read_power(source->table, &laps, why);
    }
    if (!err)
        err = draw_both(source->table, &laps, &spans, figure);
    for (size_t i = 0; i < laps.count; i++)
        power_release(&laps.items[i].power);
    spans_release(&spans);
    return err;
}

const struct plot_driver plot_timeline = {
    .name = "timeline",
    .summary = "power over time, and the requests below it",
    .of = PLOT_OF_RUN,
    .needs = {0, RUN_WANT(RUN_METHOD) | RUN_WANT(RUN_SOURCE)},
    .draw = draw,
};
