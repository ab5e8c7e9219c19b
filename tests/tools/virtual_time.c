/* virtual_time FILE LIBRARY COMMAND [ARGUMENTS]: runs the command in virtual time (tests/fakes/virtual_clock.h), which
 * all of its processes see; FILE is where they share it.  The exit status is the command's.
 *
 * Time moves only when nobody has anything to do: every other thread of these processes sleeps, and has not run while
 * every thread that waits with a limit went through a whole slice of waiting without an event. */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fakes/virtual_clock.h"

enum { PAUSE_NS = 30000, STEPS_AFTER = 20, PATH_SIZE = 300, STATUS_SIZE = 4096 };

static struct virtual_time *shared;

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static bool waits(int thread)
{
    for (int i = 0; i < WAITERS_MAX; i++)
        if (shared->waiters[i].is_waiting && shared->waiters[i].thread == thread)
            return true;
    return false;
}

/* A file of a thread; empty if the thread has ended. */
static void read_about(int process, int thread, const char *name, char *text, size_t size)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", process, thread, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* How often a thread has stopped to run, by its status; -1 if it runs.  A thread that was preempted on its way to sleep
 * is shown as asleep, although it may find what it wants to wait for: only its system call tells. */
static long rests_of(int process, int thread)
{
    char status[STATUS_SIZE], call[STATUS_SIZE];
    read_about(process, thread, "status", status, sizeof status);
    if (!*status)
        return 0;
    const char *state = strstr(status, "State:\t"),
               *count = strstr(status, "\nvoluntary_ctxt_switches:");
    if (!state || !strchr("SZX", state[strlen("State:\t")]))
        return -1;
    read_about(process, thread, "syscall", call, sizeof call);
    if (strncmp(call, "running", strlen("running")) == 0)
        return -1;
    return count ? atol(strchr(count, ':') + 1) : 0;
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
        if (w->thread && !exists(w->thread)) {
            w->is_waiting = 0;
            w->thread = 0;
        } else if (w->is_waiting && w->seen != round) {
            return false;
        }
    }
    return true;
}

/* The one with the earliest time; of several, the oldest thread. */
static struct waiter *earliest(void)
{
    struct waiter *found = NULL;
    for (int i = 0; i < WAITERS_MAX; i++) {
        struct waiter *w = &shared->waiters[i];
        if (w->is_waiting && !w->is_released &&
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

/* Processes that the command left behind, such as a watchdog, get some time to end. */
static void end_the_others(void)
{
    for (int i = 0; i < STEPS_AFTER; i++) {
        step();
        pause_briefly();
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    }
    for (int i = 0; i < PROCESSES_MAX && shared->processes[i]; i++)
        kill(shared->processes[i], SIGKILL);
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
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* the system calls of descendants can be read */
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody else moves its time */
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
    end_the_others();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
