/* Figures of an estimate: energy and time over batch sizes, context and prompt lengths, as `ipw estimate --plot`
 * draws them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/plot/plot.h"
#include "report/text/estimate_words.h"

/* ---- one estimate ---- */

enum { BARS_MAX = 12, TIMELINE_HEIGHT = 220 };

/* Parts of the energy of a consumer, from left to right. */
static const struct {
    const char *key, *name;
    enum figure_color color;
} PARTS[] = {
    {"compute_j", "compute", FIGURE_ORANGE},
    {"memory_j", "memory", FIGURE_BLUE},
    {"link_j", "link", FIGURE_PURPLE},
    {"static_j", "static", FIGURE_SKY_BLUE},
};
enum { PART_COUNT = COUNT_OF(PARTS) };

static void put_bar(struct figure_series *const series[PART_COUNT], double at,
                    const struct result_item *row, double unit)
{
    double from = 0;
    for (size_t i = 0; i < PART_COUNT; i++) {
        double to = from + result_number_at(row, PARTS[i].key) / unit;
        if (to > from)
            series_add4(series[i], from, to, at - 0.35, at + 0.35);
        from = to;
    }
}

static void name_bar(struct figure_panel *panel, const struct result *result,
                     const struct result_item *row)
{
    char name[WORDS_MAX];
    bool phases = str_equal(result_text_at(result->items, "setting.phase"), "request");
    chars_format(name, "%s%s%s", result_text_at(row, "name"), phases ? ", " : "",
                 phases ? result_text_at(row, "phase") : "");
    figure_name(&panel->y, name);
}

static void put_heading(struct figure *figure, const struct result *result)
{
    char each[WORDS_MAX];
    chars_format(figure->title, "%s on %s", result_text_at(result->items, "model"),
                 result_text_at(result->items, "hardware_name"));
    chars_format(figure->note, "%.100s; %.100s, estimated, not measured",
                 result_text_at(result->items, "view.setting"),
                 words_energy(each, result, "each", result_text_at(result->items, "each.unit")));
}

/* Activation memory, by subgraph. */
static void put_timeline(const struct result *result, struct figure *figure)
{
    const struct result_item *timeline = result_find(result, "memory_bytes.timeline");
    double mib = 1024.0 * 1024;
    double step = 0;
    double last = UNKNOWN;
    double unit =
        result_number_at(result->items, "memory_bytes.activations_peak") < mib ? 1024 : mib;
    if (result_length(timeline) < 2)
        return;
    struct figure_panel *panel =
        figure_panel(figure, "subgraph, in the order in which they run",
                     unit < mib ? "activations (KiB)" : "activations (MiB)");
    struct figure_series *series = figure_series(panel, FIGURE_STEPS, FIGURE_GREEN, "");
    chars_copy(panel->title, "memory in use besides weights and KV cache");
    panel->y.from_zero = panel->x.integer = true;
    RESULT_EACH (row, timeline) {
        last = result_number_at(row, "bytes") / unit;
        series_add2(series, step++, last);
    }
    series_add2(series, step, last);
    panel->weight = TIMELINE_HEIGHT;
}

enum err estimate_figure(const struct result *result, struct figure *figure, struct error *why)
{
    const struct result_item *rows = result_find(result, "view.consumers");
    const struct result_item *first = result_first(rows);
    if (!is_known(result_number_at(result->items, "energy_j.total"))) /* part would look complete */
        return err_set(why, ERR_NO_DATA, "energy on %.60s is unknown: nothing to plot",
                       result_text_at(result->items, "hardware"));
    bool is_small = first && result_number_at(first, "energy_j") < 1;
    bool has_link = result_number_at(result->items, "energy_j.link") > 0;
    struct figure_panel *panel =
        figure_panel(figure, is_small ? "energy (mJ, estimated)" : "energy (J, estimated)", "");
    struct figure_series *series[PART_COUNT];
    for (size_t i = 0; i < PART_COUNT; i++)
        series[i] =
            figure_series(panel, FIGURE_BOXES, PARTS[i].color,
                          str_equal(PARTS[i].name, "link") && !has_link ? "" : PARTS[i].name);
    put_heading(figure, result);
    panel->x.from_zero = true;
    panel->y.down = true;
    size_t count = 0;
    RESULT_EACH (row, rows) {
        if (count == BARS_MAX)
            break;
        name_bar(panel, result, row);
        put_bar(series, (double)count++, row, is_small ? 1e-3 : 1);
    }
    panel->weight = fmax(400, 170 + 34 * (double)count);
    put_timeline(result, figure);
    figure->height = 0;
    for (size_t i = 0; i < figure->panel_count; i++)
        figure->height += figure->panels[i].weight;
    return ERR_OK;
}

