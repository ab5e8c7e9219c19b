/* Measurements of settings other than clocks alone (batch, precision, model file ...) from a CSV file: one point per
 * setting, the median of its rows, with its quality where a column has one. */
#ifndef IPW_POWER_SETTING_POINTS_H
#define IPW_POWER_SETTING_POINTS_H

#include <stddef.h>

#include "power/optimize.h"

struct params;

struct setting_source {
    const char *path;
    const char *settings;                 /* columns that name a setting, with commas */
    const char *quality;                  /* column; NULL: none */
    const struct params *columns, *where; /* as of struct freq_source */
};

struct setting_points {
    struct optimize_point *items; /* in the order of the file; the caller frees them */
    size_t count;
    size_t left_out; /* rows without a positive energy and time */
};

/* ERR_BAD_VALUE names file, line and column; ERR_NO_DATA where no row is usable. */
enum err setting_points_read(const struct setting_source *source, struct setting_points *out,
                             struct error *why) MUST_USE;

#endif
