#include "clients/client.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"

void client_url_shown(const char *url, char *to, size_t size)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    size_t length = strcspn(host, "/");
    size_t skipped = 0;
    for (size_t i = 0; i < length; i++)
        if (host[i] == '@')
            skipped = i + 1;
    str_format(to, size, "%.*s%s", (int)(host - url), url, host + skipped);
}

void client_reply_init(struct client_reply *reply)
{
    *reply = (struct client_reply){
        .prompt_tokens = -1,
        .output_tokens = -1,
        .reasoning_tokens = -1,
        .cached_tokens = -1,
        .server_load_s = UNKNOWN,
        .server_prefill_s = UNKNOWN,
        .server_decode_s = UNKNOWN,
        .retry_after_s = UNKNOWN,
    };
}

void client_reply_release(struct client_reply *reply)
{
    text_release(&reply->content);
    text_release(&reply->reasoning);
    free(reply->arrivals.times);
    reply->arrivals = (struct arrivals){0};
}

enum err client_reply_arrived(struct client_reply *reply, struct text *part, const char *bytes,
                              size_t length, nanos t)
{
    if (length == 0)
        return ERR_OK; /* a piece without content is not one */
    struct arrivals *arrivals = &reply->arrivals;
    nanos *times = grow(arrivals->times, &arrivals->capacity, arrivals->count, sizeof *times);
    if (!times)
        return ERR_NO_MEMORY;
    arrivals->times = times;
    text_add_bytes(part, bytes, length);
    if (part->failed)
        return ERR_NO_MEMORY;
    times[arrivals->count++] = t;
    if (!reply->first_token)
        reply->first_token = t;
    reply->last_token = t;
    return ERR_OK;
}

enum err client_models_add(struct client_models *models, const char *name)
{
    char **names = grow(models->names, &models->capacity, models->count, sizeof *names);
    if (!names)
        return ERR_NO_MEMORY;
    models->names = names;
    names[models->count] = strdup(name);
    if (!names[models->count])
        return ERR_NO_MEMORY;
    models->count++;
    return ERR_OK;
}

void client_models_release(struct client_models *models)
{
    for (size_t i = 0; i < models->count; i++)
        free(models->names[i]);
    free(models->names);
    *models = (struct client_models){0};
}
