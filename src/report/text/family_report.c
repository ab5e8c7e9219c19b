/* The text of the result of `ipw demo`: several models side by side in a table as wide as a terminal, after its
 * conclusion. */
#include "report/text/reports.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "core/xalloc.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "rundir/summary.h"

enum { FAMILY_COLUMNS = 80, FAMILY_LETTERS = 20 };

/* The models of a result, and short names of them. */
struct family {
    const struct result *result;
    const struct result_item *models;
    struct run_names names;
};

/* A shipped model by its --model name; files by their differences, "file" for "models/file.gguf". */
static void name_members(struct family *family)
{
    size_t count = result_length(family->models);
    size_t i = 0;
    struct run_point *points = xcalloc(count + 1, sizeof *points);
    const struct run_point **list = xcalloc(count + 1, sizeof *list);
    RESULT_EACH (member, family->models) {
        const char *name = str_last_part(result_text_at(member, "model"));
        const char *end = strstr(name, ".gguf");
        size_t length = end && !end[5] ? (size_t)(end - name) : strlen(name);
        chars_format(points[i].model, "%.*s", (int)length, name);
        points[i].directory = points[i].model;
        list[i] = &points[i];
        i++;
    }
    run_names_of(list, count, FAMILY_LETTERS, &family->names);
    i = 0;
    RESULT_EACH (member, family->models) {
        if (str_equal(points[i].model, result_text_at(member, "model")))
            chars_copy(family->names.names[i], points[i].model);
        i++;
    }
    free(points);
    free(list);
}

static const char *name_of(const struct family *family, const struct result_item *member)
{
    size_t i = 0;
    RESULT_EACH (other, family->models) {
        if (other == member)
            break;
        i++;
    }
    return family->names.names[i];
}

/* ---- the table ---- */

/* Without its ±, which is common to all rows and stated once. */
static const char *member_figure(char *to, const struct result_item *member, const char *key,
                                 const char *unit)
{
    bool estimated = str_equal(result_text_at(member, "energy.method"), "estimated");
    double value = result_number_at(member, key);
    char figure[FORMAT_MAX];
    if (estimated)
        format_rough(figure, value, unit);
    else
        format_figure(figure, value, UNKNOWN, unit);
    str_format(to, FORMAT_MAX, "%s%s", estimated && is_known(value) ? "~" : "", figure);
    return to;
}

static void add_member(struct table *table, const struct result_item *member, const char *name)
{
    char cell[FORMAT_MAX];
    double low = result_number_at(member, "accuracy_interval_95.0");
    double rate = result_number_at(member, "output_tokens_per_s");
    table_addf(table, "%s %s", result_flag_at(member, "on_frontier") ? "*" : " ", name);
    table_add(table, format_percent(cell, result_number_at(member, "accuracy")));
    if (is_known(low))
        table_addf(table, "%.0f-%.0f %%", 100 * low,
                   100 * result_number_at(member, "accuracy_interval_95.1"));
    else
        table_add(table, "");
    table_add(table, member_figure(cell, member, "joules_per_query", "J"));
    table_add(table, member_figure(cell, member, "joules_per_output_token", "J"));
    table_add(table, member_figure(cell, member, "ipj", "1/J"));
    table_add(table, member_figure(cell, member, "ipw", "1/W"));
    table_add_known(table, rate, "%.0f", rate);
}

static bool is_of_workload(const struct result_item *member)
{
    return result_text_at(member, "workload")[0] != '\0';
}

static size_t count_members(const struct family *family, bool of_workloads)
{
    size_t count = 0;
    RESULT_EACH (member, family->models)
        count += is_of_workload(member) == of_workloads;
    return count;
}

/* Writes and releases a table with as many of its columns as fit, but at least the first `needed`. */
static void write_table(struct table *table, size_t needed, bool color, struct text *out)
{
    size_t count = table->width, width = 0; /* each column follows a space or two */
    size_t *widths = xcalloc(count + 1, sizeof *widths);
    table_widen(table, widths);
    for (size_t c = 0; c < count; c++)
        width += widths[c] ? widths[c] + (c ? 2 : 1) : 0;
    for (; width > FAMILY_COLUMNS && count > needed; widths[count] = 0)
        width -= widths[--count] + 2;
    table_write_header(table, widths, " ", color, out);
    table_write_rows(table, widths, " ", out);
    table_release(table);
    free(widths);
}