/* ---- many estimates against a length ---- */

enum { LINES_MAX = 14 };

/* Above this ratio the axis is logarithmic. */
#define WIDE_X 8
#define WIDE_Y 10

/* Not a point that cannot run, or is not known to fit. */
static bool is_drawn(const struct result_item *point)
{
    return result_flag_at(point, "view.is_known_to_fit");
}

/* ---- lines ---- */

/* What decides where a point is drawn.  The strings are those of the result. */
struct spot {
    const char *device, *precision; /* id, and "stored" if it is that of the file */
    double device_index, batch, prompt, context;
    double joules, low_j, high_j; /* per unit */
    const char *basis;
};

static void read_spot(const struct result_item *point, struct spot *out)
{
    *out = (struct spot){
        .device = result_text_at(point, "hardware"),
        .precision = result_text_at(point, "view.precision"),
        .device_index = result_number_at(point, "view.device"),
        .batch = result_number_at(point, "batch"),
        .prompt = known_or(result_number_at(point, "setting.prompt_tokens"), 0),
        .context = known_or(result_number_at(point, "setting.context"), 0),
        .joules = result_number_at(point, "each.energy_j"),
        .low_j = result_number_at(point, "each.low"),
        .high_j = result_number_at(point, "each.high"),
        .basis = result_text_at(point, "basis"),
    };
}

/* Number of keys after device and precision: batch, prompt, context. */
enum { UP_TO_BATCH = 1, UP_TO_PROMPT, UP_TO_CONTEXT };

static int compare_spots(const struct spot *a, const struct spot *b, size_t count)
{
    const double keys[UP_TO_CONTEXT][2] = {
        {a->batch, b->batch},
        {a->prompt, b->prompt},
        {a->context, b->context},
    };
    int order = compare_numbers(a->device_index, b->device_index);
    if (!order)
        order = strcmp(a->precision, b->precision);
    for (size_t i = 0; !order && i < count; i++)
        order = compare_numbers(keys[i][0], keys[i][1]);
    return order;
}

static int by_setting(const void *left, const void *right)
{
    return compare_spots(left, right, UP_TO_CONTEXT);
}

/* Spots of one line are contiguous, starting at `first`. */
struct line {
    const struct spot *first;
    size_t count;
    double joules; /* per unit, at its longest */
};

struct lines {
    const struct result *result;
    struct spot *spots;
    struct line *items;
    size_t spot_count, count;
    bool of_context;                        /* against the context; else against the prompt */
    bool too_large;                         /* some do not fit, and are omitted */
    double unit;                            /* of the axis, in joules */
    bool devices, formats, batches, others; /* differ, and are therefore named */
};

static double length_of(const struct lines *lines, const struct spot *spot)
{
    return lines->of_context ? spot->context : spot->prompt;
}

static void compare_all(struct lines *lines)
{
    const struct spot *first = &lines->spots[0];
    for (size_t i = 1; i < lines->spot_count; i++) {
        const struct spot *spot = &lines->spots[i];
        lines->devices |= spot->device_index != first->device_index;
        lines->formats |= !str_equal(spot->precision, first->precision);
        lines->batches |= spot->batch != first->batch;
        lines->others |= lines->of_context && spot->prompt != first->prompt;
    }
}

static int by_joules(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    return compare_numbers(b->joules, a->joules);
}

static void make_lines(struct lines *out)
{
    qsort(out->spots, out->spot_count, sizeof *out->spots, by_setting);
    out->unit = 1;
    for (size_t i = 0; i < out->spot_count; i++) {
        const struct spot *at = &out->spots[i];
        if (i == 0 || compare_spots(&at[-1], at, out->of_context ? UP_TO_PROMPT : UP_TO_BATCH))
            out->items[out->count++] = (struct line){.first = at};
        struct line *line = &out->items[out->count - 1];
        line->count++;
        line->joules = at->joules;
        if (at->joules < 1)
            out->unit = 1e-3;
    }
    compare_all(out);
    /* The legend is then in the order of the lines. */
    qsort(out->items, out->count, sizeof *out->items, by_joules);
}

static void find_lines(const struct result *result, struct lines *out)
{
    const struct result_item *points = result_find(result, "points");
    size_t count = result_length(points);
    out->result = result;
    out->spots = xcalloc(count, sizeof *out->spots);
    out->items = xcalloc(count, sizeof *out->items);
    RESULT_EACH (point, points)
        if (is_drawn(point))
            read_spot(point, &out->spots[out->spot_count++]);
        else
            out->too_large |= !result_text_at(point, "missing")[0];
    if (out->spot_count)
        make_lines(out);
}

