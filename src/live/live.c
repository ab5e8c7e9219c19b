/* The full-screen view of `ipw energy` as text: a pure function from a reading, the history of watts and the screen's
 * size to lines, so that it can be tested without a terminal.  Each device (and the total) is drawn at the largest size
 * that fits: a curve with its time axis and gauges, or one line.  Devices without energy come last, in one line with
 * the reason. */
#include "live/live.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "core/units.h"
#include "live/reading.h"
#include "report/text/format.h"
#include "sensors/sensor.h"

/* ---- one device ---- */

/* Left margin, and the width of the figures left of a curve. */
enum { LIVE_INDENT = 2, LIVE_GUTTER = 13 };

struct live_frame {
    struct screen screen;
    const struct live *live;
    const struct reading *reading;
    const struct live_view *view;
};

struct live_layout {
    unsigned graph_rows; /* 0: one line per device */
    bool gaps, gauges;
};

/* Maximum height of a curve, and minimum height with a time axis. */
enum { SPARK_MAX = 480, METER_WIDTH = 12, GRAPH_MAX = 36, AXIS_MIN = 3 };

/* The `count` values that end at `shown`, oldest first; values outside the history are unknown. */
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

/* "label figure" with spaces around it, or nothing if it does not fit. */
static void add_labeled(struct screen *screen, const char *label, enum style style,
                        const char *figure)
{
    unsigned before = screen->used;
    unsigned need = (before > LIVE_INDENT ? 3 : 0) + (unsigned)(strlen(label) + strlen(figure)) + 1;
    if (screen_left(screen) < need)
        return;
    if (before > LIVE_INDENT)
        screen_add(screen, STYLE_PLAIN, "   ");
    if (label[0])
        screen_add(screen, STYLE_DIM, "%s ", label);
    screen_add(screen, style, "%s", figure);
}

/* Maximum time for a sensor's first energy. */
#define DEAD_AFTER_S 2

/* Whether the device has no energy, for a known reason. */
static bool is_dead(const struct reading *reading, size_t i)
{
    const struct ledger_device *since = &reading->since.devices[i];
    return since->has_energy && since->energy.method == METHOD_NONE &&
           reading->elapsed_s >= DEAD_AFTER_S;
}

/* The device at a position on the screen: dead ones come last. */
static size_t device_at(const struct reading *reading, size_t place)
{
    for (int dead = 0; dead < 2; dead++)
        for (size_t i = 0; i < reading->now.count; i++)
            if (is_dead(reading, i) == dead && place-- == 0)
                return i;
    return 0;
}

/* Width of the device ids, which are aligned. */
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

static bool has_gauges(const struct ledger_device *device)
{
    static const enum quantity SHOWN[] = {QTY_UTILIZATION, QTY_MEMORY_USED, QTY_TEMPERATURE,
                                          QTY_CLOCK, QTY_THROTTLE};
    for (size_t i = 0; i < COUNT_OF(SHOWN); i++)
        if (device->gauges[SHOWN[i]].present)
            return true;
    return false;
}

static void name_line(struct live_frame *frame, size_t i)
{
    struct screen *screen = &frame->screen;
    const struct ledger_device *now = &frame->reading->now.devices[i];
    const struct ledger_device *since = &frame->reading->since.devices[i];
    bool dead = is_dead(frame->reading, i);
    if (!screen_line(screen))
        return;
    screen_add(screen, dead ? STYLE_DIM : STYLE_BOLD, "%s", now->id);
    if (frame->reading->lost[i])
        screen_add(screen, STYLE_BAD, "  LOST");
    screen_add(screen, STYLE_PLAIN, "  ");
    enum { TO_ITS_RIGHT = 26 };
    unsigned columns = screen_left(screen);
    bool shares = dead || columns <= TO_ITS_RIGHT;
    screen_cut(screen, dead ? STYLE_DIM : STYLE_PLAIN,
               shares ? columns / 2 : columns - TO_ITS_RIGHT, now->sensor->name);
    if (dead) {
        screen_add(screen, STYLE_DIM, ": ");
        screen_cut(screen, STYLE_DIM, screen_left(screen), since->energy.note);
    }
    if (dead || !since->has_energy)
        return;
    char right[64];
    bool aside = since->energy.method != METHOD_NONE && !since->counted;
    chars_format(right, "%s%s", method_word(&since->energy), aside ? ", not in total" : "");
    screen_right(screen, method_style(&since->energy), right);
}

/* Left of each row of the curve: current power, then (if the curve is high) the mean and the peak. */
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

