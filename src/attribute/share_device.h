/* One device as energy is shared: which channel measures it, what it spent in each of a row of slices,
 * and what became of that.  Private to sharing; plain data, nothing to own. */
#ifndef IPW_ATTRIBUTE_SHARE_DEVICE_H
#define IPW_ATTRIBUTE_SHARE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "attribute/slice.h"
#include "core/err.h"
#include "core/units.h"

struct baseline;
struct ledger_device;
struct sampler;

/* Slices are worked off in rows of this many. */
enum { SHARE_ROW = 256 };

struct share_device {
    char id[24];
    bool has_energy;
    double idle_w; /* UNKNOWN without a baseline */

    /* Over the stretch of time that is being settled: */
    bool lives, counted;
    size_t source, channel;
    long shape;   /* channel that lays out a counter's joules; -1 none */
    unsigned key; /* names source and channel; 0 is none */

    /* Where the channel's running sum stood when what is settled was settled. */
    unsigned stood_key; /* 0: nothing was settled by any channel yet */
    double stood_joules;

    /* At the edges of the row of slices. */
    double sums[SHARE_ROW + 1];
    nanos covered[SHARE_ROW + 1];

    /* From the beginning on, J. */
    double requests, idle, unattributed;
    double covered_s;
    bool was_counted;

    /* While requests were alive and it was counted. */
    double busy_joules, busy_covered_s;
    double busy_s; /* with or without a reading of its own, while some counted device had one */
};

void share_device_init(struct share_device *device, const struct ledger_device *row,
                       const struct baseline *idle);

/* The source and channel that a key names. */
void share_key_parts(unsigned key, size_t *source, size_t *channel);

/* Takes the channel that the ledger chose for the stretch of time to come. */
void share_device_choose(struct share_device *device, struct sampler *sampler,
                         const struct ledger_device *row);

/* Reads the running sums at the edges of a row of slices, count <= SHARE_ROW + 1 ascending times, of
 * which the first is the settled time.  Joules that became known only after their time was settled
 * are nobody's; `begin` is where all accounting began. */
enum err share_device_load(struct share_device *device, struct sampler *sampler, nanos begin,
                           const nanos *times, size_t count) MUST_USE;

/* What it spent in slice k of the row. */
void share_device_slice(const struct share_device *device, size_t k, struct slice_device *out);

/* Slice k is settled: what of it went to requests, NULL where none was alive. */
void share_device_settle(struct share_device *device, size_t k, const struct slice_device *slice,
                         const struct slice_given *given);

#endif
