/* Pictures of estimates: where the joules of one go and what memory it takes meanwhile, many as energy against latency, or against
 * the length of the context.  They fill a figure that the caller releases. */
#ifndef IPW_REPORT_ESTIMATE_FIGURE_H
#define IPW_REPORT_ESTIMATE_FIGURE_H

#include <stdbool.h>

#include "core/err.h"
#include "report/text/estimate_report.h"

struct figure;

enum err estimate_figure(const struct estimate_report *report, struct figure *figure,
                         struct error *why) MUST_USE;
enum err points_figure(const struct points_report *report, struct figure *figure, struct error *why)
    MUST_USE;
/* A line for each device, format and batch; of_context: against the context, else against the prompt. */
enum err points_length_figure(const struct points_report *report, bool of_context,
                              struct figure *figure, struct error *why) MUST_USE;

#endif
