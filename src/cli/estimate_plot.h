/* Draws what `ipw estimate` found into the file of --plot; its suffix says how. */
#ifndef IPW_CLI_ESTIMATE_PLOT_H
#define IPW_CLI_ESTIMATE_PLOT_H

#include "core/err.h"

struct figure;

/* ERR_USAGE for a name that is no picture's, before anything is computed. */
enum err estimate_plot_check(const char *path, struct error *why) MUST_USE;
enum err estimate_plot_draw(struct figure *figure, const char *path, struct error *why) MUST_USE;

#endif
