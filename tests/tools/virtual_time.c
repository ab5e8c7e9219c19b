/* virtual_time FILE LIBRARY COMMAND [ARGUMENTS]: runs the command in virtual time (tests/fakes/virtual_clock.h), which
 * all of its processes see; FILE is where they share it.  The exit status is the command's.
 *
 * Time moves only when nobody has anything to do: every other thread of these processes sleeps, and has not run while
 * every thread that waits with a limit went through a whole slice of waiting without an event. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fakes/virtual_clock.h"

enum { PAUSE_NS = 30000, PATH_SIZE = 300, STATUS_SIZE = 4096 };

static struct virtual_time *shared;

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static bool waits(int thread)
{
    for (int i = 0; i < WAITERS_MAX; i++)
        if (shared->waiters[i].state == WAITER_WAITS && shared->waiters[i].thread == thread)
            return true;
    return false;
}

/* How often a thread has stopped to run, by its status; -1 if it runs. */
static long rests_of(int process, int thread)
{
    char path[PATH_SIZE], text[STATUS_SIZE];
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", process, thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return 0; /* it has ended */
    text[length] = '\0';
    const char *state = strstr(text, "State:\t"),
               *count = strstr(text, "\nvoluntary_ctxt_switches:");
    bool rests = state && strchr("SZX", state[strlen("State:\t")]);
    return !rests ? -1 : count ? atol(strchr(count, ':') + 1) : 0;
}

/* The sum over the threads of a process that do not wait with a limit; false if one of them runs. */
static bool add_rests(int process, long *sum)
{
    char path[PATH_SIZE];
    bool all_rest = true;
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *tasks = opendir(path);
    struct dirent *entry;
    while (tasks && all_rest && (entry = readdir(tasks))) {
        int thread = atoi(entry->d_name);
        long rests = !isdigit((unsigned char)entry->d_name[0]) || waits(thread)
                         ? 0
                         : rests_of(process, thread);
        all_rest = rests >= 0;
        *sum += rests + thread;
    }
    if (tasks)
        closedir(tasks);
    return all_rest;
}

/* False if a thread runs; otherwise a number that changes when one has run. */
static bool all_rest(long *sum)
{
    *sum = 0;
    for (int i = 0; i < PROCESSES_MAX && shared->processes[i]; i++)
        if (!add_rests(shared->processes[i], sum))
            return false;
    return true;
}

static bool exists(int thread)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%d", thread);
    return access(path, F_OK) == 0;
}

/* Whether every waiter has seen this round; a waiter that was killed is removed. */
static bool all_have_seen(unsigned round)
{
    for (int i = 0; i < WAITERS_MAX; i++) {
        struct waiter *w = &shared->waiters[i];
        if (w->state != WAITER_FREE && !exists(w->thread))
            w->state = WAITER_FREE;
        else if (w->state == WAITER_WAITS && w->seen != round)
            return false;
    }
    return true;
}

/* The one with the earliest time; of several, the oldest thread. */
static struct waiter *earliest(void)
{
    struct waiter *found = NULL;
    for (int i = 0; i < WAITERS_MAX; i++) {
        struct waiter *w = &shared->waiters[i];
        if (w->state == WAITER_WAITS && !w->is_released &&
            (!found || w->until < found->until ||
             (w->until == found->until && w->thread < found->thread)))
            found = w;
    }
    return found;
}

/* Moves the time once, if nobody has anything to do. */
static void step(void)
{
    long before, after;
    unsigned moves = shared->moves;
    if (!all_rest(&before))
        return;
    unsigned round = ++shared->round;
    while (!all_have_seen(round)) {
        if (shared->moves != moves)
            return;
        pause_briefly();
    }
    if (!all_rest(&after) || after != before || shared->moves != moves)
        return;
    struct waiter *w = earliest();
    if (!w)
        return;
    if (w->until > shared->now)
        shared->now = w->until;
    w->is_released = 1;
    while (shared->moves == moves && exists(w->thread))
        pause_briefly();
}

static bool share(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *shared))
        return false;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return shared != MAP_FAILED;
}

int main(int argc, char **argv)
{
    int status;
    if (argc < 4 || !share(argv[1])) {
        perror("virtual_time FILE LIBRARY COMMAND [ARGUMENTS]");
        return 2;
    }
    pid_t child = fork();
    if (child == 0) {
        const char *loaded = getenv("LD_PRELOAD");
        char both[STATUS_SIZE];
        snprintf(both, sizeof both, "%s%s%s", argv[2], loaded ? ":" : "", loaded ? loaded : "");
        setenv("LD_PRELOAD", both, 1);
        setenv("IPW_FAKE_TIME", argv[1], 1);
        execvp(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (shared->processes[0]) /* the command has started */
            step();
        pause_briefly();
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
