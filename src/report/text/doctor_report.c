/* The text of the result of `ipw doctor`: the machine, every sensor with its state, how to fix problems, and missing
 * libraries. */
#include "report/text/reports.h"

#include <string.h>

#include "core/result.h"
#include "core/text.h"
#include "core/units.h"
#include "report/print/print.h"
#include "report/text/format.h"

static void write_host(const struct result *result, struct text *out)
{
    const struct result_item *host = result_find(result, "host");
    const char *cpu = result_text_at(host, "cpu_brand");
    const char *os = result_text_at(host, "os_name");
    const char *kernel = result_text_at(host, "kernel_version");
    double cpus = result_number_at(host, "cpu_count");
    double memory_mb = result_number_at(host, "memory_mb");
    char memory[FORMAT_MAX];
    text_addf(out, "%s, %s%s\n", result_text_at(host, "hardware_label"),
              cpu[0] ? cpu : "unknown CPU",
              result_flag_at(host, "virtualised") ? " (virtual machine)" : "");
    text_addf(out, "  %.0f CPU%s", known_or(cpus, 0), str_plural(cpus));
    if (is_known(memory_mb))
        text_addf(out, ", %s memory", format_bytes(memory, memory_mb * (1 << 20)));
    if (os[0])
        text_addf(out, ", %s %s", os, result_text_at(host, "os_version"));
    if (kernel[0])
        text_addf(out, ", kernel %s", kernel);
    text_add(out, "\n");
    if (result_text_at(host, "gpu")[0])
        text_addf(out, "  %s\n", result_text_at(host, "gpu"));
}

/* ---- sensors ---- */

/* Working sensors first; absent ones last, since they matter least. */
static const struct status {
    const char *name, *mark, *color;
    bool works;
} STATUSES[] = {
    {"ok", "ok", "\033[32m", true},
    {"estimated", "estimated", "\033[33m", true},
    {"dead", "DEAD", "\033[31m", false},
    {"denied", "DENIED", "\033[31m", false},
    {"unsupported", "unsupported", "\033[33m", false},
    {"absent", "absent", "\033[2m", false},
};
enum { STATUS_COUNT = COUNT_OF(STATUSES) };

static bool has_status(const struct result_item *sensor, const char *name)
{
    return str_equal(result_text_at(sensor, "status"), name);
}

static void add_measures(const struct result_item *sensor, struct text *out)
{
    const char *name = result_text_at(sensor, "name");
    const char *before = name[0] ? ": " : "";
    text_add(out, name);
    RESULT_EACH (one, result_get(sensor, "measures")) {
        text_addf(out, "%s%s", before, result_string(one));
        before = ",";
    }
    text_add(out, "\n");
}

/* Its power, and how often and how fast it is read. */
static void write_figures(const struct result_item *sensor, struct text *out)
{
    double watts = result_number_at(sensor, "power_w");
    double period_ms = result_number_at(sensor, "period_ms");
    double read_us = result_number_at(sensor, "read_us");
    char power[FORMAT_MAX] = "", period[80] = "", cost[80] = "", number[FORMAT_MAX];
    if (is_known(watts))
        chars_format(power, "%s%.1f W now", has_status(sensor, "estimated") ? "about " : "", watts);
    if (is_known(period_ms))
        chars_format(period, ", new value every %s", format_si(number, period_ms * 1e-3, "s"));
    if (is_known(read_us))
        chars_format(cost, "%sread overhead %s", power[0] ? ", " : "",
                     format_si(number, read_us * 1e-6, "s"));
    if (power[0] || cost[0])
        text_addf(out, "  %-14s %-11s  %s%s%s\n", "", "", power, period, cost);
}

static void write_sensor(const struct result_item *sensor, const struct status *status, bool color,
                         struct text *out)
{
    const char *reason = result_text_at(sensor, "reason");
    const char *fix = result_text_at(sensor, "fix");
    text_addf(out, "  %-14s %s%s%s%*s  ", result_text_at(sensor, "id"), color ? status->color : "",
              status->mark, color ? "\033[0m" : "", (int)(11 - strlen(status->mark)), "");
    if (!status->works) {
        text_addf(out, "%s\n", reason);
    } else {
        add_measures(sensor, out);
        write_figures(sensor, out);
        if (reason[0])
            text_addf(out, "  %-14s %-11s  %s\n", "", "", reason);
    }
    if (fix[0])
        text_addf(out, "  %-14s %-11s  fix: %s\n", "", "", fix);
}

/* ---- the report ---- */

static void write_verdict(const struct result *result, const struct result_item *sensors,
                          struct text *out)
{
    bool estimated = false;
    RESULT_EACH (sensor, sensors)
        estimated = estimated || has_status(sensor, "estimated");
    if (result_flag_at(result->items, "energy_measured"))
        text_add(out, "Energy is measured here. Try: ipw run -- ipw load\n");
    else if (estimated)
        text_add(out, "No sensor measures energy here: figures are estimated from CPU utilization, "
                      "and marked.\n");
    else
        text_add(out, "No sensor measures or estimates energy here: energy will be unknown.\n");
}

static void doctor_text(const struct result *result, bool color, struct text *out)
{
    const struct result_item *sensors = result_find(result, "sensors");
    write_host(result, out);
    text_add(out, "\n");
    for (size_t i = 0; i < STATUS_COUNT; i++)
        RESULT_EACH (sensor, sensors)
            if (has_status(sensor, STATUSES[i].name))
                write_sensor(sensor, &STATUSES[i], color, out);
    text_add(out, "\n");
    write_verdict(result, sensors, out);
    for (const char *line = NULL; (line = result_line(&result->notes, line));)
        text_addf(out, "%s\n", line);
}

const struct print_views DOCTOR_VIEWS = {.text = doctor_text};
