/* The null client: a completion generated at a fixed rate without a model.  It replaces a service in
 * tests, and shows the overhead of measuring when inference is free.
 *
 * With a script, replies and tool calls come from a file of JSON lines.  The line depends only on the conversation (its
 * number of replies and the question), so that concurrent clients and retries get the same reply. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/json.h"
#include "core/xalloc.h"
#include "port/file.h"
#include "port/json_read.h"
#include "port/thread.h"

static const nanos CANCEL_PERIOD = 50 * NS_PER_MS;

struct null {
    struct deadline deadline;
    nanos ttft;
    double tokens_per_s;
    bool has_tokens, has_prompt_tokens, is_echo;
    uint64_t tokens, prompt_tokens, fail_every;
    uint64_t asked;
    char *answer;
    enum client_tools tools;
    struct jv **script;
    size_t script_count, script_capacity;
};

static const struct param_spec PARAMS[] = {
    {"ttft_ms", "MS", "time to first token (0)"},
    {"tokens", "COUNT", "output tokens (one per word of the answer)"},
    {"tokens_per_s", "RATE", "decode rate, tokens per second; 0: all at once (0)"},
    {"prompt_tokens", "COUNT", "prompt tokens to report (the number of words)"},
    {"answer", "TEXT|echo", "the completion, repeated up to tokens; echo: the prompt (ok)"},
    {"script", "FILE", "JSON lines, one reply each: content, tool_calls, error, when (none)"},
    {"tools", "yes|no|unknown", "whether the model takes tools; no: it rejects them (yes)"},
    {"fail_every", "COUNT", "every COUNT-th request fails as if the server were busy; 0: none (0)"},
    {NULL, NULL, NULL},
};

/* ---- script ---- */

static enum err add_line(struct null *null, const char *line, size_t length, const char *path,
                         size_t number, struct error *why)
{
    struct error cause = {0};
    null->script =
        xgrow(null->script, &null->script_capacity, null->script_count, sizeof(struct jv *));
    if (jv_parse(line, length, &null->script[null->script_count], &cause))
        return err_set(why, ERR_USAGE, "%.200s, line %zu: %.100s", path, number, cause.text);
    if (!jv_is_object(null->script[null->script_count++]))
        return err_set(why, ERR_USAGE, "%.200s, line %zu: expected an object", path, number);
    return ERR_OK;
}

static enum err read_script(struct null *null, const char *path, struct error *why)
{
    enum { SCRIPT_LIMIT = 16 * 1024 * 1024 };
    struct text text = {0};
    enum err err = file_read(path, SCRIPT_LIMIT, &text, why);
    const char *at = text_get(&text);
    for (size_t number = 1; !err && *at; number++) {
        size_t length = strcspn(at, "\n");
        if (strspn(at, " \t\r") < length)
            err = add_line(null, at, length, path, number, why);
        at += length + (at[length] == '\n');
    }
    text_release(&text);
    if (!err && null->script_count == 0)
        err = err_set(why, ERR_USAGE, "script=%.200s: no replies", path);
    return err;
}

/* The first user message, or the last: with ReAct, results of tools are user messages, too. */
static const char *find_question(const struct chat *chat, bool last)
{
    const char *found = "";
    for (size_t i = 0; i < chat->count && (last || !*found); i++)
        if (chat->messages[i].role == CHAT_USER)
            found = chat->messages[i].text;
    return found;
}

/* Among the lines whose "when" is part of the question, or that have no "when": the one of this turn, else the last. */
static const struct jv *find_line(const struct null *null, const struct chat *chat)
{
    const struct jv *found = NULL;
    size_t turn = 0;
    for (size_t i = 0; i < chat->count; i++)
        turn += chat->messages[i].role == CHAT_ASSISTANT;
    for (size_t i = 0, n = 0; i < null->script_count && n <= turn; i++) {
        const char *when = jv_get_text(null->script[i], "when");
        if (when && !strstr(find_question(chat, false), when))
            continue;
        found = null->script[i];
        n++;
    }
    return found;
}

/* ---- --client-param ---- */

static enum err read_params(struct null *null, const struct params *params, struct error *why)
{
    enum { DAY_MS = 24 * 3600 * 1000, TOKENS_MAX = 1000 * 1000 };
    static const char *const TOOLS[] = {"unknown", "yes", "no", NULL};
    struct params_reader read = {params, why, ERR_OK};
    null->ttft = from_seconds(params_number(&read, "ttft_ms", 0, 0, DAY_MS) * 1e-3);
    null->tokens_per_s = params_number(&read, "tokens_per_s", 0, 0, 1e9);
    null->tokens = params_count(&read, "tokens", 0, 0, TOKENS_MAX);
    null->prompt_tokens = params_count(&read, "prompt_tokens", 0, 0, INT64_MAX);
    null->fail_every = params_count(&read, "fail_every", 0, 0, UINT64_MAX);
    null->tools = (enum client_tools)params_word(&read, "tools", TOOLS, CLIENT_TOOLS_YES);
    if (read.err)
        return read.err;
    if (null->tokens_per_s != 0 && null->tokens_per_s < 1e-3)
        return err_set(why, ERR_USAGE, "tokens_per_s: expected 0, or 0.001 to 1e9");
    null->has_tokens = params_get(params, "tokens") != NULL;
    null->has_prompt_tokens = params_get(params, "prompt_tokens") != NULL;
    const char *answer = params_get(params, "answer");
    null->is_echo = answer && str_equal(answer, "echo");
    null->answer = xstrdup(answer ? answer : "ok");
    const char *script = params_get(params, "script");
    return script ? read_script(null, script, why) : ERR_OK;
}

