#include "core/clock.h"
#include "report/text/reports.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attribute/ledger.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/secret.h"
#include "core/text.h"
#include "report/text/format.h"
#include "runner/exec.h"
#include "runner/host_report.h"
#include "stats/descriptive.h"

static void wall_stats(const struct exec_result *result, struct online *out)
{
    *out = (struct online){0};
    for (size_t i = 0; i < result->count; i++)
        online_add(out, result->runs[i].wall_s);
}

static unsigned max_left_running(const struct exec_result *result)
{
    unsigned max = 0;
    for (size_t i = 0; i < result->count; i++)
        if (result->runs[i].left_running > max)
            max = result->runs[i].left_running;
    return max;
}

/* ---- cost and emissions of one run ---- */

static struct charge charge_of(const struct run_report *report)
{
    const struct energy *energy = &report->result->mean.total;
    struct online wall;
    wall_stats(report->result, &wall);
    return tariff_charge(report->tariff, energy->joules, energy->plus_minus,
                         online_mean(&wall) * run_devices(&report->result->mean));
}

static bool has_tariff(const struct run_report *report)
{
    return report->tariff && tariff_given(report->tariff) && report->result->count;
}

/* ---- JSON ---- */

static void operating_to_json(struct json *json, const struct run_report *report)
{
    if (!has_tariff(report)) {
        json_null(json, "operating");
        return;
    }
    struct charge charge = charge_of(report);
    json_object(json, "operating");
    json_number(json, "price_per_kwh", report->tariff->price_per_kwh);
    json_number(json, "gco2_per_kwh", report->tariff->gco2_per_kwh);
    json_number(json, "device_price_per_hour", report->tariff->device_price_per_hour);
    json_number(json, "devices", run_devices(&report->result->mean));
    json_number(json, "cost", charge.cost);
    json_number(json, "cost_plus_minus", charge.cost_plus_minus);
    json_number(json, "gco2e", charge.gco2e);
    json_number(json, "gco2e_plus_minus", charge.gco2e_plus_minus);
    json_object_end(json);
}

static void runs_to_json(struct json *json, const struct exec_result *result)
{
    json_array(json, "runs");
    for (size_t i = 0; i < result->count; i++) {
        const struct exec_run *run = &result->runs[i];
        json_object(json, NULL);
        json_number(json, "wall_s", run->wall_s);
        json_number(json, "energy_j", run->ledger.total.joules);
        json_number(json, "plus_minus", run->ledger.total.plus_minus);
        json_number(json, "coverage", run->ledger.total.coverage);
        json_number(json, "user_s", run->end.user_s);
        json_number(json, "system_s", run->end.system_s);
        json_number(json, "rss_mb", run->end.rss_mb);
        json_integer(json, "exit_code", run->end.exit_code);
        json_integer(json, "left_running", run->left_running);
        json_object_end(json);
    }
    json_array_end(json);
}

