/* A response of Ollama (/api/generate, /api/chat) as it streams in: one JSON object per line, the last
 * of them with the counts.  A struct ollama_response owns what it holds back: init, release. */
#ifndef IPW_WIRE_OLLAMA_H
#define IPW_WIRE_OLLAMA_H

#include "wire/completion.h"
#include "wire/sse.h"

struct ollama_response {
    struct completion_sink sink;
    struct line_reader lines;
    nanos last; /* when the last bytes arrived */
    bool is_done;
};

/* What the sink points to is borrowed until the release. */
void ollama_response_init(struct ollama_response *response, const struct completion_sink *sink);

/* Bytes of the body, with the signature that port/http.h wants; context is the response. */
enum err ollama_response_feed(void *context, const char *bytes, size_t length, nanos t);

/* The HTTP exchange ended with `transport`: ERR_OK if the completion is complete. */
enum err ollama_response_end(struct ollama_response *response, enum err transport) MUST_USE;
void ollama_response_release(struct ollama_response *response);

#endif
