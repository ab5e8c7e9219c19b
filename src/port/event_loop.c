#define _GNU_SOURCE
#include "port/event_loop.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "core/xalloc.h"
#include "port/proc.h"
#include "port/thread.h"

/* Small batches: output that handlers queue for other connections is sent after the batch. */
enum { BATCH = 16 };

struct event_loop {
    int epoll;
    struct event_watch wake, signals;
    void (*take_signal)(void *context, int number);
    void *signal_context;
    struct epoll_event batch[BATCH];
    int next, count; /* of the batch that is being handled */
};

static void drain(void *context, unsigned events)
{
    struct event_loop *loop = context;
    uint64_t times;
    (void)events;
    (void)!read(loop->wake.fd, &times, sizeof times);
}

enum err event_loop_new(struct event_loop **out, struct error *why)
{
    struct event_loop *loop = *out = XNEW(loop);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->signals.fd = -1;
    loop->wake = (struct event_watch){
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .ready = drain, .context = loop};
    if (loop->epoll < 0 || loop->wake.fd < 0 || event_loop_watch(loop, &loop->wake, EPOLLIN)) {
        enum err err = err_from_errno(errno);
        event_loop_free(loop);
        *out = NULL;
        return err_set(why, err, "cannot create an event loop: %s", err_text(err));
    }
    return ERR_OK;
}

void event_loop_free(struct event_loop *loop)
{
    if (!loop)
        return;
    if (loop->wake.fd >= 0)
        close(loop->wake.fd);
    if (loop->signals.fd >= 0)
        close(loop->signals.fd);
    if (loop->epoll >= 0)
        close(loop->epoll);
    free(loop);
}

enum err event_loop_watch(struct event_loop *loop, struct event_watch *watch, unsigned events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (events == watch->events)
        return ERR_OK;
    int how = !events ? EPOLL_CTL_DEL : watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(loop->epoll, how, watch->fd, &event) && events)
        return err_from_errno(errno);
    watch->events = events;
    /* Events already returned must not be delivered to a removed watch. */
    for (int i = loop->next; !events && i < loop->count; i++)
        if (loop->batch[i].data.ptr == watch)
            loop->batch[i].data.ptr = NULL;
    return ERR_OK;
}

void event_loop_unwatch(struct event_loop *loop, struct event_watch *watch)
{
    (void)!event_loop_watch(loop, watch, 0);
}

static void take_signals(void *context, unsigned events)
{
    struct event_loop *loop = context;
    (void)events;
    for (int number; (number = proc_poll_signal(0)) != 0;)
        loop->take_signal(loop->signal_context, number);
}

enum err event_loop_take_signals(struct event_loop *loop, void (*take)(void *context, int number),
                                 void *context, struct error *why)
{
    loop->take_signal = take;
    loop->signal_context = context;
    loop->signals =
        (struct event_watch){.fd = proc_signal_fd(), .ready = take_signals, .context = loop};
    return err_explain(why, event_loop_watch(loop, &loop->signals, EPOLLIN));
}

/* Rounded up: a wait that ends early would be repeated at once. */
static int wait_ms(nanos until)
{
    nanos left = until - clock_now();
    if (left <= 0)
        return 0;
    nanos ms = (left + NS_PER_MS - 1) / NS_PER_MS;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

void event_loop_run_once(struct event_loop *loop, nanos until)
{
    loop->count = epoll_wait(loop->epoll, loop->batch, BATCH, wait_ms(until));
    for (loop->next = 0; loop->next < loop->count;) {
        struct epoll_event *event = &loop->batch[loop->next++];
        struct event_watch *watch = event->data.ptr;
        if (watch)
            watch->ready(watch->context, event->events);
    }
    loop->count = 0;
}

void event_loop_wake(struct event_loop *loop)
{
    uint64_t once = 1;
    (void)!write(loop->wake.fd, &once, sizeof once);
}

/* ---- listening ---- */

/* The watch is edge-triggered: the listener remembers that connections are waiting, so that a shortage needs no change
 * of the watch, and an attempt that is due needs no event. */
#define PAUSE (20 * NS_PER_MS)
enum { RESERVE = 16 }; /* descriptors that requests may need: upstream connections, files */

static int try_bind(const struct addrinfo *info)
{
    const int on = 1;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0)
        return fd;
    int failure = errno;
    close(fd);
    errno = failure;
    return -1;
}

/* A socket that is bound to the address, but does not listen yet. */
static enum err bind_address(const char *address, unsigned port, int *out, struct error *why)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char service[8];
    chars_format(service, "%u", port);
    if (getaddrinfo(address, service, &hints, &found))
        return err_set(why, ERR_USAGE, "'%.80s' is not an address of this machine", address);
    *out = try_bind(found);
    int failure = errno;
    freeaddrinfo(found);
    if (*out >= 0)
        return ERR_OK;
    return err_set(why, failure == EACCES ? ERR_DENIED : ERR_BUSY,
                   "cannot listen on %.80s port %u: %s", address, port, strerror(failure));
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

