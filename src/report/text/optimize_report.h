/* What `ipw optimize` reports: the best setting of each application, what it saves, and one clock for all. */
#ifndef IPW_REPORT_OPTIMIZE_REPORT_H
#define IPW_REPORT_OPTIMIZE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

struct clock_choice;
struct clock_policy;
struct data_findings;
struct optimize_goal;
struct text;

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
