/* The completion, and the part of parsing one that all protocols share: chunks with their arrival times, the size
 * limit, and the errors for a malformed or truncated response. */
#include "wire/completion.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/params.h"
#include "core/secret.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/json_read.h"

/* ---- requests and errors ---- */

/* Typed request parameters, and the error messages of servers. */

static const char *skip_digits(const char *c)
{
    return c + strspn(c, "0123456789");
}

/* By the grammar of JSON, which is stricter than strtod. */
static bool is_json_number(const char *c)
{
    c += *c == '-';
    const char *integer = c;
    c = skip_digits(c);
    if (c == integer || (*integer == '0' && c > integer + 1))
        return false;
    if (*c == '.') {
        const char *fraction = ++c;
        c = skip_digits(c);
        if (c == fraction)
            return false;
    }
    if (*c == 'e' || *c == 'E') {
        c++;
        c += *c == '+' || *c == '-';
        const char *exponent = c;
        c = skip_digits(c);
        if (c == exponent)
            return false;
    }
    return *c == '\0';
}

static bool is_json_literal(const char *value)
{
    return str_equal(value, "true") || str_equal(value, "false") || str_equal(value, "null");
}

void message_write_param(struct json *json, const char *key, const char *value)
{
    struct jv *tree = NULL;
    struct text printed = {0};
    if (is_json_number(value) || is_json_literal(value)) {
        json_raw(json, key, value);
    } else if (*value && strchr("[{\"", *value) && !jv_parse(value, strlen(value), &tree, NULL)) {
        jv_print(tree, &printed);
        json_raw(json, key, text_get(&printed));
    } else {
        json_string(json, key, value);
    }
    jv_free(tree);
    text_release(&printed);
}

enum err message_check_reserved(const struct params *params, const char *const *reserved,
                                struct error *why)
{
    for (; *reserved; reserved++)
        if (params_get(params, *reserved))
            return err_set(why, ERR_USAGE, "'%s' is not a request parameter: ipw sets it",
                           *reserved);
    return ERR_OK;
}

void message_copy_value(struct json *json, const char *key, const struct jv *value)
{
    int64_t number;
    if (jv_text(value))
        json_string(json, key, jv_text(value));
    else if (jv_integer(value, &number))
        json_integer(json, key, number);
}

const char *message_error(const struct jv *object)
{
    static const char *const PATHS[] = {"error.message", "error.detail", "error", "message",
                                        "detail.0.msg",  "detail",       NULL};
    for (const char *const *path = PATHS; *path; path++) {
        const char *text = jv_text(jv_path(object, *path));
        if (text && *text)
            return text;
    }
    return jv_is_null(jv_get(object, "error")) ? NULL : MESSAGE_UNSPECIFIED_ERROR;
}

/* ---- parsing clients' requests ---- */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && slice_is_space(*at))
        at++;
    return at;
}

struct slice message_member(const char *bytes, size_t length, const char *key)
{
    const char *end = bytes + length, *at = skip_space(bytes, end);
    if (at == end || *at != '{')
        return (struct slice){"", 0};
    for (;;) {
        const char *name = skip_space(at + 1, end);
        const char *after = name < end && *name == '"' ? json_skip_string(name, end) : NULL;
        const char *colon = after ? skip_space(after, end) : end;
        if (colon == end || *colon != ':')
            return (struct slice){"", 0};
        const char *value = skip_space(colon + 1, end), *last = json_skip_value(value, end);
        if (!last)
            return (struct slice){"", 0};
        if (slice_is(slice_between(name + 1, after - 1), key))
            return slice_trim(slice_between(value, last));
        at = skip_space(last, end);
        if (at == end || *at != ',')
            return (struct slice){"", 0};
    }
}

static void add_content(const struct jv *content, struct text *out)
{
    text_add(out, jv_text(content) ? jv_text(content) : "");
    JV_EACH (part, jv_is_array(content) ? jv_first(content) : NULL) {
        const char *text = jv_text(part) ? jv_text(part) : jv_get_text(part, "text");
        text_add(out, text ? text : "");
    }
}

