/* The child is a fork that makes system calls only, since other threads may hold locks.  It is confined by a seccomp
 * filter that its descendants inherit: sockets are refused (io_uring too, which could open them unseen), and so are
 * the calls by which a process leaves its group or changes another of the same user. */
#define _GNU_SOURCE
#include "port/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "core/clock.h"
#include "core/text.h"

enum {
    WATCH_MS = 50,   /* how often cancellation is checked */
    NO_PIDFD_MS = 5, /* and the end of a program, where the kernel does not report it */
};

extern char **environ;

/* ---- the filter ---- */

#if defined __x86_64__
#define OUR_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define OUR_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef OUR_ARCHITECTURE
/* What is refused with EPERM.  socketpair stays: it reaches nobody. */
#define REFUSED(X)                                                                                 \
    X(SYS_socket)                                                                                  \
    X(SYS_io_uring_setup)                                                                          \
    X(SYS_setsid)                                                                                  \
    X(SYS_setpgid)                                                                                 \
    X(SYS_ptrace)                                                                                  \
    X(SYS_process_vm_readv)                                                                        \
    X(SYS_process_vm_writev)                                                                       \
    X(SYS_pidfd_getfd)

/* Numbers that older headers lack; they are the same on every architecture. */
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

enum { X32_CALLS = 0x40000000 }; /* the other ABI of x86-64, with numbers of its own */

#define REFUSE(number)                                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                           \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),

