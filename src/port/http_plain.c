/* A call owns its connection until its response is complete; then the connection is kept alive for the next call.  If
 * a reused connection turns out to be closed before a byte of the response arrives, the request is sent once more on a
 * new one: the server had closed it while the request was on its way.
 *
 * After a stream of server-sent events some servers (llama.cpp's) announce keep-alive and close the connection all the
 * same, on a busy machine only when the next request, which must not be sent twice, is on its way.  So such a
 * connection is first put on probation, and the result is remembered for the server: see enum keep_alive. */
#define _GNU_SOURCE
#include "port/http_plain.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/xalloc.h"
#include "port/event_loop.h"

enum {
    READ = 64 * 1024,
    READS = 4, /* per event: other connections wait too */
    KEPT_MAX = 1024,
    TRIALS =
        16, /* concurrent connections on probation for a server whose keep-alive behavior is unknown */
    TRIALS_PASSED = 5, /* after which its behavior is known */
};

#define CHECK_PERIOD (250 * NS_PER_MS)
#define FRESH        (50 * NS_PER_MS)
#define TRIAL                                                                                      \
    NS_PER_S /* a connection that is still open this long after a stream was not closed because of it */

enum state { CONNECTING, SENDING, RECEIVING };

/* Keep-alive behavior of a server after a stream of events. */
enum keep_alive {
    KEEP_ALIVE_UNKNOWN, /* connections are not reused; some are left open to find out */
    KEEP_ALIVE_WORKS,   /* it kept TRIALS_PASSED connections open: they are reused at once */
    KEEP_ALIVE_BROKEN,  /* it closed one: connections are never reused */
};

struct server {
    char origin[80]; /* of its URLs: "http://127.0.0.1:8080" */
    size_t origin_length;
    struct sockaddr_storage address;
    socklen_t address_size;
    enum keep_alive keep_alive;
    unsigned passed, on_trial;
    struct server *next;
};

/* A connection, registered with the loop once for its lifetime: changing the watched events costs as much as a send. */
struct link {
    struct plain_pool *pool;
    struct plain_call *call; /* NULL: idle, kept alive for the next call */
    struct event_watch watch;
    struct server *server;
    nanos kept_since;
    bool is_on_trial; /* since this time */
    bool had_stream;
    struct link *next, *previous; /* list of idle connections */
};

struct plain_call {
    struct relay_call base;
    struct plain_pool *pool;
    struct relay_request request;
    struct server *server;
    struct link *link;
    enum state state;
    struct text out; /* request line and headers */
    size_t sent;     /* bytes of these and of the body */
    struct text in;  /* received and not processed yet: head, lines */
    struct plain_response response;
    bool is_reused, is_paused;
    bool is_resumed;           /* buffered data is to be delivered */
    bool in_callback, is_over; /* canceled or ended in a callback */
    nanos deadline;            /* for connecting; 0: connected */
    struct plain_call *next, *previous;
};

struct plain_pool {
    struct event_loop *loop;
    struct server *servers;
    struct link *kept;
    size_t kept_count;
    struct plain_call *calls;
    bool has_resumed;
    nanos next_check; /* when deadlines are checked next */
    char buffer[READ];
};

struct plain_pool *plain_pool_new(struct event_loop *loop)
{
    struct plain_pool *pool = XNEW(pool);
    pool->loop = loop;
    return pool;
}

/* ---- connections ---- */

static void end_trial(struct link *link)
{
    if (link->is_on_trial)
        link->server->on_trial--;
    link->is_on_trial = false;
}

static void close_link(struct link *link)
{
    end_trial(link);
    event_loop_unwatch(link->pool->loop, &link->watch);
    close(link->watch.fd);
    free(link);
}

static void take_out(struct link *link)
{
    if (link->next)
        link->next->previous = link->previous;
    if (link->previous)
        link->previous->next = link->next;
    else
        link->pool->kept = link->next;
    link->pool->kept_count--;
    link->next = link->previous = NULL;
}

static bool may_keep(const struct link *link, bool is_stream)
{
    const struct server *server = link->server;
    if (link->pool->kept_count >= KEPT_MAX)
        return false;
    return !is_stream || server->keep_alive == KEEP_ALIVE_WORKS ||
           (server->keep_alive == KEEP_ALIVE_UNKNOWN && server->on_trial < TRIALS);
}

