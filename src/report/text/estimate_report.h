/* Output of `ipw estimate`: one estimate in full, or many as a table; as text, Markdown, CSV or JSON.
 * The structs borrow everything, and the caller owns `out`.  Every energy is marked as an estimate. */
#ifndef IPW_REPORT_ESTIMATE_REPORT_H
#define IPW_REPORT_ESTIMATE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "estimate/budget.h"
#include "estimate/workload_estimate.h"
#include "estimate/estimate_grid.h"
#include "estimate/recommend.h"

struct legacy_estimate;
struct serving_curve;
struct serving_load;
struct serving_policy;
struct serving_slo;
struct tariff;
struct text;

/* One estimate. */
struct estimate_report {
    const struct workload_estimate *estimate; /* with its passes */
    const struct subgraph_total *rows;
    size_t row_count;
    const struct budget *budget;
    const struct recommendations *recommendations;
    int devices_to_fit;          /* devices needed if it exceeds device memory; 0: unknown */
    size_t top;                  /* subgraphs to show; 0: all */
    bool shows_figures;          /* of the device, with their sources */
    const struct tariff *tariff; /* for cost and emissions; NULL: none */
};

/* Computes the other parts of a report: subgraphs, recommendations, the devices that it would fit on.  The parts must
 * outlive the report; free(parts->rows), also after an error. */
struct estimate_parts {
    struct subgraph_total *rows;
    struct recommendations proposals;
};
enum err estimate_report_make(const struct recommend_question *question,
                              struct estimate_parts *parts, struct estimate_report *out,
                              struct error *why) MUST_USE;

void estimate_text(const struct estimate_report *report, bool color, struct text *out);
void estimate_markdown(const struct estimate_report *report, struct text *out);
void estimate_json(const struct estimate_report *report, struct text *out);
/* One line per subgraph. */
void estimate_csv(const struct estimate_report *report, struct text *out);

/* Several estimates. */
struct points_report {
    const struct estimate_grid *points; /* in display order */
    const struct budget *budget;
    size_t top; /* rows of text and Markdown, always including the frontier; 0: all */
    const struct tariff *tariff; /* NULL: none */
};

void points_text(const struct points_report *report, bool color, struct text *out);
void points_markdown(const struct points_report *report, struct text *out);
void points_json(const struct points_report *report, struct text *out);
/* One line per point. */
void points_csv(const struct points_report *report, struct text *out);

/* Serving under load (`--serve`): serving_report.c. */
struct serving_report {
    const struct workload_spec *spec;
    const struct hardware *hardware;
    const struct estimate_config *config;
    const struct serving_policy *policy;
    const struct serving_load *load;
    const struct serving_slo *slo;
    const struct serving_curve *curve;
    const struct tariff *tariff;
    const char *trace;             /* path; NULL: Poisson arrivals by `seed` */
    const char *measured;          /* path of measured steps; NULL: estimated */
    double relative_s, relative_j; /* of steps */
    double kv_bytes;               /* per token, on one device */
    unsigned seed;
};

void serving_text(const struct serving_report *report, bool color, struct text *out);
void serving_markdown(const struct serving_report *report, struct text *out);
void serving_json(const struct serving_report *report, struct text *out);
/* One line per load. */
void serving_csv(const struct serving_report *report, struct text *out);

/* The legacy model (`--model-compat`), with the digits of its own reports. */
void compat_text(const struct legacy_estimate *estimate, struct text *out);
void compat_json(const struct legacy_estimate *estimate, struct text *out);

#endif
