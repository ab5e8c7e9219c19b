#include "report/text/family_report.h"

#include <inttypes.h>
#include <string.h>

#include "core/energy.h"
#include "core/json.h"
#include "core/text.h"
#include "core/units.h"
#include "report/text/format.h"
#include "report/text/table.h"
#include "runner/profile/profile.h"

/* ---- for people ---- */

static const char *mark_of(const struct profile_member *member)
{
    return member->energy.method == METHOD_ESTIMATED ? "~" : "";
}

/* "file" of "models/file.gguf". */
static void add_name(struct table *table, const char *model)
{
    const char *slash = strrchr(model, '/');
    const char *name = slash ? slash + 1 : model;
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".gguf") == 0)
        length -= 5;
    table_addf(table, "%.*s", (int)length, name);
}

static void add_accuracy(struct table *table, const struct profile_member *member)
{
    char share[FORMAT_MAX];
    table_add(table, is_known(member->accuracy) ? format_percent(share, member->accuracy) : "-");
    if (is_known(member->accuracy_low))
        table_addf(table, "%.0f-%.0f %%", 100 * member->accuracy_low, 100 * member->accuracy_high);
    else
        table_add(table, "");
}

static void add_joules(struct table *table, const struct profile_member *member)
{
    char cell[FORMAT_MAX];
    if (!is_known(member->joules_per_query)) {
        table_add(table, "-");
        return;
    }
    format_with_error(cell, member->joules_per_query, member->joules_per_query_plus_minus, "J");
    table_addf(table, "%s%s", mark_of(member), cell);
}

static void add_figure(struct table *table, const char *mark, double value)
{
    if (is_known(value))
        table_addf(table, "%s%.3g", mark, value);
    else
        table_add(table, "-");
}

static void add_member(struct table *table, const struct profile_member *member)
{
    char cell[FORMAT_MAX];
    const char *mark = mark_of(member);
    table_add(table, member->on_frontier ? "*" : " ");
    add_name(table, member->model);
    add_accuracy(table, member);
    add_joules(table, member);
    if (is_known(member->joules_per_output_token))
        table_addf(table, "%s%s", mark, format_si(cell, member->joules_per_output_token, "J"));
    else
        table_add(table, "-");
    if (is_known(member->output_tokens_per_s))
        table_addf(table, "%.0f", member->output_tokens_per_s);
    else
        table_add(table, "-");
    add_figure(table, mark, member->ipj);
    add_figure(table, mark, member->ipw);
}

static void write_table(const struct profile_family *family, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {" ", false},       {"model", false},          {"accuracy", true},
        {"95 % CI", true},  {"per query", true},       {"per token", true},
        {"tokens/s", true}, {"correct/J (IPJ)", true}, {"IPW", true},
    };
    struct table table;
    table_init(&table, COLUMNS, sizeof COLUMNS / sizeof *COLUMNS);
    for (size_t i = 0; i < family->count; i++)
        add_member(&table, &family->members[i]);
    table_write(&table, "   ", color, out);
    table_release(&table);
}

/* The evidence for the energies above. */
static void write_evidence(const struct profile_family *family, struct text *out)
{
    char cell[FORMAT_MAX];
    for (size_t i = 0; i < family->count; i++) {
        const struct energy *energy = &family->members[i].energy;
        if (!is_known(energy->joules))
            continue;
        text_addf(out, "   energy   %s (%s), coverage %s\n", method_name(energy->method),
                  energy->source, format_percent(cell, energy->coverage));
        if (energy->method == METHOD_ESTIMATED)
            text_add(
                out,
                "            ~ estimated from CPU utilization, not measured: see `ipw doctor`. "
                "The ± is\n            the power model's and common to all rows: their order is "
                "more "
                "certain\n");
        return;
    }
    text_add(out, "   energy   unknown: no sensor\n");
}

void family_text(const struct profile_family *family, bool color, struct text *out)
{
    write_table(family, color, out);
    text_add(out, "\n   * Pareto-optimal: no other is as accurate for as little energy\n");
    write_evidence(family, out);
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].why[0])
            text_addf(out, "   failed   %s: %s\n", family->members[i].model,
                      family->members[i].why);
    text_add(out, "\n");
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].directory[0])
            text_addf(out, " %s\n", family->members[i].directory);
}

/* ---- for scripts ---- */

static void member_json(struct json *json, const struct profile_member *member)
{
    json_object(json, NULL);
    json_string(json, "model", member->model);
    json_string(json, "output_dir", member->directory[0] ? member->directory : NULL);
    json_string(json, "error", member->why[0] ? member->why : NULL);
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
