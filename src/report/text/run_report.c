/* The views of the result of `ipw run`: its devices as a table, then notes on them, times and cost.  In Markdown, the
 * same lines are a list. */
#include "report/text/reports.h"

#include <string.h>

#include "core/energy.h"
#include "core/result.h"
#include "core/text.h"
#include "report/print/print.h"
#include "report/text/format.h"
#include "stats/descriptive.h"

/* ---- the command ---- */

static void add_command(const struct result *result, struct text *out)
{
    const struct result_item *command = result_find(result, "command");
    const char *before = "";
    text_add(out, "energy of '");
    RESULT_EACH (word, command) {
        text_add(out, before);
        text_add_plain(out, result_string(word));
        before = " ";
    }
    text_add(out, "'");
    size_t runs = result_length(result_find(result, "runs"));
    if (runs > 1)
        text_addf(out, ", mean of %zu runs", runs);
    if (result_flag_at(result->items, "interrupted"))
        text_add(out, " (interrupted: partial)");
}

/* ---- devices ---- */

static bool is_estimated(const struct result_item *energy)
{
    return str_equal(result_text_at(energy, "method"), "estimated");
}

static void add_energy_cells(struct table *table, const struct result_item *energy)
{
    char cell[FORMAT_MAX];
    format_with_error(cell, result_number_at(energy, "joules"),
                      result_number_at(energy, "plus_minus"), "J");
    table_addf(table, "%s%s", is_estimated(energy) ? "~" : "", cell);
}

static void add_share_cells(struct table *table, const struct result_item *energy)
{
    char cell[FORMAT_MAX];
    double idle = result_number_at(energy, "idle_joules");
    double active = result_number_at(energy, "active_joules");
    const char *method = result_text_at(energy, "method");
    table_add(table, is_known(idle) ? format_si(cell, idle, "J") : "");
    table_add(table, is_known(idle) ? format_si(cell, active, "J") : "");
    table_add(table, method[0] ? method : "unknown");
    table_add(table, format_percent(cell, result_number_at(energy, "coverage")));
}

static void add_device_row(struct table *table, const struct result_item *device,
                           const struct result_item *energy)
{
    char cell[FORMAT_MAX];
    table_add(table, result_text_at(device, "id"));
    add_energy_cells(table, energy);
    table_add(table, format_si(cell, result_number_at(device, "power_w.mean"), "W"));
    table_add(table, format_si(cell, result_number_at(device, "power_w.max"), "W"));
    add_share_cells(table, energy);
}

/* Its energy, unless it has none or is an instance of a device: "gpu0:gi1" is a share of gpu0, by an estimate that only
 * JSON reports. */
static const struct result_item *energy_of(const struct result *result,
                                           const struct result_item *device)
{
    const char *id = result_text_at(device, "id");
    size_t length = strcspn(id, ":");
    RESULT_EACH (other, result_find(result, "devices")) {
        const char *name = result_text_at(other, "id");
        if (id[length] && strlen(name) == length && strncmp(name, id, length) == 0)
            return NULL;
    }
    return result_get(device, "energy");
}

static const struct table_column COLUMNS[] = {
    {"device", false}, {"energy", true}, {"mean", true},    {"max", true},
    {"idle", true},    {"active", true}, {"method", false}, {"coverage", true},
};

static void fill_table(const struct result *result, struct table *table)
{
    const struct result_item *total = result_find(result, "energy");
    size_t counted = 0;
    RESULT_EACH (device, result_find(result, "devices")) {
        const struct result_item *energy = energy_of(result, device);
        counted += result_flag_at(device, "in_total");
        if (energy)
            add_device_row(table, device, energy);
    }
    if (counted == 1)
        return;
    table_add(table, "total");
    add_energy_cells(table, total);
    table_add(table, "");
    table_add(table, "");
    add_share_cells(table, total);
}

/* ---- notes on devices ---- */

/* A line each for a few devices, one line for many. */
static void write_cross_checks(const struct result *result, struct text *out)
{
    enum { FEW = 3 };
    const struct result_item *devices = result_find(result, "devices");
    char joules[FORMAT_MAX];
    struct online residuals = {0};
    RESULT_EACH (device, devices)
        if (result_get(device, "cross_check"))
            online_add(&residuals, result_number_at(device, "residual"));
    if (residuals.count > FEW)
        text_addf(out, "   cross-checks of %llu devices: %+.2f to %+.2f %%\n",
                  (unsigned long long)residuals.count, 100 * residuals.min, 100 * residuals.max);
    RESULT_EACH (device, devices) {
        const struct result_item *check = result_get(device, "cross_check");
        if (check && residuals.count <= FEW)
            text_addf(out, "   %s cross-check: %s by %s, %+.2f %%\n", result_text_at(device, "id"),
                      format_si(joules, result_number_at(check, "joules"), "J"),
                      result_text_at(check, "method"), 100 * result_number_at(device, "residual"));
    }
}

static void write_warnings(const struct result *result, struct text *out)
{
    for (const char *line = NULL; (line = result_line(&result->warnings, line));)
        text_addf(out, "   warning: %s\n", line);
}

static void write_total_note(const struct result *result, struct text *out)
{
    const struct result_item *total = result_find(result, "energy");
    const char *note = result_text_at(total, "note");
    if (is_estimated(total))
        text_add(out, "   ~ estimated from CPU utilization, not measured; see `ipw doctor`\n");
    else if (!result_text_at(total, "method")[0])
        text_addf(out, "   energy unknown: %s; see `ipw doctor`\n", note);
    else if (note[0] && !str_starts(note, "without ")) /* already reported above */
        text_addf(out, "   note: %s\n", note);
}

