/* Observes requests and responses: kind, model and labels of a request, the completion in a response, and the token
 * counts that --inject-usage requests and removes again. */
#include "proxy/observer.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/secret.h"
#include "core/text.h"
#include "port/http_relay.h"
#include "wire/completion.h"

/* ---- endpoints ---- */

struct proxy_endpoint {
    const char *end;         /* suffix of the path; the first row that matches counts */
    enum response_kind kind; /* format of the response */
    const char *question;    /* member of the request with the question: text, or messages */
    bool streams;            /* unless the request says "stream": false */
    bool has_usage_option;   /* a stream has token counts only if the request asks for them */
    bool has_count_headers;  /* the response's headers have its token counts */
    bool is_root;            /* `end` is the whole path, and the request must have its question */
};

static const struct proxy_endpoint ENDPOINTS[] = {
    {.end = "/chat/completions",
     .kind = RESPONSE_OPENAI,
     .question = "messages",
     .has_usage_option = true},
    {.end = "/completions",
     .kind = RESPONSE_OPENAI,
     .question = "prompt",
     .has_usage_option = true},
    {.end = "/responses", .kind = RESPONSE_OPENAI, .question = "input"},
    /* Anthropic.  Other APIs store messages at paths that end alike: /v1/threads/ID/messages. */
    {.end = "/v1/messages", .kind = RESPONSE_ANTHROPIC, .question = "messages"},
    {.end = "/messages", .kind = RESPONSE_ANTHROPIC, .question = "messages", .is_root = true},
    /* llama.cpp */
    {.end = "/completion", .kind = RESPONSE_OPENAI, .question = "prompt"},
    {.end = "/infill", .kind = RESPONSE_OPENAI, .question = "input_prefix"},
    {.end = "/embedding", .kind = RESPONSE_COUNTS, .question = "content"},
    {.end = "/rerank", .kind = RESPONSE_COUNTS, .question = "query"},
    {.end = "/reranking", .kind = RESPONSE_COUNTS, .question = "query"},
    /* Ollama */
    {.end = "/api/chat", .kind = RESPONSE_OLLAMA, .question = "messages", .streams = true},
    {.end = "/api/generate", .kind = RESPONSE_OLLAMA, .question = "prompt", .streams = true},
    {.end = "/api/embeddings", .kind = RESPONSE_COUNTS, .question = "prompt"},
    {.end = "/api/embed", .kind = RESPONSE_COUNTS, .question = "input"},
    {.end = "/embeddings", .kind = RESPONSE_COUNTS, .question = "input"},
    /* TGI */
    {.end = "/generate", .kind = RESPONSE_TGI, .question = "inputs", .has_count_headers = true},
    {.end = "/generate_stream", .kind = RESPONSE_TGI, .question = "inputs", .streams = true},
    {.end = "/",
     .kind = RESPONSE_TGI,
     .question = "inputs",
     .has_count_headers = true,
     .is_root = true},
};

static bool matches(const struct proxy_endpoint *endpoint, const char *path, const char *body,
                    size_t length)
{
    if (endpoint->is_root)
        return str_equal(path, endpoint->end) &&
               message_member(body, length, endpoint->question).length;
    return str_ends(path, endpoint->end);
}

const struct proxy_endpoint *observe_endpoint(const char *method, const char *path,
                                              const char *body, size_t length)
{
    for (size_t i = 0; str_equal(method, "POST") && i < COUNT_OF(ENDPOINTS); i++)
        if (matches(&ENDPOINTS[i], path, body, length))
            return &ENDPOINTS[i];
    return NULL;
}

/* Tokens are counted, models loaded or configured, files stored: the devices do no inference, or not for this
 * request. */
static const char *const NOT_INFERENCE[] = {
    "*/tokenize",
    "*/detokenize",
    "*/chat_tokenize",
    "*/count_tokens",
    "*/input_tokens",
    "*/apply-template",
    "*/render",
    "*/models",
    "*/models/*",
    "*/lora-adapters",
    "*/load_lora_adapter",
    "*/unload_lora_adapter",
    "*/slots/*",
    "*/props",
    "*/api/pull",
    "*/api/push",
    "*/api/create",
    "*/api/copy",
    "*/api/delete",
    "*/api/show",
    "*/api/blobs/*",
    "*/files",
    "*/files/*",
    "*/uploads",
    "*/uploads/*",
    "*/batches",
    "*/batches/*",
    "*/vector_stores",
    "*/vector_stores/*",
    "*/fine_tuning/*",
    "*/cancel",
    "*/sleep",
    "*/wake_up",
    "*/reset_*_cache",
    "*/flush_cache",
    "*/start_profile",
    "*/stop_profile",
};

