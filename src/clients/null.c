/* The null client: a completion generated at a fixed rate without a model.  It replaces a service in
 * tests, and shows the overhead of measuring when inference is free. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/client.h"
#include "core/clock.h"
#include "core/json.h"
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
};

static const struct param_spec PARAMS[] = {
    {"ttft_ms", "MS", "time to first token (0)"},
    {"tokens", "COUNT", "output tokens (one per word of the answer)"},
    {"tokens_per_s", "RATE", "decode rate, tokens per second; 0: all at once (0)"},
    {"prompt_tokens", "COUNT", "prompt tokens to report (the number of words)"},
    {"answer", "TEXT|echo", "the completion, repeated up to tokens; echo: the prompt (ok)"},
    {"fail_every", "COUNT", "every COUNT-th request fails as if the server were busy; 0: none (0)"},
    {NULL, NULL, NULL},
};

static enum err read_params(struct null *null, const struct params *params, struct error *why)
{
    double ttft_ms;
    enum err err = params_number(params, "ttft_ms", 0, &ttft_ms, why);
    if (!err)
        err = params_number(params, "tokens_per_s", 0, &null->tokens_per_s, why);
    if (!err)
        err = params_count(params, "tokens", 0, &null->tokens, why);
    if (!err)
        err = params_count(params, "prompt_tokens", 0, &null->prompt_tokens, why);
    if (!err)
        err = params_count(params, "fail_every", 0, &null->fail_every, why);
    if (err)
        return err;
    enum { DAY_MS = 24 * 3600 * 1000, MOST_TOKENS = 1000 * 1000 };
    if (ttft_ms < 0 || ttft_ms > DAY_MS)
        return err_set(why, ERR_USAGE, "ttft_ms: expected 0 to %d", DAY_MS);
    if (null->tokens_per_s != 0 && !(null->tokens_per_s >= 1e-3 && null->tokens_per_s <= 1e9))
        return err_set(why, ERR_USAGE, "tokens_per_s: expected 0, or 0.001 to 1e9");
    if (null->tokens > MOST_TOKENS || null->prompt_tokens > INT64_MAX)
        return err_set(why, ERR_USAGE, "tokens: expected at most %d", MOST_TOKENS);
    null->ttft = from_seconds(ttft_ms * 1e-3);
    null->has_tokens = params_get(params, "tokens") != NULL;
    null->has_prompt_tokens = params_get(params, "prompt_tokens") != NULL;
    const char *answer = params_get(params, "answer");
    null->is_echo = answer && strcmp(answer, "echo") == 0;
    null->answer = strdup(answer ? answer : "ok");
    return null->answer ? ERR_OK : err_set(why, ERR_NO_MEMORY, "out of memory for a client");
}

static void null_close(struct client *client)
{
    struct null *null = client->state;
    free(null->answer);
    free(null);
}

static enum err null_open(const struct client_config *config, struct client *out, struct error *why)
{
    struct null *null = calloc(1, sizeof *null);
    if (!null)
        return err_set(why, ERR_NO_MEMORY, "out of memory for a client");
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
    enum err err = client_models_add(out, "null");
    return err ? err_set(why, err, "out of memory for the list of models") : ERR_OK;
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

static enum err emit_piece(const struct client_request *request, struct completion *out,
                           const char *bytes, size_t length, struct error *why)
{
    nanos t = clock_now();
    if (completion_append(out, &out->content, bytes, length, t))
        return err_set(why, ERR_NO_MEMORY, "out of memory for the completion");
    if (request->observer && length > 0)
        request->observer(request->context, bytes, length, t);
    return ERR_OK;
}

static enum err emit_answer(struct null *null, const struct client_request *request, uint64_t count,
                            struct completion *out, struct error *why)
{
    const char *answer = null->is_echo ? request->prompt : null->answer;
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
        err = emit_piece(request, out, at, length, why);
        at += length;
        out->output_tokens = (int64_t)i + 1;
    }
    return err;
}

/* How many pieces to emit, and the finish reason. */
static enum err plan(const struct null *null, const struct client_request *request, uint64_t *count,
                     const char **reason, struct error *why)
{
    const char *answer = null->is_echo ? request->prompt : null->answer;
    uint64_t most;
    uint64_t words = (uint64_t)count_words(answer);
    enum err err = params_count(request->params, "max_tokens", UINT64_MAX, &most, why);
    *count = null->has_tokens && words > 0 ? null->tokens : words;
    *reason = *count > most ? "length" : "stop";
    if (*count > most)
        *count = most;
    return err;
}

static enum err null_ask(struct client *client, const struct client_request *request,
                         struct completion *out, struct error *why)
{
    struct null *null = client->state;
    completion_init(out);
    out->sent = clock_now();
    uint64_t count;
    const char *reason;
    enum err err = plan(null, request, &count, &reason, why);
    if (!err && null->fail_every > 0 && ++null->asked % null->fail_every == 0) {
        out->status = 503;
        out->retryable = true;
        err = err_set(why, ERR_BUSY, "null: busy (fail_every)");
    }
    if (!err) {
        out->output_tokens = 0;
        out->prompt_tokens =
            null->has_prompt_tokens ? (int64_t)null->prompt_tokens : count_words(request->prompt);
        err = emit_answer(null, request, count, out, why);
        out->retryable = err == ERR_TIMEOUT;
    }
    if (!err)
        str_copy(out->finish_reason, sizeof out->finish_reason, reason);
    out->done = clock_now();
    return err;
}

/* A model to which every byte is a token and all are equally likely: 8 bits per byte, a perplexity of 256. */
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
    .ask = null_ask,
    .score = null_score,
};