/* Seconds between the labels of a time axis, which need a dozen columns each. */
static double axis_step(double every_s)
{
    static const double STEPS[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200};
    for (size_t i = 0; i < COUNT_OF(STEPS); i++)
        if (STEPS[i] >= 12 * every_s)
            return STEPS[i];
    return 86400 * ceil(12 * every_s / 86400);
}

/* The unit of an axis with such steps. */
static const char *axis_unit(double step_s, double *seconds)
{
    if (step_s >= 3600) {
        *seconds = 3600;
        return "h";
    }
    *seconds = step_s >= 60 ? 60 : 1;
    return step_s >= 60 ? "min" : "s";
}

/* Time axis under the curve, whose last column is the present. */
static void axis_line(struct live_frame *frame, size_t width)
{
    struct screen *screen = &frame->screen;
    double step_s = axis_step(frame->view->every_s), unit_s;
    const char *unit = axis_unit(step_s, &unit_s);
    unsigned start = LIVE_INDENT + LIVE_GUTTER, end = start + (unsigned)width - 1;
    if (!screen_line(screen))
        return;
    screen_to(screen, start);
    for (unsigned k = (unsigned)((double)width * frame->view->every_s / step_s); k > 0; k--) {
        double ago = k * step_s, columns = round(ago / frame->view->every_s);
        if (columns > end - start)
            continue;
        screen_to(screen, end - (unsigned)columns);
        screen_add(screen, STYLE_DIM, "╵-%.4g %s", ago / unit_s, unit);
    }
    screen_to(screen, end - 2);
    screen_add(screen, STYLE_DIM, "now");
}

/* Right of a row of a curve: the top of its scale, the middle of a high one, and 0. */
static void scale_text(char *to, size_t size, double top, unsigned row, unsigned rows)
{
    if (rows == 1)
        str_format(to, size, "0–%.3g W", top);
    else if (row == 0)
        str_format(to, size, "%.3g W", top);
    else if (rows >= 8 && 2 * row == rows)
        str_format(to, size, "%.3g W", top / 2);
    else
        str_copy(to, size, row + 1 == rows ? "0 W" : "");
}

/* The curve between the left figures and its scale. */
static void graph_lines(struct live_frame *frame, size_t i, unsigned rows)
{
    struct screen *screen = &frame->screen;
    float values[SPARK_MAX];
    char cells[SPARK_MAX * SPARK_CELL + 1], scale[FORMAT_MAX];
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
        scale_text(scale, sizeof scale, top, row, rows);
        screen_add(screen, STYLE_DIM, " %s", scale);
    }
    if (rows >= AXIS_MIN && width >= 12)
        axis_line(frame, width);
}

static void figures_line(struct live_frame *frame, size_t i, unsigned graph_rows)
{
    struct screen *screen = &frame->screen;
    const struct ledger_device *since = &frame->reading->since.devices[i];
    char text[FORMAT_MAX];
    if (!screen_line(screen))
        return;
    screen_to(screen, LIVE_INDENT);
    joules_text(text, &since->energy);
    screen_add(screen, STYLE_BOLD, "%s", text);
    watts_text(text, since->power_mean, &since->energy);
    if (graph_rows < 2)
        add_labeled(screen, "mean", STYLE_PLAIN, text);
    watts_text(text, since->power_max, &since->energy);
    if (graph_rows < 3)
        add_labeled(screen, "peak", STYLE_PLAIN, text);
    double limit = reading_gauge(frame->reading, i, QTY_POWER_LIMIT);
    if (is_known(limit)) {
        chars_format(text, "%.0f W", limit);
        add_labeled(screen, "limit", STYLE_PLAIN, text);
    }
}

static void add_gauge(struct live_frame *frame, size_t i, enum quantity quantity, const char *label,
                      const char *unit)
{
    char text[FORMAT_MAX] = "-";
    double value = reading_gauge(frame->reading, i, quantity);
    if (!frame->reading->now.devices[i].gauges[quantity].present)
        return;
    if (is_known(value))
        chars_format(text, "%.0f %s", value, unit);
    add_labeled(&frame->screen, is_known(value) ? "" : label, STYLE_PLAIN, text);
}

