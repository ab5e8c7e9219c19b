#include "estimate/energy.h"

/* A link reads what it sends out of one memory and writes it into another. */
enum { LINK_ENDS = 2 };

void energy_row(const struct roofline_work *work, const struct rates *rates, int devices,
                struct subgraph_estimate *row)
{
    double per_byte = rates->joules_per_byte.value;
    struct estimate_joules one = {
        .compute = 2 * work->macs * rates->product_joules.value,
        .memory = work->bytes * per_byte,
        .link = work->traffic.link > 0 ? LINK_ENDS * work->traffic.link * per_byte : 0,
    };
    if (work->elementwise > 0)
        one.compute += work->elementwise * rates->other_joules.value;
    double moving = one.compute + one.memory + one.link;
    /* Comparisons with an unknown limit or unknown joules are false: nothing is stretched. */
    double least_s = moving / (rates->limit_w.value - rates->idle_w.value);
    if (least_s > row->latency_s) {
        row->stretch = least_s / row->latency_s;
        row->latency_s = least_s;
        row->utilisation = roofline_utilisation(work, rates, least_s);
    }
    one.idle = rates->idle_w.value * row->latency_s;
    row->joules = (struct estimate_joules){.compute = devices * one.compute,
                                           .memory = devices * one.memory,
                                           .link = devices * one.link,
                                           .idle = devices * one.idle,
                                           .total = devices * (moving + one.idle)};
}
