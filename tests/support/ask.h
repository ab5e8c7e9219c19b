/* One request to a client and its result, as most tests of clients need it.
 * A struct ask_result owns its reply: ask_result_release. */
#ifndef TESTS_SUPPORT_ASK_H
#define TESTS_SUPPORT_ASK_H

#include "clients/client.h"

struct ask_result {
    enum err err;
    struct error why;
    struct completion reply;
};

/* Opens a client of the driver on the scenario, sends "Say hello" with the parameters (NULL: none) and
 * closes it. */
struct ask_result ask_scenario(const char *driver, const char *scenario, const char *client_params,
                               const char *params);

/* Sends the same prompt to an open client. */
struct ask_result ask_client(struct client *client, const char *params);
void ask_result_release(struct ask_result *asked);

/* The answer of the server's normal scenario. */
#define SCENARIO_ANSWER "Hello, w\xC3\xB6rld \xF0\x9F\x8E\x89 and\n\"good\" bye\\."

#endif
