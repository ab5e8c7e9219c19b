/* Responses of Anthropic's Messages API (/v1/messages): an SSE stream whose events have a type, or one document.
 *
 * Content is a list of blocks.  An event starts a block, others append to it, by its index: text, the input of a tool
 * call as JSON, or thinking.  Usage is cumulative: message_start has that of the prompt, message_delta that of the
 * output, and of the prompt again if the server knows it only then.  llama.cpp, vLLM, Ollama and LM Studio have the
 * same API; each leaves out some fields. */
#include <string.h>

#include "core/secret.h"
#include "port/json_read.h"
#include "wire/completion.h"
#include "wire/responses.h"

/* ---- usage ---- */

/* Counts of the prompt; input_tokens excludes those written to and read from the cache. */
static void read_prompt(struct anthropic_response *response, const struct jv *usage)
{
    completion_read_count(&response->input, jv_get(usage, "input_tokens"));
    completion_read_count(&response->cache_written, jv_get(usage, "cache_creation_input_tokens"));
    completion_read_count(&response->cache_read, jv_get(usage, "cache_read_input_tokens"));
}

/* At the end of the message: before, the prompt's counts may be an estimate, and those of an incomplete completion are
 * unknown in every format.  No prompt has 0 tokens: vLLM sends 0 for an unknown count. */
static void store_counts(struct anthropic_response *response, const struct jv *usage)
{
    struct completion *completion = response->events.sink.completion;
    read_prompt(response, usage);
    int64_t prompt = response->input < 0 ? 0 : response->input;
    prompt += response->cache_written < 0 ? 0 : response->cache_written;
    prompt += response->cache_read < 0 ? 0 : response->cache_read;
    if (response->input >= 0 && prompt > 0)
        completion->prompt_tokens = prompt;
    completion->cached_tokens = response->cache_read;
    completion_read_count(&completion->output_tokens, jv_get(usage, "output_tokens"));
    completion_read_count(&completion->reasoning_tokens,
                          jv_path(usage, "output_tokens_details.thinking_tokens"));
}

/* ---- content ---- */

static void store_stop_reason(struct completion *completion, const struct jv *value)
{
    static const char *const NAMES[][2] = {
        {"end_turn", "stop"},       {"stop_sequence", "stop"},
        {"max_tokens", "length"},   {"model_context_window_exceeded", "length"},
        {"tool_use", "tool_calls"},
    };
    const char *reason = jv_text(value);
    const char *const *found = STR_FIND(reason, NAMES);
    if (found)
        reason = found[1];
    if (reason) /* others as they are: refusal, pause_turn */
        completion_set_reason(completion, reason);
}

static bool is_type(const struct jv *object, const char *type)
{
    const char *name = jv_get_text(object, "type");
    return name && str_equal(name, type);
}

/* A call of a tool of the request.  In a stream, its input is {} here and follows in chunks. */
static enum err start_call(struct completion_sink *sink, const struct jv *block, int64_t index,
                           nanos t)
{
    const struct jv *input = jv_get(block, "input");
    struct text printed = {0};
    struct call_chunk chunk = {.index = index,
                               .id = jv_get_text(block, "id"),
                               .name = jv_get_text(block, "name"),
                               .is_start = true};
    if (jv_count(input) > 0) {
        jv_print(input, &printed);
        chunk.arguments = text_get(&printed);
    }
    enum err err = completion_sink_call(sink, &chunk, t);
    text_release(&printed);
    return err;
}

/* A block of a document (index -1), or the start of one.  Others are tools that the service runs itself, their results,
 * and encrypted thinking. */
static enum err read_block(struct completion_sink *sink, const struct jv *block, int64_t index,
                           nanos t)
{
    if (is_type(block, "text"))
        return completion_sink_content(sink, jv_get_text(block, "text"), t);
    if (is_type(block, "thinking"))
        return completion_sink_reasoning(sink, jv_get_text(block, "thinking"), t);
    if (is_type(block, "tool_use"))
        return start_call(sink, block, index, t);
    return ERR_OK;
}

static bool has_call(const struct tool_calls *calls, int64_t index)
{
    for (size_t i = 0; i < calls->count; i++)
        if (calls->items[i].index == index)
            return true;
    return false;
}

/* The signature of thinking and the citations of a text are no tokens of the model, and the input of a tool that the
 * service runs itself is no call. */
static enum err read_delta(struct completion_sink *sink, const struct jv *delta, int64_t index,
                           nanos t)
{
    if (is_type(delta, "text_delta"))
        return completion_sink_content(sink, jv_get_text(delta, "text"), t);
    if (is_type(delta, "thinking_delta"))
        return completion_sink_reasoning(sink, jv_get_text(delta, "thinking"), t);
    const char *input = jv_get_text(delta, "partial_json");
    if (!is_type(delta, "input_json_delta") || !input || !*input ||
        !has_call(&sink->completion->calls, index))
        return ERR_OK;
    return completion_sink_call(sink, &(struct call_chunk){.index = index, .arguments = input}, t);
}

/* ---- events ---- */

/* A block of a stream without an index is the last one: all get the same. */
static int64_t block_index(const struct jv *event)
{
    int64_t index = 0;
    jv_integer(jv_get(event, "index"), &index);
    return index;
}

static enum err read_event(struct anthropic_response *response, const struct jv *event,
                           const char *type, nanos t)
{
    struct completion_sink *sink = &response->events.sink;
    if (str_equal(type, "message_start")) {
        read_prompt(response, jv_path(event, "message.usage"));
    } else if (str_equal(type, "content_block_start")) {
        return read_block(sink, jv_get(event, "content_block"), block_index(event), t);
    } else if (str_equal(type, "content_block_delta")) {
        return read_delta(sink, jv_get(event, "delta"), block_index(event), t);
    } else if (str_equal(type, "message_delta")) {
        store_stop_reason(sink->completion, jv_path(event, "delta.stop_reason"));
        store_counts(response, jv_get(event, "usage"));
    } else if (str_equal(type, "message_stop")) {
        store_counts(response, NULL);
        response->events.is_done = response->events.has_ended = true;
    }
    return ERR_OK; /* ping, the end of a block, and events that are added later */
}

static enum err read_message(struct anthropic_response *response, const struct jv *message, nanos t)
{
    struct completion_sink *sink = &response->events.sink;
    const struct jv *content = jv_get(message, "content");
    enum err err = ERR_OK;
    if (!jv_is_array(content))
        return err_set(sink->why, ERR_BAD_VALUE, "%s sent a response without content",
                       sink->server);
    for (const struct jv *block = jv_first(content); block && !err; block = jv_next(block))
        err = read_block(sink, block, -1, t);
    store_stop_reason(sink->completion, jv_get(message, "stop_reason"));
    store_counts(response, jv_get(message, "usage"));
    return err;
}

static enum err read_root(struct event_response *events, const struct jv *root, const char *event,
                          nanos t)
{
    struct anthropic_response *response = (struct anthropic_response *)events;
    const char *type = jv_get_text(root, "type");
    bool is_error = type && str_equal(type, "error");
    enum err err = event_error(&events->sink, root, is_error ? type : event);
    if (err)
        return err;
    if (events->framing == EVENT_DOCUMENT)
        return read_message(response, root, t);
    return read_event(response, root, type ? type : event, t);
}

void anthropic_response_init(void *state, const struct completion_sink *sink)
{
    struct anthropic_response *response = state;
    response->input = response->cache_written = response->cache_read = -1;
    event_response_init(&response->events, read_root, sink);
}
