/* Uses libcurl's multi interface: the easy interface checks for cancellation only about once a second while no data
 * arrives. */
#include "port/http.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "port/http_library.h"
#include "port/url.h"

enum {
    CONNECT_SECONDS = 10,
    CANCEL_POLL_MS = 40, /* how often the cancel flag is checked while no data arrives */
    IDLE_POLL_MS = 1000,
    REDIRECTS_MAX = 5,
};

enum err http_available(struct error *why)
{
    return curl_load(why);
}

struct http {
    CURLM *multi; /* keeps connections alive between requests */
    CURL *easy;
};

enum err http_open(struct http **out, struct error *why)
{
    *out = NULL;
    enum err err = http_available(why);
    if (err)
        return err;
    struct http *http = memory_zeroed(1, sizeof *http);
    if (http) {
        http->multi = memory_need(curl.multi_init());
        http->easy = memory_need(curl.easy_init());
    }
    if (!http || !http->multi || !http->easy) {
        http_close(http);
        return err_set(why, ERR_NO_MEMORY, "out of memory for an HTTP connection");
    }
    *out = http;
    return ERR_OK;
}

void http_close(struct http *http)
{
    if (!http)
        return;
    if (http->easy)
        curl.easy_cleanup(http->easy);
    if (http->multi)
        curl.multi_cleanup(http->multi);
    free(http);
}

/* ---- one request ---- */

struct exchange {
    struct http *http;
    const struct http_request *request;
    struct http_response *response;
    struct url url;
    enum err taken;   /* what the callback returned */
    bool body_is_cut; /* an error body was longer than the limit */
    bool has_headers; /* the response's headers are complete */
    int socket_errno; /* errno of a failed socket(); 0: none */
};

static bool is_success(int status)
{
    return status >= 200 && status < 300;
}

static size_t on_body(char *bytes, size_t unit, size_t count, void *context)
{
    nanos t = clock_now(); /* first, because this is the arrival time */
    struct exchange *x = context;
    size_t length = unit * count;
    if (length == 0)
        return 0;
    if (!x->response->first_byte)
        x->response->first_byte = t;
    if (is_success(x->response->status)) {
        if (x->request->take)
            x->taken = x->request->take(x->request->context, bytes, length, t);
        return x->taken ? 0 : length;
    }
    struct text *body = &x->response->error_body;
    size_t space = HTTP_ERROR_BODY_MAX - body->length;
    text_add_bytes(body, bytes, length < space ? length : space);
    x->body_is_cut = length > space;
    return x->body_is_cut ? 0 : length;
}

static void read_content_type(struct http_response *response, char *value)
{
    value[strcspn(value, ";")] = '\0';
    value = str_trim(value);
    for (char *c = value; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    chars_copy(response->content_type, value);
}

/* Seconds, or an HTTP date. */
static void read_retry_after(struct http_response *response, const char *value)
{
    double s;
    time_t date;
    if (parse_double(value, &s) == ERR_OK)
        response->retry_after_s = s > 0 ? s : 0;
    else if ((date = curl.getdate(value, NULL)) > 0) {
        s = (double)date - seconds(clock_wall());
        response->retry_after_s = s > 0 ? s : 0;
    }
}

/* The whole value: it may be longer than the headers that are parsed. */
static void keep_header(struct exchange *x, const char *bytes, size_t length)
{
    const char *name = x->request->kept_header;
    size_t at = name ? strlen(name) : 0;
    if (!name || length <= at || bytes[at] != ':' || strncasecmp(bytes, name, at) != 0)
        return;
    struct text whole = {0};
    text_add_bytes(&whole, bytes + at + 1, length - at - 1);
    text_clear(&x->response->kept);
    text_add(&x->response->kept, whole.failed ? "" : str_trim(whole.bytes));
    text_release(&whole);
}

static size_t on_header(char *bytes, size_t unit, size_t count, void *context)
{
    struct exchange *x = context;
    struct http_response *response = x->response;
    size_t length = unit * count;
    char line[1024];
    chars_format(line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), bytes);
    if (str_starts(line, "HTTP/")) { /* after a redirect or "100 Continue" */
        long status = strtol(line + strcspn(line, " "), NULL, 10);
        response->status = (int)status;
        response->content_type[0] = response->server[0] = '\0';
        response->retry_after_s = UNKNOWN;
        text_clear(&response->error_body);
        text_clear(&response->kept);
        x->has_headers = false;
        return length;
    }
    x->has_headers = x->has_headers || str_trim(line)[0] == '\0';
    keep_header(x, bytes, length);
    char *colon = strchr(line, ':');
    if (!colon)
        return length;
    *colon = '\0';
    char *value = str_trim(colon + 1);
    if (str_equal_nocase(line, "content-type"))
        read_content_type(response, value);
    else if (str_equal_nocase(line, "server"))
        chars_copy(response->server, value);
    else if (str_equal_nocase(line, "retry-after"))
        read_retry_after(response, value);
    else if (str_equal_nocase(line, "grpc-status"))
        response->grpc_status = (int)strtol(value, NULL, 10);
    else if (str_equal_nocase(line, "grpc-message"))
        chars_copy(response->grpc_message, plain_text(value).text);
    return length;
}

