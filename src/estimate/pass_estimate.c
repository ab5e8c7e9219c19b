#include "estimate/pass_estimate.h"

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

/* ---- rows ---- */

/* What a subgraph adds to the whole. */
struct addend {
    double latency_s, macs, flops, bytes, wasted_j;
    double weighted; /* utilisation times joules */
    struct estimate_joules joules;
    struct estimate_traffic traffic;
    struct certainty_shares shares;
};

/* A kind of subgraph on this device. */
struct kind {
    struct subgraph_estimate row;
    struct addend addend;
};

static struct estimate_traffic times(const struct estimate_traffic *one, int devices)
{
    return (struct estimate_traffic){
        .weights = devices * one->weights,
        .activations = devices * one->activations,
        .cache_read = devices * one->cache_read,
        .cache_written = devices * one->cache_written,
        .link = devices * one->link,
    };
}

static void estimate_kind(const struct partition *partition, size_t number,
                          const struct rates *rates, int devices, struct kind *out)
{
    const struct subgraph *subgraph = &partition->subgraphs[partition->unique[number]];
    struct subgraph_estimate *row = &out->row;
    struct roofline_work work = roofline_work(subgraph, partition, &rates->widths, devices);
    roofline_row(subgraph, &work, rates, row);
    energy_row(&work, rates, devices, row);
    row->flops = devices * (2 * work.macs + work.elementwise);
    row->bytes = devices * work.bytes;
    out->addend = (struct addend){
        .latency_s = row->latency_s,
        .macs = devices * work.macs,
        .flops = row->flops,
        .bytes = row->bytes,
        .wasted_j = row->joules.idle * (1 - row->utilisation),
        .weighted = row->joules.total * row->utilisation,
        .joules = row->joules,
        .traffic = times(&work.traffic, devices),
        .shares = certainty_shares(subgraph, row),
    };
}

static void add_joules(struct estimate_joules *sum, const struct estimate_joules *more)
{
    sum->compute += more->compute;
    sum->memory += more->memory;
    sum->idle += more->idle;
    sum->link += more->link;
    sum->total += more->total;
}

static void add_traffic(struct estimate_traffic *sum, const struct estimate_traffic *more)
{
    sum->weights += more->weights;
    sum->activations += more->activations;
    sum->cache_read += more->cache_read;
    sum->cache_written += more->cache_written;
    sum->link += more->link;
}

static void add_shares(struct certainty_shares *sum, const struct certainty_shares *more)
{
    sum->compute_s += more->compute_s;
    sum->memory_s += more->memory_s;
    sum->launch_s += more->launch_s;
    sum->link_s += more->link_s;
    sum->limit_s += more->limit_s;
    sum->unknown_s += more->unknown_s;
    sum->unknown_j += more->unknown_j;
}

static void add(struct addend *sum, const struct addend *more)
{
    sum->latency_s += more->latency_s;
    sum->macs += more->macs;
    sum->flops += more->flops;
    sum->bytes += more->bytes;
    sum->wasted_j += more->wasted_j;
    sum->weighted += more->weighted;
    add_joules(&sum->joules, &more->joules);
    add_traffic(&sum->traffic, &more->traffic);
    add_shares(&sum->shares, &more->shares);
}

/* The most watts of a subgraph; unknown stays unknown. */
static double peak_of(const struct kind *kinds, size_t count)
{
    double peak = 0;
    for (size_t k = 0; k < count; k++) {
        const struct subgraph_estimate *row = &kinds[k].row;
        double watts = row->joules.total / row->latency_s;
        if (row->latency_s > 0 && is_known(peak) && !(watts <= peak))
            peak = watts;
    }
    return peak;
}

/* Each kind is computed once.  Subgraphs are still added one by one and in their order: the sums are to the
 * last bit those of a list of all rows. */
