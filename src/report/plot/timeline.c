/* Power over time with the requests below it: samples*.csv and spans.jsonl of a run.  The starts of a resumed run are
 * drawn in sequence, without the time between them. */
#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/text/format.h"
#include "report/plot/plot.h"
#include "rundir/samples.h"
#include "rundir/spans.h"
#include "rundir/journal.h"
#include "stats/descriptive.h"

/* More requests are counted rather than drawn individually. */
enum { REQUESTS_DRAWN = 300, LANES_MAX = 64, COLUMNS = 1200 };

/* Maximum number of starts drawn, and up to which each is named. */
enum { STARTS_DRAWN = 32, STARTS_NAMED = 6 };

/* A start on the page: its own seconds, and their offset on the page. */
struct start_range {
    unsigned start;
    double from, to, shift;
    struct power power;
};

struct start_ranges {
    struct start_range items[STARTS_DRAWN];
    size_t count;
    double from, to; /* on the page */
};

/* ---- power ---- */

static void put_channel(struct figure_series *line, const struct power_channel *channel,
                        const struct start_range *range)
{
    const struct time_grid *grid = &range->power.grid;
    for (size_t i = 0; i < grid->count; i++) {
        double t = grid->from + ((double)i + 0.5) * grid->step;
        if (t >= range->from && t <= range->to)
            series_add2(line, t + range->shift, power_mean(channel, i));
    }
}

/* A channel has the same color in every start, and one legend entry. */
struct lines {
    char names[FIGURE_INK * 4][FIGURE_TEXT_MAX];
    size_t count;
};

static size_t line_of(struct lines *lines, const char *name, bool *is_new)
{
    size_t i = 0;
    while (i < lines->count && !str_equal(lines->names[i], name))
        i++;
    *is_new = i == lines->count && i < COUNT_OF(lines->names);
    if (*is_new)
        str_copy(lines->names[lines->count++], sizeof *lines->names, name);
    return i;
}

static void put_range(struct figure_panel *panel, const struct start_range *range,
                      struct lines *lines)
{
    char name[FIGURE_TEXT_MAX];
    for (size_t i = 0; i < range->power.count; i++) {
        const struct power_channel *channel = &range->power.channels[i];
        bool is_new;
        if (!channel->shown)
            continue;
        chars_format(name, "%.100s %.60s", channel->device, channel->scope);
        size_t line = line_of(lines, name, &is_new);
        put_channel(figure_series(panel, FIGURE_LINE, (enum figure_color)(line % FIGURE_INK),
                                  is_new ? name : ""),
                    channel, range);
    }
}

static void put_power(struct figure *figure, const struct start_ranges *ranges)
{
    struct lines lines = {.count = 0};
    struct figure_panel *panel = figure_panel(figure, "", "power ({W})");
    panel->weight = 1.5;
    panel->x.hidden = true;
    panel->x.low = ranges->from;
    panel->x.high = ranges->to;
    panel->y.from_zero = true;
    for (size_t i = 0; i < ranges->count; i++)
        put_range(panel, &ranges->items[i], &lines);
}

/* ---- requests ---- */

/* As many lanes as requests in flight. */
static size_t put_requests(struct figure_panel *panel, struct spans *spans)
{
    size_t lanes = spans_assign_lanes(spans, LANES_MAX);
    struct figure_series *prefill =
        figure_series(panel, FIGURE_BOXES, FIGURE_ORANGE, "to the first token");
    struct figure_series *decode = figure_series(panel, FIGURE_BOXES, FIGURE_BLUE, "answering");
    for (size_t i = 0; i < spans->count; i++) {
        const struct span *span = &spans->items[i];
        double low = (double)span->lane + 0.62;
        double high = (double)span->lane + 1.38;
        double first = known_or(span->first_token, span->from);
        series_add4(prefill, span->from, first, low, high);
        series_add4(decode, first, span->to, low, high);
    }
    return lanes;
}

