#include "estimate/roofline.h"

#include <math.h>

enum {
    TILE_SIDE = 64,      /* a unit is dealt 64 x 64 numbers of a product */
    PIECE_NUMBERS = 1024 /* and 1024 of anything else */
};
#define BALANCED_BAND 1.1

/* ---- what one device does ---- */

/* Of what goes in and comes out of a shared matrix, one of the two is whole on each device and the other
 * in parts.  Everything else is shared by heads, of which keys and values may have fewer than there are
 * devices. */
static void share(const struct subgraph *subgraph, const struct partition *partition, double in,
                  double out, double devices, struct roofline_work *work)
{
    struct estimate_traffic *traffic = &work->traffic;
    double heads = partition->heads_kv > 0 ? (double)partition->heads_kv : devices;
    work->macs /= devices;
    work->elementwise /= devices;
    traffic->weights /= devices;
    traffic->cache_read /= fmin(devices, heads);
    traffic->cache_written /= fmin(devices, heads);
    if (!subgraph->is_row_parallel)
        work->outputs /= devices; /* heads or columns; of sums each has a part of every number */
    if (subgraph->op != GRAPH_LINEAR) {
        work->rows /= devices;
        traffic->activations /= devices;
        return;
    }
    traffic->activations = subgraph->is_row_parallel ? in / devices + out : in + out / devices;
}

struct roofline_work roofline_work(const struct subgraph *subgraph,
                                   const struct partition *partition,
                                   const struct precision_widths *widths, int devices)
{
    const struct graph_cost *cost = &subgraph->cost;
    double read = cost->in.cached * widths->cache, written = cost->out.cached * widths->cache;
    double in = graph_bytes(&cost->in, widths) - read;
    double out = graph_bytes(&cost->out, widths) - written;
    struct roofline_work work = {.macs = cost->macs,
                                 .elementwise = cost->elementwise,
                                 .outputs = subgraph->outputs,
                                 .rows = subgraph->rows,
                                 .traffic = {.weights = graph_bytes(&cost->weights, widths),
                                             .activations = in + out,
                                             .cache_read = read,
                                             .cache_written = written}};
    if (devices > 1 && subgraph->is_sharded)
        share(subgraph, partition, in, out, devices, &work);
    if (devices > 1) { /* sums go around the ring twice: to be added up, then to all */
        double sent = 2 * subgraph->all_reduced + subgraph->all_gathered;
        double ways = 2 * (subgraph->all_reduced > 0) + (subgraph->all_gathered > 0);
        work.traffic.link = sent * widths->activation * (devices - 1) / devices;
        work.link_steps = ways * (devices - 1);
    }
    work.bytes = work.traffic.weights + work.traffic.activations + work.traffic.cache_read +
                 work.traffic.cache_written;
    return work;
}

/* ---- time ---- */

/* Work is dealt out in tiles, as many at a time as there are units; those of the last wave that have none
 * wait, and little work leaves most of them waiting. */
static double wave_share(const struct subgraph *subgraph, const struct roofline_work *work,
                         double units)
{
    if (!is_known(units) || units <= 1 || work->outputs <= 0)
        return 1;
    double tiles = ceil(work->outputs / fmax(1, subgraph->steps) / PIECE_NUMBERS);
    if (graph_op_kind(subgraph->op) == GRAPH_KIND_PRODUCT && work->rows > 0)
        tiles = ceil(work->rows / TILE_SIDE) * ceil(work->outputs / work->rows / TILE_SIDE);
    double waves = ceil(tiles / units);
    return tiles / (waves * units);
}

static enum estimate_bound bound_of(const struct subgraph_estimate *row)
{
    const double times[BOUND_BALANCED] = {[BOUND_COMPUTE] = row->compute_s,
                                          [BOUND_MEMORY] = row->memory_s,
                                          [BOUND_LAUNCH] = row->launch_s,
                                          [BOUND_LINK] = row->link_s};
    int largest = 0;
    double second = 0;
    for (int i = 1; i < BOUND_BALANCED; i++)
        if (times[i] > times[largest])
            largest = i;
    for (int i = 0; i < BOUND_BALANCED; i++)
        if (i != largest && times[i] > second)
            second = times[i];
    return times[largest] > BALANCED_BAND * second ? (enum estimate_bound)largest : BOUND_BALANCED;
}

double roofline_utilisation(const struct roofline_work *work, const struct rates *rates,
                            double latency_s)
{
    double busy =
        2 * work->macs / rates->product_flops.value + work->elementwise / rates->other_flops.value;
    return latency_s > 0 ? busy / latency_s : 0;
}

void roofline_row(const struct subgraph *subgraph, const struct roofline_work *work,
                  const struct rates *rates, struct subgraph_estimate *row)
{
    row->wave_share = wave_share(subgraph, work, rates->units);
    double reached = rates->compute_share.value * row->wave_share;
    row->compute_s = roofline_utilisation(work, rates, 1) / reached;
    row->memory_s = work->bytes / (rates->bytes_per_s.value * rates->memory_share.value);
    row->launch_s = fmax(1, subgraph->steps) * rates->launch_s.value;
    row->link_s = work->link_steps > 0 ? work->traffic.link / rates->link_bytes_per_s.value +
                                             work->link_steps * rates->link_latency_s.value
                                       : 0;
    row->latency_s = fmax(row->compute_s, row->memory_s) + row->launch_s + row->link_s;
    row->stretch = 1;
    row->utilisation = roofline_utilisation(work, rates, row->latency_s);
    row->bound = bound_of(row);
}
