/* The result of an analysis as text, by its layout alone, so that a new analysis needs no code here: in brief its
 * finding; verbose all of it, a summary as a list, a list or group of like groups as a table. */
#ifndef IPW_REPORT_ANALYSIS_REPORT_H
#define IPW_REPORT_ANALYSIS_REPORT_H

#include <stdbool.h>

struct result;
struct text;

void analysis_text(const struct result *result, bool verbose, bool color, struct text *out);

#endif
