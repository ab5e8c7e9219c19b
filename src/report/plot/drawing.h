/* What the plots share: points with their line, headings.  Nothing here keeps state. */
#ifndef IPW_REPORT_PLOTS_DRAWING_H
#define IPW_REPORT_PLOTS_DRAWING_H

#include <stddef.h>

#include "rundir/run_table.h"
#include "report/plot/figure.h"

struct linear_fit;

/* "llama3.2:1b on H100: what", and a note of how many queries. */
void draw_heading(struct figure *figure, const struct run_table *table, const char *what);

/* The last part of a path, or of "organisation/name"; any other name is whole. */
const char *short_name(const char *name);

/* Up to so many points each is drawn. */
enum { CLOUD_EXACT = 3000 };

/* A query's two numbers, and the line through them: how the pictures of the Python IPW are made. */
struct pair_plot {
    enum run_number x, y;
    enum run_number instead; /* of y, where no query has that: the machine's; or y itself */
    const char *what, *x_label, *y_label;
    bool log_fit; /* one over the logarithm of x as well */
};
enum err draw_pairs(const struct pair_plot *plot, const struct run_table *table,
                    struct figure *figure, struct error *why) MUST_USE;

/* A line over the whole height, with its name in the legend. */
void draw_upright(struct figure *figure, struct figure_panel *panel, enum figure_colour colour,
                  double x, double top, const char *name);

#endif