static void write_device_notes(const struct result *result, struct text *out)
{
    char low[128] = "";
    write_cross_checks(result, out);
    RESULT_EACH (device, result_find(result, "devices")) {
        const struct result_item *energy = energy_of(result, device);
        const char *id = result_text_at(device, "id");
        const char *note = result_text_at(energy, "note");
        size_t used = strlen(low);
        if (!energy)
            continue;
        if (note[0])
            text_addf(out, "   %s: %s\n", id, note);
        if (result_flag_at(energy, "low_confidence") && result_text_at(energy, "method")[0])
            str_format(low + used, sizeof low - used, "%s%s", used ? ", " : "", id);
    }
    if (low[0])
        text_addf(out, "   low confidence (%s): shorter than ten sensor updates\n", low);
    write_total_note(result, out);
    write_warnings(result, out);
}

/* ---- times and cost ---- */

static double mean_of_runs(const struct result *result, const char *key)
{
    struct online values = {0};
    RESULT_EACH (run, result_find(result, "runs"))
        online_add(&values, result_number_at(run, key));
    return online_mean(&values);
}

static void write_times(const struct result *result, struct text *out)
{
    const struct result_item *wall = result_find(result, "wall_s");
    double idle_s = result_number_at(result->items, "idle.seconds");
    char a[FORMAT_MAX], b[FORMAT_MAX];
    text_addf(out, "   wall %s", format_duration(a, result_number_at(wall, "mean")));
    if (result_length(result_find(result, "runs")) > 1) {
        text_addf(out, " ± %s (%s", format_si(a, result_number_at(wall, "stddev"), "s"),
                  format_duration(b, result_number_at(wall, "min")));
        text_addf(out, " to %s)", format_duration(a, result_number_at(wall, "max")));
    }
    text_addf(out, ", CPU %s user", format_si(a, mean_of_runs(result, "user_s"), "s"));
    text_addf(out, " + %s system\n", format_si(a, mean_of_runs(result, "system_s"), "s"));
    if (is_known(idle_s))
        text_addf(out, "   idle power measured for %s\n", format_duration(a, idle_s));
    text_addf(out, "   ipw itself: %s CPU",
              format_si(a, result_number_at(result->items, "own.cpu_s"), "s"));
    text_addf(out, ", %.1f MB, %.0f reads\n", result_number_at(result->items, "own.rss_mb"),
              result_number_at(result->items, "own.reads"));
}

static void write_charge(const struct result *result, const struct charge *charge,
                         const struct tariff *tariff, struct text *out)
{
    char cell[FORMAT_MAX];
    const char *mark = is_estimated(result_find(result, "energy")) ? "~" : "";
    if (is_known(charge->cost))
        text_addf(out, "   cost %s%s%s", is_known(tariff->price_per_kwh) ? mark : "",
                  format_cost(cell, charge, ""), is_known(charge->gco2e) ? ", " : "; ");
    if (is_known(charge->gco2e))
        text_addf(out, "%semissions %s%s; ", is_known(charge->cost) ? "" : "   ", mark,
                  format_emissions(cell, charge));
    if (!is_known(charge->cost) && !is_known(charge->gco2e))
        text_add(out, "   cost and emissions unknown: the energy is; ");
}

static void write_operating(const struct result *result, struct text *out)
{
    const struct result_item *of = result_find(result, "operating");
    const struct tariff tariff = {result_number_at(of, "price_per_kwh"),
                                  result_number_at(of, "gco2_per_kwh"),
                                  result_number_at(of, "device_price_per_hour")};
    const struct charge charge = {
        result_number_at(of, "cost"), result_number_at(of, "cost_plus_minus"),
        result_number_at(of, "gco2e"), result_number_at(of, "gco2e_plus_minus")};
    if (!tariff_given(&tariff))
        return;
    write_charge(result, &charge, &tariff, out);
    format_tariff(&tariff, "", out);
    text_addf(out, "%s%s\n", format_scope(&tariff)[0] ? "\n   " : "", format_scope(&tariff));
}

static void write_notes(const struct result *result, struct text *out)
{
    double exit_code = result_number_at(result->items, "exit_code");
    write_device_notes(result, out);
    format_activities(result_find(result, "conditions"), out);
    write_times(result, out);
    write_operating(result, out);
    if (exit_code != 0)
        text_addf(out, "   the command exited with status %.0f\n", exit_code);
}

/* ---- the views ---- */

static void run_text(const struct result *result, bool color, struct text *out)
{
    struct table table = TABLE(COLUMNS);
    text_add(out, "\n ");
    add_command(result, out);
    text_add(out, "\n\n");
    if (!result_first(result_find(result, "runs"))) {
        text_add(out, "   no run completed\n");
        return;
    }
    findings_text(result_find(result, "conditions.findings"), color, out);
    fill_table(result, &table);
    table_print(&table, "   ", color, out);
    text_add(out, "\n");
    write_notes(result, out);
    text_add(out, "\n");
}

static void run_markdown(const struct result *result, bool color, struct text *out)
{
    struct table table = TABLE(COLUMNS);
    struct text lines = {0};
    (void)color;
    add_command(result, &lines);
    text_add(out, "# ");
    markdown_add(out, text_get(&lines));
    text_add(out, "\n\n");
    text_clear(&lines);
    if (result_first(result_find(result, "runs"))) {
        fill_table(result, &table);
        table_write_markdown(&table, out);
        table_release(&table);
        text_add(out, "\n");
        findings_text(result_find(result, "conditions.findings"), false, &lines);
        write_notes(result, &lines);
    } else {
        text_add(&lines, "no run completed\n");
    }
    markdown_add_list(out, text_get(&lines));
    text_release(&lines);
}

const struct print_views RUN_VIEWS = {.text = run_text, .markdown = run_markdown};
