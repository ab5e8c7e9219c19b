/* test: valgrind */
/* The server over loopback: full tables of connections and of descriptors, bodies that never end, malformed heads.
 * Server and clients share this thread, so that no step depends on another's speed, and time passes only where
 * the test sleeps, so that no limit depends on the machine's. */
#define _GNU_SOURCE
#include "port/http_server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/event_loop.h"
#include "port/thread.h"
#include "support/stepped_clock.h"
#include "support/unit.h"

enum { LARGE = 8 << 20 }; /* bytes: more than the buffers of a connection hold */

enum { PATIENCE = 1000 * 1000 }; /* turns of the loop */
#define LIMIT (60 * NS_PER_S)    /* of what is slow */
enum { MANY = 12 };

static struct event_loop *loop;
static struct http_server *server;
static unsigned served; /* requests that reached the handler */

static unsigned ended[2]; /* exchanges, by whether the client received all */

static struct http_exchange *late; /* of the last request of /late */

static int pushed_to; /* the client of /push, and what it received while the handler ran */
static char pushed[512];

/* The client accepts no more than its buffers hold, and that it does not read does not end the response. */
static void push(struct http_exchange *exchange, bool is_large)
{
    char *bytes = calloc(1, LARGE);
    assert_non_null(bytes);
    memset(bytes, 'x', LARGE);
    http_exchange_begin(exchange, 200, HTTP_LENGTH_UNKNOWN);
    http_exchange_push(exchange); /* nothing but the head */
    http_exchange_send(exchange, "abc", 3);
    http_exchange_push(exchange);
    ssize_t got = recv(pushed_to, pushed, sizeof pushed - 1, MSG_WAITALL | MSG_PEEK | MSG_DONTWAIT);
    pushed[got > 0 ? got : 0] = '\0';
    http_exchange_send(exchange, bytes, is_large ? LARGE : 5);
    http_exchange_push(exchange);
    http_exchange_push(exchange);
    http_exchange_end(exchange, true);
    free(bytes);
}

/* Requests of /known are admitted; /late has its head only; /echo returns the target and the body, /large as many bytes
 * as do not fit, /stream two chunks, /push those of push(), and /never nothing. */
static void on_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    served++;
    const char *target = http_exchange_target(exchange);
    size_t length;
    const char *body = http_exchange_body(exchange, &length);
    if (strstr(target, "known"))
        http_exchange_trust(exchange);
    if (strstr(target, "never"))
        return;
    if (strstr(target, "late")) {
        late = exchange;
        http_exchange_begin(exchange, 200, 3);
    } else if (strstr(target, "echo")) {
        http_exchange_begin(exchange, 200, strlen(target) + length);
        http_exchange_send(exchange, target, strlen(target));
        http_exchange_send(exchange, body, length);
        http_exchange_end(exchange, true);
    } else if (strstr(target, "stream")) {
        http_exchange_begin(exchange, 200, HTTP_LENGTH_UNKNOWN);
        http_exchange_send(exchange, "abc", 3);
        http_exchange_send(exchange, "0123456789", 10);
        http_exchange_end(exchange, !strstr(target, "cut"));
    } else if (strstr(target, "push")) {
        push(exchange, strstr(target, "large"));
    } else if (strstr(target, "large")) {
        char *bytes = calloc(1, LARGE);
        assert_non_null(bytes);
        http_exchange_reply(exchange, 200, "text/plain", bytes, LARGE);
        free(bytes);
    } else {
        http_exchange_reply(exchange, 200, "text/plain", "ok", 2);
    }
}

static void on_ended(void *context, struct http_exchange *exchange, bool complete)
{
    (void)context, (void)exchange;
    ended[complete]++;
}

static void open_server(struct http_server_options options)
{
    struct error why = {0};
    options.address = "127.0.0.1";
    options.request = on_request;
    options.ended = on_ended;
    if (!options.body_max)
        options.body_max = 1 << 20;
    if (!options.connections_max)
        options.connections_max = 64;
    served = ended[false] = ended[true] = 0;
    assert_int_equal(event_loop_new(&loop, &why), ERR_OK);
    assert_int_equal(http_server_open(loop, &options, &server, &why), ERR_OK);
}

