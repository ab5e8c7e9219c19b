/* The report of `ipw profile` for people, from the summary of the run. */
#ifndef IPW_REPORT_TEXT_PROFILE_REPORT_H
#define IPW_REPORT_TEXT_PROFILE_REPORT_H

#include <stdbool.h>

struct summary;
struct text;

void profile_text(const struct summary *run, bool color, struct text *out);

#endif
