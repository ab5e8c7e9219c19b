/* Terminal output while something runs: the full-screen view, progress lines, and the screen that clips both.
 *
 * The view is a pure function from a reading, the history of watts and the screen's size to lines, so that it can be
 * tested without a terminal.  A struct live owns the history: live_init, live_release. */
#ifndef IPW_LIVE_H
#define IPW_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct profile_progress;
struct reading;
struct text;
struct top;

enum { LIVE_HISTORY = 1024 }; /* number of intervals in the history */

struct live {
    float (*watts)[LIVE_HISTORY]; /* a ring buffer per device, and one for the total */
    size_t devices;
    unsigned long pushed; /* intervals so far */
};

void live_init(struct live *live, size_t devices);
void live_release(struct live *live);

/* Adds the interval's power to the history. */
void live_push(struct live *live, const struct reading *reading);

struct live_view {
    unsigned columns, rows;
    bool utf8, color;
    bool paused, help;
    unsigned long shown; /* end of the history: `pushed`, or where it was paused */
    size_t first;        /* scrolled to this device */
    double every_s;
    const char *notice;    /* the newest warning, or "" */
    const struct top *top; /* shown if the screen has room; NULL: never */
};

/* Minimum number of rows for showing processes. */
enum { LIVE_TOP_ROWS = 30 };

/* At most `rows` lines of at most `columns`, separated by "\n".  Returns the device at the top, which is view->first
 * unless that was out of range. */
size_t live_render(const struct live *live, const struct reading *reading,
                   const struct live_view *view, struct text *out);

/* ---- progress (progress.c) ---- */

/* Progress of a long job in one line: redrawn in place on a terminal, otherwise printed occasionally.  A struct
 * progress is owned by the caller. */

struct progress {
    const char *command; /* prefix of lines without a bar */
    bool terminal;       /* redraw the line in place */
    bool utf8;
    unsigned columns;
    nanos next;        /* when the next line is due */
    const char *phase; /* of the last output */
    bool drawn;        /* a bar is on the terminal */
};

void progress_init(struct progress *progress, const char *command, bool terminal, bool utf8,
                   unsigned columns, nanos now);

/* Appends the output that is due, if any. */
void progress_draw(struct progress *progress, const struct profile_progress *state, nanos now,
                   struct text *out);

/* Clears the bar. */
void progress_clear(struct progress *progress, struct text *out);

/* ---- a bar for reading large files ---- */

struct reading_bar {
    struct progress bar;
    nanos first, began; /* start time of the first file, and of this one */
    uint64_t before;
    uint64_t path; /* its hash; 0: none yet */
    char phase[96];
};

void reading_bar_init(struct reading_bar *reading, const char *command, bool utf8,
                      unsigned columns);

/* `done` of `all` bytes; at the end of a file the bar is cleared. */
void reading_bar_update(struct reading_bar *reading, const char *path, uint64_t done, uint64_t all,
                        nanos now, struct text *out);
void reading_bar_clear(struct reading_bar *reading, struct text *out);

/* ---- the screen (screen.c) ---- */

/* Lines of a screen that cannot overflow: a piece that does not fit into its line is omitted, or truncated if
 * requested, and a line that does not fit on the screen is not started. Writes to a struct text owned by the caller,
 * lines separated by "\n". */

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GRAPH, STYLE_WARN, STYLE_BAD, STYLE_MARK };

struct screen {
    struct text *out;
    unsigned columns, rows;
    bool utf8; /* false: characters are converted to ASCII */
    bool color;
    unsigned lines; /* started so far */
    unsigned used;  /* columns of the current line */
};

/* Starts a line; false if the screen is full, and further output is discarded. */
bool screen_line(struct screen *screen);

/* Adds a piece completely, or not at all (false). */
bool screen_add(struct screen *screen, enum style style, const char *format, ...) PRINTF_LIKE(3, 4);

/* Adds as much as fits into `max` columns. */
void screen_cut(struct screen *screen, enum style style, unsigned max, const char *text);

/* Pads with spaces up to a column; nothing if the line is already there. */
void screen_to(struct screen *screen, unsigned column);

/* Right-aligned, at least two spaces after the existing text; omitted if it does not fit. */
bool screen_right(struct screen *screen, enum style style, const char *text);

/* Columns left in the line. */
unsigned screen_left(const struct screen *screen);

/* ---- bars of text: a curve of block characters, and a level meter ---- */

enum { SPARK_CELL = 4 }; /* maximum bytes per column */

/* Top of the scale 0..top: a round number that no known value exceeds; 1 if none is positive. */
double spark_top(const float *values, size_t count);

/* Row `row` (0 is the top) of a curve `rows` high, one character per value, into count * SPARK_CELL + 1 bytes.  An
 * unknown value is blank; a known one has at least the lowest block, so that the two cannot be confused. */
void spark_row(const float *values, size_t count, double top, unsigned row, unsigned rows,
               bool utf8, char *to);

/* `width` columns, filled to `share` (0..1), into width * SPARK_CELL + 1 bytes. */
void spark_meter(double share, size_t width, bool utf8, char *to);

#endif
