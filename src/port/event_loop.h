/* An event loop over epoll: descriptors and the callbacks for when they are ready.  Everything except
 * event_loop_wake must be called by the loop's thread.  event_loop_free frees what event_loop_new allocates; a
 * watch is owned by the caller and must be removed (events 0) before its memory is freed or its descriptor closed. */
#ifndef IPW_PORT_EVENT_LOOP_H
#define IPW_PORT_EVENT_LOOP_H

#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/err.h"
#include "core/units.h"

struct event_loop;

struct event_watch {
    int fd;
    void (*ready)(void *context, unsigned events); /* EPOLLIN, EPOLLOUT ...; may remove any watch */
    void *context;
    unsigned events; /* as registered; 0: not registered */
};

enum err event_loop_new(struct event_loop **out, struct error *why) MUST_USE;
void event_loop_free(struct event_loop *loop);

/* Registers the watch for these events, changes them, or with 0 removes it. */
enum err event_loop_watch(struct event_loop *loop, struct event_watch *watch, unsigned events)
    MUST_USE;
void event_loop_unwatch(struct event_loop *loop, struct event_watch *watch);

/* Calls `take` in the loop's thread for every signal that the program handles (proc_block_signals), until the loop
 * is freed. */
enum err event_loop_take_signals(struct event_loop *loop, void (*take)(void *context, int number),
                                 void *context, struct error *why) MUST_USE;

/* Waits for events until the monotonic time `until` (in the past: polls) and calls the handlers. */
void event_loop_run_once(struct event_loop *loop, nanos until);

/* Ends the current or the next wait.  Any thread. */
void event_loop_wake(struct event_loop *loop);

/* ---- listening ---- */

/* A listening TCP socket.  accept fails while the process or the system has no free descriptor, and nothing reports
 * when there is one again: a listener then tries again after a short time, which listener_due tells. */
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
/* Whether listener_open would succeed, with its errors.  Nothing listens meanwhile: a client is refused, and not
 * accepted by a server that is never going to answer. */
enum err listener_check(const char *address, unsigned port, struct error *why) MUST_USE;

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

/* ---- workers ---- */

/* Runs `work` in a thread; `done` is called by jobs_dispatch, in the loop's thread. */
struct job {
    void (*work)(struct job *job);
    void (*done)(struct job *job);
    struct job *next;
};
struct jobs;

/* queue_max: maximum number of waiting jobs. */
enum err jobs_open(struct event_loop *loop, const char *name, unsigned queue_max, struct jobs **out,
                   struct error *why) MUST_USE;
bool jobs_add(struct jobs *jobs, struct job *job); /* false: the queue is full */
void jobs_dispatch(struct jobs *jobs);
/* Waits for the running job; false: it did not end in time, and is left behind with everything it uses. */
bool jobs_close(struct jobs *jobs) MUST_USE;

#endif