static void null_close(struct client *client)
{
    struct null *null = client->state;
    free(null->answer);
    for (size_t i = 0; i < null->script_count; i++)
        jv_free(null->script[i]);
    free(null->script);
    free(null);
}

static enum err null_open(const struct client_config *config, struct client *out, struct error *why)
{
    struct null *null = XNEW(null);
    deadline_init(&null->deadline);
    out->state = null;
    enum err err = read_params(null, config->params, why);
    if (err)
        null_close(out);
    return err;
}

static enum err null_health(struct client *client, struct error *why)
{
    (void)client;
    (void)why;
    return ERR_OK;
}

static enum err null_models(struct client *client, struct client_models *out, struct error *why)
{
    (void)client;
    (void)why;
    client_models_add(out, "null");
    return ERR_OK;
}

/* Always warm, and accepts any model. */
static enum err null_prepare(struct client *client, const char *model, nanos timeout,
                             struct error *why)
{
    (void)client;
    (void)model;
    (void)timeout;
    (void)why;
    return ERR_OK;
}

static void null_describe(struct client *client, const char *model, struct json *json)
{
    (void)client;
    (void)model;
    json_string(json, "server", "null");
}

/* ---- words ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The first piece of text: one word with the white space before it, and after the last word also what
 * follows. */
static size_t piece_length(const char *text)
{
    size_t i = 0;
    while (is_space(text[i]))
        i++;
    while (text[i] && !is_space(text[i]))
        i++;
    size_t rest = i;
    while (is_space(text[rest]))
        rest++;
    return text[rest] ? i : rest;
}

static int64_t count_words(const char *text)
{
    int64_t count = 0;
    for (size_t i = 0; text[i]; i++)
        count += !is_space(text[i]) && (i == 0 || is_space(text[i - 1]));
    return count;
}

/* ---- requests ---- */

/* Sleeps until t, unless the request times out or is canceled before. */
static enum err wait_until(struct null *null, const struct client_request *request, nanos sent,
                           nanos t, struct error *why)
{
    nanos limit = request->timeout > 0 ? sent + request->timeout : INT64_MAX;
    for (;;) {
        nanos now = clock_now();
        if (request->cancel && atomic_load(request->cancel))
            return err_set(why, ERR_INTERRUPTED, "null: the request was canceled");
        if (now >= limit && t >= limit)
            return err_set(why, ERR_TIMEOUT, "null: the completion took longer than %.3g s",
                           seconds(request->timeout));
        if (now >= t)
            return ERR_OK;
        nanos next = t < limit ? t : limit;
        if (request->cancel && next > now + CANCEL_PERIOD)
            next = now + CANCEL_PERIOD;
        deadline_wait(&null->deadline, next);
    }
}

static void emit_piece(const struct client_request *request, struct completion *out,
                       const char *bytes, size_t length)
{
    nanos t = clock_now();
    completion_append(out, &out->content, bytes, length, t);
    if (request->observer && length > 0)
        request->observer(request->context, bytes, length, t);
}

static enum err emit_answer(struct null *null, const struct client_request *request,
                            const char *answer, uint64_t count, struct completion *out,
                            struct error *why)
{
    const char *at = answer;
    enum err err = wait_until(null, request, out->sent, out->sent + null->ttft, why);
    for (uint64_t i = 0; i < count && !err; i++) {
        if (i > 0 && null->tokens_per_s > 0) {
            nanos due = out->sent + null->ttft + from_seconds((double)i / null->tokens_per_s);
            err = wait_until(null, request, out->sent, due, why);
            if (err)
                break;
        }
        if (!*at) { /* repeat, separated by a space */
            at = answer;
            text_add(&out->content, " ");
            if (request->observer)
                request->observer(request->context, " ", 1, clock_now());
        }
        size_t length = piece_length(at);
        emit_piece(request, out, at, length);
        at += length;
        out->output_tokens = (int64_t)i + 1;
    }
    return err;
}

/* The text, how many pieces of it to emit, and the finish reason. */
struct plan {
    const struct jv *line; /* line of the script; NULL if there is none */
    const char *answer, *reason;
    uint64_t count;
};

