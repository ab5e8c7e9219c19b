/* Parses event streams of model servers, or the document that replaces one, into a completion: the framing is detected
 * by the first byte.  Here are also the readers of OpenAI's events and of llama.cpp's own; usage and timings are read
 * in the dialects of vLLM, SGLang, llama.cpp, LM Studio, DeepSeek and Groq.  Other formats: formats.c. */
#include <math.h>
#include <string.h>

#include "core/secret.h"
#include "port/json_read.h"
#include "wire/completion.h"
#include "wire/responses.h"
#include "wire/sse.h"

enum { DOCUMENT_LIMIT = COMPLETION_LIMIT + LINE_LIMIT };

/* ---- usage ---- */

/* Some services exclude reasoning from the output count; the total reveals it. */
static void include_reasoning(const struct jv *usage, struct completion *completion)
{
    int64_t total = -1;
    completion_read_count(&total, jv_get(usage, "total_tokens"));
    if (completion->reasoning_tokens > 0 && completion->prompt_tokens >= 0 &&
        completion->output_tokens >= 0 &&
        total ==
            completion->prompt_tokens + completion->output_tokens + completion->reasoning_tokens)
        completion->output_tokens += completion->reasoning_tokens;
}

static void read_usage(const struct jv *usage, struct completion *completion)
{
    if (!jv_is_object(usage))
        return;
    completion_read_count(&completion->prompt_tokens, jv_get(usage, "prompt_tokens"));
    completion_read_count(&completion->output_tokens, jv_get(usage, "completion_tokens"));
    completion_read_count(&completion->prompt_tokens,
                          jv_get(usage, "input_tokens")); /* /responses */
    completion_read_count(&completion->output_tokens, jv_get(usage, "output_tokens"));
    completion_read_count(&completion->reasoning_tokens,
                          jv_path(usage, "output_tokens_details.reasoning_tokens"));
    completion_read_count(&completion->cached_tokens,
                          jv_path(usage, "input_tokens_details.cached_tokens"));
    completion_read_count(&completion->reasoning_tokens,
                          jv_get(usage, "reasoning_tokens")); /* SGLang */
    completion_read_count(&completion->reasoning_tokens,
                          jv_path(usage, "completion_tokens_details.reasoning_tokens"));
    completion_read_count(&completion->cached_tokens,
                          jv_get(usage, "prompt_cache_hit_tokens")); /* DeepSeek */
    completion_read_count(&completion->cached_tokens,
                          jv_path(usage, "prompt_tokens_details.cached_tokens"));
    completion_read_seconds(&completion->server_prefill_s, jv_get(usage, "prompt_time"),
                            1); /* Groq */
    completion_read_seconds(&completion->server_decode_s, jv_get(usage, "completion_time"), 1);
    include_reasoning(usage, completion);
}

/* llama.cpp.  Its prompt_n excludes cached tokens: the prompt length is prompt_n + cache_n. */
static void read_timings(const struct jv *timings, struct completion *completion)
{
    if (!jv_is_object(timings))
        return;
    int64_t computed = -1, cached = -1;
    completion_read_count(&computed, jv_get(timings, "prompt_n"));
    completion_read_count(&cached, jv_get(timings, "cache_n"));
    if (computed >= 0 && cached >= 0)
        completion->prompt_tokens = computed + cached;
    completion_read_count(&completion->cached_tokens, jv_get(timings, "cache_n"));
    completion_read_count(&completion->output_tokens, jv_get(timings, "predicted_n"));
    completion_read_seconds(&completion->server_prefill_s, jv_get(timings, "prompt_ms"), 1e-3);
    completion_read_seconds(&completion->server_decode_s, jv_get(timings, "predicted_ms"), 1e-3);
}

/* Token counts and durations, in the dialects of all servers. */
static void read_statistics(const struct jv *root, struct completion *completion)
{
    read_timings(jv_get(root, "timings"), completion); /* first: usage overrides it */
    read_usage(jv_path(root, "x_groq.usage"), completion);
    read_usage(jv_get(root, "usage"), completion);
    /* LM Studio */
    completion_read_seconds(&completion->server_decode_s, jv_path(root, "stats.generation_time"),
                            1);
}

/* ---- the content of a document or an event ---- */

