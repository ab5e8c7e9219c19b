/* The readings of a view as a result: each device, their total, and the host. */
#include "core/result.h"
#include "core/text.h"
#include "monitor/monitor.h"

static double percent(double share)
{
    return is_known(share) ? 100 * share : UNKNOWN;
}

static void put_device(const struct monitor_device *device, struct result *result)
{
    double error = device->energy_j * device->relative_accuracy;
    double clock_mhz = is_known(device->clock_hz) ? device->clock_hz / 1e6 : UNKNOWN;
    result_group(result, NULL);
    result_text(result, "id", device->id);
    result_text(result, "name", str_or_null(device->name));
    result_text(result, "kind", device->kind);
    result_number(result, "power_w", device->power_w, "W");
    result_measured(result, "energy_j", device->energy_j, "energy_plus_minus_j", error, "J");
    result_number(result, "utilization_pct", percent(device->utilization), "");
    result_number(result, "memory_used_bytes", device->memory_used, "B");
    result_number(result, "temperature_c", device->temperature_c, "°C");
    result_number(result, "clock_mhz", clock_mhz, "MHz");
    result_text(result, "health", device->health);
    result_number(result, "age_s", device->age_s, "s");
    result_text(result, "method", method_name(device->method));
    result_text(result, "source", device->source);
    result_flag(result, "counted", device->is_counted);
    result_end(result);
}

static double gauge_of(const struct monitor_view *view, enum monitor_gauge gauge)
{
    return view ? monitor_view_gauge(view, gauge) : UNKNOWN;
}

void monitor_view_to_result(const struct monitor_view *view, const struct monitor_device *devices,
                            size_t count, struct result *result)
{
    double total = UNKNOWN;
    result_list(result, "devices");
    for (size_t i = 0; i < count; i++) {
        put_device(&devices[i], result);
        if (devices[i].is_counted)
            add_known(&total, devices[i].power_w);
    }
    result_end(result);
    result_group(result, "totals");
    result_number(result, "power_w", total, "W");
    result_end(result);
    result_group(result, "host");
    result_number(result, "utilization_pct", percent(gauge_of(view, MONITOR_HOST_UTILIZATION)), "");
    result_number(result, "memory_used_bytes", gauge_of(view, MONITOR_HOST_MEMORY), "B");
    result_end(result);
}