static void write_members(const struct family *family, bool color, struct text *out)
{
    const struct table_column headings[] = {{"  model", false},
                                            FIGURE_COLUMN(accuracy),
                                            {"95 % CI", true},
                                            FIGURE_COLUMN(joules_per_query),
                                            FIGURE_COLUMN(joules_per_output_token),
                                            FIGURE_COLUMN(ipj),
                                            FIGURE_COLUMN(ipw),
                                            FIGURE_COLUMN(output_tokens_per_s)};
    struct table table = TABLE(headings);
    RESULT_EACH (member, family->models)
        if (!is_of_workload(member))
            add_member(&table, member, name_of(family, member));
    write_table(&table, 5, color, out);
}

/* "93 % accuracy", "0.81 map_50". */
static void add_quality(struct table *table, const struct result_item *member)
{
    char cell[FORMAT_MAX], figure[FORMAT_MAX];
    const struct result_item *quality = result_get(member, "quality");
    double value = result_number_at(quality, "value");
    double accuracy = result_number_at(member, "accuracy");
    if (is_known(value))
        table_addf(table, "%s %s",
                   format_figure(figure, value, result_number_at(quality, "plus_minus"), ""),
                   result_text_at(quality, "name"));
    else if (is_known(accuracy))
        table_addf(table, "%s accuracy", format_percent(cell, accuracy));
    else
        table_add(table, "");
}

/* Vision, speech and diffusion: each has its own quality and unit. */
static void write_workloads(const struct family *family, bool color, struct text *out)
{
    const struct table_column COLUMNS[] = {{"  model", false}, {"workload", false},
                                           {"quality", false}, FIGURE_COLUMN(joules),
                                           {"per", false},     {"per second", true}};
    struct table table = TABLE(COLUMNS);
    char cell[FORMAT_MAX];
    RESULT_EACH (member, family->models) {
        double rate = result_number_at(member, "units_per_s");
        if (!is_of_workload(member))
            continue;
        table_addf(&table, "%s %s", result_flag_at(member, "on_frontier") ? "*" : " ",
                   name_of(family, member));
        table_add(&table, result_text_at(member, "workload"));
        add_quality(&table, member);
        table_add(&table, member_figure(cell, member, "joules_per_unit", "J"));
        table_add(&table, result_text_at(member, "unit"));
        table_add_known(&table, rate, rate < 1000 ? "%.3g" : "%.0f", rate);
    }
    write_table(&table, 5, color, out);
}

/* What the estimator says of the same work on a device that it knows. */
static void write_predictions(const struct family *family, bool color, struct text *out)
{
    const struct table_column COLUMNS[] = {{"  model", false},
                                           {"on this machine", true},
                                           {"estimated", true},
                                           {"time", true},
                                           {"per", false}};
    struct table table = TABLE(COLUMNS);
    size_t count = 0;
    char cell[FORMAT_MAX];
    RESULT_EACH (member, family->models) {
        const struct result_item *predicted = result_get(member, "predicted");
        double joules = result_number_at(predicted, "joules_per_unit");
        if (!is_known(joules))
            continue;
        count++;
        table_addf(&table, "  %s", name_of(family, member));
        table_add(&table, member_figure(cell, member, "joules_per_unit", "J"));
        table_add(&table, format_with_error(
                              cell, joules,
                              result_number_at(predicted, "joules_per_unit_plus_minus"), "J"));
        table_add(&table, format_si(cell, result_number_at(predicted, "seconds_per_unit"), "s"));
        table_add(&table, result_text_at(member, "unit"));
    }
    if (count) {
        struct text words = {0};
        text_add(out, "\n");
        text_addf(&words, "the same work as `ipw estimate` has it, one at a time: %s",
                  plain_text(result_text_at(family->result->items, "predicted_on")).text);
        wrap_words(out, "", 1, SIZE_MAX, text_get(&words));
        text_add(out, "\n");
        text_release(&words);
        write_table(&table, COUNT_OF(COLUMNS), color, out);
    } else {
        table_release(&table);
    }
}

/* ---- evidence and findings ---- */

/* Wraps to 80 columns; releases the words. */
static void wrap(struct text *words, size_t indent, struct text *out)
{
    wrap_words(out, "", indent, SIZE_MAX, text_get(words));
    text_release(words);
}

