/* A device in one precision as plain numbers, each with how far it may be off: what the analyzers compute
 * with.  Pure; a value of its own.  A figure that the device does not state is UNKNOWN; shares, launch and
 * units then get what docs/estimate.md assumes of its class. */
#ifndef IPW_ESTIMATE_RATES_H
#define IPW_ESTIMATE_RATES_H

#include "core/err.h"
#include "catalog/hardware.h"

/* A value and its relative standard uncertainty. */
struct rate {
    double value, relative;
};

struct rates {
    struct precision_widths widths;
    enum precision used;                      /* in which products are computed */
    struct rate product_flops, other_flops;   /* a second, at most */
    struct rate product_joules, other_joules; /* of one operation, beyond idle */
    struct rate bytes_per_s, joules_per_byte; /* of the memory that holds the model */
    struct rate compute_share, memory_share;
    struct rate launch_s;
    struct rate limit_w, idle_w;
    struct rate link_bytes_per_s, link_latency_s;
    double units;    /* UNKNOWN: work is not dealt out */
    double capacity; /* bytes; UNKNOWN: not given */
};

/* What a device states of these, or what is assumed of its class. */
struct rates_stated {
    struct hardware_figure compute_share, memory_share, launch_s;
};
struct rates_stated rates_stated_or_assumed(const struct hardware *hardware);

/* ERR_BAD_VALUE names the figure without which nothing can be said. */
enum err rates_of(const struct hardware *hardware, enum precision precision, struct rates *out,
                  struct error *why) MUST_USE;

#endif