static void keep(struct plain_call *call)
{
    struct plain_pool *pool = call->pool;
    struct link *link = call->link;
    call->link = NULL;
    link->call = NULL;
    end_trial(link); /* it was reused successfully */
    if (!may_keep(link, call->response.is_stream) ||
        event_loop_watch(pool->loop, &link->watch, EPOLLIN)) {
        close_link(link);
        return;
    }
    if (call->response.is_stream) {
        link->had_stream = link->is_on_trial = true;
        link->server->on_trial++;
    }
    link->kept_since = clock_now();
    link->next = pool->kept;
    if (link->next)
        link->next->previous = link;
    pool->kept = link;
    pool->kept_count++;
}

/* Whether the server has neither closed the connection nor sent anything. */
static bool is_quiet(const struct link *link)
{
    char byte;
    return recv(link->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EINTR);
}

/* The server closed the connection.  More than TRIAL after a stream that was an idle timeout, which is irrelevant
 * for streams. */
static void note_closed(const struct link *link)
{
    if (link->is_on_trial)
        link->server->keep_alive = KEEP_ALIVE_BROKEN;
}

static bool may_take(const struct link *link)
{
    return !link->had_stream || link->server->keep_alive == KEEP_ALIVE_WORKS;
}

/* Checking costs a system call: skipped for a connection used just now, since the loop reports when it is closed. */
static bool is_usable(const struct link *link, nanos now)
{
    return (!link->is_on_trial && now - link->kept_since < FRESH) || is_quiet(link);
}

static struct link *take_kept(struct plain_call *call)
{
    nanos now = clock_now();
    for (struct link *link = call->pool->kept, *next; link; link = next) {
        next = link->next;
        if (link->server != call->server || !may_take(link))
            continue;
        take_out(link);
        if (is_usable(link, now))
            return link;
        note_closed(link);
        close_link(link);
    }
    return NULL;
}

/* Checks connections on probation; those of a server that closes them are useless. */
static void check_trials(struct plain_pool *pool, nanos now)
{
    for (struct link *link = pool->kept, *next; link; link = next) {
        struct server *server = link->server;
        next = link->next;
        if (link->is_on_trial && now - link->kept_since >= TRIAL) {
            bool passed = is_quiet(link);
            if (!passed)
                note_closed(link);
            end_trial(link);
            if (passed && ++server->passed >= TRIALS_PASSED &&
                server->keep_alive == KEEP_ALIVE_UNKNOWN)
                server->keep_alive = KEEP_ALIVE_WORKS;
        }
        if (link->had_stream && server->keep_alive == KEEP_ALIVE_BROKEN) {
            take_out(link);
            close_link(link);
        }
    }
}

static void on_link(void *context, unsigned events);

static struct link *connect_new(struct plain_call *call)
{
    const int on = 1;
    const struct server *server = call->server;
    int fd = socket(server->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return NULL;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&server->address, server->address_size) &&
        errno != EINPROGRESS) {
        int failure = errno;
        close(fd);
        errno = failure;
        return NULL;
    }
    struct link *link = XNEW(link);
    link->pool = call->pool;
    link->watch = (struct event_watch){.fd = fd, .ready = on_link, .context = link};
    link->server = call->server;
    return link;
}

/* ---- the end of a call ---- */

static void release(struct plain_call *call)
{
    struct plain_pool *pool = call->pool;
    if (call->next)
        call->next->previous = call->previous;
    if (call->previous)
        call->previous->next = call->next;
    else
        pool->calls = call->next;
    text_release(&call->out);
    text_release(&call->in);
    text_release(&call->response.lines);
    free(call);
}

static void drop_connection(struct plain_call *call)
{
    if (call->link)
        close_link(call->link);
    call->link = NULL;
}

static bool is_sent(const struct plain_call *call)
{
    return call->sent == call->out.length + call->request.body_length;
}

static void finish(struct plain_call *call, enum err err, const char *why)
{
    struct relay_request request = call->request;
    if (!err && call->response.keeps && !call->in.length && is_sent(call))
        keep(call);
    else
        drop_connection(call);
    release(call);
    request.done(request.context, err, why);
}

static void fail(struct plain_call *call, int failure)
{
    finish(call, failure == ETIMEDOUT ? ERR_TIMEOUT : ERR_LOST,
           failure ? strerror(failure) : "the connection was closed");
}

/* ---- reading ---- */

/* Delivers bytes of the body; false when the call is paused or over. */
static bool deliver(struct plain_call *call, const char *bytes, size_t length)
{
    call->in_callback = true;
    bool taken = call->request.take(call->request.context, bytes, length, clock_now());
    call->in_callback = false;
    call->is_paused = !taken;
    return taken && !call->is_over;
}

