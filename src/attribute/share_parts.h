/* The parts of sharing (share.c), private to it: the requests that wait, and the result for one of them. */
#ifndef IPW_ATTRIBUTE_SHARE_PARTS_H
#define IPW_ATTRIBUTE_SHARE_PARTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribute/share.h"
#include "core/err.h"
#include "core/units.h"
#include "sampler/resolution.h"
#include "trace/request.h"

struct energy_term;

/* ---- the backlog: backlog.c ---- */

/* The requests that are not settled yet: those in flight, and those that have ended and wait for their time to be
 * settled.  Owns the sharers added to it until they are popped; sharer_free frees what sharer_new allocates,
 * including the trace.  begin, end, forget, ended and has_capacity may be called by any thread, the others by one. */

enum phase { PHASE_PREFILL, PHASE_DECODE, PHASE_COUNT };

/* The uncertainty of splitting a device's energy: share_error.c.  Parts: the phases, and the whole request. */
enum { SPLIT_WHOLE = PHASE_COUNT, SPLIT_PARTS };

/* A request in one interval between readings: sums over the time that it was in flight in it. */
struct split_interval {
    struct unresolved at;
    double sum[SPLIT_PARTS];     /* of fraction x time, s */
    double squares[SPLIT_PARTS]; /* of their squares */
    double drift[SPLIT_PARTS];   /* of fraction x change of power, W */
    double before[SPLIT_PARTS];  /* mean fraction in the interval before */
};

struct split_error {
    struct split_interval interval, sample; /* that it was in last */
    double variance[SPLIT_PARTS];           /* of those before, J^2 */
    double lag[SPLIT_PARTS];                /* J: error by a lag of one standard uncertainty */
    double watts;
    bool is_begun;
};

/* The request had this fraction of the energy for so long. */
void split_error_add(struct split_error *error, const struct resolution *at, enum phase phase,
                     double fraction, double length_s);
double split_error_variance(const struct split_error *error, size_t part); /* J^2 */

/* Energy of a request on one device so far. */
struct portion {
    double joules[PHASE_COUNT];
    double baseline[PHASE_COUNT]; /* J: its share of baseline power x time */
    double covered_s[PHASE_COUNT];
    double window_joules; /* joules of the whole device while the request was in flight */
    double group_joules;  /* of these an equal part for each request of the group in flight */
    struct split_error error;
    /* J: how much more it would have with the decode weight divided or multiplied by its uncertainty. */
    double by_weight[PHASE_COUNT][2];
    bool counted; /* in the total at some time */
    unsigned key,
        earlier_key; /* channel that measured it (share_key), and a previous one; 0 none */
};

/* A request and its energy so far. */
struct sharer {
    struct request_trace trace;
    double counted_joules[PHASE_COUNT], counted_baseline[PHASE_COUNT]; /* on counted devices */
    double group_part;         /* one over the requests of its group that are in flight now */
    double idle_part;          /* of the idle energy, given the requests in flight now */
    struct token_rates rates;  /* as computed last */
    struct token_rates tokens; /* in the slice that is settled */
    nanos rates_until;         /* until then they hold */
    double shared_s, alone_s;  /* in flight; without any other */
    double concurrent_s;       /* in flight, times the number of requests in flight */
    struct portion portions[]; /* one per device */
};

struct sharer *sharer_new(size_t devices);
void sharer_free(struct sharer *sharer);
/* As if none of its time had been settled. */
void sharer_reset(struct sharer *sharer, size_t devices);
size_t sharer_bytes(const struct sharer *sharer, size_t devices);

/* A list of sharers; whether it owns them depends on its user. */
struct sharers {
    struct sharer **items;
    size_t count, capacity;
};

void sharers_add(struct sharers *list, struct sharer *sharer);
/* Frees the sharers too. */
void sharers_release(struct sharers *list);

struct flight {
    uint64_t id;
    nanos from;
};

struct backlog {
    pthread_mutex_t lock;   /* guards flights and ended */
    struct flight *flights; /* in the order in which they began, from flight_first to flight_end */
    size_t flight_first, flight_end, flight_capacity;
    uint64_t highest; /* highest id that began */
    pthread_cond_t collected;
    struct sharers ended;   /* since the last collect */
    struct sharers waiting; /* a heap by start time */
};

void backlog_init(struct backlog *backlog);
void backlog_release(struct backlog *backlog);

enum err backlog_begin(struct backlog *backlog, uint64_t id, nanos from) MUST_USE;
/* Takes ownership of the sharer on success; ERR_NOT_FOUND when none of that id is in flight. */
enum err backlog_end(struct backlog *backlog, struct sharer *sharer) MUST_USE;
void backlog_forget(struct backlog *backlog, uint64_t id);

/* Number of requests that have ended since the last collect. */
size_t backlog_ended(struct backlog *backlog);
/* Waits, at most about `timeout`, until they are fewer than `max`; false when they are not. */
bool backlog_has_capacity(struct backlog *backlog, size_t max, nanos timeout);

/* Makes ended requests available to backlog_pop, and reports the earliest start of those in flight; INT64_MAX when
 * there is none. */
void backlog_collect(struct backlog *backlog, nanos *earliest);

/* Makes these requests available to backlog_pop again, and empties the list. */
void backlog_return(struct backlog *backlog, struct sharers *list);

/* The next request, by start time, that overlaps the time up to `limit`; NULL when there is none. */
struct sharer *backlog_pop(struct backlog *backlog, nanos limit);

/* Order by start and by end; never equal for two different ids. */
int backlog_by_start(const void *left, const void *right);
int backlog_by_end(const void *left, const void *right);

/* ---- the result: share_result.c ---- */

/* Result of one request whose time is settled: its joules with their evidence, and the devices' gauges while it was
 * in flight.  share_result_init allocates buffers that are reused for all requests; share_result_release frees them. */

/* Location of a gauge of a device. */
struct gauge_channel {
    size_t device, source, channel;
    enum quantity quantity;
};

struct share_result {
    struct sampler *sampler;
    const struct ledger *ledger; /* ledger of the time settled last; not owned */
    size_t device_count;
    bool *has_idle; /* per device: the baseline has its idle power */
    struct gauge_channel *gauges;
    size_t gauge_count;
    struct device_share *shares;                /* one per device */
    struct energy *phase_energies[PHASE_COUNT]; /* one per device */
    struct energy_term *terms;                  /* one per device */
    bool is_provisional;                        /* of the requests returned now */
};

/* An active part that is smaller than this share of the energy is rounding. */
#define SHARE_ROUNDING 1e-9

/* The idle part of `joules` given the baseline energy of the same time.  To be called once for a whole window: power
 * that fluctuates around the baseline has an idle part in every slice, and limited slice by slice these would not
 * add up to it. */
double share_idle_part(double joules, double baseline);

/* A single number for a source and channel of the sampler; never 0. */
unsigned share_key(size_t source, size_t channel);

/* The devices are those of a ledger, whose order all ledgers of a sampler have; idle may be NULL. */
void share_result_init(struct share_result *result, struct sampler *sampler,
                       const struct ledger *ledger, const struct baseline *idle);
void share_result_release(struct share_result *result);

/* Passes the share of one request to `take`. */
void share_result_make(struct share_result *result, const struct ledger *ledger,
                       const struct sharer *sharer, sharing_take *take, void *context);

#endif
