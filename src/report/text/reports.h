/* What commands report for people: one function per report.  The caller owns what goes in and the text that comes out.
 * Reports with types of their own that others fill in (compare_report.h, power_report.h ...) have their own header. */
#ifndef IPW_REPORT_TEXT_REPORTS_H
#define IPW_REPORT_TEXT_REPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "port/proc.h"

struct clock_choice;
struct clock_policy;
struct data_findings;
struct exec_result;
struct host_report;
struct layers_results;
struct optimize_goal;
struct profile_family;
struct summary;
struct tariff;
struct text;

/* ---- ipw run ---- */

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

/* ---- ipw profile ---- */

void profile_text(const struct summary *run, bool color, struct text *out);

/* Several models side by side: accuracy against energy, and which of them are Pareto-optimal. */
void family_text(const struct profile_family *family, bool color, struct text *out);
void family_json(const struct profile_family *family, struct text *out);

/* ---- ipw layers ---- */

void layers_text(const struct layers_results *results, bool color, struct text *out);

/* ---- ipw optimize ---- */

/* The best setting of each application, what it saves, and one clock for all. */
struct optimize_report {
    const char *objective; /* "edp" */
    const struct optimize_goal *goal;
    const struct clock_choice *choices;
    size_t count;
    const struct clock_policy *policies;
    size_t policy_count;
    unsigned rule;                        /* enum policy_rule, of the policies */
    const struct data_findings *findings; /* NULL: none at hand */
    const char *source;                   /* the model's file; NULL: measurements */
    const char *apply; /* the command that makes the recommended setting; NULL: that of its clock */
    const char *gpus;  /* UUIDs, with commas, of those that were measured; NULL: not known */
};

void optimize_text(const struct optimize_report *report, bool color, struct text *out);
void optimize_json(const struct optimize_report *report, struct text *out);
void optimize_csv(const struct optimize_report *report, struct text *out);

#endif