/* Whether a retry may succeed, by an HTTP-like code or a type. */
static bool is_transient(const struct jv *error)
{
    static const char *const TYPES[] = {"overload", "rate_limit", "server_error", "api_error",
                                        "internal", "timeout",    "unavailable"};
    double code = jv_get_number(error, "code");
    if (is_known(code))
        return code >= 500 || code == 429 || code == 408;
    for (size_t i = 0; i < COUNT_OF(TYPES); i++) {
        const char *type = jv_get_text(error, "type");
        const char *name = jv_get_text(error, "code");
        if ((type && str_contains_nocase(type, TYPES[i])) ||
            (name && str_contains_nocase(name, TYPES[i])))
            return true;
    }
    return false;
}

enum err event_error(struct completion_sink *sink, const struct jv *root, const char *event)
{
    const struct jv *error = jv_get(root, "error");
    const char *object = jv_get_text(root, "object");
    if (jv_is_null(error) && !str_equal(event, "error") && !(object && str_equal(object, "error")))
        return ERR_OK;
    const char *text = message_error(root);
    char shown[160];
    if (!text)
        text = MESSAGE_UNSPECIFIED_ERROR;
    secret_one_line(shown, sizeof shown, text, strlen(text));
    sink->completion->retryable = is_transient(jv_is_object(error) ? error : root);
    return err_set(sink->why, ERR_IO, "%s failed: %s", sink->server, shown);
}

/* Content in parts, [{"type":"text","text":...},{"type":"thinking","thinking":[...]}]. */
static enum err read_parts(struct completion_sink *sink, const struct jv *parts, nanos t)
{
    enum err err = ERR_OK;
    for (const struct jv *part = jv_first(parts); part && !err; part = jv_next(part)) {
        const struct jv *thinking = jv_get(part, "thinking");
        err = completion_sink_content(sink, jv_get_text(part, "text"), t);
        for (const struct jv *p = jv_first(thinking); p && !err; p = jv_next(p))
            err = completion_sink_reasoning(sink, jv_get_text(p, "text"), t);
    }
    return err;
}

/* A delta of a stream, or the message of a document. */
static enum err read_message(struct completion_sink *sink, const struct jv *message, nanos t)
{
    /* Some servers send the same reasoning text under both names. */
    const char *thinking = jv_get_text(message, "reasoning_content");
    if (!thinking || !*thinking)
        thinking = jv_get_text(message, "reasoning");
    enum err err = completion_sink_reasoning(sink, thinking, t);
    const struct jv *content = jv_get(message, "content");
    if (!err && jv_is_array(content))
        err = read_parts(sink, content, t);
    else if (!err)
        err = completion_sink_content(sink, jv_text(content), t);
    if (!err)
        err = completion_sink_content(sink, jv_get_text(message, "refusal"), t);
    if (!err)
        err = completion_sink_calls(sink, jv_get(message, "tool_calls"), t);
    return err;
}

/* Number of bytes of a token.  A partial character is represented in one of three ways. */
static int64_t token_bytes(const char *token)
{
    static const char *const MARKS[] = {"\\x", "<0x", "\xEF\xBF\xBD"};
    const char *text = str_starts(token, "bytes:") ? token + strlen("bytes:") : token;
    for (size_t i = 0; i < COUNT_OF(MARKS); i++) {
        int64_t count = 0;
        if ((i == 0 && text == token) || !str_starts(text, MARKS[i]))
            continue;
        for (const char *at = text; (at = strstr(at, MARKS[i])); at += strlen(MARKS[i]))
            count++;
        return count;
    }
    return (int64_t)strlen(token);
}

/* The most likely token of {"token": log-probability, ...}; NULL without any. */
static const char *likeliest(const struct jv *object)
{
    const char *key = NULL;
    double max = -INFINITY;
    JV_EACH (item, jv_first_member(object))
        if (jv_number(item) > max) {
            max = jv_number(item);
            key = jv_key(item);
        }
    return key;
}

/* Whether each token has the distribution of its successor, as in llama-cpp-python: the most likely token is then the
 * next one far more often than the current one. */
