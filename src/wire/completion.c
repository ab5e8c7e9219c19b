/* The completion and the part of reading one that every protocol shares: pieces with their arrival
 * times, the size limit, and the errors for a malformed or truncated response. */
#include "wire/completion.h"

#include <stdlib.h>
#include <string.h>

#include "core/grow.h"
#include "core/secret.h"
#include "port/json_read.h"

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
    };
}

void completion_release(struct completion *completion)
{
    text_release(&completion->content);
    text_release(&completion->reasoning);
    free(completion->arrivals.times);
    completion->arrivals = (struct arrivals){0};
}

enum err completion_append(struct completion *completion, struct text *part, const char *bytes,
                           size_t length, nanos t)
{
    if (length == 0)
        return ERR_OK;
    struct arrivals *arrivals = &completion->arrivals;
    nanos *times = grow(arrivals->times, &arrivals->capacity, arrivals->count, sizeof *times);
    if (!times)
        return ERR_NO_MEMORY;
    arrivals->times = times;
    text_add_bytes(part, bytes, length);
    if (part->failed)
        return ERR_NO_MEMORY;
    times[arrivals->count++] = t;
    if (!completion->first_token)
        completion->first_token = t;
    completion->last_token = t;
    return ERR_OK;
}

/* ---- reading one from a response ---- */

static enum err add_piece(struct completion_sink *sink, struct text *part, const char *piece,
                          nanos t)
{
    size_t length = piece ? strlen(piece) : 0;
    struct completion *completion = sink->completion;
    if (length > COMPLETION_LIMIT - completion->content.length - completion->reasoning.length)
        return err_set(sink->why, ERR_BAD_VALUE, "%s: the completion is longer than %d MiB",
                       sink->server, COMPLETION_LIMIT >> 20);
    enum err err = completion_append(completion, part, piece, length, t);
    if (err)
        return err_set(sink->why, err, "out of memory for the completion");
    if (length > 0 && sink->observer)
        sink->observer(sink->context, piece, length, t);
    return ERR_OK;
}

enum err completion_sink_content(struct completion_sink *sink, const char *piece, nanos t)
{
    return add_piece(sink, &sink->completion->content, piece, t);
}

enum err completion_sink_reasoning(struct completion_sink *sink, const char *piece, nanos t)
{
    return add_piece(sink, &sink->completion->reasoning, piece, t);
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
    int64_t number;
    if (jv_integer(value, &number) && number >= 0)
        *count = number;
}

void completion_read_seconds(double *s, const struct jv *value, double unit)
{
    double number = jv_number(value);
    if (is_known(number) && number >= 0)
        *s = number * unit;
}

/* ---- counts ---- */

/* Of one request; the fastest hardware generates some thousands. */
#define TOKENS_PER_S_MAX 1e5

/* A chat template, tools and a system prompt that the server adds. */
#define ADDED_TOKENS_MAX 65536

static void drop_count(struct completion *completion, int64_t *count, const char *what)
{
    str_format(completion->count_problem, sizeof completion->count_problem, "%lld %s",
               (long long)*count, what);
    *count = -1;
}

void completion_check_counts(struct completion *completion, size_t prompt_bytes)
{
    size_t bytes = completion->content.length + completion->reasoning.length;
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
