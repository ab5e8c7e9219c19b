/* The hardware catalogue for people: a table of all, and one device with every figure and its source.
 * Both add to a text that the caller owns. */
#ifndef IPW_REPORT_HARDWARE_REPORT_H
#define IPW_REPORT_HARDWARE_REPORT_H

#include <stdbool.h>

#include "core/err.h"

struct hardware;
struct text;

/* One line a device. */
enum err hardware_report_all(bool colour, struct text *out, struct error *why) MUST_USE;

void hardware_report_one(const struct hardware *hardware, bool colour, struct text *out);

#endif
