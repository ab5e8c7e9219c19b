/* Prometheus' text format, for the textfile collector of its node exporter: the summary of a run. */
#include <string.h>

#include "report/export/export.h"
#include "rundir/summary.h"
#include "wire/prometheus.h"
#include "core/text.h"
#include "core/units.h"

/* The labels of every line of the run, and optional ones. */
static void add_common(const struct export_run *run, struct text *labels)
{
    const char *hardware = run->summary->hardware_label, *dataset = run->summary->dataset_name;
    text_clear(labels);
    exposition_label(labels, "run", run->name);
    exposition_label(labels, "model", run->model);
    exposition_label(labels, "hardware", text_or_empty(hardware));
    exposition_label(labels, "dataset", text_or_empty(dataset));
}

static void put_gauges(const struct export_run *run, struct exposition *to)
{
    struct metric_family family = {.name = "", .type = METRIC_GAUGE, .unit = ""};
    struct text labels = {0};
    for (size_t i = 0; i < SUMMARY_GAUGES; i++) {
        const struct summary_field *gauge = summary_gauge(i);
        const char *equals = strchr(gauge->gauge_label, '=');
        if (!str_equal(family.name, gauge->gauge_name)) {
            family.name = gauge->gauge_name;
            family.help = gauge->gauge_help;
            exposition_family(to, &family);
        }
        add_common(run, &labels);
        if (equals)
            text_addf(&labels, ",%.*s=\"%s\"", (int)(equals - gauge->gauge_label),
                      gauge->gauge_label, equals + 1);
        exposition_sample(to, text_get(&labels), "", json_field_number(&gauge->at, run->summary));
    }
    text_release(&labels);
}

/* The measurement method is text, so it is a label of a metric that is always 1. */
static void put_info(const struct export_run *run, struct exposition *to)
{
    static const struct metric_family FAMILY = {
        "ipw_run_info", METRIC_GAUGE, "", "The run, and how its energy was measured; always 1."};
    const struct summary *summary = run->summary;
    const char *const FACTS[][2] = {{"energy_method", summary->energy.method},
                                    {"energy_source", summary->energy.source},
                                    {"client", summary->config_client},
                                    {"version", summary->version}};
    struct text labels = {0};
    add_common(run, &labels);
    for (size_t i = 0; i < COUNT_OF(FACTS); i++)
        if (FACTS[i][1])
            exposition_label(&labels, FACTS[i][0], FACTS[i][1]);
    exposition_family(to, &FAMILY);
    exposition_sample(to, text_get(&labels), "", 1);
    text_release(&labels);
}

static void put_devices(const struct export_run *run, struct exposition *to)
{
    static const struct metric_family FAMILY = {
        "ipw_run_device_energy_joules", METRIC_GAUGE, "joules",
        "Energy of each device in the last start of the run; some contain others."};
    struct text labels = {0};
    exposition_family(to, &FAMILY);
    for (size_t i = 0; i < run->summary->device_count; i++) {
        const struct summary_device *device = &run->summary->devices[i];
        if (!device->id)
            continue;
        add_common(run, &labels);
        exposition_label(&labels, "device", device->id);
        exposition_label(&labels, "method", text_or_empty(device->energy.method));
        exposition_label(&labels, "in_total", device->in_total ? "true" : "false");
        exposition_sample(to, text_get(&labels), "", device->energy.joules);
    }
    text_release(&labels);
}

/* Metrics of all answers; unknown ones are left out. */
static void put_qualities(const struct export_run *run, struct exposition *to)
{
    static const struct metric_family FAMILY = {
        "ipw_run_answer_quality", METRIC_GAUGE, "",
        "A metric of all answers of the run: word error rate, mAP, FID ..."};
    struct text labels = {0};
    if (run->summary->quality_count)
        exposition_family(to, &FAMILY);
    for (size_t i = 0; i < run->summary->quality_count; i++) {
        const struct summary_quality *quality = &run->summary->qualities[i];
        if (!is_known(quality->value))
            continue;
        add_common(run, &labels);
        exposition_label(&labels, "metric", quality->name);
        exposition_sample(to, text_get(&labels), "", quality->value);
    }
    text_release(&labels);
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
    struct exposition to = {.out = &export->out};
    (void)why;
    put_info(export->run, &to);
    put_gauges(export->run, &to);
    put_devices(export->run, &to);
    put_qualities(export->run, &to);
    return ERR_OK;
}

const struct export_driver export_prom = {
    .name = "prom",
    .summary = "Prometheus' text format: the run's summary, for a textfile collector",
    .begin = prom_begin,
    .end = prom_end,
};
