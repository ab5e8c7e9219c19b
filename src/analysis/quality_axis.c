/* For plots, tables and pages with a Pareto frontier. */
#include "analysis/quality_axis.h"

#include "analysis/across.h"
#include "core/text.h"
#include "core/units.h"

void quality_axis_of(const struct run_figures *runs, size_t count, struct quality_axis *out)
{
    const struct summary_quality *first = NULL;
    *out = (struct quality_axis){0};
    for (size_t i = 0; i < count; i++) {
        if (is_known(runs[i].point.accuracy))
            return;
        if (!first && runs[i].point.quality.name[0])
            first = &runs[i].point.quality;
    }
    if (!first)
        return;
    chars_copy(out->name, first->name);
    out->is_low_better = first->better == BETTER_LOWER;
}

double quality_axis_value(const struct quality_axis *axis, const struct run_point *point)
{
    if (!axis->name[0])
        return point->accuracy;
    return str_equal(axis->name, point->quality.name) ? point->quality.value : UNKNOWN;
}

double quality_axis_benefit(const struct quality_axis *axis, const struct run_point *point)
{
    double value = quality_axis_value(axis, point);
    return axis->is_low_better ? -value : value;
}

void quality_axis_interval(const struct quality_axis *axis, const struct run_figures *run,
                           double *low, double *high)
{
    double half = NORMAL_95 * run->point.quality.plus_minus;
    double value = quality_axis_value(axis, &run->point);
    *low = axis->name[0] ? value - half : run->accuracy_low;
    *high = axis->name[0] ? value + half : run->accuracy_high;
}
