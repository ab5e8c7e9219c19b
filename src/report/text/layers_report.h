/* The text report of `ipw layers`. */
#ifndef IPW_REPORT_LAYERS_REPORT_H
#define IPW_REPORT_LAYERS_REPORT_H

#include <stdbool.h>

struct layers_results;
struct text;

void layers_text(const struct layers_results *results, bool color, struct text *out);

#endif
