/* Bytes of tokens on their way to the reply: whole characters only, and nothing of a stop string.
 * A struct speech owns its buffer and borrows the stop strings. */
#ifndef IPW_CLIENTS_LLAMA_SPEECH_H
#define IPW_CLIENTS_LLAMA_SPEECH_H

#include "clients/client.h"

enum { SPEECH_STOPS = 16 };

struct speech {
    const struct client_request *request;
    struct client_reply *reply;
    struct text held; /* what may be the beginning of a character or of a stop string */
    struct text shown;
    char *const *stops; /* ends with NULL; may be NULL */
    bool has_stopped;   /* a stop string came; it and what follows are left out */
};

/* Takes the bytes of a token that came at t; what cannot be part of more goes to the reply. */
enum err speech_take(struct speech *speech, const struct text *piece, nanos t) MUST_USE;

/* No more will come: what was held goes too. */
enum err speech_end(struct speech *speech, nanos t) MUST_USE;

void speech_release(struct speech *speech);

#endif