/* ---- drawing ---- */

/* Describes a point by the device, precision and batch that differ between lines, or by those that do not. */
static void add_setting(const struct lines *lines, const struct spot *spot, bool differs,
                        char *name)
{
    name[0] = '\0';
    if (lines->devices == differs)
        words_add(name, "%.60s", spot->device);
    if (lines->formats == differs)
        words_add(name, "%s", spot->precision);
    if (lines->batches == differs)
        words_add(name, "batch %.0f", spot->batch);
}

static const char *name_line(const struct lines *lines, const struct line *line, char *name)
{
    add_setting(lines, line->first, true, name);
    if (lines->others)
        words_add(name, "prompt %.0f", line->first->prompt);
    return name;
}

/* Only a single line has its ± as a band. */
static void put_band(const struct lines *lines, struct figure_panel *panel)
{
    const struct line *line = &lines->items[0];
    struct figure_series *band =
        figure_series(panel, FIGURE_BAND, FIGURE_BLUE, "one standard deviation");
    for (size_t i = 0; i < line->count; i++) {
        const struct spot *spot = &line->first[i];
        series_add3(band, length_of(lines, spot), spot->low_j / lines->unit,
                    spot->high_j / lines->unit);
    }
}

static void put_line(const struct lines *lines, size_t index, size_t number,
                     struct figure_panel *panel)
{
    const struct line *line = &lines->items[index];
    char name[WORDS_MAX];
    struct figure_series *series =
        figure_series(panel, FIGURE_MARKED, (enum figure_color)(number % FIGURE_INK),
                      name_line(lines, line, name));
    series->round = (unsigned)(number / FIGURE_INK);
    for (size_t i = 0; i < line->count; i++)
        series_add2(series, length_of(lines, &line->first[i]), line->first[i].joules / lines->unit);
}

static void set_axes(const struct lines *lines, struct figure_panel *panel)
{
    double low = INFINITY, high = 0, min = INFINITY, max = 0;
    for (size_t i = 0; i < lines->spot_count; i++) {
        double x = length_of(lines, &lines->spots[i]);
        double y = lines->spots[i].joules;
        low = fmin(low, x);
        high = fmax(high, x);
        min = fmin(min, y);
        max = fmax(max, y);
    }
    if (high >= WIDE_X * low)
        panel->x.log_base = 2;
    else
        panel->x.integer = true;
    if (max >= WIDE_Y * min)
        panel->y.log_base = 10;
    else
        panel->y.from_zero = true;
}

/* Setting common to all lines: "h200, fp16, batch 8; ". */
static void put_common(const struct lines *lines, char *to, size_t size)
{
    char name[WORDS_MAX];
    add_setting(lines, &lines->spots[0], false, name);
    if (result_flag_at(lines->result->items, "view.has_phases"))
        words_add(name, "%s", result_text_at(lines->result->items, "view.phase"));
    if (lines->count > LINES_MAX)
        words_add(name, "%d of %zu lines", LINES_MAX, lines->count);
    str_format(to, size, "%s%s; estimated, not measured: %s", name,
               lines->too_large ? "; without configurations that do not fit" : "",
               lines->spots[0].basis);
}

static void put_figure(const struct lines *lines, struct figure *figure)
{
    const char *length = "input length";
    if (lines->of_context)
        length = "context";
    else if (result_flag_at(lines->result->items, "view.has_phases"))
        length = "prompt";
    char each[WORDS_MAX], x_label[WORDS_MAX], y_label[WORDS_MAX + 48];
    chars_format(y_label, "energy %s (%s, estimated)",
                 words_each(each, result_text_at(lines->result->items, "unit")),
                 lines->unit < 1 ? "mJ" : "J");
    chars_format(x_label, "%s (tokens)", length);
    struct figure_panel *panel = figure_panel(figure, x_label, y_label);
    size_t shown = lines->count < LINES_MAX ? lines->count : LINES_MAX;
    chars_format(figure->title, "%s: energy %s against the %s",
                 result_text_at(lines->result->items, "model"), each, length);
    put_common(lines, figure->note, sizeof figure->note);
    set_axes(lines, panel);
    if (lines->count == 1)
        put_band(lines, panel);
    for (size_t i = 0; i < shown; i++) /* a subset, evenly from the most to the least expensive */
        put_line(lines, shown > 1 ? i * (lines->count - 1) / (shown - 1) : 0, i, panel);
    figure->height = 600;
}

