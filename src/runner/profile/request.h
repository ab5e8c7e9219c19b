/* A request of a run: known to attribution before it is sent and handed over when it has ended; a span and a record in
 * the journals; its energy comes back later, in the main thread, through request_take_share. */
#ifndef IPW_RUNNER_PROFILE_REQUEST_H
#define IPW_RUNNER_PROFILE_REQUEST_H

#include <stdint.h>

#include "core/err.h"
#include "core/units.h"

struct answer;
struct completion;
struct pending;
struct profile;
struct share;
struct text;

/* The request is about to be sent.  The caller owns *out until request_end or request_forget. */
enum err request_begin(struct profile *profile, const char *key, unsigned attempt,
                       struct pending **out, struct error *why) MUST_USE;

/* The same in two steps, for a caller that numbers its requests itself and has no memory to spare when one begins. */
enum err request_begin_as(struct profile *profile, uint64_t id, nanos at, struct error *why)
    MUST_USE;
struct pending *pending_new(uint64_t id, const char *key, unsigned attempt); /* may be NULL */

/* It was never sent, or does not count. */
void request_forget(struct profile *profile, struct pending *pending);

/* It has ended, and is not recorded: no journal has it, and its energy is unattributed. */
void request_drop(struct profile *profile, uint64_t id, const struct completion *reply);

/* It has ended; pending->last is set.  *line is overwritten.  Takes ownership of pending. */
enum err request_end(struct profile *profile, struct pending *pending,
                     const struct completion *reply, struct text *line, struct error *why) MUST_USE;

/* Journals the record of a query and counts it; one whose texts are too long for the journal fails, without them.
 * *line is overwritten. */
enum err request_record(struct profile *profile, struct answer *answer, struct text *line,
                        struct error *why) MUST_USE;

/* For settle_begin: journals the energy of a request.  context is the profile. */
void request_take_share(void *context, const struct share *share);

#endif