/* In Anthropic's API, the results of tools are a message of the user. */
static bool is_tool_results(const struct jv *content)
{
    size_t results = 0;
    for (const struct jv *part = jv_is_array(content) ? jv_first(content) : NULL; part;
         part = jv_next(part), results++) {
        const char *type = jv_get_text(part, "type");
        if (!type || !str_equal(type, "tool_result"))
            return false;
    }
    return results > 0;
}

static const struct jv *last_of_user(const struct jv *messages)
{
    const struct jv *last = NULL;
    JV_EACH (m, jv_is_array(messages) ? jv_first(messages) : NULL) {
        const char *role = jv_get_text(m, "role");
        if (role && str_equal(role, "user") && !is_tool_results(jv_get(m, "content")))
            last = jv_get(m, "content");
    }
    return last;
}

void message_question(const char *bytes, size_t length, const char *key, struct text *out)
{
    struct jv *root = NULL;
    text_clear(out);
    if (jv_parse(bytes, length, &root, NULL))
        return;
    const struct jv *value = jv_get(root, key);
    const struct jv *content = last_of_user(value);
    add_content(content ? content : value, out);
    jv_free(root);
}

void completion_init(struct completion *completion)
{
    *completion = (struct completion){
        .prompt_tokens = -1,
        .output_tokens = -1,
        .reasoning_tokens = -1,
        .cached_tokens = -1,
        .scored_tokens = -1,
        .scored_bytes = -1,
        .negative_log_likelihood = UNKNOWN,
        .server_load_s = UNKNOWN,
        .server_prefill_s = UNKNOWN,
        .server_decode_s = UNKNOWN,
        .retry_after_s = UNKNOWN,
        .images = UNKNOWN,
        .audio_s = UNKNOWN,
        .denoise_steps = UNKNOWN,
    };
}

void completion_set_reason(struct completion *completion, const char *reason)
{
    secret_one_line(completion->finish_reason, sizeof completion->finish_reason, reason,
                    strlen(reason));
}

void completion_release(struct completion *completion)
{
    text_release(&completion->content);
    text_release(&completion->reasoning);
    text_release(&completion->artifact);
    tool_calls_release(&completion->calls);
    free(completion->arrivals.times);
    completion->arrivals = (struct arrivals){0};
}

double completion_backoff_s(const struct completion *completion, unsigned attempt)
{
    static const double FIRST_S = 0.5, MAX_S = 60;
    double s = is_known(completion->retry_after_s) ? completion->retry_after_s
                                                   : FIRST_S * exp2(attempt - 1);
    return fmin(fmax(s, 0), MAX_S);
}

static void mark_arrival(struct completion *completion, nanos t)
{
    struct arrivals *arrivals = &completion->arrivals;
    *XADD(arrivals->times, arrivals->count, arrivals->capacity) = t;
    if (!completion->first_token)
        completion->first_token = t;
    completion->last_token = t;
}

void completion_append(struct completion *completion, struct text *part, const char *bytes,
                       size_t length, nanos t)
{
    if (length == 0)
        return;
    text_add_bytes(part, bytes, length);
    mark_arrival(completion, t);
}

/* ---- parsing a response ---- */

static size_t text_bytes(const struct completion *completion)
{
    size_t bytes = completion->content.length + completion->reasoning.length;
    for (size_t i = 0; i < completion->calls.count; i++)
        bytes += completion->calls.items[i].arguments.length;
    return bytes;
}

/* Appends a chunk of any part within the limit, and records its arrival. */
static enum err add_part(struct completion_sink *sink, struct text *part, const char *piece,
                         nanos t)
{
    size_t length = piece ? strlen(piece) : 0;
    struct completion *completion = sink->completion;
    if (length > COMPLETION_LIMIT - text_bytes(completion))
        return err_set(sink->why, ERR_BAD_VALUE, "%s: the completion is longer than %d MiB",
                       sink->server, COMPLETION_LIMIT >> 20);
    completion_append(completion, part, piece, length, t);
    return ERR_OK;
}