static void on_listener(void *context, unsigned events)
{
    struct listener *listener = context;
    (void)events;
    listener->is_ready = true;
}

enum err listener_check(const char *address, unsigned port, struct error *why)
{
    int fd = -1;
    enum err err = bind_address(address, port, &fd, why);
    if (!err)
        close(fd);
    return err;
}

enum err listener_open(struct listener *listener, struct event_loop *loop, const char *address,
                       unsigned port, struct error *why)
{
    int fd = -1;
    *listener = (struct listener){.loop = loop, .watch = {.fd = -1}};
    enum err err = bind_address(address, port, &fd, why);
    if (err)
        return err;
    listener->port = bound_port(fd);
    listener->watch = (struct event_watch){.fd = fd, .ready = on_listener, .context = listener};
    if (listen(fd, SOMAXCONN))
        err = err_set(why, ERR_BUSY, "cannot listen on %.80s port %u: %s", address, port,
                      strerror(errno));
    if (!err)
        err = err_explain(why, event_loop_watch(loop, &listener->watch, EPOLLIN | EPOLLET));
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

/* ---- workers ---- */

/* One thread and a queue.  Finished jobs go to a second list, and the loop is woken to process it. */

#define END_LIMIT (5 * NS_PER_S)

struct jobs {
    struct event_loop *loop;
    const char *name;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t added;
    struct job *first, **last; /* waiting */
    struct job *done, **done_last;
    unsigned count, max;
    bool is_ending;
};

static struct job *next_job(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    while (!jobs->first && !jobs->is_ending)
        pthread_cond_wait(&jobs->added, &jobs->lock);
    struct job *job = jobs->is_ending ? NULL : jobs->first;
    if (job) {
        jobs->first = job->next;
        if (!jobs->first)
            jobs->last = &jobs->first;
        jobs->count--;
    }
    pthread_mutex_unlock(&jobs->lock);
    return job;
}

static void *jobs_main(void *argument)
{
    struct jobs *jobs = argument;
    thread_name(jobs->name, -1);
    for (struct job *job; (job = next_job(jobs));) {
        job->work(job);
        job->next = NULL;
        pthread_mutex_lock(&jobs->lock);
        *jobs->done_last = job;
        jobs->done_last = &job->next;
        pthread_mutex_unlock(&jobs->lock);
        event_loop_wake(jobs->loop);
    }
    return NULL;
}

enum err jobs_open(struct event_loop *loop, const char *name, unsigned queue_max, struct jobs **out,
                   struct error *why)
{
    struct jobs *jobs = *out = XNEW(jobs);
    jobs->loop = loop;
    jobs->name = name;
    jobs->max = queue_max;
    jobs->last = &jobs->first;
    jobs->done_last = &jobs->done;
    pthread_mutex_init(&jobs->lock, NULL);
    pthread_cond_init(&jobs->added, NULL);
    enum err err = thread_start(&jobs->thread, jobs_main, jobs);
    if (err) {
        free(jobs);
        *out = NULL;
    }
    return err_explain(why, err);
}

bool jobs_add(struct jobs *jobs, struct job *job)
{
    pthread_mutex_lock(&jobs->lock);
    bool has_room = jobs->count < jobs->max;
    if (has_room) {
        job->next = NULL;
        *jobs->last = job;
        jobs->last = &job->next;
        jobs->count++;
        pthread_cond_signal(&jobs->added);
    }
    pthread_mutex_unlock(&jobs->lock);
    return has_room;
}

static void finish(struct job *job)
{
    for (struct job *next; job; job = next) {
        next = job->next;
        job->done(job);
    }
}

void jobs_dispatch(struct jobs *jobs)
{
    pthread_mutex_lock(&jobs->lock);
    struct job *done = jobs->done;
    jobs->done = NULL;
    jobs->done_last = &jobs->done;
    pthread_mutex_unlock(&jobs->lock);
    finish(done);
}

bool jobs_close(struct jobs *jobs)
{
    if (!jobs)
        return true;
    pthread_mutex_lock(&jobs->lock);
    jobs->is_ending = true;
    pthread_cond_signal(&jobs->added);
    pthread_mutex_unlock(&jobs->lock);
    if (!thread_join(jobs->thread, clock_now() + END_LIMIT))
        return false;
    jobs_dispatch(jobs);
    finish(jobs->first);
    pthread_mutex_destroy(&jobs->lock);
    pthread_cond_destroy(&jobs->added);
    free(jobs);
    return true;
}
