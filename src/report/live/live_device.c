#include "report/live/live_device.h"

#include <string.h>

#include "core/text.h"
#include "report/text/format.h"
#include "report/live/live.h"
#include "report/live/reading.h"
#include "report/live/spark.h"
#include "report/text/table.h"
#include "sensors/sensor.h"

enum { SPARK_MAX = 480, METER_WIDTH = 12 };

/* The `count` values that end at `shown`, oldest first; what is not there any more, or not yet, is
 * unknown. */
static void history(const struct live *live, size_t ring, unsigned long shown, float *to,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned long back = count - i; /* 1 is the newest */
        bool there = back <= shown && live->pushed - (shown - back) <= LIVE_HISTORY;
        to[i] = there ? live->watts[ring][(shown - back) % LIVE_HISTORY] : (float)UNKNOWN;
    }
}

/* ---- pieces ---- */

static const char *method_word(const struct energy *energy)
{
    const char *name = method_name(energy->method);
    return name ? name : "-";
}

static enum style method_style(const struct energy *energy)
{
    return energy->method == METHOD_ESTIMATED ? STYLE_WARN : STYLE_DIM;
}

static void watts_text(char *to, double watts, const struct energy *energy)
{
    reading_figure(to, watts, "W", energy->method);
}

static void joules_text(char *to, const struct energy *energy)
{
    char figure[FORMAT_MAX];
    format_with_error(figure, energy->joules, energy->plus_minus, "J");
    str_format(to, FORMAT_MAX, "%s%s", energy->method == METHOD_ESTIMATED ? "~" : "", figure);
}

/* "label figure" with room around it, or nothing where it does not fit. */
static void add_labelled(struct screen *screen, const char *label, enum style style,
                         const char *figure)
{
    unsigned before = screen->used;
    unsigned need = (before > LIVE_INDENT ? 3 : 0) + (unsigned)(strlen(label) + strlen(figure)) + 1;
    if (screen_room(screen) < need)
        return;
    if (before > LIVE_INDENT)
        screen_add(screen, STYLE_PLAIN, "   ");
    if (label[0])
        screen_add(screen, STYLE_DIM, "%s ", label);
    screen_add(screen, style, "%s", figure);
}

/* Device ids and their figures stand under each other. */
static unsigned id_width(const struct reading *reading)
{
    size_t width = strlen("total");
    for (size_t i = 0; i < reading->now.count; i++) {
        size_t length = strlen(reading->now.devices[i].id);
        width = length > width ? length : width;
    }
    return (unsigned)width;
}

/* ---- a device ---- */

static bool has_vitals(const struct ledger_device *device)
{
    static const enum quantity SHOWN[] = {QTY_UTILISATION, QTY_MEMORY_USED, QTY_TEMPERATURE,
                                          QTY_CLOCK, QTY_THROTTLE};
    for (size_t i = 0; i < sizeof SHOWN / sizeof *SHOWN; i++)
        if (device->gauges[SHOWN[i]].present)
            return true;
    return false;
}

static void name_line(struct live_frame *frame, size_t i)
{
    struct screen *screen = &frame->screen;
    const struct ledger_device *now = &frame->reading->now.devices[i];
    const struct ledger_device *since = &frame->reading->since.devices[i];
    if (!screen_line(screen))
        return;
    screen_add(screen, STYLE_BOLD, "%s", now->id);
    if (frame->reading->lost[i])
        screen_add(screen, STYLE_BAD, "  LOST");
    screen_add(screen, STYLE_PLAIN, "  ");
    unsigned room = screen_room(screen);
    screen_cut(screen, STYLE_PLAIN, room > 26 ? room - 26 : room / 2, now->sensor->name);
    if (!since->has_energy)
        return;
    char right[64];
    bool aside = since->energy.method != METHOD_NONE && !since->counted;
    str_format(right, sizeof right, "%s%s", method_word(&since->energy),
               aside ? ", not in total" : "");
    screen_right(screen, method_style(&since->energy), right);
}

/* What stands left of each row of the curve: watts now, then (where the curve is high) the mean
 * and the peak. */
static void gutter(struct live_frame *frame, size_t i, unsigned row)
{
    const struct ledger_device *now = &frame->reading->now.devices[i];
    const struct ledger_device *since = &frame->reading->since.devices[i];
    char text[FORMAT_MAX];
    double watts[] = {now->power_mean, since->power_mean, since->power_max};
    static const char *const LABELS[] = {"", "mean ", "peak "};
    if (row < 3) {
        screen_to(&frame->screen, LIVE_INDENT);
        watts_text(text, watts[row], row ? &since->energy : &now->energy);
        screen_add(&frame->screen, row ? STYLE_DIM : STYLE_BOLD, "%s%s", LABELS[row], text);
    }
    screen_to(&frame->screen, LIVE_INDENT + LIVE_GUTTER);
}

