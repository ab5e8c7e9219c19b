/* What latencies tell beside the energies: the rates that were attained, and the time of a launch. */
#ifndef IPW_ESTIMATE_CALIBRATE_OVERHEADS_H
#define IPW_ESTIMATE_CALIBRATE_OVERHEADS_H

#include "estimate/calibrate.h"

/* Fills the rates and launch times of a calibration whose classes and points are there.  Rows too short for
 * their energy still count here. */
void overheads_take(const struct calibrate_rows *rows, struct calibration *out);

#endif