/* Evidence common to all energies. */
static void write_evidence(const struct family *family, struct text *out)
{
    char method[FORMAT_MAX], coverage[FORMAT_MAX], common[FORMAT_MAX];
    RESULT_EACH (member, family->models) {
        const struct result_item *energy = result_get(member, "energy");
        const char *name = result_text_at(energy, "method");
        double joules = result_number_at(energy, "joules");
        struct text words = {0};
        if (!is_known(joules))
            continue;
        format_common(common, result_number_at(energy, "plus_minus") / joules);
        text_addf(&words, "energy %s by %s, %s; coverage %s", format_method(method, name),
                  result_text_at(energy, "source"), common,
                  format_percent(coverage, result_number_at(energy, "coverage")));
        wrap(&words, 1, out);
        if (str_equal(name, "estimated"))
            text_add(out, " ~ estimated from CPU utilization, not measured: see `ipw doctor`\n");
        return;
    }
    text_add(out, " energy   unknown: no sensor\n");
}

static const struct result_item *findings_of(const struct result_item *member)
{
    return result_at(member, "conditions.findings");
}

static bool has_finding(const struct result_item *member, const char *code)
{
    RESULT_EACH (finding, findings_of(member))
        if (str_equal(result_text_at(finding, "code"), code))
            return true;
    return false;
}

/* A finding of a member, with the number of models that have one, unless an earlier member has one. */
static bool write_finding(const struct family *family, const struct result_item *of,
                          const struct result_item *finding, bool red, struct text *out)
{
    size_t before = 0, having = 0;
    struct text words = {0};
    RESULT_EACH (member, family->models) {
        bool has = has_finding(member, result_text_at(finding, "code"));
        having += has;
        before += has && member < of;
    }
    if (before)
        return false;
    finding_words(finding, false, false, &words);
    if (having > 1)
        text_addf(&words, " (%zu of %zu models)", having, result_length(family->models));
    text_add(out, red ? "\033[31m" : "");
    wrap(&words, 3, out);
    text_add(out, red ? "\033[0m" : "");
    return true;
}

/* Findings worse than a note, each kind once: the first, and how many models have one. */
static void write_findings(const struct family *family, bool color, struct text *out)
{
    static const char *const SEVERITIES[] = {"invalid", "warning"};
    bool any = false;
    for (size_t i = 0; i < COUNT_OF(SEVERITIES); i++)
        RESULT_EACH (member, family->models) {
            RESULT_EACH (finding, findings_of(member))
                if (str_equal(result_text_at(finding, "severity"), SEVERITIES[i]))
                    any |= write_finding(family, member, finding, color && i == 0, out);
        }
    text_add(out, any ? "\n" : "");
}

/* ---- the report ---- */

static void family_text(const struct result *result, bool color, struct text *out)
{
    struct family family = {.result = result, .models = result_find(result, "models")};
    const char *conclusion = result_text_at(result->items, "conclusion");
    name_members(&family);
    if (conclusion[0]) {
        struct text words = {0};
        text_add_plain(&words, conclusion);
        wrap(&words, 1, out);
    }
    write_evidence(&family, out);
    text_add(out, "\n");
    write_findings(&family, color, out);
    if (count_members(&family, false))
        write_members(&family, color, out);
    if (count_members(&family, false) && count_members(&family, true))
        text_add(out, "\n");
    if (count_members(&family, true))
        write_workloads(&family, color, out);
    text_add(
        out,
        "\n * Pareto-optimal: no other of the same data is as accurate for as little energy\n");
    write_predictions(&family, color, out);
    RESULT_EACH (member, family.models)
        if (result_text_at(member, "error")[0])
            text_addf(out, " failed   %s: %s\n", plain_text(result_text_at(member, "model")).text,
                      result_text_at(member, "error"));
    text_add(out, "\n");
    RESULT_EACH (member, family.models) {
        const char *directory = result_text_at(member, "output_dir");
        if (!directory[0])
            continue;
        text_add(out, " ");
        text_add_plain(out, directory);
        text_add(out, "\n");
    }
    run_names_release(&family.names);
}

const struct print_views FAMILY_VIEWS = {.text = family_text, .has_blank_line = true};
