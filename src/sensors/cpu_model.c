/* CPU power from a model: utilization times a power figure for the processor.  The last resort, for
 * virtual machines and hosts whose meters cannot be read; every joule of it is labeled estimated.
 *
 *     P = threads x w_thread x (IDLE_SHARE + (1 - IDLE_SHARE) x utilization)
 *
 * threads   hardware threads online; in a virtual machine the guest's vCPUs, so that a guest is
 *           charged for its own share of the host and no more
 * w_thread  the package's sustained all-core watts over its threads (catalog/cpu_power.h)
 *
 * IDLE_SHARE: measured packages of cloud servers draw about 0.12 of TDP when idle, 0.32 at 10 %,
 * 0.75 at 50 % and 1.02 at full load.  The line from 0.25 to 1 stays within 0.13 of TDP of all
 * four, nearest where inference runs (above 10 %); a lower start would fit idle only.
 *
 * Utilization is that of the interval since the previous read, so a reading is the mean power of
 * that interval, dated to its end; the sum over readings telescopes and no busy tick is lost.
 * Stolen time is not ours: it counts as time, not as work.  An interval in which a counter went
 * backwards (a CPU went offline) gives no reading. */
#include <stdlib.h>

#include "catalog/cpu_power.h"
#include "core/clock.h"
#include "core/memory.h"
#include "core/text.h"
#include "sensors/system/host_info.h"
#include "sensors/sensor.h"

#define IDLE_SHARE 0.25

struct cpu_model {
    struct proc_stat stat;
    double watts_full; /* all threads busy */
};

static struct cpu_power host_power(const struct host_info *host)
{
    const struct cpu_identity *cpu = &host->cpu;
    return cpu_power_find(&(struct cpu_power_key){
        .brand = host->cpu_brand,
        .product = host->cpu_product,
        .board = host->board,
        .vendor = cpu->vendor,
        .family = cpu->family,
        .model = cpu->model,
        .implementer = cpu->implementer,
        .part = cpu->part,
        /* A guest's CPU is one thread of a host that uses all of them; on bare metal with SMT off, the same power is
         * divided among half as many threads. */
        .is_single_threaded = host->smt_off && !host->virtualized,
    });
}

static void cpu_model_probe(const struct sensor_config *config, struct sensor_findings *out)
{
    (void)config;
    struct proc_stat stat;
    enum err err = proc_stat_open(&stat);
    proc_stat_close(&stat);
    enum sensor_status status = err ? sensor_status_of(err, SENSOR_ABSENT) : SENSOR_ESTIMATED;
    struct sensor_finding *finding = sensor_found(out, "cpu_model", SENSOR_CPU, status);
    if (!finding)
        return;
    if (err) {
        chars_format(finding->reason, "/proc/stat: %s", err_text(err));
        if (err == ERR_DENIED)
            chars_copy(finding->fix, PROC_STAT_FIX);
        return;
    }
    struct host_info host;
    host_info_read(&host);
    struct cpu_power figure = host_power(&host);
    chars_copy(finding->name, host.cpu_brand[0] ? host.cpu_brand : "CPU");
    chars_copy(finding->measures, "power");
    chars_format(finding->reason,
                 "a model, not a meter: utilization x %.2f W per thread (%s; %s), good to %.0f %%",
                 figure.watts_per_thread, figure.name, figure.source,
                 figure.relative_accuracy * 100);
}

static void add_facts(struct sensor *sensor, const struct host_info *host,
                      const struct cpu_power *figure)
{
    char text[72];
    if (host->cpu_brand[0])
        sensor_add_fact(sensor, "cpu", host->cpu_brand);
    sensor_add_fact(sensor, "figure", figure->name);
    sensor_add_fact(sensor, "figure_source", figure->source);
    chars_format(text, "%.3f", figure->watts_per_thread);
    sensor_add_fact(sensor, "watts_per_thread", text);
    chars_format(text, "%u", host->cpu_count);
    sensor_add_fact(sensor, "threads", text);
    sensor_add_fact(sensor, "virtual", host->virtualized ? "yes" : "no");
}

static enum err cpu_model_open(const struct sensor_finding *finding, struct sensor *out,
                               struct error *why)
{
    (void)finding;
    struct host_info host;
    struct cpu_model *model = memory_zeroed(1, sizeof *model);
    if (!model)
        return err_set(why, ERR_NO_MEMORY, "cpu_model: out of memory");
    enum err err = proc_stat_open(&model->stat);
    if (err) {
        free(model);
        return err_set(why, err, "cpu_model: cannot read /proc/stat: %s", err_text(err));
    }
    host_info_read(&host);
    struct cpu_power figure = host_power(&host);
    if (!host.cpu_count)
        host.cpu_count = 1; /* a machine that runs us has one */
    model->watts_full = host.cpu_count * figure.watts_per_thread;

    struct sensor_channel *power = sensor_add_channel(out, "power", "cpu", QTY_POWER);
    power->scope = SCOPE_PACKAGE;
    power->watts_max = model->watts_full * 1.01; /* the model has no higher value */
    power->watts_idle = model->watts_full * IDLE_SHARE;
    power->relative_accuracy = figure.relative_accuracy;
    power->estimated = true;
    power->interval_mean = true; /* utilization since the previous read */
    out->groups[0] = (struct sensor_group){
        .period_default = 100 * NS_PER_MS,
        .period_min = 10 * NS_PER_MS, /* the kernel counts in ticks of 10 ms */
        .slow_period = 2 * NS_PER_S,
        .slow_period_min = NS_PER_S / 2,
    };
    out->group_count = 1;
    add_facts(out, &host, &figure);
    out->state = model;
    return ERR_OK;
}

static enum err cpu_model_read(struct sensor *sensor, unsigned group, struct observations *out)
{
    (void)group;
    struct cpu_model *model = sensor->state;
    double utilization;
    enum err err = proc_stat_utilization(&model->stat, &utilization);
    nanos t = clock_now();
    if (err)
        observe_missing(out, 0, t, err);
    else
        observe_value(out, 0, t, model->watts_full * (IDLE_SHARE + (1 - IDLE_SHARE) * utilization));
    return ERR_OK;
}

static void cpu_model_close(struct sensor *sensor)
{
    struct cpu_model *model = sensor->state;
    if (!model)
        return;
    proc_stat_close(&model->stat);
    free(model);
}

const struct sensor_driver sensor_cpu_model = {
    .name = "cpu_model",
    .summary = "CPU power estimated from utilization, where nothing measures it",
    .probe = cpu_model_probe,
    .open = cpu_model_open,
    .read = cpu_model_read,
    .close = cpu_model_close,
};
