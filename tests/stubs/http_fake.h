/* Replaces the HTTP client: responses come from a function of the test, and every request is kept.
 * A test that includes this uses it instead of src/port/http.c. */
#ifndef TESTS_STUBS_HTTP_FAKE_H
#define TESTS_STUBS_HTTP_FAKE_H

#include "core/err.h"
#include "core/text.h"

enum { HTTP_FAKE_REQUESTS_MAX = 64 };

struct http_fake {
    /* Answers one request: fills the body, sets *status and optionally *retry_after_s. An error is a
     * connection error. */
    enum err (*answer)(const char *url, struct text *body, int *status, double *retry_after_s);
    char urls[HTTP_FAKE_REQUESTS_MAX][300];
    char authorizations[HTTP_FAKE_REQUESTS_MAX][64];
    unsigned count;
    int open;
};

extern struct http_fake http_fake;

#endif
