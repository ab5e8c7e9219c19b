/* The quality axis of runs that are shown together.  Plain data. */
#ifndef IPW_ANALYSIS_QUALITY_AXIS_H
#define IPW_ANALYSIS_QUALITY_AXIS_H

#include <stdbool.h>
#include <stddef.h>

struct run_figures;
struct run_point;

/* Of runs shown together: their accuracy or, where none has one, the first metric of all answers of one of them. */
struct quality_axis {
    char name[24]; /* "": the accuracy */
    bool is_low_better;
};
void quality_axis_of(const struct run_figures *runs, size_t count, struct quality_axis *out);
double quality_axis_value(const struct quality_axis *axis, const struct run_point *point);
double quality_axis_benefit(const struct quality_axis *axis, const struct run_point *point);
/* 95 %. */
void quality_axis_interval(const struct quality_axis *axis, const struct run_figures *run,
                           double *low, double *high);

#endif
