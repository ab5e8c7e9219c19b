#define _GNU_SOURCE
#include "port/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text.h"
#include "port/fs.h"

/* What a child must find: the mask and the dispositions that we found. */
static sigset_t mask_before;
static bool mask_taken;
static void (*pipe_before)(int) = SIG_ERR;
static void (*child_before)(int) = SIG_ERR;

static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_COUNT = sizeof ENDING / sizeof *ENDING };
static bool is_ignored[ENDING_COUNT];

static void handled_signals(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < ENDING_COUNT; i++)
        if (!is_ignored[i])
            sigaddset(set, ENDING[i]);
    sigaddset(set, SIGCHLD);
}

/* Under nohup, or in the background of a script, some of these are ignored on purpose.  A blocked
 * signal is delivered to whoever waits for it even so: such a one must not be waited for. */
void proc_take_signals(void)
{
    sigset_t set;
    for (int i = 0; i < ENDING_COUNT; i++) {
        struct sigaction found;
        is_ignored[i] = sigaction(ENDING[i], NULL, &found) == 0 && found.sa_handler == SIG_IGN;
    }
    /* Who ignores this one is not told of a child's end, nor left its status. */
    child_before = signal(SIGCHLD, SIG_DFL);
    handled_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, &mask_before);
    mask_taken = true;
}

void proc_ignore_pipe(void)
{
    pipe_before = signal(SIGPIPE, SIG_IGN);
}

void proc_hold_standard_files(void)
{
    static const int MODES[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", MODES[fd] | O_CLOEXEC) != fd)
            return; /* no /dev/null: nothing to hold them with */
}

int proc_poll_signal(nanos patience)
{
    sigset_t set;
    handled_signals(&set);
    sigdelset(&set, SIGCHLD);
    struct timespec limit = {
        .tv_sec = (time_t)(patience / NS_PER_S),
        .tv_nsec = (long)(patience % NS_PER_S),
    };
    int number = sigtimedwait(&set, NULL, &limit);
    return number > 0 ? number : 0;
}

/* ---- the child's side ---- */

static _Noreturn void become_command(int go, int failure, char *const argv[])
{
    char byte;
    ssize_t n;
    do
        n = read(go, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(125); /* abandoned */
    if (mask_taken)
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
    if (pipe_before != SIG_ERR)
        signal(SIGPIPE, pipe_before);
    if (child_before == SIG_IGN)
        signal(SIGCHLD, SIG_IGN);
    execvp(argv[0], argv);
    int number = errno;
    n = write(failure, &number, sizeof number);
    _exit(n == (ssize_t)sizeof number ? 127 : 126);
}

/* ---- the parent's side ---- */

enum err child_prepare(struct child *child, char *const argv[], struct error *why)
{
    int go[2], failure[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return err_set(why, err_from_errno(errno), "cannot make a pipe: %s", strerror(errno));
    if (pipe2(failure, O_CLOEXEC) < 0) {
        close(go[0]);
        close(go[1]);
        return err_set(why, err_from_errno(errno), "cannot make a pipe: %s", strerror(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        close(failure[0]);
        become_command(go[0], failure[1], argv);
    }
    int fork_errno = errno;
    close(go[0]);
    close(failure[1]);
    if (pid < 0) {
        close(go[1]);
        close(failure[0]);
        return err_set(why, err_from_errno(fork_errno), "cannot start a process: %s",
                       strerror(fork_errno));
    }
    *child = (struct child){pid, go[1], failure[0]};
    return ERR_OK;
}

static void close_pipes(struct child *child)
{
    if (child->go >= 0)
        close(child->go);
    if (child->failure >= 0)
        close(child->failure);
    child->go = child->failure = -1;
}

void child_abandon(struct child *child)
{
    close_pipes(child);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    child->pid = -1;
}

enum err child_go(struct child *child, int *exit_code, struct error *why)
{
    int number = 0;
    ssize_t n = write(child->go, "g", 1);
    if (n == 1)
        do
            n = read(child->failure, &number, sizeof number);
        while (n < 0 && errno == EINTR);
    else
        number = errno;
    if (n == 0) {
        close_pipes(child);
        return ERR_OK;
    }
    child_abandon(child);
    *exit_code = number == ENOENT || number == ENOTDIR ? 127 : 126;
    return err_set(why, err_from_errno(number), "%s", strerror(number));
}

static void fill_end(struct child_end *end, int status, const struct rusage *usage)
{
    *end = (struct child_end){
        .user_s = (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec * 1e-6,
        .system_s = (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec * 1e-6,
        .rss_mb = (double)usage->ru_maxrss / 1024,
    };
    if (WIFSIGNALED(status))
        end->signal = WTERMSIG(status);
    end->exit_code = end->signal ? 128 + end->signal : WEXITSTATUS(status);
}

int child_wait(struct child *child, struct child_end *end, bool *from_terminal)
{
    sigset_t set;
    handled_signals(&set);
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(child->pid, &status, WNOHANG, &usage);
        if (pid == child->pid) {
            fill_end(end, status, &usage);
            child->pid = -1;
            return 0;
        }
        if (pid < 0 && errno != EINTR) {
            *end = (struct child_end){.exit_code = 126};
            child->pid = -1;
            return 0;
        }
        /* The mask holds SIGCHLD back until it is asked for here, so none can slip between. */
        siginfo_t info;
        int number = sigwaitinfo(&set, &info);
        if (number > 0 && number != SIGCHLD) {
            *from_terminal = info.si_code == SI_KERNEL;
            return number;
        }
    }
}

void proc_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static unsigned count_children(void)
{
    char path[64], list[4096];
    str_format(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    /* The kernel's own view of this process, whatever root the sensors are read under. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 1; /* there is at least the one that waitpid saw */
    ssize_t n = read(fd, list, sizeof list - 1);
    close(fd);
    unsigned count = 0;
    for (ssize_t i = 0; i < n; i++)
        count += list[i] == ' ';
    return count ? count : 1;
}

unsigned proc_orphans(void)
{
    pid_t pid;
    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    return pid < 0 ? 0 : count_children();
}

int proc_await_orphans(void)
{
    int number = 0;
    while (!number && proc_orphans() > 0)
        number = proc_poll_signal(20 * NS_PER_MS);
    return number;
}

void proc_own_cost(struct own_cost *out)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    out->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    out->rss_mb = (double)usage.ru_maxrss / 1024;
}

void proc_limit_heaps(void)
{
#ifdef __GLIBC__
    enum { HEAPS = 4 }; /* enough that threads seldom wait for one another's */
    mallopt(M_ARENA_MAX, HEAPS);
#endif
}
