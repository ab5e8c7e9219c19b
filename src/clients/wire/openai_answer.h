/* An answer in OpenAI's form as it comes in: an event stream, or one JSON document from a server that
 * does not stream.  A struct openai_answer owns what it holds back: init, release. */
#ifndef IPW_CLIENTS_WIRE_OPENAI_ANSWER_H
#define IPW_CLIENTS_WIRE_OPENAI_ANSWER_H

#include "clients/wire/intake.h"
#include "clients/wire/sse.h"

enum openai_form { OPENAI_UNDECIDED, OPENAI_STREAM, OPENAI_WHOLE, OPENAI_PAGE };

struct openai_answer {
    struct intake in;
    struct sse sse;
    struct text whole;
    nanos last; /* bytes arrived */
    enum openai_form form;
    bool is_done; /* the stream's own end mark, or a whole document */
};

/* All pointers are borrowed until the release. */
void openai_answer_init(struct openai_answer *answer, const struct client_request *request,
                        struct client_reply *reply, const char *server, struct error *why);

/* Bytes of the body, for port/http.h; context is the answer. */
enum err openai_answer_take(void *context, const char *bytes, size_t length, nanos t);

/* The exchange ended with `transport`; is the answer complete?  What ended after the server had said
 * that it was done is no failure. */
enum err openai_answer_end(struct openai_answer *answer, enum err transport) MUST_USE;
void openai_answer_release(struct openai_answer *answer);

#endif