static bool is_shifted(const struct jv *logprobs)
{
    enum { MATCHES_MIN = 4, TIMES = 3 };
    int own = 0, next = 0;
    const struct jv *token = jv_first(jv_get(logprobs, "tokens"));
    const struct jv *top = jv_first(jv_get(logprobs, "top_logprobs"));
    for (; token && top; token = jv_next(token), top = jv_next(top)) {
        const char *best = likeliest(top), *this = jv_text(token), *after = jv_text(jv_next(token));
        own += best && this && str_equal(best, this);
        next += best && after && str_equal(best, after);
    }
    return next >= MATCHES_MIN && next > TIMES * own;
}

/* {"tokens": [...], "token_logprobs": [null, -1.2, ...]} of the echoed prompt and the generated text.  The second half
 * of the prompt is scored, as for a window of client_driver.split; nothing is scored without these figures. */
static void read_score(struct completion *completion, const struct jv *logprobs)
{
    const struct jv *token = jv_first(jv_get(logprobs, "tokens"));
    const struct jv *value = jv_first(jv_get(logprobs, "token_logprobs"));
    int64_t count = completion->prompt_tokens, bytes = 0, first = count / 2 + 1, i = 0;
    double sum = 0;
    for (; i < count && token && value; i++, token = jv_next(token), value = jv_next(value)) {
        if (i < first)
            continue;
        sum -= jv_number(value);
        bytes += jv_text(token) ? token_bytes(jv_text(token)) : 0;
    }
    if (i < count || count - first < 1 || !(sum >= 0))
        return;
    completion->scored_tokens = count - first;
    completion->scored_bytes = bytes;
    completion->negative_log_likelihood = sum;
}

static enum err read_choice(struct completion_sink *sink, const struct jv *choice, nanos t)
{
    int64_t index;
    bool is_further = jv_integer(jv_get(choice, "index"), &index) && index != 0;
    if (is_further && sink->skips_choices)
        return ERR_OK;
    if (is_further)
        return err_set(sink->why, ERR_BAD_VALUE,
                       "%s sent several answers to one request: do not set n or best_of; --repeat "
                       "asks again",
                       sink->server);
    enum err err = read_message(sink, jv_get(choice, "delta"), t);
    if (!err)
        err = read_message(sink, jv_get(choice, "message"), t);
    if (!err)
        err = completion_sink_content(sink, jv_get_text(choice, "text"), t);
    if (!err && sink->wants_score && is_shifted(jv_get(choice, "logprobs")))
        err = err_set(
            sink->why, ERR_UNSUPPORTED,
            "%s returned log-probabilities that are one token off, as llama-cpp-python's server "
            "does: perplexity cannot be computed from them. Use another server, such as vLLM, or "
            "the model's file: --client llama",
            sink->server);
    if (!err && sink->wants_score)
        read_score(sink->completion, jv_get(choice, "logprobs"));
    const char *reason = jv_get_text(choice, "finish_reason");
    if (reason && *reason)
        completion_set_reason(sink->completion, reason);
    return err;
}

/* ---- /responses: events with a "type", the last one with the complete response ---- */

static void end_reply(struct event_response *response, const struct jv *reply)
{
    struct completion *completion = response->sink.completion;
    const char *reason = jv_text(jv_path(reply, "incomplete_details.reason"));
    read_usage(jv_get(reply, "usage"), completion);
    chars_copy(completion->finish_reason,
               reason && str_equal(reason, "max_output_tokens") ? "length" : "stop");
    response->is_done = true;
}

static enum err read_reply_event(struct event_response *response, const struct jv *root,
                                 const char *type, nanos t)
{
    const char *delta = jv_get_text(root, "delta");
    if (str_equal(type, "response.completed") || str_equal(type, "response.incomplete"))
        end_reply(response, jv_get(root, "response"));
    else if (str_equal(type, "response.failed"))
        return event_error(&response->sink, jv_get(root, "response"), "error");
    else if (str_starts(type, "response.reasoning") && str_contains_nocase(type, ".delta"))
        return completion_sink_reasoning(&response->sink, delta, t);
    else if (str_contains_nocase(type, ".delta"))
        return completion_sink_content(&response->sink, delta, t);
    return ERR_OK;
}