static enum err add_piece(struct completion_sink *sink, struct text *part, const char *piece,
                          nanos t)
{
    enum err err = add_part(sink, part, piece, t);
    if (!err && piece && *piece && sink->observer)
        sink->observer(sink->context, piece, strlen(piece), t);
    return err;
}

enum err completion_sink_content(struct completion_sink *sink, const char *piece, nanos t)
{
    return add_piece(sink, &sink->completion->content, piece, t);
}

enum err completion_sink_reasoning(struct completion_sink *sink, const char *piece, nanos t)
{
    return add_piece(sink, &sink->completion->reasoning, piece, t);
}

/* ---- tool calls ---- */

/* The call that a chunk continues; NULL for a new one.  Some servers omit the index, and some send the same for every
 * call: a different id starts a new one. */
static struct tool_call *find_call(struct tool_calls *calls, const struct call_chunk *chunk)
{
    struct tool_call *found = NULL;
    bool has_id = chunk->id && *chunk->id;
    for (size_t i = 0; i < calls->count; i++)
        if (chunk->index < 0 || calls->items[i].index == chunk->index)
            found = &calls->items[i];
    bool is_other = found && has_id && *found->id && !str_equal(chunk->id, found->id);
    bool is_named = chunk->index < 0 && chunk->name && *chunk->name && !has_id;
    bool is_second = found && found->arguments.length > 0 && chunk->is_whole;
    return chunk->is_start || is_other || is_named || is_second ? NULL : found;
}

/* Names are sent whole; one that differs from the current name continues it. */
static void add_name(struct tool_call *call, const char *name)
{
    struct text joined = {0};
    if (!name || !*name || str_equal(call->name, name))
        return;
    text_addf(&joined, "%s%s", call->name, name);
    str_take(&call->name, &joined);
}

enum err completion_sink_call(struct completion_sink *sink, const struct call_chunk *chunk, nanos t)
{
    struct completion *completion = sink->completion;
    struct tool_calls *calls = &completion->calls;
    struct tool_call *call = find_call(calls, chunk);
    enum err err = ERR_OK;
    if (!call) {
        err = tool_calls_add(calls, NULL, NULL, NULL);
        if (err)
            return err_set(sink->why, err, "%s sent more than %d tool calls in one reply",
                           sink->server, TOOL_CALLS_LIMIT);
        call = &calls->items[calls->count - 1];
        call->index = chunk->index;
    }
    if (chunk->id && *chunk->id && !*call->id)
        str_set(&call->id, chunk->id);
    add_name(call, chunk->name);
    size_t before = completion->arrivals.count;
    err = add_part(sink, &call->arguments, chunk->arguments, t);
    if (!err && completion->arrivals.count == before)
        mark_arrival(completion, t); /* tokens were generated even for a name alone */
    return err;
}

/* Arguments are a JSON string or a chunk of it; an object from Ollama and some others. */
static enum err add_call(struct completion_sink *sink, const struct jv *item, nanos t)
{
    const struct jv *arguments = jv_path(item, "function.arguments");
    struct text printed = {0};
    struct call_chunk chunk = {.index = -1,
                               .id = jv_get_text(item, "id"),
                               .name = jv_text(jv_path(item, "function.name")),
                               .arguments = jv_text(arguments),
                               .is_whole = jv_is_object(arguments)};
    if (!jv_integer(jv_get(item, "index"), &chunk.index))
        jv_integer(jv_path(item, "function.index"), &chunk.index); /* Ollama */
    if (!chunk.arguments && !jv_is_null(arguments)) {
        jv_print(arguments, &printed);
        chunk.arguments = text_get(&printed);
    }
    enum err err = completion_sink_call(sink, &chunk, t);
    text_release(&printed);
    return err;
}

