/* Requests given to a sharing and the delivered shares, kept for inspection. A struct shares owns
 * what it keeps: zero it, release it. */
#ifndef TESTS_SUPPORT_SHARES_H
#define TESTS_SUPPORT_SHARES_H

#include "attribute/share.h"

enum { SHARES_DEVICES_MAX = 4 };

struct kept_share {
    uint64_t id;
    struct share share; /* its trace and devices are no longer valid */
    struct device_share devices[SHARES_DEVICES_MAX];
    char device_ids[SHARES_DEVICES_MAX][24];
};

struct shares {
    struct kept_share *items; /* in order of delivery */
    size_t count, capacity;
};

/* A sharing_take callback; the context is the struct shares. */
void shares_keep(void *context, const struct share *share);
void shares_release(struct shares *shares);

/* The share of a request, or of a device in it; the test fails when there is none. */
const struct kept_share *shares_of(const struct shares *shares, uint64_t id);
const struct device_share *share_on(const struct kept_share *kept, const char *device);

/* A request of a test, in seconds of the script. */
struct scripted_request {
    uint64_t id;
    double from, first, to; /* first 0: no token arrived */
    double prompt, output;  /* tokens */
    const double *arrivals; /* NULL: `pieces` of them, evenly from the first token to the end */
    size_t pieces;
};

void scripted_begin(struct sharing *sharing, const struct scripted_request *request);
void scripted_end(struct sharing *sharing, const struct scripted_request *request);

/* Begins and ends all of them; terminated by an id of 0. */
void scripted_requests(struct sharing *sharing, const struct scripted_request *requests);

#endif