/* The response as one document. */
static enum err read_reply(struct event_response *response, const struct jv *root, nanos t)
{
    enum err err = ERR_OK;
    const struct jv *item = jv_first(jv_get(root, "output"));
    for (; item && !err; item = jv_next(item))
        err = read_parts(&response->sink, jv_get(item, "content"), t);
    end_reply(response, root);
    return err;
}

/* ---- llama.cpp's own format, of /completion, /infill and its /completions: {"content": ..., "stop": false}, the last
 * one with the counts ---- */

/* tokens_evaluated is the whole prompt, with what was cached; several prompts of one request are added up. */
static void read_native_end(struct event_response *response, const struct jv *root)
{
    struct completion *total = response->sink.completion, part;
    const char *type = jv_get_text(root, "stop_type");
    completion_init(&part);
    read_timings(jv_get(root, "timings"), &part);
    completion_read_count(&part.prompt_tokens, jv_get(root, "tokens_evaluated"));
    completion_read_count(&part.output_tokens, jv_get(root, "tokens_predicted"));
    if (response->has_ended) {
        completion_add_count(&total->prompt_tokens, part.prompt_tokens, false);
        completion_add_count(&total->output_tokens, part.output_tokens, false);
        completion_add_count(&total->cached_tokens, part.cached_tokens, false);
    } else {
        total->prompt_tokens = part.prompt_tokens;
        total->output_tokens = part.output_tokens;
        total->cached_tokens = part.cached_tokens;
        total->server_prefill_s = part.server_prefill_s;
        total->server_decode_s = part.server_decode_s;
    }
    bool is_limit = type ? str_equal(type, "limit") : jv_bool(jv_get(root, "stopped_limit"), false);
    chars_copy(total->finish_reason, is_limit ? "length" : "stop");
    response->has_ended = true;
    completion_release(&part);
}

static bool is_native(const struct jv *root)
{
    return jv_get_text(root, "content") && jv_is_bool(jv_get(root, "stop"));
}

static enum err read_native(struct event_response *response, const struct jv *root, nanos t)
{
    int64_t index;
    bool is_further = jv_integer(jv_get(root, "index"), &index) && index != 0;
    enum err err = is_further
                       ? ERR_OK
                       : completion_sink_content(&response->sink, jv_get_text(root, "content"), t);
    if (!err && jv_bool(jv_get(root, "stop"), false))
        read_native_end(response, root);
    return err;
}

static enum err read_root(struct event_response *response, const struct jv *root, const char *event,
                          nanos t)
{
    struct completion_sink *sink = &response->sink;
    if (is_native(root))
        return read_native(response, root, t);
    read_statistics(root, sink->completion);
    enum err err = event_error(sink, root, event);
    const char *type = jv_get_text(root, "type");
    if (!err && type && str_starts(type, "response."))
        return read_reply_event(response, root, type, t);
    if (!err && jv_is_array(jv_get(root, "output")))
        return read_reply(response, root, t);
    const struct jv *choice = jv_first(jv_get(root, "choices"));
    if (!err && !choice && response->framing == EVENT_DOCUMENT)
        return err_set(sink->why, ERR_BAD_VALUE, "%s sent a response without choices",
                       sink->server);
    for (; choice && !err; choice = jv_next(choice))
        err = read_choice(sink, choice, t);
    return err;
}

/* ---- stream and document ---- */

static enum err handle_event(void *context, const struct sse_event *event)
{
    struct event_response *response = context;
    if (response->is_done || event->length == 0)
        return ERR_OK;
    if (str_equal(event->data, "[DONE]")) {
        response->is_done = true;
        return ERR_OK;
    }
    struct jv *root;
    if (jv_parse(event->data, event->length, &root, NULL))
        return completion_sink_malformed(&response->sink, event->data, event->length);
    enum err err = jv_is_object(root)
                       ? response->read(response, root, event->name, event->t)
                       : completion_sink_malformed(&response->sink, event->data, event->length);
    jv_free(root);
    return err;
}

