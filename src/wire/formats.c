/* Formats of responses other than OpenAI's, and the table of all.  Ollama's is NDJSON, with durations in nanoseconds in
 * the last line. */
#include <string.h>

#include "core/secret.h"
#include "port/json_read.h"
#include "wire/completion.h"
#include "wire/responses.h"
#include "wire/sse.h"

/* ---- Ollama's format ---- */

static const double NANOSECOND = 1e-9;

static enum err ollama_error(struct completion_sink *sink, const struct jv *root)
{
    if (jv_is_null(jv_get(root, "error")))
        return ERR_OK;
    const char *text = message_error(root);
    char shown[160];
    secret_one_line(shown, sizeof shown, text, strlen(text));
    sink->completion->retryable = true; /* the model runner crashed or ran out of GPU memory */
    return err_set(sink->why, ERR_IO, "%s failed: %s", sink->server, shown);
}

/* From the last line.  The server omits both a count of 0 and an unknown one: both stay unknown. */
static void read_counts(const struct jv *root, struct completion *completion)
{
    completion_read_count(&completion->prompt_tokens, jv_get(root, "prompt_eval_count"));
    completion_read_count(&completion->output_tokens, jv_get(root, "eval_count"));
    completion_read_seconds(&completion->server_load_s, jv_get(root, "load_duration"), NANOSECOND);
    completion_read_seconds(&completion->server_prefill_s, jv_get(root, "prompt_eval_duration"),
                            NANOSECOND);
    completion_read_seconds(&completion->server_decode_s, jv_get(root, "eval_duration"),
                            NANOSECOND);
    const char *reason = jv_get_text(root, "done_reason");
    if (reason)
        completion_set_reason(completion, reason);
}

static enum err read_object(struct ollama_response *response, const struct jv *root, nanos t)
{
    struct completion_sink *sink = &response->sink;
    enum err err = ollama_error(sink, root);
    const struct jv *message = jv_get(root, "message"); /* of /api/chat */
    if (!err)
        err = completion_sink_reasoning(sink, jv_get_text(root, "thinking"), t);
    if (!err)
        err = completion_sink_reasoning(sink, jv_get_text(message, "thinking"), t);
    if (!err)
        err = completion_sink_content(sink, jv_get_text(root, "response"), t);
    if (!err)
        err = completion_sink_content(sink, jv_get_text(message, "content"), t);
    if (!err)
        err = completion_sink_calls(sink, jv_get(message, "tool_calls"), t);
    if (!err && jv_bool(jv_get(root, "done"), false)) {
        response->is_done = true;
        read_counts(root, sink->completion);
    }
    return err;
}

static enum err handle_line(void *context, const char *line, size_t length, nanos t)
{
    struct ollama_response *response = context;
    if (length == 0 || response->is_done)
        return ERR_OK;
    struct jv *root;
    if (jv_parse(line, length, &root, NULL))
        return completion_sink_malformed(&response->sink, line, length);
    enum err err = jv_is_object(root) ? read_object(response, root, t)
                                      : completion_sink_malformed(&response->sink, line, length);
    jv_free(root);
    return err;
}

static void ollama_response_init(void *state, const struct completion_sink *sink)
{
    struct ollama_response *response = state;
    *response = (struct ollama_response){.sink = *sink};
}

static enum err ollama_response_feed(void *context, const char *bytes, size_t length, nanos t)
{
    struct ollama_response *response = context;
    response->last = t;
    return line_reader_feed(&response->lines, bytes, length, t, handle_line, response,
                            response->sink.why);
}

static enum err ollama_find_end(struct ollama_response *response, enum err transport)
{
    if (transport)
        return response->is_done ? ERR_OK : transport;
    enum err err = ERR_OK;
    if (response->lines.held.length > 0) { /* the last line may lack its terminator */
        err = ollama_response_feed(response, "\n", 1, response->last);
        if (err == ERR_BAD_VALUE)
            return completion_sink_truncated(&response->sink);
    }
    if (err)
        return err;
    return response->is_done ? ERR_OK : completion_sink_truncated(&response->sink);
}

static enum err ollama_response_end(void *state, enum err transport)
{
    struct ollama_response *response = state;
    enum err err = ollama_find_end(response, transport);
    return err ? err : completion_sink_finish(&response->sink);
}

static bool ollama_response_is_done(const void *state)
{
    const struct ollama_response *response = state;
    return response->is_done;
}

static void ollama_response_release(void *state)
{
    struct ollama_response *response = state;
    line_reader_release(&response->lines);
}

/* ---- TGI's format: {"token": {...}, "generated_text": null} per token, the last one with the text; or the text
 * alone.  "details" only if the request asks for them ---- */

