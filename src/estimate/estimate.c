#include "estimate/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "estimate/certainty.h"
#include "estimate/concurrency.h"
#include "estimate/energy.h"
#include "estimate/memory.h"
#include "estimate/roofline.h"

const char *estimate_bound_name(enum estimate_bound bound)
{
    static const char *const NAMES[BOUND_COUNT] = {"compute", "memory", "launch", "link",
                                                   "balanced"};
    return NAMES[bound];
}

const char *estimate_confidence_name(enum estimate_confidence confidence)
{
    static const char *const NAMES[] = {"calibrated", "interpolated", "theoretical"};
    return NAMES[confidence];
}

static void add_joules(struct estimate_joules *sum, const struct estimate_joules *more)
{
    sum->compute += more->compute;
    sum->memory += more->memory;
    sum->idle += more->idle;
    sum->link += more->link;
    sum->total += more->total;
}

static void add_traffic(struct estimate_traffic *sum, const struct estimate_traffic *more,
                        int devices)
{
    sum->weights += devices * more->weights;
    sum->activations += devices * more->activations;
    sum->cache_read += devices * more->cache_read;
    sum->cache_written += devices * more->cache_written;
    sum->link += devices * more->link;
}

static void add_row(struct estimate *out, const struct estimate_row *row)
{
    double watts = row->joules.total / row->latency_s;
    out->latency_s += row->latency_s;
    out->flops += row->flops;
    out->bytes += row->bytes;
    out->bound_counts[row->bound]++;
    out->wasted_j += row->joules.idle * (1 - row->utilisation);
    out->utilisation += row->joules.total * row->utilisation; /* weighted: divided at the end */
    add_joules(&out->joules, &row->joules);
    if (row->latency_s > 0 && is_known(out->peak_w) && !(watts <= out->peak_w))
        out->peak_w = watts; /* unknown stays unknown */
}

static void estimate_rows(const struct rates *rates, int devices, struct estimate *out)
{
    const struct partition *partition = out->partition;
    for (size_t i = 0; i < partition->count; i++) {
        const struct subgraph *subgraph = &partition->subgraphs[i];
        struct estimate_row *row = &out->rows[i];
        struct roofline_work work = roofline_work(subgraph, partition, &rates->widths, devices);
        roofline_row(subgraph, &work, rates, row);
        energy_row(&work, rates, devices, row);
        row->flops = devices * (2 * work.macs + work.elementwise);
        row->bytes = devices * work.bytes;
        add_traffic(&out->traffic, &work.traffic, devices);
        add_row(out, row);
    }
}

static void set_ratios(const struct rates *rates, int devices, struct estimate *out)
{
    double all = devices * out->latency_s, total = out->joules.total;
    out->average_w = out->latency_s > 0 ? total / out->latency_s : UNKNOWN;
    out->utilisation = total > 0 ? out->utilisation / total : UNKNOWN;
    out->efficiency = total > 0 ? (total - out->joules.idle) / total : UNKNOWN;
    out->mfu = all > 0 ? 2 * out->macs / (all * rates->product_flops.value) : UNKNOWN;
    out->mbu = all > 0 ? out->bytes / (all * rates->bytes_per_s.value) : UNKNOWN;
    if (out->partition->count == 0)
        out->peak_w = UNKNOWN;
}

static enum err check_devices(const struct hardware *hardware, const struct rates *rates,
                              int devices, struct error *why)
{
    if (devices < 1)
        return err_set(why, ERR_BAD_VALUE, "%d devices: give at least 1", devices);
    if (devices > 1 && !is_known(rates->link_bytes_per_s.value))
        return err_set(why, ERR_BAD_VALUE,
                       "%s states no link to a neighbour: it cannot share a model", hardware->id);
    return ERR_OK;
}

enum err estimate_make(const struct partition *partition, const struct hardware *hardware,
                       const struct estimate_setting *setting, struct estimate *out,
                       struct error *why)
{
    struct rates rates;
    int devices = setting->devices ? setting->devices : 1;
    *out = (struct estimate){.partition = partition, .hardware = hardware, .setting = *setting};
    enum err err = rates_of(hardware, setting->precision, &rates, why);
    if (!err)
        err = check_devices(hardware, &rates, devices, why);
    if (err)
        return err;
    if (!is_known(rates.link_latency_s.value))
        rates.link_latency_s.value = 0;
    rates.widths.keeps_stored = setting->keeps_stored;
    out->setting.devices = devices;
    out->used = rates.used;
    out->params = graph_parameters(partition->graph);
    out->macs = partition->total.macs;
    out->rows = calloc(partition->count + 1, sizeof *out->rows);
    double batch = setting->batch > 0 ? setting->batch : partition->graph->batch;
    err = out->rows ? memory_of(partition, &rates, devices, batch, &out->memory) : ERR_NO_MEMORY;
    if (!err)
        err = concurrency_of(partition, batch > 0 ? batch : 1, &out->concurrency);
    if (err) {
        estimate_release(out);
        return err_set(why, err, "%s", err_text(err));
    }
    estimate_rows(&rates, devices, out);
    set_ratios(&rates, devices, out);
    certainty_of(&rates, out);
    return ERR_OK;
}

void estimate_release(struct estimate *estimate)
{
    free(estimate->rows);
    free(estimate->memory.timeline);
    *estimate = (struct estimate){0};
}
