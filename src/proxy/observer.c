/* Observes requests and responses: kind, model and labels of a request, the completion in a response, and the token
 * counts that --inject-usage requests and removes again. */
#include "proxy/observer.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/secret.h"
#include "core/text.h"
#include "wire/completion.h"

enum { DOCUMENT_MAX = 16 * 1024 * 1024 };

/* ---- requests ---- */

enum proxy_kind observe_kind(const char *method, const char *path)
{
    static const struct {
        const char *end;
        enum proxy_kind kind;
    } ENDS[] = {
        {"/chat/completions", PROXY_OPENAI}, {"/completions", PROXY_OPENAI},
        {"/responses", PROXY_OPENAI},        {"/embeddings", PROXY_EMBEDDINGS},
        {"/api/chat", PROXY_OLLAMA},         {"/api/generate", PROXY_OLLAMA},
        {"/api/embed", PROXY_EMBEDDINGS},
    };
    for (size_t i = 0; strcmp(method, "POST") == 0 && i < sizeof ENDS / sizeof *ENDS; i++)
        if (str_ends(path, ENDS[i].end))
            return ENDS[i].kind;
    return PROXY_OTHER;
}

void observe_label(char *to, size_t size, const char *value)
{
    if (value)
        secret_one_line(to, size, value, strlen(value));
}

void observe_request(struct proxy_request *request, const char *path, const char *body,
                     size_t length)
{
    request->began_wall = clock_wall();
    completion_init(&request->reply);
    request->reply.sent = clock_now();
    observe_label(request->path, sizeof request->path, path);
    struct slice model = message_member(body, length, "model");
    struct slice stream = message_member(body, length, "stream");
    if (model.length > 2 && model.start[0] == '"')
        secret_one_line(request->model, sizeof request->model, model.start + 1, model.length - 2);
    request->is_stream =
        request->kind == PROXY_OLLAMA ? !slice_is(stream, "false") : slice_is(stream, "true");
}

/* ---- responses ---- */

void observer_init(struct observer *observer, struct proxy_request *request)
{
    *observer = (struct observer){.request = request};
}

static void stop_reading(struct observer *observer, const char *problem)
{
    struct completion *reply = &observer->request->reply;
    if (!reply->count_problem[0])
        str_copy(reply->count_problem, sizeof reply->count_problem, problem);
    observer->err = ERR_BAD_VALUE;
}

void observer_begin(struct observer *observer, int status, const char *encoding)
{
    struct proxy_request *request = observer->request;
    request->reply.status = status;
    if (status < 200 || status > 299)
        return;
    if (encoding && !str_equal_nocase(encoding, "identity")) {
        stop_reading(observer, "the response is compressed: its tokens were not counted");
        return;
    }
    const struct completion_sink sink = {.completion = &request->reply,
                                         .server = "the upstream server",
                                         .why = &observer->why,
                                         .skips_choices = true};
    if (request->kind == PROXY_OPENAI)
        openai_response_init(&observer->reader.openai, &sink);
    else if (request->kind == PROXY_OLLAMA)
        ollama_response_init(&observer->reader.ollama, &sink);
    observer->is_read = true;
}

static void append_document(struct observer *observer, const char *bytes, size_t length)
{
    if (observer->document.length + length > DOCUMENT_MAX)
        stop_reading(observer, "the response is too long: its tokens were not counted");
    else
        text_add_bytes(&observer->document, bytes, length);
}

void observer_take(struct observer *observer, const char *bytes, size_t length, nanos t)
{
    struct proxy_request *request = observer->request;
    if (!observer->is_read || observer->err)
        return;
    if (request->kind == PROXY_OPENAI)
        observer->err = openai_response_feed(&observer->reader.openai, bytes, length, t);
    else if (request->kind == PROXY_OLLAMA)
        observer->err = ollama_response_feed(&observer->reader.ollama, bytes, length, t);
    else
        append_document(observer, bytes, length);
}

static void read_embeddings(struct observer *observer)
{
    struct completion *reply = &observer->request->reply;
    const char *bytes = text_get(&observer->document);
    size_t length = observer->document.length;
    struct slice usage = message_member(bytes, length, "usage");
    struct slice counts[] = {message_member(usage.start, usage.length, "prompt_tokens"),
                             message_member(bytes, length, "prompt_eval_count")};
    for (size_t i = 0; i < 2; i++) {
        char digits[24];
        int64_t count;
        str_format(digits, sizeof digits, "%.*s", (int)(counts[i].length % sizeof digits),
                   counts[i].start);
        if (parse_i64(digits, &count) == ERR_OK && count >= 0)
            reply->prompt_tokens = count;
    }
    str_copy(reply->finish_reason, sizeof reply->finish_reason, "stop");
}

static void end_reading(struct observer *observer, enum err transport)
{
    enum err err = observer->err;
    if (!observer->is_read)
        return;
    if (observer->request->kind == PROXY_OPENAI)
        err = err ? err : openai_response_end(&observer->reader.openai, transport);
    else if (observer->request->kind == PROXY_OLLAMA)
        err = err ? err : ollama_response_end(&observer->reader.ollama, transport);
    else if (!err && !transport)
        read_embeddings(observer);
    if (err == ERR_BAD_VALUE)
        stop_reading(observer, observer->why.text);
    observer->err = err;
}

/* A response that arrives in one piece has no TTFT, unless it is a single streamed token. */
static void drop_first_token(struct proxy_request *request)
{
    struct completion *reply = &request->reply;
    if (reply->last_token <= reply->first_token &&
        !(request->is_stream && reply->output_tokens == 1))
        reply->first_token = reply->last_token = 0;
}

bool observer_is_complete(const struct observer *observer)
{
    if (!observer->is_read || observer->err)
        return false;
    if (observer->request->kind == PROXY_OLLAMA)
        return observer->reader.ollama.is_done;
    return observer->request->kind == PROXY_OPENAI && observer->reader.openai.is_done &&
           observer->request->reply.finish_reason[0];
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
        str_format(request->why, sizeof request->why, "the upstream server answered with status %d",
                   status);
    } else if (observer->err && observer->err != ERR_BAD_VALUE) {
        request->err = observer->err;
        str_copy(request->why, sizeof request->why, observer->why.text);
    }
}

void observer_release(struct observer *observer)
{
    if (observer->is_read && observer->request->kind == PROXY_OPENAI)
        openai_response_release(&observer->reader.openai);
    else if (observer->is_read && observer->request->kind == PROXY_OLLAMA)
        ollama_response_release(&observer->reader.ollama);
    text_release(&observer->document);
}

void proxy_request_question(const struct proxy_request *request, struct text *out)
{
    message_question(text_get(&request->body), request->body.length, out);
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
    return !out->failed;
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
