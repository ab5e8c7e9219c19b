/* The result of sharing for one request whose time is settled: its joules with their evidence, and what
 * the devices reported while it was in flight.  Private to sharing.  share_result_init allocates buffers
 * that are reused for one request after another; share_result_release frees them. */
#ifndef IPW_ATTRIBUTE_SHARE_RESULT_H
#define IPW_ATTRIBUTE_SHARE_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "attribute/backlog.h"
#include "attribute/share.h"

struct energy_term;

/* Where a gauge of a device is read. */
struct gauge_channel {
    size_t device, source, channel;
    enum quantity quantity;
};

struct share_result {
    struct sampler *sampler;
    const struct ledger *ledger; /* of the time settled last; not owned */
    size_t device_count;
    bool *has_idle; /* per device: the baseline has its idle power */
    struct gauge_channel *gauges;
    size_t gauge_count;
    struct device_share *shares;                /* one per device */
    struct energy *phase_energies[PHASE_COUNT]; /* likewise */
    struct energy_term *terms;                  /* likewise */
};

/* An active part that is smaller than this share of the energy is rounding. */
#define SHARE_ROUNDING 1e-9

/* The idle part of joules whose time had `baseline` joules by the baseline.  To be asked once for all of a
 * window: power that rises and falls about the baseline has an idle part in every slice, and limited
 * slice by slice these would not add up to it. */
double share_idle_part(double joules, double baseline);

/* One number for a source and channel of the sampler; never 0. */
unsigned share_key(size_t source, size_t channel);

/* The devices are those of a ledger, whose order all ledgers of a sampler have; idle may be NULL. */
enum err share_result_init(struct share_result *result, struct sampler *sampler,
                           const struct ledger *ledger, const struct baseline *idle) MUST_USE;
void share_result_release(struct share_result *result);

/* Passes the share of one request to `take`. */
void share_result_make(struct share_result *result, const struct ledger *ledger,
                       const struct sharer *sharer, sharing_take *take, void *context);

#endif