static void health_line(struct live_frame *frame, size_t i)
{
    struct screen *screen = &frame->screen;
    const struct reading *reading = frame->reading;
    const struct ledger_gauge *gauges = reading->now.devices[i].gauges;
    char text[SPARK_CELL * METER_WIDTH + FORMAT_MAX];
    if (!screen_line(screen))
        return;
    screen_to(screen, LIVE_INDENT);
    if (reading->lost[i]) {
        screen_cut(screen, STYLE_DIM, screen_left(screen), "lost; retrying");
        return;
    }
    if (gauges[QTY_UTILIZATION].present) {
        double percent = reading_gauge(reading, i, QTY_UTILIZATION);
        screen_add(screen, STYLE_DIM, "util ");
        spark_meter(percent / 100, METER_WIDTH, screen->utf8, text);
        if (is_known(percent) && screen->columns >= 60)
            screen_add(screen, STYLE_GRAPH, "%s", text);
        chars_format(text, is_known(percent) ? "%4.0f %%" : "-", percent);
        screen_add(screen, STYLE_PLAIN, "%s", text);
    }
    if (gauges[QTY_MEMORY_USED].present) {
        format_bytes_of(text, reading_gauge(reading, i, QTY_MEMORY_USED),
                        reading_gauge(reading, i, QTY_MEMORY_TOTAL));
        add_labeled(screen, "mem", STYLE_PLAIN, text);
    }
    add_gauge(frame, i, QTY_TEMPERATURE, "temp", "°C");
    add_gauge(frame, i, QTY_CLOCK, "clock", "MHz");
    add_gauge(frame, i, QTY_MEMORY_CLOCK, "mem clock", "MHz mem");
    reading_throttle(reading, i, text, sizeof text);
    if (!str_equal(text, "none") && !str_equal(text, "-"))
        add_labeled(screen, "throttled:", STYLE_WARN, text);
}

/* Two spaces and a right-aligned figure. */
static void add_cell(struct screen *screen, enum style style, const char *figure)
{
    size_t width = utf8_width(figure);
    screen_add(screen, style, "%*s%s", width < 9 ? (int)(11 - width) : 2, "", figure);
}

/* A cell for a gauge that some device reports; empty for the total. */
static void add_gauge_cell(struct live_frame *frame, size_t i, enum quantity quantity,
                           const char *unit)
{
    char text[FORMAT_MAX] = "-";
    bool wanted = false;
    for (size_t d = 0; d < frame->live->devices; d++)
        wanted = wanted || frame->reading->now.devices[d].gauges[quantity].present;
    bool is_total = i == frame->live->devices;
    double value = is_total ? UNKNOWN : reading_gauge(frame->reading, i, quantity);
    if (is_total)
        text[0] = '\0';
    else if (is_known(value))
        chars_format(text, "%.0f %s", value, unit);
    if (wanted)
        add_cell(&frame->screen, STYLE_PLAIN, text);
}

/* A device in one line. */
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
    if (screen_left(screen) > 42) {
        add_gauge_cell(frame, ring, QTY_UTILIZATION, "%");
        add_gauge_cell(frame, ring, QTY_TEMPERATURE, "°C");
    }
    unsigned end = screen_left(screen) > 30 ? 12 : 0; /* columns for the method */
    size_t width = screen_left(screen) > end + 2 ? screen_left(screen) - end - 2 : 0;
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

static unsigned live_device_height(const struct reading *reading, size_t i,
                                   const struct live_layout *layout)
{
    const struct ledger_device *device = &reading->now.devices[i];
    if (!layout->graph_rows)
        return 1;
    bool dead = is_dead(reading, i);
    unsigned height = 1 + (layout->gaps && !dead);
    if (device->has_energy && !dead)
        height += layout->graph_rows + (layout->graph_rows >= AXIS_MIN) + 1;
    return height + (layout->gauges && has_gauges(device));
}

static void live_device(struct live_frame *frame, size_t i, const struct live_layout *layout)
{
    const struct ledger_device *now = &frame->reading->now.devices[i];
    const struct ledger_device *since = &frame->reading->since.devices[i];
    if (!layout->graph_rows) {
        compact_line(frame, now->id, i, &now->energy, now->power_mean, &since->energy);
        return;
    }
    bool dead = is_dead(frame->reading, i);
    name_line(frame, i);
    if (now->has_energy && !dead) {
        graph_lines(frame, i, layout->graph_rows);
        figures_line(frame, i, layout->graph_rows);
    }
    if (layout->gauges && has_gauges(now))
        health_line(frame, i);
    if (layout->gaps && !dead)
        screen_line(&frame->screen);
}

/* ---- processes ---- */

/* Lines around the rows: a title, idle and others, a gap. */
enum { TOP_AROUND = 3, TOP_COLUMNS = 60 };

