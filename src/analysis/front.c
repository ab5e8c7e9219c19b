/* The Pareto frontier of runs by two of their figures. */
#include <stdlib.h>

#include "analysis/across.h"
#include "core/result.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "stats/pareto.h"

static void put_axis(struct result *result, const char *key, const struct front_axis *axis)
{
    result_group(result, key);
    result_text(result, "key", axis->key);
    result_text(result, "label", axis->label);
    result_text(result, "unit", axis->unit);
    result_text(result, "better", axis->is_low_better ? "low" : "high");
    result_end(result);
}

static void put_point(struct result *result, const struct front_point *point,
                      const struct front_axis *x, const struct front_axis *y, bool is_optimal)
{
    result_group(result, NULL);
    result_text(result, "id", point->id);
    result_text(result, "name", point->name);
    result_number(result, "x", point->x, x->unit);
    result_uncertain(result, "x", point->x_error);
    result_number(result, "x_plus_minus", point->x_error, x->unit);
    result_number(result, "y", point->y, y->unit);
    result_uncertain(result, "y", point->y_error);
    result_number(result, "y_plus_minus", point->y_error, y->unit);
    result_text(result, "group", point->group);
    result_text(result, "energy_method", point->method);
    result_flag(result, "on_front", is_optimal);
    result_end(result);
}

void front_to_result(const struct front_axis *x, const struct front_axis *y,
                     const struct front_point *points, size_t count, struct result *result)
{
    double *cost = xcalloc(count + 1, sizeof *cost);
    double *benefit = xcalloc(count + 1, sizeof *benefit);
    bool *optimal = xcalloc(count + 1, sizeof *optimal);
    for (size_t i = 0; i < count; i++) {
        cost[i] = x->is_low_better ? points[i].x : -points[i].x;
        benefit[i] = y->is_low_better ? -points[i].y : points[i].y;
    }
    pareto_mark(cost, benefit, count, optimal);
    put_axis(result, "x", x);
    put_axis(result, "y", y);
    result_list(result, "points");
    for (size_t i = 0; i < count; i++)
        put_point(result, &points[i], x, y, optimal[i]);
    result_end(result);
    free(cost);
    free(benefit);
    free(optimal);
}
