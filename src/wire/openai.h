/* A response in OpenAI's format (/chat/completions, /completions) as it arrives: an SSE stream, or one
 * JSON document from a server that does not stream.  A struct openai_response owns what it holds back:
 * init, release. */
#ifndef IPW_WIRE_OPENAI_H
#define IPW_WIRE_OPENAI_H

#include "wire/completion.h"
#include "wire/sse.h"

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

/* What the sink points to is borrowed until the release; the response itself must not move. */
void openai_response_init(struct openai_response *response, const struct completion_sink *sink);

/* Bytes of the body, with the signature that port/http.h wants; context is the response. */
enum err openai_response_feed(void *context, const char *bytes, size_t length, nanos t);

/* The HTTP exchange ended with `transport`: ERR_OK if the completion is complete, which its
 * finish_reason says.  A connection that broke after the server had finished is not a failure. */
enum err openai_response_end(struct openai_response *response, enum err transport) MUST_USE;
void openai_response_release(struct openai_response *response);

#endif
