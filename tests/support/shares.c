#include "support/shares.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "support/scripted.h"
#include "support/unit.h"

void shares_keep(void *context, const struct share *share)
{
    struct shares *shares = context;
    shares->items = grow(shares->items, &shares->capacity, shares->count, sizeof *shares->items);
    assert_non_null(shares->items);
    struct kept_share *kept = &shares->items[shares->count++];
    kept->id = share->trace->id;
    kept->share = *share;
    assert_true(share->count <= SHARES_DEVICES_MAX);
    for (size_t i = 0; i < share->count; i++) {
        kept->devices[i] = share->devices[i];
        memcpy(kept->device_ids[i], share->devices[i].device->id, sizeof kept->device_ids[i]);
    }
}

void shares_release(struct shares *shares)
{
    free(shares->items);
    *shares = (struct shares){0};
}

const struct kept_share *shares_of(const struct shares *shares, uint64_t id)
{
    for (size_t i = 0; i < shares->count; i++)
        if (shares->items[i].id == id)
            return &shares->items[i];
    print_error("request %llu was not delivered\n", (unsigned long long)id);
    fail();
    return shares->items; /* not reached */
}

const struct device_share *share_on(const struct kept_share *kept, const char *device)
{
    for (size_t i = 0; i < kept->share.count; i++)
        if (!strcmp(kept->device_ids[i], device))
            return &kept->devices[i];
    print_error("request %llu has no device %s\n", (unsigned long long)kept->id, device);
    fail();
    return kept->devices; /* not reached */
}

void scripted_begin(struct sharing *sharing, const struct scripted_request *request)
{
    assert_int_equal(sharing_begin(sharing, request->id, scripted_time(request->from)), ERR_OK);
}

void scripted_end(struct sharing *sharing, const struct scripted_request *request)
{
    size_t pieces = request->pieces;
    struct request_trace trace = {
        .id = request->id,
        .from = scripted_time(request->from),
        .first_token = request->first > 0 ? scripted_time(request->first) : 0,
        .to = scripted_time(request->to),
        .prompt_tokens = request->prompt,
        .output_tokens = request->output,
        .arrivals = pieces ? malloc(pieces * sizeof(nanos)) : NULL,
        .arrival_count = pieces,
    };
    double step = pieces > 1 ? (request->to - request->first) / (double)(pieces - 1) : 0;
    for (size_t i = 0; i < pieces; i++)
        trace.arrivals[i] = scripted_time(request->arrivals ? request->arrivals[i]
                                                            : request->first + step * (double)i);
    assert_int_equal(sharing_end(sharing, &trace), ERR_OK);
    assert_null(trace.arrivals);
}

void scripted_requests(struct sharing *sharing, const struct scripted_request *requests)
{
    for (const struct scripted_request *r = requests; r->id; r++)
        scripted_begin(sharing, r);
    for (const struct scripted_request *r = requests; r->id; r++)
        scripted_end(sharing, r);
}