/* Parses everything except the body; returns as plain_response_parse. */
static ssize_t read_frame(struct plain_call *call, const char *at, size_t length)
{
    struct plain_response *response = &call->response;
    bool is_head = response->part == PLAIN_HEAD;
    ssize_t taken = plain_response_parse(response, at, length);
    if (is_head && response->part != PLAIN_HEAD) {
        call->in_callback = true;
        call->request.head(call->request.context, response->status, &response->lines);
        call->in_callback = false;
    }
    return taken;
}

/* Delivers bytes of the body; 0: the call is over or paused, and the bytes are delivered again. */
static ssize_t read_body(struct plain_call *call, const char *at, size_t length)
{
    length = plain_response_body(&call->response, length);
    if (!deliver(call, at, length))
        return 0;
    plain_response_take(&call->response, length);
    return (ssize_t)length;
}

/* Processes the buffered input.  False: the call is over or paused. */
static bool handle(struct plain_call *call)
{
    struct plain_response *response = &call->response;
    size_t used = 0;
    while (used < call->in.length && !plain_response_is_complete(response)) {
        const char *at = call->in.bytes + used;
        size_t length = call->in.length - used;
        ssize_t taken = plain_response_body(response, length) ? read_body(call, at, length)
                                                              : read_frame(call, at, length);
        if (call->is_over)
            break;
        if (taken < 0) {
            finish(call, ERR_BAD_VALUE, "the upstream server's response is not HTTP");
            return false;
        }
        if (taken == 0)
            break;
        used += (size_t)taken;
    }
    if (call->is_over) {
        drop_connection(call);
        release(call);
        return false;
    }
    if (used) {
        memmove(call->in.bytes, call->in.bytes + used, call->in.length - used);
        call->in.length -= used;
        call->in.bytes[call->in.length] = '\0';
    }
    if (plain_response_is_complete(response)) {
        finish(call, ERR_OK, "");
        return false;
    }
    return !call->is_paused;
}

static void start_again(struct plain_call *call);

/* The server may have started to process the request: only idempotent requests are sent twice (RFC 9110, 9.2.2). */
static bool may_repeat(const struct plain_call *call)
{
    const char *method = call->request.method;
    return call->sent == 0 || str_equal(method, "GET") || str_equal(method, "HEAD");
}

/* The connection was closed. */
static void on_closed(struct plain_call *call, int failure)
{
    bool is_silent = call->is_reused && call->response.part == PLAIN_HEAD && !call->in.length;
    if (is_silent && call->link->had_stream)
        call->server->keep_alive =
            KEEP_ALIVE_BROKEN; /* for whatever reason: reuse may lose a request */
    if (call->response.part == PLAIN_UNTIL_CLOSE && !failure)
        finish(call, ERR_OK, "");
    else if (is_silent && may_repeat(call))
        start_again(call);
    else
        fail(call, failure);
}

static void receive(struct plain_call *call)
{
    struct plain_pool *pool = call->pool;
    if (call->is_resumed) {
        call->is_resumed = false;
        if (call->in.length && !handle(call))
            return;
    }
    for (int i = 0; i < READS; i++) {
        ssize_t got = recv(call->link->watch.fd, pool->buffer, sizeof pool->buffer, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            on_closed(call, got < 0 ? errno : 0);
            return;
        }
        text_add_bytes(&call->in, pool->buffer, (size_t)got);
        if (!handle(call) || (size_t)got < sizeof pool->buffer)
            return;
    }
}

/* ---- writing ---- */

