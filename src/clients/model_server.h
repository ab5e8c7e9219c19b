/* A server with a versioned path and a list of models, /v1/models: what the clients of OpenAI's and Anthropic's API have
 * in common, since vLLM, llama.cpp, LM Studio and others serve both side by side.
 *
 * A client's state begins with a struct model_server, which its driver opens and closes as an endpoint. */
#ifndef IPW_CLIENTS_MODEL_SERVER_H
#define IPW_CLIENTS_MODEL_SERVER_H

#include "clients/endpoint.h"

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
