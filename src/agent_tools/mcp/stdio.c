/* An MCP server that is a child process and speaks JSON-RPC over its stdin and stdout, one message per line.  A thread
 * reads its messages, so that several requests may be in flight; if the server exits, they fail with the last line of
 * its stderr. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent_tools/mcp/mcp_session.h"
#include "agent_tools/tool.h"
#include "core/xalloc.h"
#include "port/subprocess.h"
#include "port/thread.h"
#include "wire/sse.h"

enum {
    WATCH_MS = 50,
    GRACE_MS = 500, /* time for a server to exit after its stdin was closed */
};

struct stdio {
    struct mcp_session *session; /* its lock guards is_too_long and last_stderr_line */
    struct subprocess process;
    pthread_t reader;
    bool is_too_long;           /* it sent a message beyond the limit */
    char last_stderr_line[160]; /* the last line of its stderr */
    pthread_mutex_t writing;
    atomic_bool stop;
    struct line_reader lines, log; /* incomplete lines, used by the reader thread */
};

/* ---- reading ---- */

static enum err take_line(void *context, const char *bytes, size_t length, nanos t)
{
    static const struct mcp_identity NONE;
    const struct stdio *stdio = context;
    const struct mcp_patience patience = mcp_patience_of(NS_PER_S, &stdio->stop);
    (void)t;
    mcp_session_take(stdio->session, bytes, length, &NONE, &patience);
    return ERR_OK;
}

static enum err take_log(void *context, const char *bytes, size_t length, nanos t)
{
    struct stdio *stdio = context;
    (void)t;
    if (length == 0)
        return ERR_OK;
    pthread_mutex_lock(&stdio->session->lock);
    chars_format(stdio->last_stderr_line, "%.*s", (int)(length < 150 ? length : 150), bytes);
    str_plain(stdio->last_stderr_line, sizeof stdio->last_stderr_line);
    pthread_mutex_unlock(&stdio->session->lock);
    return ERR_OK;
}

/* Reads the available data; false at end of file, or after a line that is too long. */
static bool read_lines(struct stdio *stdio, int fd, struct line_reader *lines, line_handler handle)
{
    char bytes[16384];
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0)
        return false;
    enum err err = line_reader_feed(lines, bytes, (size_t)n, 0, handle, stdio, NULL);
    if (err == ERR_BAD_VALUE && lines == &stdio->lines) {
        pthread_mutex_lock(&stdio->session->lock);
        stdio->is_too_long = true;
        pthread_mutex_unlock(&stdio->session->lock);
    }
    return !err;
}