static struct sock_filter FILTER[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCHITECTURE, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    REFUSED(REFUSE) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static bool confine(void)
{
    struct sock_fprog program = {.len = sizeof FILTER / sizeof *FILTER, .filter = FILTER};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum err subprocess_can_confine(struct error *why)
{
    if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0)
        return ERR_OK;
    return err_set(why, ERR_UNSUPPORTED, "this kernel has no seccomp: sockets cannot be refused");
}
#else
static bool confine(void)
{
    errno = ENOSYS;
    return false;
}

enum err subprocess_can_confine(struct error *why)
{
    return err_set(why, ERR_UNSUPPORTED, "no seccomp filter for this architecture");
}
#endif

/* ---- our own memory ---- */

static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned guards;   /* under the lock */
static bool was_readable; /* before the first of them */

void subprocess_guard(void)
{
    pthread_mutex_lock(&guard_lock);
    if (guards++ == 0) {
        was_readable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    }
    pthread_mutex_unlock(&guard_lock);
}

void subprocess_unguard(void)
{
    pthread_mutex_lock(&guard_lock);
    if (--guards == 0 && was_readable)
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    pthread_mutex_unlock(&guard_lock);
}

/* ---- start ---- */

struct pipes {
    int input[2], output[2], messages[2], failure[2];
};

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_pipes(struct pipes *pipes)
{
    int *ends = pipes->input; /* the struct is eight descriptors */
    for (size_t i = 0; i < sizeof *pipes / sizeof *ends; i++)
        close_end(&ends[i]);
}

static bool open_pipes(struct pipes *pipes)
{
    memset(pipes, -1, sizeof *pipes);
    return pipe2(pipes->input, O_CLOEXEC) == 0 && pipe2(pipes->output, O_CLOEXEC) == 0 &&
           pipe2(pipes->messages, O_CLOEXEC) == 0 && pipe2(pipes->failure, O_CLOEXEC) == 0;
}

static bool limit(int resource, uint64_t most)
{
    struct rlimit limits = {.rlim_cur = (rlim_t)most, .rlim_max = (rlim_t)most};
    return most == 0 || setrlimit((__rlimit_resource_t)resource, &limits) == 0;
}

static bool limit_resources(const struct subprocess_options *options)
{
    struct rlimit none = {0};
    return limit(RLIMIT_AS, options->memory_bytes) && limit(RLIMIT_FSIZE, options->file_bytes) &&
           limit(RLIMIT_CPU, options->cpu_s) && setrlimit(RLIMIT_CORE, &none) == 0;
}

/* The child has no signal of ours blocked or ignored. */
static void default_signals(void)
{
    static const int CHANGED[] = {SIGPIPE, SIGXFSZ, SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    sigset_t none;
    for (size_t i = 0; i < sizeof CHANGED / sizeof *CHANGED; i++)
        signal(CHANGED[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Descriptors that we were started with, sockets among them, are not the program's; the pipe that tells of a failure
 * is closed by execve in any case. */
static bool withhold_descriptors(void)
{
    enum { FIRST = STDERR_FILENO + 1, MOST = 1 << 20 };
    struct rlimit open_files;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)FIRST, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) == 0)
        return true;
#endif
    /* Linux before 5.11. */
    if (getrlimit(RLIMIT_NOFILE, &open_files) != 0)
        return false;
    for (int fd = FIRST; fd < MOST && (rlim_t)fd < open_files.rlim_max; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 && errno != EBADF)
            return false;
    return true;
}

/* bound: the program must not outlive the thread that started it. */
static _Noreturn void become(const struct subprocess_options *options, const struct pipes *pipes,
                             bool bound, pid_t parent)
{
    char *const *environment = options->environment ? (char *const *)options->environment : environ;
    bool ready = setpgid(0, 0) == 0 && (!bound || prctl(PR_SET_PDEATHSIG, SIGKILL) == 0) &&
                 getppid() == parent && dup2(pipes->input[0], STDIN_FILENO) >= 0 &&
                 dup2(pipes->output[1], STDOUT_FILENO) >= 0 &&
                 dup2(pipes->messages[1], STDERR_FILENO) >= 0 &&
                 (options->directory < 0 || fchdir(options->directory) == 0) &&
                 limit_resources(options);
    default_signals();
    if (ready && (!options->confined || (withhold_descriptors() && confine())))
        execve(options->argv[0], (char *const *)options->argv, environment);
    int number = errno;
    ssize_t n = write(pipes->failure[1], &number, sizeof number);
    _exit(n == (ssize_t)sizeof number ? 127 : 126);
}

static enum err start_failed(struct subprocess *process, const char *program, int number,
                             struct error *why)
{
    *process = (struct subprocess){0, -1, -1, -1, false};
    return err_set(why, err_from_errno(number), "cannot run %s: %s", program, strerror(number));
}

static enum err start(struct subprocess *process, const struct subprocess_options *options,
                      bool bound, struct error *why)
{
    struct pipes pipes;
    const char *program = options->argv[0];
    enum err err = options->confined ? subprocess_can_confine(why) : ERR_OK;
    *process = (struct subprocess){0, -1, -1, -1, false};
    if (err)
        return err;
    if (options->confined)
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* for reap */
    pid_t parent = getpid();
    pid_t pid = open_pipes(&pipes) ? fork() : -1;
    if (pid == 0)
        become(options, &pipes, bound, parent);
    int number = errno;
    if (pid < 0) {
        close_pipes(&pipes);
        return start_failed(process, program, number, why);
    }
    (void)setpgid(pid, pid); /* whoever comes first: killing the group must work at once */
    *process = (struct subprocess){pid, pipes.input[1], pipes.output[0], pipes.messages[0],
                                   options->confined};
    pipes.input[1] = pipes.output[0] = pipes.messages[0] = -1;
    close_end(&pipes.failure[1]);
    ssize_t n;
    do
        n = read(pipes.failure[0], &number, sizeof number);
    while (n < 0 && errno == EINTR);
    close_pipes(&pipes);
    if (n > 0) {
        subprocess_end(process, NULL);
        return start_failed(process, program, number, why);
    }
    fcntl(process->output, F_SETFL, O_NONBLOCK);
    fcntl(process->messages, F_SETFL, O_NONBLOCK);
    return ERR_OK;
}

enum err subprocess_start(struct subprocess *process, const struct subprocess_options *options,
                          struct error *why)
{
    return start(process, options, false, why);
}

/* ---- end ---- */

bool subprocess_has_ended(const struct subprocess *process)
{
    siginfo_t info = {0};
    return !process->pid ||
           (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == process->pid);
}

static double cpu_seconds(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e-6;
}

/* Of the program, once its group is killed; false where it could not be waited for.  Nobody leaves a confined group, and
 * who has lost a parent there is a child of ours: all are waited for, which is what counts their CPU time.  (No other
 * group has got the number meanwhile: the kernel goes through all others first.) */
static bool reap(const struct subprocess *process, int *status, double *cpu_s)
{
    pid_t which = process->confined ? -process->pid : process->pid, waited;
    bool found = false;
    *cpu_s = 0;
    do {
        struct rusage usage;
        int how;
        do
            waited = wait4(which, &how, 0, &usage);
        while (waited < 0 && errno == EINTR);
        if (waited > 0)
            *cpu_s += cpu_seconds(&usage);
        if (waited == process->pid) {
            *status = how;
            found = true;
        }
    } while (waited > 0 && process->confined);
    return found;
}

void subprocess_end(struct subprocess *process, struct subprocess_end *end)
{
    int status = 0;
    double cpu_s;
    if (end)
        *end = (struct subprocess_end){.exit_code = 127, .cpu_s = UNKNOWN};
    if (!process->pid)
        return;
    /* Before it is waited for: until then no other group can have its number. */
    kill(-process->pid, SIGKILL);
    bool found = reap(process, &status, &cpu_s);
    close_end(&process->input);
    close_end(&process->output);
    close_end(&process->messages);
    if (end && found) {
        end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        end->exit_code = end->signal ? 128 + end->signal : WEXITSTATUS(status);
        end->cpu_s = cpu_s;
    }
    *process = (struct subprocess){0, -1, -1, -1, false};
}

/* ---- a whole run ---- */

/* Reads what is there; closes the descriptor at its end.  `taker`: who gets it, instead of the output. */
static void drain(int *fd, size_t most, const struct subprocess_run *taker, struct text *output,
                  size_t *kept, size_t *dropped)
{
    char bytes[4096];
    ssize_t n;
    while (*fd >= 0 && (n = read(*fd, bytes, sizeof bytes)) != 0) {
        if (n < 0) {
            if (errno != EINTR)
                break;
            continue;
        }
        if (taker) {
            taker->take(taker->context, bytes, (size_t)n);
            continue;
        }
        size_t room = most - *kept, length = (size_t)n < room ? (size_t)n : room;
        text_add_bytes(output, bytes, length);
        *kept += length;
        *dropped += (size_t)n - length;
    }
    if (*fd >= 0 && errno != EAGAIN && errno != EWOULDBLOCK)
        close_end(fd);
}

struct watch {
    struct subprocess process;
    const struct subprocess_run *run;
    struct text *output;
    struct subprocess_result *result;
    size_t written, kept; /* bytes of input and output */
    nanos started;
    int ended; /* a pidfd; -1 */
};

static void take_output(struct watch *watch)
{
    const struct subprocess_run *run = watch->run;
    errno = 0;
    drain(&watch->process.output, run->output_limit, run->take ? run : NULL, watch->output,
          &watch->kept, &watch->result->dropped);
    errno = 0;
    drain(&watch->process.messages, run->output_limit, NULL, watch->output, &watch->kept,
          &watch->result->dropped);
}

static void give_input(struct watch *watch)
{
    const struct subprocess_run *run = watch->run;
    while (watch->process.input >= 0 && watch->written < run->input_length) {
        ssize_t n = write(watch->process.input, run->input + watch->written,
                          run->input_length - watch->written);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n < 0 && errno != EINTR)
            break; /* it reads no more */
        watch->written += n > 0 ? (size_t)n : 0;
    }
    close_end(&watch->process.input);
}

static void wait_for_change(const struct watch *watch)
{
    struct pollfd polled[5] = {
        {.fd = watch->process.input, .events = POLLOUT},
        {.fd = watch->process.output, .events = POLLIN},
        {.fd = watch->process.messages, .events = POLLIN},
        {.fd = watch->ended, .events = POLLIN},
        {.fd = watch->run->ready ? watch->run->watched : -1, .events = POLLIN},
    };
    nanos patience = (watch->ended < 0 ? NO_PIDFD_MS : WATCH_MS) * NS_PER_MS;
    nanos left = watch->started + watch->run->timeout - clock_now();
    if (watch->run->timeout > 0 && left < patience)
        patience = left > 0 ? left : 0;
    poll(polled, 5, (int)((patience + NS_PER_MS - 1) / NS_PER_MS));
    if (polled[4].revents)
        watch->run->ready(watch->run->context);
}

static void watch_until_end(struct watch *watch)
{
    const struct subprocess_run *run = watch->run;
    while (!subprocess_has_ended(&watch->process)) {
        if (run->cancel && atomic_load(run->cancel)) {
            watch->result->canceled = true;
            return;
        }
        if (run->timeout > 0 && clock_now() - watch->started >= run->timeout) {
            watch->result->timed_out = true;
            return;
        }
        wait_for_change(watch);
        give_input(watch);
        take_output(watch);
    }
}

static int open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0U);
#else
    (void)pid;
    return -1;
