/* How far an estimate may be off, and why it is no better: from the evidence of the device's figures, from
 * the model itself, and from what of the graph was not understood.  A pure function over an estimate that
 * is complete otherwise; docs/estimate.md, "Uncertainty". */
#ifndef IPW_ESTIMATE_CERTAINTY_H
#define IPW_ESTIMATE_CERTAINTY_H

#include "estimate/estimate.h"
#include "estimate/rates.h"

/* Fills the plus_minus figures, confidence and confidence_reason. */
void certainty_of(const struct rates *rates, struct estimate *estimate);

#endif
