/* A listening TCP socket on an event loop.  accept fails while the process or the system has no free descriptor, and
 * nothing reports when there is one again: a listener then tries again after a short time, which listener_due tells.
 * listener_close releases what listener_open acquires. */
#ifndef IPW_PORT_LISTENER_H
#define IPW_PORT_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>

#include "core/err.h"
#include "core/units.h"
#include "port/event_loop.h"

struct listener {
    struct event_loop *loop;
    struct event_watch watch; /* fd -1: closed */
    unsigned port;
    bool is_ready; /* connections may be waiting */
    nanos next;    /* no attempt before this time, after a shortage */
};

/* address: numeric or a name; port 0: any free port.  ERR_USAGE: not an address; ERR_DENIED, ERR_BUSY: cannot listen.
 * The listener must not move until it is closed. */
enum err listener_open(struct listener *listener, struct event_loop *loop, const char *address,
                       unsigned port, struct error *why) MUST_USE;
void listener_close(struct listener *listener);

/* The time of the next attempt: now (0) if connections may be waiting; INT64_MAX: when the loop reports some. */
nanos listener_due(const struct listener *listener);

/* The descriptor of a connection, nonblocking, and the address of its client; -1: none now. */
int listener_accept(struct listener *listener, nanos now, struct sockaddr_storage *peer,
                    socklen_t *size);

/* Makes no attempt for a while: there is no capacity for a connection. */
void listener_pause(struct listener *listener, nanos now);

/* Whether descriptors are scarce, after one was opened with this number: so few are free that a request could fail for
 * lack of one. */
bool listener_is_scarce(int fd);

#endif
