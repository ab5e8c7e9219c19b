/* How long devices take to exchange data: the collectives of tensor parallelism, by the size of the message (docs/estimate.md,
 * "Several devices").  Small messages take the latency of the algorithm, large ones the bandwidth of the links; a library
 * picks the fastest.  Pure functions; nothing is owned. */
#ifndef IPW_ESTIMATE_COLLECTIVE_H
#define IPW_ESTIMATE_COLLECTIVE_H

/* The links of one device, in one direction. */
struct collective_link {
    double bytes_per_s; /* of one link */
    double
        latency_s; /* of a small message to another device; UNKNOWN: not stated, and counts as 0 */
    double peers;  /* devices that it reaches directly; UNKNOWN: neighbors in a ring only */
    double links; /* a mesh: as many links, each to another device; UNKNOWN: one to all, a switch */
};

/* `bytes` of a group of devices, which all of them have, on all devices of another group: each sends its part, and the
 * receivers gather the parts, as vLLM does between stages of a pipeline. */
double collective_send_s(const struct collective_link *link, double bytes, int devices);
/* The sum of `bytes` of each device, on every device. */
double collective_all_reduce_s(const struct collective_link *link, double bytes, int devices);
/* `bytes` of which each device has an equal part, on every device. */
double collective_all_gather_s(const struct collective_link *link, double bytes, int devices);

#endif
