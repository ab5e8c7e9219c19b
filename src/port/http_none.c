/* A build without libcurl's header: no request can be made, and every call returns an error. */
#include <stdint.h>

#include "core/clock.h"
#include "port/http.h"
#include "port/http_relay.h"

enum err http_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without libcurl's header: install libcurl4-openssl-dev and build again");
}

enum err http_open(struct http **out, struct error *why)
{
    *out = NULL;
    return http_available(why);
}

void http_close(struct http *http)
{
}

enum err http_perform(struct http *http, const struct http_request *request,
                      struct http_response *out, struct error *why)
{
    *out = (struct http_response){.sent = clock_now(), .retry_after_s = UNKNOWN, .grpc_status = -1};
    out->done = out->sent;
    return http_available(why);
}

enum err http_fetch(struct http *http, const char *url, const struct params *headers, nanos timeout,
                    size_t limit, struct text *body, struct http_response *out, struct error *why)
{
    return http_perform(http, NULL, out, why);
}

enum err http_relay_new(struct event_loop *loop, struct http_relay **out, struct error *why)
{
    *out = NULL;
    return http_available(why);
}

void http_relay_free(struct http_relay *relay)
{
}

void http_relay_process(struct http_relay *relay)
{
}

nanos http_relay_due(const struct http_relay *relay)
{
    return INT64_MAX;
}

enum err http_relay_start(struct http_relay *relay, const struct relay_request *request,
                          struct relay_call **out, struct error *why)
{
    *out = NULL;
    return http_available(why);
}

void relay_call_resume(struct relay_call *call)
{
}

void relay_call_cancel(struct relay_call *call)
{
}