/* Rows for processes on a screen with this many rows for devices. */
static size_t top_rows(const struct live_view *view, unsigned rows)
{
    size_t max = rows / 5;
    if (!view->top || !view->top->count || view->rows < LIVE_TOP_ROWS || view->help ||
        view->columns < TOP_COLUMNS)
        return 0;
    return view->top->count < max ? view->top->count : max;
}

static void top_line(struct live_frame *frame, enum style style, const char *pid,
                     const struct top_row *row)
{
    struct screen *screen = &frame->screen;
    const enum method method = row->is_estimated ? METHOD_ESTIMATED : METHOD_COUNTER;
    char text[FORMAT_MAX];
    if (!screen_line(screen))
        return;
    screen_add(screen, style, "%9s  %-6.12s%5.1f %%", pid, row->device, 100 * row->share);
    reading_figure(text, row->watts, "W", method);
    add_cell(screen, style, text);
    reading_figure(text, row->joules, "J", method);
    add_cell(screen, style, text);
    screen_add(screen, style, "  ");
    screen_cut(screen, style, screen_left(screen), row->name);
}

static void live_top(struct live_frame *frame, size_t count)
{
    const struct top *top = frame->view->top;
    struct top_row rest = {.device = "cpu", .share = 1, .joules = UNKNOWN};
    if (!screen_line(&frame->screen))
        return;
    screen_add(&frame->screen, STYLE_BOLD, "processes");
    screen_cut(&frame->screen, STYLE_DIM, screen_left(&frame->screen),
               "  power and energy attributed by their share of the device's time");
    for (size_t i = 0; i < count; i++) {
        char pid[16];
        const struct top_row *row = &top->rows[i];
        chars_format(pid, "%d", row->pid);
        top_line(frame, STYLE_PLAIN, pid, row);
        if (str_equal(row->device, rest.device)) {
            rest.share -= row->share;
            rest.is_estimated = row->is_estimated;
        }
    }
    rest.watts = top->cpu_watts * rest.share;
    chars_copy(rest.name, "idle, others");
    top_line(frame, STYLE_DIM, "", &rest);
    screen_line(&frame->screen);
}

static void live_total(struct live_frame *frame, bool compact)
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
    add_labeled(screen, "", STYLE_BOLD, text);
    watts_text(text, reading_total_power(&frame->reading->since), since);
    add_labeled(screen, "mean", STYLE_PLAIN, text);
    if (since->note[0] && screen_left(screen) > 30) {
        screen_add(screen, STYLE_PLAIN, "   ");
        screen_cut(screen, STYLE_WARN, screen_left(screen) - 14, since->note);
    }
    screen_right(screen, method_style(since), method_word(since));
}

/* ---- history ---- */

void live_init(struct live *live, size_t devices)
{
    *live = (struct live){.devices = devices};
    live->watts = xcalloc(devices + 1, sizeof *live->watts);
}

void live_release(struct live *live)
{
    free(live->watts);
    *live = (struct live){0};
}

void live_push(struct live *live, const struct reading *reading)
{
    size_t place = live->pushed++ % LIVE_HISTORY;
    for (size_t i = 0; i < live->devices; i++)
        live->watts[i][place] = (float)reading->now.devices[i].power_mean;
    live->watts[live->devices][place] = (float)reading_total_power(&reading->now);
}

/* The most detailed layout in which all devices fit, else one line each. */
static struct live_layout choose_layout(const struct reading *reading, unsigned columns,
                                        unsigned rows)
{
    for (unsigned l = GRAPH_MAX + 2; columns >= 40 && l > 0;
         l--) { /* first without gaps, then without gauges */
        const struct live_layout layout = {l > 2 ? l - 2 : 1, l > 2, l > 1};
        unsigned height = 0;
        for (size_t i = 0; i < reading->now.count; i++)
            height += live_device_height(reading, i, &layout);
        if (height <= rows)
            return layout;
    }
    return (struct live_layout){0};
}

/* ---- the frame around them ---- */

static void header(struct live_frame *frame, size_t first, size_t shown)
{
    struct screen *screen = &frame->screen;
    const struct live_view *view = frame->view;
    char duration[FORMAT_MAX], right[128];
    if (!screen_line(screen))
        return;
    screen_add(screen, STYLE_BOLD, "ipw energy");
    if (view->paused) {
        screen_add(screen, STYLE_PLAIN, "  ");
        screen_add(screen, STYLE_MARK, " PAUSED ");
    }
    if (shown < frame->reading->now.count)
        screen_add(screen, STYLE_DIM, "  devices %zu–%zu of %zu", first + 1, first + shown,
                   frame->reading->now.count);
    format_duration(duration, frame->reading->elapsed_s);
    if (frame->reading->elapsed_s < 60)
        chars_format(duration, "%.0f s", frame->reading->elapsed_s);
    chars_format(right, "%s · every %.3g s", duration, view->every_s);
    if (!screen_right(screen, STYLE_DIM, right))
        screen_right(screen, STYLE_DIM, duration);
}

