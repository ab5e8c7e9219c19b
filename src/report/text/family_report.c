/* Several models side by side, for `ipw demo`: a table as wide as a terminal, its conclusion, and the same as JSON. */
#include "report/text/reports.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/across.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "rundir/summary.h"
#include "runner/profile/profile.h"

/* ---- text ---- */

enum { FAMILY_COLUMNS = 80, FAMILY_LETTERS = 20 };

/* A shipped model by its --model name; files by their differences, "file" for "models/file.gguf". */
static enum err name_members(const struct profile_family *family, struct run_names *out)
{
    struct run_point *points = calloc(family->count + 1, sizeof *points);
    const struct run_point **list = calloc(family->count + 1, sizeof *list);
    for (size_t i = 0; points && list && i < family->count; i++) {
        const char *name = str_last_part(family->members[i].model), *end = strstr(name, ".gguf");
        size_t length = end && !end[5] ? (size_t)(end - name) : strlen(name);
        str_format(points[i].model, sizeof points[i].model, "%.*s", (int)length, name);
        str_copy(points[i].directory, sizeof points[i].directory, points[i].model);
        list[i] = &points[i];
    }
    *out = (struct run_names){0};
    enum err err =
        points && list ? run_names_of(list, family->count, FAMILY_LETTERS, out) : ERR_NO_MEMORY;
    for (size_t i = 0; !err && i < family->count; i++)
        if (strcmp(points[i].model, family->members[i].model) == 0)
            str_copy(out->names[i], sizeof out->names[i], points[i].model);
    free(points);
    free(list);
    return err;
}

/* Without its ±, which is common to all rows and stated once. */
static const char *member_figure(char *to, const struct profile_member *member, double value,
                                 const char *unit)
{
    bool estimated = member->energy.method == METHOD_ESTIMATED;
    char figure[FORMAT_MAX];
    if (estimated)
        format_rough(figure, value, unit);
    else
        format_figure(figure, value, UNKNOWN, unit);
    str_format(to, FORMAT_MAX, "%s%s", estimated && is_known(value) ? "~" : "", figure);
    return to;
}

static void add_member(struct table *table, const struct profile_member *member, const char *name)
{
    char cell[FORMAT_MAX];
    table_addf(table, "%s %s", member->on_frontier ? "*" : " ", name);
    table_add(table, format_percent(cell, member->accuracy));
    if (is_known(member->accuracy_low))
        table_addf(table, "%.0f-%.0f %%", 100 * member->accuracy_low, 100 * member->accuracy_high);
    else
        table_add(table, "");
    table_add(table, member_figure(cell, member, member->joules_per_query, "J"));
    table_add(table, member_figure(cell, member, member->joules_per_output_token, "J"));
    table_add(table, member_figure(cell, member, member->ipj, "1/J"));
    table_add(table, member_figure(cell, member, member->ipw, "1/W"));
    table_add_known(table, member->output_tokens_per_s, "%.0f", member->output_tokens_per_s);
}

/* With as many of the last columns as fit. */
static void write_members(const struct profile_family *family, const struct run_names *names,
                          bool color, struct text *out)
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
    size_t count = table.width, needed = 5, widths[sizeof headings / sizeof *headings] = {0};
    size_t width = 0; /* each column follows a space or two */
    for (size_t i = 0; i < family->count; i++)
        add_member(&table, &family->members[i], names->names[i]);
    table_widen(&table, widths);
    for (size_t c = 0; c < count; c++)
        width += widths[c] ? widths[c] + (c ? 2 : 1) : 0;
    for (; width > FAMILY_COLUMNS && count > needed; widths[count] = 0)
        width -= widths[--count] + 2;
    table_write_header(&table, widths, " ", color, out);
    table_write_rows(&table, widths, " ", out);
    table_release(&table);
}

/* The most accurate, and among equals the cheapest; or the cheapest.  NULL if the figure is unknown. */
static const struct profile_member *best_member(const struct profile_family *family, bool accurate)
{
    const struct profile_member *best = NULL;
    for (size_t i = 0; i < family->count; i++) {
        const struct profile_member *member = &family->members[i];
        double gain = best ? member->accuracy - best->accuracy : 1;
        double saved = best ? best->joules_per_query - member->joules_per_query : 1;
        if (!is_known(accurate ? member->accuracy : member->joules_per_query))
            continue;
        if (accurate ? gain > 0 || (gain == 0 && saved > 0) : saved > 0)
            best = member;
    }
    return best;
}

static void write_best(const struct profile_family *family, const struct run_names *names,
                       const struct profile_member *member, const char *what, struct text *out)
{
    char share[FORMAT_MAX], joules[FORMAT_MAX];
    text_addf(out, " %s: %s%s", plain_text(names->names[member - family->members]).text, what,
              format_percent(share, member->accuracy));
    if (is_known(member->joules_per_query))
        text_addf(out, ", %s per query",
                  member_figure(joules, member, member->joules_per_query, "J"));
    text_add(out, "\n");
}

/* The conclusion, before the table. */
static void write_answer(const struct profile_family *family, const struct run_names *names,
                         struct text *out)
{
    const struct profile_member *accurate = best_member(family, true),
                                *cheap = best_member(family, false);
    if (accurate && family->count > 1)
        write_best(family, names, accurate,
                   accurate == cheap ? "most accurate and cheapest, " : "most accurate, ", out);
    if (cheap && cheap != accurate && family->count > 1)
        write_best(family, names, cheap, "cheapest, ", out);
}

/* Wraps to 80 columns; releases the words. */
static void wrap(struct text *words, size_t indent, struct text *out)
{
    wrap_words(out, "", indent, SIZE_MAX, text_get(words));
    out->failed = out->failed || words->failed;
    text_release(words);
}

