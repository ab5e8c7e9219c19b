#define _GNU_SOURCE
#include "port/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/text.h"
#include "port/file.h"
#include "port/subtree.h"
#include "port/thread.h"

#define LISTEN_PERIOD (50 * NS_PER_MS)
#define ORPHAN_PERIOD (20 * NS_PER_MS)
#define FILTER_PERIOD (2 * NS_PER_MS)

/* The signal mask and dispositions at program start, restored in children. */
static sigset_t mask_before;
static bool mask_is_set;
static void (*pipe_before)(int) = SIG_ERR;
static void (*size_before)(int) = SIG_ERR;
static void (*child_before)(int) = SIG_ERR;

static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_COUNT = COUNT_OF(ENDING) };
static bool is_ignored[ENDING_COUNT];

static void handled_signals(sigset_t *set)
{
    sigemptyset(set);
    for (int i = 0; i < ENDING_COUNT; i++)
        if (!is_ignored[i])
            sigaddset(set, ENDING[i]);
    sigaddset(set, SIGCHLD);
}

bool proc_signal_is_pending(void)
{
    sigset_t pending;
    if (!mask_is_set || sigpending(&pending))
        return false;
    for (int i = 0; i < ENDING_COUNT; i++)
        if (!is_ignored[i] && sigismember(&pending, ENDING[i]) == 1)
            return true;
    return false;
}

/* Output that nobody reads must not keep us from ending. */
static void end_if_signaled(void)
{
    if (proc_signal_is_pending())
        proc_end_by_signals();
}

/* Under nohup, or in the background of a script, some of these are ignored on purpose.  sigwait would still receive
 * a blocked signal that is ignored: an ignored one is not waited for. */
void proc_block_signals(void)
{
    sigset_t set;
    for (int i = 0; i < ENDING_COUNT; i++) {
        struct sigaction found;
        is_ignored[i] = sigaction(ENDING[i], NULL, &found) == 0 && found.sa_handler == SIG_IGN;
    }
    /* While it is ignored, a child's end is not signaled and its status is lost. */
    child_before = signal(SIGCHLD, SIG_DFL);
    handled_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, &mask_before);
    mask_is_set = true;
    file_on_stall(end_if_signaled);
}

static void exit_on_signal(int number)
{
    _exit(128 + number);
}

/* Unblocks the signals for this thread only: threads that it starts block all signals. */
static void set_signals_fatal(bool yes)
{
    sigset_t set;
    if (!mask_is_set)
        return; /* they end the process anyway */
    handled_signals(&set);
    sigdelset(&set, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < ENDING_COUNT; i++)
        if (!is_ignored[i])
            signal(ENDING[i], yes ? exit_on_signal : SIG_DFL);
    if (yes)
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void proc_end_by_signals(void)
{
    set_signals_fatal(true);
}

void proc_defer_signals(void)
{
    set_signals_fatal(false);
}

/* The signal stays pending until it is polled, instead of being counted by a handler: threads resume together, and a
 * query may end before the handler's thread has run it. */
static void continue_signal(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCONT);
}

