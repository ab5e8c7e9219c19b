/* Energy, time and their products (EDP, ED2P) against the clock: of runs that differ in nothing else, of the settings of
 * a sweep, or of measurements that were imported.  The clock of a run is that of its busiest GPU, or of the CPU, while
 * requests ran, from its samples; that of a sweep is the setting, or another knob that was swept.
 *
 * clock_settings_release frees what a function here allocates; names are borrowed from the source. */
#ifndef IPW_ANALYSIS_CLOCK_SETTINGS_H
#define IPW_ANALYSIS_CLOCK_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

struct freq_curve;
struct run_figures;
struct sweep_points;

enum clock_measure { CLOCK_ENERGY, CLOCK_TIME, CLOCK_EDP, CLOCK_ED2P, CLOCK_MEASURES };

/* A run at its clock, or a setting of a sweep. */
struct clock_setting {
    const struct run_figures *run; /* NULL: of a sweep */
    double x;                      /* the clock in MHz, or another knob of a sweep */
    bool is_cpu;
    double values[CLOCK_MEASURES], errors[CLOCK_MEASURES]; /* errors: 95 % */
};

/* Settings with clock, energy and time, in order of the clock. */
struct clock_settings {
    struct clock_setting *items;
    size_t count;
    const char *each; /* "query", "run" */
    const char *knob; /* knob of a sweep other than the clock; NULL: the clock */
    char label[120];  /* of the x axis */
    double same;      /* settings within this relative difference are one */
    /* Of a sweep or imported measurements: */
    const char *application, *device, *method; /* method: "" if unknown */
    size_t measurements;                       /* attempts, or runs, in all settings */
    char excluded[160];                        /* why attempts were excluded; "" */
};

/* ERR_NO_DATA: fewer than two, or the clocks do not differ, or the runs differ in something else. */
enum err clock_settings_of_runs(const struct run_figures *runs, size_t count,
                                struct clock_settings *out, struct error *why) MUST_USE;
enum err clock_settings_of_sweep(const struct sweep_points *points, struct clock_settings *out,
                                 struct error *why) MUST_USE;
enum err clock_settings_of_curve(const struct freq_curve *curve, struct clock_settings *out,
                                 struct error *why) MUST_USE;
void clock_settings_release(struct clock_settings *settings);

/* The mean of the settings from `from` on that have the same x; returns the first of the others. */
size_t clock_settings_mean(const struct clock_settings *settings, enum clock_measure measure,
                           size_t from, double *x, double *value);
/* The first with the smallest value. */
const struct clock_setting *clock_settings_lowest(const struct clock_settings *settings,
                                                  enum clock_measure measure);

#endif