/* Evidence common to all energies. */
static void write_evidence(const struct profile_family *family, struct text *out)
{
    char method[FORMAT_MAX], coverage[FORMAT_MAX];
    for (size_t i = 0; i < family->count; i++) {
        const struct energy *energy = &family->members[i].energy;
        if (!is_known(energy->joules))
            continue;
        const char *name = method_name(energy->method);
        struct text words = {0};
        text_addf(&words, "energy %s by %s, ±%.2g %% common to all rows, coverage %s",
                  format_method(method, name ? name : ""), energy->source,
                  100 * energy->plus_minus / energy->joules,
                  format_percent(coverage, energy->coverage));
        wrap(&words, 1, out);
        if (energy->method == METHOD_ESTIMATED)
            text_add(out, " ~ estimated from CPU utilization, not measured: see `ipw doctor`\n");
        return;
    }
    text_add(out, " energy   unknown: no sensor\n");
}

static const struct summary_finding *find_finding(const struct profile_member *member,
                                                  const char *code)
{
    for (size_t f = 0; f < member->conditions.finding_count; f++)
        if (strcmp(member->conditions.findings[f].code, code) == 0)
            return &member->conditions.findings[f];
    return NULL;
}

/* Adds a finding of member `i`, with the number of models that have one, unless an earlier member has one. */
static void add_finding(const struct profile_family *family, size_t i,
                        const struct summary_finding *finding, struct summary_conditions *all)
{
    size_t before = 0, having = 0;
    for (size_t m = 0; m < family->count; m++) {
        bool has = find_finding(&family->members[m], finding->code) != NULL;
        having += has;
        before += has && m < i;
    }
    if (before || finding->severity == FINDING_NOTE || all->finding_count == SUMMARY_FINDINGS_MAX)
        return;
    struct summary_finding *kept = &all->findings[all->finding_count++];
    *kept = *finding;
    if (having > 1)
        str_format(kept->text, sizeof kept->text, "%.200s (%zu of %zu models)", finding->text,
                   having, family->count);
}

/* Findings worse than a note, each kind once: the first, and how many models have one. */
static void write_family_findings(const struct profile_family *family, bool color, struct text *out)
{
    struct summary_conditions all = {.finding_count = 0};
    for (size_t i = 0; i < family->count; i++)
        for (size_t f = 0; f < family->members[i].conditions.finding_count; f++)
            add_finding(family, i, &family->members[i].conditions.findings[f], &all);
    for (int severity = FINDING_BREAKS; severity > FINDING_NOTE; severity--)
        for (size_t i = 0; i < all.finding_count; i++) {
            bool red = color && severity == FINDING_BREAKS;
            struct text words = {0};
            if ((int)all.findings[i].severity != severity)
                continue;
            text_addf(&words, "warning: %s", all.findings[i].text);
            text_add(out, red ? "\033[31m" : "");
            wrap(&words, 3, out);
            text_add(out, red ? "\033[0m" : "");
        }
    text_add(out, all.finding_count ? "\n" : "");
}

void family_text(const struct profile_family *family, bool color, struct text *out)
{
    struct run_names names;
    if (name_members(family, &names) != ERR_OK) {
        out->failed = true;
        return;
    }
    write_answer(family, &names, out);
    write_evidence(family, out);
    text_add(out, "\n");
    write_family_findings(family, color, out);
    write_members(family, &names, color, out);
    text_add(out, "\n * Pareto-optimal: no other is as accurate for as little energy\n");
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].why[0])
            text_addf(out, " failed   %s: %s\n", plain_text(family->members[i].model).text,
                      family->members[i].why);
    text_add(out, "\n");
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].directory[0])
            text_addf(out, " %s\n", plain_text(family->members[i].directory).text);
    run_names_release(&names);
}

/* ---- JSON ---- */

static void member_json(struct json *json, const struct profile_member *member)
{
    json_object(json, NULL);
    json_string(json, "model", member->model);
    json_string(json, "output_dir", member->directory[0] ? member->directory : NULL);
    json_string(json, "error", member->why[0] ? member->why : NULL);
    summary_conditions_to_json(json, "conditions", &member->conditions);
    json_integer(json, "queries", member->queries);
    json_integer(json, "completed", member->completed);
    json_number(json, "accuracy", member->accuracy);
    json_array(json, "accuracy_interval_95");
    json_number(json, NULL, member->accuracy_low);
    json_number(json, NULL, member->accuracy_high);
    json_array_end(json);
    json_number(json, "joules_per_query", member->joules_per_query);
    json_number(json, "joules_per_query_plus_minus", member->joules_per_query_plus_minus);
    json_number(json, "joules_per_output_token", member->joules_per_output_token);
    json_number(json, "output_tokens_per_s", member->output_tokens_per_s);
    json_number(json, "ipj", member->ipj);
    json_number(json, "ipj_plus_minus", member->ipj_plus_minus);
    json_number(json, "ipw", member->ipw);
    json_number(json, "ipw_plus_minus", member->ipw_plus_minus);
    energy_to_json(json, "energy", &member->energy);
    json_bool(json, "on_frontier", member->on_frontier);
    json_object_end(json);
}

void family_json(const struct profile_family *family, struct text *out)
{
    struct json json;
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_array(&json, "models");
    for (size_t i = 0; i < family->count; i++)
        member_json(&json, &family->members[i]);
    json_array_end(&json);
    json_bool(&json, "interrupted", family->signal != 0);
    json_object_end(&json);
    text_add(out, "\n");
}
