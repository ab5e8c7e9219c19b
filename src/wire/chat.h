/* A conversation with a model: messages with roles, the tools that the model may call and its calls; their JSON in
 * requests of OpenAI's, Ollama's and Anthropic's API (chat.c), and their form in plain text (tool_text.c).
 *
 * Ownership: a struct chat owns its messages and a struct tool_calls its calls: zero-initialize, release when done.
 * Added strings are copied.  A struct chat_tool borrows its strings. */
#ifndef IPW_WIRE_CHAT_H
#define IPW_WIRE_CHAT_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/text.h"

struct json;

/* ---- tools and their calls ---- */

struct chat_tool {
    const char *name;
    const char *description; /* NULL for none */
    const char *parameters;  /* JSON schema of an object; NULL: no parameters */
};

struct tool_call {
    char *id;              /* pairs the call with its result; unique in a conversation */
    char *name;            /* as written by the model: the tool may not exist */
    struct text arguments; /* a JSON object, once complete */
    int64_t index;         /* by which a stream continues it; -1: none */
};

enum { TOOL_CALLS_LIMIT = 256 }; /* calls of one reply */

struct tool_calls {
    struct tool_call *items;
    size_t count, capacity;
};

/* Arguments of "" become "{}"; NULL: they are added later.  ERR_BAD_VALUE beyond the limit. */
enum err tool_calls_add(struct tool_calls *calls, const char *id, const char *name,
                        const char *arguments) MUST_USE;
/* Gives every call without an id one derived from `seed`, which should differ between replies: 9 letters and digits,
 * the format that the strictest chat templates require. */
void tool_calls_identify(struct tool_calls *calls, uint64_t seed);
void tool_calls_release(struct tool_calls *calls);

/* ---- messages ---- */

enum chat_role { CHAT_SYSTEM, CHAT_USER, CHAT_ASSISTANT, CHAT_TOOL };
const char *chat_role_name(enum chat_role role);

struct chat_message {
    enum chat_role role;
    const char *text;        /* never NULL; may be "" */
    struct tool_calls calls; /* of an assistant */
    const char *call_id;     /* of a tool's result; else NULL, like the name */
    const char *name;        /* of the tool */
};

struct chat {
    struct chat_message *messages;
    size_t count, capacity;
};

void chat_add(struct chat *chat, enum chat_role role, const char *text);
/* An assistant's message: text and calls, each of which may be NULL or empty. */
void chat_add_reply(struct chat *chat, const char *text, const struct tool_calls *calls);
void chat_add_result(struct chat *chat, const struct tool_call *call, const char *text);
void chat_release(struct chat *chat);

/* Appends the texts alone, separated by empty lines, for a model without roles. */
void chat_write_plain(const struct chat *chat, struct text *out);

/* ---- JSON ---- */

enum chat_dialect { CHAT_OPENAI, CHAT_OLLAMA, CHAT_ANTHROPIC };

/* "messages"; for Anthropic's API also "system". */
void chat_write(struct json *json, enum chat_dialect dialect, const struct chat *chat);

/* Writes "tools"; nothing if there are none. */
void chat_write_tools(struct json *json, enum chat_dialect dialect, const struct chat_tool *tools,
                      size_t count);

/* One tool as an item of the open array; {"type":"function","function":{...}} in OpenAI's and Ollama's API. */
void chat_write_tool(struct json *json, enum chat_dialect dialect, const struct chat_tool *tool);

/* ---- tools in text ---- */

/* For models and services without tool support: a conversation with tools becomes one of system, user and assistant
 * texts, and calls are parsed from the model's output.  Hermes is the format of many models' chat templates (Hermes,
 * Qwen, SmolLM2): <tool_call>{"name":...}</tool_call>.  ReAct is for models without tool training: lines of Thought,
 * Action, Action Input, Observation, Final Answer. */
enum tool_text { TOOL_TEXT_HERMES, TOOL_TEXT_REACT };

/* Appends the conversation to *out: tools described in the system message, calls in the assistant's text, results in
 * user messages. */
void tool_text_render(enum tool_text form, const struct chat *chat, const struct chat_tool *tools,
                      size_t count, struct chat *out);

/* Adds the calls in a model's text to *calls, which is empty, without ids (see tool_calls_identify), and the remaining
 * text to *answer: the final answer without its label if there are no calls, else the text before them.  Models are
 * imprecise: both formats are accepted in either mode, as is bare JSON of a call of a known tool; arguments that are
 * not JSON are passed as the tool's first parameter; text after a hallucinated observation is dropped.  ERR_BAD_VALUE:
 * more than TOOL_CALLS_LIMIT calls. */
enum err tool_text_parse(const char *text, const struct chat_tool *tools, size_t count,
                         struct text *answer, struct tool_calls *calls) MUST_USE;

/* The stop string of a request in that format, at which the model would hallucinate a tool's result. */
const char *tool_text_stop(enum tool_text form);

#endif
