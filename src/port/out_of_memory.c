#define _GNU_SOURCE
#include "port/out_of_memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/jv.h"
#include "core/memory.h"
#include "core/xalloc.h"

enum {
    RESERVE = 1 << 20, /* for the last actions */
    LIMIT_S = 10,      /* they must not keep the program from ending */
    LOCK_TRIES = 100,  /* of 1 ms: a list that stays locked is read as it is */
};

static const char *program = "";
static void *reserve;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct last_action *last;

void last_action_add(struct last_action *action)
{
    pthread_mutex_lock(&lock);
    action->next = last;
    last = action;
    pthread_mutex_unlock(&lock);
}

void last_action_remove(struct last_action *action)
{
    pthread_mutex_lock(&lock);
    for (struct last_action **at = &last; *at; at = &(*at)->next)
        if (*at == action) {
            *at = action->next;
            break;
        }
    pthread_mutex_unlock(&lock);
}

/* The process ends by SIGALRM if an action hangs. */
static void limit_time(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(LIMIT_S);
}

static void report(size_t size)
{
    char line[160];
    int length = size ? snprintf(line, sizeof line,
                                 "%s: out of memory: cannot allocate %zu bytes\n", program, size)
                      : snprintf(line, sizeof line, "%s: out of memory\n", program);
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written; /* nothing is left to report it to */
}

static void end(size_t size)
{
    static atomic_bool is_ending;
    static _Thread_local bool is_mine;
    if (is_mine)
        _exit(EXIT_FAILURE); /* an action needs more than the reserve */
    if (atomic_exchange(&is_ending, true))
        for (;;)
            pause(); /* until the thread that came first has ended the process */
    is_mine = true;
    limit_time();
    free(reserve);
    report(size);
    for (int i = 0; i < LOCK_TRIES && pthread_mutex_trylock(&lock); i++)
        usleep(1000);
    for (const struct last_action *action = last; action; action = action->next)
        action->run(action->context);
    _exit(EXIT_FAILURE);
}

void out_of_memory_install(const char *name)
{
    program = name;
    reserve = xmalloc(RESERVE);
    memory_end_with(end);
    jv_allocate_with(xmalloc);
}