static void footer(struct live_frame *frame)
{
    static const char *const KEYS[][2] = {
        {"q", "quit"}, {"p", "pause"},       {"r", "reset"},
        {"?", "help"}, {"space", "refresh"}, {"j/k", "scroll"},
    };
    struct screen *screen = &frame->screen;
    if (!screen_line(screen))
        return;
    for (size_t i = 0; i < COUNT_OF(KEYS); i++) {
        unsigned need = (unsigned)(strlen(KEYS[i][0]) + strlen(KEYS[i][1])) + 3;
        if (screen_left(screen) < need)
            return;
        screen_add(screen, STYLE_BOLD, "%s%s", i ? "  " : "", KEYS[i][0]);
        screen_add(screen, STYLE_DIM, " %s", KEYS[i][1]);
    }
}

static void help_lines(struct live_frame *frame, unsigned rows)
{
    static const char *const LINES[] = {
        "q      quit; the totals remain on the terminal",
        "p      pause the display; sampling continues",
        "r      reset: count joules from now",
        "space  read now",
        "j k    scroll, also with ↓ ↑ and page keys",
        "? esc  close this help",
        "",
        "Power is the mean over the interval; joules, mean and peak",
        "are since the start or the last reset.  ± is one standard",
        "uncertainty, \"-\" is unknown, \"~\" a model's estimate.",
        "counter: a hardware energy counter; integral: summed power.",
        "A process is attributed its share of a device's time: of CPU time",
        "on the processors, of utilization on a GPU.",
    };
    for (size_t i = 0; i < rows; i++)
        if (screen_line(&frame->screen) && i < COUNT_OF(LINES)) {
            screen_to(&frame->screen, LIVE_INDENT);
            screen_cut(&frame->screen, STYLE_PLAIN, screen_left(&frame->screen), LINES[i]);
        }
}

/* Devices starting at `first`, then blank lines: `rows` in total. */
static void body(struct live_frame *frame, const struct live_layout *layout, size_t first,
                 size_t count, unsigned rows)
{
    unsigned end = frame->screen.lines + rows;
    for (size_t i = first; i < first + count; i++)
        if (frame->screen.lines < end)
            live_device(frame, device_at(frame->reading, i), layout);
    while (frame->screen.lines < end && screen_line(&frame->screen))
        ;
}

size_t live_render(const struct live *live, const struct reading *reading,
                   const struct live_view *view, struct text *out)
{
    struct live_frame frame = {
        .screen = {out, view->columns, view->rows, view->utf8, view->color, 0, 0},
        .live = live,
        .reading = reading,
        .view = view,
    };
    bool with_footer = view->rows >= 3, with_gap = view->rows >= 12;
    bool with_total = view->rows >= 4 && reading_wants_total(reading);
    bool with_notice = view->rows >= 8 && view->notice[0];
    unsigned around = 1 + with_footer + 2 * with_gap + with_total + with_notice;
    unsigned rows = view->rows > around ? view->rows - around : 0;
    size_t processes = top_rows(view, rows);
    size_t count = reading->now.count, shown = count;
    bool dead_last = count && is_dead(reading, device_at(reading, count - 1)); /* without a gap */
    rows -= processes ? (unsigned)processes + TOP_AROUND + dead_last : 0;
    struct live_layout layout = choose_layout(reading, view->columns, rows);
    if (!layout.graph_rows && shown > rows)
        shown = rows;
    size_t first = view->first > count - shown ? count - shown : view->first;
    header(&frame, first, shown);
    if (with_gap)
        screen_line(&frame.screen);
    if (view->help)
        help_lines(&frame, rows);
    else
        body(&frame, &layout, first, shown, rows);
    if (processes && dead_last)
        screen_line(&frame.screen);
    if (processes)
        live_top(&frame, processes);
    if (with_total)
        live_total(&frame, !layout.graph_rows);
    if (with_notice && screen_line(&frame.screen))
        screen_cut(&frame.screen, STYLE_WARN, view->columns, view->notice);
    if (with_gap)
        screen_line(&frame.screen);
    if (with_footer)
        footer(&frame);
    return first;
}