static void close_server(void)
{
    http_server_close(server);
    event_loop_free(loop);
}

/* Nothing to wait for: what one side sends, the other one has at once. */
static void pump(void)
{
    event_loop_run_once(loop, 0);
    http_server_process(server);
}

static int connect_client(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)http_server_port(server)),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* A check must not accept a client that nobody is going to answer. */
static void checked_addresses_do_not_listen(void **state)
{
    (void)state;
    struct error why = {0};
    open_server((struct http_server_options){0});
    unsigned port = http_server_port(server);
    assert_int_equal(listener_check("127.0.0.1", port, &why), ERR_BUSY);
    assert_non_null(strstr(why.text, "cannot listen on 127.0.0.1 port"));
    close_server();
    assert_int_equal(listener_check("127.0.0.1", port, &why), ERR_OK);
    assert_int_equal(listener_check("127.0.0.1", 0, &why), ERR_OK);
    assert_int_equal(listener_check("no address", port, &why), ERR_USAGE);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), -1);
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
}

/* Sends it all; false if the server has closed the connection. */
static bool send_bytes(int fd, const char *bytes, size_t length)
{
    for (size_t sent = 0; sent < length; pump()) {
        ssize_t now = send(fd, bytes + sent, length - sent, MSG_NOSIGNAL);
        if (now < 0 && errno != EAGAIN)
            return false;
        sent += now > 0 ? (size_t)now : 0;
    }
    return true;
}

static bool send_text(int fd, const char *text)
{
    return send_bytes(fd, text, strlen(text));
}

/* The status of the next response; 0 if the connection is closed first, -1 if nothing happens. */
static int receive_status(int fd)
{
    struct text got = {0};
    char buffer[512];
    int status = -1;
    for (int turns = 0; status < 0 && turns < PATIENCE; turns++, pump()) {
        ssize_t length = recv(fd, buffer, sizeof buffer, 0);
        if (length > 0)
            text_add_bytes(&got, buffer, (size_t)length);
        else if (length == 0 || errno != EAGAIN)
            status = 0;
        if (strstr(text_get(&got), "\r\n\r\n"))
            status = (int)strtol(text_get(&got) + strlen("HTTP/1.1 "), NULL, 10);
    }
    text_release(&got);
    return status;
}

static int ask(int fd, const char *target)
{
    char head[200];
    str_format(head, sizeof head, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target);
    return send_bytes(fd, head, strlen(head)) ? receive_status(fd) : 0;
}

static void post(int fd, size_t declared, size_t sent)
{
    char head[200], *body = calloc(1, sent + 1);
    str_format(head, sizeof head,
               "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", declared);
    assert_non_null(body);
    assert_true(send_bytes(fd, head, strlen(head)) && send_bytes(fd, body, sent));
    free(body);
}

static void new_clients_replace_the_oldest_idle_ones(void **state)
{
    (void)state;
    int known, silent[MANY], unfinished[2];
    open_server((struct http_server_options){.connections_max = 6});
    known = connect_client();
    assert_int_equal(ask(known, "/known"), 200);
    for (size_t i = 0; i < 2; i++) {
        unfinished[i] = connect_client();
        send_bytes(unfinished[i], "GET / HTTP/1.1\r\n", 16);
    }
    for (size_t i = 0; i < MANY; i++) {
        silent[i] = connect_client();
        pump();
    }
    int last = connect_client();
    assert_int_equal(ask(last, "/"), 200);
    assert_int_equal(receive_status(silent[0]), 0);
    assert_int_equal(ask(silent[MANY - 1], "/"), 200);
    assert_int_equal(ask(known, "/known"), 200); /* kept in spite of its age */
    for (size_t i = 0; i < MANY; i++)
        close(silent[i]);
    for (size_t i = 0; i < 2; i++)
        close(unfinished[i]);
    close(last);
    close(known);
    close_server();
}