/* A line per device, precision and batch; of_context: against the context, else against the prompt. */
static enum err length_figure(const struct result *result, bool of_context, struct figure *figure,
                              struct error *why)
{
    struct lines lines = {.of_context = of_context};
    find_lines(result, &lines);
    enum err err = ERR_OK;
    if (!lines.count)
        err = err_set(why, ERR_NO_DATA,
                      "nothing fits on a device with known energy: nothing to plot");
    else
        put_figure(&lines, figure);
    free(lines.spots);
    free(lines.items);
    return err;
}

/* ---- many estimates: energy against latency ---- */

enum { DEVICES_NAMED = 14 };

/* Devices in the order of their best point; further ones share a faint series. */
struct devices {
    double indices[DEVICES_NAMED]; /* in the grid */
    const char *ids[DEVICES_NAMED];
    size_t count;
};

/* Its place in that order; `count`: none. */
static size_t find_device(const struct devices *devices, const struct result_item *point)
{
    double index = result_number_at(point, "view.device");
    size_t k = 0;
    while (k < devices->count && devices->indices[k] != index)
        k++;
    return k;
}

static void rank_devices(const struct result_item *points, struct devices *out)
{
    RESULT_EACH (point, points)
        if (out->count < DEVICES_NAMED && is_drawn(point) &&
            find_device(out, point) == out->count) {
            out->indices[out->count] = result_number_at(point, "view.device");
            out->ids[out->count++] = result_text_at(point, "hardware");
        }
}

/* In milliseconds and millijoules. */
struct position {
    double x, y;
};

static struct position position_of(const struct result_item *point)
{
    return (struct position){1e3 * result_number_at(point, "latency_s"),
                             1e3 * result_number_at(point, "each.energy_j")};
}

static void put_devices(const struct result *result, struct figure_panel *panel)
{
    const struct result_item *points = result_find(result, "points");
    struct devices devices = {0};
    rank_devices(points, &devices);
    size_t named = devices.count;
    struct figure_series *series[DEVICES_NAMED + 1] = {NULL};
    for (size_t k = 0; k < named; k++) {
        series[k] = figure_series(panel, FIGURE_POINTS, (enum figure_color)(k % FIGURE_INK),
                                  devices.ids[k]);
        series[k]->round = (unsigned)(k / FIGURE_INK);
    }
    series[named] =
        figure_series(panel, FIGURE_POINTS, FIGURE_INK, named == DEVICES_NAMED ? "others" : "");
    RESULT_EACH (point, points) {
        size_t k = find_device(&devices, point);
        struct position at = position_of(point);
        if (is_drawn(point))
            series_add3(series[k], at.x, at.y, k < named ? 1 : 0);
    }
}

/* Points are sorted by joules, so latency decreases along the frontier. */
static void put_frontier(const struct result *result, struct figure_panel *panel)
{
    struct figure_series *line = figure_series(panel, FIGURE_LINE, FIGURE_INK, "Pareto frontier");
    double before = UNKNOWN;
    RESULT_EACH (point, result_find(result, "points")) {
        if (!result_flag_at(point, "frontier"))
            continue;
        struct position at = position_of(point);
        if (is_known(before)) /* step shape: nothing dominates between two of them */
            series_add2(line, before, at.y);
        series_add2(line, at.x, at.y);
        before = at.x;
    }
}

static enum err latency_figure(const struct result *result, struct figure *figure,
                               struct error *why)
{
    char each[WORDS_MAX], label[WORDS_MAX + 48];
    chars_format(label, "energy %s (mJ, estimated)",
                 words_each(each, result_text_at(result->items, "unit")));
    struct figure_panel *panel = figure_panel(figure, "latency (ms, estimated)", label);
    panel->x.log_base = panel->y.log_base = 10;
    chars_format(figure->title, "%s: energy and latency of %.0f settings",
                 result_text_at(result->items, "model"),
                 result_number_at(result->items, "view.able"));
    chars_format(figure->note,
                 "every device, precision and batch that fits; estimated, not measured: %s",
                 result_text_at(result->items, "view.kernels"));
    put_devices(result, panel);
    put_frontier(result, panel);
    figure->height = 600;
    if (!figure_finish(figure))
        return err_set(why, ERR_NO_DATA,
                       "nothing fits on a device with known energy: nothing to plot");
    return ERR_OK;
}

/* If prompts or contexts differ, plots against their length. */
enum err points_figure(const struct result *result, struct figure *figure, struct error *why)
{
    bool contexts = result_flag_at(result->items, "view.differ.contexts");
    if (contexts || result_flag_at(result->items, "view.differ.prompts"))
        return length_figure(result, contexts, figure, why);
    return latency_figure(result, figure, why);
}
