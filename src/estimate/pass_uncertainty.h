/* The inputs of the ± of a pass, and its result in struct pass_estimate.  Plain data of the caller. */
#ifndef IPW_ESTIMATE_PASS_UNCERTAINTY_H
#define IPW_ESTIMATE_PASS_UNCERTAINTY_H

#include "estimate/pass_estimate.h"

/* Seconds by the limiting figure, and the errors of unknown and assumed operators; all add up over subgraphs. */
struct pass_uncertainty {
    double compute_s, memory_s, launch_s, link_s, limit_s;
    double unknown_s, unknown_j;
    double host_s;               /* uncertainty of the time due to an assumed host */
    double bound_s[BOUND_COUNT]; /* seconds of subgraphs by their bound */
};

struct pass_uncertainty pass_uncertainty_of(const struct subgraph *subgraph,
                                            const struct subgraph_estimate *row);
/* Sets the ± of the totals, and the confidence. */
void pass_uncertainty_set(const struct pass_uncertainty *from, const struct rates *rates,
                          struct pass_estimate *estimate);

/* Relative error of the model itself, in addition to those of the device's figures: smaller if it was fitted. */
double pass_uncertainty_model_error(const struct hardware *hardware);

#endif
