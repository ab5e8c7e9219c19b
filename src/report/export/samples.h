/* The samples that a run keeps, row by row and in constant memory. */
#ifndef IPW_REPORT_EXPORTS_SAMPLES_H
#define IPW_REPORT_EXPORTS_SAMPLES_H

#include "core/err.h"

struct sample_row {
    double t_s;
    const char *device, *channel, *quantity, *unit; /* good until the next row */
    double value;                                   /* UNKNOWN after a gap */
};

/* Of a start, from 1; nothing where it has no file.  A row that cannot be read is left out.  Stops when take
 * returns anything but ERR_OK, and returns that. */
enum err samples_each(const char *directory, unsigned start,
                      enum err (*take)(void *context, const struct sample_row *row), void *context,
                      struct error *why) MUST_USE;

#endif
