/* An analysis's result as text, by the layout of its JSON alone, so that a new analysis needs no code
 * here: a summary is a list, an array or object of like objects a table; units come from the keys. */
#ifndef IPW_REPORT_ANALYSIS_REPORT_H
#define IPW_REPORT_ANALYSIS_REPORT_H

#include <stdbool.h>

struct jv;
struct text;

/* Briefly: no more than some rows a table, and only what fits; verbose: all. */
void analysis_text(const struct jv *result, bool verbose, bool color, struct text *out);

#endif