static void idle_to_json(struct json *json, const struct exec_result *result)
{
    if (!result->has_idle) {
        json_null(json, "idle");
        return;
    }
    json_object(json, "idle");
    json_number(json, "seconds", result->idle.seconds);
    json_array(json, "devices");
    for (size_t i = 0; i < result->idle.count; i++) {
        json_object(json, NULL);
        json_string(json, "id", result->idle.rows[i].device);
        json_number(json, "power_w", result->idle.rows[i].watts);
        json_number(json, "plus_minus", result->idle.rows[i].sigma);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

void run_json(const struct run_report *report, struct text *out)
{
    const struct exec_result *result = report->result;
    struct json json;
    struct online wall;
    char started[FORMAT_MAX];
    wall_stats(result, &wall);
    json_init(&json, out, true);
    json_object(&json, NULL);
    json_array(&json, "command");
    for (char *const *word = report->argv; *word; word++)
        json_string(&json, NULL, *word);
    json_array_end(&json);
    json_integer(&json, "exit_code", result->exit_code);
    json_bool(&json, "interrupted", result->signal != 0);
    json_string(&json, "started", clock_text(started, result->started_wall));
    runs_to_json(&json, result);
    json_object(&json, "wall_s");
    json_number(&json, "mean", online_mean(&wall));
    json_number(&json, "stddev", online_stddev(&wall));
    json_number(&json, "min", online_min(&wall));
    json_number(&json, "max", online_max(&wall));
    json_object_end(&json);
    energy_to_json(&json, "energy", &result->mean.total);
    operating_to_json(&json, report);
    devices_to_json(&json, "devices", &result->mean);
    idle_to_json(&json, result);
    summary_conditions_to_json(&json, "conditions", &result->conditions.figures);
    json_object(&json, "own");
    json_number(&json, "cpu_s", report->own.cpu_s);
    json_number(&json, "rss_mb", report->own.rss_mb);
    json_integer(&json, "reads", (int64_t)report->reads);
    json_object_end(&json);
    host_to_json(&json, "host", report->host);
    json_string(&json, "version", IPW_VERSION);
    json_object_end(&json);
    secret_hide_json(out);
}

/* ---- text ---- */

static void write_command(const struct run_report *report, struct text *out)
{
    const struct exec_result *result = report->result;
    text_add(out, " energy of '");
    for (char *const *word = report->argv; *word; word++) {
        text_add(out, word == report->argv ? "" : " ");
        text_add_plain(out, *word);
    }
    text_add(out, "'");
    if (result->count > 1)
        text_addf(out, ", mean of %zu runs", result->count);
    if (result->signal)
        text_add(out, " (interrupted: partial)");
    text_add(out, "\n\n");
    secret_hide_text(out);
}

static void add_energy_cells(struct table *table, const struct energy *energy)
{
    char cell[FORMAT_MAX];
    const char *mark = energy->method == METHOD_ESTIMATED ? "~" : "";
    table_addf(table, "%s%s", mark,
               format_with_error(cell, energy->joules, energy->plus_minus, "J"));
}

static void add_share_cells(struct table *table, const struct energy *energy)
{
    char cell[FORMAT_MAX];
    bool known = is_known(energy->idle_joules);
    table_add(table, known ? format_si(cell, energy->idle_joules, "J") : "");
    table_add(table, known ? format_si(cell, energy->active_joules, "J") : "");
    table_add(table, method_name(energy->method) ? method_name(energy->method) : "unknown");
    table_add(table, format_percent(cell, energy->coverage));
}

static void add_device_row(struct table *table, const struct ledger_device *device)
{
    char cell[FORMAT_MAX];
    table_add(table, device->id);
    add_energy_cells(table, &device->energy);
    table_add(table, format_si(cell, device->power_mean, "W"));
    table_add(table, format_si(cell, device->power_max, "W"));
    add_share_cells(table, &device->energy);
}

static void write_table(const struct ledger *mean, bool color, struct text *out)
{
    static const struct table_column COLUMNS[] = {
        {"device", false}, {"energy", true}, {"mean", true},    {"max", true},
        {"idle", true},    {"active", true}, {"method", false}, {"coverage", true},
    };
    struct table table = TABLE(COLUMNS);
    size_t counted = 0;
    for (size_t i = 0; i < mean->count; i++) {
        counted += mean->devices[i].counted;
        if (mean->devices[i].has_energy)
            add_device_row(&table, &mean->devices[i]);
    }
    if (counted != 1) {
        table_add(&table, "total");
        add_energy_cells(&table, &mean->total);
        table_add(&table, "");
        table_add(&table, "");
        add_share_cells(&table, &mean->total);
    }
    table_print(&table, "   ", color, out);
}

/* By more than 5 %, and by more than the sampling of both explains. */
static bool disagrees(const struct ledger_device *device)
{
    double difference = fabs(device->cross_check.joules - device->energy.joules);
    double expected = hypot(device->cross_check.statistical, device->energy.statistical);
    return fabs(device->residual) > 0.05 && difference > 2 * expected;
}

/* The cross-checks: a line each for a few devices, one line for many. */
static void write_cross_checks(const struct ledger *mean, struct text *out)
{
    enum { FEW = 3 };
    char joules[FORMAT_MAX];
    struct online residuals = {0};
    for (size_t i = 0; i < mean->count; i++)
        if (mean->devices[i].cross_check.method != METHOD_NONE)
            online_add(&residuals, mean->devices[i].residual);
    if (residuals.count > FEW)
        text_addf(out, "   cross-checks of %llu devices: %+.2f to %+.2f %%\n",
                  (unsigned long long)residuals.count, 100 * residuals.min, 100 * residuals.max);
    for (size_t i = 0; i < mean->count; i++) {
        const struct ledger_device *device = &mean->devices[i];
        if (residuals.count <= FEW && device->cross_check.method != METHOD_NONE)
            text_addf(out, "   %s cross-check: %s by %s, %+.2f %%\n", device->id,
                      format_si(joules, device->cross_check.joules, "J"),
                      method_name(device->cross_check.method), 100 * device->residual);
        if (disagrees(device))
            text_addf(out, "   warning: %s counter and integral disagree by more than 5 %%\n",
                      device->id);
    }
}

static void write_device_notes(const struct ledger *mean, struct text *out)
{
    char low[128] = "";
    write_cross_checks(mean, out);
    for (size_t i = 0; i < mean->count; i++) {
        const struct ledger_device *device = &mean->devices[i];
        if (!device->has_energy)
            continue;
        if (device->energy.note[0])
            text_addf(out, "   %s: %s\n", device->id, device->energy.note);
        size_t used = strlen(low);
        if (device->energy.low_confidence && device->energy.method != METHOD_NONE)
            str_format(low + used, sizeof low - used, "%s%s", used ? ", " : "", device->id);
    }
    if (low[0])
        text_addf(out, "   low confidence (%s): shorter than ten sensor updates\n", low);
    if (mean->total.method == METHOD_ESTIMATED)
        text_add(out, "   ~ estimated from CPU utilization, not measured; see `ipw doctor`\n");
    else if (mean->total.method == METHOD_NONE)
        text_addf(out, "   energy unknown: %s; see `ipw doctor`\n", mean->total.note);
    else if (mean->total.note[0] && !str_starts(mean->total.note, "without "))
        text_addf(out, "   note: %s\n", mean->total.note); /* already reported above */
}

static void write_times(const struct run_report *report, struct text *out)
{
    const struct exec_result *result = report->result;
    struct online wall, user = {0}, system = {0};
    char a[FORMAT_MAX], b[FORMAT_MAX];
    wall_stats(result, &wall);
    for (size_t i = 0; i < result->count; i++) {
        online_add(&user, result->runs[i].end.user_s);
        online_add(&system, result->runs[i].end.system_s);
    }
    text_addf(out, "   wall %s", format_duration(a, online_mean(&wall)));
    if (wall.count > 1)
        text_addf(out, " ± %s (%s", format_si(a, online_stddev(&wall), "s"),
                  format_duration(b, online_min(&wall)));
    if (wall.count > 1)
        text_addf(out, " to %s)", format_duration(a, online_max(&wall)));
    text_addf(out, ", CPU %s user", format_si(a, online_mean(&user), "s"));
    text_addf(out, " + %s system\n", format_si(a, online_mean(&system), "s"));
    if (result->has_idle)
        text_addf(out, "   idle power measured for %s\n", format_duration(a, result->idle.seconds));
    text_addf(out, "   ipw itself: %s CPU", format_si(a, report->own.cpu_s, "s"));
    text_addf(out, ", %.1f MB, %lu reads\n", report->own.rss_mb, report->reads);
}

static void write_operating(const struct run_report *report, struct text *out)
{
    char cell[FORMAT_MAX];
    if (!has_tariff(report))
        return;
    struct charge charge = charge_of(report);
    const char *mark = report->result->mean.total.method == METHOD_ESTIMATED ? "~" : "";
    if (is_known(charge.cost))
        text_addf(out, "   cost %s%s%s", is_known(report->tariff->price_per_kwh) ? mark : "",
                  format_cost(cell, &charge, ""), is_known(charge.gco2e) ? ", " : "; ");
    if (is_known(charge.gco2e))
        text_addf(out, "%semissions %s%s; ", is_known(charge.cost) ? "" : "   ", mark,
                  format_emissions(cell, &charge));
    if (!is_known(charge.cost) && !is_known(charge.gco2e))
        text_add(out, "   cost and emissions unknown: the energy is; ");
    format_tariff(report->tariff, "", out);
    text_addf(out, "%s%s\n", format_scope(report->tariff)[0] ? "\n   " : "",
              format_scope(report->tariff));
}

void run_text(const struct run_report *report, bool color, struct text *out)
{
    const struct exec_result *result = report->result;
    text_add(out, "\n");
    write_command(report, out);
    if (result->count == 0) {
        text_add(out, "   no run completed\n");
        return;
    }
    format_findings(&result->conditions.figures, color, out);
    write_table(&result->mean, color, out);
    text_add(out, "\n");
    write_device_notes(&result->mean, out);
    format_activities(&result->conditions.figures, out);
    write_times(report, out);
    write_operating(report, out);
    unsigned left = max_left_running(result);
    if (left)
        text_addf(out,
                  "   warning: the command ended but left %u process%s running; their energy is "
                  "not included (--wait-all waits for them)\n",
                  left, left == 1 ? "" : "es");
    if (result->exit_code)
        text_addf(out, "   the command exited with status %d\n", result->exit_code);
    text_add(out, "\n");
}
