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
#include "trace/request.h"

struct energy_term;

/* ---- the backlog: backlog.c ---- */

/* The requests that are not settled yet: those in flight, and those that have ended and wait for their time to be
 * settled.  Owns the sharers added to it until they are popped; sharer_new allocates what sharer_free frees, trace
 * included.  begin, end, forget, ended and has_capacity may be called by any thread, the rest by one. */

enum phase { PHASE_PREFILL, PHASE_DECODE, PHASE_COUNT };

/* What a request has been given of one device so far. */
struct portion {
    double joules[PHASE_COUNT];
    double baseline[PHASE_COUNT]; /* J: its share of the baseline's power x time */
    double covered_s[PHASE_COUNT];
    double window_joules; /* the whole device while the request was in flight */
    bool counted;         /* at some time in the total */
    unsigned key,
        earlier_key; /* of the channel that measured it (share_key), and of one before that; 0 none */
};

/* A request that shares in the energy. */
struct sharer {
    struct request_trace trace;
    double counted_joules[PHASE_COUNT], counted_baseline[PHASE_COUNT]; /* of the counted devices */
    size_t group_size;         /* of its group, in flight now */
    double shared_s, alone_s;  /* in flight; without another */
    double concurrent_s;       /* in flight, times the number of requests in flight */
    struct portion portions[]; /* one per device */
};

struct sharer *sharer_new(size_t devices);
void sharer_free(struct sharer *sharer);

/* A list of sharers; its holder says whether it owns them. */
struct sharers {
    struct sharer **items;
    size_t count, capacity;
};

/* Ensures capacity for `more` of them. */
enum err sharers_reserve(struct sharers *list, size_t more) MUST_USE;
/* Within the reserved capacity. */
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
    uint64_t highest; /* id that began */
    pthread_cond_t collected;
    struct sharers ended;   /* since the last collect */
    struct sharers waiting; /* a heap: the one that began first on top */
};

void backlog_init(struct backlog *backlog);
void backlog_release(struct backlog *backlog);

enum err backlog_begin(struct backlog *backlog, uint64_t id, nanos from) MUST_USE;
/* Takes ownership of the sharer on success; ERR_NOT_FOUND when none of that id is in flight. */
enum err backlog_end(struct backlog *backlog, struct sharer *sharer) MUST_USE;
void backlog_forget(struct backlog *backlog, uint64_t id);

/* How many have ended since the last collect. */
size_t backlog_ended(struct backlog *backlog);
/* Waits, at most about `patience`, until they are fewer than `most`; false when they are not. */
bool backlog_has_capacity(struct backlog *backlog, size_t most, nanos patience);

/* Makes those that have ended ready to be popped, and reports when the first of those in flight began;
 * INT64_MAX when none is. */
enum err backlog_collect(struct backlog *backlog, nanos *earliest) MUST_USE;

/* The next one that reaches into the time up to `limit`, the one that began first; NULL when there is
 * none. */
struct sharer *backlog_pop(struct backlog *backlog, nanos limit);

/* Which of two began, or ended, first; never equal for two different ids. */
int backlog_by_start(const struct sharer *a, const struct sharer *b);
int backlog_by_end(const struct sharer *a, const struct sharer *b);

/* ---- the result: share_result.c ---- */

/* Of one request whose time is settled: its joules with their evidence, and what the devices reported while it was in
 * flight.  share_result_init allocates buffers that are reused for one request after another; share_result_release frees
 * them. */

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
