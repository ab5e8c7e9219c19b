/* A service at an address: its URL put in order, a connection, the headers of every request, and the
 * meaning of its refusals.  A struct endpoint owns its connection and headers: endpoint_open,
 * endpoint_close; one that is zeroed may be closed too. */
#ifndef IPW_CLIENTS_WIRE_ENDPOINT_H
#define IPW_CLIENTS_WIRE_ENDPOINT_H

#include "clients/client.h"
#include "port/http.h"

struct jv;

struct endpoint {
    struct http *http;
    char url[512];         /* without a slash at its end */
    char shown[512];       /* the same without a user's name and password: for messages */
    struct params headers; /* of every request */
    const char *start_it;  /* how to start such a service, for who finds none */
    const char *let_in;    /* what to do about a 401 */
};

/* An address as people write it: a scheme is added where there is none, slashes at the end go.
 * ERR_USAGE for what cannot be one. */
enum err endpoint_url(char *url, size_t size, const char *given, struct error *why) MUST_USE;

/* `url` is in order already.  start_it and let_in must outlive the endpoint. */
enum err endpoint_open(struct endpoint *endpoint, const char *url, struct error *why) MUST_USE;
void endpoint_close(struct endpoint *endpoint);

/* Takes headers from parameters "header.NAME=value". */
enum err endpoint_headers(struct endpoint *endpoint, const struct params *params, struct error *why)
    MUST_USE;

/* GET of a JSON document, at `url` and not under the endpoint's own path.  *out is for jv_free.
 * `response` may be NULL; its body is released here. */
enum err endpoint_get(struct endpoint *endpoint, const char *url, nanos timeout, struct jv **out,
                      struct http_response *response, struct error *why) MUST_USE;

/* POST of a JSON body to the endpoint's URL and path.  The answer goes to take; a transport failure
 * is explained in *why and, like times and status, in the reply.  Release the response. */
enum err endpoint_post(struct endpoint *endpoint, const char *path, const struct text *body,
                       const struct client_request *request,
                       enum err (*take)(void *context, const char *bytes, size_t length, nanos t),
                       void *context, struct client_reply *reply, struct http_response *response,
                       struct error *why) MUST_USE;

/* The error that an answer other than 2xx stands for, in the server's words where it has any.
 * `reply` may be NULL; otherwise it learns whether to try again. */
enum err endpoint_refusal(const struct endpoint *endpoint, const struct http_response *response,
                          struct client_reply *reply, struct error *why);

/* Has the service a model of that name?  If not, ERR_NOT_FOUND names the near ones; `advice` is
 * added. */
enum err endpoint_missing_model(const struct endpoint *endpoint, const char *model,
                                const struct client_models *models, const char *advice,
                                struct error *why);

#endif
