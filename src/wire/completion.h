/* A completion as observed: its text and tool calls, the arrival time of each chunk, the counts and durations reported
 * by the server, and how it ended.  A struct completion owns its texts, calls and arrival times: completion_init,
 * completion_release.  A struct completion_sink borrows everything it points to. */
#ifndef IPW_WIRE_COMPLETION_H
#define IPW_WIRE_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/json.h"
#include "core/slice.h"
#include "core/text.h"
#include "core/units.h"
#include "wire/chat.h"

struct jv;
struct params;
struct text;

/* One entry per chunk of content, reasoning or a tool call: when its bytes arrived. */
struct arrivals {
    nanos *times;
    size_t count;
    size_t capacity;
};

struct completion {
    struct text content;
    struct text reasoning;   /* reasoning that the server sends separately from the content */
    struct tool_calls calls; /* made by the model; each has an id once the completion is complete */
    struct arrivals arrivals; /* of content, reasoning and calls */
    nanos sent;               /* start of sending the request */
    nanos first_token;        /* first byte of any of them; 0 if none arrived */
    nanos last_token;         /* 0 when none arrived */
    nanos done;               /* always set */
    /* Token counts reported by the server; -1 when unknown.  Output includes reasoning. */
    int64_t prompt_tokens, output_tokens, reasoning_tokens, cached_tokens;
    /* Durations reported by the server, in s; UNKNOWN when it did not report them. */
    double server_load_s, server_prefill_s, server_decode_s;
    /* For a text that was scored instead of answered: number of predicted tokens, their bytes, and the sum of -ln p
     * over them; -1 and UNKNOWN otherwise. */
    int64_t scored_tokens, scored_bytes;
    double negative_log_likelihood;
    /* Of a workload that is no text: pictures and seconds of sound processed or made, steps of denoising; UNKNOWN
     * otherwise. */
    double images, audio_s, denoise_steps;
    struct text artifact;       /* a generated file; empty: none */
    char artifact_extension[8]; /* "png" */
    int status;                 /* HTTP status; 0 when there was none */
    char finish_reason[32];     /* "stop", "length" ...; "" unknown */
    char count_problem[96];     /* why a count reported by the server was dropped; "" for none */
    bool rejects_tools;   /* after a failure: the service or the model does not support tools */
    bool retryable;       /* after a failure: the same request may succeed later */
    double retry_after_s; /* delay requested by the server; UNKNOWN without */
};

/* Empty, with every figure unknown. */
void completion_init(struct completion *completion);
void completion_set_reason(struct completion *completion, const char *reason); /* finish_reason */
void completion_release(struct completion *completion);

/* Seconds to wait after failed attempt `attempt` (from 1): as requested by the server, else exponential backoff. */
double completion_backoff_s(const struct completion *completion, unsigned attempt);

/* Appends a chunk to `part` (content, reasoning or the arguments of a call) and records its arrival; empty chunks are
 * ignored. */
void completion_append(struct completion *completion, struct text *part, const char *bytes,
                       size_t length, nanos t);

/* ---- parsing a response ---- */

enum { COMPLETION_LIMIT = 64 * 1024 * 1024 }; /* bytes of content, reasoning and calls */

/* Called for content and reasoning as it arrives, e.g. for a progress display. */
typedef void (*completion_observer)(void *context, const char *bytes, size_t length, nanos t);

struct completion_sink {
    struct completion *completion;
    const char *server;           /* named in error messages */
    completion_observer observer; /* may be NULL */
    void *context;
    struct error *why;
    bool wants_score; /* the log-probabilities of an echoed prompt */
    /* Of several choices (n > 1) the first is used; if false they are an error. */
    bool skips_choices;
};

/* A chunk; NULL and "" are ignored. */
enum err completion_sink_content(struct completion_sink *sink, const char *piece, nanos t) MUST_USE;
enum err completion_sink_reasoning(struct completion_sink *sink, const char *piece, nanos t)
    MUST_USE;

/* A chunk of a tool call; strings may be NULL. */
struct call_chunk {
    int64_t index; /* that of the call in the stream; -1: none */
    const char *id, *name, *arguments;
    bool is_whole; /* the arguments are complete */
    bool is_start; /* of a new call, whatever its index and id */
};
enum err completion_sink_call(struct completion_sink *sink, const struct call_chunk *chunk, nanos t)
    MUST_USE;
/* "tool_calls": complete calls, or the chunks of a stream, joined by `index` and `id`. */
enum err completion_sink_calls(struct completion_sink *sink, const struct jv *calls, nanos t)
    MUST_USE;
/* Completes the completion: calls without an id get one, arguments that are not a JSON object become {"input": TEXT}.
 * ERR_BAD_VALUE for a call without a name. */
enum err completion_sink_finish(struct completion_sink *sink) MUST_USE;

/* ERR_BAD_VALUE that quotes the start of the invalid data. */
enum err completion_sink_malformed(struct completion_sink *sink, const char *bytes, size_t length);

/* ERR_LOST, retryable: the response ended before the server marked it complete. */
enum err completion_sink_truncated(struct completion_sink *sink);

/* Sets *count if the value is a non-negative integer, *s if it is a non-negative number; the number is
 * multiplied by `unit` (1e-9 for nanoseconds). */
void completion_read_count(int64_t *count, const struct jv *value);
void completion_read_seconds(double *s, const struct jv *value, double unit);

/* The sum is -1 if one of its counts is unknown. */
void completion_add_count(int64_t *sum, int64_t count, bool is_first);

/* Drops implausible counts, given a prompt of that many bytes: they would make energies per token appear measured.
 * count_problem says which. */
void completion_check_counts(struct completion *completion, size_t prompt_bytes);

/* ---- requests and errors ---- */

/* JSON of requests and of error messages, common to all protocols.  Nothing here is owned. */

/* Writes a request parameter, which the user gave as text, with its JSON type: a number (with its digits kept),
 * true, false, null, an array, an object or a quoted string as it is; anything else as a string. */
void message_write_param(struct json *json, const char *key, const char *value);

/* ERR_USAGE for a parameter that the client sets itself; `reserved` ends with NULL. */
enum err message_check_reserved(const struct params *params, const char *const *reserved,
                                struct error *why) MUST_USE;

/* Copies a string or integer that a server reported; any other value is omitted. */
void message_copy_value(struct json *json, const char *key, const struct jv *value);

/* The error message in an object, in any of the forms that servers use: {"error":{"message":...}},
 * {"error":"..."}, {"message":...}, {"detail":...}.  NULL when it holds no error. */
const char *message_error(const struct jv *object);

/* The value of a member of the outermost object, unparsed, without building a tree: a megabyte of context takes a
 * millisecond.  Empty if there is none, or the bytes up to it are not JSON. */
struct slice message_member(const char *bytes, size_t length, const char *key);

/* The question of a request, in its member `key`: the last user message of a list of messages, or a text or its parts.
 * *out is "" if there is none. */
void message_question(const char *bytes, size_t length, const char *key, struct text *out);

#define MESSAGE_UNSPECIFIED_ERROR "unspecified error"

#endif
