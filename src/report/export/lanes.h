/* Tracks on which spans that overlap stand beside one another.  A struct lanes owns its array:
 * zero-initialise, lanes_release. */
#ifndef IPW_REPORT_EXPORTS_LANES_H
#define IPW_REPORT_EXPORTS_LANES_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct lanes {
    int64_t *ends; /* of the last span on each */
    size_t count, capacity;
};

/* The lane that was free for the shortest time when the span begins, or a new one; spans come in the order
 * of their ends, or nearly so.  *lane counts from 0. */
enum err lanes_take(struct lanes *lanes, int64_t from, int64_t to, size_t *lane) MUST_USE;
void lanes_release(struct lanes *lanes);

#endif
