/* The watch is edge-triggered: the listener remembers that connections are waiting, so that a shortage needs no change
 * of the watch, and an attempt that is due needs no event. */
#define _GNU_SOURCE
#include "port/listener.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/text.h"

#define PAUSE (20 * NS_PER_MS)
enum { RESERVE = 16 }; /* descriptors that requests may need: upstream connections, files */

static int try_listen(const struct addrinfo *info)
{
    const int on = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

static unsigned bound_port(int fd)
{
    struct sockaddr_storage bound;
    socklen_t size = sizeof bound;
    char host[128], service[8];
    if (getsockname(fd, (struct sockaddr *)&bound, &size) ||
        getnameinfo((struct sockaddr *)&bound, size, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return 0;
    return (unsigned)strtoul(service, NULL, 10);
}

static void on_ready(void *context, unsigned events)
{
    struct listener *listener = context;
    (void)events;
    listener->is_ready = true;
}

enum err listener_open(struct listener *listener, struct event_loop *loop, const char *address,
                       unsigned port, struct error *why)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[8];
    *listener = (struct listener){.loop = loop, .watch = {.fd = -1}};
    str_format(service, sizeof service, "%u", port);
    if (getaddrinfo(address, service, &hints, &found))
        return err_set(why, ERR_USAGE, "'%.80s' is not an address of this machine", address);
    int fd = try_listen(found);
    int failure = errno;
    freeaddrinfo(found);
    if (fd < 0)
        return err_set(why, failure == EACCES ? ERR_DENIED : ERR_BUSY,
                       "cannot listen on %.80s port %u: %s", address, port, strerror(failure));
    listener->port = bound_port(fd);
    listener->watch = (struct event_watch){.fd = fd, .ready = on_ready, .context = listener};
    enum err err = err_explain(why, event_loop_watch(loop, &listener->watch, EPOLLIN | EPOLLET));
    if (err)
        listener_close(listener);
    return err;
}

void listener_close(struct listener *listener)
{
    if (!listener->loop || listener->watch.fd < 0)
        return;
    event_loop_unwatch(listener->loop, &listener->watch);
    close(listener->watch.fd);
    listener->watch.fd = -1;
    listener->is_ready = false;
}

nanos listener_due(const struct listener *listener)
{
    return listener->is_ready ? listener->next : INT64_MAX;
}

void listener_pause(struct listener *listener, nanos now)
{
    listener->next = now + PAUSE;
}

int listener_accept(struct listener *listener, nanos now, struct sockaddr_storage *peer,
                    socklen_t *size)
{
    if (!listener->is_ready || now < listener->next)
        return -1;
    for (;;) {
        *size = sizeof *peer;
        int fd = accept4(listener->watch.fd, (struct sockaddr *)peer, size,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            return fd;
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            listener->is_ready = false;
        else /* EMFILE, ENFILE, ENOBUFS, ENOMEM; or an error of one connection's network */
            listener_pause(listener, now);
        return -1;
    }
}

bool listener_is_scarce(int fd)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return false;
    /* The number of a new descriptor is the lowest free one: about as many are open. */
    rlim_t reserve = limit.rlim_cur / 4 < RESERVE ? limit.rlim_cur / 4 : RESERVE;
    return (rlim_t)fd + reserve >= limit.rlim_cur;
}