/* The curve between the gutter and its scale. */
static void graph_lines(struct live_frame *frame, size_t i, unsigned rows)
{
    struct screen *screen = &frame->screen;
    float values[SPARK_MAX];
    char cells[SPARK_MAX * SPARK_CELL + 1], scale[FORMAT_MAX + 8], top_text[FORMAT_MAX];
    unsigned around = LIVE_INDENT + LIVE_GUTTER + 12;
    size_t width = screen->columns > around + 4 ? screen->columns - around : 0;
    width = width > SPARK_MAX ? SPARK_MAX : width;
    history(frame->live, i, frame->view->shown, values, width);
    double top = spark_top(values, width);
    for (unsigned row = 0; row < rows; row++) {
        if (!screen_line(screen))
            return;
        gutter(frame, i, row);
        spark_row(values, width, top, row, rows, screen->utf8, cells);
        screen_add(screen, STYLE_GRAPH, "%s", cells);
        str_format(top_text, sizeof top_text, "%.3g W", top);
        if (rows == 1)
            str_format(scale, sizeof scale, "0–%s", top_text);
        else
            str_copy(scale, sizeof scale, row == 0 ? top_text : row + 1 == rows ? "0 W" : "");
        screen_add(screen, STYLE_DIM, " %s", scale);
    }
}

static void figures_line(struct live_frame *frame, size_t i, unsigned graph_rows)
{
    struct screen *screen = &frame->screen;
    const struct ledger_device *since = &frame->reading->since.devices[i];
    char text[FORMAT_MAX];
    if (!screen_line(screen))
        return;
    screen_to(screen, LIVE_INDENT);
    if (since->energy.method == METHOD_NONE) {
        screen_cut(screen, STYLE_WARN, screen_room(screen), since->energy.note);
        return;
    }
    joules_text(text, &since->energy);
    screen_add(screen, STYLE_BOLD, "%s", text);
    watts_text(text, since->power_mean, &since->energy);
    if (graph_rows < 2)
        add_labelled(screen, "mean", STYLE_PLAIN, text);
    watts_text(text, since->power_max, &since->energy);
    if (graph_rows < 3)
        add_labelled(screen, "peak", STYLE_PLAIN, text);
    double limit = reading_vital(frame->reading, i, QTY_POWER_LIMIT);
    if (is_known(limit)) {
        str_format(text, sizeof text, "%.0f W", limit);
        add_labelled(screen, "limit", STYLE_PLAIN, text);
    }
}

static void add_vital(struct live_frame *frame, size_t i, enum quantity quantity, const char *label,
                      const char *unit)
{
    char text[FORMAT_MAX] = "-";
    double value = reading_vital(frame->reading, i, quantity);
    if (!frame->reading->now.devices[i].gauges[quantity].present)
        return;
    if (is_known(value))
        str_format(text, sizeof text, "%.0f %s", value, unit);
    add_labelled(&frame->screen, is_known(value) ? "" : label, STYLE_PLAIN, text);
}

static void vitals_line(struct live_frame *frame, size_t i)
{
    struct screen *screen = &frame->screen;
    const struct reading *reading = frame->reading;
    const struct ledger_gauge *gauges = reading->now.devices[i].gauges;
    char text[SPARK_CELL * METER_WIDTH + FORMAT_MAX];
    if (!screen_line(screen))
        return;
    screen_to(screen, LIVE_INDENT);
    if (reading->lost[i]) {
        screen_cut(screen, STYLE_DIM, screen_room(screen), "gone; it is tried again and again");
        return;
    }
    if (gauges[QTY_UTILISATION].present) {
        double percent = reading_vital(reading, i, QTY_UTILISATION);
        screen_add(screen, STYLE_DIM, "util ");
        spark_meter(percent / 100, METER_WIDTH, screen->utf8, text);
        if (is_known(percent) && screen->columns >= 60)
            screen_add(screen, STYLE_GRAPH, "%s", text);
        str_format(text, sizeof text, is_known(percent) ? "%4.0f %%" : "-", percent);
        screen_add(screen, STYLE_PLAIN, "%s", text);
    }
    if (gauges[QTY_MEMORY_USED].present) {
        format_bytes_of(text, reading_vital(reading, i, QTY_MEMORY_USED),
                        reading_vital(reading, i, QTY_MEMORY_TOTAL));
        add_labelled(screen, "mem", STYLE_PLAIN, text);
    }
    add_vital(frame, i, QTY_TEMPERATURE, "temp", "°C");
    add_vital(frame, i, QTY_CLOCK, "clock", "MHz");
    add_vital(frame, i, QTY_MEMORY_CLOCK, "mem clock", "MHz mem");
    reading_throttle(reading, i, text, sizeof text);
    if (strcmp(text, "none") != 0 && strcmp(text, "-") != 0)
        add_labelled(screen, "throttled:", STYLE_WARN, text);
}

/* Two spaces and a figure at the right of its cell. */
static void add_cell(struct screen *screen, enum style style, const char *figure)
{
    size_t width = display_width(figure);
    screen_add(screen, style, "%*s%s", width < 9 ? (int)(11 - width) : 2, "", figure);
}

