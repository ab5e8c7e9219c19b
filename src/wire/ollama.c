/* Reads Ollama's NDJSON stream into a completion.  Durations come in nanoseconds with the last line. */
#include "wire/responses.h"

#include <string.h>

#include "core/secret.h"
#include "port/json_read.h"
#include "wire/message.h"
#include "wire/sse.h"

static const double NANOSECOND = 1e-9;

static enum err read_error(struct completion_sink *sink, const struct jv *root)
{
    if (jv_is_null(jv_get(root, "error")))
        return ERR_OK;
    const char *text = message_error(root);
    char shown[160];
    secret_one_line(shown, sizeof shown, text, strlen(text));
    sink->completion->retryable = true; /* the model runner died, or GPU memory ran out */
    return err_set(sink->why, ERR_IO, "%s failed: %s", sink->server, shown);
}

/* From the last line.  The server omits a count of 0 as it omits an unknown one: both stay unknown. */
static void read_counts(const struct jv *root, struct completion *completion)
{
    completion_read_count(&completion->prompt_tokens, jv_get(root, "prompt_eval_count"));
    completion_read_count(&completion->output_tokens, jv_get(root, "eval_count"));
    completion_read_seconds(&completion->server_load_s, jv_get(root, "load_duration"), NANOSECOND);
    completion_read_seconds(&completion->server_prefill_s, jv_get(root, "prompt_eval_duration"),
                            NANOSECOND);
    completion_read_seconds(&completion->server_decode_s, jv_get(root, "eval_duration"),
                            NANOSECOND);
    const char *reason = jv_text(jv_get(root, "done_reason"));
    if (reason)
        secret_one_line(completion->finish_reason, sizeof completion->finish_reason, reason,
                        strlen(reason));
}

static enum err read_object(struct ollama_response *response, const struct jv *root, nanos t)
{
    struct completion_sink *sink = &response->sink;
    enum err err = read_error(sink, root);
    const struct jv *message = jv_get(root, "message"); /* of /api/chat */
    if (!err)
        err = completion_sink_reasoning(sink, jv_text(jv_get(root, "thinking")), t);
    if (!err)
        err = completion_sink_reasoning(sink, jv_text(jv_get(message, "thinking")), t);
    if (!err)
        err = completion_sink_content(sink, jv_text(jv_get(root, "response")), t);
    if (!err)
        err = completion_sink_content(sink, jv_text(jv_get(message, "content")), t);
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

void ollama_response_init(struct ollama_response *response, const struct completion_sink *sink)
{
    *response = (struct ollama_response){.sink = *sink};
}

enum err ollama_response_feed(void *context, const char *bytes, size_t length, nanos t)
{
    struct ollama_response *response = context;
    response->last = t;
    return line_reader_feed(&response->lines, bytes, length, t, handle_line, response,
                            response->sink.why);
}

static enum err find_end(struct ollama_response *response, enum err transport)
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

enum err ollama_response_end(struct ollama_response *response, enum err transport)
{
    enum err err = find_end(response, transport);
    return err ? err : completion_sink_finish(&response->sink);
}

void ollama_response_release(struct ollama_response *response)
{
    line_reader_release(&response->lines);
}