bool observe_is_other(const char *method, const char *path, const struct proxy_options *options)
{
    if (!str_equal(method, "POST"))
        return true;
    for (size_t i = 0; i < COUNT_OF(NOT_INFERENCE); i++)
        if (fnmatch(NOT_INFERENCE[i], path, 0) == 0)
            return true;
    for (size_t i = 0; i < options->not_inference_count; i++)
        if (fnmatch(options->not_inference[i], path, 0) == 0)
            return true;
    return false;
}

bool endpoint_has_usage_option(const struct proxy_endpoint *endpoint)
{
    return endpoint->has_usage_option;
}

bool proxy_request_generates(const struct proxy_request *request)
{
    return request->endpoint->kind != RESPONSE_COUNTS;
}

void proxy_request_question(const struct proxy_request *request, struct text *out)
{
    message_question(text_get(&request->body), request->body.length, request->endpoint->question,
                     out);
}

/* ---- requests ---- */

void observe_label(char *to, size_t size, const char *value)
{
    if (value)
        secret_one_line(to, size, value, strlen(value));
}

void observe_request(struct proxy_request *request, const char *path, const char *body,
                     size_t length)
{
    observe_label(request->path, sizeof request->path, path);
    struct slice model = message_member(body, length, "model");
    struct slice stream = message_member(body, length, "stream");
    if (model.length > 2 && model.start[0] == '"')
        secret_one_line(request->model, sizeof request->model, model.start + 1, model.length - 2);
    request->is_stream =
        request->endpoint->streams ? !slice_is(stream, "false") : slice_is(stream, "true");
}

/* ---- responses ---- */

void observer_init(struct observer *observer, struct proxy_request *request,
                   const struct proxy_endpoint *endpoint)
{
    *observer = (struct observer){.request = request};
    request->endpoint = endpoint;
    request->began_wall = clock_wall();
    completion_init(&request->reply);
    request->reply.sent = clock_now();
}

static void stop_reading(struct observer *observer, const char *problem)
{
    struct completion *reply = &observer->request->reply;
    if (!reply->count_problem[0])
        chars_copy(reply->count_problem, problem);
    observer->err = ERR_BAD_VALUE;
}

static void read_count_headers(const struct text *headers, struct completion *reply)
{
    const char *prompt = http_header_find(headers, "x-prompt-tokens");
    const char *output = http_header_find(headers, "x-generated-tokens");
    int64_t count;
    if (prompt && parse_i64(prompt, &count) == ERR_OK && count >= 0)
        reply->prompt_tokens = count;
    if (output && parse_i64(output, &count) == ERR_OK && count >= 0)
        reply->output_tokens = count;
}

void observer_begin(struct observer *observer, int status, const struct text *headers)
{
    struct proxy_request *request = observer->request;
    const char *encoding = http_header_find(headers, "Content-Encoding");
    request->reply.status = status;
    if (status < 200 || status > 299)
        return;
    if (request->endpoint->has_count_headers)
        read_count_headers(headers, &request->reply);
    if (encoding && !str_equal_nocase(encoding, "identity")) {
        stop_reading(observer, "the response is compressed: its tokens were not counted");
        return;
    }
    const struct completion_sink sink = {.completion = &request->reply,
                                         .server = "the upstream server",
                                         .why = &observer->why,
                                         .skips_choices = true};
    observer->format = &RESPONSE_FORMATS[request->endpoint->kind];
    observer->format->init(&observer->reader, &sink);
}

void observer_take(struct observer *observer, const char *bytes, size_t length, nanos t)
{
    if (observer->format && !observer->err)
        observer->err = observer->format->feed(&observer->reader, bytes, length, t);
}

static void end_reading(struct observer *observer, enum err transport)
{
    if (!observer->format)
        return;
    if (!observer->err)
        observer->err = observer->format->end(&observer->reader, transport);
    if (observer->err == ERR_BAD_VALUE)
        stop_reading(observer, observer->why.text);
}

/* A response that arrives in one piece has no TTFT, unless it is a single streamed token. */
static void drop_first_token(struct proxy_request *request)
{
    struct completion *reply = &request->reply;
    if (reply->last_token <= reply->first_token &&
        !(request->is_stream && reply->output_tokens == 1))
        reply->first_token = reply->last_token = 0;
}

/* An error that the server reports in a stream ends it, too: clients disconnect there. */
bool observer_is_complete(const struct observer *observer)
{
    return observer->err == ERR_IO ||
           (observer->format && !observer->err && observer->format->is_done(&observer->reader));
}

void observer_end(struct observer *observer, enum err transport, const char *why)
{
    struct proxy_request *request = observer->request;
    int status = request->reply.status;
    end_reading(observer, transport);
    drop_first_token(request);
    if (transport) {
        request->err = transport;
        secret_one_line(request->why, sizeof request->why, why, strlen(why));
    } else if (status < 200 || status > 299) {
        request->err = ERR_IO;
        chars_format(request->why, "the upstream server answered with status %d", status);
    } else if (observer->err && observer->err != ERR_BAD_VALUE) {
        request->err = observer->err;
        chars_copy(request->why, observer->why.text);
    }
}

