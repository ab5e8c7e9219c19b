/* The hardware file of a calibration.  The caller owns what goes in and the text that comes out. */
#ifndef IPW_ESTIMATE_CALIBRATE_HARDWARE_H
#define IPW_ESTIMATE_CALIBRATE_HARDWARE_H

#include "core/err.h"

struct calibration;
struct hardware;
struct text;

/* Where a calibration comes from, for the names and sources in the file. */
struct calibrate_origin {
    const char *hardware;        /* as the rows or this machine name it; "": unknown */
    const struct hardware *base; /* the entry whose other figures are kept; NULL: none */
    const char *data;            /* where the rows come from: "a.csv", "built-in loads, cpu0" */
    const char *given_source;    /* of coefficients that were not fitted */
};

/* JSON for --hardware-file: the base with the fitted and attained figures in place of its own, or an entry of those
 * alone.  ERR_BAD_VALUE when the result contradicts itself: see hardware_check. */
enum err calibrate_hardware(const struct calibration *calibration,
                            const struct calibrate_origin *origin, struct text *out,
                            struct error *why) MUST_USE;

#endif
