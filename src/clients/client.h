/* The contract of a client: sends a conversation to a model and records the completion as it streams in.
 *
 * A driver is one .c file that exports one `const struct client_driver` and one line in clients.def. A struct client is
 * used by one thread at a time; concurrent requests use several.  Drivers never print, exit or retry (the runner does),
 * and never guess a count: unknown stays unknown.
 *
 * Ownership: the caller owns every struct here; a driver owns only what client->state points to, from
 * a successful open until close. */
#ifndef IPW_CLIENTS_CLIENT_H
#define IPW_CLIENTS_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/err.h"
#include "core/params.h"
#include "core/text.h"
#include "core/units.h"
#include "wire/chat.h"
#include "wire/completion.h"

struct json;
struct client;
struct workload_driver;

struct client_config {
    const char *base_url;                   /* NULL for the driver's default */
    const struct params *params;            /* --client-param; may be NULL */
    nanos probe_timeout;                    /* limit of a health check; 0: the driver's default */
    const struct workload_driver *workload; /* for the client of workloads/; else NULL */
    const char *model;                      /* of the workload */
};

struct client_request {
    const char *model;
    /* The conversation; if NULL, it consists of system and prompt. */
    const struct chat *chat;
    const char *system; /* NULL for none */
    const char *prompt;
    const struct chat_tool *tools; /* tools that the model may call */
    size_t tool_count;
    const struct params *params;  /* sent with the request: max_tokens, temperature, seed ... */
    nanos timeout;                /* for the whole request; 0: none */
    const atomic_bool *cancel;    /* may be NULL */
    completion_observer observer; /* receives content as it arrives; may be NULL */
    void *context;                /* passed to the observer */
    bool wants_score;             /* set by `score`: the reply has the prompt's log-probabilities */
};

struct client_models {
    char **names;
    size_t count;
    size_t capacity;
};
void client_models_release(struct client_models *models);

/* A text split into windows of tokens, each scored by itself.  All have the same length; the second half of each is
 * scored, so that every scored token has at least half a window of context.  client_windows_release frees it. */
struct client_windows {
    int32_t *tokens; /* tokens of all windows, concatenated */
    size_t length;   /* tokens per window */
    size_t count;    /* number of windows */
    /* The bytes of window i begin at text.bytes + text_at[i]; text_at has count + 1 entries. */
    struct text text;
    size_t *text_at;
};
static inline void client_windows_release(struct client_windows *windows)
{
    free(windows->tokens);
    free(windows->text_at);
    text_release(&windows->text);
    *windows = (struct client_windows){0};
}

/* Whether a model supports tool calls. */
enum client_tools { CLIENT_TOOLS_UNKNOWN, CLIENT_TOOLS_YES, CLIENT_TOOLS_NO };

struct client_driver {
    const char *name;
    const char *summary;             /* one line for `ipw list` */
    const struct param_spec *params; /* accepted by --client-param; ends with a NULL name */
    const char *default_url;         /* NULL: none */
    bool is_in_process;              /* inference runs in this process */
    bool shares_model;               /* clients share a model while one of them is open */
    const char *only_dataset;        /* it reads no questions: those of this dataset; NULL: any */

    /* Whether this build supports it with these parameters (may be NULL).  ERR_UNSUPPORTED says how to enable it.
     * NULL: always. */
    enum err (*available)(const struct params *params, struct error *why);

    /* Checks the configuration; does not contact a server yet.  *out is zeroed with driver set.
     * On failure nothing is left open. */
    enum err (*open)(const struct client_config *config, struct client *out, struct error *why);
    void (*close)(struct client *client);

    /* Whether the service responds.  If not, *why says how to start it. */
    enum err (*health)(struct client *client, struct error *why);
    enum err (*models)(struct client *client, struct client_models *out, struct error *why);

    /* Warm-up: loads the model and generates one token, so that the first query is not a cold start.
     * A model that the service does not have is ERR_NOT_FOUND, with similar names in *why. */
    enum err (*prepare)(struct client *client, const char *model, nanos timeout, struct error *why);

    /* Writes what the service reports about itself and the model (version, quantization, context
     * length ...) as members of the object open in *json.  Unknown values are omitted. */
    void (*describe)(struct client *client, const char *model, struct json *json);

    /* Whether requests with tools are supported, by the service's information or the chat template.  If unknown, a
     * request is tried. */
    enum client_tools (*tools)(struct client *client, const char *model);

    /* Sends the conversation and records the completion as it streams in.  On failure *out holds what was received,
     * done is set, and retryable says whether to retry; a service or model without tool calls is ERR_UNSUPPORTED with
     * rejects_tools.  The caller always releases *out. */
    enum err (*ask)(struct client *client, const struct client_request *request,
                    struct completion *out, struct error *why);

    /* Optional: the log-likelihood of request->prompt under the model, as ask records it, with the score in *out.
     * tokens[count]: a window of split, instead of the prompt; NULL where the service tokenizes it. */
    enum err (*score)(struct client *client, const struct client_request *request,
                      const int32_t *tokens, size_t count, struct completion *out,
                      struct error *why);
    /* Optional, for a client with the model's tokenizer: splits a text into windows of `length` tokens. */
    enum err (*split)(struct client *client, const char *model, const struct text *text,
                      size_t length, struct client_windows *out, struct error *why);
};

struct client {
    const struct client_driver *driver;
    char base_url[512];           /* as used */
    nanos probe_timeout;          /* as configured */
    const struct params *headers; /* sent with every request; NULL: none */
    void *state;
};

/* ---- for drivers ---- */

void client_models_add(struct client_models *models, const char *name);

#define CLIENT_PROBE_TIMEOUT (10 * NS_PER_S) /* for requests other than completions */

/* The smaller of CLIENT_PROBE_TIMEOUT and `timeout` (0: none). */
nanos client_probe_timeout(nanos timeout);

/* Requests one token, with the service's parameter name `limit`, within `timeout` (0: none) since `began`. */
enum err client_warm_up(struct client *client, const char *model, const char *limit, nanos began,
                        nanos timeout, struct error *why) MUST_USE;

/* The conversation of a request: its own, or one built in *space from the system message and the prompt, which it
 * borrows.  All drivers read this form. */
struct client_chat {
    struct chat chat;
    struct chat_message made[2];
};
const struct chat *client_chat(const struct client_request *request, struct client_chat *space);

/* Bytes of the conversation and the tools, for completion_check_counts. */
size_t client_prompt_bytes(const struct client_request *request);

/* ---- the list (clients.def) ---- */

/* NULL-terminated, in the order of clients.def. */
extern const struct client_driver *const CLIENT_DRIVERS[];

/* NULL for an unknown name, with similar names in *why. */
const struct client_driver *client_driver_find(const char *name, struct error *why);

/* Checks availability and parameters, and opens. */
enum err client_open(const struct client_driver *driver, const struct client_config *config,
                     struct client *out, struct error *why) MUST_USE;
void client_close(struct client *client);

#endif
