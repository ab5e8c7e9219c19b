/* An event loop: descriptors and what to call when they are ready, over epoll.  Everything but event_loop_wake belongs
 * to the thread that turns the loop.  event_loop_new gives what event_loop_free frees; a watch is its owner's, and must
 * be removed (events 0) before its memory or its descriptor goes. */
#ifndef IPW_PORT_EVENT_LOOP_H
#define IPW_PORT_EVENT_LOOP_H

#include <stdbool.h>
#include <sys/epoll.h>

#include "core/err.h"
#include "core/units.h"

struct event_loop;

struct event_watch {
    int fd;
    void (*ready)(void *context, unsigned events); /* EPOLLIN, EPOLLOUT ...; may remove any watch */
    void *context;
    unsigned events; /* as registered; 0: not */
};

enum err event_loop_new(struct event_loop **out, struct error *why) MUST_USE;
void event_loop_free(struct event_loop *loop);

/* Registers the watch for these events, changes them, or with 0 removes it. */
enum err event_loop_watch(struct event_loop *loop, struct event_watch *watch, unsigned events)
    MUST_USE;
void event_loop_unwatch(struct event_loop *loop, struct event_watch *watch);

/* Calls `take` for every signal that the program handles (proc_block_signals), in the thread that turns the loop, which
 * watches them until it is freed. */
enum err event_loop_take_signals(struct event_loop *loop, void (*take)(void *context, int number),
                                 void *context, struct error *why) MUST_USE;

/* Waits for events until the monotonic time `until` (in the past: only looks), and calls what is ready. */
void event_loop_turn(struct event_loop *loop, nanos until);

/* Ends the wait of a turn, this or the next.  Any thread. */
void event_loop_wake(struct event_loop *loop);

/* ---- workers ---- */

/* Runs `work` in a thread; `done` is called by jobs_turn, in the thread that turns the loop. */
struct job {
    void (*work)(struct job *job);
    void (*done)(struct job *job);
    struct job *next;
};
struct jobs;

/* queue_max: jobs that wait. */
enum err jobs_open(struct event_loop *loop, const char *name, unsigned queue_max, struct jobs **out,
                   struct error *why) MUST_USE;
bool jobs_add(struct jobs *jobs, struct job *job); /* false: too many wait */
void jobs_turn(struct jobs *jobs);
/* Waits for the one that runs; false: it has not ended in time, and is left behind with all that it uses. */
bool jobs_close(struct jobs *jobs) MUST_USE;

#endif
