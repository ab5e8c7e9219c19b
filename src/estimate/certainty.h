/* How far an estimate may be off, and why it is no better: from the evidence of the device's figures, from
 * the model itself, and from what of the graph was not understood.  A pure function over an estimate that
 * is complete otherwise; docs/estimate.md, "Uncertainty". */
#ifndef IPW_ESTIMATE_CERTAINTY_H
#define IPW_ESTIMATE_CERTAINTY_H

#include "estimate/pass_estimate.h"
#include "estimate/rates.h"

/* Seconds by what they depend on, and joules of what is not known. */
struct certainty_shares {
    double compute_s, memory_s, launch_s, link_s, limit_s, unknown_s, unknown_j;
};
struct certainty_shares certainty_shares(const struct subgraph *subgraph,
                                         const struct subgraph_estimate *row);

/* Fills the plus_minus figures, confidence and confidence_reason; the shares are the sum over all subgraphs. */
void certainty_of(const struct rates *rates, const struct certainty_shares *shares,
                  struct pass_estimate *estimate);

#endif
