#include "report/live/live.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "report/text/format.h"
#include "report/live/live_device.h"
#include "report/live/reading.h"

/* ---- history ---- */

enum err live_init(struct live *live, size_t devices)
{
    *live = (struct live){.devices = devices};
    live->watts = calloc(devices + 1, sizeof *live->watts);
    return live->watts ? ERR_OK : ERR_NO_MEMORY;
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

/* The richest layout in which all devices fit, else one line each. */
static struct live_layout choose_layout(const struct reading *reading, unsigned columns,
                                        unsigned rows)
{
    static const struct live_layout LAYOUTS[] = {
        {6, true, true}, {5, true, true}, {4, true, true},  {3, true, true},
        {2, true, true}, {1, true, true}, {1, false, true}, {1, false, false},
    };
    for (size_t l = 0; columns >= 40 && l < sizeof LAYOUTS / sizeof *LAYOUTS; l++) {
        unsigned height = 0;
        for (size_t i = 0; i < reading->now.count; i++)
            height += live_device_height(reading, i, &LAYOUTS[l]);
        if (height <= rows)
            return LAYOUTS[l];
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
        str_format(duration, sizeof duration, "%.0f s", frame->reading->elapsed_s);
    str_format(right, sizeof right, "%s · every %.3g s", duration, view->every_s);
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
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        unsigned need = (unsigned)(strlen(KEYS[i][0]) + strlen(KEYS[i][1])) + 3;
        if (screen_room(screen) < need)
            return;
        screen_add(screen, STYLE_BOLD, "%s%s", i ? "  " : "", KEYS[i][0]);
        screen_add(screen, STYLE_DIM, " %s", KEYS[i][1]);
    }
}

static void help_lines(struct live_frame *frame, unsigned rows)
{
    static const char *const LINES[] = {
        "q      quit: the totals stay on the terminal",
        "p      pause the display; sampling goes on",
        "r      reset: count joules from now",
        "space  a fresh reading now",
        "j k    scroll, also with ↓ ↑ and page keys",
        "? esc  leave this help",
        "",
        "Power is the mean over the interval; joules, mean and peak",
        "are since the start or the last reset.  ± is one standard",
        "uncertainty, \"-\" is unknown, \"~\" a model's estimate.",
        "counter: a hardware energy counter; integral: summed power.",
    };
    for (size_t i = 0; i < rows; i++)
        if (screen_line(&frame->screen) && i < sizeof LINES / sizeof *LINES) {
            screen_to(&frame->screen, LIVE_INDENT);
            screen_cut(&frame->screen, STYLE_PLAIN, screen_room(&frame->screen), LINES[i]);
        }
}

/* Devices from `first` on, then blank lines: `rows` in all. */
static void body(struct live_frame *frame, const struct live_layout *layout, size_t first,
                 size_t count, unsigned rows)
{
    unsigned end = frame->screen.lines + rows;
    for (size_t i = first; i < first + count; i++)
        if (frame->screen.lines < end)
            live_device(frame, i, layout);
    while (frame->screen.lines < end && screen_line(&frame->screen))
        ;
}

size_t live_render(const struct live *live, const struct reading *reading,
                   const struct live_view *view, struct text *out)
{
    struct live_frame frame = {
        .screen = {out, view->columns, view->rows, view->utf8, view->colour, 0, 0},
        .live = live,
        .reading = reading,
        .view = view,
    };
    bool with_footer = view->rows >= 3, with_gap = view->rows >= 12;
    bool with_total = view->rows >= 4 && reading_wants_total(reading);
    bool with_notice = view->rows >= 8 && view->notice[0];
    unsigned around = 1 + with_footer + 2 * with_gap + with_total + with_notice;
    unsigned rows = view->rows > around ? view->rows - around : 0;
    struct live_layout layout = choose_layout(reading, view->columns, rows);
    size_t count = reading->now.count, shown = count;
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
