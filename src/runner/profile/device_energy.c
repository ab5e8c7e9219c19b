#include "runner/profile/device_energy.h"

#include "sensors/sensor.h"

static const struct value_stats NO_STATS = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};

/* An unknown sum becomes its first known part. */
static double add(double sum, double part)
{
    if (!is_known(part))
        return sum;
    return is_known(sum) ? sum + part : part;
}

/* Of several devices the averages add up; their extremes and medians fall at different times. */
static void add_stats(struct value_stats *sum, const struct value_stats *part)
{
    if (!is_known(part->avg))
        return;
    if (!is_known(sum->avg)) {
        *sum = *part;
        return;
    }
    *sum = (struct value_stats){sum->avg + part->avg, UNKNOWN, UNKNOWN, UNKNOWN};
}

static void add_energy(struct device_sum *kind, const struct device_share *share)
{
    kind->joules = add(kind->joules, share->energy.joules);
    kind->window_joules = add(kind->window_joules, share->window_joules);
    add_stats(&kind->watts, &share->watts);
    kind->devices++;
}

static void average(double *mean, unsigned *count, double value)
{
    if (!is_known(value))
        return;
    *mean = *count ? (*mean * *count + value) / (*count + 1) : value;
    (*count)++;
}

/* A CPU's figures are summed only where they enter the total: its package and its cores are the same
 * joules. */
static void add_device(const struct device_share *share, struct device_energy *out)
{
    enum sensor_kind kind = share->device->sensor->kind;
    bool counted = share->device->has_energy && share->counted;
    if (counted)
        out->window_joules = add(out->window_joules, share->window_joules);
    if (kind == SENSOR_GPU && share->device->has_energy)
        add_energy(&out->gpu, share);
    else if (counted && kind == SENSOR_BOARD)
        add_energy(&out->soc, share);
    else if (counted)
        add_energy(&out->cpu, share);
}

static void add_gauges(const struct device_share *share, struct device_energy *out,
                       unsigned counts[4])
{
    const struct value_stats *gauges = share->gauges;
    enum sensor_kind kind = share->device->sensor->kind;
    if (kind == SENSOR_HOST)
        add_stats(&out->host_memory, &gauges[QTY_MEMORY_USED]);
    if (kind != SENSOR_GPU)
        return;
    add_stats(&out->gpu_memory, &gauges[QTY_MEMORY_USED]);
    out->gpu_memory_total = add(out->gpu_memory_total, gauges[QTY_MEMORY_TOTAL].avg);
    average(&out->utilisation, &counts[0], gauges[QTY_UTILISATION].avg);
    average(&out->memory_utilisation, &counts[1], gauges[QTY_MEMORY_UTILISATION].avg);
    average(&out->tensor_utilisation, &counts[2], gauges[QTY_TENSOR_UTILISATION].avg);
    if (!is_known(gauges[QTY_TEMPERATURE].avg))
        return;
    double mean = out->temperature.avg;
    average(&mean, &counts[3], gauges[QTY_TEMPERATURE].avg);
    out->temperature = counts[3] == 1 ? gauges[QTY_TEMPERATURE] : NO_STATS;
    out->temperature.avg = mean;
}

void device_energy_of(const struct share *share, struct device_energy *out)
{
    const struct device_sum nothing = {UNKNOWN, UNKNOWN, NO_STATS, 0};
    unsigned counts[4] = {0};
    *out = (struct device_energy){
        .gpu = nothing,
        .cpu = nothing,
        .soc = nothing,
        .window_joules = UNKNOWN,
        .gpu_memory = NO_STATS,
        .host_memory = NO_STATS,
        .temperature = NO_STATS,
        .gpu_memory_total = UNKNOWN,
        .utilisation = UNKNOWN,
        .memory_utilisation = UNKNOWN,
        .tensor_utilisation = UNKNOWN,
    };
    for (size_t i = 0; i < share->count; i++) {
        add_device(&share->devices[i], out);
        add_gauges(&share->devices[i], out, counts);
    }
}

const char *device_energy_basis(const struct device_energy *kinds)
{
    if (is_known(kinds->gpu.joules))
        return "gpu";
    if (is_known(kinds->soc.joules))
        return "soc";
    return is_known(kinds->cpu.joules) ? "cpu" : NULL;
}
