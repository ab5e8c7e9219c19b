/* What a terminal shows while something runs: the full-screen view, progress lines, and the screen that both fit into.
 *
 * The view is a pure function from a reading, the history of watts and the screen's size to lines, so that it can be
 * tested without a terminal.  A struct live owns the history: live_init, live_release. */
#ifndef IPW_REPORT_LIVE_H
#define IPW_REPORT_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct profile_progress;
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

/* ---- progress (progress.c) ---- */

/* One line that tells how far a long job is: a bar that is drawn over itself on a terminal, a plain
 * line every now and then elsewhere.  A struct progress is owned by the caller. */

struct progress {
    const char *command; /* before every line that is not a bar */
    bool terminal;       /* draw over the line */
    bool utf8;
    unsigned columns;
    nanos next;        /* when the next line is due */
    const char *phase; /* that was shown last */
    bool drawn;        /* a bar stands on the terminal */
};

void progress_init(struct progress *progress, const char *command, bool terminal, bool utf8,
                   unsigned columns, nanos now);

/* What to write now, if anything. */
void progress_draw(struct progress *progress, const struct profile_progress *state, nanos now,
                   struct text *out);

/* Wipes the bar. */
void progress_clear(struct progress *progress, struct text *out);

/* ---- a bar for reading large files ---- */

struct reading_bar {
    struct progress bar;
    nanos first, began; /* the first word of any file; of this one */
    uint64_t before;
    char path[256], phase[96];
};

void reading_bar_init(struct reading_bar *reading, const char *command, bool utf8,
                      unsigned columns);

/* `done` of `all` bytes; at the end of a file the bar is wiped. */
void reading_bar_update(struct reading_bar *reading, const char *path, uint64_t done, uint64_t all,
                        nanos now, struct text *out);
void reading_bar_wipe(struct reading_bar *reading, struct text *out);

/* ---- the screen (screen.c) ---- */

/* Lines of a screen that cannot overflow: a piece that does not fit its line is left out, or cut
 * where that is requested, and a line that does not fit the screen is not begun.
 * It writes into a struct text owned by the caller, lines parted by "\n". */

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GRAPH, STYLE_WARN, STYLE_BAD, STYLE_MARK };

struct screen {
    struct text *out;
    unsigned columns, rows;
    bool utf8; /* else every character becomes ASCII */
    bool color;
    unsigned lines; /* begun so far */
    unsigned used;  /* columns of the current line */
};

/* False when the screen is full; what is then added goes nowhere. */
bool screen_line(struct screen *screen);

/* Adds a piece whole, or not at all (false). */
bool screen_add(struct screen *screen, enum style style, const char *format, ...) PRINTF_LIKE(3, 4);

/* Adds as much as fits into `most` columns. */
void screen_cut(struct screen *screen, enum style style, unsigned most, const char *text);

/* Spaces up to a column; none when the line is there already. */
void screen_to(struct screen *screen, unsigned column);

/* At the right edge, at least two spaces from what is there; left out where that does not fit. */
bool screen_right(struct screen *screen, enum style style, const char *text);

/* Columns left in the line. */
unsigned screen_left(const struct screen *screen);

/* ---- bars of text: a curve of block characters, and a level meter ---- */

enum { SPARK_CELL = 4 }; /* most bytes a column takes */

/* A round number no known value exceeds, for the scale 0..top; 1 when none is above 0. */
double spark_top(const float *values, size_t count);

/* Row `row` (0 is the top one) of a curve `rows` high, one character a value, into count *
 * SPARK_CELL + 1 bytes.  An unknown value is a blank; a known one is never less than the lowest
 * block, so that the two cannot be confused. */
void spark_row(const float *values, size_t count, double top, unsigned row, unsigned rows,
               bool utf8, char *to);

/* `width` columns, filled to `share` (0..1), into width * SPARK_CELL + 1 bytes. */
void spark_meter(double share, size_t width, bool utf8, char *to);

#endif
