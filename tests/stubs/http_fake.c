#include "stubs/http_fake.h"

#include <stdlib.h>

#include "port/http.h"

struct http_fake http_fake;

struct http {
    int unused;
};

enum err http_available(struct error *why)
{
    (void)why;
    return ERR_OK;
}

enum err http_open(struct http **out, struct error *why)
{
    (void)why;
    *out = calloc(1, sizeof **out);
    http_fake.open++;
    return ERR_OK;
}

void http_close(struct http *http)
{
    free(http);
    http_fake.open--;
}

enum err http_perform(struct http *http, const struct http_request *request,
                      struct http_response *out, struct error *why)
{
    struct text body = {0};
    enum err err = http_fetch(http, request->url, request->headers, request->timeout, SIZE_MAX,
                              &body, out, why);
    if (!err && request->take && body.length)
        err = request->take(request->context, body.bytes, body.length, 1);
    text_release(&body);
    return err;
}

enum err http_fetch(struct http *http, const char *url, const struct params *headers, nanos timeout,
                    size_t max, struct text *body, struct http_response *out, struct error *why)
{
    (void)http, (void)timeout, (void)max;
    const char *authorization = params_get(headers, "Authorization");
    *out = (struct http_response){.status = 200, .retry_after_s = UNKNOWN};
    if (http_fake.count == HTTP_FAKE_REQUESTS_MAX)
        abort();
    str_copy(http_fake.urls[http_fake.count], sizeof http_fake.urls[0], url);
    str_copy(http_fake.authorizations[http_fake.count], sizeof http_fake.authorizations[0],
             authorization ? authorization : "");
    http_fake.count++;
    struct text reply = {0};
    enum err err = http_fake.answer(url, &reply, &out->status, &out->retry_after_s);
    struct text *to = out->status == 200 ? body : &out->error_body;
    text_add_bytes(to, text_get(&reply), reply.length);
    text_release(&reply);
    return err ? err_set(why, err, "%s: %s", url, err_text(err)) : ERR_OK;
}
