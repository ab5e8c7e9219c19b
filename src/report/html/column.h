/* A column of many numbers as a short text: quantized to a few bytes each, in base64.  The page shows
 * three or four digits of a figure, and a hundred thousand queries must stay a small file.
 *
 *   {"same": x}                                   every value is x, or null
 *   {"first": a, "by": d}                         a, a + d, a + 2 d ...
 *   {"bytes": b, "low": l, "step": s, "data": t}  l + code x s; little-endian codes of b bytes
 *   {..., "log": true}                            l x exp(code x s)
 * A code of all ones is null. */
#ifndef IPW_REPORT_HTML_COLUMN_H
#define IPW_REPORT_HTML_COLUMN_H

#include <stddef.h>

struct json;

/* Whole numbers are exact; others keep `bytes` (2 or 3) of their range, or of its logarithm where all are
 * above 0. */
void column_put(struct json *json, const char *key, const double *values, size_t count,
                unsigned bytes);

/* Evenly over the range, whatever the values: for times. */
void column_put_even(struct json *json, const char *key, const double *values, size_t count,
                     unsigned bytes);

#endif
