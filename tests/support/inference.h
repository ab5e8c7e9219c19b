/* The scripted inference server of tests/fakes/inference_server.py as a child of the test: one a test
 * program, started and stopped as its group fixture.  Its plays are described there. */
#ifndef TESTS_SUPPORT_INFERENCE_H
#define TESTS_SUPPORT_INFERENCE_H

#include <stdbool.h>

#include "clients/client.h"
#include "port/http.h"
#include "port/json_read.h"

struct jv;

/* Group set-up and teardown. */
int inference_start(void **state);
int inference_stop(void **state);

/* "http://127.0.0.1:PORT/PLAY"; valid until the fourth call after it. */
const char *inference_url(const char *play);

/* An address of this machine at which nobody listens; likewise. */
const char *inference_nobody(void);

/* The request before the last `back` ones, as the server got it: method, path, headers (names in
 * lower case), body, connection.  For jv_free. */
struct jv *inference_request(unsigned back);
unsigned inference_request_count(void);

/* Opens a driver's client on a play; params may be NULL.  Fails the test when that fails. */
void inference_client(struct client *client, const char *driver, const char *play,
                      const char *params);

/* Skips the test where this build cannot speak HTTP or read JSON. */
#define NEEDS_HTTP()                                                                               \
    do {                                                                                           \
        SKIP_WITHOUT(http_available);                                                              \
        SKIP_WITHOUT(jv_available);                                                                \
    } while (0)
bool inference_is_possible(void);

#endif