/* A header value must not contain a line end: it could inject headers. */
static bool is_one_line(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 && *text != '\t')
            return false;
    return true;
}

static enum err build_headers(const struct params *headers, struct curl_slist **list,
                              struct error *why)
{
    /* "Expect: 100-continue" would delay a long prompt by up to a second. */
    enum err err = curl_add_line(list, "Expect:");
    for (size_t i = 0; headers && i < headers->count && !err; i++) {
        const struct param *h = &headers->items[i];
        if (!is_one_line(h->key) || !is_one_line(h->value) || strpbrk(h->key, ": "))
            return err_set(why, ERR_USAGE, "'%.60s' cannot be an HTTP header", h->key);
        struct text line = {0};
        /* For libcurl "Name:" removes a header, and "Name;" sends it empty. */
        if (h->value[0])
            text_addf(&line, "%s: %s", h->key, h->value);
        else
            text_addf(&line, "%s;", h->key);
        err = line.failed ? ERR_NO_MEMORY : curl_add_line(list, text_get(&line));
        text_release(&line);
    }
    return err ? err_set(why, err, "out of memory for HTTP headers") : ERR_OK;
}

static long milliseconds(nanos t)
{
    return (long)((t + NS_PER_MS - 1) / NS_PER_MS);
}

static void set_transport(CURL *easy, const struct http_request *request, const struct url *url)
{
    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
    curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     request->connect_timeout > 0 ? milliseconds(request->connect_timeout)
                                                  : CONNECT_SECONDS * 1000L);
    curl_set_peer(easy, url_is_local(url));
}

