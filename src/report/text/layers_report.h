/* What `ipw layers` says about the models it measured, as text and as JSON. */
#ifndef IPW_REPORT_LAYERS_REPORT_H
#define IPW_REPORT_LAYERS_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "port/proc.h"

struct host_report;
struct layers_options;
struct layers_result;
struct text;

struct layers_report {
    const struct layers_result *result;
    size_t model_count; /* that were asked for; the result has at least one */
    const struct layers_options *options;
    const struct host_report *host;
    struct own_cost own; /* of the whole process, the model's work included */
    double read_s;       /* of it, reading sensors */
    unsigned long reads;
};

void layers_text(const struct layers_report *report, bool color, struct text *out);
void layers_json(const struct layers_report *report, struct text *out);

#endif
