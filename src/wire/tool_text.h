/* Tool calling in plain text, for models and services without an interface for it: a conversation with tools becomes
 * one of system, user and assistant texts, and calls are read from what the model writes.  Pure: nothing is kept, and
 * the caller owns what is filled.
 *
 * Hermes is the form of many models' chat templates (Hermes, Qwen, SmolLM2): <tool_call>{"name":...}</tool_call>.  ReAct
 * is for models that were trained for none: lines of Thought, Action, Action Input, Observation, Final Answer. */
#ifndef IPW_WIRE_TOOL_TEXT_H
#define IPW_WIRE_TOOL_TEXT_H

#include "wire/chat.h"

enum tool_text { TOOL_TEXT_HERMES, TOOL_TEXT_REACT };

/* Appends the conversation to *out: tools described in the system message, calls in the assistant's text, results in
 * the user's messages. */
enum err tool_text_render(enum tool_text form, const struct chat *chat,
                          const struct chat_tool *tools, size_t count, struct chat *out) MUST_USE;

/* Appends the calls in a model's text to *calls, without ids (tool_calls_identify makes them), and the rest to *answer:
 * the final answer without its label where there are no calls, else what was said before them.  Models are sloppy:
 * both forms are read in either, and bare JSON of a call of a known tool; arguments that are not JSON go to the tool's
 * first parameter; what follows an invented observation is dropped. */
enum err tool_text_parse(const char *text, const struct chat_tool *tools, size_t count,
                         struct text *answer, struct tool_calls *calls) MUST_USE;

/* The stop string of a request in that form, at which the model would invent a tool's result. */
const char *tool_text_stop(enum tool_text form);

#endif