static void set_ended(struct mcp_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->has_ended = true;
    thread_wake(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

static void *read_server(void *context)
{
    struct stdio *stdio = context;
    bool is_open = true, has_log = true;
    thread_name("ipw-mcp", -1);
    while (is_open && !atomic_load(&stdio->stop)) {
        struct pollfd polled[2] = {
            {.fd = stdio->process.output, .events = POLLIN},
            {.fd = has_log ? stdio->process.messages : -1, .events = POLLIN},
        };
        poll(polled, 2, WATCH_MS);
        if (polled[1].revents)
            has_log = read_lines(stdio, stdio->process.messages, &stdio->log, take_log);
        if (polled[0].revents)
            is_open = read_lines(stdio, stdio->process.output, &stdio->lines, take_line);
    }
    while (has_log && !atomic_load(&stdio->stop)) { /* the reason for its exit */
        struct pollfd polled = {.fd = stdio->process.messages, .events = POLLIN};
        if (poll(&polled, 1, WATCH_MS) <= 0)
            break;
        has_log = read_lines(stdio, stdio->process.messages, &stdio->log, take_log);
    }
    set_ended(stdio->session);
    return NULL;
}

/* ---- sending, and waiting for a response ---- */

/* Writes the whole line, or gives up: a server that does not read must not block us. */
static bool send_line(struct stdio *stdio, const struct text *line,
                      const struct mcp_patience *patience)
{
    size_t sent = 0;
    bool failed = false;
    pthread_mutex_lock(&stdio->writing);
    while (!failed && sent < line->length) {
        ssize_t n = write(stdio->process.input, line->bytes + sent, line->length - sent);
        if (n > 0)
            sent += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            struct pollfd polled = {.fd = stdio->process.input, .events = POLLOUT};
            poll(&polled, 1, WATCH_MS);
            failed = clock_now() >= patience->deadline || mcp_is_canceled(patience) ||
                     atomic_load(&stdio->stop);
        } else {
            failed = errno != EINTR;
        }
    }
    pthread_mutex_unlock(&stdio->writing);
    if (failed && sent > 0)
        set_ended(stdio->session); /* another message would continue this one */
    return !failed;
}

/* Adds the last line of stderr, after a short wait for the reader thread.  Caller holds the lock. */
static enum err report_exit(struct stdio *stdio, struct error *why)
{
    struct mcp_session *session = stdio->session;
    nanos until = clock_now() + GRACE_MS * NS_PER_MS;
    while (!session->has_ended && clock_now() < until)
        thread_wait(&session->changed, &session->lock, WATCH_MS * NS_PER_MS);
    if (stdio->is_too_long)
        return mcp_too_long(why);
    return err_set(why, ERR_LOST, "the MCP server exited%s%s",
                   stdio->last_stderr_line[0] ? ": " : "", stdio->last_stderr_line);
}

/* Caller holds the lock. */
static enum err await_response(struct stdio *stdio, const struct mcp_message *message,
                               struct error *why)
{
    struct mcp_session *session = stdio->session;
    while (!message->pending->answer) {
        nanos left = message->patience.deadline - clock_now();
        if (session->has_ended)
            return report_exit(stdio, why);
        if (mcp_is_canceled(&message->patience))
            return err_set(why, ERR_INTERRUPTED, "the call was canceled");
        if (left <= 0)
            return err_set(why, ERR_TIMEOUT, "the MCP server did not respond in time");
        thread_wait(&session->changed, &session->lock,
                    left < WATCH_MS * NS_PER_MS ? left : WATCH_MS * NS_PER_MS);
    }
    return ERR_OK;
}

static enum err stdio_exchange(struct mcp_session *session, const struct mcp_message *message,
                               struct error *why)
{
    struct stdio *stdio = session->state;
    struct text line = {0};
    enum err err = ERR_OK;
    text_add_bytes(&line, text_get(message->json), message->json->length);
    text_add(&line, "\n");
    bool sent = send_line(stdio, &line, &message->patience);
    text_release(&line);
    pthread_mutex_lock(&session->lock);
    if (sent && message->pending)
        message->pending->is_sent = true;
    if (sent)
        err = message->pending ? await_response(stdio, message, why) : ERR_OK;
    else if (mcp_is_canceled(&message->patience))
        err = err_set(why, ERR_INTERRUPTED, "the call was canceled");
    else if (clock_now() >= message->patience.deadline)
        err = err_set(why, ERR_TIMEOUT, "the MCP server does not read its stdin");
    else
        err = report_exit(stdio, why);
    pthread_mutex_unlock(&session->lock);
    return err;
}

/* ---- start and end ---- */

static enum err spawn(struct stdio *stdio, const struct mcp_target *target, struct error *why)
{
    static const char *const NAMES[] = {"workspace", NULL};
    struct text line = {0};
    text_add(&line, "export IPW_WORKSPACE=\"$1\"; shift; ");
    subprocess_command(target->address, NAMES, &line);
    const char *const argv[] = {"/bin/sh", "-c", text_get(&line), "sh", target->workspace->path,
                                NULL};
    const struct subprocess_options options = {.argv = argv, .directory = -1};
    enum err err = subprocess_start(&stdio->process, &options, why);
    text_release(&line);
    if (!err)
        fcntl(stdio->process.input, F_SETFL, O_NONBLOCK);
    return err;
}

static enum err stdio_open(struct mcp_session *session, const struct mcp_target *target,
                           struct error *why)
{
    struct stdio *stdio = XNEW(stdio);
    stdio->session = session;
    enum err err = spawn(stdio, target, why);
    if (err) {
        free(stdio);
        return err;
    }
    pthread_mutex_init(&stdio->writing, NULL);
    session->state = stdio; /* for the reader: a server may send a request at once */
    if (thread_start(&stdio->reader, read_server, stdio)) {
        subprocess_end(&stdio->process, NULL);
        pthread_mutex_destroy(&stdio->writing);
        free(stdio);
        session->state = NULL;
        return err_set(why, ERR_BUSY, "cannot start a thread");
    }
    return ERR_OK;
}

static void stdio_close(struct mcp_session *session)
{
    struct stdio *stdio = session->state;
    nanos until = clock_now() + GRACE_MS * NS_PER_MS;
    pthread_mutex_lock(&stdio->writing);
    close(stdio->process.input); /* a server exits when its stdin is closed */
    stdio->process.input = -1;
    pthread_mutex_unlock(&stdio->writing);
    while (!subprocess_has_ended(&stdio->process) && clock_now() < until)
        thread_sleep(5 * NS_PER_MS);
    atomic_store(&stdio->stop, true);
    pthread_join(stdio->reader, NULL);
    subprocess_end(&stdio->process, NULL);
    pthread_mutex_destroy(&stdio->writing);
    line_reader_release(&stdio->lines);
    line_reader_release(&stdio->log);
    free(stdio);
}

const struct mcp_transport mcp_stdio = {
    .to_open = "cannot start",
    .open = stdio_open,
    .exchange = stdio_exchange,
    .close = stdio_close,
};
