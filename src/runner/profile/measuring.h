/* What one start measured with, as the journal keeps it: the sensors, the machine at rest, how tokens
 * weigh.  With the samples and the spans it is all that attribution needs to be done again. */
#ifndef IPW_RUNNER_PROFILE_MEASURING_H
#define IPW_RUNNER_PROFILE_MEASURING_H

#include "attribute/ledger.h"
#include "core/err.h"
#include "core/units.h"

struct json;
struct jv;
struct sampler;

struct measuring {
    double from_s;        /* when the account of its queries began, from the start's zero */
    double decode_weight; /* as in sharing_options */
    bool has_idle;
    struct baseline idle; /* owned when it was read */
};

void measuring_to_json(struct json *json, const char *key, const struct measuring *measuring,
                       struct sampler *sampler);

/* Adds the sensors to a sampler of history.  ERR_BAD_VALUE when it is not there, or not as we write it.
 * measuring_release in any case. */
enum err measuring_from_json(const struct jv *value, struct measuring *out, struct sampler *sampler,
                             struct error *why) MUST_USE;
void measuring_release(struct measuring *measuring);

#endif