/* Requests in flight over time: the maximum in each column of the page. */
static void put_in_flight(struct figure_panel *panel, const struct spans *spans, double from,
                          double to)
{
    size_t count = spans->count;
    size_t sent = 0;
    size_t ended = 0;
    double *starts = xmalloc(count * sizeof *starts);
    double *ends = xmalloc(count * sizeof *ends);
    double max[COLUMNS] = {0};
    for (size_t i = 0; i < count; i++) {
        starts[i] = spans->items[i].from;
        ends[i] = spans->items[i].to;
    }
    sort_ascending(starts, count);
    sort_ascending(ends, count);
    for (int c = 0; c < COLUMNS; c++) {
        double end = from + (to - from) * (c + 1) / COLUMNS;
        max[c] = (double)(sent - ended);
        for (; sent < count && starts[sent] < end; sent++) {
            while (ended < count && ends[ended] <= starts[sent])
                ended++;
            max[c] = fmax(max[c], (double)(sent + 1 - ended));
        }
        while (ended < count && ends[ended] < end)
            ended++;
    }
    struct figure_series *boxes =
        figure_series(panel, FIGURE_BOXES, FIGURE_BLUE, "requests in flight");
    for (int c = 0; c < COLUMNS; c++)
        if (max[c] > 0)
            series_add4(boxes, from + (to - from) * c / COLUMNS,
                        from + (to - from) * (c + 1) / COLUMNS, 0, max[c]);
    free(starts);
    free(ends);
}

static void put_spans(struct figure *figure, struct spans *spans, double from, double to,
                      const char *label)
{
    bool one_by_one = spans->count <= REQUESTS_DRAWN;
    struct figure_panel *panel = figure_panel(figure, label, "requests");
    panel->x.low = from;
    panel->x.high = to;
    if (!one_by_one) {
        panel->y.from_zero = true;
        put_in_flight(panel, spans, from, to);
        return;
    }
    size_t lanes = put_requests(panel, spans);
    panel->y.low = 0.4;
    panel->y.high = (double)lanes + 0.6;
    panel->y.integer = true;
}

/* ---- starts ---- */

static struct start_range *range_of(struct start_ranges *ranges, unsigned start)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (ranges->items[i].start == start)
            return &ranges->items[i];
    if (ranges->count == STARTS_DRAWN)
        return NULL;
    struct start_range *range = &ranges->items[ranges->count++];
    *range = (struct start_range){.start = start, .from = INFINITY, .to = -INFINITY};
    return range;
}

static int by_number(const void *a, const void *b)
{
    return compare_numbers(((const struct start_range *)a)->start,
                           ((const struct start_range *)b)->start);
}

/* The extent of every start with a request, in order. */
static void find_ranges(const struct spans *spans, struct start_ranges *ranges)
{
    for (size_t i = 0; i < spans->count; i++) {
        struct start_range *range = range_of(ranges, spans->items[i].start);
        if (!range)
            continue;
        range->from = fmin(range->from, spans->items[i].from);
        range->to = fmax(range->to, spans->items[i].to);
    }
    qsort(ranges->items, ranges->count, sizeof *ranges->items, by_number);
}

/* In sequence, with gaps; the first keeps its own seconds. */
static void assign_offsets(struct start_ranges *ranges)
{
    double length = 0;
    for (size_t i = 0; i < ranges->count; i++)
        length += ranges->items[i].to - ranges->items[i].from;
    double air = fmax(0.03 * length / sqrt((double)ranges->count), 0.05);
    for (size_t i = 0; i < ranges->count; i++) {
        struct start_range *range = &ranges->items[i];
        range->from -= air;
        range->to += air;
        range->shift = i ? ranges->to - range->from : 0;
        ranges->to = range->to + range->shift;
    }
    ranges->from = ranges->items[0].from;
}

static void shift_spans(struct spans *spans, const struct start_ranges *ranges)
{
    size_t kept = 0;
    for (size_t i = 0; i < spans->count; i++)
        for (size_t k = 0; k < ranges->count; k++)
            if (ranges->items[k].start == spans->items[i].start) {
                struct span span = spans->items[i];
                span.from += ranges->items[k].shift;
                span.first_token += ranges->items[k].shift;
                span.to += ranges->items[k].shift;
                spans->items[kept++] = span;
            }
    spans->count = kept;
}