static void read_details(const struct jv *details, struct completion *completion)
{
    const char *reason = jv_get_text(details, "finish_reason");
    int64_t prefill = 0;
    JV_EACH (p, jv_first(jv_get(details, "prefill")))
        prefill++;
    if (prefill) /* empty unless the request has decoder_input_details */
        completion->prompt_tokens = prefill;
    completion_read_count(&completion->prompt_tokens, jv_get(details, "input_length"));
    completion_read_count(&completion->output_tokens, jv_get(details, "generated_tokens"));
    if (reason)
        chars_copy(completion->finish_reason, str_equal(reason, "length") ? "length" : "stop");
}

static enum err read_tgi(struct event_response *response, const struct jv *root, const char *event,
                         nanos t)
{
    struct completion_sink *sink = &response->sink;
    const struct jv *token = jv_get(root, "token");
    const char *text = jv_get_text(root, "generated_text");
    enum err err = event_error(sink, root, event);
    if (err)
        return err;
    if (jv_is_object(token)) {
        int64_t *count = &sink->completion->output_tokens;
        *count = *count < 0 ? 1 : *count + 1;
        if (!jv_bool(jv_get(token, "special"), false))
            err = completion_sink_content(sink, jv_get_text(token, "text"), t);
    } else if (text) {
        err = completion_sink_content(sink, text, t);
    } else {
        return err_set(sink->why, ERR_BAD_VALUE, "%s sent a response without generated_text",
                       sink->server);
    }
    read_details(jv_get(root, "details"), sink->completion);
    response->has_ended = response->has_ended || text;
    return err;
}

static void tgi_response_init(void *response, const struct completion_sink *sink)
{
    event_response_init(response, read_tgi, sink);
}

/* ---- counts ---- */

enum { COUNTS_DOCUMENT_LIMIT = 16 * 1024 * 1024 };

static void counts_response_init(void *state, const struct completion_sink *sink)
{
    struct counts_response *response = state;
    *response = (struct counts_response){.sink = *sink};
}

static enum err counts_response_feed(void *context, const char *bytes, size_t length, nanos t)
{
    struct counts_response *response = context;
    (void)t;
    if (response->document.length + length > COUNTS_DOCUMENT_LIMIT)
        return err_set(response->sink.why, ERR_BAD_VALUE,
                       "the response is too long: its tokens were not counted");
    text_add_bytes(&response->document, bytes, length);
    return ERR_OK;
}

static void read_count(int64_t *count, struct slice digits)
{
    char copy[24];
    int64_t value;
    if (chars_format(copy, "%.*s", (int)digits.length, digits.start) &&
        parse_i64(copy, &value) == ERR_OK && value >= 0)
        *count = value;
}

static enum err counts_response_end(void *state, enum err transport)
{
    struct counts_response *response = state;
    struct completion *completion = response->sink.completion;
    const char *bytes = text_get(&response->document);
    size_t length = response->document.length;
    struct slice usage = message_member(bytes, length, "usage");
    if (transport)
        return transport;
    /* Of several, the last one that is present. */
    read_count(&completion->prompt_tokens,
               message_member(usage.start, usage.length, "total_tokens"));
    read_count(&completion->prompt_tokens,
               message_member(usage.start, usage.length, "prompt_tokens"));
    read_count(&completion->prompt_tokens, message_member(bytes, length, "prompt_eval_count"));
    chars_copy(completion->finish_reason, "stop");
    return ERR_OK;
}

/* A document has no end marker. */
static bool counts_response_is_done(const void *state)
{
    (void)state;
    return false;
}

static void counts_response_release(void *state)
{
    struct counts_response *response = state;
    text_release(&response->document);
}

/* ---- all formats ---- */

const struct response_format RESPONSE_FORMATS[RESPONSE_KINDS] = {
    [RESPONSE_OPENAI] = {"OpenAI", openai_response_init, event_response_feed, event_response_end,
                         event_response_is_done, event_response_release},
    [RESPONSE_ANTHROPIC] = {"Anthropic", anthropic_response_init, event_response_feed,
                            event_response_end, event_response_is_done, event_response_release},
    [RESPONSE_TGI] = {"TGI", tgi_response_init, event_response_feed, event_response_end,
                      event_response_is_done, event_response_release},
    [RESPONSE_OLLAMA] = {"Ollama", ollama_response_init, ollama_response_feed, ollama_response_end,
                         ollama_response_is_done, ollama_response_release},
    [RESPONSE_COUNTS] = {"counts", counts_response_init, counts_response_feed, counts_response_end,
                         counts_response_is_done, counts_response_release},
};