#endif
}

enum err subprocess_run(const struct subprocess_options *options, const struct subprocess_run *run,
                        struct text *output, struct subprocess_result *result, struct error *why)
{
    struct watch watch = {.run = run, .output = output, .result = result, .started = clock_now()};
    *result = (struct subprocess_result){.end = {.cpu_s = UNKNOWN}};
    enum err err = start(&watch.process, options, true, why);
    if (err)
        return err;
    watch.ended = open_pidfd(watch.process.pid);
    fcntl(watch.process.input, F_SETFL, O_NONBLOCK);
    give_input(&watch);
    watch_until_end(&watch);
    /* What it left in the background would keep the pipes open. */
    kill(-watch.process.pid, SIGKILL);
    take_output(&watch);
    close_end(&watch.ended);
    subprocess_end(&watch.process, &result->end);
    return output->failed ? err_no_memory(why) : ERR_OK;
}

/* ---- commands of a user ---- */

void subprocess_command(const char *given, const char *const *names, struct text *out)
{
    while (*given) {
        size_t i = 0, length = 0;
        for (; *given == '{' && names[i]; i++) {
            length = strlen(names[i]);
            if (!strncmp(given + 1, names[i], length) && given[length + 1] == '}')
                break;
        }
        if (*given != '{' || !names[i]) {
            text_add_bytes(out, given++, 1);
            continue;
        }
        text_add(out, "\"$IPW_");
        for (const char *c = names[i]; *c; c++)
            text_addf(out, "%c", *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
        text_add(out, "\"");
        given += length + 2;
    }
}