void proc_watch_stops(void)
{
    sigset_t set;
    continue_signal(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

unsigned proc_stops(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned counted;
    static const struct timespec at_once;
    sigset_t set;
    continue_signal(&set);
    pthread_mutex_lock(&lock); /* receiving and counting must be one step */
    if (sigtimedwait(&set, NULL, &at_once) == SIGCONT)
        counted++;
    unsigned stops = counted;
    pthread_mutex_unlock(&lock);
    return stops;
}

void proc_ignore_write_signals(void)
{
    pipe_before = signal(SIGPIPE, SIG_IGN);
    size_before = signal(SIGXFSZ, SIG_IGN);
}

void proc_hold_standard_files(void)
{
    static const int MODES[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", MODES[fd] | O_CLOEXEC) != fd)
            return; /* without /dev/null the descriptors cannot be occupied */
}

int proc_signal_fd(void)
{
    sigset_t set;
    handled_signals(&set);
    sigdelset(&set, SIGCHLD);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Returns the signal with *info filled, or -1 after the timeout. */
static int wait_for_signal(const sigset_t *set, nanos timeout, siginfo_t *info)
{
    struct timespec limit = {
        .tv_sec = (time_t)(timeout / NS_PER_S),
        .tv_nsec = (long)(timeout % NS_PER_S),
    };
    return sigtimedwait(set, info, &limit);
}

int proc_poll_signal(nanos timeout)
{
    sigset_t set;
    siginfo_t info;
    handled_signals(&set);
    sigdelset(&set, SIGCHLD);
    int number = wait_for_signal(&set, timeout, &info);
    return number > 0 ? number : 0;
}

static void *listen_for_signals(void *argument)
{
    struct signal_listener *listener = argument;
    thread_name("ipw-signals", -1);
    while (!atomic_load(&listener->over)) {
        int number = proc_poll_signal(LISTEN_PERIOD);
        if (number) {
            atomic_store(&listener->signal, number);
            atomic_store(&listener->cancel, true);
        }
    }
    return NULL;
}

enum err signal_listener_start(struct signal_listener *listener, struct error *why)
{
    atomic_init(&listener->cancel, false);
    atomic_init(&listener->over, false);
    atomic_init(&listener->signal, 0);
    enum err err = thread_start(&listener->thread, listen_for_signals, listener);
    return err ? err_set(why, err, "cannot start a thread: %s", err_text(err)) : ERR_OK;
}

int signal_listener_stop(struct signal_listener *listener)
{
    atomic_store(&listener->over, true);
    pthread_join(listener->thread, NULL);
    return atomic_load(&listener->signal);
}

/* ---- child side ---- */

static _Noreturn void become_command(int go, int failure, char *const argv[])
{
    char byte;
    ssize_t n;
    do
        n = read(go, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n != 1)
        _exit(125); /* abandoned */
    if (mask_is_set)
        sigprocmask(SIG_SETMASK, &mask_before, NULL);
    if (pipe_before != SIG_ERR)
        signal(SIGPIPE, pipe_before);
    if (size_before != SIG_ERR)
        signal(SIGXFSZ, size_before);
    if (child_before == SIG_IGN)
        signal(SIGCHLD, SIG_IGN);
    execvp(argv[0], argv);
    int number = errno;
    n = write(failure, &number, sizeof number);
    _exit(n == (ssize_t)sizeof number ? 127 : 126);
}

/* False when the parent has ended already: its death would not be signaled. */
static bool become_helper(int output, pid_t parent)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent && nothing >= 0 &&
           dup2(nothing, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
           dup2(output, STDERR_FILENO) >= 0;
}

/* ---- parent side ---- */

/* output: for a helper; -1 for other children. */
static enum err prepare(struct child *child, char *const argv[], int output, struct error *why)
{
    int go[2], failure[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return err_errno(why, errno, "cannot create a pipe");
    if (pipe2(failure, O_CLOEXEC) < 0) {
        close(go[0]);
        close(go[1]);
        return err_errno(why, errno, "cannot create a pipe");
    }
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        close(go[1]);
        close(failure[0]);
        if (output >= 0 && !become_helper(output, parent))
            _exit(126);
        become_command(go[0], failure[1], argv);
    }
    int fork_errno = errno;
    close(go[0]);
    close(failure[1]);
    if (pid < 0) {
        close(go[1]);
        close(failure[0]);
        return err_errno(why, fork_errno, "cannot start a process");
    }
    *child = (struct child){pid, go[1], failure[0]};
    return ERR_OK;
}

enum err child_prepare(struct child *child, char *const argv[], struct error *why)
{
    return prepare(child, argv, -1, why);
}

enum err child_prepare_helper(struct child *child, char *const argv[], int output,
                              struct error *why)
{
    return prepare(child, argv, output, why);
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

bool child_poll(struct child *child, struct child_end *end)
{
    int status;
    struct rusage usage;
    pid_t pid = wait4(child->pid, &status, WNOHANG, &usage);
    if (pid == 0 || (pid < 0 && errno == EINTR))
        return false;
    if (pid == child->pid)
        fill_end(end, status, &usage);
    else
        *end = (struct child_end){.exit_code = 126};
    child->pid = -1;
    return true;
}

int child_wait(struct child *child, struct child_end *end, nanos until, bool *from_terminal)
{
    sigset_t set;
    handled_signals(&set);
    while (!child_poll(child, end)) {
        /* SIGCHLD is blocked and received only here, so none is lost in between. */
        siginfo_t info;
        nanos left = until - clock_now();
        int number = left > 0 ? wait_for_signal(&set, left, &info) : 0;
        if (number > 0 && number != SIGCHLD) {
            *from_terminal = info.si_code == SI_KERNEL;
            return number;
        }
        if (left <= 0)
            return WAIT_TIMEOUT;
    }
    return WAIT_ENDED;
}

bool child_is_in_our_group(const struct child *child)
{
    return getpgid(child->pid) == getpgrp();
}

void proc_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Helpers that may still run; they are our children but do not count as orphans. */
enum { HELPERS_MAX = 64 };
static pthread_mutex_t helpers_lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t helpers[HELPERS_MAX]; /* under the lock; 0: free */

/* Call with the lock held: whether the process is a helper; `forget` removes it from the list. */
static bool is_helper(pid_t pid, bool forget)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (pid && helpers[i] == pid) {
            helpers[i] = forget ? 0 : pid;
            return true;
        }
    return false;
}

/* Call with the lock held.  Children that a thread started are not in this list. */
static unsigned count_children(void)
{
    bool has_helpers = false;
    for (size_t i = 0; i < HELPERS_MAX; i++)
        has_helpers |= helpers[i] != 0;
    char path[64], list[4096];
    chars_format(path, "/proc/self/task/%d/children", (int)getpid());
    /* Of the real machine, whatever root prefix the sensors are read under. */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 1; /* at least the one that waitpid reported */
    ssize_t n = read(fd, list, sizeof list - 1);
    close(fd);
    unsigned count = 0;
    list[n > 0 ? n : 0] = '\0';
    for (char *rest = list, *word; (word = strtok_r(rest, " ", &rest));) {
        int64_t pid = 0;
        count += parse_i64(word, &pid) == ERR_OK && !is_helper((pid_t)pid, false);
    }
    return count || has_helpers ? count : 1;
}

unsigned proc_orphans(void)
{
    pid_t pid;
    pthread_mutex_lock(&helpers_lock);
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        (void)is_helper(pid, true);
    unsigned count = pid < 0 ? 0 : count_children();
    pthread_mutex_unlock(&helpers_lock);
    return count;
}

int proc_await_orphans(nanos until)
{
    int number = 0;
    while (!number && proc_orphans() > 0)
        number = clock_now() < until ? proc_poll_signal(ORPHAN_PERIOD) : WAIT_TIMEOUT;
    return number;
}

/* ---- signals to processes below us ---- */

/* A helper leads a process group of its own. */
static void signal_below(const struct child *child, pid_t group, int number)
{
    struct subtree below;
    pthread_mutex_lock(&helpers_lock);
    if (!subtree_find(&below, SUBTREE_MAX, 0) && child->pid > 0)
        kill(child->pid, number);
    for (size_t i = 0; i < below.count; i++) {
        pid_t its_group = getpgid(below.processes[i]);
        bool is_meant = group ? its_group == group : !is_helper(its_group, false);
        if (its_group > 0 && is_meant) /* it has not ended meanwhile */
            kill(below.processes[i], number);
    }
    pthread_mutex_unlock(&helpers_lock);
}

void child_signal_group(const struct child *child, int number)
{
    signal_below(child, getpgid(child->pid), number);
}

void child_signal_all(const struct child *child, int number)
{
    signal_below(child, 0, number);
}

/* ---- the watchdog ---- */

/* Closes inherited descriptors from `first` on: the pipe of another child must not stay open here. */
static void close_from(unsigned first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    long max = sysconf(_SC_OPEN_MAX);
    for (long fd = (long)first; fd < (max > 0 && max < 65536 ? max : 65536); fd++)
        close((int)fd);
}

/* Runs in a fork of a process that may have threads: async-signal-safe calls only. */
static _Noreturn void watch(int alive, int hold, char *const argv[])
{
    enum { ALIVE = 3, HOLD = 4, HIGH = 16 }; /* descriptors */
    static const int IGNORED[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};
    sigset_t none;
    char byte;
    ssize_t n;
    alive = fcntl(alive, F_DUPFD, HIGH);
    hold = fcntl(hold, F_DUPFD, HIGH);
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0)
        dup2(nothing, STDOUT_FILENO);
    if (alive < 0 || dup2(alive, ALIVE) < 0)
        _exit(127);
    if (hold >= 0)
        dup2(hold, HOLD);
    fcntl(ALIVE, F_SETFD, FD_CLOEXEC);
    fcntl(HOLD, F_SETFD, FD_CLOEXEC);
    close_from(HOLD + 1);
    for (size_t i = 0; i < COUNT_OF(IGNORED); i++)
        signal(IGNORED[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "ipw-watchdog", 0, 0, 0);
    do
        n = read(ALIVE, &byte, 1);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        execv(argv[0], argv);
    _exit(n == 1 ? 0 : 127);
}

enum err watchdog_start(struct watchdog *watchdog, int hold, char *const argv[], struct error *why)
{
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(why, errno, "cannot create a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        setsid();
        pid = fork(); /* double fork, so that this process need not wait for it */
        if (pid == 0)
            watch(ends[0], hold, argv);
        _exit(pid < 0);
    }
    int number = errno;
    close(ends[0]);
    if (pid > 0)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    if (pid < 0 || status != 0) {
        close(ends[1]);
        return err_set(why, ERR_BUSY, "cannot start a watchdog process: %s",
                       pid < 0 ? strerror(number) : "too many processes");
    }
    watchdog->alive = ends[1];
    return ERR_OK;
}

void watchdog_end(struct watchdog *watchdog, bool run_command)
{
    if (watchdog->alive < 0)
        return;
    if (!run_command && write(watchdog->alive, "e", 1) != 1)
        errno = 0; /* the watchdog has ended */
    close(watchdog->alive);
    watchdog->alive = -1;
}

/* ---- another program as a filter ---- */

static bool may_run(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

char *proc_find(const char *name)
{
    const char *path = getenv("PATH");
    struct text found = {0};
    while (path && *path) {
        size_t length = strcspn(path, ":");
        text_clear(&found);
        text_addf(&found, "%.*s/%s", (int)length, path, name);
        /* An empty entry would mean the working directory, which is never intended. */
        if (length && !found.failed && may_run(found.bytes))
            return found.bytes;
        path += length;
        path += *path == ':';
    }
    text_release(&found);
    return NULL;
}

/* Restores default handling of the signals that we block or ignore; `apart`: also default priority and no signals
 * from our terminal. */
static void reset_signals(posix_spawnattr_t *attributes, bool apart)
{
    sigset_t none, all;
    struct sched_param ordinary = {0};
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGPIPE);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &all);
    posix_spawnattr_setschedpolicy(attributes, SCHED_OTHER);
    posix_spawnattr_setschedparam(attributes, &ordinary);
    if (apart)
        flags |= POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSCHEDULER;
    posix_spawnattr_setflags(attributes, flags);
}

static int spawn(const char *const argv[], int input, int output, int messages, bool apart,
                 pid_t *process)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        reset_signals(&attributes, apart);
        failed = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (!failed)
            failed = posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
        if (!failed)
            failed =
                posix_spawn(process, argv[0], &actions, &attributes, (char *const *)argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* The first non-blank line of its standard error. */
static void first_line(int messages, char *to, size_t size)
{
    char bytes[2048];
    ssize_t length = pread(messages, bytes, sizeof bytes - 1, 0);
    bytes[length > 0 ? length : 0] = '\0';
    char *line = bytes + strspn(bytes, " \t\r\n");
    line[strcspn(line, "\r\n")] = '\0';
    str_copy(to, size, *line ? line : "no message");
}

static enum err run_filter(const char *const argv[], int input, int output, int messages,
                           struct error *why)
{
    pid_t process;
    int status = 0;
    char line[200];
    int failed = spawn(argv, input, output, messages, false, &process);
    if (failed)
        return err_errno(why, failed, "cannot run %s", argv[0]);
    pid_t ended;
    bool interrupted = false;
    while ((ended = waitpid(process, &status, interrupted ? 0 : WNOHANG)) <= 0) {
        if (ended < 0 && errno != EINTR)
            return err_set(why, ERR_IO, "cannot wait for %s: %s", argv[0], strerror(errno));
        if (!interrupted && (interrupted = proc_signal_is_pending()))
            kill(process, SIGKILL);
        else if (!interrupted)
            thread_sleep(FILTER_PERIOD);
    }
    if (interrupted)
        return err_set(why, ERR_INTERRUPTED, "interrupted while %s was running", argv[0]);
    if (WIFSIGNALED(status))
        return err_set(why, ERR_IO, "%s was killed by signal %d", argv[0], WTERMSIG(status));
    if (WEXITSTATUS(status) == 0)
        return ERR_OK;
    first_line(messages, line, sizeof line);
    /* Where posix_spawn cannot report a missing program (under valgrind), the child exits with 127. */
    if (WEXITSTATUS(status) == 127)
        return err_set(why, ERR_NOT_FOUND, "%s cannot be run: %s", argv[0], line);
    return err_set(why, ERR_IO, "%s failed (%d): %s", argv[0], WEXITSTATUS(status), line);
}

enum err proc_filter(const char *const argv[], const struct text *input, int output,
                     struct error *why)
{
    int in = -1, messages = -1;
    enum err err = file_open_scratch(&in, why);
    if (err)
        return err;
    err = file_open_scratch(&messages, why);
    if (!err) {
        err = file_write_at(in, text_get(input), input->length, 0);
        if (err)
            err_set(why, err, "cannot write the input of %s: %s", argv[0], err_text(err));
        else
            err = run_filter(argv, in, output, messages, why);
        close(messages);
    }
    close(in);
    return err;
}

enum err proc_read(const char *const argv[], size_t limit, struct text *out, struct error *why)
{
    const struct text nothing = {0};
    int fd;
    enum err err = file_open_scratch(&fd, why);
    if (err)
        return err;
    err = proc_filter(argv, &nothing, fd, why);
    if (!err && lseek(fd, 0, SEEK_SET) < 0)
        err = err_errno(why, errno, "cannot read the output of %s", argv[0]);
    if (!err)
        return file_read_take(fd, argv[0], limit, out, why);
    close(fd);
    return err;
}

/* ---- helpers ---- */

static pid_t helpers_owner;

/* At exit: helpers whose sensors were not closed are killed. */
static void kill_helpers(void)
{
    for (size_t i = 0; i < HELPERS_MAX && helpers_owner == getpid(); i++)
        if (helpers[i])
            kill(helpers[i], SIGKILL);
}

enum err helper_start(struct helper *helper, const char *const argv[], struct error *why)
{
    int ends[2], failure = 0;
    size_t at = 0;
    *helper = (struct helper){0, -1};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0 || pipe2(ends, O_CLOEXEC) < 0) {
        failure = errno;
        if (nothing >= 0)
            close(nothing);
        return err_errno(why, failure, "cannot create a pipe");
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    pthread_mutex_lock(&helpers_lock);
    while (at < HELPERS_MAX && helpers[at])
        at++;
    failure =
        at < HELPERS_MAX ? spawn(argv, nothing, ends[1], nothing, true, &helper->pid) : EAGAIN;
    if (!failure) {
        helpers[at] = helper->pid;
        if (!helpers_owner)
            (void)atexit(kill_helpers);
        helpers_owner = getpid();
    }
    pthread_mutex_unlock(&helpers_lock);
    close(ends[1]);
    close(nothing);
    if (!failure) {
        helper->output = ends[0];
        return ERR_OK;
    }
    close(ends[0]);
    *helper = (struct helper){0, -1};
    return err_errno(why, failure, "cannot run %s", argv[0]);
}

void helper_end(struct helper *helper)
{
    if (!helper->pid)
        return;
    close(helper->output);
    pthread_mutex_lock(&helpers_lock);
    /* One that was waited for is gone, and its PID may have been reused. */
    if (is_helper(helper->pid, true)) {
        kill(helper->pid, SIGKILL);
        while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    pthread_mutex_unlock(&helpers_lock);
    *helper = (struct helper){0, -1};
}

/* ---- this process ---- */

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
    enum { HEAPS = 4 }; /* enough to avoid most contention between threads */
    mallopt(M_ARENA_MAX, HEAPS);
#endif
}

void proc_raise_file_limit(unsigned wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
}