static unsigned wanted_events(const struct plain_call *call)
{
    return call->state <= SENDING ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

/* The server accepts no more data.  It may have responded early, for example with 413. */
static void read_early_answer(struct plain_call *call)
{
    call->state = RECEIVING;
    (void)!event_loop_watch(call->pool->loop, &call->link->watch, wanted_events(call));
    receive(call);
}

/* As sendmsg. */
static ssize_t send_some(const struct plain_call *call)
{
    struct iovec parts[2];
    size_t head = call->out.length;
    size_t count = 0;
    size_t from = call->sent > head ? call->sent - head : 0;
    if (call->sent < head)
        parts[count++] = (struct iovec){call->out.bytes + call->sent, head - call->sent};
    if (call->request.body_length > from)
        parts[count++] =
            (struct iovec){(char *)call->request.body + from, call->request.body_length - from};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    return sendmsg(call->link->watch.fd, &message, MSG_NOSIGNAL);
}

/* False when the rest need not be sent, or the call is over. */
static bool send_rest(struct plain_call *call)
{
    while (!is_sent(call)) {
        ssize_t sent = send_some(call);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return true;
        if (sent < 0) {
            read_early_answer(call);
            return false;
        }
        call->sent += (size_t)sent;
    }
    call->state = RECEIVING;
    return true;
}

/* The server is gone; another one may use its address later. */
static void reset_keep_alive(struct server *server)
{
    server->passed = 0;
    if (server->keep_alive == KEEP_ALIVE_WORKS)
        server->keep_alive = KEEP_ALIVE_UNKNOWN;
}

static bool connected(struct plain_call *call)
{
    int failure = 0;
    socklen_t size = sizeof failure;
    getsockopt(call->link->watch.fd, SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure) {
        reset_keep_alive(call->server);
        fail(call, failure);
        return false;
    }
    call->deadline = 0;
    call->state = SENDING;
    return true;
}

static void on_ready(struct plain_call *call, unsigned events)
{
    if (call->is_paused) { /* level-triggered: it would be reported again and again */
        event_loop_unwatch(call->pool->loop, &call->link->watch);
        return;
    }
    if (call->state == CONNECTING && !connected(call))
        return;
    if (call->state == SENDING && (events & EPOLLOUT)) {
        if (!send_rest(call))
            return;
        (void)!event_loop_watch(call->pool->loop, &call->link->watch, wanted_events(call));
    }
    /* An early response, such as 413, arrives before all of the body is sent. */
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        if (call->state == SENDING)
            call->state = RECEIVING;
        receive(call);
    }
}

/* The server closed an idle connection or sent unsolicited data: it cannot be reused. */
static void on_link(void *context, unsigned events)
{
    struct link *link = context;
    if (link->call) {
        on_ready(link->call, events);
        return;
    }
    take_out(link);
    note_closed(link);
    close_link(link);
}

/* ---- calls ---- */

static bool read_address(const char *url, struct server *server)
{
    char host[64], port[8] = "80";
    if (strncasecmp(url, "http://", 7) != 0)
        return false;
    const char *at = url + 7;
    size_t length = strcspn(at, "/?#");
    if (length >= sizeof host || memchr(at, '@', length))
        return false;
    bool is_v6 = *at == '[';
    size_t size = is_v6 ? strcspn(at, "]") + 1 : strcspn(at, ":/?#");
    chars_format(host, "%.*s", (int)(is_v6 ? size - 2 : size), at + is_v6);
    if (size < length && at[size] == ':')
        chars_format(port, "%.*s", (int)(length - size - 1), at + size + 1);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&server->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&server->address;
    uint64_t number;
    if (parse_u64(port, &number) || number == 0 || number > 65535)
        return false;
    memset(server, 0, sizeof *server);
    if (!is_v6 && inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)number);
        server->address_size = sizeof *v4;
        return true;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)number);
    server->address_size = sizeof *v6;
    return is_v6 && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1;
}

static struct server *find_known(const struct plain_pool *pool, const char *url)
{
    struct server *server = pool->servers;
    while (server && (strncmp(url, server->origin, server->origin_length) != 0 ||
                      !strchr("/?#", url[server->origin_length])))
        server = server->next;
    return server;
}

bool plain_pool_serves(const struct plain_pool *pool, const struct relay_request *request)
{
    struct server server;
    return request->is_local &&
           (find_known(pool, request->url) || read_address(request->url, &server));
}

static struct server *find_server(struct plain_pool *pool, const char *url)
{
    struct server *server = find_known(pool, url);
    if (server)
        return server;
    server = xmalloc(sizeof *server);
    if (!read_address(url, server)) {
        free(server);
        return NULL;
    }
    size_t scheme = strlen("http://");
    server->origin_length = scheme + strcspn(url + scheme, "/?#");
    chars_format(server->origin, "%.*s", (int)server->origin_length, url);
    server->next = pool->servers;
    return pool->servers = server;
}

