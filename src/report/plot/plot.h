/* The contract of a plot: a figure of a run, of several runs, or of measured layers.
 *
 * A driver is a `const struct plot_driver` in a .c file of src/report/plot, and one line in plots.def: see
 * docs/adding-a-plot.md.  It fills a figure; ERR_NO_DATA says what is missing, and no empty figure is drawn.
 *
 * Ownership: the caller owns every struct here; a driver keeps nothing. */
#ifndef IPW_REPORT_PLOT_H
#define IPW_REPORT_PLOT_H

#include <stddef.h>

#include "analysis/across.h"
#include "core/err.h"
#include "report/plot/figure.h"

struct freq_curve;
struct layers_result;
struct run_names;
struct sweep_points;

/* Inputs of a driver: bits. */
enum {
    PLOT_OF_RUN = 1,
    PLOT_OF_RUNS = 2,
    PLOT_OF_LAYERS = 4,
    PLOT_OF_ALL_LAYERS = 8,
    PLOT_OF_SWEEP = 16,
    PLOT_OF_CURVE = 32
};

/* Exactly one of the five is set; the others are NULL. */
struct plot_source {
    const struct run_table *table;
    const struct run_figures *runs; /* at least two */
    size_t run_count;
    const struct layers_result *layers; /* one, or all that were given */
    size_t layer_count;
    const struct sweep_points *sweep;
    const struct freq_curve *curve; /* imported measurements at several clocks */
    /* Set by plot_draw. */
    const struct plot_driver *driver;
    const struct run_names *names; /* of the runs */
    struct uncertainty common;     /* common to all runs, and in none of their errors */
};

struct plot_driver {
    const char *name; /* also the file name */
    const char *summary;
    unsigned of;             /* PLOT_OF_RUN ... */
    struct run_wanted needs; /* columns of a run */
    const void *row;         /* parameters of plots that share a function */
    enum err (*draw)(const struct plot_source *source, struct figure *figure, struct error *why);
};

/* NULL-terminated, in the order of plots.def. */
extern const struct plot_driver *const PLOT_DRIVERS[];

/* NULL, with the nearest name in *why, if there is none of that name. */
const struct plot_driver *plot_driver_find(const char *name, struct error *why);

/* Fills a figure, which the caller always releases; an empty one is ERR_NO_DATA, too. */
enum err plot_draw(const struct plot_driver *driver, const struct plot_source *source,
                   struct figure *figure, struct error *why) MUST_USE;

/* ---- estimates, as `ipw estimate --plot` draws them ---- */

struct result;

/* From the result of an estimate (estimate/estimate_result.h). */
typedef enum err estimate_plot(const struct result *result, struct figure *figure,
                               struct error *why);

/* Energy of one estimate by subgraph and kind; and activations over time. */
enum err estimate_figure(const struct result *result, struct figure *figure, struct error *why)
    MUST_USE;

/* Several estimates: energy against prompt or context length if these differ, else against latency. */
enum err points_figure(const struct result *result, struct figure *figure, struct error *why)
    MUST_USE;

/* Serving: energy per token and latencies against the load. */
enum err serving_figure(const struct result *result, struct figure *figure, struct error *why)
    MUST_USE;

#endif
