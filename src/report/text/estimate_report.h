/* What `ipw estimate` says: one estimate in full, or many as a table; for people, as Markdown, CSV or
 * JSON.  Nothing here keeps state.  Every energy is a model's figure, and is marked as one. */
#ifndef IPW_REPORT_ESTIMATE_REPORT_H
#define IPW_REPORT_ESTIMATE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "estimate/budget.h"
#include "estimate/workload_estimate.h"
#include "estimate/estimate_grid.h"
#include "estimate/recommend.h"

struct text;

/* One estimate. */
struct estimate_report {
    const struct workload_estimate *estimate; /* with its passes */
    const struct subgraph_total *rows;
    size_t row_count;
    const struct budget *budget;
    const struct recommendation *recommendations;
    size_t recommendation_count;
    int devices_to_fit; /* where it does not fit: how many would do; 0: not known */
    size_t top;         /* subgraphs to show; 0: all */
    bool shows_figures; /* those of the device, with their sources */
};

void estimate_text(const struct estimate_report *report, bool colour, struct text *out);
void estimate_markdown(const struct estimate_report *report, struct text *out);
void estimate_json(const struct estimate_report *report, struct text *out);
/* A line a subgraph. */
void estimate_csv(const struct estimate_report *report, struct text *out);

/* Many. */
struct points_report {
    const struct estimate_grid *points; /* in the order to show */
    const struct hardware *hardware;
    const struct budget *budget;
    size_t top; /* rows to show to people, the frontier always among them; 0: all */
};

void points_text(const struct points_report *report, bool colour, struct text *out);
void points_markdown(const struct points_report *report, struct text *out);
void points_json(const struct points_report *report, struct text *out);
/* A line a point. */
void points_csv(const struct points_report *report, struct text *out);

#endif
