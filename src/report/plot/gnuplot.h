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

/* For --plot FILE: by the suffix of the path.  The check is for before anything is computed; drawing releases the
 * figure, and returns `made` where that is an error. */
enum err gnuplot_check_file(const char *path, struct error *why) MUST_USE;
enum err gnuplot_draw_file(struct figure *figure, enum err made, const char *path,
                           struct error *why) MUST_USE;

#endif
