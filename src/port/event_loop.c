#define _GNU_SOURCE
#include "port/event_loop.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
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
    struct event_loop *loop = *out = calloc(1, sizeof *loop);
    if (!loop)
        return err_no_memory(why);
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
    struct jobs *jobs = *out = calloc(1, sizeof *jobs);
    if (!jobs)
        return err_no_memory(why);
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
