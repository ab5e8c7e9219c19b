/* Lines of a screen that cannot overflow: a piece that does not fit its line is left out, or cut
 * where that is asked for, and a line that does not fit the screen is not begun.
 * It writes into a struct text owned by the caller, lines parted by "\n". */
#ifndef IPW_REPORT_SCREEN_H
#define IPW_REPORT_SCREEN_H

#include <stdbool.h>

#include "core/err.h"

struct text;

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_DIM, STYLE_GRAPH, STYLE_WARN, STYLE_BAD, STYLE_MARK };

struct screen {
    struct text *out;
    unsigned columns, rows;
    bool utf8; /* else every character becomes ASCII */
    bool colour;
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

#endif
