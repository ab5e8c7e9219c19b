#include "attribute/ledger.h"

#include "core/energy.h"
#include "core/json.h"
#include "sensors/sensor.h"

/* How a gauge is called and scaled in JSON. */
static const struct {
    enum quantity quantity;
    const char *key;
    double scale;
} GAUGES[] = {
    {QTY_TEMPERATURE, "temperature_c", 1},
    {QTY_UTILIZATION, "utilisation_pct", 1},
    {QTY_MEMORY_UTILIZATION, "memory_utilisation_pct", 1},
    {QTY_TENSOR_UTILIZATION, "tensor_utilisation_pct", 1},
    {QTY_MEMORY_USED, "memory_used_mb", 1.0 / (1 << 20)},
    {QTY_MEMORY_TOTAL, "memory_total_mb", 1.0 / (1 << 20)},
    {QTY_CLOCK, "clock_mhz", 1},
    {QTY_MEMORY_CLOCK, "memory_clock_mhz", 1},
    {QTY_POWER_LIMIT, "power_limit_w", 1},
    {QTY_SM_ACTIVE, "sm_active_pct", 1},
    {QTY_SM_OCCUPANCY, "sm_occupancy_pct", 1},
    {QTY_DRAM_ACTIVE, "dram_active_pct", 1},
    {QTY_FP64_ACTIVE, "fp64_active_pct", 1},
    {QTY_FP32_ACTIVE, "fp32_active_pct", 1},
    {QTY_FP16_ACTIVE, "fp16_active_pct", 1},
};

static void gauges_to_json(struct json *json, const struct ledger_device *device)
{
    for (size_t i = 0; i < COUNT_OF(GAUGES); i++) {
        const struct ledger_gauge *gauge = &device->gauges[GAUGES[i].quantity];
        if (!gauge->present)
            continue;
        json_object(json, GAUGES[i].key);
        json_number(json, "mean", gauge->mean * GAUGES[i].scale);
        json_number(json, "max", gauge->max * GAUGES[i].scale);
        json_number(json, "last", gauge->last * GAUGES[i].scale);
        json_object_end(json);
    }
    const struct ledger_gauge *throttle = &device->gauges[QTY_THROTTLE];
    if (throttle->present && is_known(throttle->last)) {
        char words[80];
        throttle_words((unsigned)throttle->last, words, sizeof words);
        json_string(json, "throttle", words[0] ? words : "none");
    }
    if (device->sensor->kind == SENSOR_GPU)
        json_string(json, "activity_source", ledger_activity_source(device));
}

static void facts_to_json(struct json *json, const struct sensor *sensor)
{
    json_object(json, "facts");
    for (size_t i = 0; i < sensor->fact_count; i++)
        json_string(json, sensor->facts[i].key, sensor->facts[i].text);
    json_object_end(json);
}

void device_fields_to_json(struct json *json, const struct ledger_device *device)
{
    json_string(json, "id", device->id);
    json_string(json, "name", device->sensor->name[0] ? device->sensor->name : NULL);
    json_string(json, "kind", sensor_kind_name(device->sensor->kind));
    json_string(json, "driver", device->sensor->driver->name);
    if (device->has_energy || device->is_instance) {
        energy_to_json(json, "energy", &device->energy);
        json_bool(json, "in_total", device->counted);
        json_object(json, "power_w");
        json_number(json, "mean", device->power_mean);
        json_number(json, "max", device->power_max);
        json_object_end(json);
        if (device->cross_check.method != METHOD_NONE) {
            energy_to_json(json, "cross_check", &device->cross_check);
            json_number(json, "residual", device->residual);
        }
        json_array(json, "parts");
        for (size_t i = 0; i < device->part_count; i++) {
            json_object(json, NULL);
            json_string(json, "name", device->parts[i].name);
            energy_to_json(json, "energy", &device->parts[i].energy);
            json_object_end(json);
        }
        json_array_end(json);
    }
    gauges_to_json(json, device);
    facts_to_json(json, device->sensor);
}

static void device_to_json(struct json *json, const struct ledger_device *device)
{
    json_object(json, NULL);
    device_fields_to_json(json, device);
    json_object_end(json);
}

void devices_to_json(struct json *json, const char *key, const struct ledger *ledger)
{
    json_array(json, key);
    for (size_t i = 0; i < ledger->count; i++)
        device_to_json(json, &ledger->devices[i]);
    json_array_end(json);
}
