/* Lines of a screen that cannot overflow: a piece that does not fit its line is left out, or cut
 * where that is asked for, and a line that does not fit the screen is not begun.
 * It writes into a struct text owned by the caller, lines parted by "\n". */
#ifndef IPW_REPORT_SCREEN_H
#define IPW_REPORT_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct text;

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
unsigned screen_room(const struct screen *screen);

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
