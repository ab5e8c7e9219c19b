/* Shared by the client drivers: lists of models, the conversation of a request, and the warm-up. */
#include "clients/client.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "core/xalloc.h"

void client_models_add(struct client_models *models, const char *name)
{
    *XADD(models->names, models->count, models->capacity) = xstrdup(name);
}

void client_models_release(struct client_models *models)
{
    memory_free_strings(models->names, models->count);
    *models = (struct client_models){0};
}

/* ---- conversation ---- */

const struct chat *client_chat(const struct client_request *request, struct client_chat *space)
{
    if (request->chat)
        return request->chat;
    size_t count = 0;
    if (request->system)
        space->made[count++] = (struct chat_message){.role = CHAT_SYSTEM, .text = request->system};
    if (request->prompt)
        space->made[count++] = (struct chat_message){.role = CHAT_USER, .text = request->prompt};
    space->chat = (struct chat){.messages = space->made, .count = count};
    return &space->chat;
}

size_t client_prompt_bytes(const struct client_request *request)
{
    struct client_chat space;
    const struct chat *chat = client_chat(request, &space);
    size_t bytes = 0;
    for (size_t i = 0; i < chat->count; i++) {
        const struct chat_message *message = &chat->messages[i];
        bytes += strlen(message->text);
        for (size_t c = 0; c < message->calls.count; c++)
            bytes += message->calls.items[c].arguments.length;
    }
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct chat_tool *tool = &request->tools[i];
        bytes += tool->description ? strlen(tool->description) : 0;
        bytes += tool->parameters ? strlen(tool->parameters) : 0;
    }
    return bytes;
}

/* ---- warm-up ---- */

nanos client_probe_timeout(nanos timeout)
{
    return timeout > 0 && timeout < CLIENT_PROBE_TIMEOUT ? timeout : CLIENT_PROBE_TIMEOUT;
}

enum err client_warm_up(struct client *client, const char *model, const char *limit, nanos began,
                        nanos timeout, struct error *why)
{
    struct params params = {0};
    params_set(&params, limit, "1");
    nanos left = timeout > 0 ? timeout - (clock_now() - began) : 0;
    if (timeout > 0 && left < NS_PER_MS)
        left = NS_PER_MS; /* 0 would mean no limit */
    const struct client_request request = {
        .model = model, .prompt = "Hello", .params = &params, .timeout = left};
    struct completion completion;
    enum err err = client->driver->ask(client, &request, &completion, why);
    completion_release(&completion);
    params_release(&params);
    return err;
}
