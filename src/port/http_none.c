/* A build without libcurl: nothing can be fetched, and that is told. */
#include "port/http.h"

enum err http_available(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED,
                   "built without libcurl: install libcurl4-openssl-dev and build again");
}

enum err http_open(struct http **out, struct error *why)
{
    *out = NULL;
    return http_available(why);
}

void http_close(struct http *http)
{
    (void)http;
}

enum err http_perform(struct http *http, const struct http_request *request,
                      struct http_response *out, struct error *why)
{
    (void)http, (void)request;
    *out = (struct http_response){.retry_after_s = UNKNOWN};
    return http_available(why);
}

void http_response_release(struct http_response *response)
{
    text_release(&response->error_body);
}

enum err http_fetch(struct http *http, const char *url, const struct params *headers, nanos timeout,
                    size_t most, struct text *body, struct http_response *out, struct error *why)
{
    (void)http, (void)url, (void)headers, (void)timeout, (void)most, (void)body;
    *out = (struct http_response){.retry_after_s = UNKNOWN};
    return http_available(why);
}
