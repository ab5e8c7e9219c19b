#include "report/text/validate_report.h"

#include "core/text.h"
#include "core/units.h"
#include "catalog/hardware.h"
#include "estimate/validate.h"
#include "report/text/format.h"
#include "report/text/table.h"

enum { ROWS_SHOWN = 60 };

static void add_value(struct table *table, double value, const char *unit)
{
    char number[FORMAT_MAX];
    table_add(table, format_si(number, value, unit));
}

/* "+12 %" of predicted against measured. */
static void add_error(struct table *table, double measured, double predicted)
{
    if (is_known(measured) && is_known(predicted) && measured > 0)
        table_addf(table, "%+.0f %%", 100 * (predicted / measured - 1));
    else
        table_add(table, "-");
}

static void rows_to_text(const struct validation *v, bool colour, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"row", false}, {"bound by", false}, {"measured", true},  {"predicted", true},
        {"off", true},  {"measured", true},  {"predicted", true}, {"off", true},
    };
    struct table table;
    size_t shown = v->count < ROWS_SHOWN ? v->count : ROWS_SHOWN;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < shown; i++) {
        const struct validate_row *row = &v->rows[i];
        table_add(&table, row->label);
        table_add(&table, estimate_bound_name(row->predicted.regime));
        add_value(&table, row->measured_s, "s");
        add_value(&table, row->predicted.latency_s, "s");
        add_error(&table, row->measured_s, row->predicted.latency_s);
        add_value(&table, row->measured_j, "J");
        add_value(&table, row->predicted.joules, "J");
        add_error(&table, row->measured_j, row->predicted.joules);
    }
    table_write(&table, "   ", colour, out);
    table_release(&table);
    if (shown < v->count)
        text_addf(out, "   and %zu more (--json has them)\n", v->count - shown);
}

static void error_cells(struct table *table, const struct validate_error *error)
{
    if (error->rows == 0) {
        table_add(table, "-");
        table_add(table, "-");
        table_add(table, "");
        return;
    }
    table_addf(table, "%.1f %%", 100 * error->mape);
    table_addf(table, "%+.1f %%", 100 * error->bias);
    table_addf(table, "%zu", error->rows);
}

static void regimes_to_text(const struct validation *v, bool colour, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"bound by", false},   {"latency MAPE", true}, {"bias", true}, {"rows", true},
        {"energy MAPE", true}, {"bias", true},         {"rows", true},
    };
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (unsigned bound = 0; bound <= BOUND_COUNT; bound++) {
        struct validate_sums sums = validate_sum(v, (enum estimate_bound)bound);
        if (sums.rows == 0)
            continue;
        table_add(&table,
                  bound < BOUND_COUNT ? estimate_bound_name((enum estimate_bound)bound) : "all");
        error_cells(&table, &sums.latency);
        error_cells(&table, &sums.energy);
    }
    table_write(&table, "   ", colour, out);
    table_release(&table);
}

void validate_text(const struct validate_report *report, bool colour, struct text *out)
{
    const struct validation *v = report->validation;
    text_addf(out, " %s against %s\n\n", report->hardware->name, report->data);
    rows_to_text(v, colour, out);
    text_add(out, "\n");
    regimes_to_text(v, colour, out);
    text_add(out, "\n");
    if (v->short_rows)
        text_addf(out, "   joules of %zu rows not compared: under 1 ms, which no meter resolves\n",
                  v->short_rows);
    if (v->other_rows)
        text_addf(out, "   %zu rows left out by --where\n", v->other_rows);
    if (v->is_estimated)
        text_add(out, "   the measured joules are ESTIMATED: by a model, not by a meter\n");
    if (is_known(report->most))
        text_addf(out, "   at most %.4g %% asked for: %s\n", 100 * report->most,
                  report->verdict == VALIDATE_PASS   ? "PASS"
                  : report->verdict == VALIDATE_FAIL ? "FAIL"
                                                     : "UNKNOWN, nothing was compared");
}
