/* Drawing figures by gnuplot, a program of its own that is looked for in PATH and never linked.  Nothing
 * here keeps state. */
#ifndef IPW_REPORT_GNUPLOT_H
#define IPW_REPORT_GNUPLOT_H

#include <stdbool.h>

#include "core/err.h"
#include "report/plot/figure.h"

struct output;

/* ERR_UNSUPPORTED, with how to install it, when PATH has none. */
enum err gnuplot_available(struct error *why) MUST_USE;

/* Writes the picture to a file that was opened for it. */
enum err gnuplot_draw(const struct figure *figure, enum figure_format format, bool dark,
                      struct output *output, struct error *why) MUST_USE;

#endif
