/* How long a subgraph takes on a device and what it waits for: arithmetic, memory, the start of a kernel,
 * the other devices.  A pure function; docs/estimate.md, "Time", has the formulas. */
#ifndef IPW_ESTIMATE_ROOFLINE_H
#define IPW_ESTIMATE_ROOFLINE_H

#include "estimate/pass_estimate.h"
#include "estimate/rates.h"

/* What one of several devices does of a subgraph. */
struct roofline_work {
    double macs, elementwise;
    double outputs, rows; /* numbers to deal out to its units, as in struct subgraph */
    struct estimate_traffic traffic;
    double bytes;      /* of the traffic with its own memory */
    double link_steps; /* messages, one after the other */
};

struct roofline_work roofline_work(const struct subgraph *subgraph,
                                   const struct partition *partition,
                                   const struct precision_widths *widths, int devices);

/* Fills all but the joules of a row, as if power had no limit. */
void roofline_row(const struct subgraph *subgraph, const struct roofline_work *work,
                  const struct rates *rates, struct subgraph_estimate *row);

/* Of the time that a stretched row takes, the share in which its units are busy at their peak. */
double roofline_utilisation(const struct roofline_work *work, const struct rates *rates,
                            double latency_s);

#endif
