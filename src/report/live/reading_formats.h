/* Readings as text: rows for people, CSV, JSON lines, and the totals at the end.  Each call adds to
 * the caller's text; only the table keeps something between calls, in a struct of the caller's. */
#ifndef IPW_REPORT_READING_FORMATS_H
#define IPW_REPORT_READING_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "report/text/table.h"

struct reading;
struct text;

struct reading_table {
    bool colour;
    bool repeat_header; /* on a screen that scrolls it away; never in a file */
    bool tenths;        /* of a second, where rows come faster than seconds */
    unsigned blocks;    /* written so far */
    size_t widths[TABLE_COLUMNS_MAX];
};

/* A row a device, and the total where there is something to add up. */
void reading_to_table(struct reading_table *state, const struct reading *reading, struct text *out);

/* RFC 4180, but for the line ends, which are the system's; an unknown figure is an empty field. */
void reading_csv_header(struct text *out);
void reading_to_csv(const struct reading *reading, struct text *out);

/* One object in one line. */
void reading_to_json(const struct reading *reading, struct text *out);

/* Joules, mean and peak of each device since the start. */
void reading_summary(const struct reading *reading, bool colour, struct text *out);

#endif
