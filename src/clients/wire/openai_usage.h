/* Counts and durations that servers with OpenAI's interface tell, each in its own dialect. */
#ifndef IPW_CLIENTS_WIRE_OPENAI_USAGE_H
#define IPW_CLIENTS_WIRE_OPENAI_USAGE_H

#include "clients/client.h"

struct jv;

/* Takes what the root of an answer or of an event tells; what it does not tell stays as it was. */
void openai_usage_read(const struct jv *root, struct client_reply *reply);

#endif
