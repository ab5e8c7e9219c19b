/* Nodes by the time of a run; then by operator, and the run as a whole beside its estimate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "report/text/reports.h"

enum { ROWS_MAX = 30, NAME_MAX_SHOWN = 40 };

void layers_nodes_head(const struct result_item *model, const char *name, struct text *out)
{
    double parameters = result_number_at(model, "parameters");
    text_addf(out, " energy by node of %s%s\n", plain_text(name).text,
              result_number_at(model, "interrupted") == 1 ? " (interrupted: partial)" : "");
    text_addf(out, " %s; %.0f threads", plain_text(result_text_at(model, "description")).text,
              result_number_at(model, "workload.threads"));
    if (is_known(parameters))
        text_addf(out, "; %.4g M parameters", parameters * 1e-6);
    text_addf(out, "\n one pass: a run on %s\n\n",
              plain_text(result_text_at(model, "inputs")).text);
}

/* ---- rows in the order of their time ---- */

struct rows {
    const struct result_item **items;
    size_t count;
};

static double time_of(const struct result_item *node)
{
    return result_number_at(node, "time_s");
}

/* What did not run comes last, by its estimate. */
static int by_time(const void *left, const void *right)
{
    const struct result_item *a = *(const struct result_item *const *)left;
    const struct result_item *b = *(const struct result_item *const *)right;
    double first = known_or(time_of(a), -1), second = known_or(time_of(b), -1);
    if (first == second) {
        first = known_or(result_number_at(a, "estimated_time_s"), 0);
        second = known_or(result_number_at(b, "estimated_time_s"), 0);
    }
    return (first < second) - (first > second);
}

static struct rows sorted_rows(const struct result_item *nodes)
{
    struct rows rows = {.items = xcalloc(result_length(nodes) + 1, sizeof *rows.items)};
    RESULT_EACH (one, nodes)
        rows.items[rows.count++] = one;
    if (rows.count)
        qsort(rows.items, rows.count, sizeof *rows.items, by_time);
    return rows;
}

/* ---- tables ---- */

/* The end of a long name, which distinguishes nodes. */
static void add_name(struct table *table, const char *name)
{
    size_t length = strlen(name);
    if (length <= NAME_MAX_SHOWN)
        table_add(table, plain_text(name).text);
    else
        table_addf(table, "...%s", plain_text(name + length - NAME_MAX_SHOWN + 3).text);
}

static void add_node(struct table *table, const struct result_item *node, const char *mark)
{
    char cell[FORMAT_MAX];
    double time_s = time_of(node), estimated = result_number_at(node, "estimated_time_s");
    double joules = result_number_at(node, "energy_j");
    const char *op = result_text_at(node, "op");
    add_name(table, result_text_at(node, "name"));
    table_add(table, op[0] ? plain_text(op).text : "(not run by this name)");
    table_add(table,
              format_with_error(cell, time_s, result_number_at(node, "time_plus_minus"), "s"));
    table_add(table, format_si(cell, estimated, "s"));
    table_add_known(table, time_s / estimated, "x %.2g", time_s / estimated);
    table_addf(table, "%s%s", is_known(joules) ? mark : "",
               format_with_error(cell, joules, result_number_at(node, "plus_minus"), "J"));
    table_add(table, format_si(cell, result_number_at(node, "estimated_energy_j"), "J"));
    table_add(table, format_percent(cell, result_number_at(node, "share")));
}

static void write_nodes(const struct result_item *model, const char *mark, bool color,
                        struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"node", false},        {"operator", false}, {"time", true},      {"estimated", true},
        {"vs. estimate", true}, {"energy", true},    {"estimated", true}, {"share", true},
    };
    struct table table = TABLE(COLUMNS);
    char a[FORMAT_MAX], b[FORMAT_MAX];
    struct rows rows = sorted_rows(result_at(model, "nodes"));
    double rest_s = UNKNOWN, rest_j = UNKNOWN;
    for (size_t i = 0; i < rows.count && i < ROWS_MAX; i++)
        add_node(&table, rows.items[i], mark);
    for (size_t i = ROWS_MAX; i < rows.count; i++) {
        add_known(&rest_s, time_of(rows.items[i]));
        add_known(&rest_j, result_number_at(rows.items[i], "energy_j"));
    }
    table_print(&table, "   ", color, out);
    if (rows.count > ROWS_MAX)
        text_addf(out, "   and %zu more: %s, %s (--json has all)\n", rows.count - ROWS_MAX,
                  format_si(a, rest_s, "s"), format_si(b, rest_j, "J"));
    text_add(out, "   share: of the nodes' joules; what the runtime fused is one row\n\n");
    free(rows.items);
}

/* ---- what was not joined ---- */

static void write_joins(const struct result_item *model, struct text *out)
{
    char cell[FORMAT_MAX];
    size_t unknown = 0, absent = 0;
    double unknown_s = 0;
    RESULT_EACH (one, result_at(model, "nodes")) {
        if (!result_text_at(one, "kernel")[0]) {
            unknown++;
            unknown_s += known_or(time_of(one), 0);
        } else if (!is_known(time_of(one))) {
            absent++;
        }
    }
    if (unknown)
        text_addf(
            out,
            "   not in the model's graph by name: %zu node%s of the runtime (%s), such as changes "
            "of layout\n",
            unknown, str_plural((double)unknown), format_si(cell, unknown_s, "s"));
    if (absent)
        text_addf(out, "   did not run by name: %zu kernel%s of the estimate, fused into others\n",
                  absent, str_plural((double)absent));
}

static void write_estimate(const struct result_item *model, struct text *out)
{
    char a[FORMAT_MAX], b[FORMAT_MAX], c[FORMAT_MAX];
    const struct result_item *setting = result_at(model, "settings.0");
    const char *unknown = result_text_at(model, "estimate.unknown");
    double pass_s = setting ? result_number_at(setting, "time_s") : UNKNOWN;
    double estimated = result_number_at(model, "estimate.time_s");
    if (unknown[0]) {
        text_addf(out, "   no estimate: %s\n", plain_text(unknown).text);
        return;
    }
    text_addf(
        out, "   a run took %s; estimated on %s: %s and %s\n", format_si(a, pass_s, "s"),
        plain_text(result_text_at(model, "estimate.device")).text,
        format_with_error(b, estimated, result_number_at(model, "estimate.time_plus_minus"), "s"),
        format_with_error(c, result_number_at(model, "estimate.energy_j"),
                          result_number_at(model, "estimate.plus_minus"), "J"));
}

void layers_nodes_tables(const struct result_item *model, const char *mark, bool color,
                         struct text *out)
{
    char a[FORMAT_MAX];
    write_nodes(model, mark, color, out);
    write_joins(model, out);
    write_estimate(model, out);
    text_addf(out, "   outside the nodes: %s of a run\n",
              format_si(a, result_number_at(model, "rest.time_s"), "s"));
}
