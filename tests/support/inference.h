/* The scripted inference server of tests/fakes/inference_server.py as a child of the test: one per
 * test program, started and stopped as its group fixture. Its scenarios are documented there. */
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

/* "http://127.0.0.1:PORT/SCENARIO"; valid until the fourth call after it. */
const char *inference_url(const char *scenario);

/* A URL of this machine on which nothing listens; valid for as long. */
const char *inference_unused_url(void);

/* The request before the last `back` ones, as the server received it: method, path, headers (names
 * in lower case), body, connection. For jv_free. */
struct jv *inference_request(unsigned back);
unsigned inference_request_count(void);

/* Opens a driver's client on a scenario; params may be NULL. Fails the test on an error. */
void inference_client(struct client *client, const char *driver, const char *scenario,
                      const char *params);

/* Skips the test where libcurl is missing. */
#define NEEDS_HTTP() SKIP_WITHOUT(http_available)
bool inference_is_possible(void);

#endif
