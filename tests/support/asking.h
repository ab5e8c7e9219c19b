/* One question to a client, with what came of it: the shape of most tests of clients.
 * A struct asked owns its reply: asked_release. */
#ifndef TESTS_SUPPORT_ASKING_H
#define TESTS_SUPPORT_ASKING_H

#include "clients/client.h"

struct asked {
    enum err err;
    struct error why;
    struct completion reply;
};

/* Opens a client of the driver on the play, asks it "Say hello" with the parameters (NULL: none) and
 * closes it. */
struct asked ask_play(const char *driver, const char *play, const char *client_params,
                      const char *params);

/* Asks an open client. */
struct asked ask_client(struct client *client, const char *params);
void asked_release(struct asked *asked);

/* What the server's normal play answers. */
#define PLAYED_ANSWER "Hello, w\xC3\xB6rld \xF0\x9F\x8E\x89 and\n\"good\" bye\\."

#endif
