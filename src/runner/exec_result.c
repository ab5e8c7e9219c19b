/* The keys of a run in order; shapes that other commands share (an energy, devices, conditions, the host) are written by
 * their owners. */
#include "runner/exec.h"

#include <math.h>

#include "attribute/ledger.h"
#include "core/clock.h"
#include "core/energy.h"
#include "core/json.h"
#include "core/result.h"
#include "rundir/summary.h"
#include "runner/host_report.h"
#include "stats/descriptive.h"

static void wall_stats(const struct exec_result *result, struct online *out)
{
    *out = (struct online){0};
    for (size_t i = 0; i < result->count; i++)
        online_add(out, result->runs[i].wall_s);
}

/* Of one run. */
static struct charge charge_of(const struct run_report *report)
{
    const struct energy *energy = &report->result->mean.total;
    struct online wall;
    wall_stats(report->result, &wall);
    return tariff_charge(report->tariff, energy->joules, energy->plus_minus,
                         online_mean(&wall) * run_devices(&report->result->mean));
}

static void put_command(struct result *out, char *const *argv)
{
    result_list(out, "command");
    for (; *argv; argv++)
        result_text(out, NULL, *argv);
    result_end(out);
}

static void put_runs(struct result *out, const struct exec_result *result)
{
    result_list(out, "runs");
    for (size_t i = 0; i < result->count; i++) {
        const struct exec_run *run = &result->runs[i];
        const struct energy *energy = &run->ledger.total;
        result_group(out, NULL);
        result_number(out, "wall_s", run->wall_s, "s");
        result_measured(out, "energy_j", energy->joules, "plus_minus", energy->plus_minus, "J");
        result_number(out, "coverage", energy->coverage, "%");
        result_number(out, "user_s", run->end.user_s, "s");
        result_number(out, "system_s", run->end.system_s, "s");
        result_number(out, "rss_mb", run->end.rss_mb, "");
        result_integer(out, "exit_code", run->end.exit_code);
        result_integer(out, "left_running", run->left_running);
        result_end(out);
    }
    result_end(out);
}

static void put_wall(struct result *out, const struct exec_result *result)
{
    struct online wall;
    wall_stats(result, &wall);
    result_group(out, "wall_s");
    result_number(out, "mean", online_mean(&wall), "s");
    result_uncertain(out, "mean", wall.count > 1 ? online_stddev(&wall) : UNKNOWN);
    result_number(out, "stddev", online_stddev(&wall), "s");
    result_number(out, "min", online_min(&wall), "s");
    result_number(out, "max", online_max(&wall), "s");
    result_end(out);
}

static void put_operating(struct result *out, const struct run_report *report)
{
    const struct tariff *tariff = report->tariff;
    if (!tariff || !tariff_given(tariff) || !report->result->count) {
        result_null(out, "operating");
        return;
    }
    struct charge charge = charge_of(report);
    result_group(out, "operating");
    result_number(out, "price_per_kwh", tariff->price_per_kwh, "");
    result_number(out, "gco2_per_kwh", tariff->gco2_per_kwh, "");
    result_number(out, "device_price_per_hour", tariff->device_price_per_hour, "");
    result_number(out, "devices", run_devices(&report->result->mean), "");
    result_measured(out, "cost", charge.cost, "cost_plus_minus", charge.cost_plus_minus, "");
    result_measured(out, "gco2e", charge.gco2e, "gco2e_plus_minus", charge.gco2e_plus_minus,
                    "gCO2e");
    result_end(out);
}

static void put_idle(struct result *out, const struct exec_result *result)
{
    if (!result->has_idle) {
        result_null(out, "idle");
        return;
    }
    result_group(out, "idle");
    result_number(out, "seconds", result->idle.seconds, "s");
    result_list(out, "devices");
    for (size_t i = 0; i < result->idle.count; i++) {
        const struct baseline_row *row = &result->idle.rows[i];
        result_group(out, NULL);
        result_text(out, "id", row->device);
        result_measured(out, "power_w", row->watts, "plus_minus", row->sigma, "W");
        result_end(out);
    }
    result_end(out);
    result_end(out);
}

static void put_own(struct result *out, const struct run_report *report)
{
    result_group(out, "own");
    result_number(out, "cpu_s", report->own.cpu_s, "s");
    result_number(out, "rss_mb", report->own.rss_mb, "");
    result_integer(out, "reads", (int64_t)report->reads);
    result_end(out);
}

/* By more than 5 %, and by more than the sampling of both explains. */
static bool disagrees(const struct ledger_device *device)
{
    double difference = fabs(device->cross_check.joules - device->energy.joules);
    double expected = hypot(device->cross_check.statistical, device->energy.statistical);
    return fabs(device->residual) > 0.05 && difference > 2 * expected;
}

static void warn(struct result *out, const struct exec_result *result)
{
    unsigned left = 0;
    for (size_t i = 0; i < result->mean.count; i++)
        if (disagrees(&result->mean.devices[i]))
            result_warn(out, "%s counter and integral disagree by more than 5 %%",
                        result->mean.devices[i].id);
    for (size_t i = 0; i < result->count; i++)
        if (result->runs[i].left_running > left)
            left = result->runs[i].left_running;
    if (left)
        result_warn(out,
                    "the command ended but left %u process%s running; their energy is not included "
                    "(--wait-all waits for them)",
                    left, left == 1 ? "" : "es");
}

void exec_result_put(const struct run_report *report, struct result *out)
{
    const struct exec_result *result = report->result;
    char started[CLOCK_TEXT_MAX];
    struct json json;
    result_writer(out, &json);
    put_command(out, report->argv);
    result_integer(out, "exit_code", result->exit_code);
    result_flag(out, "interrupted", result->signal != 0);
    result_text(out, "started", clock_text(started, result->started_wall));
    put_runs(out, result);
    put_wall(out, result);
    energy_to_json(&json, "energy", &result->mean.total);
    put_operating(out, report);
    devices_to_json(&json, "devices", &result->mean);
    put_idle(out, result);
    summary_conditions_to_json(&json, "conditions", &result->conditions.figures);
    put_own(out, report);
    host_to_json(&json, "host", report->host);
    result_text(out, "version", IPW_VERSION);
    warn(out, result);
    result_hide_secrets(out);
}
