/* A reading: the machine over one interval and since the start, with what a row of a monitor needs
 * beside the joules.  reading_take fills one that reading_release gives back. */
#ifndef IPW_REPORT_READING_H
#define IPW_REPORT_READING_H

#include <stdbool.h>
#include <stddef.h>

#include "attribute/ledger.h"
#include "core/err.h"
#include "core/quantity.h"
#include "core/units.h"

struct sampler;

struct reading {
    nanos wall; /* the interval's end, since the epoch */
    double interval_s;
    double elapsed_s;    /* since the start, or the last reset */
    struct ledger now;   /* over the interval */
    struct ledger since; /* from the start to the interval's end; the same devices in order */
    bool *lost;          /* per device: it is gone at the moment */
};

/* The interval is [from, to], the start `start`. */
enum err reading_take(struct sampler *sampler, nanos start, nanos from, nanos to,
                      struct reading *out) MUST_USE;
void reading_release(struct reading *reading);

/* What a device does now: the mean over the interval for what fluctuates (utilisation, clocks), the
 * newest value for the rest; UNKNOWN without a sensor for it and while the device is lost. */
double reading_vital(const struct reading *reading, size_t device, enum quantity quantity);

/* "power thermal", "none", or "-" when unknown. */
void reading_throttle(const struct reading *reading, size_t device, char *to, size_t size);

/* "counter" ...; of the interval, else since the start; "-" when nothing was measured. */
const char *reading_method(const struct reading *reading, size_t device);

/* Mean watts of the devices in the total; UNKNOWN when it has none. */
double reading_total_power(const struct ledger *ledger);

/* A bare figure for a cell (FORMAT_MAX bytes); an estimate is rough, and marked with "~". */
void reading_figure(char *to, double value, const char *unit, enum method method);

/* Is there more than one device to add up (or to leave out of the sum)? */
bool reading_wants_total(const struct reading *reading);

#endif
