/* Sharing: timeline x requests -> joules of each request, conserving.
 *
 * Time is cut into slices at every start, phase change and end of a request and at every millisecond
 * from the start of the run, so that in a slice the same requests are in flight throughout and no
 * burst is blurred that a sensor can resolve.  A slice's energy is first split into idle (baseline
 * power x time, at most all of it) and active.  The active part is attributed to the requests in
 * flight by the tokens they processed in the slice: prefill tokens count 1, decode tokens
 * `decode_weight`; where the tokens of one of them are unknown, or none processed any, by equal shares.
 * The idle part is attributed to them by equal shares.  Requests may be tools, and time in which an agent waits
 * (trace/request.h): of processors' active energy a tool gets the part that its processes had of the CPU time,
 * of other devices' none while there is an inference; the requests of one query share one part of idle
 * energy.  What is reported as a request's idle energy is
 * its share of baseline power x time, limited once to all of its joules; so too where no request is in
 * flight, and what exceeds it there is unattributed.  Without a baseline the idle share is unknown, and
 * all energy is shared as if it were active.
 *
 * So for each device: sum of the requests' joules + idle + unattributed = what the ledger says of the
 * same window, to rounding; `conservation error` is how far that fails, and is reported.  Time that no
 * sensor covers is in neither.  Joules that a sensor reports only after their time was settled are
 * unattributed.
 *
 * It runs behind the measurement: a slice is settled when every request that reaches into it has ended and
 * the sensors have been read past it.  Memory holds only what is not settled yet.  The shares do not
 * depend on how often and how far the run is advanced, except for the channel that measures a device:
 * that is chosen for each stretch of time that is settled at once.
 *
 * sharing_begin, sharing_end, sharing_forget, sharing_ended and sharing_has_capacity may be called by any
 * thread, everything else by one.  sharing_new allocates; sharing_free frees. */
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
    nanos from;                  /* when the run began: energy is accounted from here on */
    const struct baseline *idle; /* NULL without one; must outlive the sharing */
    double decode_weight;        /* of a decode token against a prefill token; 1 when not above 0 */
};

/* The sampler has its sensors already, and outlives the sharing.  NULL when out of memory. */
struct sharing *sharing_new(struct sampler *sampler, const struct sharing_options *options);
void sharing_free(struct sharing *sharing);

/* What one request spent on one device. */
struct device_share {
    const struct ledger_device
        *device; /* identity: id, sensor, counted; valid during the callback */
    /* The request's own: joules with the idle part in idle_joules and the rest in active_joules.  ±,
     * coverage, method, source and updates are those of the device over the request's window (the ±
     * scaled to the share): they describe the measurement, not the rule of sharing.  Unknown, with
     * the reason, where nothing measured the device in that window. */
    struct energy energy;
    bool counted;                         /* in the total, at least for a part of the time */
    double prefill_joules, decode_joules; /* add up to energy.joules */
    double window_joules;                 /* the whole device in the request's window */
    struct value_stats watts;             /* likewise */
    struct value_stats gauges[QTY_COUNT]; /* likewise; all UNKNOWN for what it does not report */
};

struct share {
    const struct request_trace *trace;
    struct energy total;                  /* over the counted devices */
    double prefill_joules, decode_joules; /* of the total */
    /* Of the total, with the evidence of each one's own window; unknown for a phase that did not
     * occur. */
    struct energy prefill, decode;
    double alone_s;     /* how long no other request was in flight, in s */
    double concurrency; /* mean number of requests in flight in its window, itself included */
    const struct device_share *devices; /* those that have energy or gauges */
    size_t count;
};

typedef void sharing_take(void *context, const struct share *share);

/* A request is about to be sent: nothing after `from` is settled until it has ended.  What is settled
 * already stays as it is: a request that is reported late gets none of it.  ERR_BAD_VALUE when one of this
 * id is in flight. */
enum err sharing_begin(struct sharing *sharing, uint64_t id, nanos from) MUST_USE;

/* It has ended; takes ownership of the trace's arrivals (not on failure).  trace->id is the one it began
 * with; ERR_NOT_FOUND when none of that id is in flight. */
enum err sharing_end(struct sharing *sharing, struct request_trace *trace) MUST_USE;

/* Forgets a request that began and was never sent. */
void sharing_forget(struct sharing *sharing, uint64_t id);

/* For callers that make requests faster than their energy can be settled: how many have ended since the
 * last sharing_advance began; and a wait, of about `patience` at most, until they are fewer than `most`
 * (false when they are not).  Requests that wait for a long one in flight do not count: the advance has
 * taken them in, and faster settling would not help. */
size_t sharing_ended(struct sharing *sharing);
bool sharing_has_capacity(struct sharing *sharing, size_t most, nanos patience);

/* Settles what can be settled up to `until` (a time that the sensors have been read past, as after
 * sampler_settle) and hands over each request that is finished by it, in the order of their ends.
 * Only whole slices are settled, so sharing_settled may be up to a millisecond before `until`. */
enum err sharing_advance(struct sharing *sharing, nanos until, sharing_take *take, void *context)
    MUST_USE;

struct sharing_device_sum {
    char id[DEVICE_NAME_SIZE];
    bool counted;
    double requests_joules; /* all requests that were handed over or are half settled */
    double idle_joules;     /* in time without requests; UNKNOWN without a baseline */
    double unattributed_joules;
    double settled_joules; /* the three together */
};

/* Totals from `from` to the settled time, of the devices that have an energy or power sensor, in the
 * ledger's order; all UNKNOWN for one that measured nothing.  Returns how many there are, at most
 * `most`. */
size_t sharing_sums(const struct sharing *sharing, struct sharing_device_sum *out, size_t most);
nanos sharing_settled(const struct sharing *sharing);

/* How long at least one request was in flight, up to the settled time, in s. */
double sharing_busy_s(const struct sharing *sharing);

/* Mean power of the counted devices in that time, over what of it they cover; UNKNOWN for none. */
double sharing_busy_w(const struct sharing *sharing);

#endif
