/* The service before the queries: is it there, does it have the model, what does it say of itself?
 * Asked in a thread of its own, so that an interruption need not wait for a slow server. */
#ifndef IPW_RUNNER_PROFILE_SERVICE_H
#define IPW_RUNNER_PROFILE_SERVICE_H

#include "core/err.h"
#include "core/text.h"

struct client_config;
struct client_driver;

struct service_facts {
    char base_url[512];
    struct text info; /* one JSON object */
};

/* ERR_INTERRUPTED, with the signal's number, when one came first: the thread is then left behind and
 * the program should end. */
enum err service_prepare(const struct client_driver *driver, const struct client_config *config,
                         const char *model, double timeout_s, struct service_facts *out,
                         int *signal_number, void (*tick)(void *context), void *context,
                         struct error *why) MUST_USE;

#endif
