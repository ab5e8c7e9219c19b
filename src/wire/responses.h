/* Incremental parsers of responses: bytes of the body in, a completion out.  A response owns its buffers: init,
 * release.  What its sink points to is borrowed until the release. */
#ifndef IPW_WIRE_RESPONSES_H
#define IPW_WIRE_RESPONSES_H

#include "wire/completion.h"
#include "wire/sse.h"

/* ---- OpenAI's format (/chat/completions, /completions, /responses): an SSE stream, or one JSON document from a server
 * that does not stream ---- */

enum openai_format { OPENAI_UNKNOWN, OPENAI_STREAM, OPENAI_DOCUMENT, OPENAI_HTML };

struct openai_response {
    struct completion_sink sink;
    struct sse sse;
    struct text document;
    nanos last; /* when the last bytes arrived */
    enum openai_format format;
    bool is_done; /* the stream's [DONE], also sent by an interrupted one, or a complete document */
};

/* The struct must not be moved. */
void openai_response_init(struct openai_response *response, const struct completion_sink *sink);

/* Bytes of the body, with the callback signature of port/http.h; context is the response. */
enum err openai_response_feed(void *context, const char *bytes, size_t length, nanos t);

/* The HTTP exchange ended with `transport`: ERR_OK if the completion is complete, according to its finish_reason.  A
 * connection that broke after that is not an error. */
enum err openai_response_end(struct openai_response *response, enum err transport) MUST_USE;
void openai_response_release(struct openai_response *response);

/* ---- Ollama's format (/api/generate, /api/chat): one JSON object per line, the last one with the counts ---- */

struct ollama_response {
    struct completion_sink sink;
    struct line_reader lines;
    nanos last; /* when the last bytes arrived */
    bool is_done;
};

void ollama_response_init(struct ollama_response *response, const struct completion_sink *sink);

enum err ollama_response_feed(void *context, const char *bytes, size_t length, nanos t);
enum err ollama_response_end(struct ollama_response *response, enum err transport) MUST_USE;
void ollama_response_release(struct ollama_response *response);

#endif
