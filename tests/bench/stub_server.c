#define _GNU_SOURCE
#include "bench/stub_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TOKENS = 8, CONNECTIONS = 1024, REQUEST_MAX = 16 * 1024 };

static char stream[8192]; /* the tokens, as chunks of a body */
static size_t stream_length;

static const char HEADERS[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                              "Transfer-Encoding: chunked\r\n\r\n";
static const char MODELS[] =
    "{\"object\":\"list\",\"data\":[{\"id\":\"bench\",\"object\":\"model\"}]}";

/* ---- responses ---- */

static void add_event(const char *data)
{
    stream_length += (size_t)snprintf(stream + stream_length, sizeof stream - stream_length,
                                      "%zx\r\ndata: %s\n\n\r\n", strlen(data) + 8, data);
}

static void make_stream(void)
{
    char event[512];
    static const char FORM[] = "{\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1,"
                               "\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{%s},"
                               "\"finish_reason\":%s}]}";
    for (int i = 0; i < TOKENS; i++) {
        snprintf(event, sizeof event, FORM, STUB_SERVER_TOKEN " word\"", "null");
        add_event(event);
    }
    snprintf(event, sizeof event, FORM, "", "\"stop\"");
    add_event(event);
    snprintf(
        event, sizeof event,
        "{\"id\":\"c-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"bench\","
        "\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":%d,"
        "\"total_tokens\":%d}}",
        TOKENS, TOKENS + 4);
    add_event(event);
    add_event("[DONE]");
    stream_length +=
        (size_t)snprintf(stream + stream_length, sizeof stream - stream_length, "0\r\n\r\n");
}

/* ---- one connection ---- */

struct connection {
    size_t length;
    char request[REQUEST_MAX];
};

static struct connection *connections[CONNECTIONS]; /* by file descriptor */

static void close_connection(int fd)
{
    free(connections[fd]);
    connections[fd] = NULL;
    close(fd);
}

/* Responses are far smaller than a socket's buffer, so one write is enough. */
static void send_bytes(int fd, const char *bytes, size_t length)
{
    if (send(fd, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
        perror("stub_server: send");
}

static void sleep_for(nanos delay)
{
    struct timespec left = {.tv_sec = delay / NS_PER_S, .tv_nsec = delay % NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
}

static void answer_completion(int fd, nanos delay)
{
    char whole[sizeof HEADERS + sizeof stream];
    if (delay) {
        send_bytes(fd, HEADERS, sizeof HEADERS - 1);
        sleep_for(delay);
        send_bytes(fd, stream, stream_length);
        return;
    }
    memcpy(whole, HEADERS, sizeof HEADERS - 1);
    memcpy(whole + sizeof HEADERS - 1, stream, stream_length);
    send_bytes(fd, whole, sizeof HEADERS - 1 + stream_length);
}

static void answer_models(int fd)
{
    char answer[512];
    int length = snprintf(answer, sizeof answer,
                          "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n%s",
                          sizeof MODELS - 1, MODELS);
    send_bytes(fd, answer, (size_t)length);
}

/* The length of the request at the front of the buffer, 0 while it is incomplete. */
static size_t request_length(const char *request)
{
    static const char LENGTH[] = "content-length:";
    const char *end = strstr(request, "\r\n\r\n");
    size_t body = 0;
    if (!end)
        return 0;
    for (const char *line = request; line < end; line = strstr(line, "\r\n") + 2)
        if (strncasecmp(line, LENGTH, sizeof LENGTH - 1) == 0)
            body = strtoul(line + sizeof LENGTH - 1, NULL, 10);
    size_t length = (size_t)(end - request) + 4 + body;
    return strlen(request) >= length ? length : 0;
}

static void serve(int fd, nanos delay)
{
    struct connection *connection = connections[fd];
    size_t room = REQUEST_MAX - 1 - connection->length, length;
    ssize_t n = recv(fd, connection->request + connection->length, room, 0);
    if (n <= 0) {
        close_connection(fd);
        return;
    }
    connection->length += (size_t)n;
    connection->request[connection->length] = '\0';
    while ((length = request_length(connection->request))) {
        if (connection->request[0] == 'G')
            answer_models(fd);
        else
            answer_completion(fd, delay);
        connection->length -= length;
        memmove(connection->request, connection->request + length, connection->length + 1);
    }
}

/* ---- event loop ---- */

static void accept_client(int listener, int poll)
{
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = fd};
    if (fd < 0)
        return;
    if (fd >= CONNECTIONS || !(connections[fd] = calloc(1, sizeof *connections[fd]))) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &wanted);
}

static _Noreturn void run_server(int listener, nanos delay)
{
    struct epoll_event events[64], wanted = {.events = EPOLLIN, .data.fd = listener};
    int poll = epoll_create1(EPOLL_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    make_stream();
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &wanted);
    for (;;) {
        int count = epoll_wait(poll, events, sizeof events / sizeof *events, -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == listener)
                accept_client(listener, poll);
            else
                serve(events[i].data.fd, delay);
    }
}

void stub_server_start(struct stub_server *stub_server, nanos delay)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) ||
        listen(listener, 256) || getsockname(listener, (struct sockaddr *)&address, &length))
        abort();
    stub_server->port = ntohs(address.sin_port);
    stub_server->process = fork();
    if (stub_server->process < 0)
        abort();
    if (stub_server->process == 0)
        run_server(listener, delay);
    close(listener);
}

void stub_server_stop(struct stub_server *stub_server)
{
    kill(stub_server->process, SIGKILL);
    waitpid(stub_server->process, NULL, 0);
}
