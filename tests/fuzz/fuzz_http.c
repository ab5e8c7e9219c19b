/* HTTP responses on our own connections: the head, the lines of the chunked coding and the bytes of the body, as they
 * arrive in one piece or two; heads of requests to us, and the checks of their Host and Origin headers. */
#include "fuzz/fuzz.h"

#include "port/http_plain.h"
#include "port/http_exchange.h"
#include "port/http_server.h"

/* As a connection does: unparsed bytes are kept, with a NUL after the last one. */
static size_t feed(struct plain_response *response, struct text *held, const char *bytes,
                   size_t length, bool *is_broken)
{
    size_t at = 0, body = 0;
    text_add_bytes(held, bytes, length);
    text_add(held, "");
    while (at < held->length && !*is_broken && !plain_response_is_complete(response)) {
        size_t left = held->length - at, some = plain_response_body(response, left);
        fuzz_check(some <= left);
        if (some) {
            plain_response_take(response, some);
            body += some;
            at += some;
            continue;
        }
        ssize_t taken = plain_response_parse(response, held->bytes + at, left);
        fuzz_check(taken <= (ssize_t)left);
        *is_broken = taken < 0;
        if (taken <= 0)
            break;
        at += (size_t)taken;
    }
    memmove(held->bytes, held->bytes + at, held->length - at);
    held->length -= at;
    held->bytes[held->length] = '\0';
    return body;
}

static void read_response(const char *bytes, size_t length, bool is_of_head)
{
    size_t body[2], cut[2] = {0, length / 2};
    bool is_broken[2] = {false, false};
    for (int i = 0; i < 2; i++) { /* whole, and in two pieces: the same body */
        struct plain_response response = {.is_of_head = is_of_head};
        struct text held = {0};
        body[i] = feed(&response, &held, bytes, cut[i], &is_broken[i]);
        body[i] += feed(&response, &held, bytes + cut[i], length - cut[i], &is_broken[i]);
        for (size_t at = 0; at < response.lines.length; at += strlen(response.lines.bytes + at) + 1)
            fuzz_check(at < response.lines.length);
        (void)http_header_find(&response.lines, "Retry-After");
        text_release(&response.lines);
        text_release(&held);
    }
    fuzz_check(is_broken[0] || is_broken[1] || body[0] == body[1]);
}

/* A head ends at the same byte wherever it is split, and what was parsed has no line end and is inside of it. */
static void read_request(const char *bytes, size_t length)
{
    struct request_head request = {0};
    const char *why = NULL;
    size_t end = request_head_find_end(bytes, length, 0);
    for (size_t searched = 0; searched < (end ? end : length); searched++)
        fuzz_check(request_head_find_end(bytes, length, searched) == end &&
                   request_head_find_end(bytes, searched, 0) == 0);
    if (!end)
        return;
    int status = request_head_parse(&request, bytes, end, &why);
    fuzz_check(status == 0 || (status >= 400 && why && str_is_plain(why)));
    if (status == 0) {
        fuzz_check(request.method[0] && request.target[0] && !strpbrk(request.target, " \r\n"));
        fuzz_check(request.is_http_1_0 || request_head_get(&request, "Host"));
        size_t strings = 0;
        for (const char *at = request.headers; at < request.headers_end; at += strlen(at) + 1) {
            fuzz_check(strings++ % 2 ? !strpbrk(at, "\r\n") : *at && !strpbrk(at, ": \t\r\n"));
            fuzz_check(at + strlen(at) < request.head + end);
        }
        fuzz_check(strings % 2 == 0);
    }
    request_head_release(&request);
}

static void run(const char *bytes, size_t length)
{
    static const char *const ALLOWED[] = {"gpu.example.org"};
    unsigned choice = fuzz_choose(&bytes, &length, 4);
    if (choice == 3) {
        read_request(bytes, length);
        return;
    }
    if (choice < 2) {
        read_response(bytes, length, choice == 1);
        return;
    }
    char *host = fuzz_string(bytes, length), *origin = strchr(host, '|');
    if (origin)
        *origin++ = '\0';
    for (int is_tls = 0; is_tls < 2; is_tls++) {
        struct http_access *access = http_access_new(&(struct http_access_options){
            .address = "192.0.2.1", .allowed = ALLOWED, .allowed_count = 1, .is_tls = is_tls});
        struct error why = {0};
        if (http_access_check_host(access, host, &why) == ERR_OK)
            fuzz_check(str_is_plain(host) && !strpbrk(host, " /,@"));
        else
            fuzz_check(why.text[0] && str_is_plain(why.text));
        if (http_access_check_origin(access, origin, host, &why))
            fuzz_check(origin && why.text[0] && str_is_plain(why.text));
        http_access_free(access);
    }
}

static void seeds(void)
{
    fuzz_seed(0, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 5\r\n"
                 "Retry-After: 3\r\n\r\nhello");
    fuzz_seed(0, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                 "Trailer: X\r\n\r\n5;a=b\r\nhello\r\n0A\r\n0123456789\r\n0\r\nX: y\r\n\r\n");
    fuzz_seed(0, "HTTP/1.0 502 Bad Gateway\nConnection: keep-alive, upgrade\n\nuntil the end");
    fuzz_seed(1, "HTTP/1.1 204 No Content\r\nConnection: close\r\nContent-Length: 7\r\n\r\n");
    fuzz_seed(2, "localhost:8080|http://localhost:8080");
    fuzz_seed(2, "[::1]:9|https://[::1]:9");
    fuzz_seed(2, "gpu.example.org|null");
    fuzz_seed(2, "127.0.0.1:65535|https://127.0.0.1:65535/");
    fuzz_seed(3, "POST /v1/x?y=%20 HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n"
                 "Expect: 100-continue\r\nConnection: close, TE\r\n\r\n{}");
    fuzz_seed(3, "GET / HTTP/1.0\nConnection: keep-alive\nX:\nY: \t a b \n\n");
    fuzz_seed(3, "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

static const char *const WORDS[] = {"HTTP/1.1 ",
                                    "HTTP/1.0 ",
                                    "\r\n\r\n",
                                    "\n\n",
                                    "Content-Length: ",
                                    "chunked",
                                    "Transfer-Encoding: ",
                                    "0\r\n\r\n",
                                    "FFFFFFFFFFFFFFFF",
                                    "18446744073709551615",
                                    "-1",
                                    "100",
                                    "304",
                                    "Connection: close",
                                    "user@",
                                    "[::",
                                    NULL};

const struct fuzz_target fuzz_http = {.run = run, .seeds = seeds, .words = WORDS};
