/* The contract of a plot: a picture of what a run, several runs, or a measurement of layers holds.
 *
 * A driver is a `const struct plot_driver` in a .c file of src/report/plot, and one line in plots.def: see docs/adding-a-plot.md.  It fills a figure; what it has no data for is ERR_NO_DATA
 * with what is missing, and no empty picture is drawn.
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

/* What a driver can draw: bits. */
enum {
    PLOT_OF_RUN = 1,
    PLOT_OF_RUNS = 2,
    PLOT_OF_LAYERS = 4,
    PLOT_OF_ALL_LAYERS = 8,
    PLOT_OF_SWEEP = 16,
    PLOT_OF_CURVE = 32
};

/* One of the five is there, and the others are NULL. */
struct plot_source {
    const struct run_table *table;
    const struct run_figures *runs; /* two at least */
    size_t run_count;
    const struct layers_result *layers; /* one, or all that were given */
    size_t layer_count;
    const struct sweep_points *sweep;
    const struct freq_curve *curve; /* measurements at several clocks, from elsewhere */
    /* Set by plot_draw. */
    const struct plot_driver *driver;
    const struct run_names *names; /* of the runs */
    struct uncertainty common;     /* to all runs, and in no error of them */
};

struct plot_driver {
    const char *name; /* of its file too */
    const char *summary;
    unsigned of;             /* PLOT_OF_RUN ... */
    struct run_wanted needs; /* columns, of a run */
    const void *row;         /* where several plots share a function: what differs between them */
    enum err (*draw)(const struct plot_source *source, struct figure *figure, struct error *why);
};

/* NULL-terminated, in the order of plots.def. */
extern const struct plot_driver *const PLOT_DRIVERS[];

/* NULL, and the nearest name in *why, when there is none of that name. */
const struct plot_driver *plot_driver_find(const char *name, struct error *why);

/* Fills a figure, which is the caller's to release whatever comes out, and has something on it: what a
 * driver left empty is ERR_NO_DATA, too. */
enum err plot_draw(const struct plot_driver *driver, const struct plot_source *source,
                   struct figure *figure, struct error *why) MUST_USE;

/* ---- estimates, as `ipw estimate --plot` draws them ---- */

struct estimate_report;
struct points_report;
struct serving_report;

/* Where the joules of one go, by subgraph and kind; and activations over time. */
enum err estimate_figure(const struct estimate_report *report, struct figure *figure,
                         struct error *why) MUST_USE;

/* Many: energy against prompt or context length where these differ, else against latency. */
enum err points_figure(const struct points_report *report, struct figure *figure, struct error *why)
    MUST_USE;

/* Serving: energy per token and latencies against the load. */
enum err serving_figure(const struct serving_report *report, struct figure *figure,
                        struct error *why) MUST_USE;

#endif
