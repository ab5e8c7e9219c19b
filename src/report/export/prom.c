/* Prometheus' text format, for the textfile collector of its node exporter: the summary of a run. */
#include <string.h>

#include "core/units.h"
#include "port/json_read.h"
#include "report/export/export.h"
#include "report/export/flat.h"

static const struct gauge {
    const char *name, *help, *place, *label;
} GAUGES[] = {
#define GAUGE(name, help, place, label) {#name, help, place, label},
#include "report/export/prom_metrics.def"
#undef GAUGE
};

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
    const char *hardware = jv_text(jv_get(run->summary, "hardware_label"));
    const char *dataset = jv_text(jv_get(run->summary, "dataset_name"));
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
    flat_add_number(out, value);
    text_add(out, "\n");
}

static void put_gauges(const struct export_run *run, struct text *out)
{
    const char *headed = "";
    for (size_t i = 0; i < sizeof GAUGES / sizeof *GAUGES; i++) {
        const struct gauge *gauge = &GAUGES[i];
        double value = jv_number(jv_path(run->summary, gauge->place));
        const char *equals = strchr(gauge->label, '=');
        if (!is_known(value))
            continue;
        if (strcmp(headed, gauge->name) != 0)
            add_head(out, gauge->name, gauge->help);
        headed = gauge->name;
        text_add(out, gauge->name);
        add_common(run, out);
        if (equals)
            text_addf(out, ",%.*s=\"%s\"", (int)(equals - gauge->label), gauge->label, equals + 1);
        add_value(out, value);
    }
}

/* How the energy was measured is text, so it stands in labels of a figure that is always 1. */
static void put_info(const struct export_run *run, struct text *out)
{
    static const char *const FACTS[][2] = {{"energy_method", "ipw.energy.method"},
                                           {"energy_source", "ipw.energy.source"},
                                           {"client", "profiler_config.client_id"},
                                           {"version", "versions.ipw"}};
    add_head(out, "ipw_run_info", "What the run is and how its energy was measured; always 1.");
    text_add(out, "ipw_run_info");
    add_common(run, out);
    for (size_t i = 0; i < sizeof FACTS / sizeof *FACTS; i++) {
        const char *value = jv_text(jv_path(run->summary, FACTS[i][1]));
        if (value)
            add_label(out, FACTS[i][0], value);
    }
    add_value(out, 1);
}

static void put_devices(const struct export_run *run, struct text *out)
{
    bool headed = false;
    for (const struct jv *device = jv_first(jv_path(run->summary, "ipw.devices")); device;
         device = jv_next(device)) {
        double joules = jv_number(jv_path(device, "energy.joules"));
        const char *id = jv_text(jv_get(device, "id"));
        const char *method = jv_text(jv_path(device, "energy.method"));
        if (!id || !is_known(joules))
            continue;
        if (!headed)
            add_head(out, "ipw_run_device_energy_joules",
                     "Energy of each device in the last start of the run; some contain others.");
        headed = true;
        text_add(out, "ipw_run_device_energy_joules");
        add_common(run, out);
        add_label(out, "device", id);
        add_label(out, "method", method ? method : "");
        add_label(out, "in_total", jv_truth(jv_get(device, "in_total"), false) ? "true" : "false");
        add_value(out, joules);
    }
}

static enum err prom_begin(struct export *export, struct error *why)
{
    if (!export->run->summary)
        return err_set(why, ERR_NO_DATA,
                       "%s has no summary.json: the run has not come to its end; `ipw profile "
                       "--resume` finishes it",
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
