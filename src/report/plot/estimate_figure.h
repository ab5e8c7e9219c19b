/* Figures of estimates: where the joules of one go and how much memory it takes over time; many as energy
 * against latency, or against the context or prompt length.  They fill a figure that the caller releases. */
#ifndef IPW_REPORT_ESTIMATE_FIGURE_H
#define IPW_REPORT_ESTIMATE_FIGURE_H

#include "core/err.h"
#include "report/text/estimate_report.h"

struct figure;

enum err estimate_figure(const struct estimate_report *report, struct figure *figure,
                         struct error *why) MUST_USE;
enum err points_figure(const struct points_report *report, struct figure *figure, struct error *why)
    MUST_USE;

#endif