void observer_release(struct observer *observer)
{
    if (observer->format)
        observer->format->release(&observer->reader);
}

void proxy_request_free(struct proxy_request *request)
{
    if (!request)
        return;
    completion_release(&request->reply);
    text_release(&request->body);
    free(request);
}

/* ---- token counts in streams ---- */

/* A stream has token counts only if its request contains an option for them.  --inject-usage adds that option, and
 * removes from the stream the usage event and the "usage": null that servers add to the others. */

enum {
    EVENT_MAX = 256 * 1024, /* longer events have no counts, and are passed through */
    END_MAX = 2,            /* bytes that may be the start of an event separator: "\n\r" */
};

static const char OPTIONS[] = "\"stream_options\":{\"include_usage\":true}";

bool usage_inject(const char *body, size_t length, struct text *out)
{
    struct slice stream = message_member(body, length, "stream");
    struct slice options = message_member(body, length, "stream_options");
    if (!slice_is(stream, "true") || options.length)
        return false;
    /* Inserted after the value of "stream", so that the rest of the body need not be parsed. */
    size_t before = (size_t)(slice_end(stream) - body);
    text_add_bytes(out, body, before);
    text_addf(out, ",%s", OPTIONS);
    text_add_bytes(out, body + before, length - before);
    return true;
}

/* Length of the first complete event including its blank line; 0 if there is none. */
static size_t event_length(struct usage_filter *filter)
{
    const struct text *held = &filter->held;
    const char *bytes = text_get(held);
    for (size_t i = filter->scanned; i + 1 < held->length; i++) {
        if (bytes[i] != '\n')
            continue;
        if (bytes[i + 1] == '\n')
            return i + 2;
        if (bytes[i + 1] == '\r' && i + 2 < held->length && bytes[i + 2] == '\n')
            return i + 3;
    }
    filter->scanned = held->length > END_MAX ? held->length - END_MAX : 0;
    return 0;
}

static bool is_usage_event(struct slice data)
{
    struct slice choices = message_member(data.start, data.length, "choices");
    struct slice usage = message_member(data.start, data.length, "usage");
    return usage.length && usage.start[0] == '{' && choices.length >= 2 &&
           choices.start[0] == '[' &&
           slice_trim((struct slice){choices.start + 1, choices.length - 2}).length == 0;
}

/* Also removes the comma before or after the member. */
static void add_without_null(struct slice event, struct slice data, struct text *out)
{
    struct slice usage = message_member(data.start, data.length, "usage");
    const char *start = usage.start, *end = slice_end(usage), *last = slice_end(event);
    if (!slice_is(usage, "null")) {
        text_add_bytes(out, event.start, event.length);
        return;
    }
    while (start > data.start && *start != '"')
        start--;
    start -= strlen("\"usage");
    while (start > data.start && slice_is_space(start[-1]))
        start--;
    if (start[-1] == ',')
        start--;
    else if (*end == ',')
        end++;
    text_add_bytes(out, event.start, (size_t)(start - event.start));
    text_add_bytes(out, end, (size_t)(last - end));
}

static void forward_event(struct slice event, struct text *out)
{
    struct slice data = {event.start + strlen("data:"), event.length - strlen("data:")};
    if (!slice_starts(event, "data:") || event.length < strlen("data:{}"))
        text_add_bytes(out, event.start, event.length);
    else if (!is_usage_event(slice_trim(data)))
        add_without_null(event, slice_trim(data), out);
}

static void drop(struct usage_filter *filter, size_t length)
{
    text_drop(&filter->held, length);
    filter->scanned = 0;
}

void usage_filter_feed(struct usage_filter *filter, const char *bytes, size_t length,
                       struct text *out)
{
    size_t event;
    text_add_bytes(&filter->held, bytes, length);
    while ((event = event_length(filter)) > 0) {
        if (filter->is_long)
            text_add_bytes(out, filter->held.bytes, event);
        else
            forward_event((struct slice){filter->held.bytes, event}, out);
        filter->is_long = false;
        drop(filter, event);
    }
    if (filter->held.length > (filter->is_long ? END_MAX : EVENT_MAX)) {
        size_t passes = filter->held.length - END_MAX;
        filter->is_long = true;
        text_add_bytes(out, filter->held.bytes, passes);
        drop(filter, passes);
    }
}

void usage_filter_end(struct usage_filter *filter, struct text *out)
{
    text_add_bytes(out, text_get(&filter->held), filter->held.length);
    text_release(&filter->held);
}