/* Wall-clock time between the requests of successive starts; UNKNOWN if the journal lacks it. */
static double time_between(const char *directory, const struct start_ranges *ranges)
{
    struct journal_starts starts;
    double sum = 0;
    if (journal_starts_read(directory, &starts, NULL))
        return UNKNOWN;
    for (size_t i = 1; i < ranges->count; i++) {
        const struct start_range *before = &ranges->items[i - 1];
        const struct start_range *after = &ranges->items[i];
        bool known = after->start <= starts.count && starts.zero_ns[before->start - 1] > 0 &&
                     starts.zero_ns[after->start - 1] > 0;
        double gap = known ? 1e-9 * (double)(starts.zero_ns[after->start - 1] -
                                             starts.zero_ns[before->start - 1])
                           : UNKNOWN;
        sum += gap + after->from - before->to;
    }
    journal_starts_release(&starts);
    return sum;
}

/* Boundaries between starts, over the height of both panels. */
static void mark_starts(struct figure *figure, const struct start_ranges *ranges)
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
        for (size_t i = 1; i < ranges->count; i++) {
            double x = ranges->items[i].from + ranges->items[i].shift;
            draw_vertical(panel, FIGURE_INK, x, top, p == 0 && i == 1 ? "another start" : "");
            chars_format(name, "start %u", ranges->items[i].start);
            if (p == 0 && ranges->count <= STARTS_NAMED)
                figure_label(panel, x, top, false, name);
        }
    }
}

static void note_starts(struct figure *figure, const char *directory,
                        const struct start_ranges *ranges)
{
    char length[FORMAT_MAX];
    double between = time_between(directory, ranges);
    if (is_known(between))
        figure_note(figure, "%zu starts, %s between them omitted", ranges->count,
                    format_duration(length, fmax(between, 0)));
    else
        figure_note(figure, "%zu starts, the time between them omitted", ranges->count);
}

/* ---- the plot ---- */

/* A start without samples is skipped. */
static enum err read_power(const struct run_table *table, struct start_ranges *ranges,
                           struct error *why)
{
    bool any = false;
    struct error first = {0};
    for (size_t i = 0; i < ranges->count; i++) {
        struct start_range *range = &ranges->items[i];
        enum err err = power_read(table->directory, range->start, &table->summary, COLUMNS,
                                  &range->power, i ? NULL : &first);
        if (err && err != ERR_NO_DATA && err != ERR_NOT_FOUND)
            return err_set(why, err, "%s", first.text[0] ? first.text : err_text(err));
        any = any || !err;
    }
    return any ? ERR_OK : err_set(why, ERR_NO_DATA, "%s", first.text);
}

static void draw_both(const struct run_table *table, const struct start_ranges *ranges,
                      struct spans *spans, struct figure *figure)
{
    bool several = ranges->count > 1;
    draw_heading(figure, table, "Power over time", run_completed_count(table), "");
    figure_note_energy_of(figure, table);
    if (several)
        note_starts(figure, table->directory, ranges);
    figure->height = 560;
    put_power(figure, ranges);
    shift_spans(spans, ranges);
    put_spans(figure, spans, ranges->from, ranges->to,
              several ? "time without the gaps (s)" : "time since the start (s)");
    if (several)
        mark_starts(figure, ranges);
}

static enum err draw(const struct plot_source *source, struct figure *figure, struct error *why)
{
    const char *directory = source->table->directory;
    struct start_ranges ranges = {.count = 0};
    struct spans spans = {0};
    /* Reported first for a run of the Python IPW, which has no samples. */
    enum err err = samples_starts(directory) ? spans_load_requests(directory, &spans, why)
                                             : err_set(why, ERR_NO_DATA, "the run has no samples");
    if (!err) {
        find_ranges(&spans, &ranges);
        assign_offsets(&ranges);
        err = read_power(source->table, &ranges, why);
    }
    if (!err)
        draw_both(source->table, &ranges, &spans, figure);
    for (size_t i = 0; i < ranges.count; i++)
        power_release(&ranges.items[i].power);
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
