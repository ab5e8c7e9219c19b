#include "report/profile_report.h"

#include <inttypes.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "port/json_read.h"
#include "report/format.h"
#include "report/table.h"
#include "runner/profile.h"

/* The rows of "statistics", as people read them: key, label, unit shown, from the base unit. */
static const struct {
    const char *key, *label, *unit;
    double scale;
} ROWS[] = {
#define ROW(constant, key, label, unit, scale) {key, label, unit, scale},
#include "runner/profile_rows.def"
#undef ROW
};

static void add_cell(struct table *table, double value, double scale)
{
    char cell[FORMAT_MAX];
    if (!is_known(value)) {
        table_add(table, "-");
        return;
    }
    value *= scale;
    double size = value < 0 ? -value : value;
    str_format(cell, sizeof cell, size >= 1000 ? "%.0f" : size >= 10 ? "%.2f" : "%.4g", value);
    table_add(table, cell);
}

static void write_statistics(const struct jv *statistics, bool colour, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"per query", false}, {"mean", true}, {"median", true}, {"min", true},
        {"max", true},        {"std", true},  {"unit", false},
    };
    static const char *const FIGURES[] = {"avg", "median", "min", "max", "std"};
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const struct jv *row = jv_get(statistics, ROWS[i].key);
        if (!row)
            continue;
        table_add(&table, ROWS[i].label);
        for (size_t f = 0; f < sizeof FIGURES / sizeof *FIGURES; f++)
            add_cell(&table, jv_number(jv_get(row, FIGURES[f])), ROWS[i].scale);
        table_add(&table, ROWS[i].unit);
    }
    table_write(&table, "   ", colour, out);
    table_release(&table);
}

static double figure(const struct jv *report, const char *path)
{
    return jv_number(jv_path(report, path));
}

static void write_energy(const struct jv *report, struct text *out)
{
    char cell[FORMAT_MAX], other[FORMAT_MAX];
    const char *method = jv_text(jv_path(report, "energy.method"));
    const char *note = jv_text(jv_path(report, "energy.note"));
    const char *source = jv_text(jv_path(report, "energy.source"));
    if (!method) {
        text_addf(out, "   energy unknown: %s; see `ipw doctor`\n", note ? note : "no sensor");
        return;
    }
    bool estimated = strcmp(method, "estimated") == 0;
    text_addf(out, "   energy        %s%s", estimated ? "~" : "",
              format_with_error(cell, figure(report, "energy.joules"),
                                figure(report, "energy.plus_minus"), "J"));
    text_addf(out, " by %s (%s), %s covered\n", estimated ? "estimate" : method,
              source ? source : "?", format_percent(other, figure(report, "energy.coverage")));
    text_addf(out, "   of which      %s queries", format_si(cell, figure(report, "joules.queries"), "J"));
    if (is_known(figure(report, "joules.queries_idle_share")))
        text_addf(out, " (%s of it idle share)",
                  format_si(cell, figure(report, "joules.queries_idle_share"), "J"));
    if (figure(report, "joules.failed") > 0)
        text_addf(out, ", %s failed", format_si(cell, figure(report, "joules.failed"), "J"));
    if (is_known(figure(report, "joules.idle")))
        text_addf(out, ", %s idle between", format_si(cell, figure(report, "joules.idle"), "J"));
    text_addf(out, ", %s unattributed",
              format_si(cell, figure(report, "joules.unattributed"), "J"));
    if (is_known(figure(report, "conservation_error")))
        text_addf(out, "; adds up to %.2g", figure(report, "conservation_error"));
    text_add(out, "\n");
    if (note)
        text_addf(out, "   note: %s\n", note);
    if (estimated)
        text_add(out, "   ~ estimated from CPU use, not measured: see `ipw doctor`\n");
    if (is_known(figure(report, "joules.judge")))
        text_addf(out, "   judge         %s, apart from the above\n",
                  format_si(cell, figure(report, "joules.judge"), "J"));
}

static void write_score(const struct jv *report, struct text *out)
{
    char cell[FORMAT_MAX];
    double accuracy = figure(report, "accuracy");
    text_addf(out, "   tokens        %s per output token",
              format_si(cell, figure(report, "joules_per_output_token"), "J"));
    if (is_known(figure(report, "output_tokens_per_s")))
        text_addf(out, ", %.4g output tokens/s", figure(report, "output_tokens_per_s"));
    text_add(out, "\n");
    if (!is_known(accuracy)) {
        text_add(out, "   accuracy      not graded\n");
        return;
    }
    text_addf(out, "   accuracy      %s", format_percent(cell, accuracy));
    text_addf(out, " (%.0f of %.0f; 95 %% interval %.1f to %.1f %%)", figure(report, "correct"),
              figure(report, "correct") + figure(report, "incorrect"),
              100 * figure(report, "accuracy_interval_95.0"),
              100 * figure(report, "accuracy_interval_95.1"));
    if (figure(report, "ungraded") > 0)
        text_addf(out, ", %.0f not graded", figure(report, "ungraded"));
    text_addf(out, "\n   intelligence  %s", format_si(cell, figure(report, "ipj"), "/J"));
    text_addf(out, " per joule (IPJ), %s per watt (IPW)\n",
              format_si(cell, figure(report, "ipw"), "/W"));
}

static void write_report(const struct profile_result *result, const struct jv *report, bool colour,
                         struct text *out)
{
    text_addf(out, "\n %" PRIu64 " queries: %" PRIu64 " completed, %" PRIu64 " failed%s\n\n",
              result->queries, result->completed, result->failed,
              result->signal ? " (interrupted: --resume continues)" : "");
    write_statistics(jv_get(report, "statistics"), colour, out);
    text_add(out, "\n");
    write_energy(report, out);
    write_score(report, out);
    text_addf(out, "\n %s\n", result->directory);
}

enum err profile_text(const struct profile_result *result, bool colour, struct text *out,
                      struct error *why)
{
    struct jv *report;
    enum err err = jv_parse(text_get(&result->report), result->report.length, &report, why);
    if (err)
        return err;
    write_report(result, report, colour, out);
    jv_free(report);
    return out->failed ? err_set(why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}
