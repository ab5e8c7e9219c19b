/* Energy attribution: timelines x requests -> joules of each request, conserving the total.
 *
 * Time is cut into slices at every start, phase change and end of a request and at every millisecond from the start of
 * the run, so that in a slice the same requests are in flight throughout and no burst is blurred that a sensor can
 * resolve.  A slice's energy is first split into idle (baseline power x time, at most all of it) and active.  The
 * active part is attributed to the requests in flight by the tokens they processed in the slice: prefill tokens count
 * 1, decode tokens `decode_weight`; where the tokens of one of them are unknown, or none processed any, by equal
 * shares.  The idle part is attributed by equal shares.  Requests may be tools, and time in which an agent waits
 * (trace/request.h): of the processors' active energy a tool gets its processes' share of the CPU time, of other
 * devices' none while there is an inference; the requests of one query share one part of idle energy.  The reported
 * idle energy of a request is its share of baseline power x time, limited once to all of its joules; the same holds
 * where no request is in flight, and the excess is unattributed.  Without a baseline the idle share is unknown, and all
 * energy is attributed as if it were active.
 *
 * So for each device: sum of the requests' joules + idle + unattributed = energy of the same window in the ledger, to
 * rounding; `conservation error` is the residual, and is reported.  Time that no sensor covers is in neither.  Joules
 * that a sensor reports only after their time was settled are unattributed.
 *
 * Attribution lags behind the measurement: a slice is settled when every request that overlaps it has ended and the
 * sensors have been read past it.  Memory holds only what is not settled yet.  The shares do not depend on how often
 * and how far the run is advanced, except for the channel that measures a device, which is chosen for each stretch of
 * time that is settled at once.
 *
 * sharing_begin, sharing_end, sharing_forget, sharing_ended and sharing_has_capacity may be called by any thread,
 * everything else by one.  sharing_new allocates; sharing_free frees. */
#ifndef IPW_ATTRIBUTE_SHARE_H
#define IPW_ATTRIBUTE_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribute/ledger.h"
#include "core/energy.h"
#include "core/err.h"
#include "core/units.h"
#include "sampler/window.h"
#include "trace/request.h"

struct sampler;
struct sharing;

struct sharing_options {
    nanos from;                  /* start of accounting */
    const struct baseline *idle; /* NULL without one; must outlive the sharing */
    double decode_weight;        /* decode token relative to a prefill token; 1 if not above 0 */
    double
        weight_factor; /* by which that weight may be wrong, one standard uncertainty; at most 1: it is exact */
    /* For a sharing whose baseline comes later: settled requests are kept for sharing_set_idle, up to this many bytes;
     * 0: none.  `release` frees the context of one that is not returned again; may be NULL. */
    size_t keep_max;
    void (*release)(void *context);
};

/* The sampler's sensors must have been added, and it must outlive the sharing. */
struct sharing *sharing_new(struct sampler *sampler, const struct sharing_options *options);
void sharing_free(struct sharing *sharing);

/* Energy of one request on one device. */
struct device_share {
    const struct ledger_device
        *device; /* identity: id, sensor, counted; valid during the callback */
    /* The request's own: joules with the idle part in idle_joules and the remainder in active_joules.  ±, coverage,
     * method, source and updates are those of the device over the request's window (the ± scaled to the share): they
     * describe the measurement, not the attribution rule.  Unknown, with the reason, where nothing measured the
     * device in that window. */
    struct energy energy;
    bool counted;                         /* in the total, at least for part of the time */
    double prefill_joules, decode_joules; /* add up to energy.joules */
    double window_joules;                 /* joules of the whole device in the request's window */
    double
        group_joules; /* the same, divided equally among the requests of one group: those of a query add up to the
                            joules of the whole device in the query's window */
    struct value_stats watts;             /* power of the device in that window */
    struct value_stats gauges[QTY_COUNT]; /* the same; UNKNOWN for quantities it does not report */
};

struct share {
    const struct request_trace *trace;
    struct energy total;                  /* over the counted devices */
    double prefill_joules, decode_joules; /* parts of the total */
    /* Parts of the total, with the evidence of each phase's own window; unknown for a phase that did not occur. */
    struct energy prefill, decode;
    double alone_s;     /* how long no other request was in flight, in s */
    double concurrency; /* mean number of requests in flight in its window, itself included */
    const struct device_share *devices; /* those that have energy or gauges */
    size_t count;
    bool is_provisional; /* the request is kept: it may be returned again, with another share */
};

typedef void sharing_take(void *context, const struct share *share);

/* A request is about to be sent: nothing after `from` is settled until it has ended.  Settled time does not change: a
 * request that is reported late gets none of it.  ERR_BAD_VALUE when this id is in flight already. */
enum err sharing_begin(struct sharing *sharing, uint64_t id, nanos from) MUST_USE;

/* The request has ended; takes ownership of the trace's arrivals (not on failure).  trace->id is that of
 * sharing_begin; ERR_NOT_FOUND when it is not in flight. */
enum err sharing_end(struct sharing *sharing, struct request_trace *trace) MUST_USE;

/* Cancels a request that began and was never sent. */
void sharing_forget(struct sharing *sharing, uint64_t id);

/* Backpressure for callers that make requests faster than their energy can be settled: how many have ended since the
 * last sharing_advance began; and a wait, of about `timeout` at most, until they are fewer than `max` (false when
 * they are not).  Requests that wait for a long one in flight do not count: the advance has taken them already, and
 * faster settling would not help. */
size_t sharing_ended(struct sharing *sharing);
bool sharing_has_capacity(struct sharing *sharing, size_t max, nanos timeout);

/* Settles the time up to `until` (a time that the sensors have been read past, as after sampler_settle) as far as
 * possible and returns each request that is finished by it, in the order of their ends.  Only whole slices are
 * settled, so sharing_settled may be up to a millisecond before `until`. */
enum err sharing_advance(struct sharing *sharing, nanos until, sharing_take *take, void *context)
    MUST_USE;

/* Sets the baseline of a sharing without one.  If all requests so far were kept, all time is attributed again: the
 * next sharing_advance returns them again, and the totals start anew.  Otherwise it holds from the settled time on. */
void sharing_set_idle(struct sharing *sharing, const struct baseline *idle);

struct sharing_device_sum {
    char id[DEVICE_NAME_SIZE];
    bool counted;
    double requests_joules; /* all requests that were returned or are partly settled */
    double idle_joules;     /* in time without requests; UNKNOWN without a baseline */
    double unattributed_joules;
    double settled_joules; /* sum of the three */
};

/* Totals from `from` to the settled time, of the devices that have an energy or power sensor, in the ledger's order;
 * all UNKNOWN for a device without measurements.  Returns their number, at most `max`. */
size_t sharing_sums(const struct sharing *sharing, struct sharing_device_sum *out, size_t max);
nanos sharing_settled(const struct sharing *sharing);

/* How long at least one request was in flight, up to the settled time, in s. */
double sharing_busy_s(const struct sharing *sharing);

/* Mean power of the counted devices in that time, over the part they cover; UNKNOWN for none. */
double sharing_busy_w(const struct sharing *sharing);

#endif
