/* The full-screen view as text: a pure function from a reading, the history of watts and the
 * screen's size to lines, so that it can be tested without a terminal.
 * A struct live owns the history: live_init, live_release. */
#ifndef IPW_REPORT_LIVE_H
#define IPW_REPORT_LIVE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct reading;
struct text;
struct top;

enum { LIVE_HISTORY = 1024 }; /* intervals that are remembered */

struct live {
    float (*watts)[LIVE_HISTORY]; /* a ring a device, and one for the total */
    size_t devices;
    unsigned long pushed; /* intervals so far */
};

enum err live_init(struct live *live, size_t devices) MUST_USE;
void live_release(struct live *live);

/* Remembers the interval's watts. */
void live_push(struct live *live, const struct reading *reading);

struct live_view {
    unsigned columns, rows;
    bool utf8, color;
    bool paused, help;
    unsigned long shown; /* the history ends here: `pushed`, or where it was paused */
    size_t first;        /* scrolled to this device */
    double every_s;
    const char *notice;    /* the newest warning, or "" */
    const struct top *top; /* shown where the screen has room; NULL: never */
};

/* So few rows have no room for processes. */
enum { LIVE_TOP_ROWS = 30 };

/* At most `rows` lines, none wider than `columns`, parted by "\n".  Returns the device at the top,
 * which is view->first unless that was too far. */
size_t live_render(const struct live *live, const struct reading *reading,
                   const struct live_view *view, struct text *out);

#endif
