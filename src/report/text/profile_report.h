/* The report of `ipw profile` for people, from the summary of the run; and several models side by side: accuracy
 * against energy, and which of them are Pareto-optimal. */
#ifndef IPW_REPORT_TEXT_PROFILE_REPORT_H
#define IPW_REPORT_TEXT_PROFILE_REPORT_H

#include <stdbool.h>

struct profile_family;
struct summary;
struct text;

void profile_text(const struct summary *run, bool color, struct text *out);

void family_text(const struct profile_family *family, bool color, struct text *out);
void family_json(const struct profile_family *family, struct text *out);

#endif