/* All descriptors are in use, and no connection of the server exists whose end could free one. */
static void connections_are_accepted_after_a_shortage(void **state)
{
    (void)state;
    struct rlimit limit, small;
    int held[256], count = 0;
    if (getenv("IPW_SLOW"))
        SKIP("valgrind accepts a connection, and closes it, before it reports a shortage");
    open_server((struct http_server_options){0});
    int client = connect_client();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = (struct rlimit){.rlim_cur = 128, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    while (count < 256 && (held[count] = dup(0)) >= 0)
        count++;
    for (int i = 0; i < 5; i++)
        pump();
    nanos due = http_server_due(server);
    while (count)
        close(held[--count]);
    setrlimit(RLIMIT_NOFILE, &limit);
    thread_sleep(due - clock_now());
    assert_int_equal(ask(client, "/"), 200);
    assert_true(due > 0 && due < INT64_MAX); /* it neither spins nor waits for an event */
    close(client);
    close_server();
}

static void bodies_have_a_common_limit(void **state)
{
    (void)state;
    open_server((struct http_server_options){.body_max = 40000, .bodies_max = 100000});
    int first = connect_client(), second = connect_client(), third = connect_client();
    post(first, 40000, 39999);
    post(second, 40000, 39999);
    post(third, 40000, 40000);
    assert_int_equal(receive_status(third), 503);
    assert_int_equal(served, 0);
    assert_true(send_bytes(first, "x", 1) && send_bytes(second, "x", 1));
    assert_int_equal(receive_status(first), 200);
    assert_int_equal(receive_status(second), 200);
    post(third, 40000, 40000); /* on the same connection */
    assert_int_equal(receive_status(third), 200);
    close(first);
    close(second);
    close(third);
    close_server();
}

/* After the server has read what was sent. */
static bool is_open(int fd)
{
    char byte;
    for (int i = 0; i < 500; i++)
        pump();
    return recv(fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

/* However much of it was sent: at 16 KiB/s 4 MiB would allow four minutes. */
static void a_body_that_stops_is_not_awaited(void **state)
{
    (void)state;
    open_server((struct http_server_options){.body_max = 8 << 20, .request_limit = LIMIT});
    int client = connect_client();
    post(client, 8 << 20, 4 << 20);
    assert_true(is_open(client));
    thread_sleep(LIMIT - NS_PER_S);
    assert_true(is_open(client));
    thread_sleep(2 * NS_PER_S);
    assert_int_equal(receive_status(client), 0);
    close(client);
    close_server();
}

static void a_slow_body_has_a_limit_in_total(void **state)
{
    (void)state;
    open_server((struct http_server_options){
        .body_max = 8 << 20, .request_limit = LIMIT, .body_limit = 5 * LIMIT});
    int client = connect_client();
    const size_t size =
        16384 * (LIMIT / 2 / NS_PER_S); /* of half a minute, as fast as it must be */
    post(client, 8 << 20, 1 << 20);
    char *bytes = calloc(1, size);
    assert_non_null(bytes);
    for (int i = 0; i < 9; i++) {
        thread_sleep(LIMIT / 2);
        assert_true(is_open(client) && send_bytes(client, bytes, size));
    }
    free(bytes);
    thread_sleep(LIMIT / 2 - NS_PER_S);
    assert_true(is_open(client));
    thread_sleep(2 * NS_PER_S);
    assert_int_equal(receive_status(client), 0);
    close(client);
    close_server();
}

static void malformed_heads_are_rejected(void **state)
{
    (void)state;
#define REQUEST(line)             "GET / HTTP/1.1\r\nHost: a\r\n" line "\r\n\r\n"
#define CASE(what, bytes, status) {what, bytes, sizeof(bytes) - 1, status}
    static const struct {
        const char *what, *bytes;
        size_t length;
        int status; /* 0: any error, or closed at once */
    } CASES[] = {
        CASE("plain", REQUEST("X: a"), 200),
        CASE("no space", REQUEST("X:a"), 200),
        CASE("spaces", REQUEST("X: \t a "), 200),
        CASE("no value", REQUEST("X:"), 200),
        CASE("no value before another", REQUEST("X:\r\nY: a"), 200),
        CASE("two", REQUEST("X: a\r\nX: b"), 200),
        CASE("encoded", "GET /%41%42?c=%43+d HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        CASE("HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 200),
        CASE("NUL in a value", REQUEST("X: a\0b\r\nY: c"), 0),
        CASE("NUL in the last value", REQUEST("X: a\0b"), 0),
        CASE("NUL at the end", REQUEST("X: a\0"), 0),
        CASE("NUL at the start", REQUEST("X: \0a"), 0),
        CASE("NUL in a name", REQUEST("X\0Y: a"), 0),
        CASE("NUL in the target", "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n", 0),
        CASE("NUL in the method", "G\0T / HTTP/1.1\r\nHost: a\r\n\r\n", 0),
        CASE("no name", REQUEST(": v"), 0),
        CASE("no name, later", REQUEST("X: a\r\n: v\r\nY: b"), 0),
        CASE("only a colon", REQUEST("X: a\r\n:\r\nY: b"), 0),
        CASE("folded", REQUEST("X: a\r\n b"), 0),
        CASE("space before the colon", REQUEST("X : a"), 400),
        CASE("CR in a value", REQUEST("X: a\rY: b"), 400),
        CASE("no host", "GET / HTTP/1.1\r\n\r\n", 400),
        CASE("no version", "GET /\r\n\r\n", 400),
        CASE("another version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        CASE("a length with a sign", REQUEST("Content-Length: +0"), 400),
        CASE("a list of lengths", REQUEST("Content-Length: 0, 0"), 400),
        CASE("a huge length", REQUEST("Content-Length: 18446744073709551616"), 400),
        CASE("a malformed chunk", REQUEST("Transfer-Encoding: chunked\r\n\r\n0x1"), 400),
        CASE("two hosts", REQUEST("Host: a"), 400),
        CASE("two other hosts", REQUEST("host: b"), 400),
    };
    open_server((struct http_server_options){0});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int client = connect_client();
        unsigned before = served;
        assert_true(send_bytes(client, CASES[i].bytes, CASES[i].length));
        int status = receive_status(client);
        bool is_good = CASES[i].status ? status == CASES[i].status : status == 0 || status == 400;
        if (!is_good || served - before != (status == 200))
            fail_msg("%s: %d", CASES[i].what, status);
        if (CASES[i].status != 200 && status)
            assert_int_equal(receive_status(client), 0); /* and nothing after it is read */
        close(client);
    }
    close_server();
}

/* Everything that the server sends until it closes the connection, or until the last bytes are these. */
static const char *receive_until(int fd, const char *last)
{
    static struct text got;
    char buffer[512];
    text_clear(&got);
    for (int turns = 0; turns < PATIENCE; turns++, pump()) {
        ssize_t length = recv(fd, buffer, sizeof buffer, 0);
        if (length == 0 || (length < 0 && errno != EAGAIN))
            break;
        text_add_bytes(&got, buffer, length > 0 ? (size_t)length : 0);
        if (last && str_ends(text_get(&got), last))
            break;
    }
    return text_get(&got);
}

#define ECHO(target, more) "POST /echo" target " HTTP/1.1\r\nHost: a\r\n" more
#define CHUNKS                                                                                     \
    "Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: u\r\n\r\n"

/* Whether bytes arrive one by one or all at once, requests are the same, in order, and each is answered. */
static void pipelined_requests_are_answered_in_order(void **state)
{
    (void)state;
    static const char REQUESTS[] =
        ECHO("1", "Content-Length: 5\r\n\r\nhello") "\r\n" ECHO("2", CHUNKS) ECHO("3", "\r\n")
            ECHO("4", "Connection: close\r\n\r\n") ECHO("5", "\r\n");
    static const char *const BODIES[] = {"/echo1hello", "/echo2abc0123456789", "/echo3", "/echo4"};
    open_server((struct http_server_options){0});
    for (size_t step = 1; step < sizeof REQUESTS; step += step < 3 ? 1 : sizeof REQUESTS - 4) {
        int client = connect_client();
        served = 0;
        for (size_t at = 0; at < sizeof REQUESTS - 1; at += step) {
            size_t left = sizeof REQUESTS - 1 - at;
            if (!send_bytes(client, REQUESTS + at, left < step ? left : step))
                break; /* after the last one nothing is read */
        }
        const char *at = receive_until(client, NULL);
        for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
            assert_true(str_starts(at, "HTTP/1.1 200 OK\r\n"));
            at = strstr(at, "\r\n\r\n") + 4;
            assert_true(str_starts(at, BODIES[i]));
            at += strlen(BODIES[i]);
        }
        assert_string_equal(at, "");
        assert_int_equal(served, 4);
        close(client);
    }
    close_server();
}

static void responses_are_framed_for_their_request(void **state)
{
    (void)state;
    static const struct {
        const char *request,
            *last;         /* bytes of the response; NULL: up to the end of the connection */
        const char *whole; /* after its status line */
    } CASES[] = {
        {"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "0\r\n\r\n",
         "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"},
        {"GET /stream-cut HTTP/1.1\r\nHost: a\r\n\r\n", NULL,
         "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n"},
        {"GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", NULL,
         "Connection: close\r\n\r\nabc0123456789"},
        {"GET /echo HTTP/1.0\r\n\r\n", NULL, "Content-Length: 5\r\nConnection: close\r\n\r\n/echo"},
        {"GET /echo HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "/echo",
         "Content-Length: 5\r\nConnection: keep-alive\r\n\r\n/echo"},
        {"HEAD /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", NULL,
         "Content-Length: 5\r\nConnection: close\r\n\r\n"},
        {"HEAD /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", NULL,
         "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"},
    };
    open_server((struct http_server_options){0});
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        int client = connect_client();
        assert_true(send_text(client, CASES[i].request));
        const char *got = receive_until(client, CASES[i].last), *line = "HTTP/1.1 200 OK\r\n";
        assert_true(str_starts(got, line));
        assert_string_equal(got + strlen(line), CASES[i].whole);
        close(client);
    }
    close_server();
}

/* The response arrives although the client is still sending, and a client that reads nothing is given up. */
/* The head waits for one turn of the loop, but not for longer. */
static void head_and_first_bytes_are_one_segment(void **state)
{
    static const char REQUEST[] = "GET /late HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char got[512] = "";
    (void)state;
    open_server((struct http_server_options){0});
    int fd = connect_client();
    assert_int_equal(send(fd, REQUEST, strlen(REQUEST), MSG_NOSIGNAL), strlen(REQUEST));
    for (int turns = 0; !served && turns < PATIENCE; turns++) {
        http_server_process(server);
        event_loop_run_once(loop, 0);
    }
    http_server_process(server);
    assert_int_equal(recv(fd, got, sizeof got, 0), -1);
    assert_int_equal(http_server_due(server), 0);
    http_exchange_send(late, "abc", 3);
    http_exchange_end(late, true);
    http_server_process(server);
    assert_true(recv(fd, got, sizeof got - 1, 0) > 0);
    assert_string_equal(strstr(got, "\r\n\r\n"), "\r\n\r\nabc");

    assert_int_equal(ask(fd, "/late"), 200); /* without its body */
    close(fd);
    close_server();
}

/* All of a response, of a connection that is kept alive; "" if it is not complete. */
static void receive_response(int fd, struct text *out)
{
    char buffer[65536];
    text_clear(out);
    for (int turns = 0; turns < PATIENCE; turns++, pump()) {
        ssize_t length = recv(fd, buffer, sizeof buffer, 0);
        if (length > 0)
            text_add_bytes(out, buffer, (size_t)length);
        if (str_ends(text_get(out), "\r\n0\r\n\r\n"))
            return;
    }
    text_clear(out);
}

static void pushed_bytes_arrive_while_the_handler_runs(void **state)
{
    (void)state;
    static const char BODY[] = "3\r\nabc\r\n5\r\nxxxxx\r\n0\r\n\r\n";
    struct text got = {0};
    open_server((struct http_server_options){0});
    pushed_to = connect_client();
    assert_true(send_text(pushed_to, "GET /push HTTP/1.1\r\nHost: a\r\n\r\n"));
    receive_response(pushed_to, &got);
    assert_true(str_starts(pushed, "HTTP/1.1 200 OK\r\n"));
    assert_true(str_ends(pushed, "\r\n\r\n3\r\nabc\r\n"));
    assert_true(str_ends(text_get(&got), BODY));
    assert_true(send_text(pushed_to, "GET /push/large HTTP/1.1\r\nHost: a\r\n\r\n"));
    receive_response(pushed_to, &got);
    const char *body = strstr(text_get(&got), "3\r\nabc\r\n800000\r\n");
    assert_non_null(body);
    assert_int_equal(got.length - (size_t)(body - got.bytes),
                     strlen("3\r\nabc\r\n800000\r\n") + LARGE + strlen("\r\n0\r\n\r\n"));
    assert_int_equal(ask(pushed_to, "/next"), 200);
    assert_int_equal(ended[true], 3);
    text_release(&got);
    close(pushed_to);
    close_server();
}

static void refused_and_stalled_clients_are_disconnected(void **state)
{
    (void)state;
    open_server((struct http_server_options){
        .body_max = 1000, .connections_max = 64, .write_limit = LIMIT});
    int client = connect_client();
    char *head = malloc(40000);
    assert_non_null(head);
    memset(head, 'a', 40000);
    memcpy(head, "GET /", 5);
    assert_true(send_bytes(client, head, 40000));
    free(head);
    assert_int_equal(receive_status(client), 431);
    close(client);
    client = connect_client();
    post(client, 5000, 3000); /* more than is read to be discarded */
    assert_int_equal(receive_status(client), 413);
    assert_int_equal(receive_status(client), 0);
    close(client);
    assert_int_equal(served, 0);
    client = connect_client();
    assert_true(send_text(client, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (!served || http_server_due(server) <= clock_now()) /* until nothing more can be sent */
        pump();
    thread_sleep(LIMIT - NS_PER_S);
    pump();
    assert_int_equal(ended[false], 0);
    thread_sleep(2 * NS_PER_S);
    pump();
    assert_int_equal(ended[false], 1);
    close(client);
    close_server();
}

static void a_client_that_disconnects_ends_its_exchange(void **state)
{
    (void)state;
    open_server((struct http_server_options){0});
    int client = connect_client();
    assert_true(send_text(client, "GET /never HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n"));
    for (int turns = 0; !served && turns < PATIENCE; turns++)
        pump();
    close(client);
    for (int turns = 0; !ended[false] && turns < PATIENCE; turns++)
        pump();
    assert_int_equal(ended[false], 1);
    close_server();
}

int main(void)
{
    stepped_clock_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(responses_are_framed_for_their_request),
        cmocka_unit_test(head_and_first_bytes_are_one_segment),
        cmocka_unit_test(pushed_bytes_arrive_while_the_handler_runs),
        cmocka_unit_test(refused_and_stalled_clients_are_disconnected),
        cmocka_unit_test(a_client_that_disconnects_ends_its_exchange),
        cmocka_unit_test(checked_addresses_do_not_listen),
        cmocka_unit_test(new_clients_replace_the_oldest_idle_ones),
        cmocka_unit_test(connections_are_accepted_after_a_shortage),
        cmocka_unit_test(bodies_have_a_common_limit),
        cmocka_unit_test(a_body_that_stops_is_not_awaited),
        cmocka_unit_test(a_slow_body_has_a_limit_in_total),
        cmocka_unit_test(malformed_heads_are_rejected),
    };
    return RUN_TESTS(tests);
}
