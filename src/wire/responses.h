/* Responses as they arrive: bytes of the body go in, a completion comes out.  A response owns what it holds back: init,
 * release.  What its sink points to is borrowed until the release. */
#ifndef IPW_WIRE_RESPONSES_H
#define IPW_WIRE_RESPONSES_H

#include "wire/completion.h"
#include "wire/sse.h"

/* ---- OpenAI's format (/chat/completions, /completions, /responses): an SSE stream, or one JSON document from a server that does
 * not stream ---- */

enum openai_format { OPENAI_UNKNOWN, OPENAI_STREAM, OPENAI_DOCUMENT, OPENAI_HTML };

struct openai_response {
    struct completion_sink sink;
    struct sse sse;
    struct text document;
    nanos last; /* when the last bytes arrived */
    enum openai_format format;
    bool
        is_done; /* the stream's [DONE], which an interrupted one has too, or a complete document */
};

/* The response itself must not move. */
void openai_response_init(struct openai_response *response, const struct completion_sink *sink);

/* Bytes of the body, with the signature that port/http.h wants; context is the response. */
enum err openai_response_feed(void *context, const char *bytes, size_t length, nanos t);

/* The HTTP exchange ended with `transport`: ERR_OK if the completion is complete, which its
 * finish_reason says.  A connection that broke after the server had finished is not a failure. */
enum err openai_response_end(struct openai_response *response, enum err transport) MUST_USE;
void openai_response_release(struct openai_response *response);

/* ---- Ollama's (/api/generate, /api/chat): one JSON object per line, the last of them with the counts ---- */

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
