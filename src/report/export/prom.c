/* Prometheus' text format, for the textfile collector of its node exporter: the summary of a run. */
#include <string.h>

#include "core/units.h"
#include "report/export/export.h"
#include "rundir/summary.h"

/* Backslash, newline and, in a label, the quote. */
static void add_escaped(struct text *out, const char *value, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (value[i] == '\n')
            text_add(out, "\\n");
        else if (value[i] == '\\' || value[i] == '"') {
            text_add(out, "\\");
            text_add_bytes(out, value + i, 1);
        } else
            text_add_bytes(out, value + i, 1);
}

static void add_label(struct text *out, const char *name, const char *value)
{
    text_addf(out, "%s%s=\"", out->bytes[out->length - 1] == '{' ? "" : ",", name);
    add_escaped(out, value, strlen(value));
    text_add(out, "\"");
}

/* The labels of every line of the run. */
static void add_common(const struct export_run *run, struct text *out)
{
    const char *hardware = run->summary->hardware_label, *dataset = run->summary->dataset_name;
    text_add(out, "{");
    add_label(out, "run", run->name);
    add_label(out, "model", run->model);
    add_label(out, "hardware", hardware ? hardware : "");
    add_label(out, "dataset", dataset ? dataset : "");
}

static void add_head(struct text *out, const char *name, const char *help)
{
    text_addf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void add_value(struct text *out, double value)
{
    text_add(out, "} ");
    export_add_number(out, value);
    text_add(out, "\n");
}

static void put_gauges(const struct export_run *run, struct text *out)
{
    const char *headed = "";
    for (size_t i = 0; i < SUMMARY_GAUGES; i++) {
        const struct summary_field *gauge = summary_gauge(i);
        double value = json_field_number(&gauge->at, run->summary);
        const char *equals = strchr(gauge->gauge_label, '=');
        if (!is_known(value))
            continue;
        if (strcmp(headed, gauge->gauge_name) != 0)
            add_head(out, gauge->gauge_name, gauge->gauge_help);
        headed = gauge->gauge_name;
        text_add(out, gauge->gauge_name);
        add_common(run, out);
        if (equals)
            text_addf(out, ",%.*s=\"%s\"", (int)(equals - gauge->gauge_label), gauge->gauge_label,
                      equals + 1);
        add_value(out, value);
    }
}

/* How the energy was measured is text, so it stands in labels of a figure that is always 1. */
static void put_info(const struct export_run *run, struct text *out)
{
    const struct summary *summary = run->summary;
    const char *const FACTS[][2] = {{"energy_method", summary->energy.method},
                                    {"energy_source", summary->energy.source},
                                    {"client", summary->config_client},
                                    {"version", summary->version}};
    add_head(out, "ipw_run_info", "What the run is and how its energy was measured; always 1.");
    text_add(out, "ipw_run_info");
    add_common(run, out);
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++)
        if (FACTS[i][1])
            add_label(out, FACTS[i][0], FACTS[i][1]);
    add_value(out, 1);
}

static void put_devices(const struct export_run *run, struct text *out)
{
    bool headed = false;
    for (size_t i = 0; i < run->summary->device_count; i++) {
        const struct summary_device *device = &run->summary->devices[i];
        if (!device->id || !is_known(device->energy.joules))
            continue;
        if (!headed)
            add_head(out, "ipw_run_device_energy_joules",
                     "Energy of each device in the last start of the run; some contain others.");
        headed = true;
        text_add(out, "ipw_run_device_energy_joules");
        add_common(run, out);
        add_label(out, "device", device->id);
        add_label(out, "method", device->energy.method ? device->energy.method : "");
        add_label(out, "in_total", device->in_total ? "true" : "false");
        add_value(out, device->energy.joules);
    }
}

static enum err prom_begin(struct export *export, struct error *why)
{
    if (!export->run->summary)
        return err_set(why, ERR_NO_DATA,
                       "%s has no summary.json: the run is unfinished; `ipw profile --resume` "
                       "continues it",
                       export->run->directory);
    return ERR_OK;
}

static enum err prom_end(struct export *export, struct error *why)
{
    (void)why;
    put_info(export->run, &export->out);
    put_gauges(export->run, &export->out);
    put_devices(export->run, &export->out);
    return ERR_OK;
}

const struct export_driver export_prom = {
    .name = "prom",
    .summary = "Prometheus' text format: the run's summary, for a textfile collector",
    .begin = prom_begin,
    .end = prom_end,
};
