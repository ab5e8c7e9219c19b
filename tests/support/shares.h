/* Requests given to a sharing and the shares it hands over, kept for a look.  A struct shares owns
 * what it kept: zero it, release it. */
#ifndef TESTS_SUPPORT_SHARES_H
#define TESTS_SUPPORT_SHARES_H

#include "attribute/share.h"

enum { SHARES_DEVICES_MAX = 4 };

struct kept_share {
    uint64_t id;
    struct share share; /* its trace and devices are not valid any more */
    struct device_share devices[SHARES_DEVICES_MAX];
    char device_ids[SHARES_DEVICES_MAX][24];
};

struct shares {
    struct kept_share *items; /* in the order they came */
    size_t count, capacity;
};

/* A sharing_take; the context is the struct shares. */
void shares_keep(void *context, const struct share *share);
void shares_release(struct shares *shares);

/* Of a request, or of a device in it; a test fails when there is none. */
const struct kept_share *shares_of(const struct shares *shares, uint64_t id);
const struct device_share *share_on(const struct kept_share *kept, const char *device);

/* What a test says of a request, in seconds of the script. */
struct scripted_request {
    uint64_t id;
    double from, first, to; /* first 0: no token came */
    double prompt, output;  /* tokens */
    const double *arrivals; /* NULL: `pieces` of them, even from the first token to the end */
    size_t pieces;
};

void scripted_begin(struct sharing *sharing, const struct scripted_request *request);
void scripted_end(struct sharing *sharing, const struct scripted_request *request);

/* All of them begin and end; ends with an id of 0. */
void scripted_requests(struct sharing *sharing, const struct scripted_request *requests);

#endif
