/* Asking a dataset server, with patience: it is public, and often busy.  A struct hub_server owns its
 * connection and headers: hub_server_init, hub_server_release. */
#ifndef IPW_DATASETS_HUB_SERVER_H
#define IPW_DATASETS_HUB_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"

struct http;
struct text;

struct hub_server {
    char base[256];        /* without a slash at the end */
    struct params headers; /* the token from HF_TOKEN, where it may be sent */
    struct http *http;     /* opened by the first request */
    uint64_t tries;
    double delay_s; /* before the second try; doubled before each later one */
    bool has_token;
};

/* Reads base_url, tries and retry_delay. */
enum err hub_server_init(struct hub_server *out, const struct params *params, struct error *why)
    MUST_USE;
void hub_server_release(struct hub_server *server);

/* The body of base + path in *body.  ERR_DENIED, ERR_NOT_FOUND, or ERR_BUSY after the last try. */
enum err hub_server_get(struct hub_server *server, const char *path, struct text *body,
                        struct error *why) MUST_USE;

/* Adds a value to a query, or to a file's name: all but letters, digits, "-", "_" and inner dots as
 * %XX. */
void hub_add_encoded(struct text *out, const char *value);

#endif