/* A cell for what some device of this machine reports; empty for the total. */
static void add_gauge_cell(struct live_frame *frame, size_t i, enum quantity quantity,
                           const char *unit)
{
    char text[FORMAT_MAX] = "-";
    bool wanted = false;
    for (size_t d = 0; d < frame->live->devices; d++)
        wanted = wanted || frame->reading->now.devices[d].gauges[quantity].present;
    bool is_total = i == frame->live->devices;
    double value = is_total ? UNKNOWN : reading_vital(frame->reading, i, quantity);
    if (is_total)
        text[0] = '\0';
    else if (is_known(value))
        str_format(text, sizeof text, "%.0f %s", value, unit);
    if (wanted)
        add_cell(&frame->screen, STYLE_PLAIN, text);
}

/* All of a device in one line. */
static void compact_line(struct live_frame *frame, const char *id, size_t ring,
                         const struct energy *now, double watts, const struct energy *since)
{
    struct screen *screen = &frame->screen;
    char text[FORMAT_MAX];
    if (!screen_line(screen))
        return;
    bool is_total = ring == frame->live->devices;
    screen_add(screen, STYLE_BOLD, "%s", id);
    screen_to(screen, id_width(frame->reading));
    watts_text(text, watts, now);
    if (!is_total && frame->reading->lost[ring])
        add_cell(screen, STYLE_BAD, "LOST");
    else
        add_cell(screen, STYLE_BOLD, text);
    reading_figure(text, since->joules, "J", since->method);
    add_cell(screen, STYLE_PLAIN, text);
    if (screen_room(screen) > 42) {
        add_gauge_cell(frame, ring, QTY_UTILISATION, "%");
        add_gauge_cell(frame, ring, QTY_TEMPERATURE, "°C");
    }
    unsigned end = screen_room(screen) > 30 ? 12 : 0; /* room for the method */
    size_t width = screen_room(screen) > end + 2 ? screen_room(screen) - end - 2 : 0;
    float values[SPARK_MAX];
    char cells[SPARK_MAX * SPARK_CELL + 1];
    width = width > SPARK_MAX ? SPARK_MAX : width;
    history(frame->live, ring, frame->view->shown, values, width);
    spark_row(values, width, spark_top(values, width), 0, 1, screen->utf8, cells);
    screen_add(screen, STYLE_PLAIN, "  ");
    screen_add(screen, STYLE_GRAPH, "%s", cells);
    if (end)
        screen_right(screen, method_style(since), method_word(since));
}

unsigned live_device_height(const struct reading *reading, size_t i,
                            const struct live_layout *layout)
{
    const struct ledger_device *device = &reading->now.devices[i];
    if (!layout->graph_rows)
        return 1;
    bool silent = reading->since.devices[i].energy.method == METHOD_NONE;
    unsigned height = 1 + layout->gaps;
    if (device->has_energy)
        height += silent ? 1 : layout->graph_rows + 1;
    return height + (layout->vitals && has_vitals(device));
}

void live_device(struct live_frame *frame, size_t i, const struct live_layout *layout)
{
    const struct ledger_device *now = &frame->reading->now.devices[i];
    const struct ledger_device *since = &frame->reading->since.devices[i];
    if (!layout->graph_rows) {
        compact_line(frame, now->id, i, &now->energy, now->power_mean, &since->energy);
        return;
    }
    name_line(frame, i);
    if (now->has_energy) {
        if (since->energy.method != METHOD_NONE)
            graph_lines(frame, i, layout->graph_rows);
        figures_line(frame, i, layout->graph_rows);
    }
    if (layout->vitals && has_vitals(now))
        vitals_line(frame, i);
    if (layout->gaps)
        screen_line(&frame->screen);
}

void live_total(struct live_frame *frame, bool compact)
{
    struct screen *screen = &frame->screen;
    const struct energy *now = &frame->reading->now.total, *since = &frame->reading->since.total;
    char text[FORMAT_MAX];
    if (compact) {
        compact_line(frame, "total", frame->live->devices, now,
                     reading_total_power(&frame->reading->now), since);
        return;
    }
    if (!screen_line(screen))
        return;
    screen_add(screen, STYLE_BOLD, "total");
    screen_to(screen, LIVE_INDENT + LIVE_GUTTER);
    watts_text(text, reading_total_power(&frame->reading->now), now);
    screen_add(screen, STYLE_BOLD, "%s", text);
    joules_text(text, since);
    add_labelled(screen, "", STYLE_BOLD, text);
    watts_text(text, reading_total_power(&frame->reading->since), since);
    add_labelled(screen, "mean", STYLE_PLAIN, text);
    if (since->note[0] && screen_room(screen) > 30) {
        screen_add(screen, STYLE_PLAIN, "   ");
        screen_cut(screen, STYLE_WARN, screen_room(screen) - 14, since->note);
    }
    screen_right(screen, method_style(since), method_word(since));
}