static enum err estimate_rows(const struct rates *rates, int devices,
                              struct certainty_shares *shares, struct pass_estimate *out)
{
    const struct partition *partition = out->partition;
    struct addend sum = {0};
    struct kind *kinds = malloc((partition->unique_count + 1) * sizeof *kinds);
    if (!kinds)
        return ERR_NO_MEMORY;
    for (size_t k = 0; k < partition->unique_count; k++)
        estimate_kind(partition, k, rates, devices, &kinds[k]);
    for (size_t i = 0; i < partition->count; i++) {
        const struct kind *kind = &kinds[partition->unique_of[i]];
        add(&sum, &kind->addend);
        out->bound_counts[kind->row.bound]++;
        if (out->rows)
            out->rows[i] = kind->row;
    }
    out->latency_s = sum.latency_s;
    out->macs = sum.macs;
    out->flops = sum.flops;
    out->bytes = sum.bytes;
    out->wasted_j = sum.wasted_j;
    out->utilisation = sum.weighted; /* divided by set_ratios */
    out->joules = sum.joules;
    out->traffic = sum.traffic;
    out->peak_w = peak_of(kinds, partition->unique_count);
    *shares = sum.shares;
    free(kinds);
    return ERR_OK;
}

static void set_ratios(const struct rates *rates, int devices, struct pass_estimate *out)
{
    double all = devices * out->latency_s, total = out->joules.total;
    out->average_w = out->latency_s > 0 ? total / out->latency_s : UNKNOWN;
    out->utilisation = total > 0 ? out->utilisation / total : UNKNOWN;
    out->efficiency = total > 0 ? (total - out->joules.idle) / total : UNKNOWN;
    double macs = out->partition->total.macs; /* what devices repeat is no use to anybody */
    out->mfu = all > 0 ? 2 * macs / (all * rates->product_flops.value) : UNKNOWN;
    out->mbu = all > 0 ? out->bytes / (all * rates->bytes_per_s.value) : UNKNOWN;
    if (out->partition->count == 0)
        out->peak_w = UNKNOWN;
}

static enum err check_devices(const struct partition *partition, const struct hardware *hardware,
                              const struct rates *rates, int devices, struct error *why)
{
    if (devices < 1)
        return err_set(why, ERR_BAD_VALUE, "%d devices: give at least 1", devices);
    if (devices > 1 && !is_known(rates->link_bytes_per_s.value))
        return err_set(why, ERR_BAD_VALUE,
                       "%s states no link to a neighbour: it cannot share a model", hardware->id);
    if (devices > 1 && !(partition->sharded_macs > 0))
        return err_set(why, ERR_BAD_VALUE,
                       "nothing of %.100s can be shared over devices by tensor parallelism",
                       partition->graph->name);
    return ERR_OK;
}

/* With what nobody needs who asks for sums only. */
static enum err estimate_memory(const struct partition *partition, const struct rates *rates,
                                struct pass_estimate *out)
{
    const struct pass_options *setting = &out->setting;
    double batch = setting->batch > 0 ? setting->batch : partition->graph->batch;
    if (setting->sums_only) {
        memory_sums(partition, rates, setting->devices, batch, &out->memory);
        return ERR_OK;
    }
    out->rows = malloc((partition->count + 1) * sizeof *out->rows);
    if (!out->rows || concurrency_of(partition, batch > 0 ? batch : 1, &out->concurrency))
        return ERR_NO_MEMORY;
    return memory_of(partition, rates, setting->devices, batch, &out->memory);
}

enum err pass_estimate_make(const struct partition *partition, const struct hardware *hardware,
                            const struct pass_options *setting, struct pass_estimate *out,
                            struct error *why)
{
    struct rates rates;
    struct certainty_shares shares;
    int devices = setting->devices ? setting->devices : 1;
    *out =
        (struct pass_estimate){.partition = partition, .hardware = hardware, .setting = *setting};
    enum err err = rates_of(hardware, setting->precision, &rates, why);
    if (!err)
        err = check_devices(partition, hardware, &rates, devices, why);
    if (err)
        return err;
    if (!is_known(rates.link_latency_s.value))
        rates.link_latency_s.value = 0;
    rates.widths.keeps_stored = setting->keeps_stored;
    out->setting.devices = devices;
    out->used = rates.used;
    out->params = partition->parameters;
    err = estimate_memory(partition, &rates, out);
    if (!err)
        err = estimate_rows(&rates, devices, &shares, out);
    if (err) {
        pass_estimate_release(out);
        return err_set(why, err, "%s", err_text(err));
    }
    set_ratios(&rates, devices, out);
    certainty_of(&rates, &shares, out);
    return ERR_OK;
}

void pass_estimate_release(struct pass_estimate *estimate)
{
    free(estimate->rows);
    free(estimate->memory.timeline);
    *estimate = (struct pass_estimate){0};
}
