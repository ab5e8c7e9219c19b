/* The contract of a client: a way to put a question to a model and watch the answer arrive.
 *
 * A driver is one .c file that exports one `const struct client_driver` and one line in clients.def.
 * A struct client is used by one thread at a time; concurrency opens several.  Drivers never print,
 * never exit, never retry (the runner does) and never invent a count: unknown is unknown.
 *
 * Ownership: the caller owns every struct here; a driver owns only what client->state points to, from
 * a successful open until close. */
#ifndef IPW_CLIENTS_CLIENT_H
#define IPW_CLIENTS_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"

struct json;
struct client;

struct client_config {
    const char *base_url;        /* NULL for the driver's default */
    const struct params *params; /* --client-param; may be NULL */
    nanos patience; /* a look at the service takes no longer; 0: the driver's own limit */
};

struct client_request {
    const char *model;
    const char *system; /* NULL for none */
    const char *prompt;
    const struct params *params; /* sent with the request: max_tokens, temperature, seed ... */
    nanos timeout;               /* for the whole answer; 0: none */
    const atomic_bool *cancel;   /* may be NULL */
    /* Content as it arrives, for a progress display; may be NULL. */
    void (*saw)(void *context, const char *bytes, size_t length, nanos t);
    void *context;
};

/* When content arrived: one entry for each piece, at the time its bytes reached us. */
struct arrivals {
    nanos *times;
    size_t count;
    size_t capacity;
};

struct client_reply {
    struct text content;
    struct text reasoning;    /* thinking that the server sends apart from the content */
    struct arrivals arrivals; /* of content and reasoning */
    nanos sent;               /* the request began to be sent */
    nanos first_token;        /* first byte of content or reasoning; 0 when none came */
    nanos last_token;         /* 0 when none came */
    nanos done;               /* always set */
    /* Counts by the server; -1 when it did not say.  Output includes reasoning. */
    int64_t prompt_tokens, output_tokens, reasoning_tokens, cached_tokens;
    /* Durations by the server, in s; UNKNOWN when it did not say. */
    double server_load_s, server_prefill_s, server_decode_s;
    int status;             /* of HTTP; 0 when there was none */
    char finish_reason[32]; /* "stop", "length" ...; "" unknown */
    bool retryable;         /* of a failure: might the same request succeed a little later? */
    double retry_after_s;   /* that the server asked for; UNKNOWN without */
};

void client_reply_release(struct client_reply *reply);

/* For drivers: an empty reply with every figure unknown; a piece of content that arrived at t. */
void client_reply_init(struct client_reply *reply);
enum err client_reply_arrived(struct client_reply *reply, struct text *part, const char *bytes,
                              size_t length, nanos t) MUST_USE;

struct client_models {
    char **names;
    size_t count;
    size_t capacity;
};
enum err client_models_add(struct client_models *models, const char *name) MUST_USE;
void client_models_release(struct client_models *models);

struct client_driver {
    const char *name;
    const char *summary;             /* one line for `ipw list` */
    const struct param_spec *params; /* what --client-param may set; ends with a NULL name */
    const char *default_url;         /* NULL where there is none */
    bool is_in_process;              /* the model's work is this process's own */

    /* Can this build use it, with these parameters (may be NULL)?  ERR_UNSUPPORTED with what enables
     * it.  NULL: always. */
    enum err (*available)(const struct params *params, struct error *why);

    /* Checks the configuration and prepares; speaks to no server yet.  *out is zeroed with driver set.
     * On failure nothing is left open. */
    enum err (*open)(const struct client_config *config, struct client *out, struct error *why);
    void (*close)(struct client *client);

    /* Is the service there and does it answer?  *why says how to start it when not. */
    enum err (*health)(struct client *client, struct error *why);
    enum err (*models)(struct client *client, struct client_models *out, struct error *why);

    /* Loads the model and makes it answer once, so that the first query is not a cold one.  A model
     * that the service does not have is ERR_NOT_FOUND, with the near names in *why. */
    enum err (*prepare)(struct client *client, const char *model, nanos timeout, struct error *why);

    /* What the service says of itself and of the model (version, quantisation, context ...), as
     * members of the object that is open in *json.  What is not known is left out. */
    void (*describe)(struct client *client, const char *model, struct json *json);

    /* Puts the question and takes the answer as it streams in.  On failure the reply holds what had
     * arrived, done is set, and retryable says whether to try again.  Release it in any case. */
    enum err (*ask)(struct client *client, const struct client_request *request,
                    struct client_reply *out, struct error *why);
};

struct client {
    const struct client_driver *driver;
    char base_url[512]; /* as used */
    nanos patience;     /* as configured */
    void *state;
};

/* ---- the list (clients.def) ---- */

/* NULL-terminated, in the order of clients.def. */
extern const struct client_driver *const CLIENT_DRIVERS[];

/* NULL, with the near names in *why, when there is none of that name. */
const struct client_driver *client_driver_find(const char *name, struct error *why);

/* An address as it may be shown and kept: without what stands before an @ in the host's part. */
void client_url_shown(const char *url, char *to, size_t size);

/* Looks whether the driver is available, checks the parameters against its list, and opens. */
enum err client_open(const struct client_driver *driver, const struct client_config *config,
                     struct client *out, struct error *why) MUST_USE;
void client_close(struct client *client);

#endif
