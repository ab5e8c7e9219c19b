/* One slice of time and the requests alive in it: who gets what of it.  Private to sharing.  A struct
 * sharer owns its trace; sharer_new allocates, sharer_free gives all back. */
#ifndef IPW_ATTRIBUTE_SLICE_H
#define IPW_ATTRIBUTE_SLICE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/units.h"
#include "trace/request.h"

enum phase { PHASE_PREFILL, PHASE_DECODE, PHASE_COUNT };

/* What a request has got of one device so far. */
struct portion {
    double active[PHASE_COUNT], idle[PHASE_COUNT]; /* J */
    double covered_s[PHASE_COUNT];
    double window_joules;      /* the whole device while the request was alive */
    bool counted;              /* at some time in the total */
    unsigned key, earlier_key; /* the channel that measured it, and one before that; 0 none */
};

/* A request as it shares. */
struct sharer {
    struct request_trace trace;
    double counted_active[PHASE_COUNT], counted_idle[PHASE_COUNT]; /* over the counted devices, J */
    double shared_s, alone_s, company_s; /* alive; without another; times those alive */
    struct portion portions[];           /* one a device */
};

struct sharer *sharer_new(size_t devices);
void sharer_free(struct sharer *sharer);

/* One device in one slice. */
struct slice_device {
    double joules, active, idle; /* J; active and idle are all of joules */
    double covered_s;            /* 0: not known, and then the joules are 0 and no one's */
    unsigned key;                /* the channel that measured it */
    bool counted;
};

struct slice {
    nanos from, to;
    const struct slice_device *devices;
    size_t device_count;
    double decode_weight;
};

/* What was given away, of all active and of all idle joules: both are 1 but for rounding. */
struct slice_given {
    double active, idle;
};

/* Shares a slice among `count` requests, at least one, that are alive throughout and have one phase
 * in it; `weights` is room for as many numbers. */
struct slice_given slice_share(const struct slice *slice, struct sharer *const *alive, size_t count,
                               double *weights);

#endif
