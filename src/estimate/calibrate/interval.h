/* How far the unknowns of a design would differ, had its windows been measured again: lines are drawn anew
 * within each class, and the fit taken of what was drawn.  Pure but for memory that it gives back. */
#ifndef IPW_ESTIMATE_CALIBRATE_INTERVAL_H
#define IPW_ESTIMATE_CALIBRATE_INTERVAL_H

#include "estimate/calibrate/design.h"

struct interval {
    double low[DESIGN_COLUMNS_MOST], high[DESIGN_COLUMNS_MOST]; /* 95 %, of scaled unknowns */
    double singular; /* share of the draws that had no answer */
};

enum err interval_take(const struct design *design, size_t classes,
                       const struct calibrate_options *options, struct interval *out,
                       struct error *why) MUST_USE;

#endif
