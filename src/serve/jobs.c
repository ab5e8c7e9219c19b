/* One thread and a queue.  What is done goes to a second list, and the loop is woken to take it from there. */
#include <stdlib.h>

#include "core/clock.h"
#include "port/event_loop.h"
#include "port/thread.h"
#include "serve/parts.h"

#define END_LIMIT (5 * NS_PER_S)

struct jobs {
    struct event_loop *loop;
    const char *name;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t added;
    struct job *first, **last; /* that wait */
    struct job *done, **done_last;
    unsigned count, most;
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
    jobs->most = queue_max;
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
    bool has_room = jobs->count < jobs->most;
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

void jobs_turn(struct jobs *jobs)
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
    jobs_turn(jobs);
    finish(jobs->first);
    pthread_mutex_destroy(&jobs->lock);
    pthread_cond_destroy(&jobs->added);
    free(jobs);
    return true;
}
