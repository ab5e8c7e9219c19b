/* An answer of Ollama as it comes in: one JSON object a line, the last of them with the counts.
 * A struct ollama_answer owns what it holds back: init, release. */
#ifndef IPW_CLIENTS_WIRE_OLLAMA_ANSWER_H
#define IPW_CLIENTS_WIRE_OLLAMA_ANSWER_H

#include "clients/wire/intake.h"
#include "clients/wire/lines.h"

struct ollama_answer {
    struct intake in;
    struct lines lines;
    nanos last; /* bytes arrived */
    bool is_done;
};

/* All pointers are borrowed until the release. */
void ollama_answer_init(struct ollama_answer *answer, const struct client_request *request,
                        struct client_reply *reply, const char *server, struct error *why);

/* Bytes of the body, for port/http.h; context is the answer. */
enum err ollama_answer_take(void *context, const char *bytes, size_t length, nanos t);

/* The exchange ended with `transport`; is the answer complete? */
enum err ollama_answer_end(struct ollama_answer *answer, enum err transport) MUST_USE;
void ollama_answer_release(struct ollama_answer *answer);

#endif
