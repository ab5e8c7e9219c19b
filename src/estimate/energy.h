/* What a subgraph costs in joules, once its time is known: operations, bytes, and idle power for as long
 * as it takes.  Beyond the power limit the device is slower, not hungrier.  A pure function;
 * docs/estimate.md, "Energy". */
#ifndef IPW_ESTIMATE_ENERGY_H
#define IPW_ESTIMATE_ENERGY_H

#include "estimate/roofline.h"

/* Fills the joules of a row, of all devices together, and stretches its time where the limit asks for it.
 * Joules that the device states no figure for are UNKNOWN, and so is their sum. */
void energy_row(const struct roofline_work *work, const struct rates *rates, int devices,
                struct subgraph_estimate *row);

#endif
