/* A comparison of runs as text, Markdown or JSON.  No state. */
#ifndef IPW_REPORT_COMPARE_REPORT_H
#define IPW_REPORT_COMPARE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/compare_set.h"

struct text;

struct compare_report {
    const struct compare_groups *groups;
    const struct compare_set *set;
    const struct compare_check *checks;
    size_t check_count;
    bool confident;
    uint64_t seed;
};

void compare_text(const struct compare_report *report, bool color, struct text *out);
void compare_markdown(const struct compare_report *report, struct text *out);
void compare_json(const struct compare_report *report, struct text *out);

/* One line about a bound and its result. */
enum { CHECK_LINE_MAX = 512 };
char *compare_check_line(const struct compare_check *check, const struct comparison *comparison,
                         enum compare_outcome outcome, bool confident, char *to);

#endif
