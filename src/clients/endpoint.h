/* An HTTP service at an address: the normalized URL, a connection, the headers of every request, and the errors of its
 * status codes.  A struct endpoint owns its connection and headers: endpoint_client_open, endpoint_client_close. */
#ifndef IPW_CLIENTS_ENDPOINT_H
#define IPW_CLIENTS_ENDPOINT_H

#include "clients/client.h"
#include "port/http.h"
#include "wire/responses.h"

struct jv;

/* Whether this build supports HTTP and JSON.  For client_driver. */
enum err endpoint_available(const struct params *params, struct error *why);

struct endpoint {
    struct http *http;
    char url[512];         /* without a trailing slash */
    char shown[512];       /* url without user name and password, for messages */
    struct params headers; /* sent with every request */
    const char *
        start_hint; /* how to start the service if it does not respond; must outlive the endpoint */
    const char *auth_hint; /* how to fix a 401 or 403; must outlive the endpoint */
};

/* Normalizes an address: adds a missing scheme, removes trailing slashes.  ERR_USAGE for an invalid
 * one. */
enum err endpoint_url(char *url, size_t size, const char *given, struct error *why) MUST_USE;

/* Sets the content type of requests, JSON, and the headers given as parameters "header.NAME=VALUE",
 * "header.NAME=@FILE" or "header.NAME=env:VARIABLE".  Their values become secrets (core/secret.h). */
enum err endpoint_headers(struct endpoint *endpoint, const struct params *params, struct error *why)
    MUST_USE;

/* Adds the header with the API key, if there is one: of the variable that the parameter api_key_env names, of
 * IPW_API_KEY, or of the service's usual variable.  It becomes a secret. */
struct endpoint_key {
    const char *variable;
    const char *header, *prefix; /* of its value */
};
enum err endpoint_add_key(struct endpoint *endpoint, const struct endpoint_key *key,
                          const struct params *params, struct error *why) MUST_USE;

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

/* GETs a JSON document at `url`, which may be outside the endpoint's path.  The caller frees *out with jv_free.
 * `response` may be NULL; its body is released here. */
enum err endpoint_get(struct endpoint *endpoint, const char *url, nanos timeout, struct jv **out,
                      struct http_response *response, struct error *why) MUST_USE;

/* POSTs a JSON body to the endpoint's URL and path.  The response body is passed to feed; times, status and whether a
 * failure is retryable are stored in *out.  The caller releases the response. */
enum err endpoint_post(struct endpoint *endpoint, const char *path, const struct text *body,
                       const struct client_request *request,
                       enum err (*feed)(void *context, const char *bytes, size_t length, nanos t),
                       void *context, struct completion *out, struct http_response *response,
                       struct error *why) MUST_USE;

/* Initializes the completion of a request, and refuses parameters of these names: "tools", the first of them, only for a
 * request with tools. */
enum err endpoint_begin(const struct client_request *request, const char *const *reserved,
                        struct completion *out, struct error *why) MUST_USE;

/* POSTs a request and reads the completion from its response, in this format.  *response gets the body of an error and
 * is released by the caller; it may be NULL. */
enum err endpoint_ask(struct endpoint *endpoint, const char *path, const struct text *body,
                      const struct client_request *request, enum response_kind format,
                      struct completion *out, struct http_response *response, struct error *why)
    MUST_USE;

/* ERR_NOT_FOUND with the most similar available models; `advice` is appended. */
enum err endpoint_missing_model(const struct endpoint *endpoint, const char *model,
                                const struct client_models *models, const char *advice,
                                struct error *why);

/* ---- servers with a versioned path and a list of models, /v1/models (model_server.c) ---- */

/* What the clients of OpenAI's and Anthropic's API have in common: vLLM, llama.cpp, LM Studio and others serve both side
 * by side.  The state of such a client begins with a struct model_server. */
struct model_server {
    struct endpoint endpoint;
    const char *list_path;   /* of the list of models, with its query; must outlive the server */
    enum client_tools tools; /* known from its responses to requests with tools */
};

/* Normalizes an address: the base URL including the version, whether or not the user gave it, without the path of a
 * request.  `tails` are those paths, and end with NULL. */
enum err model_server_url(char *url, size_t size, const char *given, const char *const *tails,
                          struct error *why) MUST_USE;

/* For client_driver. */
enum err model_server_health(struct client *client, struct error *why);
enum err model_server_models(struct client *client, struct client_models *out, struct error *why);
/* llama.cpp reports the capabilities of the chat template; for others, only their responses show it. */
enum client_tools model_server_tools(struct client *client, const char *model);

/* Whether the server has the model: it must be one of those that it lists, unless it lists exactly one.  llama.cpp lists
 * its only model by file name and serves it under any name; a warning then names the listed model.  A server without a
 * list is accepted. */
enum err model_server_check(struct model_server *server, const char *model, nanos timeout,
                            struct error *why) MUST_USE;

/* Writes what the server reports about itself and the model. */
void model_server_describe(struct model_server *server, const char *model, struct json *json);

#endif