static enum err read_document(struct event_response *response)
{
    struct jv *root;
    const struct text *document = &response->document;
    if (jv_parse(text_get(document), document->length, &root, NULL))
        return completion_sink_malformed(&response->sink, text_get(document), document->length);
    enum err err = ERR_OK;
    if (!jv_is_array(root))
        err = response->read(response, root, "", response->last);
    else if (!jv_first(root))
        err = completion_sink_malformed(&response->sink, text_get(document), document->length);
    for (const struct jv *item = jv_is_array(root) ? jv_first(root) : NULL; item && !err;
         item = jv_next(item))
        err = response->read(response, item, "", response->last);
    response->is_done = !err;
    jv_free(root);
    return err;
}

/* An event stream never begins with a brace or bracket and a document always does; servers' Content-Type is
 * unreliable. */
static enum event_framing find_framing(const char *bytes, size_t length)
{
    size_t i = 0;
    while (i < length && bytes[i] && strchr(" \t\r\n", bytes[i]))
        i++;
    if (i == length)
        return EVENT_UNKNOWN;
    if (bytes[i] == '{' || bytes[i] == '[')
        return EVENT_DOCUMENT;
    return bytes[i] == '<' ? EVENT_HTML : EVENT_STREAM;
}

void event_response_init(struct event_response *response, event_reader *read,
                         const struct completion_sink *sink)
{
    *response = (struct event_response){.sink = *sink, .read = read};
    sse_init(&response->sse, handle_event, response, sink->why);
}

void openai_response_init(void *response, const struct completion_sink *sink)
{
    event_response_init(response, read_root, sink);
}

enum err event_response_feed(void *context, const char *bytes, size_t length, nanos t)
{
    struct event_response *response = context;
    response->last = t;
    if (response->framing == EVENT_UNKNOWN)
        response->framing = find_framing(bytes, length);
    if (response->framing == EVENT_HTML)
        return err_set(response->sink.why, ERR_BAD_VALUE,
                       "%s sent an HTML page, not a completion: check the address",
                       response->sink.server);
    if (response->framing == EVENT_STREAM)
        return sse_feed(&response->sse, bytes, length, t);
    if (length > DOCUMENT_LIMIT - response->document.length)
        return err_set(response->sink.why, ERR_BAD_VALUE, "%s: the response is longer than %d MiB",
                       response->sink.server, DOCUMENT_LIMIT >> 20);
    if (response->framing == EVENT_DOCUMENT)
        text_add_bytes(&response->document, bytes, length);
    return ERR_OK;
}

/* End of a stream without a transport error.  An incomplete event at the end means a truncated stream, not a malformed
 * one. */
static enum err end_stream(struct event_response *response)
{
    bool is_partial = response->sse.lines.held.length > 0;
    enum err err = sse_end(&response->sse, response->last);
    return err == ERR_BAD_VALUE && is_partial ? completion_sink_truncated(&response->sink) : err;
}

/* [DONE] without a finish_reason: llama-cpp-python ends a stream this way to serve the next request. */
static enum err interrupted(struct completion_sink *sink)
{
    sink->completion->retryable = true;
    return err_set(sink->why, ERR_LOST,
                   "%s interrupted the stream (no finish_reason): does it serve one request at a "
                   "time?",
                   sink->server);
}

static bool is_complete(const struct event_response *response)
{
    return response->has_ended || response->sink.completion->finish_reason[0];
}

bool event_response_is_done(const void *state)
{
    const struct event_response *response = state;
    return response->has_ended || (response->is_done && is_complete(response));
}

static enum err find_end(struct event_response *response, enum err transport)
{
    bool is_whole = response->framing == EVENT_DOCUMENT;
    if (transport &&
        (event_response_is_done(response) || (transport == ERR_LOST && is_complete(response))))
        return ERR_OK;
    if (transport)
        return response->is_done ? interrupted(&response->sink) : transport;
    enum err err = ERR_OK;
    if (is_whole)
        err = read_document(response);
    else if (response->framing == EVENT_STREAM)
        err = end_stream(response);
    if (err || is_complete(response) || (response->is_done && is_whole))
        return err;
    return response->is_done ? interrupted(&response->sink)
                             : completion_sink_truncated(&response->sink);
}

enum err event_response_end(void *state, enum err transport)
{
    struct event_response *response = state;
    enum err err = find_end(response, transport);
    return err ? err : completion_sink_finish(&response->sink);
}

void event_response_release(void *state)
{
    struct event_response *response = state;
    sse_release(&response->sse);
    text_release(&response->document);
}
