/* An HTTP service at an address: the normalized URL, a connection, the headers of every request, and
 * the errors that its status codes stand for.  A struct endpoint owns its connection and headers:
 * endpoint_client_open, endpoint_client_close. */
#ifndef IPW_CLIENTS_ENDPOINT_H
#define IPW_CLIENTS_ENDPOINT_H

#include "clients/client.h"
#include "port/http.h"

struct jv;

/* Are HTTP and JSON in this build?  For client_driver. */
enum err endpoint_available(const struct params *params, struct error *why);

struct endpoint {
    struct http *http;
    char url[512];          /* without a trailing slash */
    char shown[512];        /* the same without user name and password: for messages */
    struct params headers;  /* of every request */
    const char *start_hint; /* how to start such a service, when there is none; must outlive it */
    const char *auth_hint;  /* what to do about a 401 or 403; likewise */
};

/* Normalizes an address: adds a missing scheme, removes trailing slashes.  ERR_USAGE for an invalid
 * one. */
enum err endpoint_url(char *url, size_t size, const char *given, struct error *why) MUST_USE;

/* Sets the content type of requests, JSON, and the headers given as parameters "header.NAME=VALUE",
 * "header.NAME=@FILE" or "header.NAME=env:VARIABLE".  Their values become secrets (core/secret.h). */
enum err endpoint_headers(struct endpoint *endpoint, const struct params *params, struct error *why)
    MUST_USE;

/* Opens and closes a client whose state begins with a struct endpoint. */
struct endpoint_client {
    size_t state_size;
    enum err (*make_url)(char *url, size_t size, const char *given, struct error *why);
    enum err (*configure)(void *state, const struct client_config *config, struct error *why);
};
enum err endpoint_client_open(const struct endpoint_client *kind,
                              const struct client_config *config, struct client *out,
                              struct error *why) MUST_USE;
void endpoint_client_close(struct client *client);

/* GET of a JSON document at `url`, which need not be below the endpoint's own path.  The caller frees
 * *out with jv_free.  `response` may be NULL; its body is released here. */
enum err endpoint_get(struct endpoint *endpoint, const char *url, nanos timeout, struct jv **out,
                      struct http_response *response, struct error *why) MUST_USE;

/* POST of a JSON body to the endpoint's URL and path.  The response body goes to feed; times, status
 * and whether a failure is retryable go to *out.  The caller releases the response. */
enum err endpoint_post(struct endpoint *endpoint, const char *path, const struct text *body,
                       const struct client_request *request,
                       enum err (*feed)(void *context, const char *bytes, size_t length, nanos t),
                       void *context, struct completion *out, struct http_response *response,
                       struct error *why) MUST_USE;

/* Where the completion of a request goes. */
struct completion_sink endpoint_sink(const struct endpoint *endpoint,
                                     const struct client_request *request, struct completion *out,
                                     struct error *why);

/* The error that a status other than 2xx in reply to the request stands for, with the server's own message if there is
 * one; retryable and retry_after_s of *out.  Where the request has tools and the message says that they are not
 * supported: ERR_UNSUPPORTED with out->rejects_tools. */
enum err endpoint_reply_error(const struct endpoint *endpoint, const struct client_request *request,
                              const struct http_response *response, struct completion *out,
                              struct error *why);

/* ERR_NOT_FOUND with the most similar of the models that there are; `advice` is appended. */
enum err endpoint_missing_model(const struct endpoint *endpoint, const char *model,
                                const struct client_models *models, const char *advice,
                                struct error *why);

#endif
