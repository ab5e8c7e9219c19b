/* The algorithms of NCCL and of the kernels that serving frameworks use instead for small messages.  In a ring, data goes
 * from neighbor to neighbor.  Where each device reads the memory of all others, one kernel sums whatever the others hold
 * (one shot), or a part of it and then collects the other parts (two shots): few steps, whatever the number of devices. */
#include "estimate/collective.h"

#include <math.h>
#include <stdbool.h>

#include "core/units.h"

/* Measured all-reduces (docs/measurements.md, "Communication"). */
#define RING_SHARE                                                                                 \
    0.8 /* of the links that a ring attains, after its protocol: 370 of 450 GB/s of an H100 */
#define DIRECT_SHARE                                                                               \
    0.5 /* that kernels attain which read other devices' memory: 0.35 of an H100, 0.76 of an A100 */
#define DIRECT_STEPS                                                                               \
    2.0 /* latencies of a shot: all announce that their data is there, and read it */

/* Latencies, and bytes that each device sends at that share of its links. */
static double steps_s(const struct collective_link *link, double steps, double bytes, double share,
                      double links)
{
    double latency = is_known(link->latency_s) ? link->latency_s : 0;
    return steps * latency + bytes / (share * links * link->bytes_per_s);
}

/* Links that carry data at once: in a mesh one to each of the others. */
static double links_used(const struct collective_link *link, int devices)
{
    return link->links > 1 ? fmin(link->links, devices - 1) : 1;
}

static bool is_direct(const struct collective_link *link, int devices)
{
    return link->peers >= devices - 1;
}

double collective_all_reduce_s(const struct collective_link *link, double bytes, int devices)
{
    double others = devices - 1, part = bytes / devices, links = links_used(link, devices);
    if (devices < 2 || !(bytes > 0))
        return 0;
    /* A reduce-scatter and an all-gather. */
    double ring = steps_s(link, 2 * others, 2 * others * part, RING_SHARE, links);
    if (!is_direct(link, devices))
        return ring;
    double one = steps_s(link, DIRECT_STEPS, others * bytes, DIRECT_SHARE, links);
    double two = steps_s(link, 2 * DIRECT_STEPS, 2 * others * part, DIRECT_SHARE, links);
    return fmin(ring, fmin(one, two));
}

double collective_all_gather_s(const struct collective_link *link, double bytes, int devices)
{
    double others = devices - 1, part = bytes / devices, links = links_used(link, devices);
    if (devices < 2 || !(bytes > 0))
        return 0;
    double ring = steps_s(link, others, others * part, RING_SHARE, links);
    double one = steps_s(link, DIRECT_STEPS, others * part, DIRECT_SHARE, links);
    return is_direct(link, devices) ? fmin(ring, one) : ring;
}

double collective_send_s(const struct collective_link *link, double bytes, int devices)
{
    if (!(bytes > 0))
        return 0;
    return steps_s(link, 1, bytes / devices, RING_SHARE, 1) +
           collective_all_gather_s(link, bytes, devices);
}
