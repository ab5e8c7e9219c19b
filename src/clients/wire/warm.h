/* Making a model answer once, so that the first query is not a cold one.  Nothing here is owned. */
#ifndef IPW_CLIENTS_WIRE_WARM_H
#define IPW_CLIENTS_WIRE_WARM_H

#include "clients/client.h"

#define LOOK_TIMEOUT (10 * NS_PER_S) /* for any question but a prompt */

/* The time that a look at the service may take out of `timeout` (0: none). */
nanos warm_look_timeout(nanos timeout);

/* Asks for one token, the limit under the name that the service has for it, in what is left of
 * `timeout` since `began`. */
enum err warm_up(struct client *client, const char *model, const char *limit, nanos began,
                 nanos timeout, struct error *why) MUST_USE;

#endif