static void set_request(CURL *easy, const struct http_request *request, const char *url,
                        struct curl_slist *headers)
{
    curl.easy_setopt(easy, CURLOPT_URL, url);
    curl.easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(easy, CURLOPT_USERAGENT, "ipw/" IPW_VERSION);
    curl.easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    if (request->is_http2) {
        curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
        /* libcurl 7.88 fails on a connection whose last stream was ended by the callback. */
        curl.easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    }
    if (str_equal(request->method, "POST")) {
        curl.easy_setopt(easy, CURLOPT_POST, 1L);
        curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
        curl.easy_setopt(easy, CURLOPT_POSTFIELDS, request->body ? request->body : "");
    } else if (str_equal(request->method, "DELETE")) {
        curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

/* libcurl's default does not report why it failed. */
static curl_socket_t on_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)purpose;
    struct exchange *x = context;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    x->socket_errno = fd < 0 ? errno : 0;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static void set_callbacks(CURL *easy, struct exchange *x)
{
    curl.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    curl.easy_setopt(easy, CURLOPT_OPENSOCKETDATA, x);
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl.easy_setopt(easy, CURLOPT_WRITEDATA, x);
    curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl.easy_setopt(easy, CURLOPT_HEADERDATA, x);
}

static bool is_canceled(const struct http_request *request)
{
    return request->cancel && atomic_load(request->cancel);
}

/* How long to wait for data before the flag and the clock are looked at again; 0 when the request's time is over.  The
 * limit is by our clock, not by libcurl's. */
static int poll_ms(const struct exchange *x)
{
    const struct http_request *request = x->request;
    int most = request->cancel ? CANCEL_POLL_MS : IDLE_POLL_MS;
    if (request->timeout <= 0)
        return most;
    nanos left = request->timeout - (clock_now() - x->response->sent);
    if (left <= 0)
        return 0;
    return left < most * NS_PER_MS ? (int)milliseconds(left) : most;
}

/* Runs the prepared transfer to its end; true when it was canceled. */
static bool drive(struct exchange *x, CURLcode *result)
{
    CURLM *multi = x->http->multi;
    int running = 1, left, ms = 1;
    *result = CURLE_FAILED_INIT;
    if (curl.multi_add_handle(multi, x->http->easy))
        return false;
    bool canceled = false;
    while (running && !(canceled = is_canceled(x->request)) && (ms = poll_ms(x)) > 0) {
        if (curl.multi_perform(multi, &running))
            break;
        if (running)
            curl.multi_poll(multi, NULL, 0, ms, NULL);
    }
    if (!ms)
        *result = CURLE_OPERATION_TIMEDOUT;
    for (CURLMsg *message; (message = curl.multi_info_read(multi, &left));)
        if (message->msg == CURLMSG_DONE)
            *result = message->data.result;
    return canceled;
}

/* Whether a connection was established.  A reused one has no connect time. */
static bool was_connected(const struct exchange *x)
{
    curl_off_t connect_us = 0;
    long request_bytes = 0;
    curl.easy_getinfo(x->http->easy, CURLINFO_CONNECT_TIME_T, &connect_us);
    curl.easy_getinfo(x->http->easy, CURLINFO_REQUEST_SIZE, &request_bytes);
    return connect_us > 0 || request_bytes > 0 || x->response->status > 0;
}

static bool was_tls(const struct exchange *x, CURLcode result)
{
    curl_off_t handshake_us = 0;
    curl.easy_getinfo(x->http->easy, CURLINFO_APPCONNECT_TIME_T, &handshake_us);
    return handshake_us > 0 || result == CURLE_PEER_FAILED_VERIFICATION;
}

static enum err explain_timeout(const struct exchange *x, struct error *why)
{
    const struct http_request *request = x->request;
    nanos connect =
        request->connect_timeout > 0 ? request->connect_timeout : CONNECT_SECONDS * NS_PER_S;
    nanos limit = x->response->connected || (request->timeout > 0 && request->timeout < connect)
                      ? request->timeout
                      : connect;
    const char *missing = "no connection";
    if (x->response->connected)
        missing = x->response->first_byte ? "incomplete response" : "no response";
    return err_set(why, ERR_TIMEOUT, "%s: %s within %.3g s", x->url.server, missing,
                   seconds(limit));
}

static enum err explain_refusal(const struct exchange *x, struct error *why)
{
    long number = 0;
    curl.easy_getinfo(x->http->easy, CURLINFO_OS_ERRNO, &number);
    char reason[64] = "no connection";
    if (number)
        strerror_r((int)number, reason, sizeof reason);
    return err_set(why, ERR_LOST, "cannot reach %s (%s): is the server running there?",
                   x->url.server, reason);
}

enum { TOO_LARGE = 100 }; /* CURLE_TOO_LARGE, of libcurl 8.6 and later */

static enum err header_too_long(const char *server, struct error *why)
{
    return err_set(why, ERR_BAD_VALUE, "%s sent response headers that are too long", server);
}

/* DNS queries use descriptors too. */
static bool lacks_descriptors(const struct exchange *x, CURLcode result)
{
    if (x->socket_errno == EMFILE || x->socket_errno == ENFILE)
        return true;
    if (result != CURLE_COULDNT_RESOLVE_HOST && result != CURLE_COULDNT_RESOLVE_PROXY)
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool lacks = fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (fd >= 0)
        close(fd);
    return lacks;
}

static enum err explain(const struct exchange *x, CURLcode result, struct error *why)
{
    const char *server = x->url.server;
    if (lacks_descriptors(x, result))
        return err_set(why, ERR_TOO_MANY_FILES,
                       "no connection to %s: this process has too many open files (ulimit -n)",
                       server);
    if ((int)result == TOO_LARGE)
        return header_too_long(server, why);
    switch (result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return err_set(why, ERR_NOT_FOUND, "%s: unknown host: check the URL", server);
    case CURLE_COULDNT_RESOLVE_PROXY:
        return err_set(why, ERR_NOT_FOUND, "%s: proxy not found: check http_proxy and https_proxy",
                       server);
    case CURLE_COULDNT_CONNECT:
        return explain_refusal(x, why);
    case CURLE_OPERATION_TIMEDOUT:
        return explain_timeout(x, why);
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return err_set(why, ERR_LOST, "%s closed the connection %s: see its log", server,
                       x->response->first_byte ? "in the middle of the response"
                                               : "without a response");
    case CURLE_URL_MALFORMAT:
        return err_set(why, ERR_USAGE, "%s is not a valid URL", server);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
        return err_set(why, ERR_IO, "%s is not an HTTP server: check the port", server);
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(
            why, ERR_IO,
            "%s: its certificate is not trusted (set CURL_CA_BUNDLE to a file that contains it)",
            server);
    case CURLE_OUT_OF_MEMORY: /* some versions return this for headers that exceed their limit */
        if (x->response->status && !x->has_headers)
            return header_too_long(server, why);
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", server);
    default:
        return err_set(why, ERR_IO, "%s: %s", server, curl.easy_strerror(result));
    }
}

/* Maps the result of libcurl to our error and message. */
static enum err map_result(const struct exchange *x, CURLcode result, bool canceled,
                           struct error *why)
{
    if (canceled)
        return err_set(why, ERR_INTERRUPTED, "%s: the request was canceled", x->url.server);
    if (x->taken)
        return x->taken;
    if (x->response->error_body.failed)
        return err_set(why, ERR_NO_MEMORY, "%s: out of memory", x->url.server);
    return result != CURLE_OK && !x->body_is_cut ? explain(x, result, why) : ERR_OK;
}

/* One request to x->url, whose text is *target; a redirect target replaces *target, which is cleared when there is
 * none. */
static enum err perform_once(struct exchange *x, struct text *target, const struct params *headers,
                             struct error *why)
{
    struct http_response *response = x->response;
    struct curl_slist *list = NULL;
    enum err err = build_headers(headers, &list, why);
    if (!err) {
        CURL *easy = x->http->easy;
        CURLcode result;
        const char *next = NULL;
        curl.easy_reset(easy); /* resets options, keeps connections */
        set_transport(easy, x->request, &x->url);
        set_request(easy, x->request, text_get(target), list);
        set_callbacks(easy, x);
        bool canceled = drive(x, &result);
        response->done = clock_now();
        response->connected = was_connected(x);
        response->is_tls = was_tls(x, result);
        err = map_result(x, result, canceled, why);
        curl.easy_getinfo(easy, CURLINFO_REDIRECT_URL, &next);
        struct text following = {0};
        text_add(&following, next ? next : "");
        text_release(target);
        *target = following;
        curl.multi_remove_handle(x->http->multi, easy);
    }
    curl.slist_free_all(list);
    return err;
}

/* Follows redirects without libcurl, which would send headers such as X-Api-Key to any host that a redirect names. */
static enum err perform(struct exchange *x, struct error *why)
{
    bool may_follow = str_equal(x->request->method, "GET");
    const struct params *headers = x->request->headers;
    struct text target = {0};
    text_add(&target, x->request->url);
    enum err err = url_read(x->request->url, &x->url, why);
    x->response->sent = clock_now();
    for (unsigned followed = 0; !err; followed++) {
        err = perform_once(x, &target, headers, why);
        if (err || !may_follow || !target.length)
            break;
        struct url next;
        if (followed == REDIRECTS_MAX)
            err = err_set(why, ERR_IO, "%s: more than %d redirects", x->url.server, REDIRECTS_MAX);
        else
            err = url_read(text_get(&target), &next, why);
        if (!err && x->request->may_follow)
            err = x->request->may_follow(x->request->context, &next, why);
        if (err)
            break;
        if (!url_same_origin(&x->url, &next))
            headers = NULL; /* not sent after a further redirect either */
        x->url = next;
        x->response->first_byte = 0;
        x->body_is_cut = false;
    }
    text_release(&target);
    return err;
}

enum err http_perform(struct http *http, const struct http_request *request,
                      struct http_response *out, struct error *why)
{
    *out = (struct http_response){.sent = clock_now(), .retry_after_s = UNKNOWN, .grpc_status = -1};
    struct exchange x = {.http = http, .request = request, .response = out};
    enum err err = perform(&x, why);
    if (!out->done)
        out->done = clock_now();
    return err;
}

/* ---- a complete body ---- */

struct fetch {
    const char *url;
    struct text *body;
    size_t limit;
    struct error *why;
};

static enum err fetch_take(void *context, const char *bytes, size_t length, nanos t)
{
    (void)t;
    struct fetch *fetch = context;
    if (length > fetch->limit - fetch->body->length) {
        struct url url;
        bool is_url = !url_read(fetch->url, &url, NULL);
        return err_set(fetch->why, ERR_BAD_VALUE, "%s: the response is longer than %zu bytes",
                       is_url ? url.server : "server", fetch->limit);
    }
    text_add_bytes(fetch->body, bytes, length);
    return fetch->body->failed ? err_set(fetch->why, ERR_NO_MEMORY, "out of memory") : ERR_OK;
}

enum err http_fetch(struct http *http, const char *url, const struct params *headers, nanos timeout,
                    size_t limit, struct text *body, struct http_response *out, struct error *why)
{
    text_clear(body);
    struct fetch fetch = {.url = url, .body = body, .limit = limit, .why = why};
    const struct http_request request = {
        .method = "GET",
        .url = url,
        .headers = headers,
        .timeout = timeout,
        .take = fetch_take,
        .context = &fetch,
    };
    return http_perform(http, &request, out, why);
}
