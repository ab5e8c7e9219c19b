/* What changes while a run goes on, and what its first queries suffer. */
#include <math.h>
#include <stdlib.h>

#include "analysis/columns.h"
#include "analysis/quality/checks.h"
#include "core/text.h"
#include "core/units.h"
#include "stats/correlation.h"
#include "stats/fit.h"
#include "stats/quantile.h"

enum { TREND_MOST = 100000, TREND_LEAST = 10, COLD_LEAST = 10 };

/* A trend is told when chance makes one so clear once in a hundred runs, and when it matters. */
#define P_MOST     0.01
#define Z_MOST     3.5
#define MAD_TO_STD 1.4826022185056018

static const struct trend_row {
    const char *check, *what, *unit;
    enum run_number numerator, denominator; /* RUN_NUMBERS: the column itself */
    double share, amount;                   /* what matters: of the median, or in the unit */
} TRENDS[] = {
    {"temperature_drift", "temperature", "°C", RUN_TEMPERATURE, RUN_NUMBERS, INFINITY, 5},
    {"energy_drift", "energy an output token", "J", RUN_JOULES, RUN_OUTPUT_TOKENS, 0.05, INFINITY},
    {"power_drift", "mean power of a query", "W", RUN_WATTS, RUN_NUMBERS, 0.05, INFINITY},
    {"speed_drift", "time an output token", "s", RUN_LATENCY, RUN_OUTPUT_TOKENS, 0.05, INFINITY},
};

static double value_of(const struct run_table *table, const struct trend_row *row, size_t i)
{
    if (!run_completed(table, i))
        return UNKNOWN;
    return row->denominator == RUN_NUMBERS ? run_number(table, row->numerator, i)
                                           : row_ratio(table, row->numerator, row->denominator, i);
}

static void tell_trend(struct checks *checks, const struct trend_row *row, double change,
                       double middle, double p)
{
    char size[64];
    bool matters = fabs(change) > row->amount || fabs(change) > row->share * fabs(middle);
    bool drifts = p < P_MOST && matters;
    if (isfinite(row->share))
        str_format(size, sizeof size, "%+.1f %% of its median", 100 * change / fabs(middle));
    else
        str_format(size, sizeof size, "%+.1f %s", change, row->unit);
    check_put(checks, row->check, drifts ? CHECK_WARNING : CHECK_GOOD,
              "the %s changes by %s over the run (p = %.2g)", row->what, size, p);
}

static enum err check_trend(struct checks *checks, const struct trend_row *row)
{
    const struct run_table *table = checks->table;
    size_t step = table->rows / TREND_MOST + 1, most = table->rows / step + 1, count = 0;
    double *order = malloc(most * sizeof *order), *values = malloc(most * sizeof *values);
    struct theil_sen line = {0};
    struct correlation trend = {0, UNKNOWN, UNKNOWN};
    enum err err = order && values ? ERR_OK : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < table->rows; i += step) {
        values[count] = value_of(table, row, i);
        order[count] = (double)i;
        count += is_known(values[count]);
    }
    if (!err && count >= TREND_LEAST) {
        double length = order[count - 1] - order[0];
        err = kendall(order, values, count, &trend);
        if (!err)
            err = theil_sen(order, values, count, &line);
        if (!err && is_known(trend.p_value))
            tell_trend(checks, row, line.slope * length, select_median(values, count),
                       trend.p_value);
        else if (!err)
            check_put(checks, row->check, CHECK_GOOD, "the %s is always the same", row->what);
    } else if (!err) {
        check_put(checks, row->check, CHECK_UNKNOWN,
                  "the %s is known of %zu queries; a trend needs %d", row->what, count,
                  TREND_LEAST);
    }
    free(order);
    free(values);
    return err;
}

enum err check_trends(struct checks *checks)
{
    enum err err = ERR_OK;
    for (size_t i = 0; !err && i < sizeof TRENDS / sizeof *TRENDS; i++)
        err = check_trend(checks, &TRENDS[i]);
    return err;
}

/* ---- cold starts ---- */

/* The first completed query; rows follow the time at which queries ended. */
static size_t first_of(const struct run_table *table)
{
    size_t row = 0;
    while (row < table->rows &&
           !(run_completed(table, row) && is_known(run_number(table, RUN_TTFT, row))))
        row++;
    return row;
}

enum err check_cold_start(struct checks *checks)
{
    const struct run_table *table = checks->table;
    double *values = NULL;
    size_t count, first = first_of(table);
    enum err err = known_values(table, RUN_TTFT, &values, &count);
    if (!err && (count < COLD_LEAST || first == table->rows)) {
        check_put(checks, "cold_start", CHECK_UNKNOWN,
                  "the time to the first token is known of %zu queries; a comparison needs %d",
                  count, COLD_LEAST);
    } else if (!err) {
        double value = run_number(table, RUN_TTFT, first), middle = select_median(values, count);
        for (size_t i = 0; i < count; i++)
            values[i] = fabs(values[i] - middle);
        double spread = MAD_TO_STD * select_median(values, count);
        bool cold = value > middle + Z_MOST * spread && value > 1.5 * middle;
        check_put(checks, "cold_start", cold ? CHECK_WARNING : CHECK_GOOD,
                  "the first query took %.3g s to its first token, the median one %.3g s%s", value,
                  middle, cold ? ": more --warmup-queries would help" : "");
    }
    free(values);
    return err;
}
