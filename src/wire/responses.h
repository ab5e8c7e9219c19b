/* Incremental parsers of responses: bytes of the body in, a completion out.  A response owns its buffers: init,
 * release.  What its sink points to is borrowed until the release. */
#ifndef IPW_WIRE_RESPONSES_H
#define IPW_WIRE_RESPONSES_H

#include "wire/completion.h"
#include "wire/sse.h"

/* ---- events: an SSE stream of JSON objects, or one JSON document from a server that does not stream ---- */

enum event_framing { EVENT_UNKNOWN, EVENT_STREAM, EVENT_DOCUMENT, EVENT_HTML };

struct event_response;
/* Reads an event of this name, or the document ("").  A document that is an array is read item by item. */
typedef enum err event_reader(struct event_response *response, const struct jv *root,
                              const char *event, nanos t);

struct event_response {
    struct completion_sink sink;
    event_reader *read; /* of the format */
    struct sse sse;
    struct text document;
    nanos last; /* when the last bytes arrived */
    enum event_framing framing;
    bool is_done; /* the stream's [DONE], also sent by an interrupted one, or a complete document */
    bool
        has_ended; /* the reader has seen the last event of the format; else a finish_reason tells */
};

/* The struct must not be moved. */
void event_response_init(struct event_response *response, event_reader *read,
                         const struct completion_sink *sink);
/* OpenAI's /chat/completions, /completions and /responses, llama.cpp's /completion and /infill. */
void openai_response_init(void *response, const struct completion_sink *sink);

/* Bytes of the body, with the callback signature of port/http.h; context is the response. */
enum err event_response_feed(void *context, const char *bytes, size_t length, nanos t);

/* The HTTP exchange ended with `transport`: ERR_OK if the completion is complete.  A connection that broke after that
 * is not an error. */
enum err event_response_end(void *response, enum err transport) MUST_USE;
bool event_response_is_done(const void *response);
void event_response_release(void *response);

/* For readers: the error that an event or a document reports, {"error": ...}, {"object": "error", ...} or an event of
 * that name; ERR_OK if it reports none. */
enum err event_error(struct completion_sink *sink, const struct jv *root, const char *event)
    MUST_USE;

/* ---- Anthropic's format (/v1/messages): events, fed and ended as above ---- */

struct anthropic_response {
    struct event_response events; /* first: a pointer to it is one to this */
    /* Parts of the prompt, in tokens; -1: unknown. */
    int64_t input, cache_written, cache_read;
};

void anthropic_response_init(void *response, const struct completion_sink *sink);

/* ---- Ollama's format (/api/generate, /api/chat): one JSON object per line, the last one with the counts ---- */

struct ollama_response {
    struct completion_sink sink;
    struct line_reader lines;
    nanos last; /* when the last bytes arrived */
    bool is_done;
};

/* ---- documents of which only the token counts are read (embeddings, rerank): vectors are skipped, not parsed ---- */

struct counts_response {
    struct completion_sink sink;
    struct text document;
};

/* ---- all formats ---- */

union response_state {
    struct event_response events;
    struct anthropic_response anthropic;
    struct ollama_response ollama;
    struct counts_response counts;
};

/* A parser; its state is one of the structs above. */
struct response_format {
    const char *name;
    void (*init)(void *state, const struct completion_sink *sink);
    enum err (*feed)(void *state, const char *bytes, size_t length, nanos t);
    enum err (*end)(void *state, enum err transport);
    /* Whether the response is complete by its own end marker, even if the transport has not ended. */
    bool (*is_done)(const void *state);
    void (*release)(void *state);
};

enum response_kind {
    RESPONSE_OPENAI,
    RESPONSE_ANTHROPIC,
    RESPONSE_TGI,
    RESPONSE_OLLAMA,
    RESPONSE_COUNTS,
    RESPONSE_KINDS
};
extern const struct response_format RESPONSE_FORMATS[RESPONSE_KINDS];

#endif
