/* What plots of several runs share.  Nothing here keeps state. */
#ifndef IPW_REPORT_PLOTS_ACROSS_H
#define IPW_REPORT_PLOTS_ACROSS_H

#include <stddef.h>

#include "report/plot/figure.h"
#include "report/plot/plot.h"

/* How to call a run among these: by what differs between them (model, hardware, dataset, concurrency),
 * and by its directory where nothing does. */
void run_title(const struct plot_source *source, size_t run, char *to, size_t size);

/* J per output token against something that differs between the runs: a line for each model and machine,
 * with ±1.96 standard uncertainties.  ERR_NO_DATA where fewer than two runs have it, or all the same. */
enum err draw_per_token(const struct plot_source *source, double (*of)(const struct run_figures *run),
                        const char *what, const char *x_label, struct figure *figure,
                        struct error *why) MUST_USE;

#endif