enum err completion_sink_calls(struct completion_sink *sink, const struct jv *calls, nanos t)
{
    enum err err = ERR_OK;
    for (const struct jv *item = jv_first(calls); item && !err; item = jv_next(item))
        err = add_call(sink, item, t);
    return err;
}

/* The model's output may not be a JSON object, but servers and tools reject anything else. */
static void normalize_arguments(struct text *arguments)
{
    struct jv *tree = NULL;
    struct text object = {0};
    struct json json;
    bool is_object =
        !jv_parse(text_get(arguments), arguments->length, &tree, NULL) && jv_is_object(tree);
    jv_free(tree);
    if (is_object)
        return;
    json_init(&json, &object, false);
    json_object(&json, NULL);
    if (arguments->length > 0)
        json_string(&json, "input", text_get(arguments));
    json_object_end(&json);
    text_release(arguments);
    *arguments = object;
}

enum err completion_sink_finish(struct completion_sink *sink)
{
    struct tool_calls *calls = &sink->completion->calls;
    for (size_t i = 0; i < calls->count; i++) {
        struct tool_call *call = &calls->items[i];
        if (!*call->name)
            return err_set(sink->why, ERR_BAD_VALUE, "%s sent a tool call without a name",
                           sink->server);
        normalize_arguments(&call->arguments);
    }
    tool_calls_identify(calls, (uint64_t)sink->completion->sent);
    return ERR_OK;
}

enum err completion_sink_malformed(struct completion_sink *sink, const char *bytes, size_t length)
{
    char shown[80];
    secret_one_line(shown, sizeof shown, bytes, length);
    return err_set(sink->why, ERR_BAD_VALUE, "%s sent invalid JSON: %s", sink->server, shown);
}

enum err completion_sink_truncated(struct completion_sink *sink)
{
    sink->completion->retryable = true;
    return err_set(sink->why, ERR_LOST,
                   "%s ended the response before the completion was finished: see its log",
                   sink->server);
}

void completion_read_count(int64_t *count, const struct jv *value)
{
    static const int64_t COUNT_MAX = INT64_MAX / 8; /* so that sums of counts do not overflow */
    int64_t number;
    if (jv_integer(value, &number) && number >= 0 && number <= COUNT_MAX)
        *count = number;
}

void completion_add_count(int64_t *sum, int64_t count, bool is_first)
{
    if (is_first)
        *sum = count;
    else
        *sum = *sum < 0 || count < 0 ? -1 : *sum + count;
}

void completion_read_seconds(double *s, const struct jv *value, double unit)
{
    double number = jv_number(value);
    if (is_known(number) && number >= 0)
        *s = number * unit;
}

/* ---- counts ---- */

/* Of one request; the fastest hardware generates some thousands per second. */
#define TOKENS_PER_S_MAX 1e5

/* For a chat template, tools and a system prompt added by the server. */
#define ADDED_TOKENS_MAX 65536

static void drop_count(struct completion *completion, int64_t *count, const char *what)
{
    chars_format(completion->count_problem, "%lld %s", (long long)*count, what);
    *count = -1;
}

void completion_check_counts(struct completion *completion, size_t prompt_bytes)
{
    size_t bytes = text_bytes(completion);
    double s = seconds(completion->done - completion->sent);
    int64_t *output = &completion->output_tokens, *prompt = &completion->prompt_tokens;
    if (*output == 0 && bytes > 0)
        drop_count(completion, output, "output tokens for an answer that has text");
    else if ((double)*output > TOKENS_PER_S_MAX * (s > 1e-3 ? s : 1e-3))
        drop_count(completion, output, "output tokens, more than any model generates in that time");
    if (*prompt > (int64_t)prompt_bytes + ADDED_TOKENS_MAX)
        drop_count(completion, prompt, "prompt tokens, more than the prompt has bytes");
    if (*prompt >= 0 && completion->cached_tokens > *prompt)
        completion->cached_tokens = -1;
    if (*output >= 0 && completion->reasoning_tokens > *output)
        completion->reasoning_tokens = -1;
}
