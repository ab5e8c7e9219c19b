/* Conversations: owned messages and calls, and how both APIs write them. */
#include "wire/chat.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/hash.h"
#include "core/json.h"

/* ---- calls ---- */

enum err tool_calls_add(struct tool_calls *calls, const char *id, const char *name,
                        const char *arguments)
{
    if (calls->count >= TOOL_CALLS_LIMIT)
        return ERR_BAD_VALUE;
    struct tool_call *items = grow(calls->items, &calls->capacity, calls->count, sizeof *items);
    if (!items)
        return ERR_NO_MEMORY;
    calls->items = items;
    struct tool_call *call = &items[calls->count];
    *call = (struct tool_call){.id = strdup(id ? id : ""), .name = strdup(name ? name : "")};
    call->index = -1;
    if (arguments)
        text_add(&call->arguments, *arguments ? arguments : "{}");
    calls->count++;
    return call->id && call->name && !call->arguments.failed ? ERR_OK : ERR_NO_MEMORY;
}

enum err tool_calls_identify(struct tool_calls *calls, uint64_t seed)
{
    static const char DIGITS[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    enum { LENGTH = 9 };
    for (size_t i = 0; i < calls->count; i++) {
        struct tool_call *call = &calls->items[i];
        if (*call->id)
            continue;
        char *id = malloc(LENGTH + 1);
        if (!id)
            return ERR_NO_MEMORY;
        uint64_t bits = hash_mix(seed + i);
        for (int c = 0; c < LENGTH; c++, bits /= 36)
            id[c] = DIGITS[bits % 36];
        id[LENGTH] = '\0';
        free(call->id);
        call->id = id;
    }
    return ERR_OK;
}

void tool_calls_release(struct tool_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++) {
        free(calls->items[i].id);
        free(calls->items[i].name);
        text_release(&calls->items[i].arguments);
    }
    free(calls->items);
    *calls = (struct tool_calls){0};
}

/* ---- messages ---- */

const char *chat_role_name(enum chat_role role)
{
    static const char *const NAMES[] = {"system", "user", "assistant", "tool"};
    return NAMES[role];
}

static void release_message(struct chat_message *message)
{
    free((void *)message->text);
    free((void *)message->call_id);
    free((void *)message->name);
    tool_calls_release(&message->calls);
}

/* Takes ownership of the message, whether it succeeds or not. */
static enum err append(struct chat *chat, struct chat_message *message)
{
    struct chat_message *messages =
        grow(chat->messages, &chat->capacity, chat->count, sizeof *messages);
    if (messages)
        chat->messages = messages;
    if (!messages || !message->text) {
        release_message(message);
        return ERR_NO_MEMORY;
    }
    messages[chat->count++] = *message;
    return ERR_OK;
}

enum err chat_add(struct chat *chat, enum chat_role role, const char *text)
{
    struct chat_message message = {.role = role, .text = strdup(text)};
    return append(chat, &message);
}

enum err chat_add_reply(struct chat *chat, const char *text, const struct tool_calls *calls)
{
    struct chat_message message = {.role = CHAT_ASSISTANT, .text = strdup(text ? text : "")};
    for (size_t i = 0; calls && i < calls->count; i++) {
        const struct tool_call *call = &calls->items[i];
        enum err err =
            tool_calls_add(&message.calls, call->id, call->name, text_get(&call->arguments));
        if (err) {
            release_message(&message);
            return err;
        }
    }
    return append(chat, &message);
}

enum err chat_add_result(struct chat *chat, const struct tool_call *call, const char *text)
{
    struct chat_message message = {.role = CHAT_TOOL,
                                   .text = strdup(text),
                                   .call_id = strdup(call->id),
                                   .name = strdup(call->name)};
    if (!message.call_id || !message.name) {
        release_message(&message);
        return ERR_NO_MEMORY;
    }
    return append(chat, &message);
}

void chat_release(struct chat *chat)
{
    for (size_t i = 0; i < chat->count; i++)
        release_message(&chat->messages[i]);
    free(chat->messages);
    *chat = (struct chat){0};
}

void chat_write_plain(const struct chat *chat, struct text *out)
{
    for (size_t i = 0; i < chat->count; i++)
        text_addf(out, "%s%s", i ? "\n\n" : "", chat->messages[i].text);
}

/* ---- JSON ---- */

static void write_call(struct json *json, enum chat_dialect dialect, const struct tool_call *call)
{
    const char *arguments = text_get(&call->arguments);
    json_object(json, NULL);
    json_string(json, "id", call->id);
    if (dialect == CHAT_OPENAI)
        json_string(json, "type", "function");
    json_object(json, "function");
    json_string(json, "name", call->name);
    if (dialect == CHAT_OPENAI)
        json_string(json, "arguments", arguments);
    else
        json_raw(json, "arguments", arguments);
    json_object_end(json);
    json_object_end(json);
}

static void write_message(struct json *json, enum chat_dialect dialect,
                          const struct chat_message *message)
{
    json_object(json, NULL);
    json_string(json, "role", chat_role_name(message->role));
    json_optional_string(json, "tool_call_id", message->call_id);
    json_optional_string(json, dialect == CHAT_OPENAI ? "name" : "tool_name", message->name);
    bool has_calls = message->calls.count > 0;
    json_string(json, "content",
                has_calls && !*message->text && dialect == CHAT_OPENAI ? NULL : message->text);
    if (has_calls) {
        json_array(json, "tool_calls");
        for (size_t i = 0; i < message->calls.count; i++)
            write_call(json, dialect, &message->calls.items[i]);
        json_array_end(json);
    }
    json_object_end(json);
}

void chat_write(struct json *json, enum chat_dialect dialect, const struct chat *chat)
{
    json_array(json, "messages");
    for (size_t i = 0; i < chat->count; i++)
        write_message(json, dialect, &chat->messages[i]);
    json_array_end(json);
}

void chat_write_tool(struct json *json, const struct chat_tool *tool)
{
    json_object(json, NULL);
    json_string(json, "type", "function");
    json_object(json, "function");
    json_string(json, "name", tool->name);
    json_optional_string(json, "description", tool->description);
    json_raw(json, "parameters",
             tool->parameters ? tool->parameters : "{\"type\":\"object\",\"properties\":{}}");
    json_object_end(json);
    json_object_end(json);
}

void chat_write_tools(struct json *json, const struct chat_tool *tools, size_t count)
{
    if (count == 0)
        return;
    json_array(json, "tools");
    for (size_t i = 0; i < count; i++)
        chat_write_tool(json, &tools[i]);
    json_array_end(json);
}
