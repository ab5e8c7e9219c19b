/* The figures of a device that an estimate uses, with their evidence and sources: peak rates, energies, memory, power,
 * links, and what was assumed where the catalog states nothing. */
#include "core/result.h"
#include "core/units.h"
#include "estimate/estimate_result.h"
#include "estimate/roofline.h"
#include "estimate/words.h"

struct device_figure {
    const char *name, *unit;
    const char *format; /* precision: "fp16"; NULL: none */
    struct hardware_figure figure;
};
enum { FIGURES_MAX = 18 };

static size_t put_way(const struct hardware_path *way, struct device_figure *out)
{
    const char *format = precision_name(way->used);
    out[0] = (struct device_figure){way->is_matrix ? "matrix_flops" : "vector_flops", "FLOP/s",
                                    format, *way->flops};
    out[1] = (struct device_figure){way->is_matrix ? "matrix_joules" : "vector_joules", "J/FLOP",
                                    format, *way->joules};
    return 2;
}

/* For devices that share a model.  An unknown latency counts as 0. */
static size_t put_link(const struct hardware *hardware, struct device_figure *out)
{
    out[0] = (struct device_figure){"link_bandwidth", "B/s", NULL, hardware->link_bytes_per_s};
    out[1] = (struct device_figure){"link_latency", "s", NULL, hardware->link_latency_s};
    if (!is_known(out[1].figure.value))
        out[1].figure = (struct hardware_figure){.value = 0,
                                                 .evidence = EVIDENCE_ASSUMED,
                                                 .plus_minus = UNKNOWN,
                                                 .source = "unknown: assumed to be 0"};
    size_t count = 2;
    if (is_known(hardware->link_peers.value))
        out[count++] = (struct device_figure){"link_peers", "", NULL, hardware->link_peers};
    if (is_known(hardware->link_count.value))
        out[count++] = (struct device_figure){"links", "", NULL, hardware->link_count};
    return count;
}

/* Host launch time, unless given by an option. */
static size_t put_host(const struct workload_estimate *estimate, struct device_figure *out)
{
    const struct runtime_host host = words_runtime_host(estimate);
    if (!is_known(host.launch_s) || estimate->config.host_launch_s > 0)
        return 0;
    out[0] = (struct device_figure){"host_launch", "s", NULL, estimate->hardware->host_launch_s};
    if (host.spread > 0)
        out[0].figure = (struct hardware_figure){.value = host.launch_s,
                                                 .evidence = EVIDENCE_ASSUMED,
                                                 .plus_minus = host.spread * host.launch_s,
                                                 .source = "not stated: mean of nine hosts"};
    return 1;
}

static size_t find_figures(const struct workload_estimate *estimate,
                           struct device_figure out[FIGURES_MAX])
{
    const struct hardware *hardware = estimate->hardware;
    const struct hardware_memory *memory = hardware_main_memory(hardware);
    struct hardware_path products = hardware_matmul_path(hardware, estimate->config.precision);
    struct hardware_path others = hardware_elementwise_path(hardware, estimate->config.precision);
    struct rates_stated stated = rates_stated_or_assumed(hardware);
    size_t count = put_way(&products, out);
    if (others.flops != products.flops)
        count += put_way(&others, out + count);
    const struct device_figure more[] = {
        {"memory_bandwidth", "B/s", NULL, memory->bytes_per_s},
        {"memory_joules", "J/B", NULL, memory->joules_per_byte},
        {"memory_capacity", "B", NULL, memory->capacity_bytes},
        {"power_limit", "W", NULL, hardware->limit_w},
        {"idle_power", "W", NULL, hardware->idle_w},
        {"launch", "s", NULL, stated.launch_s},
        {"units", "", NULL, hardware->units},
        {"compute_share", "", NULL, stated.compute_share},
        {"memory_share", "", NULL, stated.memory_share},
    };
    for (size_t i = 0; i < COUNT_OF(more); i++)
        out[count++] = more[i];
    count += put_host(estimate, out + count);
    if (estimate_devices(&estimate->config) > 1)
        count += put_link(hardware, out + count);
    return count;
}

void device_figures_to_result(struct result *result, const struct workload_estimate *estimate)
{
    struct device_figure figures[FIGURES_MAX];
    size_t count = find_figures(estimate, figures);
    result_list(result, "hardware_figures");
    for (size_t i = 0; i < count; i++) {
        const struct hardware_figure *figure = &figures[i].figure;
        bool known = is_known(figure->value);
        double plus_minus = known ? figure->plus_minus : UNKNOWN;
        result_group(result, NULL);
        result_text(result, "name", figures[i].name);
        result_text(result, "unit", figures[i].unit);
        result_text(result, "format", figures[i].format);
        result_measured(result, "value", figure->value, "plus_minus", plus_minus, figures[i].unit);
        result_text(result, "evidence", known ? evidence_name(figure->evidence) : NULL);
        result_text(result, "source", known ? figure->source : NULL);
        result_end(result);
    }
    result_end(result);
}
