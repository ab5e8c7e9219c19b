/* Text and Markdown of `ipw estimate`, from results (estimate/estimate_result.h): one estimate in full, or many as a
 * table.  Every energy is marked as an estimate.  Serving and the legacy model have structs of their own, which borrow
 * everything; the caller owns `out`. */
#ifndef IPW_REPORT_ESTIMATE_REPORT_H
#define IPW_REPORT_ESTIMATE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "report/print/print.h"

struct estimate_config;
struct hardware;
struct legacy_estimate;
struct serving_curve;
struct serving_load;
struct serving_policy;
struct serving_slo;
struct tariff;
struct text;
struct workload_spec;

/* One estimate: estimate_report.c. */
print_view estimate_text, estimate_markdown;

/* Several: estimate_points.c. */
print_view points_text, points_markdown;

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