static void write_request(struct plain_call *call)
{
    const struct relay_request *request = &call->request;
    const char *at = request->url + strlen("http://"), *path = at + strcspn(at, "/?#");
    struct text *out = &call->out;
    text_add(out, request->method);
    text_add(out, *path == '/' ? " " : " /");
    text_add(out, path);
    text_add(out, " HTTP/1.1\r\nHost: ");
    text_add_bytes(out, at, (size_t)(path - at));
    text_add(out, "\r\n");
    for (size_t i = 0; i < request->headers->length;) {
        const char *line = request->headers->bytes + i;
        size_t length = strlen(line);
        text_add_bytes(out, line, length);
        text_add_bytes(out, "\r\n", 2);
        i += length + 1;
    }
    if (request->body) {
        text_add(out, "Content-Length: ");
        text_add_integer(out, (int64_t)request->body_length);
        text_add(out, "\r\n");
    }
    text_add(out, "\r\n");
}

/* Uses an idle connection or a new one; false with errno when neither is available. */
static bool open_connection(struct plain_call *call, bool may_reuse)
{
    struct link *link = may_reuse ? take_kept(call) : NULL;
    call->is_reused = link != NULL;
    call->sent = 0;
    call->state = call->is_reused ? SENDING : CONNECTING;
    call->deadline = call->is_reused ? 0 : clock_now() + call->request.connect_limit;
    call->link = link ? link : connect_new(call);
    if (!call->link)
        return false;
    call->link->call = call;
    return true;
}

static void start_again(struct plain_call *call)
{
    drop_connection(call);
    if (!open_connection(call, false) ||
        event_loop_watch(call->pool->loop, &call->link->watch, wanted_events(call)))
        fail(call, errno);
}

enum err plain_call_start(struct plain_pool *pool, const struct relay_request *request,
                          struct plain_call **out, struct error *why)
{
    struct plain_call *call = *out = XNEW(call);
    call->base.is_plain = true;
    call->pool = pool;
    call->request = *request;
    call->response.is_of_head = str_equal(request->method, "HEAD");
    call->server = find_server(pool, request->url);
    write_request(call);
    bool is_open = call->server && open_connection(call, true);
    call->next = pool->calls;
    if (call->next)
        call->next->previous = call;
    pool->calls = call;
    if (!is_open) {
        int failure = call->server ? errno : EINVAL;
        release(call);
        *out = NULL;
        return err_set(why, err_from_errno(failure), "%s", strerror(failure));
    }
    /* Send the request immediately if possible: a failure is detected when the response is awaited. */
    if (call->is_reused) {
        ssize_t sent = send_some(call);
        call->sent = sent > 0 ? (size_t)sent : 0;
        if (is_sent(call))
            call->state = RECEIVING;
    }
    enum err err = event_loop_watch(pool->loop, &call->link->watch, wanted_events(call));
    if (err) {
        drop_connection(call);
        release(call);
        *out = NULL;
    }
    return err_explain(why, err);
}

void plain_call_resume(struct plain_call *call)
{
    if (!call->is_paused)
        return;
    call->is_paused = false;
    (void)!event_loop_watch(call->pool->loop, &call->link->watch, wanted_events(call));
    call->is_resumed = call->pool->has_resumed =
        true; /* may be called from its own take callback */
}

void plain_call_cancel(struct plain_call *call)
{
    if (call->in_callback) {
        call->is_over = true;
        return;
    }
    drop_connection(call);
    release(call);
}

void plain_pool_process(struct plain_pool *pool)
{
    nanos now = clock_now();
    if (!pool->has_resumed && now < pool->next_check)
        return;
    pool->has_resumed = false;
    if (now >= pool->next_check) {
        pool->next_check = now + CHECK_PERIOD;
        check_trials(pool, now);
    }
    for (struct plain_call *call = pool->calls, *next; call; call = next) {
        next = call->next;
        if (call->deadline && call->deadline < now) {
            fail(call, ETIMEDOUT);
        } else if (call->is_resumed) {
            call->is_resumed = false;
            if (call->in.length)
                (void)handle(call);
        }
    }
}

nanos plain_pool_due(const struct plain_pool *pool)
{
    bool must_look = pool->calls;
    for (const struct server *server = pool->servers; server; server = server->next)
        must_look = must_look || server->on_trial;
    return pool->has_resumed ? 0 : must_look ? pool->next_check : INT64_MAX;
}

void plain_pool_free(struct plain_pool *pool)
{
    if (!pool)
        return;
    for (struct plain_call *call = pool->calls, *next; call; call = next) {
        next = call->next;
        plain_call_cancel(call);
    }
    for (struct link *link = pool->kept, *next; link; link = next) {
        next = link->next;
        close_link(link);
    }
    while (pool->servers) {
        struct server *server = pool->servers;
        pool->servers = server->next;
        free(server);
    }
    free(pool);
}
