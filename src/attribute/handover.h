/* Handing over a request whose time is settled: its joules with their evidence, and what the devices
 * showed while it was alive.  Private to sharing.  handover_init allocates room that is used for one
 * request after another; handover_release gives it back. */
#ifndef IPW_ATTRIBUTE_HANDOVER_H
#define IPW_ATTRIBUTE_HANDOVER_H

#include <stddef.h>

#include "attribute/share.h"
#include "attribute/share_device.h"
#include "attribute/slice.h"
#include "attribute/total.h"

/* Where a gauge of a device is read. */
struct gauge_channel {
    size_t device, source, channel;
    enum quantity quantity;
};

struct handover {
    struct sampler *sampler;
    const struct share_device *devices; /* not owned */
    const struct ledger *ledger;        /* of the stretch settled last; not owned */
    size_t device_count;
    struct gauge_channel *gauges;
    size_t gauge_count;
    struct device_share *shares;                /* one a device */
    struct energy *phase_energies[PHASE_COUNT]; /* likewise */
    struct total_part *parts;                   /* likewise */
};

/* The devices are those of a ledger, whose order all ledgers of a sampler have. */
enum err handover_init(struct handover *handover, struct sampler *sampler,
                       const struct ledger *ledger, const struct share_device *devices) MUST_USE;
void handover_release(struct handover *handover);

void handover_give(struct handover *handover, const struct ledger *ledger,
                   const struct sharer *sharer, sharing_take *take, void *context);

#endif
