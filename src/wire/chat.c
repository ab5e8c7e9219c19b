/* Conversations: owned messages and calls, and how each API writes them. */
#include "wire/chat.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/json.h"
#include "core/xalloc.h"

/* ---- calls ---- */

static void append_call(struct tool_calls *calls, const char *id, const char *name,
                        const char *arguments)
{
    struct tool_call *call = XADD(calls->items, calls->count, calls->capacity);
    *call = (struct tool_call){.id = xstrdup(id ? id : ""), .name = xstrdup(name ? name : "")};
    call->index = -1;
    if (arguments)
        text_add(&call->arguments, *arguments ? arguments : "{}");
}

enum err tool_calls_add(struct tool_calls *calls, const char *id, const char *name,
                        const char *arguments)
{
    if (calls->count >= TOOL_CALLS_LIMIT)
        return ERR_BAD_VALUE;
    append_call(calls, id, name, arguments);
    return ERR_OK;
}

void tool_calls_identify(struct tool_calls *calls, uint64_t seed)
{
    static const char DIGITS[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    enum { LENGTH = 9 };
    for (size_t i = 0; i < calls->count; i++) {
        struct tool_call *call = &calls->items[i];
        char id[LENGTH + 1] = "";
        uint64_t bits = hash_mix(seed + i);
        for (int c = 0; c < LENGTH; c++, bits /= 36)
            id[c] = DIGITS[bits % 36];
        if (!*call->id)
            str_set(&call->id, id);
    }
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

/* Takes ownership of the message. */
static void append(struct chat *chat, struct chat_message message)
{
    *XADD(chat->messages, chat->count, chat->capacity) = message;
}

void chat_add(struct chat *chat, enum chat_role role, const char *text)
{
    append(chat, (struct chat_message){.role = role, .text = xstrdup(text)});
}

void chat_add_reply(struct chat *chat, const char *text, const struct tool_calls *calls)
{
    struct chat_message message = {.role = CHAT_ASSISTANT, .text = xstrdup(text ? text : "")};
    for (size_t i = 0; calls && i < calls->count; i++) {
        const struct tool_call *call = &calls->items[i];
        append_call(&message.calls, call->id, call->name, text_get(&call->arguments));
    }
    append(chat, message);
}

void chat_add_result(struct chat *chat, const struct tool_call *call, const char *text)
{
    append(chat, (struct chat_message){.role = CHAT_TOOL,
                                       .text = xstrdup(text),
                                       .call_id = xstrdup(call->id),
                                       .name = xstrdup(call->name)});
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

/* ---- JSON of OpenAI's and Ollama's API ---- */

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

/* ---- JSON of Anthropic's API ---- */

/* System messages are a member of their own, and results of tools are the user's: only two roles remain. */
static enum chat_role side_of(const struct chat_message *message)
{
    return message->role == CHAT_ASSISTANT ? CHAT_ASSISTANT : CHAT_USER;
}

/* The API rejects a text without characters, or of white space alone. */
static bool has_text(const struct chat_message *message)
{
    return message->text[strspn(message->text, " \t\r\n")] != '\0';
}

static bool has_blocks(const struct chat_message *message)
{
    return message->role != CHAT_SYSTEM &&
           (has_text(message) || message->calls.count || message->role == CHAT_TOOL);
}

/* Left open. */
static void write_block(struct json *json, const char *type)
{
    json_object(json, NULL);
    json_string(json, "type", type);
}

static void write_blocks(struct json *json, const struct chat_message *message)
{
    if (message->role == CHAT_TOOL) {
        write_block(json, "tool_result");
        json_string(json, "tool_use_id", message->call_id);
        json_string(json, "content", message->text);
        json_object_end(json);
    } else if (has_text(message)) {
        write_block(json, "text");
        json_string(json, "text", message->text);
        json_object_end(json);
    }
    for (size_t i = 0; i < message->calls.count; i++) {
        const struct tool_call *call = &message->calls.items[i];
        write_block(json, "tool_use");
        json_string(json, "id", call->id);
        json_string(json, "name", call->name);
        json_raw(json, "input", text_get(&call->arguments));
        json_object_end(json);
    }
}

static void write_system(struct json *json, const struct chat *chat)
{
    struct text system = {0};
    for (size_t i = 0; i < chat->count; i++)
        if (chat->messages[i].role == CHAT_SYSTEM && has_text(&chat->messages[i]))
            text_addf(&system, "%s%s", system.length ? "\n\n" : "", chat->messages[i].text);
    if (system.length)
        json_string(json, "system", text_get(&system));
    text_release(&system);
}

/* The roles alternate: consecutive messages of one side, such as the results of several calls, become one. */
static void write_turns(struct json *json, const struct chat *chat)
{
    const struct chat_message *last = NULL;
    for (size_t i = 0; i < chat->count; i++) {
        const struct chat_message *message = &chat->messages[i];
        if (!has_blocks(message))
            continue;
        if (!last || side_of(message) != side_of(last)) {
            if (last) {
                json_array_end(json);
                json_object_end(json);
            }
            json_object(json, NULL);
            json_string(json, "role", chat_role_name(side_of(message)));
            json_array(json, "content");
        }
        write_blocks(json, message);
        last = message;
    }
    if (last) {
        json_array_end(json);
        json_object_end(json);
    }
}

/* ---- JSON ---- */

void chat_write(struct json *json, enum chat_dialect dialect, const struct chat *chat)
{
    if (dialect == CHAT_ANTHROPIC)
        write_system(json, chat);
    json_array(json, "messages");
    if (dialect == CHAT_ANTHROPIC)
        write_turns(json, chat);
    for (size_t i = 0; dialect != CHAT_ANTHROPIC && i < chat->count; i++)
        write_message(json, dialect, &chat->messages[i]);
    json_array_end(json);
}

/* Name, description and schema, the latter under the name that the API has for it. */
static void write_definition(struct json *json, const struct chat_tool *tool, const char *schema)
{
    json_string(json, "name", tool->name);
    json_optional_string(json, "description", tool->description);
    json_raw(json, schema,
             tool->parameters ? tool->parameters : "{\"type\":\"object\",\"properties\":{}}");
}

void chat_write_tool(struct json *json, enum chat_dialect dialect, const struct chat_tool *tool)
{
    json_object(json, NULL);
    if (dialect == CHAT_ANTHROPIC) {
        write_definition(json, tool, "input_schema");
    } else {
        json_string(json, "type", "function");
        json_object(json, "function");
        write_definition(json, tool, "parameters");
        json_object_end(json);
    }
    json_object_end(json);
}

void chat_write_tools(struct json *json, enum chat_dialect dialect, const struct chat_tool *tools,
                      size_t count)
{
    if (count == 0)
        return;
    json_array(json, "tools");
    for (size_t i = 0; i < count; i++)
        chat_write_tool(json, dialect, &tools[i]);
    json_array_end(json);
}
