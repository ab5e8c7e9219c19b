/* What `ipw run` says about the runs it measured, as text and as JSON. */
#ifndef IPW_REPORT_RUN_REPORT_H
#define IPW_REPORT_RUN_REPORT_H

#include <stdbool.h>

#include "port/proc.h"

struct exec_result;
struct host_report;
struct tariff;
struct text;

struct run_report {
    char *const *argv;
    const struct exec_result *result;
    const struct host_report *host;
    struct own_cost own;
    unsigned long reads;
    const struct tariff *tariff; /* of cost and emissions; NULL: none */
};

void run_text(const struct run_report *report, bool color, struct text *out);
void run_json(const struct run_report *report, struct text *out);

#endif
