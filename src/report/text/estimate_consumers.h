/* Where in a model the joules go: subgraphs that are the same in several layers as one row, "layer.*.mlp"
 * x 12.  consumers_of gives an array that the caller frees; names point nowhere else. */
#ifndef IPW_REPORT_ESTIMATE_CONSUMERS_H
#define IPW_REPORT_ESTIMATE_CONSUMERS_H

#include <stddef.h>

#include "report/text/estimate_report.h"

enum { CONSUMER_NAME_MOST = 36 };

struct consumer {
    char name[CONSUMER_NAME_MOST + 8];
    const struct subgraph_total *first;
    struct estimate_joules joules;
    double latency_s;
    size_t count;  /* of subgraphs */
    bool is_mixed; /* not all are bound by the same */
};

/* Most joules first; NULL when there is no memory. */
struct consumer *consumers_of(const struct estimate_report *report, size_t *count);

#endif
