/* Bars of text: a curve from block characters, one column a value, and a level meter.  Pure
 * functions into the caller's buffer. */
#ifndef IPW_REPORT_SPARK_H
#define IPW_REPORT_SPARK_H

#include <stdbool.h>
#include <stddef.h>

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