static enum err make_plan(const struct null *null, const struct client_request *request,
                          const struct chat *chat, struct plan *plan, struct error *why)
{
    struct params_reader read = {request->params, why, ERR_OK};
    uint64_t max = params_count(&read, "max_tokens", UINT64_MAX, 0, UINT64_MAX);
    plan->line = find_line(null, chat);
    if (plan->line)
        plan->answer = jv_get_text(plan->line, "content");
    else
        plan->answer = null->is_echo ? find_question(chat, true) : null->answer;
    if (!plan->answer)
        plan->answer = "";
    uint64_t words = (uint64_t)count_words(plan->answer);
    plan->count = null->has_tokens && words > 0 ? null->tokens : words;
    plan->reason = plan->count > max ? "length" : "stop";
    if (plan->count > max)
        plan->count = max;
    return read.err;
}

/* Fills in the tool calls and token counts of a script line. */
static enum err apply_line(const struct client_request *request, const struct jv *line,
                           struct completion *out, struct error *why)
{
    struct completion_sink sink = {.completion = out,
                                   .server = "null",
                                   .observer = request->observer,
                                   .context = request->context,
                                   .why = why};
    const struct jv *calls = jv_get(line, "tool_calls");
    enum err err = completion_sink_calls(&sink, calls, clock_now());
    if (!err)
        err = completion_sink_finish(&sink);
    for (size_t i = 0; i < out->calls.count; i++)
        out->output_tokens += 1 + count_words(text_get(&out->calls.items[i].arguments));
    completion_read_count(&out->output_tokens, jv_get(line, "output_tokens"));
    completion_read_count(&out->prompt_tokens, jv_get(line, "prompt_tokens"));
    return err;
}

/* Failures set by parameters. */
static enum err inject_failure(struct null *null, const struct client_request *request,
                               const struct jv *line, struct completion *out, struct error *why)
{
    const char *error = jv_get_text(line, "error");
    if (null->fail_every > 0 && ++null->asked % null->fail_every == 0) {
        out->status = 503;
        out->retryable = true;
        return err_set(why, ERR_BUSY, "null: busy (fail_every)");
    }
    if (request->tool_count > 0 && null->tools == CLIENT_TOOLS_NO) {
        out->rejects_tools = true;
        return err_set(why, ERR_UNSUPPORTED, "no tools: null was opened with tools=no");
    }
    return error ? err_set(why, ERR_IO, "null: %.200s", error) : ERR_OK;
}

static int64_t count_prompt(const struct chat *chat)
{
    int64_t words = 0;
    for (size_t i = 0; i < chat->count; i++)
        if (chat->messages[i].role != CHAT_SYSTEM)
            words += count_words(chat->messages[i].text);
    return words;
}

static enum err null_ask(struct client *client, const struct client_request *request,
                         struct completion *out, struct error *why)
{
    struct null *null = client->state;
    struct client_chat space;
    const struct chat *chat = client_chat(request, &space);
    struct plan plan;
    completion_init(out);
    out->sent = clock_now();
    enum err err = make_plan(null, request, chat, &plan, why);
    if (!err)
        err = inject_failure(null, request, plan.line, out, why);
    if (!err) {
        out->output_tokens = 0;
        out->prompt_tokens =
            null->has_prompt_tokens ? (int64_t)null->prompt_tokens : count_prompt(chat);
        err = emit_answer(null, request, plan.answer, plan.count, out, why);
        if (!err && plan.line)
            err = apply_line(request, plan.line, out, why);
        out->retryable = err == ERR_TIMEOUT;
    }
    if (!err)
        chars_copy(out->finish_reason, out->calls.count ? "tool_calls" : plan.reason);
    out->done = clock_now();
    return err;
}

static enum client_tools null_tools(struct client *client, const char *model)
{
    const struct null *null = client->state;
    (void)model;
    return null->tools;
}

/* A model in which every byte is a token and all tokens are equally likely: 8 bits per byte, perplexity 256. */
static enum err null_score(struct client *client, const struct client_request *request,
                           const int32_t *tokens, size_t count, struct completion *out,
                           struct error *why)
{
    struct null *null = client->state;
    int64_t bytes = (int64_t)strlen(request->prompt);
    (void)tokens, (void)count;
    completion_init(out);
    out->sent = clock_now();
    enum err err = wait_until(null, request, out->sent, out->sent + null->ttft, why);
    if (!err && bytes < 4)
        err = err_set(why, ERR_NO_DATA, "null: a text of %lld bytes is too short to score",
                      (long long)bytes);
    if (!err) {
        out->prompt_tokens = bytes;
        out->output_tokens = 0;
        out->scored_tokens = out->scored_bytes = bytes - bytes / 2 - 1;
        out->negative_log_likelihood = (double)out->scored_tokens * log(256);
    }
    out->retryable = err == ERR_TIMEOUT;
    out->done = clock_now();
    return err;
}

const struct client_driver client_null = {
    .name = "null",
    .summary = "fixed completions at a fixed rate, no model; for tests and measurement overhead",
    .params = PARAMS,
    .open = null_open,
    .close = null_close,
    .health = null_health,
    .models = null_models,
    .prepare = null_prepare,
    .describe = null_describe,
    .tools = null_tools,
    .ask = null_ask,
    .score = null_score,
};
